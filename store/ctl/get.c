// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl get */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>

#include <bid/error.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/mount.h"
#include "base/path.h"
#include "ctl/cover.h"
#include "ctl/get_many.h"
#include "ctl/output.h"
#include "ctl/signals.h"
#include "ctl/sources.h"
#include "ctl/story.h"

enum { REDRAW_MS = 100, NAME_MAX_SIZE = BID_DETAIL_MAX + BID_ID_HEX_MAX + 64 };

/* Result. The broker's thread writes it before it signals the event. */
struct get_answer {
	int event; /* eventfd; owned */
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
	bid_close(answer->event);
}

/* bid_broker_fn */
static void take_answer(void *user, const struct bid_result *result)
{
	struct get_answer *answer = user;
	uint64_t count = 1;

	answer->error = result->error;
	if (result->error == 0) {
		answer->file = *result->file;
		result->file->fd = -1;
	}
	ctl_story_take(&answer->story, result);
	if (write(answer->event, &count, sizeof(count)) < 0)
		bid_debug("%s: an answer is not announced", strerror(errno));
}

/* Wait for the result. Returns the signal that cancelled the request, or 0. */
static int wait_for(struct bid_broker *broker, uint64_t handle, const struct get_answer *answer, int signals)
{
	struct pollfd fds[] = { { .fd = answer->event, .events = POLLIN }, { .fd = signals, .events = POLLIN } };
	struct ctl_progress line = { 0 };
	struct bid_progress progress;
	struct signalfd_siginfo caught;
	uint64_t count;
	int given_up = 0;

	while (!(fds[0].revents & POLLIN)) {
		if (poll(fds, 2, ctl_progress_wanted() ? REDRAW_MS : -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents & POLLIN && read(signals, &caught, sizeof(caught)) == sizeof(caught)) {
			given_up = (int)caught.ssi_signo;
			bid_broker_cancel(broker, handle);
		} else if (!(fds[0].revents & POLLIN) && bid_broker_progress(broker, handle, &progress) == 0) {
			ctl_progress_draw(&line, &progress);
		}
	}
	/* the read orders this thread after the writes of the broker's thread */
	if (read(answer->event, &count, sizeof(count)) < 0)
		bid_debug("%s: an answer is not read", strerror(errno));
	ctl_progress_clear(&line);
	return given_up;
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

/*
 * Submit the request to the broker, and wait for the result or a signal. Returns 0 or a signal's number; fills @answer in either
 * case.
 */
static int ask(struct ctl_sources *sources, const struct bid_request *request, const sigset_t *interrupts,
	       struct get_answer *answer)
{
	bid_auto_fd int signals = -1;
	uint64_t handle;

	answer->error = bid_broker_find(sources->broker, request, &answer->file, &answer->story.remembered_s);
	if (answer->error != -EINPROGRESS)
		return 0;

	signals = signalfd(-1, interrupts, SFD_CLOEXEC);
	if (signals >= 0)
		answer->event = eventfd(0, EFD_CLOEXEC);
	if (answer->event < 0) {
		answer->error = -errno;
		return 0;
	}
	answer->error = bid_broker_handle(sources->broker, take_answer, answer, &handle);
	if (answer->error < 0)
		return 0;
	/* bidctl reports the servers' responses at the end, one line for each, so the broker's warnings would repeat them */
	bid_log_init("bidctl", BID_LOG_ERROR);
	bid_broker_fetch(sources->broker, handle, request);
	return wait_for(sources->broker, handle, answer, signals);
}

/* Return the path that opens @file again. */
static int path_of(const struct bid_file *file, char *ret_path, size_t size)
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

/* Download the dwz file that @file refers to: debug information shrunk by dwz(1) needs it. Returns 0 or a signal's number. */
static int get_along(const struct ctl *ctl, struct bid_store *store, struct ctl_sources *sources, const struct bid_file *file,
		     const sigset_t *interrupts)
{
	struct get_answer answer = { .event = -1, .file = BID_FILE_NONE };
	struct bid_request request = { .kind = BID_KIND_DEBUGINFO };
	struct bid_elf_info info;
	char hex[BID_ID_HEX_MAX];
	int caught;

	if (!bid_kind_is_elf(file->kind) || bid_elf_examine(file->fd, &info) < 0 || info.alt.len == 0)
		return 0;
	request.id = info.alt;
	/* the refresh for the file itself reported a lack of permission, if the file was absent */
	refresh(ctl, store, &request);
	caught = ask(sources, &request, interrupts, &answer);
	bid_log_init("bidctl", BID_LOG_WARNING);
	if (answer.error < 0 && answer.error != -EINTR)
		bid_warning("%s: the dwz file that it refers to, without which most of it cannot be read: debuginfo of '%s'",
			    bid_strerror(answer.error), bid_id_format(&info.alt, hex));
	answer_release(&answer);
	return caught;
}

static enum ctl_status deliver(const struct ctl *ctl, struct bid_store *store, const struct bid_request *request,
			       const struct get_answer *answer)
{
	char path[PATH_MAX], name[NAME_MAX_SIZE], hex[BID_ID_HEX_MAX];
	int r = path_of(&answer->file, path, sizeof(path));

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
	struct get_answer answer = { .event = -1, .file = BID_FILE_NONE };
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
	struct get_answer answer = { .event = -1, .file = BID_FILE_NONE };
	struct ctl_sources sources = CTL_SOURCES_NONE;
	int64_t began = time(NULL);
	enum ctl_status status;
	sigset_t interrupts;
	int caught = 0;

	if (bid_is_mount(bid_store_path(store)))
		return get_from_cover(ctl, store, request);
	/* before the threads start, so that they inherit the mask */
	ctl_end_signals(&interrupts);
	sigprocmask(SIG_BLOCK, &interrupts, NULL);

	answer.untold = refresh(ctl, store, request);
	answer.story.stored = look(store, request);
	status = ctl_sources_init(&sources, ctl, store);
	if (status == CTL_DONE)
		caught = ask(&sources, request, &interrupts, &answer);
	if (status == CTL_DONE && answer.error == 0)
		caught = get_along(ctl, store, &sources, &answer.file, &interrupts);
	if (status == CTL_DONE)
		hear(ctl, store, request, &answer);
	if (status == CTL_DONE)
		doubt(store, request, began, &answer);
	if (status == CTL_DONE)
		doubt_silence(ctl, store, request, &answer);
	/* joins the threads, which write to @answer */
	ctl_sources_release(&sources);

	if (status == CTL_DONE && answer.error == 0)
		status = deliver(ctl, store, request, &answer);
	else if (status == CTL_DONE && (caught == 0 || answer.error != -EINTR))
		status = fail(ctl, store, request, &answer);
	if (status == CTL_DONE && caught > 0)
		status = (enum ctl_status)(CTL_SIGNAL + caught);
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
