// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl list --cookies, and show and remove of a path: files kept without a build-id. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "api/cookie.h"
#include "base/log.h"
#include "ctl/cookies.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

struct listing {
	const struct ctl *ctl;
	const char *path; /* the path to list; NULL for all */
	bool in_full;
	struct bid_store *store;
	size_t n;
	uint64_t size; /* bytes */
};

static json_t *to_json(const struct bid_cookie *cookie)
{
	return json_pack("{s:s, s:I, s:I, s:o, s:o}", "content_key", cookie->name, "size", (json_int_t)cookie->size, "mtime",
			 (json_int_t)cookie->mtime, "path", ctl_json_text(cookie->path), "stored", ctl_json_text(cookie->stored));
}

static void print_in_full(const struct listing *listing, const struct bid_cookie *cookie)
{
	char size[CTL_SIZE_MAX], date[CTL_TIME_MAX];

	ctl_print_label("cookie");
	printf("%s: a guess, it has no build-id\n", cookie->name);
	ctl_print_label("path");
	ctl_print_text(stdout, cookie->path);
	putchar('\n');
	ctl_print_label("elf");
	printf("%s (%" PRIu64 " bytes), last changed %s\n", ctl_format_size(cookie->size, size), cookie->size,
	       ctl_format_time((time_t)cookie->mtime, date));
	ctl_print_label("  stored");
	ctl_print_text(stdout, bid_store_path(listing->store));
	putchar('/');
	ctl_print_text(stdout, cookie->stored);
	putchar('\n');
}

static int print_cookie(void *user, const struct bid_cookie *cookie)
{
	struct listing *listing = user;

	if (listing->path && strcmp(listing->path, cookie->path) != 0)
		return 0;
	listing->n++;
	listing->size += cookie->size;
	if (listing->ctl->json)
		return ctl_row(listing->ctl, to_json(cookie));
	if (listing->in_full) {
		print_in_full(listing, cookie);
		return 0;
	}
	printf("%s\tguess\t%" PRIu64 "\t", cookie->name, cookie->size);
	ctl_print_text(stdout, cookie->path);
	putchar('\n');
	return 0;
}

static enum ctl_status list(struct listing *listing)
{
	int r = listing->store ? bid_store_each_cookie(listing->store, print_cookie, listing) : 0;

	if (r == 0)
		return CTL_DONE;
	bid_error_about(bid_store_path(listing->store), r, "%s: reading the store", strerror(-r));
	return CTL_TROUBLE;
}

enum ctl_status ctl_list_cookies(const struct ctl *ctl, struct bid_store *store)
{
	struct listing listing = { .ctl = ctl, .store = store };
	enum ctl_status status = list(&listing);

	if (ctl->json)
		ctl_totals(ctl, json_pack("{s:I, s:I}", "files", (json_int_t)listing.n, "size", (json_int_t)listing.size));
	return status;
}

enum ctl_status ctl_show_cookies(const struct ctl *ctl, struct bid_store *store, const char *path, size_t *ret_n)
{
	struct listing listing = { .ctl = ctl, .store = store, .path = path, .in_full = true };
	enum ctl_status status = list(&listing);

	*ret_n = listing.n;
	return status;
}

struct taking {
	const struct ctl_cookies *which;
	struct bid_store *store;
	const struct ctl *ctl;
	bool failed;
	struct ctl_taken taken;
};

static int take(void *user, const struct bid_cookie *cookie)
{
	struct taking *taking = user;
	const struct ctl_cookies *which = taking->which;
	int r;

	if ((which->path && strcmp(which->path, cookie->path) != 0) || (which->name && strcmp(which->name, cookie->name) != 0))
		return 0;
	r = taking->ctl->dry_run ? 0 : bid_store_remove_cookie(taking->store, cookie);
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		taking->failed = true;
		bid_error_about(cookie->stored, r, "%s: removing '%s'", strerror(-r), cookie->stored);
	} else {
		taking->taken.n++;
		taking->taken.size += cookie->size;
	}
	if (taking->ctl->json)
		return ctl_row(taking->ctl,
			       json_pack("{s:o, s:n, s:s, s:o, s:s, s:i, s:i, s:I, s:s?}", "operand", ctl_json_text(which->operand),
					 "id", "content_key", cookie->name, "path", ctl_json_text(cookie->path), "state",
					 r == 0 ? "removed" : "failed", "paths_removed", r == 0, "paths_left", r < 0, "size",
					 (json_int_t)(r == 0 ? cookie->size : 0), "reason", r < 0 ? strerror(-r) : NULL));
	if (r == 0 && (taking->ctl->verbose || taking->ctl->dry_run)) {
		printf("%s\t%s\t", cookie->name, taking->ctl->dry_run ? "would be removed" : "removed 1 of 1 path");
		ctl_print_text(stdout, which->operand);
		putchar('\n');
	}
	return 0;
}

enum ctl_status ctl_remove_cookies(const struct ctl *ctl, struct bid_store *store, const struct ctl_cookies *which,
				   struct ctl_taken *taken)
{
	struct taking taking = { .which = which, .store = store, .ctl = ctl, .taken = *taken };
	int r = bid_store_each_cookie(store, take, &taking);

	*taken = taking.taken;
	if (r < 0)
		bid_error_about(bid_store_path(store), r, "%s: reading the store", strerror(-r));
	return r < 0 || taking.failed ? CTL_TROUBLE : CTL_DONE;
}
