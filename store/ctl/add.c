// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl add */
#include <errno.h>
#include <string.h>

#include <bid/error.h>

#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

struct tally {
	size_t seen, added, known, refused;
	json_t *files; /* NULL without --json; owned */
};

static const char *link_name(enum bid_link link)
{
	static const char *const names[] = {
		[BID_LINK_AUTO] = "known", [BID_LINK_REFLINK] = "reflink", [BID_LINK_HARD] = "hard", [BID_LINK_COPY] = "copy"
	};

	return names[link];
}

/* Is it this file that was not taken, so that the next one may be? Else it is the store. */
static bool is_refusal(int r)
{
	switch (r) {
	case -ENOSPC:
	case -EDQUOT:
	case -EROFS:
	case -EIO:
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		return false;
	default:
		return true;
	}
}

static const char *reason(int r, enum bid_link link)
{
	switch (r) {
	case -ENOENT:
		return "no such file";
	case -EINVAL:
		return link == BID_LINK_AUTO || link == BID_LINK_COPY ? "not a regular file"
								      : "not a regular file, or not one to link";
	case -EBADMSG:
		return "damaged or cut short";
	case -EAGAIN:
		return "it is being written";
	case -EOPNOTSUPP:
	case -EXDEV:
		return link == BID_LINK_REFLINK ? "cannot be reflinked into this store" : "cannot be linked into this store";
	default:
		return bid_strerror(r);
	}
}

static void report_added(const struct ctl *ctl, struct tally *tally, const char *path, const struct bid_added *added)
{
	char hex[BID_ID_HEX_MAX];

	if (added->known)
		tally->known++;
	else
		tally->added++;
	bid_id_format(&added->id, hex);
	if (tally->files) {
		json_array_append_new(tally->files, json_pack("{s:o, s:s, s:s, s:b, s:s?}", "file", ctl_json_text(path), "id", hex,
							      "kind", bid_kind_name(added->kind), "known", added->known, "link",
							      added->known ? NULL : link_name(added->link)));
	} else if (ctl->verbose) {
		printf("%s %s %s ", hex, bid_kind_name(added->kind), added->known ? "known" : link_name(added->link));
		ctl_print_text(stdout, path);
		putchar('\n');
	}
}

static void report_refused(struct tally *tally, const char *path, const char *why)
{
	tally->refused++;
	bid_error("%s: '%s'", why, path);
	if (tally->files)
		json_array_append_new(tally->files, json_pack("{s:o, s:s}", "file", ctl_json_text(path), "refused", why));
}

enum ctl_status ctl_add(const struct ctl *ctl, int argc, char **argv)
{
	ctl_auto_store struct bid_store *store = NULL;
	struct tally tally = { 0 };
	enum ctl_status status;

	status = ctl_open_store(ctl, CTL_WRITE, &store);
	if (status != CTL_DONE)
		return status;
	if (ctl->json)
		tally.files = json_array();

	for (int i = 0; i < argc; i++) {
		struct bid_added added;
		int r = bid_store_add(store, argv[i], ctl->link, &added);

		tally.seen++;
		if (r == 0) {
			report_added(ctl, &tally, argv[i], &added);
			continue;
		}
		report_refused(&tally, argv[i], reason(r, ctl->link));
		if (!is_refusal(r)) {
			status = CTL_TROUBLE;
			break;
		}
		status = CTL_REFUSED;
	}

	if (!ctl->json) {
		printf("seen %zu, added %zu, known %zu, refused %zu\n", tally.seen, tally.added, tally.known, tally.refused);
	} else if (ctl_print_json(json_pack("{s:I, s:I, s:I, s:I, s:o}", "seen", (json_int_t)tally.seen, "added",
					    (json_int_t)tally.added, "known", (json_int_t)tally.known, "refused",
					    (json_int_t)tally.refused, "files", tally.files)) < 0) {
		bid_error("%s", strerror(ENOMEM));
		return CTL_TROUBLE;
	}
	return status;
}
