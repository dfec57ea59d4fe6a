// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/mount_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "ctl/output.h"

static uint64_t size_of(const json_t *object, const char *key)
{
	json_int_t size = bid_json_number(object, key);

	return size > 0 ? (uint64_t)size : 0;
}

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
	if (at == UNITS)
		snprintf(buf, DURATION_MAX, "%" PRId64 " ms", ms);
	else if (at + 1 == UNITS)
		snprintf(buf, DURATION_MAX, "%" PRId64 " s", ms / 1000);
	else
		snprintf(buf, DURATION_MAX, "%" PRId64 " %s %" PRId64 " %s", ms / units[at].ms, units[at].unit,
			 ms % units[at].ms / units[at + 1].ms, units[at + 1].unit);
	return buf;
}

/* Print the mode in use, and the reason against a better one. */
static void print_choice(const json_t *state, const char *label, const char *key, const char *reason_key)
{
	const char *used = bid_json_string(state, key), *reason = bid_json_string(state, reason_key);

	if (!*used)
		return;
	ctl_print_label(label);
	ctl_print_text(stdout, used);
	if (*reason)
		printf("%s (", ctl_colour(stdout, CTL_DIM));
	ctl_print_text(stdout, reason);
	if (*reason)
		printf(")%s", ctl_colour(stdout, CTL_PLAIN));
	putchar('\n');
}

static void print_counters(const json_t *counters)
{
	static const struct {
		const char *key, *words;
	} shown[] = {
		{ "hits", "hits" },	  { "fetched", "fetched" },   { "absent", "absent" },
		{ "unknown", "unknown" }, { "rejected", "rejected" }, { "interrupted", "interrupted" },
	};
	json_int_t hits = bid_json_number(counters, "hits"), all = 0;

	ctl_print_label("  requests");
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		all += bid_json_number(counters, shown[i].key);
	printf("%" JSON_INTEGER_FORMAT, all);
	if (all > 0)
		printf(", hit ratio %.0f%%", 100.0 * (double)hits / (double)all);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (bid_json_number(counters, shown[i].key) > 0)
			printf(", %" JSON_INTEGER_FORMAT " %s", bid_json_number(counters, shown[i].key), shown[i].words);
	putchar('\n');
}

/* Print "up", "down (retry in 7 s)", or "offline". */
static void print_health(const json_t *source, bool offline, bool up)
{
	char duration[DURATION_MAX];

	printf("\n%11s%s%s", "",
	       ctl_colour(stdout, offline ? CTL_DIM
				  : up	  ? CTL_GREEN
					  : CTL_RED),
	       offline ? "offline"
	       : up    ? "up"
		       : "down");
	if (!offline && !up && json_object_get(source, "next_probe_s"))
		printf(" (retry in %s)", format_duration(1000 * bid_json_number(source, "next_probe_s"), duration));
	fputs(ctl_colour(stdout, CTL_PLAIN), stdout);
	if (!offline && up && json_is_true(json_object_get(source, "preferred")))
		fputs(", preferred", stdout);
	if (*bid_json_string(source, "ima"))
		printf(", ima:%s", bid_json_string(source, "ima"));
}

static void print_source(const json_t *source, bool offline)
{
	json_int_t found = bid_json_number(source, "found"), latency = bid_json_number(source, "latency_ms");
	/* a rejected file counts as a response */
	json_int_t answers = found + bid_json_number(source, "absent") + bid_json_number(source, "rejected");
	json_int_t unreachable = bid_json_number(source, "unreachable"), requests = bid_json_number(source, "requests");
	const char *breaker = bid_json_string(source, "breaker"), *trouble = bid_json_string(source, "trouble");
	bool up = strcmp(breaker, "open") != 0 && strcmp(breaker, "probing") != 0;
	char size[CTL_SIZE_MAX], duration[DURATION_MAX];

	ctl_print_label("  server");
	ctl_print_text(stdout, bid_json_string(source, "name"));
	print_health(source, offline, up);
	printf(": %" JSON_INTEGER_FORMAT " request%s", requests, requests == 1 ? "" : "s");
	if (answers > 0)
		printf(", %.0f%% found", 100.0 * (double)found / (double)answers);
	if (unreachable > 0)
		printf(", %" JSON_INTEGER_FORMAT " failed", unreachable);
	if (latency > 0)
		printf(", latency %s", format_duration(latency, duration));
	if (*bid_json_string(source, "protocol")) {
		fputs(", ", stdout);
		ctl_print_text(stdout, bid_json_string(source, "protocol"));
	}
	printf(", %s\n", ctl_format_size(size_of(source, "bytes"), size));
	if (up || offline || !*trouble)
		return;
	printf("%11s", "");
	ctl_print_text(stdout, trouble);
	putchar('\n');
}

static void print_download(const json_t *download)
{
	uint64_t received = size_of(download, "received"), size = size_of(download, "size");
	char text[CTL_SIZE_MAX], duration[DURATION_MAX];

	ctl_print_label("  download");
	ctl_print_text(stdout, bid_json_string(download, "id"));
	printf(" %s%s", bid_json_string(download, "kind"), *bid_json_string(download, "detail") ? " " : "");
	ctl_print_text(stdout, bid_json_string(download, "detail"));
	printf("\n%11s%s", "", ctl_format_size(received, text));
	if (size > 0)
		printf(" of %s (%.0f%%)", ctl_format_size(size, text), 100.0 * (double)received / (double)size);
	printf(" in %s, %" JSON_INTEGER_FORMAT " waiting", format_duration(bid_json_number(download, "age_ms"), duration),
	       bid_json_number(download, "waiters"));
	if (*bid_json_string(download, "source"))
		fputs(", from ", stdout);
	ctl_print_text(stdout, bid_json_string(download, "source"));
	putchar('\n');
}

static void print_failure(const json_t *failure)
{
	json_int_t count = bid_json_number(failure, "count");
	char date[CTL_TIME_MAX];

	ctl_print_label("  failure");
	printf("%s  %s: ", ctl_format_time((time_t)bid_json_number(failure, "last_time"), date),
	       bid_json_string(failure, "outcome"));
	ctl_print_text(stdout, bid_json_string(failure, "text"));
	if (count > 1)
		printf(" (%" JSON_INTEGER_FORMAT " times)", count);
	printf("\n%11s", "");
	ctl_print_text(stdout, bid_json_string(failure, "source"));
	printf(", %s %s\n", bid_json_string(failure, "kind"), bid_json_string(failure, "id"));
}

static void print_each(const json_t *array, void (*print)(const json_t *element))
{
	for (size_t i = 0; i < json_array_size(array); i++)
		print(json_array_get(array, i));
}

void ctl_print_mount_state(const json_t *state)
{
	char duration[DURATION_MAX];
	json_int_t uptime = bid_json_number(state, "uptime_s");
	const json_t *sources = json_object_get(state, "sources");
	bool offline = json_is_true(json_object_get(state, "offline"));

	ctl_print_label("  state");
	printf("%sup%s %s\n", ctl_colour(stdout, CTL_GREEN), ctl_colour(stdout, CTL_PLAIN),
	       format_duration(1000 * uptime, duration));
	print_choice(state, "  data", "mode", "mode_reason");
	print_choice(state, "  sandbox", "sandbox", "sandbox_reason");
	print_counters(json_object_get(state, "counters"));
	if (offline) {
		ctl_print_label("  offline");
		puts(json_array_size(sources) > 0 ? "on - 'bidctl offline off' ends it" : "on");
	}
	for (size_t i = 0; i < json_array_size(sources); i++)
		print_source(json_array_get(sources, i), offline);
	print_each(json_object_get(state, "downloads"), print_download);
	print_each(json_object_get(state, "failures"), print_failure);
}
