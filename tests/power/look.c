// SPDX-License-Identifier: LGPL-2.1-or-later
#include "look.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/store.h"
#include "api/verify.h"
#include "base/cleanup.h"
#include "base/io.h"

enum state { ABSENT, TORN, WHOLE };

static enum state state_of(const struct power_trial *trial, struct bid_store *store, uint32_t number)
{
	struct bid_artifact artifact = { .kind = BID_KIND_ELF };
	struct bid_file file = BID_FILE_NONE;
	size_t len, stored_len = 0;
	bid_auto_free char *data = object_make(trial, number, &artifact.id, &len), *stored = NULL;
	enum state state = TORN;

	if (bid_store_find(store, &artifact, BID_MAY_DERIVE, &file) < 0)
		return ABSENT;
	if (bid_read_file(file.fd, len + 1, &stored, &stored_len) == 0 && stored_len == len && memcmp(stored, data, len) == 0)
		state = WHOLE;
	bid_file_release(&file);
	return state;
}

static int note_finding(void *user, const struct bid_finding *finding)
{
	struct totals *totals = user;

	totals->findings++;
	if (strstr(finding->path, "/" OF_PERF))
		return 0;
	if (finding->kind != BID_FINDING_WRONG && finding->kind != BID_FINDING_CORRUPT && finding->kind != BID_FINDING_UNREADABLE)
		return 0;
	printf("torn: %s: '%s' %s\n", bid_finding_name(finding->kind), finding->path, finding->text);
	totals->torn++;
	return 0;
}

/* seconds by which the clock is ahead, when the store is opened: a day has passed for temporary files */
static time_t ahead;

time_t time(time_t *ret_now)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret_now)
		*ret_now = now.tv_sec + ahead;
	return now.tv_sec + ahead;
}

int look(const struct power_trial *trial, const struct acknowledgement *acks, size_t n, struct totals *totals)
{
	struct bid_verify_config config = { .deep = true, .found = note_finding, .user = totals };
	struct bid_verify_stats stats;
	struct bid_store *store;
	bid_auto_free char *command = NULL;
	int r;

	ahead = 25 * 3600;
	r = bid_store_open(trial->store, BID_STORE_WRITE, &store);
	ahead = 0;
	/* the cut came before there was a store */
	if (r == -ENOENT && n == 0)
		return 0;
	if (r < 0)
		return r;
	if (asprintf(&command, "test -z \"$(ls -A '%s/.bidfs/tmp')\"", trial->store) < 0 || system(command) != 0) {
		printf("a temporary file is left behind\n");
		totals->torn++;
	}
	for (size_t i = 0; i < n; i++) {
		enum state state = state_of(trial, store, acks[i].number);

		if (acks[i].unsynced && state == TORN) {
			printf("torn: number %u, written as through a mount\n", acks[i].number);
			totals->torn++;
		}
		if (acks[i].unsynced)
			continue;
		totals->acknowledged++;
		totals->together += acks[i].together;
		if (state != WHOLE) {
			printf("lost: number %u, whose addition%s was acknowledged\n", acks[i].number,
			       acks[i].together ? " together with others" : "");
			totals->lost++;
		}
	}
	r = bid_store_verify(store, &config, &stats);
	totals->present += (unsigned)stats.objects;
	/* verify repairs the leftovers of a cut, and a second run finds nothing */
	config.repair = true;
	config.found = NULL;
	if (r == 0)
		r = bid_store_verify(store, &config, &stats);
	if (r == 0 && stats.left > 0)
		totals->torn++;
	config.repair = false;
	if (r == 0)
		r = bid_store_verify(store, &config, &stats);
	if (r == 0 && stats.left > 0) {
		printf("repaired, and not clean: %llu findings\n", (unsigned long long)stats.left);
		totals->torn++;
	}
	bid_store_free(store);
	return r;
}
