// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/eviction_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/event_log.h"
#include "api/negative.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/quarantine.h"
#include "disk/record.h"
#include "disk/store.h"

enum {
	LOG_MAX = 256 << 10, /* bytes */
	FIELDS = 6, /* of a line */
};

static int open_log(struct bid_store *store, int flags, int *ret_fd)
{
	bid_auto_fd int dir = -1;
	const char *name;
	int r = bid_beneath_parent(store->root, BID_LAYOUT_EVICTED, O_PATH, &dir, &name);

	if (r < 0)
		return r;
	*ret_fd = openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	return *ret_fd < 0 ? -errno : 0;
}

/* Drop the older half of the log, at @fd, if it is full. */
static void trim_log(int fd)
{
	bid_auto_free char *text = NULL;
	struct stat st;
	char *half;
	size_t len;

	if (fstat(fd, &st) < 0 || st.st_size <= LOG_MAX)
		return;
	half = bid_read_file(fd, 2 * LOG_MAX, &text, &len) == 0 ? strchr(text + len / 2, '\n') : NULL;
	if (ftruncate(fd, 0) == 0 && half)
		dprintf(fd, "%s", half + 1);
}

void bid_eviction_log_add(struct bid_store *store, const struct bid_artifact *artifact, uint64_t size, const char *why)
{
	bid_auto_fd int fd = -1;
	char hex[BID_ID_HEX_MAX];

	if (open_log(store, O_RDWR | O_APPEND | O_CREAT, &fd) < 0)
		return;
	trim_log(fd);
	dprintf(fd, "%" PRId64 "\t%s\t%s\t%" PRIu64 "\t%s\t%s\n", (int64_t)time(NULL), bid_id_format(&artifact->id, hex),
		bid_kind_name(artifact->kind), size, why, bid_subpath_text(artifact->subpath));
}

struct reporting {
	struct bid_store *store;
	bid_event_fn fn;
	void *user;
};

/* bid_record_fn */
static int report_record(void *user, const struct bid_artifact *artifact, const json_t *record, const struct stat *st)
{
	const struct reporting *reporting = user;

	if (strcmp(bid_json_string(record, "how"), BID_FETCHED) == 0)
		reporting->fn(reporting->user, &(struct bid_event){ .what = "fetched",
								    .time = bid_json_number(record, "time"),
								    .artifact = *artifact,
								    .size = (uint64_t)bid_json_number(record, "size"),
								    .text = bid_json_string(record, "server") });
	return 0;
}

/* bid_negative_fn */
static void report_negative(void *user, const struct bid_artifact *artifact, int64_t time)
{
	const struct reporting *reporting = user;

	reporting->fn(reporting->user, &(struct bid_event){ .what = "absent", .time = time, .artifact = *artifact, .text = "" });
}

/* bid_quarantine_fn: the name begins with the id and the kind, or with a content key. */
static void report_quarantined(void *user, const char *name, int64_t time, uint64_t size)
{
	const struct reporting *reporting = user;
	struct bid_event event = { .what = "quarantined", .time = time, .size = size, .text = name };
	size_t len = strcspn(name, ".");
	char kind[16] = "";

	sscanf(name + len, ".%15[a-z]", kind);
	for (int i = BID_KIND_NONE + 1; i < BID_KIND_END; i++)
		if (strcmp(kind, bid_kind_store_name((enum bid_kind)i)) == 0)
			event.artifact.kind = (enum bid_kind)i;
	if (bid_id_parse(name, len, &event.artifact.id) < 0)
		event.artifact.id = (struct bid_id){ 0 };
	reporting->fn(reporting->user, &event);
}

/* Report the event of @line of the log, unless it is damaged. */
static void report_eviction(const struct reporting *reporting, char *line)
{
	char *fields[FIELDS] = { NULL };
	struct bid_subpath *subpath = NULL;
	struct bid_event event = { .what = "evicted" };

	for (size_t i = 0; i < FIELDS; i++)
		fields[i] = strsep(&line, "\t");
	if (!fields[FIELDS - 1] || bid_id_parse_str(fields[1], &event.artifact.id) < 0)
		return;
	event.artifact.kind = bid_kind_parse(fields[2]);
	for (int i = BID_KIND_COUNT; i < BID_KIND_END; i++)
		if (strcmp(fields[2], bid_kind_name((enum bid_kind)i)) == 0 &&
		    (i == BID_KIND_SOURCE ? bid_subpath_source : bid_subpath_section)(fields[5], &subpath) == 0)
			event.artifact.kind = (enum bid_kind)i;
	event.time = strtoll(fields[0], NULL, 10);
	event.artifact.subpath = subpath;
	event.size = strtoull(fields[3], NULL, 10);
	event.text = fields[4];
	if (event.artifact.kind != BID_KIND_NONE)
		reporting->fn(reporting->user, &event);
	bid_subpath_unref(subpath);
}

static int report_evictions(const struct reporting *reporting)
{
	bid_auto_free char *text = NULL;
	bid_auto_fd int fd = -1;
	size_t len;
	int r = open_log(reporting->store, O_RDONLY, &fd);

	if (r == 0)
		r = bid_read_file(fd, 2 * LOG_MAX, &text, &len);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
		report_eviction(reporting, line);
	return 0;
}

int bid_store_each_event(struct bid_store *store, bid_event_fn fn, void *user)
{
	struct reporting reporting = { .store = store, .fn = fn, .user = user };
	int r = bid_record_each(store, report_record, &reporting);

	if (r == 0)
		r = bid_negative_each(store, report_negative, &reporting);
	if (r == 0)
		r = bid_quarantine_each(store, report_quarantined, &reporting);
	return r == 0 ? report_evictions(&reporting) : r;
}
