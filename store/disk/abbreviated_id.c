// SPDX-License-Identifier: LGPL-2.1-or-later
/* Abbreviated ids: from the digits that a user typed to the id. */
#include <errno.h>
#include <string.h>

#include "api/store.h"

struct search {
	const char *digits;
	size_t len;
	bid_store_id_fn fn;
	void *user;
	struct bid_id found; /* the first */
	size_t n_found;
	bool has_whole; /* one id has exactly these digits */
};

static int compare_id(void *user, const struct bid_id *id)
{
	struct search *search = user;
	char hex[BID_ID_HEX_MAX];

	if (strncmp(bid_id_format(id, hex), search->digits, search->len) != 0)
		return 0;
	search->has_whole |= hex[search->len] == '\0';
	if (search->n_found++ == 0)
		search->found = *id;
	return search->fn ? search->fn(search->user, id) : 0;
}

int bid_store_expand_id(struct bid_store *store, const char *digits, bid_store_id_fn fn, void *user, struct bid_id *ret_id)
{
	struct search search = { .digits = digits, .len = strlen(digits), .fn = fn, .user = user };
	struct bid_id first;
	int r;

	if (search.len < BID_ID_DIGITS_MIN || search.len > (size_t)2 * BID_ID_MAX ||
	    strspn(digits, "0123456789abcdef") != search.len)
		return -EINVAL;
	/* without a store no id matches */
	if (!store)
		return -ENOENT;
	bid_id_parse(digits, 2, &first);
	r = bid_store_each_id_in(store, first.bytes[0], compare_id, &search);
	if (r < 0)
		return r;
	/* a complete id is no abbreviation of a longer one */
	if (search.has_whole)
		return bid_id_parse_str(digits, ret_id);
	if (search.n_found != 1)
		return search.n_found ? -ENOTUNIQ : -ENOENT;
	*ret_id = search.found;
	return 0;
}
