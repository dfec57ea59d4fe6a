// SPDX-License-Identifier: LGPL-2.1-or-later
/* From what somebody typed to the id that is meant. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/mount.h"
#include "ctl/ctl.h"

enum { CANDIDATES_MAX = 10 /* to show */ };

int ctl_parse_id(const char *text, struct bid_id *ret_id)
{
	char digits[BID_ID_HEX_MAX + 1];

	return bid_id_parse_str(bid_id_lower(text, digits), ret_id);
}

struct candidates {
	struct bid_id ids[CANDIDATES_MAX];
	size_t n; /* also those that ids[] has no room for */
};

static int collect(void *user, const struct bid_id *id)
{
	struct candidates *candidates = user;

	if (candidates->n < CANDIDATES_MAX)
		candidates->ids[candidates->n] = *id;
	candidates->n++;
	return 0;
}

static void list_candidates(const struct candidates *candidates, const char *digits)
{
	char hex[BID_ID_HEX_MAX];

	bid_error("ambiguous: %zu build-ids begin with '%s'", candidates->n, digits);
	for (size_t i = 0; i < candidates->n && i < CANDIDATES_MAX; i++)
		fprintf(stderr, "  %s\n", bid_id_format(&candidates->ids[i], hex));
	if (candidates->n > CANDIDATES_MAX)
		fprintf(stderr, "  and %zu more\n", candidates->n - CANDIDATES_MAX);
}

int ctl_which(struct bid_store *store, const char *text, struct bid_id *ret_id)
{
	struct candidates candidates = { .n = 0 };
	char digits[BID_ID_HEX_MAX + 1];
	struct bid_id id;
	int r;

	if (ctl_parse_id(text, &id) == 0) {
		/* a mount that covers the store would fetch it */
		r = store && !bid_is_mount(bid_store_path(store)) ? bid_store_has(store, &id) : 0;
		if (r < 0)
			return r;
		if (r > 0) {
			*ret_id = id;
			return 0;
		}
	}
	r = bid_store_which(store, bid_id_lower(text, digits), collect, &candidates, ret_id);
	if (r == -ENOTUNIQ)
		list_candidates(&candidates, digits);
	return r;
}

int ctl_which_whole(struct bid_store *store, const char *text, struct bid_id *ret_id)
{
	int r = ctl_which(store, text, ret_id);
	struct bid_id id;

	if (r != -ENOENT || ctl_parse_id(text, &id) < 0 || id.len < BID_ID_WHOLE_MIN)
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
		bid_error("not a build-id in hex, nor its first %d digits or more: '%s'", BID_ID_DIGITS_MIN, text);
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
