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

struct ctl_tally_reason {
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

void ctl_tally_begin(struct ctl_tally *tally, const struct ctl *ctl, enum ctl_tally_form form)
{
	*tally = (struct ctl_tally){
		.ctl = ctl,
		.form = form,
	};
}

/* Write the row of one file. */
static void write_row(struct ctl_tally *tally, json_t *file)
{
	ctl_progress_clear(&tally->progress);
	if (file && tally->form == CTL_TALLY_STREAM)
		json_object_set_new(file, "time", json_integer((json_int_t)time(NULL)));
	ctl_row(tally->ctl, file);
}

void ctl_tally_taken(struct ctl_tally *tally, const char *path, const struct bid_added *added)
{
	const char *kind = added->kind == BID_KIND_NONE ? "kcore" : bid_kind_name(added->kind);
	char hex[BID_ID_HEX_MAX];

	if (added->known)
		tally->known++;
	else
		tally->added++;
	if (tally->form == CTL_TALLY_SILENT)
		return;
	bid_id_format(&added->id, hex);
	/* a stream reports new files alone */
	if (!tally->ctl->verbose && (tally->form == CTL_TALLY_STREAM ? added->known : !tally->ctl->json))
		return;
	if (tally->ctl->json) {
		write_row(tally, json_pack("{s:o, s:s, s:s, s:s, s:s?, s:n}", "file", ctl_json_text(path), "id", hex, "kind", kind,
					   "state", added->known ? "known" : "added", "link",
					   added->known ? NULL : link_name(added->link), "reason"));
	} else {
		ctl_progress_clear(&tally->progress);
		printf("%s %s %s ", hex, kind, added->known ? "known" : link_name(added->link));
		ctl_print_text(stdout, path);
		putchar('\n');
	}
}

/* Count one more refusal for @why. Without memory the total stays right, and some reasons are missing. */
static void count_reason(struct ctl_tally *tally, const char *why)
{
	struct ctl_tally_reason *grown;
	char *copy;

	for (size_t i = 0; i < tally->n_reasons; i++) {
		if (strcmp(tally->reasons[i].why, why) == 0) {
			tally->reasons[i].n++;
			return;
		}
	}
	grown = reallocarray(tally->reasons, tally->n_reasons + 1, sizeof(*grown));
	if (!grown)
		return;
	tally->reasons = grown;
	copy = strdup(why);
	if (copy)
		tally->reasons[tally->n_reasons++] = (struct ctl_tally_reason){ .why = copy, .n = 1 };
}

void ctl_tally_refused(struct ctl_tally *tally, const char *path, int error, const char *why, bool named)
{
	tally->refused++;
	if (named || tally->ctl->verbose) {
		ctl_progress_clear(&tally->progress);
		bid_error_about(path, error, "%s", why);
	}
	if (!named)
		count_reason(tally, why);
	if (tally->ctl->json && tally->form != CTL_TALLY_SILENT)
		write_row(tally, json_pack("{s:o, s:n, s:n, s:s, s:n, s:s}", "file", ctl_json_text(path), "id", "kind", "state",
					   "refused", "link", "reason", why));
}

void ctl_tally_progress(struct ctl_tally *tally, size_t seen)
{
	int64_t now = bid_clock_ms();

	if (tally->form != CTL_TALLY_WHOLE || now < tally->drawn_ms + REDRAW_MS)
		return;
	tally->drawn_ms = now;
	if (!ctl_progress_is_drawn())
		return;
	fprintf(stderr, "\r%zu files, %zu added, %zu known\033[K", tally->seen + seen, tally->added, tally->known);
	fflush(stderr);
	tally->progress.drawn = true;
}

static int by_number(const void *a, const void *b)
{
	const struct ctl_tally_reason *one = a, *two = b;

	return one->n < two->n ? 1 : one->n > two->n ? -1 : strcmp(one->why, two->why);
}

static json_t *totals_of(const struct ctl_tally *tally)
{
	json_t *reasons = json_object();

	for (size_t i = 0; i < tally->n_reasons; i++)
		json_object_set_new(reasons, tally->reasons[i].why, json_integer((json_int_t)tally->reasons[i].n));
	return json_pack("{s:I, s:I, s:I, s:I, s:o}", "seen", (json_int_t)tally->seen, "added", (json_int_t)tally->added, "known",
			 (json_int_t)tally->known, "refused", (json_int_t)tally->refused, "reasons", reasons);
}

void ctl_tally_release(struct ctl_tally *tally)
{
	for (size_t i = 0; i < tally->n_reasons; i++)
		free(tally->reasons[i].why);
	free(tally->reasons);
	tally->reasons = NULL;
	tally->n_reasons = 0;
}

enum ctl_status ctl_tally_end(struct ctl_tally *tally, enum ctl_status status)
{
	ctl_progress_clear(&tally->progress);
	if (tally->n_reasons > 0)
		qsort(tally->reasons, tally->n_reasons, sizeof(*tally->reasons), by_number);
	if (tally->ctl->json) {
		ctl_totals(tally->ctl, totals_of(tally));
	} else {
		ctl_summary(tally->ctl, "seen %zu, added %zu, known %zu, refused %zu", tally->seen, tally->added, tally->known,
			    tally->refused);
		for (size_t i = 0; i < tally->n_reasons; i++)
			ctl_summary(tally->ctl, "%s%zu %s", i ? ", " : ": ", tally->reasons[i].n, tally->reasons[i].why);
		ctl_summary(tally->ctl, "\n");
	}
	ctl_tally_release(tally);
	return status;
}
