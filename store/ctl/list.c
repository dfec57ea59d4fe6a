// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl list */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

enum { KINDS_TEXT = 64 };

/* The ids of one first byte: so many are sorted at a time, and no more are in memory. */
struct bucket {
	struct bid_id *ids; /* owned */
	size_t n, room;
};

struct row {
	char hex[BID_ID_HEX_MAX];
	unsigned kinds;
	char kinds_text[KINDS_TEXT]; /* "elf,debuginfo" */
	uint64_t size; /* of all artifacts */
	char path[PATH_MAX + 1]; /* "/usr/bin/ls", "[vdso]", or "" */
};

struct listing {
	struct bid_store *store;
	bool json, terminal;
	struct ctl_array array;
};

/* What a row is sorted by, if not by its id: only that and the id are kept of all rows, which are filled again to be printed. */
struct key {
	struct bid_id id;
	uint64_t number; /* size or time */
	char *path; /* owned */
};

struct keys {
	struct bid_store *store;
	enum ctl_order order;
	struct key *keys; /* owned */
	size_t n, room;
};

static int collect(void *user, const struct bid_id *id)
{
	struct bucket *bucket = user;

	if (bid_array_grow(bucket->ids, bucket->n, bucket->room) < 0)
		return -ENOMEM;
	bucket->ids[bucket->n++] = *id;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct bid_id *one = a, *other = b;
	int r = memcmp(one->bytes, other->bytes, BID_ID_MAX);

	return r ? r : one->len - other->len;
}

/* Of what lies where perf would not put it, as in lower stores. */
static uint64_t size_of_other(struct bid_store *store, const char *hex, enum bid_kind kind)
{
	struct bid_request request = { .kind = kind };
	struct bid_file file = BID_FILE_NONE;
	uint64_t size = 0;

	if (bid_id_parse_str(hex, &request.id) == 0 && bid_store_find(store, &request, &file) == 0)
		size = (uint64_t)file.st.st_size;
	bid_file_release(&file);
	return size;
}

static uint64_t size_of(struct bid_store *store, const char *where, const char *hex, enum bid_kind kind)
{
	char path[PATH_MAX + 32];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", where, bid_kind_store_name(kind));
	if (bid_store_stat(store, path, &st) == 0)
		return (uint64_t)st.st_size;
	snprintf(path, sizeof(path), "%s/%s/%s", BID_STORE_NAMELESS, hex, bid_kind_store_name(kind));
	if (bid_store_stat(store, path, &st) == 0)
		return (uint64_t)st.st_size;
	/* perf's old layout: the directory is the file */
	if (bid_store_stat(store, where, &st) == 0 && S_ISREG(st.st_mode))
		return (uint64_t)st.st_size;
	return size_of_other(store, hex, kind);
}

static int fill_row(struct bid_store *store, const struct bid_id *id, struct row *row)
{
	char where[PATH_MAX];
	char *slash;
	int kinds = bid_store_kinds(store, id);

	if (kinds < 0)
		return kinds;
	bid_id_format(id, row->hex);
	row->kinds = (unsigned)kinds;
	row->kinds_text[0] = '\0';
	row->size = 0;
	row->path[0] = '\0';

	if (bid_store_where(store, id, where, sizeof(where)) < 0)
		snprintf(where, sizeof(where), "%s/%s", BID_STORE_NAMELESS, row->hex);
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		size_t at = strlen(row->kinds_text);

		if (!(row->kinds & 1U << kind))
			continue;
		snprintf(row->kinds_text + at, sizeof(row->kinds_text) - at, "%s%s", at ? "," : "",
			 bid_kind_name((enum bid_kind)kind));
		row->size += size_of(store, where, row->hex, (enum bid_kind)kind);
	}
	slash = strrchr(where, '/');
	if (slash) {
		*slash = '\0';
		/* "usr/bin/ls" was an absolute path, "[vdso]" is a name */
		snprintf(row->path, sizeof(row->path), "%s%s", where[0] == '[' ? "" : "/", where);
	}
	return 0;
}

static json_t *row_to_json(const struct row *row)
{
	json_t *kinds = json_array();

	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		if (row->kinds & 1U << kind)
			json_array_append_new(kinds, json_string(bid_kind_name((enum bid_kind)kind)));
	return json_pack("{s:s, s:o, s:I, s:o}", "id", row->hex, "kinds", kinds, "size", (json_int_t)row->size, "path",
			 ctl_json_text(row->path[0] ? row->path : NULL));
}

static int print_row(struct listing *listing, const struct row *row)
{
	char size[CTL_SIZE_MAX];

	if (listing->json)
		return ctl_array_add(&listing->array, row_to_json(row));
	if (listing->terminal)
		printf("%-40s  %-14s  %9s  ", row->hex, row->kinds ? row->kinds_text : "-", ctl_format_size(row->size, size));
	else
		printf("%s\t%s\t%" PRIu64 "\t", row->hex, row->kinds ? row->kinds_text : "-", row->size);
	ctl_print_text(stdout, row->path[0] ? row->path : "-");
	putchar('\n');
	return 0;
}

static int list_bucket(struct listing *listing, struct bucket *bucket)
{
	struct row row;
	int r;

	qsort(bucket->ids, bucket->n, sizeof(*bucket->ids), compare);
	for (size_t i = 0; i < bucket->n; i++) {
		r = fill_row(listing->store, &bucket->ids[i], &row);
		if (r == 0)
			r = print_row(listing, &row);
		if (r < 0)
			return r;
	}
	return 0;
}

static int list_all(struct listing *listing)
{
	bid_auto_free struct bid_id *owned = NULL;
	struct bucket bucket = { 0 };

	for (unsigned first = 0; first < 256 && !ferror(stdout); first++) {
		int r;

		bucket.n = 0;
		r = bid_store_each_id_in(listing->store, (uint8_t)first, collect, &bucket);
		owned = bucket.ids;
		if (r == 0 && bucket.n > 0)
			r = list_bucket(listing, &bucket);
		if (r < 0)
			return r;
	}
	return 0;
}

/* When something was put there last: the directory was changed then. */
static uint64_t time_of(struct bid_store *store, const struct bid_id *id)
{
	char where[PATH_MAX];
	struct stat st;

	if (bid_store_where(store, id, where, sizeof(where)) < 0 || bid_store_stat(store, where, &st) < 0)
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
}

static int collect_key(void *user, const struct bid_id *id)
{
	struct keys *keys = user;
	struct key key = { .id = *id };
	struct row row;
	int r;

	if (bid_array_grow(keys->keys, keys->n, keys->room) < 0)
		return -ENOMEM;
	if (keys->order == CTL_BY_TIME) {
		key.number = time_of(keys->store, id);
	} else {
		r = fill_row(keys->store, id, &row);
		if (r < 0)
			return r;
		key.number = row.size;
	}
	if (keys->order == CTL_BY_PATH) {
		key.number = 0;
		key.path = strdup(row.path);
		if (!key.path)
			return -ENOMEM;
	}
	keys->keys[keys->n++] = key;
	return 0;
}

/* Paths from "/" on, what has none last; sizes and times from the largest on; what is equal by its id. */
static int compare_keys(const void *a, const void *b)
{
	const struct key *one = a, *other = b;
	int r = 0;

	if (one->path && other->path)
		r = !*one->path != !*other->path ? !*one->path - !*other->path : strcmp(one->path, other->path);
	else if (one->number != other->number)
		r = one->number > other->number ? -1 : 1;
	return r ? r : compare(&one->id, &other->id);
}

static int list_sorted(struct listing *listing, enum ctl_order order)
{
	struct keys keys = { .store = listing->store, .order = order };
	int r = bid_store_each_id(listing->store, collect_key, &keys);

	if (keys.n > 0)
		qsort(keys.keys, keys.n, sizeof(*keys.keys), compare_keys);
	for (size_t i = 0; i < keys.n; i++) {
		struct row row;

		if (r == 0)
			r = fill_row(listing->store, &keys.keys[i].id, &row);
		if (r == 0)
			r = print_row(listing, &row);
		free(keys.keys[i].path);
	}
	free(keys.keys);
	return r;
}

enum ctl_status ctl_list(const struct ctl *ctl, int argc, char **argv)
{
	ctl_auto_store struct bid_store *store = NULL;
	struct listing listing = { .json = ctl->json, .terminal = ctl_is_terminal(stdout) };
	enum ctl_status status;
	int r;

	status = ctl_open_store(ctl, CTL_READ, &store);
	if (status != CTL_DONE)
		return status;
	if (ctl->cookies)
		return ctl_list_cookies(ctl, store);
	listing.store = store;

	if (!ctl->json && listing.terminal)
		printf("%s%-40s  %-14s  %9s  %s%s\n", ctl_colour(stdout, CTL_BOLD), "BUILD-ID", "KINDS", "SIZE", "PATH",
		       ctl_colour(stdout, CTL_PLAIN));
	if (!store)
		r = 0;
	else
		r = ctl->order == CTL_BY_ID ? list_all(&listing) : list_sorted(&listing, ctl->order);
	/* an array that was begun is ended, but what is missing in it has the exit status to say so */
	if (ctl->json)
		ctl_array_end(&listing.array);
	if (r < 0) {
		bid_error("%s: reading store '%s'", strerror(-r), bid_store_path(store));
		return CTL_TROUBLE;
	}
	return CTL_DONE;
}
