/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The process that works on a store until its disk is gone, and says what it has done. */
#ifndef BID_POWER_WORKER_H
#define BID_POWER_WORKER_H

#include <stdbool.h>

#include "object.h"

enum {
	OBJECTS_MAX = 20000, /* in one trial */
	TOGETHER_MAX = 12, /* that are added by one command */
};

/* The trees of what perf adds, too. A cut may tear that as long as nobody else says that it is there. */
#define OF_PERF "source-perf-"

/* What the worker says on its pipe once an addition has returned. */
struct acknowledgement {
	uint32_t number;
	bool together; /* with others */
};

/* Which syncs a saboteur takes out: all, those of what is added together, those of what perf has put there. */
extern bool without_fsync, without_syncfs, without_known;

/* Work until the disk is gone, and write acknowledgements to @pipe. Does not return. */
void worker_run(const struct trial *trial, int pipe) __attribute__((noreturn));

#endif
