/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the ways of "bidctl add" share: counting, reporting, and the summary at the end. */
#ifndef BID_CTL_ADD_H
#define BID_CTL_ADD_H

#include "ctl/ctl.h"
#include "ctl/output.h"

enum ctl_tally_form {
	CTL_TALLY_WHOLE, /* one result in the end */
	CTL_TALLY_STREAM, /* a line for each file as it comes, of JSON too: for what goes on and on */
	CTL_TALLY_SILENT, /* nothing of what was taken: somebody else tells of that */
};

struct ctl_tally {
	const struct ctl *ctl;
	enum ctl_tally_form form;
	size_t seen, added, known, refused;
	bool without_table; /* the symbol table of the kernel was refused */
	struct ctl_tally_reason *reasons; /* of those that were refused without a message; owned */
	size_t n_reasons;
	json_t *files; /* NULL without --json, or in a stream; owned */
	struct ctl_progress progress;
	int64_t drawn_ms; /* the clock when the progress was shown last */
};

void ctl_tally_begin(struct ctl_tally *tally, const struct ctl *ctl, enum ctl_tally_form form);

/* The file @path is in the store; of no kind is a copy of /proc/kcore. */
void ctl_tally_taken(struct ctl_tally *tally, const char *path, const struct bid_added *added);

/* It was not taken, because of @why. An error message says so if @named, that is, if somebody asked for this very file. */
void ctl_tally_refused(struct ctl_tally *tally, const char *path, const char *why, bool named);

/* Show on a terminal how far it is: @seen files by now. */
void ctl_tally_progress(struct ctl_tally *tally, size_t seen);

void ctl_tally_release(struct ctl_tally *tally);

/* Print the summary, and release it. Returns @status, or what is worse. */
enum ctl_status ctl_tally_end(struct ctl_tally *tally, enum ctl_status status);

/* Why bid_store_add() did not take a file: @error in words. */
const char *ctl_add_reason(int error, enum bid_link link);

/* The same of the file @path, which may be of split DWARF. */
const char *ctl_add_file_reason(const char *path, int error, enum bid_link link);

/* Everything that runs on this machine: programs, libraries, the kernel and its modules. Returns the status so far. */
enum ctl_status ctl_add_running(struct ctl_tally *tally, struct bid_store *store);

/* The ELF files among the paths that the file @list names. Returns the status so far. */
enum ctl_status ctl_add_listed(struct ctl_tally *tally, struct bid_store *store, const char *list);

/* Is @path the file "kcore" of a copy of /proc/kcore, with "kallsyms" and "modules" beside it, or that itself? */
bool ctl_is_kcore(const char *path);

/* Such a copy, as a whole. What is refused is told. Returns 0 or a negative errno. */
int ctl_add_kcore(struct ctl_tally *tally, struct bid_store *store, const char *path);

/* What runs of the kernel: its symbol table, the vDSO, its modules. Returns 0 or a negative errno of trouble. */
int ctl_add_kernel(struct ctl_tally *tally, struct bid_store *store);

/* The running kernel's image, with and without debug information, as far as they lie where they usually do. As ctl_add_kernel(). */
int ctl_add_kernel_files(struct ctl_tally *tally, struct bid_store *store);

#endif
