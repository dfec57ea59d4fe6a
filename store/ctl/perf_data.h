/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds named by a recording of perf, and their results. */
#ifndef BID_CTL_PERF_DATA_H
#define BID_CTL_PERF_DATA_H

#include <time.h>

#include "api/perfdata.h"
#include "ctl/ctl.h"
#include "ctl/debug_file.h"

enum ctl_build_state {
	CTL_BUILD_ADDED,
	CTL_BUILD_KNOWN, /* in the store already */
	CTL_BUILD_RUNNING, /* the running kernel, with a symbol table that this user cannot read */
	CTL_BUILD_REPLACED, /* another build is now at its path */
	CTL_BUILD_MISSING, /* missing on this machine and in the store */
	CTL_BUILD_REFUSED, /* on this machine, but not readable or not accepted */
	CTL_BUILD_UNIDENTIFIED, /* no id in the recording */
	CTL_BUILD_GUESSED, /* no id in the recording or in the local file, which is kept under a content key */
	CTL_BUILD_STATES
};

struct ctl_build {
	struct bid_id id; /* as recorded; len 0 without an id */
	bool sized; /* as in struct bid_perfdata_dso */
	enum bid_perfdata_mode mode;
	uint64_t samples; /* 0 without a count */
	uint64_t mapped; /* as in struct bid_perfdata_dso */
	char *path; /* owned */
	enum ctl_build_state state;
	bool looked; /* the path leads to a file; the next two fields are the file's */
	struct bid_id found; /* len 0 without an id */
	time_t mtime;
	char *why; /* cause in words, or NULL; owned */
};

enum { CTL_ID_UNIQUE = 8 }; /* bytes that make an id's beginning unique */

/* Was the build recorded of the kernel's own code, or of the vDSO? They have no file. */
bool ctl_build_is_kernel(const struct ctl_build *build);
bool ctl_build_is_vdso(const struct ctl_build *build);

/* Return the id to request from servers: without the zeros that perf appends, cut to a multiple of 4 bytes. */
struct bid_id ctl_build_id(const struct ctl_build *build);

/*
 * Add the file at @build's path to @store, if a file is there and is this build. The result goes to build->state, unchanged without
 * a file. After a success @debug_files (may be NULL) contains the program. Returns 0, or a negative errno of the store.
 */
int ctl_add_build(const struct ctl *ctl, struct bid_store *store, struct ctl_build *build, struct ctl_debug_files *debug_files);

/*
 * Keep the file at the path of a build without a recorded id under a content key. The file must have no id, and no change after
 * @recorded (0: unknown). build->state and build->why tell the result, and stay unchanged otherwise. build->looked says that the
 * file was changed. Returns as ctl_add_build().
 */
int ctl_guess_build(const struct ctl *ctl, struct bid_store *store, struct ctl_build *build, time_t recorded);

struct ctl_perf_data {
	const char *path; /* borrowed */
	struct bid_perfdata_summary summary;
	struct ctl_build *builds; /* owned */
	size_t n, room;
	bool partial; /* a warning said that there may be more builds */
};

/*
 * Read the recording at recording->path. Its builds are sorted by path, or with @hottest_first by their samples, which takes
 * longer. Returns CTL_DONE, or the exit status after an error message.
 */
enum ctl_status ctl_perf_data_read(struct ctl_perf_data *recording, bool hottest_first);

/* Add one more build to the recording. Returns 0 or -ENOMEM. */
int ctl_perf_data_add(struct ctl_perf_data *recording, const struct bid_perfdata_dso *dso);

/* Is @build needed, and without an id? A recording with a list of sampled builds needs no others. */
bool ctl_build_is_needed_without_id(const struct ctl_perf_data *recording, const struct ctl_build *build);

/* Has the file of a sampled build without an id changed since the recording? */
bool ctl_build_is_changed(const struct ctl_perf_data *recording, const struct ctl_build *build);

/* Print warnings about the recording. Sets recording->partial. */
void ctl_perf_data_warn(struct ctl_perf_data *recording);

void ctl_perf_data_release(struct ctl_perf_data *recording);

/* Is @state that of a needed, but absent build? */
bool ctl_build_lacks(enum ctl_build_state state);

#endif
