// SPDX-License-Identifier: LGPL-2.1-or-later
/* From an operand to a build-id. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/elf.h"
#include "api/remove.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "ctl/ctl.h"
#include "ctl/running_kernel.h"

enum { CANDIDATES_MAX = 10 /* number of ids to show */ };

int ctl_parse_id(const char *text, struct bid_id *ret_id)
{
	char digits[BID_ID_HEX_MAX + 1];

	return bid_id_parse_str(bid_id_lower(text, digits), ret_id);
}

struct id_candidates {
	struct bid_id ids[CANDIDATES_MAX];
	size_t n; /* also counts ids beyond ids[] */
};

static int collect_id(void *user, const struct bid_id *id)
{
	struct id_candidates *candidates = user;

	if (candidates->n < CANDIDATES_MAX)
		candidates->ids[candidates->n] = *id;
	candidates->n++;
	return 0;
}

static void list_candidates(const struct id_candidates *candidates)
{
	char hex[BID_ID_HEX_MAX];

	for (size_t i = 0; i < candidates->n && i < CANDIDATES_MAX; i++)
		fprintf(stderr, "  %s\n", bid_id_format(&candidates->ids[i], hex));
	if (candidates->n > CANDIDATES_MAX)
		fprintf(stderr, "  and %zu more\n", candidates->n - CANDIDATES_MAX);
}

int ctl_which(struct bid_store *store, const char *text, struct bid_id *ret_id)
{
	struct id_candidates candidates = { .n = 0 };
	char digits[BID_ID_HEX_MAX + 1];
	struct bid_id id;
	int r;

	if (ctl_parse_id(text, &id) == 0) {
		/* below a mount the lookup would download */
		r = store && !bid_is_mount(bid_store_path(store)) ? bid_store_has(store, &id) : 0;
		if (r < 0)
			return r;
		if (r > 0) {
			*ret_id = id;
			return 0;
		}
	}
	r = bid_store_expand_id(store, bid_id_lower(text, digits), collect_id, &candidates, ret_id);
	if (r == -ENOTUNIQ) {
		bid_error_about(digits, r, "ambiguous: %zu build-ids begin with '%s'", candidates.n, digits);
		list_candidates(&candidates);
	}
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

static enum ctl_status which_kernel(struct bid_id *ret_id)
{
	int r = ctl_running_kernel(ret_id);

	if (r < 0)
		bid_error_about("kernel", r, "no build-id in '/sys/kernel/notes': %s", ctl_running_strerror(r));
	return r < 0 ? CTL_REFUSED : CTL_DONE;
}

static enum ctl_status which_file(const char *path, struct bid_id *ret_id, char **ret_real)
{
	bid_auto_free char *real = NULL;
	bid_auto_fd int fd = -1;
	int r = ctl_open_real(path, &fd, &real);

	if (r == 0)
		r = ctl_identify(fd, ret_id);
	if (r < 0)
		bid_error_about(path, r, "%s", bid_strerror(r));
	else if (ret_real)
		*ret_real = bid_steal(real);
	return r < 0 ? CTL_REFUSED : CTL_DONE;
}

/* Find the only build with the original path @path in the store. */
static enum ctl_status which_path(struct bid_store *store, const char *path, struct bid_id *ret_id)
{
	struct id_candidates builds = { .n = 0 };
	int r = store ? bid_store_each_build(store, path, collect_id, &builds) : -ENOENT;

	if (r < 0 && r != -ENOENT)
		return ctl_which_failed(path, r);
	if (builds.n == 0) {
		bid_error_about(path, -ENOENT, "no such file, and no build of this path in the store");
		return CTL_REFUSED;
	}
	if (builds.n > 1) {
		bid_error_about(path, -ENOTUNIQ, "ambiguous: %zu builds of this path in the store", builds.n);
		list_candidates(&builds);
		return CTL_REFUSED;
	}
	*ret_id = builds.ids[0];
	return CTL_DONE;
}

enum ctl_status ctl_which_build(struct bid_store *store, const char *text, struct bid_id *ret_id, char **ret_real)
{
	int r;

	if (strcmp(text, "kernel") == 0)
		return which_kernel(ret_id);
	r = ctl_which_whole(store, text, ret_id);
	if ((r == -EINVAL || r == -ENOENT) && access(text, F_OK) == 0)
		return which_file(text, ret_id, ret_real);
	if (r == -EINVAL && (text[0] == '/' || text[0] == '['))
		return which_path(store, text, ret_id);
	return r < 0 ? ctl_which_failed(text, r) : CTL_DONE;
}

enum ctl_status ctl_which_failed(const char *text, int error)
{
	switch (error) {
	case -ENOTUNIQ:
		return CTL_REFUSED;
	case -ENOENT:
		bid_error_about(text, error, "no such build-id in the store");
		return CTL_REFUSED;
	case -EINVAL:
		bid_error_about(text, error, "neither a build-id in hex, nor its first %d digits or more, nor a file",
				BID_ID_DIGITS_MIN);
		return CTL_REFUSED;
	default:
		bid_error_about(text, error, "%s: cannot look for '%s'", bid_strerror(error), text);
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
	int r = bid_elf_build_id_any(fd, ret_id);

	return r == -EBADMSG || r == -EFBIG || r == -EOPNOTSUPP ? -ENOEXEC : r;
}

bool ctl_original_path(struct bid_store *store, const struct bid_id *id, char ret_path[static PATH_MAX + 1])
{
	char *slash;

	ret_path[0] = '/';
	if (!store || bid_store_perf_link(store, id, ret_path + 1, PATH_MAX) < 0)
		return false;
	slash = strrchr(ret_path + 1, '/');
	if (slash)
		*slash = '\0';
	/* "[vdso]" is a name, and no path */
	if (ret_path[1] == '[')
		memmove(ret_path, ret_path + 1, strlen(ret_path));
	return slash != NULL;
}
