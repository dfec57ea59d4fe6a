// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl list */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/summary.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/content_keys.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

/* Ids of one first byte. One bucket at a time is in memory, sorted. */
struct bucket {
	struct bid_id *ids; /* owned */
	size_t n, room;
};

struct row {
	struct bid_id id;
	unsigned kinds;
	uint64_t size; /* bytes of all artifacts */
	struct timespec changed; /* last change of the artifacts: one added or removed */
	char *path; /* "/usr/bin/ls", "[vdso]", or "" */
};

struct build_listing {
	struct bid_store *store;
	struct bid_summaries *summaries;
	const struct ctl *ctl;
	bool times; /* show times on a terminal */
	bool nul; /* NUL ends a row */
	const char *format; /* checked by check_format(), or NULL */
	const char *pattern; /* as of ctl_matches(), or NULL */
	enum bid_kind kind, missing; /* list builds with the one kind and without the other; BID_KIND_NONE for any */
	size_t n; /* listed builds */
	uint64_t size; /* bytes of their artifacts */
};

/* All rows in memory, for an order other than by id. */
struct rows {
	struct bid_summaries *summaries;
	struct row *rows; /* owned, with the paths in them */
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

/* Fill a row. The row's path is in @path. */
static void fill_row(struct bid_summaries *summaries, const struct bid_id *id, struct row *row, char path[static PATH_MAX + 1])
{
	struct bid_summary summary;
	char *slash;

	bid_summary_of(summaries, id, &summary);
	*row = (struct row){ *id, summary.kinds, summary.size, summary.changed, path };
	slash = strrchr(summary.where, '/');
	if (slash)
		*slash = '\0';
	/* "usr/bin/ls" came from an absolute path; "[vdso]" is a name */
	if (slash)
		snprintf(path, PATH_MAX + 1, "%s%s", summary.where[0] == '[' ? "" : "/", summary.where);
	else
		snprintf(path, PATH_MAX + 1, "%s", summary.where[0] ? "" : BID_STORE_UNNAMED);
}

static bool is_wanted(const struct build_listing *listing, const struct row *row)
{
	char hex[BID_ID_HEX_MAX];

	if (listing->kind && !(row->kinds & 1U << listing->kind))
		return false;
	if (listing->missing && row->kinds & 1U << listing->missing)
		return false;
	return !listing->pattern || ctl_matches(listing->pattern, bid_id_format(&row->id, hex), row->path);
}

/* Does "%(NAME)" at @at have the name @name? */
static bool is_field(const char *at, const char *name)
{
	size_t len = strlen(name);

	return strncmp(at + 2, name, len) == 0 && at[2 + len] == ')';
}

/* Refuse a format with another placeholder than those of print_formatted(). */
static enum ctl_status check_format(const char *format)
{
	static const char *const names[] = { "id", "kinds", "size", "time", "path" };

	for (const char *at = format; (at = strchr(at, '%')); at += 2) {
		bool known = at[1] == '%';

		for (size_t i = 0; at[1] == '(' && i < sizeof(names) / sizeof(names[0]); i++)
			known |= is_field(at, names[i]);
		if (!known)
			return ctl_usage(at, "not one of %%(id), %%(kinds), %%(size), %%(time), %%(path), %%%%");
	}
	return CTL_DONE;
}

static void print_formatted(const char *format, const struct row *row)
{
	char hex[BID_ID_HEX_MAX];

	for (const char *at = format; *at; at++) {
		if (*at != '%') {
			putchar(*at);
			continue;
		}
		if (at[1] == '%')
			putchar(*at++);
		else if (is_field(at, "id"))
			fputs(bid_id_format(&row->id, hex), stdout);
		else if (is_field(at, "kinds"))
			ctl_print_kinds(stdout, row->kinds);
		else if (is_field(at, "size"))
			printf("%" PRIu64, row->size);
		else if (is_field(at, "time"))
			printf("%" PRId64, (int64_t)row->changed.tv_sec);
		else
			fputs(row->path, stdout);
		if (at[1] == '(')
			at = strchr(at, ')');
	}
}

static int print_row(struct build_listing *listing, const struct row *row)
{
	if (!is_wanted(listing, row))
		return 0;
	listing->n++;
	listing->size += row->size;
	if (listing->format) {
		print_formatted(listing->format, row);
		putchar(listing->nul ? '\0' : '\n');
		return 0;
	}
	return ctl_row(listing->ctl, CTL_ID("id", 40, &row->id), CTL_KINDS("kinds", 14, row->kinds),
		       CTL_SIZE("size", -9, row->size), CTL_TIME("time", listing->times ? 19 : CTL_HIDDEN, row->changed.tv_sec),
		       CTL_TEXT("path", 0, row->path));
}

static int list_bucket(struct build_listing *listing, struct bucket *bucket)
{
	char path[PATH_MAX + 1];
	struct row row;
	int r;

	qsort(bucket->ids, bucket->n, sizeof(*bucket->ids), compare);
	for (size_t i = 0; i < bucket->n; i++) {
		fill_row(listing->summaries, &bucket->ids[i], &row, path);
		r = print_row(listing, &row);
		if (r < 0)
			return r;
	}
	return 0;
}

static int list_all(struct build_listing *listing)
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

static int collect_row(void *user, const struct bid_id *id)
{
	struct rows *rows = user;
	char path[PATH_MAX + 1];
	struct row row;

	if (bid_array_grow(rows->rows, rows->n, rows->room) < 0)
		return -ENOMEM;
	fill_row(rows->summaries, id, &row, path);
	row.path = strdup(path);
	if (!row.path)
		return -ENOMEM;
	rows->rows[rows->n++] = row;
	return 0;
}

/* Order by path, builds without a path last. */
static int by_path(const void *a, const void *b)
{
	const struct row *one = a, *other = b;
	int r = !*one->path != !*other->path ? !*one->path - !*other->path : strcmp(one->path, other->path);

	return r ? r : compare(&one->id, &other->id);
}

/* Order by size, the largest first. */
static int by_size(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	if (one->size != other->size)
		return one->size > other->size ? -1 : 1;
	return compare(&one->id, &other->id);
}

/* Order by time, the newest first. */
static int by_time(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	if (one->changed.tv_sec != other->changed.tv_sec)
		return one->changed.tv_sec > other->changed.tv_sec ? -1 : 1;
	if (one->changed.tv_nsec != other->changed.tv_nsec)
		return one->changed.tv_nsec > other->changed.tv_nsec ? -1 : 1;
	return compare(&one->id, &other->id);
}

static int list_sorted(struct build_listing *listing, int (*order)(const void *a, const void *b))
{
	struct rows rows = { .summaries = listing->summaries };
	int r = bid_store_each_id(listing->store, collect_row, &rows);

	if (rows.n > 0)
		qsort(rows.rows, rows.n, sizeof(*rows.rows), order);
	for (size_t i = 0; i < rows.n; i++) {
		if (r == 0)
			r = print_row(listing, &rows.rows[i]);
		free(rows.rows[i].path);
	}
	free(rows.rows);
	return r;
}

static int list(struct build_listing *listing, enum ctl_order order)
{
	static int (*const orders[])(const void *a,
				     const void *b) = { [CTL_BY_PATH] = by_path, [CTL_BY_TIME] = by_time, [CTL_BY_SIZE] = by_size };
	int r = bid_summaries_new(listing->store, &listing->summaries);

	if (r == 0)
		r = order == CTL_BY_ID ? list_all(listing) : list_sorted(listing, orders[order]);
	bid_summaries_free(listing->summaries);
	return r;
}

enum ctl_status ctl_list(const struct ctl *ctl, int argc, char **argv)
{
	ctl_auto_store struct bid_store *store = NULL;
	struct build_listing listing = { .ctl = ctl,
					 .format = ctl->format,
					 .times = ctl->order == CTL_BY_TIME && ctl_is_terminal(stdout) && !ctl->nul,
					 .nul = ctl->nul,
					 .pattern = argc > 0 ? argv[0] : NULL,
					 .kind = ctl->kind,
					 .missing = ctl->missing };
	enum ctl_status status;
	int r;

	if (ctl->content_keys && (argc > 0 || ctl->kind || ctl->missing || ctl->nul || ctl->format || ctl->order != CTL_BY_ID))
		return ctl_usage("--content-keys",
				 "'--content-keys' does not go together with PATTERN, '--by', '--format', '--kind', '--missing' or "
				 "'--null'");
	if (ctl->format && ctl->json)
		return ctl_usage("--format", "'--format' does not go together with '--json'");
	status = ctl->format ? check_format(ctl->format) : CTL_DONE;
	if (status == CTL_DONE)
		status = ctl_open_store(ctl, CTL_READ, &store);
	if (status != CTL_DONE)
		return status;
	if (ctl->content_keys)
		return ctl_list_content_keys(ctl, store);
	listing.store = store;

	r = store ? list(&listing, ctl->order) : 0;
	ctl_totals(ctl, CTL_NUMBER("builds", CTL_HIDDEN, listing.n), CTL_SIZE("size", CTL_HIDDEN, listing.size));
	return r < 0 ? ctl_trouble(bid_store_path(store), r, "reading the store") : CTL_DONE;
}
