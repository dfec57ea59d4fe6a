// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl get */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bid/error.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/mount.h"
#include "base/path.h"
#include "ctl/cover.h"
#include "ctl/fetch_all.h"
#include "ctl/get_many.h"
#include "ctl/output.h"
#include "ctl/sources.h"
#include "ctl/story.h"

enum { NAME_MAX_SIZE = BID_DETAIL_MAX + BID_ID_HEX_MAX + 64 };

struct get_answer {
	int error;
	int untold; /* error of the refresh of the mount over the store, or 0 */
	bool offline; /* the mount over the store has orders to use no server */
	struct bid_file file;
	struct ctl_story story;
};

static void answer_release(struct get_answer *answer)
{
	ctl_story_release(&answer->story);
	bid_file_release(&answer->file);
}

/* Name the artifact for a message: "elf of 'ID'", "section '.text' of 'ID'". Returns @buf. */
static const char *name_of(const struct bid_request *request, char buf[static NAME_MAX_SIZE])
{
	const char *kind = bid_kind_name(request->kind), *detail = bid_detail_text(request->detail);
	char hex[BID_ID_HEX_MAX];

	bid_id_format(&request->id, hex);
	if (request->detail)
		snprintf(buf, NAME_MAX_SIZE, "%s '%s' of '%s'", kind, detail, hex);
	else
		snprintf(buf, NAME_MAX_SIZE, "%s of '%s'", kind, hex);
	return buf;
}

/* Write the row of the request. @path and @cause are NULL after a failure or a success. */
static void write_row(const struct ctl *ctl, const struct bid_request *request, const struct get_answer *answer, const char *state,
		      const char *path, const char *cause)
{
	const struct bid_file *file = &answer->file;
	bool all = ctl->verbose || !path;

	ctl_row(ctl, CTL_ID("id", CTL_HIDDEN, &request->id), CTL_KIND("kind", CTL_HIDDEN, request->kind),
		CTL_TEXT("name", CTL_HIDDEN, request->detail ? bid_detail_text(request->detail) : NULL),
		CTL_TEXT("state", CTL_HIDDEN, state), CTL_KIND("served_as", CTL_HIDDEN, path ? file->kind : BID_KIND_NONE),
		CTL_TEXT("file", CTL_HIDDEN, path), CTL_SIZE("size", CTL_HIDDEN, path ? (uint64_t)file->st.st_size : 0),
		CTL_TEXT("reason", CTL_HIDDEN, cause), CTL_JSON("servers", all ? ctl_story_servers(&answer->story) : json_array()));
}

/* Look into the store. The broker does so too, but does not report the result. */
static int look(struct bid_store *store, const struct bid_request *request)
{
	struct bid_file file = BID_FILE_NONE;
	int r = bid_store_find(store, request, &file);

	bid_file_release(&file);
	return r;
}

/* Have a mount over the store retry the servers: it does not see this program's options, and has its own negative cache. */
static int refresh(const struct ctl *ctl, const struct bid_store *store, const struct bid_request *request)
{
	return ctl->refresh || ctl->accept ? ctl_cover_refresh(bid_store_path(store), request, ctl->accept) : 0;
}

/* Download the artifact unless it is stored, and open it. Returns CTL_DONE whatever the result, or as ctl_fetch_all(). */
static enum ctl_status fetch(const struct ctl *ctl, struct bid_store *store, const struct bid_request *request,
			     struct get_answer *answer)
{
	struct ctl_wanted wanted = { .request = *request, .story = &answer->story };
	enum ctl_status status = ctl_fetch_all(ctl, store, &wanted, 1);

	free(wanted.why);
	answer->error = wanted.error;
	answer->story.remembered_s = wanted.remembered_s;
	if (status == CTL_DONE && answer->error == 0)
		answer->error = bid_store_find(store, request, &answer->file);
	return status;
}

int ctl_file_path(const struct bid_file *file, char *ret_path, size_t size)
{
	struct stat st;
	int r = bid_path_of(file->fd, ret_path, size);

	if (r < 0)
		return r;
	/* a file unpacked into memory, or removed since, has a text there, but no name */
	if (stat(ret_path, &st) < 0 || st.st_ino != file->st.st_ino || st.st_dev != file->st.st_dev)
		return -ENOENT;
	return 0;
}

/* Download the dwz file that debug information refers to: debug information shrunk by dwz(1) needs it. */
static enum ctl_status get_along(const struct ctl *ctl, struct bid_store *store, const struct bid_file *file)
{
	struct get_answer answer = { .file = BID_FILE_NONE };
	struct bid_request request = { .kind = BID_KIND_DEBUGINFO };
	struct bid_elf_info info;
	char hex[BID_ID_HEX_MAX];
	enum ctl_status status;

	if (!bid_kind_is_elf(file->kind) || bid_elf_examine(file->fd, &info) < 0 || info.alt.len == 0)
		return CTL_DONE;
	request.id = info.alt;
	/* the refresh for the file itself reported a lack of permission, if the file was absent */
	refresh(ctl, store, &request);
	status = fetch(ctl, store, &request, &answer);
	if (status == CTL_DONE && answer.error < 0)
		bid_warning("%s: the dwz file that it refers to, without which most of it cannot be read: debuginfo of '%s'",
			    bid_strerror(answer.error), bid_id_format(&info.alt, hex));
	answer_release(&answer);
	return status;
}

static enum ctl_status deliver(const struct ctl *ctl, struct bid_store *store, const struct bid_request *request,
			       const struct get_answer *answer)
{
	char path[PATH_MAX], name[NAME_MAX_SIZE], hex[BID_ID_HEX_MAX];
	int r = ctl_file_path(&answer->file, path, sizeof(path));

	if (r < 0) {
		bid_error_about(bid_id_format(&request->id, hex), r,
				"it is unpacked in memory only, as the store cannot be written: %s", name_of(request, name));
		return CTL_REFUSED;
	}
	if (ctl->verbose)
		ctl_story_tell(&answer->story, store, request, 0, path);
	if (!ctl->json) {
		/* scripts need the exact bytes of the path */
		if (ctl_is_terminal(stdout))
			ctl_print_text(stdout, path);
		else
			fputs(path, stdout);
		putchar('\n');
		return CTL_DONE;
	}
	write_row(ctl, request, answer, answer->story.stored == 0 ? "here" : "fetched", path, NULL);
	return CTL_DONE;
}

static enum ctl_status status_of(int error)
{
	switch (error) {
	case -ENOENT:
	case -EBADMSG:
	case -EFBIG:
	case -EOPNOTSUPP:
	case -EACCES:
		return CTL_REFUSED;
	default:
		return CTL_TROUBLE;
	}
}

/* Describe the error of the answer. */
static const char *cause_of(const struct bid_request *request, const struct get_answer *answer)
{
	bool unstripped = request->kind == BID_KIND_UNSTRIPPED && answer->story.n == 0;

	/* EBADMSG of a server is explained in the server's line */
	if (answer->error == -EBADMSG && answer->story.n > 0 && !answer->story.of_mount)
		return "no server delivered what was asked for";
	if (answer->error == -EACCES && answer->story.n == 0)
		return "permission denied in the store or a lower store - '--lower=none' reads no lower store";
	if (unstripped && answer->error == -EBADMSG)
		return "the ELF file and the debuginfo in the store do not belong together";
	if (unstripped && answer->error == -EOPNOTSUPP)
		return "a relocatable file, as a module is, or one without section headers is not put together with its debuginfo";
	return bid_strerror(answer->error);
}

/* Report the servers' responses and the cause on standard error, with --json also as JSON on standard output. */
static enum ctl_status fail(const struct ctl *ctl, struct bid_store *store, const struct bid_request *request,
			    const struct get_answer *answer)
{
	const char *cause = cause_of(request, answer);
	char name[NAME_MAX_SIZE], hex[BID_ID_HEX_MAX];
	int error = answer->error;

	if (answer->untold < 0 && ctl_cover_refusal(answer->untold))
		cause = ctl_cover_refusal(answer->untold);
	else if (answer->offline)
		cause = CTL_COVER_OFFLINE;
	else if (answer->error == -EROFS && answer->story.n == 0)
		cause = "not in the store, and no server is asked, as the store cannot be written";
	if (answer->untold < 0 && !ctl_cover_refusal(answer->untold))
		error = answer->untold;
	name_of(request, name);
	bid_id_format(&request->id, hex);
	if (ctl->verbose)
		ctl_story_tell(&answer->story, store, request, answer->error, NULL);
	else if (!answer->story.of_mount)
		ctl_story_complain(&answer->story);
	if (answer->untold < 0 && !ctl_cover_refusal(answer->untold))
		bid_error_about(hex, error, "%s: telling the mount that covers the store to ask again: %s",
				bid_strerror(answer->untold), name);
	else if (answer->untold < 0 || answer->offline)
		bid_error_about(hex, error, "%s: %s", cause, name);
	else if (answer->story.remembered_s > 0)
		bid_error_about(hex, error, "%s, as every server has said before; asked again in %u s, or with '--refresh': %s",
				cause, answer->story.remembered_s, name);
	else if (answer->story.changed)
		bid_error_about(hex, error, "%s; '--accept' takes the other bytes: %s", cause, name);
	else if (answer->story.stored == -ENODATA)
		bid_error_about(hex, error, "%s, as the files of the build in the store show: %s", cause, name);
	else if ((request->detail || status_of(answer->error) == CTL_TROUBLE) && bid_is_mount(bid_store_path(store)))
		bid_error_about(hex, error, "%s by the mount that covers the store%s: %s", cause,
				ctl->verbose ? "" : " ('bidctl status' shows its servers, 'bidctl get -v' their responses)", name);
	else if ((answer->story.n == 0 || answer->story.of_mount) && answer->error == -ENOENT)
		bid_error_about(hex, error, "%s in the store, and %s: %s", cause, ctl_sources_why_none(ctl, store, request->kind),
				name);
	else
		bid_error_about(hex, error, "%s: %s", cause, name);

	if (ctl->json)
		write_row(ctl, request, answer,
			  error == -ENOENT		    ? "absent"
			  : error == -EINTR		    ? "interrupted"
			  : status_of(error) == CTL_REFUSED ? "refused"
							    : "failed",
			  NULL, cause);
	return status_of(error);
}

/* Read the servers' responses from a mount over the store, which downloads by itself. */
static void hear(const struct ctl *ctl, const struct bid_store *store, const struct bid_request *request, struct get_answer *answer)
{
	json_t *responses;

	if (!bid_is_mount(bid_store_path(store)) || (answer->error == 0 && !ctl->verbose) || !bid_kind_fetchable(request->kind))
		return;
	responses = ctl_cover_responses(bid_store_path(store), &request->id);
	ctl_story_take_responses(&answer->story, responses, request);
	json_decref(responses);
}

/* Report "absent" as "unknown", unless the mount over the store is sure that its servers lack the artifact. */
static void doubt(struct bid_store *store, const struct bid_request *request, int64_t since, struct get_answer *answer)
{
	json_t *state = NULL;

	if ((answer->error == -ENOENT || answer->error == -EHOSTUNREACH) && bid_kind_fetchable(request->kind))
		state = ctl_cover_state(bid_store_path(store));
	if (state && !ctl_story_all_said_no(&answer->story, json_array_size(json_object_get(state, "sources")))) {
		answer->offline = ctl_cover_is_offline(state);
		if (answer->offline || (!bid_kind_has_detail(request->kind) && !ctl_cover_is_sure(state, request, since)))
			answer->error = -EHOSTUNREACH;
	}
	json_decref(state);
}

/* Report "absent" as "unknown" if servers exist, but none was used. */
static void doubt_silence(const struct ctl *ctl, const struct bid_store *store, const struct bid_request *request,
			  struct get_answer *answer)
{
	const struct ctl_story *story = &answer->story;
	bool known = story->n > 0 || story->remembered_s > 0 || story->stored == -ENODATA;

	if (answer->error == -ENOENT && !known && bid_kind_fetchable(request->kind) && ctl_sources_are_barred(ctl, store))
		answer->error = -EROFS;
}

/*
 * Open the artifact in the mount over the store, which looks up and downloads. A lookup in its view of perf's layout would download
 * further artifacts.
 */
static enum ctl_status get_from_cover(const struct ctl *ctl, struct bid_store *store, const struct bid_request *request)
{
	struct get_answer answer = { .file = BID_FILE_NONE };
	int64_t began = time(NULL);
	enum ctl_status status;

	answer.untold = refresh(ctl, store, request);
	if ((ctl->refresh || ctl->accept) && answer.untold == 0)
		ctl_cover_wait(bid_store_path(store));
	answer.error = answer.story.stored = ctl_cover_open(bid_store_path(store), request, &answer.file);
	hear(ctl, store, request, &answer);
	doubt(store, request, began, &answer);
	status = answer.error == 0 ? deliver(ctl, store, request, &answer) : fail(ctl, store, request, &answer);
	answer_release(&answer);
	return status;
}

static enum ctl_status get(const struct ctl *ctl, struct bid_store *store, const struct bid_request *request)
{
	struct get_answer answer = { .file = BID_FILE_NONE };
	int64_t began = time(NULL);
	enum ctl_status status;

	if (bid_is_mount(bid_store_path(store)))
		return get_from_cover(ctl, store, request);
	answer.untold = refresh(ctl, store, request);
	answer.story.stored = look(store, request);
	status = fetch(ctl, store, request, &answer);
	if (status == CTL_DONE && answer.error == 0)
		status = get_along(ctl, store, &answer.file);
	if (status == CTL_DONE) {
		hear(ctl, store, request, &answer);
		doubt(store, request, began, &answer);
		doubt_silence(ctl, store, request, &answer);
	}
	/* a file that came before the signal is delivered */
	if (answer.error == 0 && status != CTL_TROUBLE && status != CTL_USAGE) {
		enum ctl_status delivered = deliver(ctl, store, request, &answer);

		status = status == CTL_DONE ? delivered : status;
	} else if (status == CTL_DONE) {
		status = fail(ctl, store, request, &answer);
	}
	answer_release(&answer);
	return status;
}

/* Determine the source of a list of builds; CTL_NEEDS_NONE for a build named by an operand. */
static enum ctl_status parse_from(const struct ctl *ctl, int argc, char **argv, enum ctl_needs_from *ret_from)
{
	int n = (ctl->perf_data != NULL) + (ctl->core != NULL) + (ctl->pid != NULL);

	if (ctl->perf_data && n > 1)
		return ctl_usage("--perf-data", "'--perf-data' goes together with neither '--core' nor '--pid'");
	if (n == 0 && argc == 0)
		return ctl_usage("get", "'get' needs ID, '-', '--perf-data', '--core' or '--pid'");
	if (n > 0)
		*ret_from = ctl->perf_data ? CTL_NEEDS_PERF_DATA : ctl->core ? CTL_NEEDS_CORE : CTL_NEEDS_PID;
	else
		*ret_from = strcmp(argv[0], "-") == 0 ? CTL_NEEDS_LIST : CTL_NEEDS_NONE;
	return CTL_DONE;
}

/*
 * Parse @argv: KIND, "source" PATH, "section" NAME or nothing. @ret_request receives the kind, BID_KIND_NONE for nothing, and a
 * detail for the caller to release.
 */
static enum ctl_status parse_kind(int argc, char **argv, struct bid_request *ret_request)
{
	static const char *const kinds[] = { "debuginfo", "elf",	"executable", "kallsyms", "probes",
					     "vdso",	  "unstripped", "source",     "section",  NULL };
	struct bid_detail *detail = NULL;
	bool source, section;
	int r;

	if (argc == 0)
		return CTL_DONE;
	source = strcmp(argv[0], "source") == 0;
	section = strcmp(argv[0], "section") == 0;
	if (argc > 1 + (source || section))
		return ctl_usage(argv[1 + (source || section)], "too many operands for 'get'");
	ret_request->kind = source ? BID_KIND_SOURCE : section ? BID_KIND_SECTION : bid_kind_parse(argv[0]);
	if (ret_request->kind == BID_KIND_NONE)
		return ctl_word("kind of artifact", argv[0], kinds) < 0 ? CTL_USAGE : CTL_DONE;
	if (!source && !section)
		return CTL_DONE;
	if (argc == 1)
		return ctl_usage(argv[0], "'%s' needs %s behind it", argv[0],
				 source ? "the path of a source file" : "a section's name");
	r = source ? bid_detail_source(argv[1], &detail) : bid_detail_section(argv[1], &detail);
	if (r == -EINVAL)
		return ctl_usage(argv[1], "not %s", source ? "the absolute path of a source file" : "a section's name");
	if (r < 0)
		return ctl_trouble(argv[1], r, "looking for it");
	ret_request->detail = detail;
	return CTL_DONE;
}

static bool is_kind(const char *text)
{
	return bid_kind_parse(text) != BID_KIND_NONE || strcmp(text, "source") == 0 || strcmp(text, "section") == 0;
}

/* Swap the operands if the kind comes first, as in debuginfod-find(1). */
static void swap_kind(const struct ctl *ctl, int argc, char **argv)
{
	char *first = argv[0];

	if (ctl->perf_data || ctl->core || ctl->pid || argc < 2 || !is_kind(first) || is_kind(argv[1]))
		return;
	argv[0] = argv[1];
	argv[1] = first;
}

enum ctl_status ctl_get(const struct ctl *given, int argc, char **argv)
{
	struct ctl verbose = *given;
	const struct ctl *ctl = &verbose;
	bid_cleanup(bid_request_release) struct bid_request request = { .kind = BID_KIND_NONE };
	ctl_auto_store struct bid_store *store = NULL;
	enum ctl_needs_from from = CTL_NEEDS_NONE;
	enum ctl_status status;
	bool itself;

	swap_kind(given, argc, argv);
	status = parse_from(given, argc, argv, &from);
	if (status != CTL_DONE)
		return status;
	verbose.verbose |= getenv("DEBUGINFOD_VERBOSE") != NULL;
	itself = from == CTL_NEEDS_NONE || from == CTL_NEEDS_LIST;
	status = parse_kind(argc - itself, argv + itself, &request);
	if (status != CTL_DONE)
		return status;
	if (from != CTL_NEEDS_NONE && request.detail)
		return ctl_usage(bid_kind_name(request.kind), "of one build at a time");
	status = ctl_sources_check(ctl);
	if (status != CTL_DONE)
		return status;
	status = ctl_open_to_find(ctl, CTL_WRITE_IF_POSSIBLE, &store);
	if (status != CTL_DONE)
		return status;
	if (ctl->require_signed && bid_is_mount(bid_store_path(store))) {
		bid_error_about(bid_store_path(store), 0,
				"a mount of bidfs covers the store '%s', and decides: mount it with "
				"'-o require=signed'",
				bid_store_path(store));
		return CTL_REFUSED;
	}
	if (from != CTL_NEEDS_NONE)
		return ctl_get_many(ctl, store, from, request.kind);

	if (request.kind == BID_KIND_NONE)
		request.kind = BID_KIND_DEBUGINFO;
	status = ctl_which_build(store, argv[0], &request.id);
	return status == CTL_DONE ? get(ctl, store, &request) : status;
}
