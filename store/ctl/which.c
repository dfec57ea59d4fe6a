// SPDX-License-Identifier: LGPL-2.1-or-later
/* From what somebody typed to the id that is meant. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bid/elf.h>
#include <bid/error.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mount.h"
#include "ctl/ctl.h"

enum {
	ABBREVIATION_MIN = 7, /* digits; as long as git's */
	CANDIDATES_MAX = 10, /* to show */
	WHOLE_MIN = 8, /* bytes; a shorter one that is not stored is taken for an abbreviation or a slip */
	DIGITS_MAX = 2 * BID_ID_MAX,
};

/* With digits in lower case; of more than an id can have, enough to tell. Returns @buf. */
static const char *lower(const char *text, char buf[static DIGITS_MAX + 2])
{
	size_t n = strnlen(text, DIGITS_MAX + 1);

	for (size_t i = 0; i < n; i++)
		buf[i] = (char)(text[i] >= 'A' && text[i] <= 'F' ? text[i] - 'A' + 'a' : text[i]);
	buf[n] = '\0';
	return buf;
}

int ctl_parse_id(const char *text, struct bid_id *ret_id)
{
	char digits[DIGITS_MAX + 2];

	return bid_id_parse_str(lower(text, digits), ret_id);
}

struct search {
	const char *prefix;
	size_t len;
	struct bid_id found[CANDIDATES_MAX];
	size_t n_found; /* also those that found[] has no room for */
	bool has_whole; /* one of them has no more digits */
};

static int compare(void *user, const struct bid_id *id)
{
	struct search *search = user;
	char hex[BID_ID_HEX_MAX];

	if (strncmp(bid_id_format(id, hex), search->prefix, search->len) != 0)
		return 0;
	if (search->n_found < CANDIDATES_MAX)
		search->found[search->n_found] = *id;
	search->has_whole |= hex[search->len] == '\0';
	search->n_found++;
	return 0;
}

static void list_candidates(const struct search *search)
{
	char hex[BID_ID_HEX_MAX];

	bid_error("ambiguous: %zu build-ids begin with '%s'", search->n_found, search->prefix);
	for (size_t i = 0; i < search->n_found && i < CANDIDATES_MAX; i++)
		fprintf(stderr, "  %s\n", bid_id_format(&search->found[i], hex));
	if (search->n_found > CANDIDATES_MAX)
		fprintf(stderr, "  and %zu more\n", search->n_found - CANDIDATES_MAX);
}

int ctl_which(struct bid_store *store, const char *text, struct bid_id *ret_id)
{
	char digits[DIGITS_MAX + 2];
	struct search search = { .prefix = lower(text, digits), .len = strlen(digits) };
	struct bid_id id, first;
	int r;

	if (bid_id_parse_str(digits, &id) == 0) {
		/* a mount that covers the store would fetch it */
		r = store && !bid_is_mount(bid_store_path(store)) ? bid_store_has(store, &id) : 0;
		if (r < 0)
			return r;
		if (r > 0) {
			*ret_id = id;
			return 0;
		}
	}
	if (search.len < ABBREVIATION_MIN || search.len > DIGITS_MAX || strspn(digits, "0123456789abcdef") != search.len)
		return -EINVAL;
	if (!store)
		return -ENOENT;

	bid_id_parse(digits, 2, &first);
	r = bid_store_each_id_in(store, first.bytes[0], compare, &search);
	if (r < 0)
		return r;
	/* one that is whole is no abbreviation of a longer one */
	if (search.has_whole)
		return bid_id_parse_str(digits, ret_id);
	if (search.n_found > 1) {
		list_candidates(&search);
		return -ENOTUNIQ;
	}
	if (search.n_found == 0)
		return -ENOENT;
	*ret_id = search.found[0];
	return 0;
}

int ctl_which_whole(struct bid_store *store, const char *text, struct bid_id *ret_id)
{
	int r = ctl_which(store, text, ret_id);
	struct bid_id id;

	if (r != -ENOENT || ctl_parse_id(text, &id) < 0 || id.len < WHOLE_MIN)
		return r;
	*ret_id = id;
	return 0;
}

enum ctl_status ctl_which_failed(const char *text, int error)
{
	switch (error) {
	case -ENOTUNIQ:
		return CTL_REFUSED;
	case -ENOENT:
		bid_error("no such build-id in the store: '%s'", text);
		return CTL_REFUSED;
	case -EINVAL:
		bid_error("not a build-id in hex, nor its first %d digits or more: '%s'", ABBREVIATION_MIN, text);
		return CTL_USAGE;
	default:
		bid_error("%s: looking for '%s'", bid_strerror(error), text);
		return CTL_TROUBLE;
	}
}

int ctl_open_real(const char *path, int *ret_fd, char **ret_real)
{
	bid_auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char *real;

	if (fd < 0)
		return -errno;
	real = realpath(path, NULL);
	if (!real)
		return -errno;
	*ret_fd = bid_steal_fd(&fd);
	*ret_real = real;
	return 0;
}

int ctl_identify(int fd, struct bid_id *ret_id)
{
	int r = bid_elf_identify_any(fd, ret_id);

	return r == -EBADMSG || r == -EFBIG || r == -EOPNOTSUPP ? -ENOEXEC : r;
}
