// SPDX-License-Identifier: LGPL-2.1-or-later
/* Path and opening of the store. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/default_stores.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "ctl/ctl.h"

enum ctl_status ctl_store_path(const struct ctl *ctl, char *ret_path, size_t size)
{
	int r;

	if (ctl->store) {
		if (strlen(ctl->store) >= size) {
			bid_error_about(ctl->store, -ENAMETOOLONG, "%s: store '%s'", strerror(ENAMETOOLONG), ctl->store);
			return CTL_TROUBLE;
		}
		memcpy(ret_path, ctl->store, strlen(ctl->store) + 1);
		return CTL_DONE;
	}
	r = bid_store_default_path(ret_path, size);
	if (r == -ENOENT)
		bid_error_about("HOME", r, "no home directory, hence no default store; name one with '--store'");
	else if (r == -ENAMETOOLONG)
		bid_error_about("HOME", r, "%s: the default store; name one with '--store'", strerror(-r));
	return r < 0 ? CTL_TROUBLE : CTL_DONE;
}

static bool is_unwritable(int r)
{
	return r == -EROFS || r == -EACCES || r == -EPERM;
}

static enum ctl_status add_lower(struct bid_store *store, const char *name)
{
	char path[PATH_MAX];
	int r = bid_store_lower_path(name, path, sizeof(path));

	if (r > 0)
		r = bid_store_add_lower(store, path);
	if (r < 0) {
		bid_error_about(name, r, "%s: lower store '%s'", r == -ENOENT ? "no such directory" : strerror(-r), name);
		return r == -ENOENT ? CTL_REFUSED : CTL_TROUBLE;
	}
	return CTL_DONE;
}

static enum ctl_status add_lowers(const struct ctl *ctl, struct bid_store *store)
{
	enum ctl_status status = CTL_DONE;

	bid_store_allow_links(store, (const char *const *)ctl->links);
	if (ctl->require_signed)
		bid_store_require_signed(store);
	for (size_t i = 0; i < ctl->lowers.n && status == CTL_DONE; i++)
		status = add_lower(store, ctl->lowers.at[i]);
	return status;
}

/* Open an empty store that has no name: lower stores need a store above them, and reading makes none. */
static int open_empty(struct bid_store **ret_store)
{
	char path[] = "/tmp/bidctl-XXXXXX";
	int r;

	if (!mkdtemp(path))
		return -errno;
	r = bid_store_open(path, 0, ret_store);
	rmdir(path);
	return r;
}

/* Does the lower store @path deny reading the artifact? */
static bool is_denied(const struct ctl *ctl, const char *path, const struct bid_artifact *artifact)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	ctl_auto_store struct bid_store *store = NULL;

	if (open_empty(&store) < 0)
		return false;
	bid_store_allow_links(store, (const char *const *)ctl->links);
	return bid_store_add_lower(store, path) == 0 && bid_store_find(store, artifact, BID_MAY_DERIVE, &file) == -EACCES;
}

void ctl_find_denier(const struct ctl *ctl, const struct bid_artifact *artifact, char ret_path[static PATH_MAX])
{
	for (size_t i = 0; i <= ctl->lowers.n; i++) {
		const char *name = i < ctl->lowers.n ? ctl->lowers.at[i] : BID_LOWER_DEBUGINFOD;

		if (bid_store_lower_path(name, ret_path, PATH_MAX) > 0 && is_denied(ctl, ret_path, artifact))
			return;
	}
	if (ctl_store_path(ctl, ret_path, PATH_MAX) != CTL_DONE)
		*ret_path = '\0';
}

enum ctl_status ctl_open_store(const struct ctl *ctl, enum ctl_open how, struct bid_store **ret_store)
{
	unsigned writing = BID_STORE_WRITE | (ctl->store ? 0 : BID_STORE_CREATE);
	bool reading = how == CTL_READ || how == CTL_READ_ITSELF;
	char path[PATH_MAX];
	enum ctl_status status;
	int r;

	status = ctl_store_path(ctl, path, sizeof(path));
	if (status != CTL_DONE)
		return status;

	r = bid_store_open(path, reading ? 0 : writing, ret_store);
	if (r == -ENOENT && !ctl->store && reading) {
		if (ctl->lowers.n == 0) {
			*ret_store = NULL;
			return CTL_DONE;
		}
		r = open_empty(ret_store);
	}
	if ((is_unwritable(r) || r == -ENOTDIR) && how == CTL_WRITE_IF_POSSIBLE)
		r = bid_store_open(path, 0, ret_store);
	if ((is_unwritable(r) || (r == 0 && how == CTL_READ_ITSELF)) && bid_is_mount(path)) {
		bid_error_about(path, -EBUSY, "a mount of bidfs covers the store '%s': unmount it first with 'umount %s'", path,
				path);
		return CTL_TROUBLE;
	}
	if (r < 0) {
		bid_store_refused(r, path);
		return r == -ENOENT ? CTL_REFUSED : CTL_TROUBLE;
	}
	return add_lowers(ctl, *ret_store);
}

enum ctl_status ctl_open_to_find(const struct ctl *ctl, enum ctl_open how, struct bid_store **ret_store)
{
	enum ctl_status status = ctl_open_store(ctl, how, ret_store);

	if (status == CTL_DONE && *ret_store && bid_store_implies_cache(ctl->lowers.at, ctl->lowers.n))
		status = add_lower(*ret_store, BID_LOWER_DEBUGINFOD);
	return status;
}
