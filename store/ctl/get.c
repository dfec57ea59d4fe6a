// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl get */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <bid/error.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/path.h"
#include "ctl/add.h"
#include "ctl/covering_mount.h"
#include "ctl/debug_file.h"
#include "ctl/fetch_all.h"
#include "ctl/needed_builds.h"
#include "ctl/output.h"
#include "ctl/servers.h"

enum { NAME_MAX_SIZE = BID_SUBPATH_MAX + BID_ID_HEX_MAX + 64, CAUSE_MAX = PATH_MAX + 512 };

enum state { HERE, ADDED, FETCHED, ABSENT, REFUSED, FAILED, INTERRUPTED, STATES };

static const char *const state_names[STATES] = {
	[HERE] = "here",       [ADDED] = "added",   [FETCHED] = "fetched",	   [ABSENT] = "absent",
	[REFUSED] = "refused", [FAILED] = "failed", [INTERRUPTED] = "interrupted",
};

struct getting {
	const struct ctl *ctl;
	struct bid_store *store; /* borrowed */
	struct ctl_perf_data needs; /* named builds; none for a build in an operand */
	struct ctl_wanted_list list;
	json_t *covering; /* state of the mount over the store; NULL without one. Owned */
	bool barred; /* the store is read-only, so that no server gets a request */
};

static void getting_release(struct getting *getting)
{
	ctl_wanted_release(&getting->list);
	ctl_perf_data_release(&getting->needs);
	json_decref(getting->covering);
}

/* Name the artifact for a message: "elf of 'ID'", "section '.text' of 'ID'". Returns @buf. */
static const char *name_of(const struct bid_artifact *artifact, char buf[static NAME_MAX_SIZE])
{
	const char *kind = bid_kind_name(artifact->kind), *subpath = bid_subpath_text(artifact->subpath);
	char hex[BID_ID_HEX_MAX];

	bid_id_format(&artifact->id, hex);
	if (artifact->subpath)
		snprintf(buf, NAME_MAX_SIZE, "%s '%s' of '%s'", kind, subpath, hex);
	else
		snprintf(buf, NAME_MAX_SIZE, "%s of '%s'", kind, hex);
	return buf;
}

/* Open the artifact if the store has it, for a path that opens it again. Returns 0, or -ENOENT for a file in memory, or removed. */
static int find_path(struct bid_store *store, const struct bid_artifact *artifact, struct bid_file *ret_file,
		     char ret_path[static PATH_MAX])
{
	struct stat st;
	int r = ctl_open_artifact(store, artifact, ret_file);

	if (r == 0)
		r = bid_path_of(ret_file->fd, ret_path, PATH_MAX);
	if (r < 0)
		return r;
	/* a file unpacked into memory, or removed since, has a text there, but no name */
	if (stat(ret_path, &st) < 0 || st.st_ino != ret_file->st.st_ino || st.st_dev != ret_file->st.st_dev)
		return -ENOENT;
	return 0;
}

/*
 * Classify an artifact that is not there: it is absent only if the servers said so. Otherwise its absence is unknown, and the error
 * becomes the one of the servers, or of the mount or the store that keeps bidctl from them.
 */
static void classify_wanted(const struct getting *getting, struct ctl_wanted *wanted)
{
	const struct ctl_trace *trace = &wanted->trace;
	const struct bid_artifact *artifact = &wanted->artifact;

	if ((wanted->error != -ENOENT && wanted->error != -EHOSTUNREACH) || !bid_kind_fetchable(artifact->kind))
		return;
	if (!getting->covering) {
		if (wanted->error == -ENOENT && getting->barred && !trace->servers && trace->negative_ttl_s == 0 &&
		    trace->stored != -ENODATA)
			wanted->error = -EROFS;
	} else if (getting->list.refresh_error < 0 && !ctl_covering_mount_refusal(getting->list.refresh_error)) {
		wanted->error = getting->list.refresh_error;
	} else if ((ctl_covering_mount_is_offline(getting->covering) || !bid_kind_has_subpath(artifact->kind)) &&
		   !ctl_trace_all_absent(trace, json_object_get(getting->covering, "servers"))) {
		wanted->error = -EHOSTUNREACH;
	}
}

/* Find absent debuginfo in the unstripped ELF file that came beside it. */
static void find_in_elf_files(struct getting *getting)
{
	for (size_t i = 0; i < getting->list.n; i++) {
		struct ctl_wanted *wanted = &getting->list.wanted[i];
		struct bid_file file = BID_FILE_NONE;

		if (wanted->error == -ENOENT && wanted->artifact.kind == BID_KIND_DEBUGINFO)
			wanted->error = ctl_open_artifact(getting->store, &wanted->artifact, &file);
		bid_file_release(&file);
	}
}

/* Bring all wanted artifacts into the store, with the shared files of dwz(1). Returns as ctl_fetch_all(). */
static enum ctl_status fetch_missing(struct getting *getting)
{
	struct ctl_wanted_list *list = &getting->list;
	size_t first = list->n;
	enum ctl_status status;

	status = ctl_fetch_all(getting->ctl, getting->store, list, 0);
	if (list->n > 1)
		find_in_elf_files(getting);
	if (status == CTL_DONE && ctl_want_dwz(list, getting->store) < 0)
		status = ctl_no_memory();
	if (status == CTL_DONE)
		status = ctl_fetch_all(getting->ctl, getting->store, list, first);
	getting->covering = ctl_covering_mount_state(bid_store_path(getting->store));
	getting->barred = ctl_servers_are_barred(getting->ctl, getting->store);
	return status;
}

static enum state state_of(const struct ctl_wanted *wanted)
{
	switch (wanted->error) {
	case 0:
		if (wanted->waiter_id)
			return FETCHED;
		return wanted->artifact.kind == BID_KIND_ELF && wanted->build && wanted->build->state == CTL_BUILD_ADDED ? ADDED
															 : HERE;
	case -ENOENT:
		return ABSENT;
	case -EBADMSG:
	case -EFBIG:
	case -EOPNOTSUPP:
	case -EACCES:
		return REFUSED;
	case -EINTR:
		return INTERRUPTED;
	default:
		return FAILED;
	}
}

/* Describe the error, apart from the course of the lookup. */
static const char *error_of(const struct ctl_wanted *wanted)
{
	bool unstripped = wanted->artifact.kind == BID_KIND_UNSTRIPPED && !wanted->trace.servers;

	/* the line of a server explains its EBADMSG */
	if (wanted->error == -EBADMSG && wanted->trace.servers && !wanted->trace.of_mount)
		return "no server delivered the right artifact";
	if (wanted->error == -EROFS && !wanted->trace.servers)
		return "not in the store, and bidctl fetches none, as the store cannot be written";
	if (unstripped && wanted->error == -EBADMSG)
		return "the ELF file and the debuginfo in the store do not belong together";
	if (unstripped && wanted->error == -EOPNOTSUPP)
		return "bidctl does not put a relocatable file, such as a module, or one without section headers together with "
		       "its debuginfo";
	return bid_strerror(wanted->error);
}

/* Name the store that denies reading the artifact. */
static void describe_denial(const struct getting *getting, const struct ctl_wanted *wanted, char buf[static CAUSE_MAX])
{
	char path[PATH_MAX];

	ctl_find_denier(getting->ctl, &wanted->artifact, path);
	snprintf(buf, CAUSE_MAX, "permission denied in '%s'%s", path,
		 strcmp(path, bid_store_path(getting->store)) == 0 ? "" : " - '--lower=none' reads no lower store");
}

/* Describe why the artifact is not there, with the remedy. Returns @buf. */
static const char *cause_of(const struct getting *getting, const struct ctl_wanted *wanted, char buf[static CAUSE_MAX])
{
	const struct ctl_trace *trace = &wanted->trace;
	const char *error = error_of(wanted);
	int refresh_error = bid_kind_fetchable(wanted->artifact.kind) ? getting->list.refresh_error : 0;

	if (refresh_error < 0 && ctl_covering_mount_refusal(refresh_error))
		snprintf(buf, CAUSE_MAX, "%s", ctl_covering_mount_refusal(refresh_error));
	else if (refresh_error < 0)
		snprintf(buf, CAUSE_MAX, "%s: cannot order the mount that covers the store to ask its servers again", error);
	else if (wanted->error == -EHOSTUNREACH && ctl_covering_mount_is_offline(getting->covering))
		snprintf(buf, CAUSE_MAX, "%s", CTL_COVER_OFFLINE);
	else if (trace->negative_ttl_s > 0)
		snprintf(buf, CAUSE_MAX, "%s: every server lacked it earlier - bidctl asks them again in %u s, or with '--refresh'",
			 error, trace->negative_ttl_s);
	else if (trace->changed)
		snprintf(buf, CAUSE_MAX, "%s - '--accept' accepts the other bytes", error);
	else if (trace->stored == -ENODATA)
		snprintf(buf, CAUSE_MAX, "%s: the files of the build in the store lack it", error);
	else if ((wanted->artifact.subpath || state_of(wanted) >= FAILED) && getting->covering)
		snprintf(buf, CAUSE_MAX, "%s: the mount that covers the store failed%s", error,
			 getting->ctl->verbose ? "" : " - 'bidctl status' shows its servers, 'bidctl get -v' their responses");
	else if (wanted->error == -ENOENT && (!trace->servers || trace->of_mount))
		snprintf(buf, CAUSE_MAX, "%s in the store, and %s", error,
			 ctl_servers_why_none(getting->ctl, getting->store, wanted->artifact.kind));
	else if (wanted->error == -EACCES && !trace->servers && !getting->covering)
		describe_denial(getting, wanted, buf);
	else
		snprintf(buf, CAUSE_MAX, "%s", error);
	return buf;
}

/* Write the row of one artifact. @path and @cause are NULL after a failure or a success. */
static void write_row(const struct ctl *ctl, const struct ctl_wanted *wanted, enum state state, const struct bid_file *file,
		      const char *path, const char *cause)
{
	const struct bid_artifact *artifact = &wanted->artifact;
	bool all = (ctl->verbose || !path) && wanted->trace.servers;

	ctl_row(ctl, CTL_ID("id", CTL_HIDDEN, &artifact->id), CTL_KIND("kind", CTL_HIDDEN, artifact->kind),
		CTL_TEXT("name", CTL_HIDDEN, artifact->subpath ? bid_subpath_text(artifact->subpath) : NULL),
		CTL_TEXT("state", CTL_HIDDEN, state_names[state]),
		CTL_KIND("served_as", CTL_HIDDEN, path ? file->kind : BID_KIND_NONE), CTL_TEXT("file", CTL_HIDDEN, path),
		CTL_SIZE("size", CTL_HIDDEN, path ? (uint64_t)file->st.st_size : 0), CTL_TEXT("reason", CTL_HIDDEN, cause),
		CTL_JSON("servers", all ? json_incref(wanted->trace.servers) : json_array()));
}

/* Print the path of the artifact. Its file may have gone since. */
static enum ctl_status deliver_file(const struct getting *getting, struct ctl_wanted *wanted)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	const struct ctl *ctl = getting->ctl;
	char path[PATH_MAX], name[NAME_MAX_SIZE], hex[BID_ID_HEX_MAX];
	int r = find_path(getting->store, &wanted->artifact, &file, path);

	if (r < 0 && file.fd >= 0) {
		bid_error_about(bid_id_format(&wanted->artifact.id, hex), r,
				"unpacked in memory only, as the store cannot be written: %s", name_of(&wanted->artifact, name));
		return CTL_REFUSED;
	}
	if (r < 0)
		return ctl_trouble(name_of(&wanted->artifact, name), r, "open it");
	if (ctl->verbose)
		ctl_trace_print(&wanted->trace, getting->store, &wanted->artifact, 0, path);
	if (!ctl->json) {
		/* scripts need the exact bytes of the path */
		if (ctl_is_terminal(stdout))
			ctl_print_text(stdout, path);
		else
			fputs(path, stdout);
		putchar('\n');
		return CTL_DONE;
	}
	write_row(ctl, wanted, wanted->trace.stored == 0 ? HERE : FETCHED, &file, path, NULL);
	return CTL_DONE;
}

/* Report the servers' responses and the cause on standard error, with --json also as JSON on standard output. */
static enum ctl_status report_failure(const struct getting *getting, struct ctl_wanted *wanted)
{
	char name[NAME_MAX_SIZE], hex[BID_ID_HEX_MAX], buf[CAUSE_MAX];
	const char *cause = cause_of(getting, wanted, buf);
	enum state state = state_of(wanted);

	if (getting->ctl->verbose)
		ctl_trace_print(&wanted->trace, getting->store, &wanted->artifact, wanted->error, NULL);
	else if (!wanted->trace.of_mount)
		ctl_trace_print_errors(&wanted->trace);
	bid_error_about(bid_id_format(&wanted->artifact.id, hex), wanted->error, "%s: %s", cause, name_of(&wanted->artifact, name));
	if (getting->ctl->json)
		write_row(getting->ctl, wanted, state, NULL, NULL, cause);
	return state == ABSENT || state == REFUSED ? CTL_REFUSED : CTL_TROUBLE;
}

/* Take the servers' responses from a mount over the store, which downloads by itself. */
static void take_responses(const struct getting *getting, struct ctl_wanted *wanted)
{
	json_t *responses;

	if (!getting->covering || (wanted->error == 0 && !getting->ctl->verbose) || !bid_kind_fetchable(wanted->artifact.kind))
		return;
	responses = ctl_covering_mount_responses(bid_store_path(getting->store), &wanted->artifact.id);
	ctl_trace_add_responses(&wanted->trace, responses, &wanted->artifact);
	json_decref(responses);
}

/* Get the only artifact of the list. */
static enum ctl_status get_one(struct getting *getting)
{
	enum ctl_status status, delivered;
	struct ctl_wanted *wanted = getting->list.wanted;
	struct bid_file file = BID_FILE_NONE;
	char hex[BID_ID_HEX_MAX];

	/* ctl_fetch_all() does not report whether the store had it */
	wanted->trace.stored =
		bid_is_mount(bid_store_path(getting->store))
			? 0
			: bid_store_find(getting->store, &wanted->artifact,
					 wanted->artifact.kind == BID_KIND_UNSTRIPPED ? BID_NEVER_DERIVE : BID_MAY_DERIVE, &file);
	bid_file_release(&file);
	status = fetch_missing(getting);
	wanted = getting->list.wanted;
	if (getting->covering)
		wanted->trace.stored = wanted->error;
	take_responses(getting, wanted);
	classify_wanted(getting, wanted);
	for (size_t i = 1; i < getting->list.n && status == CTL_DONE; i++)
		if (getting->list.wanted[i].error < 0)
			bid_warning("%s: the dwz file that holds most of the debug information: debuginfo of '%s'",
				    bid_strerror(getting->list.wanted[i].error),
				    bid_id_format(&getting->list.wanted[i].artifact.id, hex));
	if (status == CTL_TROUBLE || status == CTL_USAGE || (status != CTL_DONE && wanted->error != 0))
		return status;
	/* a file that came before the signal is delivered */
	delivered = wanted->error == 0 ? deliver_file(getting, wanted) : report_failure(getting, wanted);
	return status == CTL_DONE ? delivered : status;
}

/* Add the files that are still at their paths. Fails for errors of the store alone. */
static enum ctl_status add_programs(struct getting *getting)
{
	for (size_t i = 0; i < getting->needs.n; i++) {
		struct ctl_build *build = &getting->needs.builds[i];
		int r;

		/* a guest's path is a path of another machine */
		if (build->id.len == 0 || build->path[0] != '/' || build->mode == BID_PERFDATA_GUEST)
			continue;
		if (build->state == CTL_BUILD_ADDED || build->state == CTL_BUILD_KNOWN)
			continue;
		r = ctl_add_build(getting->ctl, getting->store, build, NULL);
		if (r < 0) {
			bid_error_about(build->path, r, "%s: cannot add it to '%s'", bid_strerror(r),
					bid_store_path(getting->store));
			return CTL_TROUBLE;
		}
	}
	return CTL_DONE;
}

/* Add the installed debug files of all builds. Returns as add_programs(). */
static enum ctl_status add_debug_files(struct getting *getting)
{
	bid_cleanup(ctl_debug_files_release) struct ctl_debug_files files = { 0 };
	int r = 0;

	for (size_t i = 0; i < getting->needs.n && r == 0; i++) {
		const struct ctl_build *build = &getting->needs.builds[i];
		struct bid_id id = ctl_build_id(build);

		if (id.len > 0)
			r = ctl_debug_files_want(&files, build->path, &id);
	}
	if (r == 0)
		r = ctl_debug_files_add_quietly(&files, getting->ctl, getting->store);
	return r < 0 ? ctl_trouble(bid_store_path(getting->store), r, "add debug files to the store") : CTL_DONE;
}

/* Add local files for artifacts of @kind, BID_KIND_NONE for all: they cost no download, and servers may lack them. */
static enum ctl_status add_local(struct getting *getting, enum bid_kind kind)
{
	enum ctl_status status = CTL_DONE;

	if (!bid_store_writable(getting->store))
		return CTL_DONE;
	if (kind != BID_KIND_DEBUGINFO)
		status = add_programs(getting);
	return status == CTL_DONE && kind != BID_KIND_ELF ? add_debug_files(getting) : status;
}

/* Want the artifact @kind of each named build, or debuginfo and ELF file for BID_KIND_NONE. */
static int make_list(struct getting *getting, enum bid_kind kind)
{
	static const enum bid_kind both[] = { BID_KIND_DEBUGINFO, BID_KIND_ELF };
	const enum bid_kind *kinds = kind ? &kind : both;
	size_t n_kinds = kind ? 1 : sizeof(both) / sizeof(both[0]);

	for (size_t i = 0; i < getting->needs.n; i++) {
		struct ctl_build *build = &getting->needs.builds[i];
		struct bid_id id = ctl_build_id(build);

		/* only the kernel has a vDSO */
		if (build->id.len == 0 || ctl_build_is_vdso(build))
			continue;
		for (size_t k = 0; k < n_kinds; k++)
			if (ctl_want_once(&getting->list, &id, kinds[k], build) < 0)
				return -ENOMEM;
	}
	return 0;
}

static void print_row(const struct getting *getting, const struct bid_id *id, enum bid_kind kind, const struct ctl_build *build,
		      const char *state, const char *file, uint64_t received, const char *reason)
{
	ctl_row(getting->ctl, CTL_ID("id", 40, id), CTL_KIND("kind", 9, kind), CTL_TEXT("state", 11, state),
		CTL_TEXT("file", 0, file), CTL_TEXT("path", 0, build->path), CTL_TEXT("reason", 0, reason),
		CTL_NUMBER("samples", CTL_HIDDEN, build->samples), CTL_SIZE("received", CTL_HIDDEN, received));
}

static void print_rows(const struct getting *getting)
{
	for (size_t i = 0; i < getting->list.n; i++) {
		const struct ctl_wanted *wanted = &getting->list.wanted[i];
		bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
		char path[PATH_MAX], cause[CAUSE_MAX];
		bool found = wanted->error == 0 && find_path(getting->store, &wanted->artifact, &file, path) == 0;

		print_row(getting, &wanted->artifact.id, wanted->artifact.kind, wanted->build, state_names[state_of(wanted)],
			  found ? path : NULL, wanted->bytes,
			  wanted->error == 0 ? NULL
			  : wanted->why	     ? wanted->why
					     : cause_of(getting, wanted, cause));
	}
	for (size_t i = 0; i < getting->needs.n && getting->ctl->json; i++) {
		const struct ctl_build *build = &getting->needs.builds[i];

		if (ctl_build_is_needed_without_id(&getting->needs, build))
			print_row(getting, &build->id, BID_KIND_NONE, build, "unidentified", NULL, 0, build->why);
	}
}

/* Report an obstacle that many artifacts share: one message for all. */
static void complain_once(const struct getting *getting)
{
	char cause[CAUSE_MAX];

	for (size_t i = 0; i < getting->list.n; i++) {
		const struct ctl_wanted *wanted = &getting->list.wanted[i];

		if (wanted->error == 0 || !bid_kind_fetchable(wanted->artifact.kind) ||
		    (getting->list.refresh_error == 0 && wanted->error != -EROFS))
			continue;
		bid_error_about(bid_store_path(getting->store), wanted->error, "%s", cause_of(getting, wanted, cause));
		return;
	}
}

static enum ctl_status report_results(const struct getting *getting)
{
	size_t counts[STATES] = { 0 }, unidentified = 0;
	uint64_t bytes = 0;
	struct ctl_field fields[STATES + 4] = { CTL_NUMBER("needed", 0, getting->list.n) };

	for (size_t i = 0; i < getting->list.n; i++) {
		counts[state_of(&getting->list.wanted[i])]++;
		bytes += getting->list.wanted[i].bytes;
	}
	for (size_t i = 0; i < getting->needs.n; i++)
		unidentified += ctl_build_is_needed_without_id(&getting->needs, &getting->needs.builds[i]);
	complain_once(getting);
	print_rows(getting);
	for (int state = 0; state < STATES; state++)
		fields[1 + state] = (struct ctl_field)CTL_NUMBER(state_names[state], 0, counts[state]);
	fields[1 + STATES] = (struct ctl_field)CTL_NUMBER("unidentified", 0, unidentified);
	fields[2 + STATES] = (struct ctl_field)CTL_SIZE("received", bytes ? 0 : CTL_HIDDEN, bytes);
	ctl_totals_of(getting->ctl, fields);
	if (counts[FAILED] > 0)
		return CTL_TROUBLE;
	return counts[ABSENT] > 0 || counts[REFUSED] > 0 || unidentified > 0 || getting->needs.partial ? CTL_REFUSED : CTL_DONE;
}

/* Does an option name the builds? */
static bool has_source(const struct ctl *ctl)
{
	return ctl->perf_data || ctl->core || ctl->pid;
}

/*
 * Bring into the store all builds of an option or of a list: artifacts of @kind, or debuginfo and ELF files for BID_KIND_NONE.
 * Local files are added, the others downloaded, several at a time.
 */
static enum ctl_status get_many(struct getting *getting, enum bid_kind kind)
{
	bool adding = kind != BID_KIND_DEBUGINFO && bid_store_writable(getting->store);
	enum ctl_status status = ctl_needs_read(getting->ctl, adding ? getting->store : NULL, &getting->needs), reported;
	/* the good lines of a list count even if others were bad */
	enum ctl_status lines = !has_source(getting->ctl) && status == CTL_USAGE ? CTL_USAGE : CTL_DONE;

	if (lines == CTL_USAGE)
		status = CTL_DONE;
	if (status == CTL_DONE)
		status = add_local(getting, kind);
	if (status != CTL_DONE)
		return status;
	if (make_list(getting, kind) < 0)
		return ctl_no_memory();
	status = fetch_missing(getting);
	if (status == CTL_TROUBLE || status == CTL_USAGE)
		return status;
	for (size_t i = 0; i < getting->list.n; i++) {
		take_responses(getting, &getting->list.wanted[i]);
		classify_wanted(getting, &getting->list.wanted[i]);
	}
	reported = report_results(getting);
	if (reported < lines)
		reported = lines;
	return status == CTL_DONE ? reported : status;
}

static enum bid_kind kind_of(const char *text)
{
	if (strcmp(text, "source") == 0)
		return BID_KIND_SOURCE;
	return strcmp(text, "section") == 0 ? BID_KIND_SECTION : bid_kind_parse(text);
}

/*
 * Parse @argv: KIND, "source" PATH, "section" NAME or nothing. @ret_artifact receives the kind, BID_KIND_NONE for nothing, and a
 * subpath for the caller to release.
 */
static enum ctl_status parse_kind(int argc, char **argv, struct bid_artifact *ret_artifact)
{
	static const char *const kinds[] = { "debuginfo", "elf",	"executable", "kallsyms", "probes",
					     "vdso",	  "unstripped", "source",     "section",  NULL };
	struct bid_subpath *subpath = NULL;
	bool source, named;
	int r;

	if (argc == 0)
		return CTL_DONE;
	ret_artifact->kind = kind_of(argv[0]);
	source = ret_artifact->kind == BID_KIND_SOURCE;
	named = bid_kind_has_subpath(ret_artifact->kind);
	if (argc > 1 + named)
		return ctl_usage(argv[1 + named], "too many operands for 'get'");
	if (ret_artifact->kind == BID_KIND_NONE)
		return ctl_word("kind of artifact", argv[0], kinds) < 0 ? CTL_USAGE : CTL_DONE;
	if (!named)
		return CTL_DONE;
	if (argc == 1)
		return ctl_usage(argv[0], "'%s' needs %s behind it", argv[0],
				 source ? "the path of a source file" : "a section's name");
	r = source ? bid_subpath_source(argv[1], &subpath) : bid_subpath_section(argv[1], &subpath);
	if (r == -EINVAL)
		return ctl_usage(argv[1], "not %s", source ? "the absolute path of a source file" : "a section's name");
	if (r < 0)
		return ctl_trouble(argv[1], r, "look for it");
	ret_artifact->subpath = subpath;
	return CTL_DONE;
}

/* Swap the operands if the kind comes first, as in debuginfod-find(1). */
static void swap_kind(const struct ctl *ctl, int argc, char **argv)
{
	char *first = argv[0];

	if (has_source(ctl) || argc < 2 || kind_of(first) == BID_KIND_NONE || kind_of(argv[1]) != BID_KIND_NONE)
		return;
	argv[0] = argv[1];
	argv[1] = first;
}

/* Does a mount over the store at @path serve downloads without a signature? */
static bool is_covered_without_signatures(const char *path)
{
	json_t *state = ctl_covering_mount_state(path);
	bool is = state && strcmp(bid_json_string(state, "require"), "signed") != 0;

	json_decref(state);
	return is;
}

enum ctl_status ctl_get(const struct ctl *given, int argc, char **argv)
{
	struct ctl verbose = *given;
	const struct ctl *ctl = &verbose;
	bid_cleanup(bid_artifact_release) struct bid_artifact artifact = { .kind = BID_KIND_NONE };
	ctl_auto_store struct bid_store *store = NULL;
	bid_cleanup(getting_release) struct getting getting = { .ctl = ctl };
	bool named = has_source(given), many;
	enum ctl_status status;

	if (given->perf_data && (given->core || given->pid))
		return ctl_usage("--perf-data", "'--perf-data' goes together with neither '--core' nor '--pid'");
	if (!named && argc == 0)
		return ctl_usage("get", "'get' needs ID, '-', '--perf-data', '--core' or '--pid'");
	swap_kind(given, argc, argv);
	many = named || strcmp(argv[0], "-") == 0;
	verbose.verbose |= getenv("DEBUGINFOD_VERBOSE") != NULL;
	status = parse_kind(argc - !named, argv + !named, &artifact);
	if (status != CTL_DONE)
		return status;
	if (many && artifact.subpath)
		return ctl_usage(bid_kind_name(artifact.kind), "takes one build at a time");
	status = ctl_servers_check(ctl);
	if (status != CTL_DONE)
		return status;
	status = ctl_open_to_find(ctl, CTL_WRITE_IF_POSSIBLE, &store);
	if (status != CTL_DONE)
		return status;
	if (ctl->require_signed && is_covered_without_signatures(bid_store_path(store))) {
		bid_error_about(bid_store_path(store), 0,
				"the mount over the store '%s' serves unsigned downloads: mount it with '-o require=signed'",
				bid_store_path(store));
		return CTL_REFUSED;
	}
	getting.store = store;
	if (many)
		return get_many(&getting, artifact.kind);

	status = ctl_which_build(store, argv[0], &artifact.id, NULL);
	if (status != CTL_DONE)
		return status;
	if (artifact.kind == BID_KIND_NONE)
		artifact.kind = BID_KIND_DEBUGINFO;
	return ctl_want(&getting.list, &artifact, NULL) < 0 ? ctl_no_memory() : get_one(&getting);
}
