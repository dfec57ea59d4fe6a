// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl list */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/build_stat.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "ctl/content_keys.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

struct row {
	struct bid_id id;
	unsigned kinds;
	uint64_t size; /* bytes of all artifacts */
	struct timespec changed; /* last change of the artifacts: one added or removed */
	char *path; /* "/usr/bin/ls", "[vdso]", or "" */
};

struct build_listing {
	struct bid_store *store;
	struct bid_build_stats *summaries;
	const struct ctl *ctl;
	bool times; /* show times on a terminal */
	const char *pattern; /* as of matches(), or NULL */
	const char *real; /* the file that the pattern names on this machine, without links; or NULL */
	size_t n; /* listed builds */
	uint64_t size; /* bytes of their artifacts */
};

/* Rows in memory, to sort them: of all builds, or in the order of the ids of those with one first byte. */
struct rows {
	struct bid_build_stats *summaries;
	struct row *rows; /* owned, with the paths in them */
	size_t n, room;
};

/* Fill a row. The row's path is in @path. */
static void fill_row(struct bid_build_stats *summaries, const struct bid_id *id, struct row *row, char path[static PATH_MAX + 1])
{
	struct bid_build_stat summary;
	char *slash;

	bid_build_stat_of(summaries, id, &summary);
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

/*
 * Does a build match @pattern: a part of its original path @path ("[vdso]" counts as one), a pattern of glob(7) for the path, or
 * the first 7 digits or more of its id @hex?
 */
static bool matches(const char *pattern, const char *hex, const char *path)
{
	char digits[BID_ID_HEX_MAX + 1];
	const char *lower = bid_id_lower(pattern, digits);
	size_t len = strlen(lower);

	return strstr(path, pattern) || fnmatch(pattern, path, 0) == 0 ||
	       (len >= BID_ID_DIGITS_MIN && strncmp(hex, lower, len) == 0);
}

/* Does the store have the build @hex at the original path @path, which perf's link may not name? */
static bool is_at(struct bid_store *store, const char *path, const char *hex)
{
	char objdir[PATH_MAX];

	return path && path[0] == '/' && snprintf(objdir, sizeof(objdir), "%s/%s", path + 1, hex) < (int)sizeof(objdir) &&
	       bid_store_entry_at(store, objdir, NULL) == BID_ENTRY_ID;
}

/* Return the path to show for the build of @row: perf's, or the one that the pattern names; NULL if the build is not wanted. */
static const char *wanted_path(const struct build_listing *listing, const struct row *row)
{
	char hex[BID_ID_HEX_MAX];

	if (listing->ctl->kind && !(row->kinds & 1U << listing->ctl->kind))
		return NULL;
	if (listing->ctl->missing && row->kinds & 1U << listing->ctl->missing)
		return NULL;
	if (!listing->pattern || matches(listing->pattern, bid_id_format(&row->id, hex), row->path))
		return row->path;
	if (is_at(listing->store, listing->pattern, hex))
		return listing->pattern;
	return is_at(listing->store, listing->real, hex) ? listing->real : NULL;
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

static void print_formatted(const char *format, const struct row *row, const char *path)
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
			fputs(path, stdout);
		if (at[1] == '(')
			at = strchr(at, ')');
	}
}

static int print_row(struct build_listing *listing, const struct row *row)
{
	const char *path = wanted_path(listing, row);

	if (!path)
		return 0;
	listing->n++;
	listing->size += row->size;
	if (listing->ctl->format) {
		print_formatted(listing->ctl->format, row, path);
		putchar(listing->ctl->nul ? '\0' : '\n');
		return 0;
	}
	return ctl_row(listing->ctl, CTL_ID("id", 40, &row->id), CTL_KINDS("kinds", 14, row->kinds),
		       CTL_SIZE("size", -9, row->size), CTL_TIME("time", listing->times ? 19 : CTL_HIDDEN, row->changed.tv_sec),
		       CTL_TEXT("path", 0, path));
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

/* Compare rows in the order @user; rows that it does not tell apart, by their ids. Builds without a path come last. */
static int compare_rows(const void *a, const void *b, void *user)
{
	const struct row *one = a, *other = b;
	int r = 0;

	switch (*(const enum ctl_order *)user) {
	case CTL_BY_PATH:
		r = !*one->path != !*other->path ? !*one->path - !*other->path : strcmp(one->path, other->path);
		break;
	case CTL_BY_SIZE:
		r = (one->size < other->size) - (one->size > other->size);
		break;
	case CTL_BY_TIME:
		r = bid_compare_times(&other->changed, &one->changed);
		break;
	case CTL_BY_ID:
		break;
	}
	if (r == 0)
		r = memcmp(one->id.bytes, other->id.bytes, BID_ID_MAX);
	return r ? r : one->id.len - other->id.len;
}

/* List the builds whose id begins with the byte @first, or all builds for a negative one. */
static int list_sorted(struct build_listing *listing, int first)
{
	struct rows rows = { .summaries = listing->summaries };
	int r = first < 0 ? bid_store_each_id(listing->store, collect_row, &rows)
			  : bid_store_each_id_in(listing->store, (uint8_t)first, collect_row, &rows);

	if (rows.n > 0)
		qsort_r(rows.rows, rows.n, sizeof(*rows.rows), compare_rows, (void *)&listing->ctl->order);
	for (size_t i = 0; i < rows.n; i++) {
		if (r == 0)
			r = print_row(listing, &rows.rows[i]);
		free(rows.rows[i].path);
	}
	free(rows.rows);
	return r;
}

static int list_builds(struct build_listing *listing)
{
	int first = listing->ctl->order == CTL_BY_ID ? 0 : -1, r = bid_build_stats_new(listing->store, &listing->summaries);

	do {
		if (r == 0)
			r = list_sorted(listing, first);
	} while (r == 0 && first >= 0 && ++first < 256 && !ferror(stdout));
	bid_build_stats_free(listing->summaries);
	return r;
}

enum ctl_status ctl_list(const struct ctl *ctl, int argc, char **argv)
{
	ctl_auto_store struct bid_store *store = NULL;
	bid_auto_free char *real = argc > 0 && argv[0][0] == '/' ? realpath(argv[0], NULL) : NULL;
	struct build_listing listing = {
		.ctl = ctl,
		.times = ctl->order == CTL_BY_TIME && ctl_is_terminal(stdout) && !ctl->nul,
		.pattern = argc > 0 ? argv[0] : NULL,
		.real = real,
	};
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

	r = store ? list_builds(&listing) : 0;
	/* an empty table says nothing */
	ctl_totals(ctl, CTL_NUMBER("builds", listing.n == 0 && ctl_is_terminal(stdout) ? 0 : CTL_HIDDEN, listing.n),
		   CTL_SIZE("size", CTL_HIDDEN, listing.size));
	return r < 0 ? ctl_trouble(bid_store_path(store), r, "read the store") : CTL_DONE;
}
