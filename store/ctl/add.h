/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counting, reporting and the summary of "bidctl add", shared by its files. */
#ifndef BID_CTL_ADD_H
#define BID_CTL_ADD_H

#include "ctl/ctl.h"
#include "ctl/output.h"

enum ctl_add_form {
	CTL_ADD_WHOLE, /* one result in the end */
	CTL_ADD_STREAM, /* one line (with --json an envelope) per file, for commands without an end */
	CTL_ADD_SILENT, /* no line per added file; the caller reports */
};

struct ctl_add_stats {
	const struct ctl *ctl;
	enum ctl_add_form form;
	size_t seen, added, known, refused;
	bool without_table; /* the kernel's symbol table was refused */
	struct ctl_add_refusals *reasons; /* reasons of files refused without a message; owned */
	size_t n_reasons;
	struct ctl_unsynced *unsynced; /* added files that are on disk with the next sync; owned */
	size_t n_unsynced, room;
	struct ctl_progress progress;
};

void ctl_add_stats_begin(struct ctl_add_stats *stats, const struct ctl *ctl, enum ctl_add_form form);

/* Report that the file @path is in the store. */
void ctl_add_stats_taken(struct ctl_add_stats *stats, const char *path, const struct bid_added *added);

/* Keep the report of the file @path, added with bid_add.batch, until ctl_add_stats_sync(). Returns 0 or -ENOMEM. */
int ctl_add_stats_defer(struct ctl_add_stats *stats, const char *path, const struct bid_added *added);

/* Sync the deferred files of @store, report them after success, and forget them in either case. */
int ctl_add_stats_sync(struct ctl_add_stats *stats, struct bid_store *store);

/* Forget the deferred files, without a sync or a report. */
void ctl_add_stats_forget(struct ctl_add_stats *stats);

/* Count @path as refused with @error, because of @why. Prints an error message if the user @named this file. */
void ctl_add_stats_refused(struct ctl_add_stats *stats, const char *path, int error, const char *why, bool named);

/* Draw the progress on a terminal: @seen files. */
void ctl_add_stats_progress(struct ctl_add_stats *stats, size_t seen);

void ctl_add_stats_release(struct ctl_add_stats *stats);

/* Print the summary and release @stats. Returns the worse one of @status and the stats' status. */
enum ctl_status ctl_add_stats_end(struct ctl_add_stats *stats, enum ctl_status status);

/* Has @path @suffix, and something before it? */
bool ctl_ends_with(const char *path, const char *suffix);

/* Return @error of bid_store_add() in words. */
const char *ctl_add_reason(int error, enum bid_link link);

/* Return the same for the file @path, which may have split DWARF. */
const char *ctl_add_file_reason(const char *path, int error, enum bid_link link);

/* Find out for --dry-run what the file @path would be in @store (NULL is an empty one). Returns 0, or as bid_store_add(). */
int ctl_foresee(struct bid_store *store, const char *path, struct bid_added *ret_added);

/* Add the running kernel's symbol table, vDSO and modules. Returns 0, or a negative errno of the store. */
int ctl_add_kernel(struct ctl_add_stats *stats, struct bid_store *store);

/* Add the running kernel's images, stripped and unstripped, from their usual places. Returns as ctl_add_kernel(). */
int ctl_add_kernel_files(struct ctl_add_stats *stats, struct bid_store *store);

/* A non-zero return ends the loop, and is returned. */
typedef int (*ctl_module_fn)(void *user, const char *path);

/* Call @fn for the file of the module @name (the kernel's name) in each installed release. Returns 0 or -ENOMEM. */
int ctl_module_each(const char *name, ctl_module_fn fn, void *user);

#endif
