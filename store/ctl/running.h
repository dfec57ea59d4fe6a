/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Adding what runs: each file that a process has mapped as code, once. */
#ifndef BID_CTL_RUNNING_H
#define BID_CTL_RUNNING_H

#include "ctl/batch.h"
#include "ctl/seen.h"

struct ctl_look;

struct ctl_device {
	dev_t dev;
	bool bidfs;
};

struct ctl_running {
	struct ctl_tally *tally;
	struct bid_store *store;
	int interrupt; /* what can be read from it ends a pass: -EINTR; -1 for none */
	struct ctl_seen seen; /* owned */
	unsigned pass;
	struct ctl_batch batch; /* what was added */
	struct ctl_device *devices; /* of local file systems and of mounts of bidfs; owned */
	size_t n_devices;
	struct ctl_look *look; /* what a child found; shared memory, owned */
	dev_t silent; /* a device whose server does not answer, 0 for none */
	int64_t silent_ms; /* the clock when it is tried again */
	size_t passed_over; /* files that run, and cannot be read */
	size_t hidden; /* processes that could not be looked into, in the last pass over all */
};

/* Returns 0 or a negative errno; @running is to be released in either case. */
int ctl_running_begin(struct ctl_running *running, struct ctl_tally *tally, struct bid_store *store);

/* Nothing is synced or reported any more. */
void ctl_running_release(struct ctl_running *running);

/*
 * Each of these adds what it comes upon for the first time, or what was changed since then, and reports what was refused. What was
 * added is reported by ctl_running_settle(). They return 0, or a negative errno of trouble: with the store, mostly. What was not
 * come to because of it comes for the first time once more. A file of a file system that is not local is read by a child, for which
 * they wait a limited time.
 */
int ctl_running_all(struct ctl_running *running);

int ctl_running_processes(struct ctl_running *running, const pid_t *pids, size_t n);

/* The regular file open at @fd, which runs or ran. */
int ctl_running_file(struct ctl_running *running, int fd);

/* Warn of the processes that the last pass over all could not look into, if there were any. */
void ctl_running_warn_hidden(const struct ctl_running *running);

/* Bring to disk what was added, and report it. Else nothing that was seen counts as seen any more. */
int ctl_running_settle(struct ctl_running *running);

#endif
