// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl status */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "ctl/covering_mount.h"
#include "ctl/ctl.h"
#include "ctl/mounts.h"
#include "ctl/output.h"

enum { NOTES_MAX = 512 };

struct summary {
	char path[PATH_MAX];
	bool readable; /* false after a reported error; then the next fields are those of an absent store */
	bool exists, writable;
	uint64_t ids, free, size; /* bytes, except ids */
};

struct mounts {
	const struct ctl *ctl;
	size_t n;
};

#define DURATION_MAX 48

/* "3 d 4 h", "2 min 5 s", "120 ms": two units at most. Returns @buf. */
static const char *format_duration(int64_t ms, char buf[static DURATION_MAX])
{
	static const struct {
		const char *unit;
		int64_t ms;
	} units[] = { { "d", 86400000 }, { "h", 3600000 }, { "min", 60000 }, { "s", 1000 } };
	enum { UNITS = sizeof(units) / sizeof(units[0]) };
	size_t at = 0;

	while (at < UNITS && ms < units[at].ms)
		at++;
	if (at == UNITS && ms == 0)
		snprintf(buf, DURATION_MAX, "0 s");
	else if (at == UNITS)
		snprintf(buf, DURATION_MAX, "%" PRId64 " ms", ms);
	else if (at + 1 == UNITS)
		snprintf(buf, DURATION_MAX, "%" PRId64 " s", ms / 1000);
	else
		snprintf(buf, DURATION_MAX, "%" PRId64 " %s %" PRId64 " %s", ms / units[at].ms, units[at].unit,
			 ms % units[at].ms / units[at + 1].ms, units[at + 1].unit);
	return buf;
}

static uint64_t count_of(const json_t *object, const char *key)
{
	json_int_t count = bid_json_number(object, key);

	return count > 0 ? (uint64_t)count : 0;
}

/* Format @part of @whole as a percentage; "" without a whole. Returns @buf. */
static const char *format_share(uint64_t part, uint64_t whole, char buf[static 8])
{
	*buf = '\0';
	if (whole > 0)
		snprintf(buf, 8, "%.0f%%", 100.0 * (double)part / (double)whole);
	return buf;
}

static void print_setting(const struct ctl *ctl, const char *setting, const char *value, const char *reason)
{
	if (*value)
		ctl_row(ctl, CTL_TEXT("setting", 8, setting), CTL_TEXT("value", 20, value), CTL_TEXT("reason", 0, reason));
}

/* Print the number of requests, the share of cache hits, and the other results. */
static void print_requests(const struct ctl *ctl, const json_t *counters)
{
	static const char *const keys[] = { "hits", "fetched", "absent", "unknown", "rejected", "interrupted" };
	char value[64], share[8], results[NOTES_MAX] = "";
	uint64_t all = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		uint64_t count = count_of(counters, keys[i]);

		all += count;
		if (count > 0)
			snprintf(results + strlen(results), sizeof(results) - strlen(results), "%s%s %" PRIu64,
				 *results ? ", " : "", keys[i], count);
	}
	snprintf(value, sizeof(value), "%" PRIu64 "%s%s", all, all ? ", hit ratio " : "",
		 format_share(count_of(counters, "hits"), all, share));
	print_setting(ctl, "requests", value, results);
}

/* Print a server with its state: "up", "down (retry in 7 s)" or "offline". */
static void print_server(const struct ctl *ctl, const json_t *server, bool offline)
{
	const char *breaker = bid_json_string(server, "breaker"), *last_failure = bid_json_string(server, "last_failure");
	const char *protocol = bid_json_string(server, "protocol"), *ima = bid_json_string(server, "ima");
	const char *signer = bid_json_string(server, "signer");
	bool up = strcmp(breaker, "open") != 0 && strcmp(breaker, "half-open") != 0;
	uint64_t found = count_of(server, "found");
	/* a rejected file counts as a response */
	uint64_t answers = found + count_of(server, "absent") + count_of(server, "rejected");
	int64_t latency = bid_json_number(server, "latency_ms"), retry_s = bid_json_number(server, "next_trial_s");
	char state[64], share[8], duration[DURATION_MAX], notes[NOTES_MAX];

	snprintf(notes, sizeof(notes), "%s%s%s%s%s%s", protocol, *protocol && *ima ? ", " : "", *ima ? "ima:" : "", ima,
		 *signer ? ", signed by " : "", signer);
	snprintf(state, sizeof(state), "%s", offline ? "offline" : up ? "up" : "down");
	if (!offline && up && json_is_true(json_object_get(server, "preferred")))
		snprintf(state, sizeof(state), "up, preferred");
	if (!offline && !up && retry_s > 0)
		snprintf(state, sizeof(state), "down (retry in %s)", format_duration(1000 * retry_s, duration));
	ctl_row(ctl, CTL_TEXT("server", 34, bid_json_string(server, "name")), CTL_TEXT("state", 20, state),
		CTL_NUMBER("requests", -8, count_of(server, "requests")),
		CTL_TEXT("found", -5, format_share(found, answers, share)),
		CTL_NUMBER("failed", -6, count_of(server, "unavailable")),
		CTL_TEXT("latency", -8, latency > 0 ? format_duration(latency, duration) : ""),
		CTL_SIZE("size", -9, count_of(server, "bytes")),
		CTL_TEXT("notes", 0, !offline && !up && *last_failure ? last_failure : notes));
}

static void print_download(const struct ctl *ctl, const json_t *download)
{
	uint64_t size = count_of(download, "size");
	char duration[DURATION_MAX];

	ctl_row(ctl, CTL_TEXT("download", 40, bid_json_string(download, "id")),
		CTL_TEXT("kind", 9, bid_json_string(download, "kind")), CTL_SIZE("received", -9, count_of(download, "received")),
		CTL_SIZE("size", -9, size ? size : CTL_NONE),
		CTL_TEXT("time", -10, format_duration(bid_json_number(download, "age_ms"), duration)),
		CTL_NUMBER("waiters", -7, count_of(download, "waiters")),
		CTL_TEXT("server", 0, bid_json_string(download, "server")), CTL_TEXT("name", 0, bid_json_string(download, "name")));
}

static void print_failure(const struct ctl *ctl, const json_t *failure)
{
	ctl_row(ctl, CTL_TIME("last_failure", 19, bid_json_number(failure, "last_time")),
		CTL_NUMBER("times", -5, count_of(failure, "count")), CTL_TEXT("state", 11, bid_json_string(failure, "outcome")),
		CTL_TEXT("id", 40, bid_json_string(failure, "id")), CTL_TEXT("kind", 9, bid_json_string(failure, "kind")),
		CTL_TEXT("server", 34, bid_json_string(failure, "server")),
		CTL_TEXT("reason", 0, bid_json_string(failure, "text")));
}

/* Print the state that a mount reports (docs/FORMAT.md). Another program wrote it, perhaps of another version. */
static void print_state(const struct ctl *ctl, const json_t *state)
{
	bool offline = json_is_true(json_object_get(state, "offline"));
	const json_t *element;
	size_t i;

	if (json_is_true(json_object_get(state, "store_removed")))
		print_setting(ctl, "store", "removed", CTL_STORE_REMOVED);
	print_setting(ctl, "data", bid_json_string(state, "mode"), bid_json_string(state, "mode_reason"));
	print_setting(ctl, "sandbox", bid_json_string(state, "sandbox"), bid_json_string(state, "sandbox_reason"));
	print_setting(ctl, "servers", offline ? "offline" : "",
		      json_array_size(json_object_get(state, "servers")) > 0 ? "'bidctl offline off' ends it" : "");
	print_requests(ctl, json_object_get(state, "counters"));
	json_array_foreach(json_object_get(state, "servers"), i, element) print_server(ctl, element, offline);
	json_array_foreach(json_object_get(state, "downloads"), i, element) print_download(ctl, element);
	json_array_foreach(json_object_get(state, "failures"), i, element) print_failure(ctl, element);
}

static int count_id(void *user, const struct bid_id *id)
{
	(*(uint64_t *)user)++;
	return 0;
}

static int summarise_store(struct bid_store *store, struct summary *summary)
{
	struct statvfs fs;
	int r;

	summary->exists = true;
	snprintf(summary->path, sizeof(summary->path), "%s", bid_store_path(store));
	/* no trial write, because this command changes nothing */
	summary->writable = access(summary->path, W_OK) == 0;
	r = bid_store_each_id(store, count_id, &summary->ids);
	if (r == 0)
		r = bid_store_statfs(store, &fs);
	if (r < 0)
		return r;
	summary->free = (uint64_t)fs.f_bavail * fs.f_frsize;
	summary->size = (uint64_t)fs.f_blocks * fs.f_frsize;
	return 0;
}

static void print_summary(const struct ctl *ctl, const struct summary *summary)
{
	const char *ok = ctl->json ? "ok" : summary->writable ? "writable" : "read-only";

	ctl_row(ctl, CTL_TEXT("store", 34, summary->path),
		CTL_TEXT("state", 10,
			 !summary->readable ? "unreadable"
			 : summary->exists  ? ok
					    : "absent"),
		CTL_BOOL("writable", summary->writable), CTL_NUMBER("builds", -8, summary->ids),
		CTL_SIZE("free", -9, summary->free), CTL_SIZE("size", -9, summary->size));
}

/* Report one mount; also another user's, or one without a daemon, because its existence is the news. */
static int report_mount(void *user, const struct ctl_mount *mount)
{
	struct mounts *mounts = user;
	char up[DURATION_MAX + 16] = "up", duration[DURATION_MAX];
	json_t *state = NULL;
	int r;

	if (!mount->whole)
		return 0;
	r = ctl_mount_state(mount, &state);
	mounts->n++;
	if (r == 0 && !mounts->ctl->json)
		snprintf(up, sizeof(up), "up %s%s", format_duration(1000 * bid_json_number(state, "uptime_s"), duration),
			 mount->read_only ? ", read-only" : "");
	ctl_row(mounts->ctl, CTL_TEXT("mount", 34, mount->point), CTL_TEXT("state", 12, r == 0 ? up : "unknown"),
		CTL_TEXT("store", 34, mount->source), CTL_BOOL("writable", !mount->read_only),
		CTL_JSON("status", r == 0 ? json_incref(state) : NULL), CTL_TEXT("reason", 0, r < 0 ? ctl_mount_trouble(r) : NULL));
	if (r == 0 && !mounts->ctl->json)
		print_state(mounts->ctl, state);
	json_decref(state);
	return 0;
}

/* Report the mounts, and return the exit status. */
static enum ctl_status report_mounts(const struct ctl *ctl)
{
	struct mounts mounts = { .ctl = ctl };
	int r;

	/* flush before the fork, so that a child does not write the buffer again */
	fflush(stdout);
	r = ctl_each_mount(report_mount, &mounts);
	if (r < 0)
		return ctl_trouble(CTL_MOUNTINFO, r, NULL);
	ctl_totals(ctl, CTL_NUMBER("mounts", CTL_HIDDEN, mounts.n));
	if (!ctl->json && mounts.n == 0)
		puts("\nno mount of bidfs");
	return CTL_DONE;
}

/* Fill the summary of the store at its path. */
static enum ctl_status look_at_store(const struct ctl *ctl, struct summary *summary)
{
	ctl_auto_store struct bid_store *store = NULL;
	enum ctl_status status;
	int r;

	if (ctl_covering_mount_is_silent(summary->path)) {
		bid_error_about(summary->path, -ETIMEDOUT, "a mount of bidfs covers the store '%s', and its daemon does not answer",
				summary->path);
		return CTL_TROUBLE;
	}
	status = ctl_open_store(ctl, CTL_READ, &store);
	r = store ? summarise_store(store, summary) : 0;
	if (r < 0)
		bid_error_about(summary->path, r, "%s: cannot read the store", strerror(-r));
	return r < 0 ? CTL_TROUBLE : status;
}

static enum ctl_status show_status(const struct ctl *ctl)
{
	struct summary summary = { .readable = true };
	enum ctl_status status = ctl_store_path(ctl, summary.path, sizeof(summary.path)), mounts;

	if (status != CTL_DONE)
		return status;
	/* report the mounts also after an error of the store: a mount without a daemon may be its cause */
	status = look_at_store(ctl, &summary);
	summary.readable = status == CTL_DONE;
	ctl->envelope->aligned = true;
	ctl->envelope->heading = NULL;
	print_summary(ctl, &summary);
	mounts = report_mounts(ctl);
	return status != CTL_DONE ? status : mounts;
}

enum ctl_status ctl_show_status(const struct ctl *ctl, int argc, char **argv)
{
	enum ctl_status status;

	if (ctl->interval > 0 && !ctl->watch)
		return ctl_usage("--interval", "'--interval' needs '--watch'");
	for (;;) {
		/* to the upper left corner, and erase */
		if (ctl->watch && ctl_is_terminal(stdout))
			fputs("\033[H\033[J", stdout);
		status = show_status(ctl);
		if (!ctl->watch || fflush(stdout) != 0)
			return status;
		sleep(ctl->interval > 0 ? ctl->interval : 2);
		if (!ctl_is_terminal(stdout) && !ctl->json)
			putchar('\n');
	}
}
