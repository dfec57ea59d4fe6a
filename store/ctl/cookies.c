// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl list --cookies, and show of a path: what is kept of files that do not say which build they are. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include <bid/cookie.h>

#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

struct listing {
	const struct ctl *ctl;
	const char *path; /* only of this one; NULL for all */
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
	time_t changed = (time_t)cookie->mtime;
	char size[CTL_SIZE_MAX], date[32] = "";
	struct tm local;

	if (localtime_r(&changed, &local))
		strftime(date, sizeof(date), "%F %T", &local);
	ctl_print_label("cookie");
	printf("%s: a guess, it has no build-id\n", cookie->name);
	ctl_print_label("path");
	ctl_print_text(stdout, cookie->path);
	putchar('\n');
	ctl_print_label("elf");
	printf("%s (%" PRIu64 " bytes), last changed %s\n", ctl_format_size(cookie->size, size), cookie->size, date);
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
