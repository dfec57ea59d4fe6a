// SPDX-License-Identifier: LGPL-2.1-or-later
/* Report of "bidctl add". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bid/error.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "ctl/add.h"

enum { REDRAW_MS = 100 };

struct ctl_add_refusals {
	char *why; /* owned */
	size_t n;
};

static const char *link_name(enum bid_link link)
{
	static const char *const names[] = {
		[BID_LINK_AUTO] = "known", [BID_LINK_REFLINK] = "reflink", [BID_LINK_HARD] = "hard", [BID_LINK_COPY] = "copy"
	};

	return names[link];
}

static bool ends_with(const char *path, const char *suffix)
{
	size_t len = strlen(path), cut = strlen(suffix);

	return len > cut && strcmp(path + len - cut, suffix) == 0;
}

const char *ctl_add_file_reason(const char *path, int error, enum bid_link link)
{
	if (error == -ENODATA && ends_with(path, ".dwp"))
		return "no build-id in split DWARF (.dwp) - keep it beside its program";
	if (error == -ENODATA && ends_with(path, ".dwo"))
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
		return "it is being written";
	case -ELOOP:
		return "it is a store, or a mount of bidfs";
	case -EFBIG:
		return "larger than the room that is left where the store is";
	case -ENOSPC:
		return "no space left where the store is";
	case -EDQUOT:
		return "the quota is used up where the store is";
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

/* Write the row of one file. */
static void write_row(struct ctl_add_stats *stats, json_t *file)
{
	ctl_progress_clear(&stats->progress);
	if (file && stats->form == CTL_ADD_STREAM)
		json_object_set_new(file, "time", json_integer((json_int_t)time(NULL)));
	ctl_row(stats->ctl, file);
}

void ctl_add_stats_taken(struct ctl_add_stats *stats, const char *path, const struct bid_added *added)
{
	const char *kind = bid_kind_name(added->kind);
	char hex[BID_ID_HEX_MAX];

	if (added->known)
		stats->known++;
	else
		stats->added++;
	if (stats->form == CTL_ADD_SILENT)
		return;
	bid_id_format(&added->id, hex);
	/* a stream reports new files alone */
	if (!stats->ctl->verbose && (stats->form == CTL_ADD_STREAM ? added->known : !stats->ctl->json))
		return;
	if (stats->ctl->json) {
		write_row(stats, json_pack("{s:o, s:s, s:s, s:s, s:s?, s:n}", "file", ctl_json_text(path), "id", hex, "kind", kind,
					   "state", added->known ? "known" : "added", "link",
					   added->known ? NULL : link_name(added->link), "reason"));
	} else {
		ctl_progress_clear(&stats->progress);
		printf("%s %s %s ", hex, kind, added->known ? "known" : link_name(added->link));
		ctl_print_text(stdout, path);
		putchar('\n');
	}
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
		write_row(stats, json_pack("{s:o, s:n, s:n, s:s, s:n, s:s}", "file", ctl_json_text(path), "id", "kind", "state",
					   "refused", "link", "reason", why));
}

void ctl_add_stats_progress(struct ctl_add_stats *stats, size_t seen)
{
	int64_t now = bid_clock_ms();

	if (stats->form != CTL_ADD_WHOLE || now < stats->drawn_ms + REDRAW_MS)
		return;
	stats->drawn_ms = now;
	if (!ctl_progress_is_drawn())
		return;
	fprintf(stderr, "\r%zu files, %zu added, %zu known\033[K", stats->seen + seen, stats->added, stats->known);
	fflush(stderr);
	stats->progress.drawn = true;
}

static int by_number(const void *a, const void *b)
{
	const struct ctl_add_refusals *one = a, *two = b;

	return one->n < two->n ? 1 : one->n > two->n ? -1 : strcmp(one->why, two->why);
}

static json_t *totals_of(const struct ctl_add_stats *stats)
{
	json_t *reasons = json_object();

	for (size_t i = 0; i < stats->n_reasons; i++)
		json_object_set_new(reasons, stats->reasons[i].why, json_integer((json_int_t)stats->reasons[i].n));
	return json_pack("{s:I, s:I, s:I, s:I, s:o}", "seen", (json_int_t)stats->seen, "added", (json_int_t)stats->added, "known",
			 (json_int_t)stats->known, "refused", (json_int_t)stats->refused, "reasons", reasons);
}

void ctl_add_stats_release(struct ctl_add_stats *stats)
{
	for (size_t i = 0; i < stats->n_reasons; i++)
		free(stats->reasons[i].why);
	free(stats->reasons);
	stats->reasons = NULL;
	stats->n_reasons = 0;
}

enum ctl_status ctl_add_stats_end(struct ctl_add_stats *stats, enum ctl_status status)
{
	ctl_progress_clear(&stats->progress);
	if (stats->n_reasons > 0)
		qsort(stats->reasons, stats->n_reasons, sizeof(*stats->reasons), by_number);
	if (stats->ctl->json) {
		ctl_totals(stats->ctl, totals_of(stats));
	} else {
		ctl_summary(stats->ctl, "seen %zu, added %zu, known %zu, refused %zu", stats->seen, stats->added, stats->known,
			    stats->refused);
		for (size_t i = 0; i < stats->n_reasons; i++)
			ctl_summary(stats->ctl, "%s%zu %s", i ? ", " : ": ", stats->reasons[i].n, stats->reasons[i].why);
		ctl_summary(stats->ctl, "\n");
	}
	ctl_add_stats_release(stats);
	return status;
}
