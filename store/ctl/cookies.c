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
	struct ctl_array *array; /* with --json; borrowed */
	size_t n;
};

static json_t *to_json(const struct bid_cookie *cookie)
{
	return json_pack("{s:s, s:b, s:I, s:I, s:o, s:o}", "cookie", cookie->name, "guess", 1, "size", (json_int_t)cookie->size,
			 "mtime", (json_int_t)cookie->mtime, "path", ctl_json_text(cookie->path), "stored",
			 ctl_json_text(cookie->stored));
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
	if (listing->ctl->json)
		return ctl_array_add(listing->array, to_json(cookie));
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
	bid_error("%s: reading store '%s'", strerror(-r), bid_store_path(listing->store));
	return CTL_TROUBLE;
}

enum ctl_status ctl_list_cookies(const struct ctl *ctl, struct bid_store *store)
{
	struct ctl_array array = { 0 };
	struct listing listing = { .ctl = ctl, .store = store, .array = &array };
	enum ctl_status status = list(&listing);

	if (ctl->json)
		ctl_array_end(&array);
	return status;
}

enum ctl_status ctl_show_cookies(const struct ctl *ctl, struct bid_store *store, const char *path, struct ctl_array *array,
				 size_t *ret_n)
{
	struct listing listing = { .ctl = ctl, .store = store, .path = path, .in_full = true, .array = array };
	enum ctl_status status = list(&listing);

	*ret_n = listing.n;
	return status;
}

struct taking {
	const struct ctl_cookies *which;
	struct bid_store *store;
	json_t *removed; /* borrowed */
	bool verbose, dry_run;
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
	r = taking->dry_run ? 0 : bid_store_remove_cookie(taking->store, cookie);
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		taking->failed = true;
		bid_error("%s: removing '%s'", strerror(-r), cookie->stored);
	} else {
		taking->taken.n++;
		taking->taken.size += cookie->size;
	}
	json_array_append_new(taking->removed,
			      json_pack("{s:o, s:n, s:s, s:o, s:i, s:i, s:I, s:o}", "operand", ctl_json_text(which->operand), "id",
					"cookie", cookie->name, "path", ctl_json_text(cookie->path), "names", r == 0, "left", r < 0,
					"size", (json_int_t)(r == 0 ? cookie->size : 0), "error",
					r < 0 ? json_string(strerror(-r)) : json_null()));
	if (taking->verbose && r == 0) {
		printf("%s\t%s\t", cookie->name, taking->dry_run ? "would be removed" : "removed 1 of 1 path");
		ctl_print_text(stdout, which->operand);
		putchar('\n');
	}
	return 0;
}

enum ctl_status ctl_remove_cookies(const struct ctl *ctl, struct bid_store *store, const struct ctl_cookies *which, json_t *removed,
				   struct ctl_taken *taken)
{
	struct taking taking = { .which = which,
				 .store = store,
				 .removed = removed,
				 .verbose = (ctl->verbose || ctl->dry_run) && !ctl->json,
				 .dry_run = ctl->dry_run,
				 .taken = *taken };
	int r = bid_store_each_cookie(store, take, &taking);

	*taken = taking.taken;
	if (r < 0)
		bid_error("%s: reading store '%s'", strerror(-r), bid_store_path(store));
	return r < 0 || taking.failed ? CTL_TROUBLE : CTL_DONE;
}
