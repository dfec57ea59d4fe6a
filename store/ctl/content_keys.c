// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl list --content-keys, and show and remove of a path: files kept without a build-id. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "api/content_key.h"
#include "base/log.h"
#include "ctl/content_keys.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

struct key_listing {
	const struct ctl *ctl;
	const char *path; /* the path to list; NULL for all */
	bool in_full;
	struct bid_store *store;
	size_t n;
	uint64_t size; /* bytes */
};

static void print_in_full(const struct key_listing *listing, const struct bid_content_key *key)
{
	char size[CTL_SIZE_MAX], date[CTL_TIME_MAX];

	ctl_print_label("content key");
	printf("%s: a guess, it has no build-id\n", key->name);
	ctl_print_label("path");
	ctl_print_text(stdout, key->path);
	putchar('\n');
	ctl_print_label("elf");
	printf("%s (%" PRIu64 " bytes), last changed %s\n", ctl_format_size(key->size, size), key->size,
	       ctl_format_time((time_t)key->mtime, date));
	ctl_print_label("  stored");
	ctl_print_text(stdout, bid_store_path(listing->store));
	putchar('/');
	ctl_print_text(stdout, key->stored);
	putchar('\n');
}

static int print_content_key(void *user, const struct bid_content_key *key)
{
	struct key_listing *listing = user;

	if (listing->path && strcmp(listing->path, key->path) != 0)
		return 0;
	listing->n++;
	listing->size += key->size;
	if (!listing->ctl->json && listing->in_full) {
		print_in_full(listing, key);
		return 0;
	}
	return ctl_row(listing->ctl, CTL_TEXT("content_key", 40, key->name), CTL_SIZE("size", -9, key->size),
		       CTL_TIME("mtime", CTL_HIDDEN, key->mtime), CTL_TEXT("path", 0, key->path),
		       CTL_TEXT("stored", CTL_HIDDEN, key->stored));
}

static enum ctl_status list_keys(struct key_listing *listing)
{
	int r = listing->store ? bid_store_each_content_key(listing->store, print_content_key, listing) : 0;

	return r < 0 ? ctl_trouble(bid_store_path(listing->store), r, "read the store") : CTL_DONE;
}

enum ctl_status ctl_list_content_keys(const struct ctl *ctl, struct bid_store *store)
{
	struct key_listing listing = { .ctl = ctl, .store = store };
	enum ctl_status status = list_keys(&listing);

	ctl_totals(ctl, CTL_NUMBER("files", CTL_HIDDEN, listing.n), CTL_SIZE("size", CTL_HIDDEN, listing.size));
	return status;
}

enum ctl_status ctl_show_content_keys(const struct ctl *ctl, struct bid_store *store, const char *path, size_t *ret_n)
{
	struct key_listing listing = { .ctl = ctl, .store = store, .path = path, .in_full = true };
	enum ctl_status status = list_keys(&listing);

	*ret_n = listing.n;
	return status;
}

struct key_removal {
	const struct ctl_content_keys *which;
	struct bid_store *store;
	const struct ctl *ctl;
	bool failed;
	struct ctl_taken taken;
};

static int take_key(void *user, const struct bid_content_key *key)
{
	struct key_removal *taking = user;
	const struct ctl_content_keys *which = taking->which;
	int r;

	if ((which->path && strcmp(which->path, key->path) != 0) || (which->name && strcmp(which->name, key->name) != 0))
		return 0;
	r = taking->ctl->dry_run ? 0 : bid_store_remove_content_key(taking->store, key);
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		taking->failed = true;
		bid_error_about(key->stored, r, "%s: cannot remove '%s'", strerror(-r), key->stored);
	} else {
		taking->taken.n++;
		taking->taken.size += key->size;
	}
	ctl_removed(taking->ctl, which->operand, NULL, key->name,
		    &(struct bid_removal){
			    .path = key->path, .error = r, .names = r == 0, .left = r < 0, .size = r == 0 ? key->size : 0 });
	return 0;
}

enum ctl_status ctl_remove_content_keys(const struct ctl *ctl, struct bid_store *store, const struct ctl_content_keys *which,
					struct ctl_taken *taken, size_t *ret_n)
{
	struct key_removal taking = { .which = which, .store = store, .ctl = ctl, .taken = *taken };
	int r = bid_store_each_content_key(store, take_key, &taking);

	*ret_n = taking.taken.n - taken->n;
	*taken = taking.taken;
	if (r < 0)
		return ctl_trouble(bid_store_path(store), r, "read the store");
	return taking.failed ? CTL_TROUBLE : CTL_DONE;
}
