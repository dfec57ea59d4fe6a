// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl log */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/event_log.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/mounts.h"
#include "ctl/output.h"

struct log_row {
	int64_t time;
	const char *what, *kind; /* static, or owned by the state of a mount; the kind may be NULL */
	char id[BID_ID_HEX_MAX]; /* "" without one */
	char *name, *text; /* owned; "" without any */
	uint64_t size;
};

struct history {
	const char *store; /* path */
	json_t *states; /* logs of the mounts; owned */
	struct log_row *rows; /* owned */
	size_t n, room;
	int error;
};

static void history_release(struct history *history)
{
	for (size_t i = 0; i < history->n; i++) {
		free(history->rows[i].name);
		free(history->rows[i].text);
	}
	free(history->rows);
	json_decref(history->states);
}

static void add_row(struct history *history, const struct log_row *row, const char *name, const char *text)
{
	struct log_row *added;

	if (bid_array_grow(history->rows, history->n, history->room) < 0) {
		history->error = -ENOMEM;
		return;
	}
	added = &history->rows[history->n++];
	*added = *row;
	added->name = strdup(name);
	added->text = strdup(text);
	if (!added->name || !added->text)
		history->error = -ENOMEM;
}

/* bid_event_fn */
static void take_event(void *user, const struct bid_event *event)
{
	struct log_row row = { .time = event->time,
			       .what = event->what,
			       .kind = event->artifact.kind ? bid_kind_name(event->artifact.kind) : NULL,
			       .size = event->size };

	if (event->artifact.id.len > 0)
		bid_id_format(&event->artifact.id, row.id);
	add_row(user, &row, bid_subpath_text(event->artifact.subpath), event->text);
}

/* Take the last failures of the servers of a mount of the store. */
static int take_mount(void *user, const struct ctl_mount *mount)
{
	struct history *history = user;
	json_t *state, *failure;
	size_t i;

	if (strcmp(mount->source, history->store) != 0 || ctl_mount_state(mount, &state) < 0)
		return 0;
	json_array_append_new(history->states, state);
	json_array_foreach(json_object_get(state, "failures"), i, failure)
	{
		struct log_row row = { .time = bid_json_number(failure, "last_time"),
				       .what = bid_json_string(failure, "outcome"),
				       .kind = bid_json_string(failure, "kind") };
		bid_auto_free char *text = NULL;

		snprintf(row.id, sizeof(row.id), "%s", bid_json_string(failure, "id"));
		if (asprintf(&text, "%s: %s", bid_json_string(failure, "server"), bid_json_string(failure, "text")) < 0)
			return -ENOMEM;
		add_row(history, &row, "", text);
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct log_row *one = a, *other = b;

	return (one->time > other->time) - (one->time < other->time);
}

static void print_row(const struct ctl *ctl, const struct log_row *row)
{
	ctl_row(ctl, CTL_TIME("time", 19, row->time), CTL_TEXT("state", 11, row->what), CTL_TEXT("id", 40, row->id),
		CTL_TEXT("kind", 9, row->kind), CTL_SIZE("size", -8, row->size ? row->size : CTL_NONE),
		CTL_TEXT("reason", 0, row->text), CTL_TEXT("name", 0, row->name));
}

enum ctl_status ctl_log(const struct ctl *ctl, int argc, char **argv)
{
	bid_cleanup(history_release) struct history history = { .states = json_array() };
	ctl_auto_store struct bid_store *store = NULL;
	enum ctl_status status = ctl_open_store(ctl, CTL_READ_ITSELF, &store);
	size_t first = 0;
	int r = 0;

	if (status != CTL_DONE)
		return status;
	if (store) {
		history.store = bid_store_path(store);
		r = bid_store_each_event(store, take_event, &history);
		if (r == 0)
			r = ctl_each_mount(take_mount, &history);
	}
	if (r == 0)
		r = history.error;
	if (r < 0)
		return ctl_trouble(history.store, r, "read the store");
	if (history.n > 0)
		qsort(history.rows, history.n, sizeof(*history.rows), by_time);
	if (ctl->lines > 0 && history.n > ctl->lines)
		first = history.n - ctl->lines;
	for (size_t i = first; i < history.n; i++)
		print_row(ctl, &history.rows[i]);
	ctl_totals(ctl, CTL_NUMBER("events", CTL_HIDDEN, history.n - first));
	return CTL_DONE;
}
