// SPDX-License-Identifier: LGPL-2.1-or-later
/* Report of "bidctl add". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bid/error.h>

#include "base/array.h"
#include "base/log.h"
#include "ctl/add.h"

struct ctl_add_refusals {
	char *why; /* owned */
	size_t n;
};

struct ctl_unsynced {
	struct bid_added added;
	char *path; /* owned */
};

static const char *link_name(enum bid_link link)
{
	static const char *const names[] = {
		[BID_LINK_AUTO] = "known", [BID_LINK_REFLINK] = "reflink", [BID_LINK_HARD] = "hard", [BID_LINK_COPY] = "copy"
	};

	return names[link];
}

bool ctl_ends_with(const char *path, const char *suffix)
{
	size_t len = strlen(path), cut = strlen(suffix);

	return len > cut && strcmp(path + len - cut, suffix) == 0;
}

const char *ctl_add_file_reason(const char *path, int error, enum bid_link link)
{
	if (error == -ENODATA && ctl_ends_with(path, ".dwp"))
		return "no build-id in split DWARF (.dwp) - keep it beside its program";
	if (error == -ENODATA && ctl_ends_with(path, ".dwo"))
		return "no build-id in split DWARF (.dwo) - keep it where its program names it";
	return ctl_add_reason(error, link);
}

const char *ctl_add_reason(int error, enum bid_link link)
{
	switch (error) {
	case -ENOENT:
		return "no such file";
	case -EINVAL:
		return link == BID_LINK_AUTO || link == BID_LINK_COPY ? "not a regular file"
								      : "not a regular file, or not one to link";
	case -EBADMSG:
		return "damaged or cut short";
	case -EAGAIN:
		return "a program is writing it";
	case -ELOOP:
		return "it is a store, or a mount of bidfs";
	case -EFBIG:
		return "larger than the free space of the store's file system";
	case -E2BIG:
		return "unpacks to more than 512 MiB, or to more than 64 MiB and 100 times its size";
	case -ENOSPC:
		return "no space left on the file system of the store";
	case -EDQUOT:
		return "the quota on the file system of the store is used up";
	case -EROFS:
		return "the file system of the store is read-only";
	case -EOPNOTSUPP:
	case -EXDEV:
		return link == BID_LINK_REFLINK ? "cannot be reflinked into this store" : "cannot be linked into this store";
	default:
		return bid_strerror(error);
	}
}

void ctl_add_stats_begin(struct ctl_add_stats *stats, const struct ctl *ctl, enum ctl_add_form form)
{
	*stats = (struct ctl_add_stats){
		.ctl = ctl,
		.form = form,
	};
}

/* Write the row of one file; @added is NULL for a refused one. A row of a stream has its time. */
static void write_row(struct ctl_add_stats *stats, const char *path, const struct bid_added *added, const char *why)
{
	bool new = added && !added->known, stream = stats->form == CTL_ADD_STREAM;
	const struct ctl_field fields[] = {
		CTL_ID("id", 40, added ? &added->id : NULL),
		CTL_KIND("kind", 9, added ? added->kind : BID_KIND_NONE),
		{ .key = "state",
		  .type = new ? CTL_AS_STATE : CTL_AS_TEXT,
		  .width = 14,
		  .text = new	  ? "added"
			  : added ? "known"
				  : "refused" },
		CTL_TEXT("link", 7, new && !stats->ctl->dry_run ? link_name(added->link) : NULL),
		CTL_TEXT("file", 0, path),
		CTL_TEXT("reason", CTL_HIDDEN, why),
		CTL_TIME(stream ? "time" : NULL, CTL_HIDDEN, time(NULL)),
		{ .key = NULL },
	};

	ctl_progress_clear(&stats->progress);
	ctl_row_of(stats->ctl, fields);
}

void ctl_add_stats_taken(struct ctl_add_stats *stats, const char *path, const struct bid_added *added)
{
	if (added->known)
		stats->known++;
	else
		stats->added++;
	if (stats->form == CTL_ADD_SILENT)
		return;
	/* a stream reports new files alone */
	if (!stats->ctl->verbose && !stats->ctl->dry_run && (stats->form == CTL_ADD_STREAM ? added->known : !stats->ctl->json))
		return;
	write_row(stats, path, added, NULL);
}

int ctl_add_stats_defer(struct ctl_add_stats *stats, const char *path, const struct bid_added *added)
{
	char *copy;

	if (bid_array_grow(stats->unsynced, stats->n_unsynced, stats->room) < 0)
		return -ENOMEM;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	stats->unsynced[stats->n_unsynced++] = (struct ctl_unsynced){ .added = *added, .path = copy };
	return 0;
}

void ctl_add_stats_forget(struct ctl_add_stats *stats)
{
	for (size_t i = 0; i < stats->n_unsynced; i++)
		free(stats->unsynced[i].path);
	stats->n_unsynced = 0;
}

int ctl_add_stats_sync(struct ctl_add_stats *stats, struct bid_store *store)
{
	int r = stats->n_unsynced > 0 ? bid_store_sync(store) : 0;

	for (size_t i = 0; i < stats->n_unsynced && r == 0; i++)
		ctl_add_stats_taken(stats, stats->unsynced[i].path, &stats->unsynced[i].added);
	ctl_add_stats_forget(stats);
	return r;
}

/* Count one more refusal for @why. Without memory the total stays right, and some reasons are missing. */
static void count_reason(struct ctl_add_stats *stats, const char *why)
{
	struct ctl_add_refusals *grown;
	char *copy;

	for (size_t i = 0; i < stats->n_reasons; i++) {
		if (strcmp(stats->reasons[i].why, why) == 0) {
			stats->reasons[i].n++;
			return;
		}
	}
	grown = reallocarray(stats->reasons, stats->n_reasons + 1, sizeof(*grown));
	if (!grown)
		return;
	stats->reasons = grown;
	copy = strdup(why);
	if (copy)
		stats->reasons[stats->n_reasons++] = (struct ctl_add_refusals){ .why = copy, .n = 1 };
}

void ctl_add_stats_refused(struct ctl_add_stats *stats, const char *path, int error, const char *why, bool named)
{
	stats->refused++;
	if (named || stats->ctl->verbose) {
		ctl_progress_clear(&stats->progress);
		bid_error_about(path, error, "%s", why);
	}
	if (!named)
		count_reason(stats, why);
	if (stats->ctl->json && stats->form != CTL_ADD_SILENT)
		write_row(stats, path, NULL, why);
}

void ctl_add_stats_progress(struct ctl_add_stats *stats, size_t seen)
{
	if (stats->form == CTL_ADD_WHOLE)
		ctl_progress_text(&stats->progress, "%zu files, %zu added, %zu known", stats->seen + seen, stats->added,
				  stats->known);
}

static int by_number(const void *a, const void *b)
{
	const struct ctl_add_refusals *one = a, *two = b;

	return one->n < two->n ? 1 : one->n > two->n ? -1 : strcmp(one->why, two->why);
}

/* Return the reasons of refused files with their counts. */
static json_t *reasons_of(const struct ctl_add_stats *stats)
{
	json_t *reasons = json_object();

	for (size_t i = 0; i < stats->n_reasons; i++)
		json_object_set_new(reasons, stats->reasons[i].why, json_integer((json_int_t)stats->reasons[i].n));
	return reasons;
}

void ctl_add_stats_release(struct ctl_add_stats *stats)
{
	for (size_t i = 0; i < stats->n_reasons; i++)
		free(stats->reasons[i].why);
	free(stats->reasons);
	ctl_add_stats_forget(stats);
	free(stats->unsynced);
}

enum ctl_status ctl_add_stats_end(struct ctl_add_stats *stats, enum ctl_status status)
{
	ctl_progress_clear(&stats->progress);
	if (stats->n_reasons > 0)
		qsort(stats->reasons, stats->n_reasons, sizeof(*stats->reasons), by_number);
	ctl_totals(stats->ctl, CTL_NUMBER("seen", 0, stats->seen), CTL_NUMBER("added", 0, stats->added),
		   CTL_NUMBER("known", 0, stats->known), CTL_NUMBER("refused", 0, stats->refused),
		   { .key = "reasons", .type = CTL_AS_JSON, .json = reasons_of(stats) });
	ctl_add_stats_release(stats);
	return status;
}
