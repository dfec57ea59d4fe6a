/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The process that works on a store until its disk is gone, and acknowledges its work. */
#ifndef BID_POWER_WORKER_H
#define BID_POWER_WORKER_H

#include <stdbool.h>

#include "object.h"

enum {
	OBJECTS_MAX = 20000, /* in one trial */
	TOGETHER_MAX = 12, /* objects added by one command */
};

/* Also the trees of perf's additions. A power cut may tear such a file until another process reports it as stored. */
#define OF_PERF "source-perf-"

/* Message of the worker on its pipe after an addition. */
struct acknowledgement {
	uint32_t number;
	bool together; /* with others */
	bool unsynced; /* as through a mount */
};

/* Syncs that a saboteur disables: all, those of batches, those of perf's files, those of files written through a mount. */
extern bool without_fsync, without_syncfs, without_known, without_write_back;

/* Work until the disk is gone, and write acknowledgements to @pipe. Does not return. */
void worker_run(const struct power_trial *trial, int pipe) __attribute__((noreturn));

#endif
