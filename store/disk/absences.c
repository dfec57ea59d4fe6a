// SPDX-License-Identifier: LGPL-2.1-or-later
#include "api/absence.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "disk/fact.h"
#include "disk/layout.h"
#include "disk/record.h"

/* TTL of the first, second, … negative entry of a source for an artifact, in seconds */
static const int64_t ttls[] = { 90, 10 * 60, 30 * 60, 2 * 60 * 60, 24 * 60 * 60 };

#define N_TTLS (sizeof(ttls) / sizeof(*ttls))

struct bid_absences {
	struct bid_store *store; /* borrowed; or NULL */
	bid_clock_fn clock;
	void *user;
};

/* the last negative response; step 0 for none */
struct negative_entry {
	int64_t until; /* seconds since the epoch */
	unsigned step; /* how often; from 1 on */
};

static int64_t real_time(void *user)
{
	return time(NULL);
}

int bid_absences_new(struct bid_store *store, bid_clock_fn clock, void *user, struct bid_absences **ret_absences)
{
	struct bid_absences *absences = calloc(1, sizeof(*absences));

	if (!absences)
		return -ENOMEM;
	absences->store = store;
	absences->clock = clock ? clock : real_time;
	absences->user = user;
	*ret_absences = absences;
	return 0;
}

void bid_absences_free(struct bid_absences *absences)
{
	free(absences);
}

static const char *name_of(const char *source, char buf[static BID_FACT_MORE_MAX])
{
	snprintf(buf, BID_FACT_MORE_MAX, "%016llx", (unsigned long long)XXH3_64bits(source, strlen(source)));
	return buf;
}

static struct negative_entry parse_entry(const char *text)
{
	struct negative_entry entry = { 0 };
	char end;

	if (sscanf(text, "%" SCNd64 " %u%c", &entry.until, &entry.step, &end) != 2 || entry.step > N_TTLS)
		entry.step = 0;
	return entry;
}

static struct negative_entry read_entry(struct bid_absences *absences, const struct bid_request *request, const char *source)
{
	char text[BID_FACT_MAX], more[BID_FACT_MORE_MAX];

	if (!absences->store || bid_fact_read(absences->store, BID_LAYOUT_ABSENT, request, name_of(source, more), text) < 0)
		return (struct negative_entry){ 0 };
	return parse_entry(text);
}

/* Return the seconds left of @entry. A clock set back must not extend the negative TTL. */
static unsigned seconds_left(const struct negative_entry *entry, int64_t now)
{
	int64_t most = entry->step > 0 ? ttls[entry->step - 1] : 0;

	return entry->until > now && entry->until <= now + most ? (unsigned)(entry->until - now) : 0;
}

int bid_absences_add(struct bid_absences *absences, const struct bid_request *request, const char *source)
{
	int64_t now = absences->clock(absences->user);
	char text[BID_FACT_MAX], more[BID_FACT_MORE_MAX];
	struct negative_entry entry;

	if (!absences->store)
		return -EROFS;
	entry = read_entry(absences, request, source);
	if (entry.step == 0 || (seconds_left(&entry, now) == 0 && entry.step < N_TTLS))
		entry.step++;
	snprintf(text, sizeof(text), "%" PRId64 " %u", now + ttls[entry.step - 1], entry.step);
	return bid_fact_write(absences->store, BID_LAYOUT_ABSENT, request, name_of(source, more), text);
}

unsigned bid_absences_ttl(struct bid_absences *absences, const struct bid_request *request, const char *source)
{
	struct negative_entry entry = read_entry(absences, request, source);

	return seconds_left(&entry, absences->clock(absences->user));
}

void bid_absences_forget(struct bid_absences *absences, const struct bid_request *request, const char *source)
{
	char more[BID_FACT_MORE_MAX];

	if (absences->store)
		bid_fact_drop(absences->store, BID_LAYOUT_ABSENT, request, name_of(source, more));
}

struct counting {
	int64_t now;
	size_t n;
};

static void count_entry(void *user, const char *first, const char *name, const char *text)
{
	struct counting *counting = user;
	struct negative_entry entry = parse_entry(text);

	counting->n += seconds_left(&entry, counting->now) > 0;
}

size_t bid_absences_count(struct bid_absences *absences)
{
	struct counting counting = { .now = absences->clock(absences->user) };

	if (absences->store)
		bid_fact_each(absences->store, BID_LAYOUT_ABSENT, count_entry, &counting);
	return counting.n;
}

struct each_absence {
	bid_absence_fn fn;
	void *user;
};

/* bid_fact_fn: behind the name of a record follows the source. */
static void take_entry(void *user, const char *first, const char *name, const char *text)
{
	const struct each_absence *each = user;
	const char *source = strrchr(name, '.');
	struct negative_entry entry = parse_entry(text);
	struct bid_request request;
	char record[NAME_MAX + 1];

	if (!source || entry.step == 0)
		return;
	snprintf(record, sizeof(record), "%.*s", (int)(source - name), name);
	if (bid_record_parse_name(first, record, &request))
		each->fn(each->user, &request, entry.until - ttls[entry.step - 1]);
}

int bid_absences_each(struct bid_store *store, bid_absence_fn fn, void *user)
{
	return bid_fact_each(store, BID_LAYOUT_ABSENT, take_entry, &(struct each_absence){ .fn = fn, .user = user });
}
