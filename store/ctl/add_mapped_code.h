/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Add running code: each file that a process maps as code, once. */
#ifndef BID_CTL_ADD_MAPPED_CODE_H
#define BID_CTL_ADD_MAPPED_CODE_H

#include "ctl/add.h"

struct ctl_look;

struct ctl_device {
	dev_t dev;
	bool bidfs;
};

struct ctl_mapped_code {
	struct ctl_add_stats *stats;
	struct bid_store *store;
	int interrupt; /* a readable descriptor ends a pass with -EINTR; -1 for none */
	void *seen; /* tree of tsearch(3) of files seen before, which need no second look; owned */
	unsigned pass;
	struct ctl_device *devices; /* devices of local file systems and of mounts of bidfs; owned */
	size_t n_devices;
	struct ctl_look *look; /* result of a child; shared memory, owned */
	dev_t silent; /* device with a silent server, 0 for none */
	int64_t silent_ms; /* clock of its next attempt */
	size_t passed_over; /* running, but unreadable files */
	size_t hidden; /* processes without read permission in the last pass over all */
};

/* Start. Returns 0 or a negative errno; the caller releases @running in either case. */
int ctl_mapped_code_begin(struct ctl_mapped_code *running, struct ctl_add_stats *stats, struct bid_store *store);

/* Release without a sync or a report. */
void ctl_mapped_code_release(struct ctl_mapped_code *running);

/*
 * Each of these adds new and changed files, and reports refusals; ctl_mapped_code_commit() reports the added files.
 * They return 0, or a negative errno, mostly of the store; files left over after an error count as new once more. A child reads a
 * file of a non-local file system, and the caller waits for the child for a limited time.
 */
int ctl_mapped_code_all(struct ctl_mapped_code *running);

int ctl_mapped_code_processes(struct ctl_mapped_code *running, const pid_t *pids, size_t n);

/* Add the regular file open at @fd, which runs or ran. */
int ctl_mapped_code_file(struct ctl_mapped_code *running, int fd);

/* Warn of the processes without read permission in the last pass over all, if any. */
void ctl_mapped_code_warn_hidden(const struct ctl_mapped_code *running);

/* Sync the added files, and report them. After a failure no file counts as seen any more. */
int ctl_mapped_code_commit(struct ctl_mapped_code *running);

/* Commit, also after the error @r of the calls above, and release. Returns @r, or for 0 the result of the commit. */
int ctl_mapped_code_end(struct ctl_mapped_code *running, int r);

#endif
