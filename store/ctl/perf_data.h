/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What became of the builds that a recording of perf names. */
#ifndef BID_CTL_PERF_DATA_H
#define BID_CTL_PERF_DATA_H

#include <time.h>

#include "api/perfdata.h"
#include "ctl/ctl.h"
#include "ctl/debug_file.h"

enum ctl_build_state {
	CTL_BUILD_ADDED,
	CTL_BUILD_KNOWN, /* in the store already */
	CTL_BUILD_FETCHED,
	CTL_BUILD_RUNNING, /* the running kernel, whose symbol table is not to be read */
	CTL_BUILD_REPLACED, /* the file at its path is another build by now */
	CTL_BUILD_MISSING, /* neither here nor in the store */
	CTL_BUILD_REFUSED, /* here, and cannot be read or taken */
	CTL_BUILD_UNIDENTIFIED, /* the recording has no id for it */
	CTL_BUILD_GUESSED, /* nor has the file that is there, which is kept under a cookie */
	CTL_BUILD_STATES
};

struct ctl_build {
	struct bid_id id; /* as recorded; len 0 if there is none */
	bool sized; /* as in struct bid_perfdata_dso */
	enum bid_perfdata_mode mode;
	uint64_t samples; /* 0 if they were not counted */
	uint64_t mapped; /* as in struct bid_perfdata_dso */
	char *path; /* owned */
	enum ctl_build_state state;
	bool looked; /* is there a file at the path? Then the next two are its */
	struct bid_id found; /* len 0 if it has none */
	time_t mtime;
	char *why; /* in words, or NULL; owned */
};

enum { CTL_ID_UNIQUE = 8 }; /* bytes of an id that nothing else begins with */

/* Was it recorded of the kernel's own code, or of the vDSO? Neither is a file. */
bool ctl_build_is_kernel(const struct ctl_build *build);
bool ctl_build_is_vdso(const struct ctl_build *build);

/* The id to ask servers for: without the zeros that perf puts behind a short one, to a multiple of 4 as ids have it. */
struct bid_id ctl_build_id(const struct ctl_build *build);

/*
 * Add the file at its path to @store, if there is one and it is this build. build->state says what came of it, and is left alone
 * if there is no file. Its debug file is wanted then in @debug_files, which may be NULL. Returns 0, or a negative errno of trouble
 * with the store.
 */
int ctl_add_build(const struct ctl *ctl, struct bid_store *store, struct ctl_build *build, struct ctl_debug_files *debug_files);

/*
 * The recording has no id for it: if the file at its path has none either, and was not changed since @recorded (0: unknown), keep
 * it under a cookie. build->state and build->why say so; they are left alone otherwise. build->looked says that the file was
 * changed. Returns as ctl_add_build().
 */
int ctl_guess_build(const struct ctl *ctl, struct bid_store *store, struct ctl_build *build, time_t recorded);

struct ctl_recording {
	const char *path; /* borrowed */
	struct bid_perfdata_summary summary;
	struct ctl_build *builds; /* owned */
	size_t n, room;
	bool partial; /* it was warned that there may be more builds */
};

/*
 * Read the recording at recording->path. Its builds are in the order of their paths, or with @hottest_first, which takes some time
 * more, of how many samples they have. Returns CTL_DONE, or what to exit with after an error message.
 */
enum ctl_status ctl_recording_read(struct ctl_recording *recording, bool hottest_first);

/* Add one more build to it. Returns 0 or -ENOMEM. */
int ctl_recording_add(struct ctl_recording *recording, const struct bid_perfdata_dso *dso);

/* Is @build needed, and has no id? A recording that lists what was sampled needs nothing else. */
bool ctl_build_is_needed_without_id(const struct ctl_recording *recording, const struct ctl_build *build);

/* Has the file of a sampled build without an id changed since? */
bool ctl_build_is_changed(const struct ctl_recording *recording, const struct ctl_build *build);

/* Say as warnings what there is to know of how it was read. Sets recording->partial. */
void ctl_recording_warn(struct ctl_recording *recording);

void ctl_recording_release(struct ctl_recording *recording);

/* Is @state one of a build that there should be, and is not? */
bool ctl_build_lacks(enum ctl_build_state state);

/* Write it all on standard output, and what there is to warn of on standard error. Returns 0 or -ENOMEM. */
int ctl_recording_print(const struct ctl *ctl, struct ctl_recording *recording);

#endif
