// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl offline */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/mounts.h"
#include "ctl/output.h"

struct mount_order {
	bool all; /* no mount is named */
	const char *store; /* real path: order the mounts of this store alone; NULL for all */
	bool offline; /* the ordered state */
	const struct ctl *ctl;
	size_t n;
	enum ctl_status status; /* the worst status */
};

/* Return why the mount refuses an order with @error; NULL for trouble. */
static const char *why_refused(int error)
{
	switch (error) {
	case -EROFS:
		return "it is read-only here, and takes no orders";
	case -EACCES:
	case -EPERM:
		return "it takes orders of its owner alone, and of root with 'allow_other'";
	case -EOPNOTSUPP:
		return "it is of an older version, which takes no orders - mount it anew";
	case -EBUSY:
		return "another mount lies over it";
	case -ENOENT:
		return "it shows only a part of a mount";
	default:
		return NULL;
	}
}

/* Does the path of the mount lead to another mount? */
static bool is_covered(const struct ctl_mount *mount)
{
	struct statx stx;

	/* this statx(2) needs no response of the daemon */
	return statx(AT_FDCWD, mount->point, AT_STATX_DONT_SYNC, STATX_MNT_ID, &stx) == 0 && stx.stx_mask & STATX_MNT_ID &&
	       stx.stx_mnt_id != mount->id;
}

/* Order @mount into the state. @ret_state receives its report, from before or after, for the caller to release. */
static int set_offline(const struct ctl_mount *mount, bool offline, json_t **ret_state)
{
	char dir[PATH_MAX + sizeof("/.bidfs")];
	int r;

	if (is_covered(mount))
		return -EBUSY;
	/* a first request with a timeout, because setxattr(2) on a stuck mount never returns */
	r = ctl_mount_state(mount, ret_state);
	if (r < 0)
		return r;
	snprintf(dir, sizeof(dir), "%s/.bidfs", mount->point);
	if (setxattr(dir, "user.bidfs.offline", offline ? "1" : "0", 1, 0) < 0)
		return -errno;
	json_decref(bid_steal(*ret_state));
	return ctl_mount_state(mount, ret_state);
}

/* Return the reason why the mount with @state (may be NULL) uses no server; NULL if it may use its servers. */
static const char *why_silent(const json_t *state)
{
	if (!state)
		return NULL;
	if (json_array_size(json_object_get(state, "servers")) == 0)
		return "it has none";
	return json_is_true(json_object_get(state, "offline")) ? "it is offline" : NULL;
}

/* Report the state. @error is a negative errno after a failure, or 0. */
static void report_mount(struct mount_order *orders, const struct ctl_mount *mount, const char *silent, int error)
{
	const char *trouble = error < 0 ? why_refused(error) : NULL;

	if (error < 0 && !trouble)
		trouble = ctl_mount_trouble(error);
	if (trouble)
		bid_error_about(mount->point, error, "%s", trouble);
	if (!trouble || orders->ctl->json)
		ctl_row(orders->ctl, CTL_TEXT("mount", 30, mount->point),
			CTL_TEXT("state", 7,
				 trouble  ? "failed"
				 : silent ? "offline"
					  : "online"),
			CTL_TEXT("reason", 0, trouble ? trouble : silent));
}

static int order_mount(void *user, const struct ctl_mount *mount)
{
	struct mount_order *orders = user;
	enum ctl_status status;
	json_t *state = NULL;
	const char *silent;
	int r;

	if (orders->store && strcmp(orders->store, mount->source) != 0)
		return 0;
	r = set_offline(mount, orders->offline, &state);
	/* the order goes to the whole mount, at its own mount point */
	if (r == -ENOENT && orders->all)
		return 0;
	orders->n++;
	silent = why_silent(state);
	/* a read-only mount without servers needs no order */
	if (r == 0 || (r == -EROFS && silent)) {
		report_mount(orders, mount, silent, 0);
		status = !silent == !orders->offline ? CTL_DONE : CTL_REFUSED;
	} else {
		report_mount(orders, mount, NULL, r);
		status = why_refused(r) ? CTL_REFUSED : CTL_TROUBLE;
	}
	if (status > orders->status)
		orders->status = status;
	json_decref(state);
	return 0;
}

/* Order the mounts at @name, or all mounts for NULL. */
static void order_named(struct mount_order *orders, const char *name)
{
	enum ctl_status status = CTL_DONE;
	size_t before = orders->n;
	int r;

	orders->all = !name;
	r = name ? ctl_each_mount_at(name, order_mount, orders) : ctl_each_mount(order_mount, orders);
	if (r == -ENOENT || (r == 0 && orders->n == before)) {
		bid_error_about(name ? name : "offline", -ENOENT,
				name ? "no mount of bidfs" : "no mount of bidfs for 'offline' - 'bidctl mount' makes one");
		status = CTL_REFUSED;
	} else if (r < 0) {
		status = ctl_trouble(CTL_MOUNTINFO, r, NULL);
	}
	if (status > orders->status)
		orders->status = status;
}

enum ctl_status ctl_offline(const struct ctl *ctl, int argc, char **argv)
{
	static const char *const words[] = { "off", "on", NULL };
	int word = ctl_word("state", argv[0], words);
	struct mount_order orders = { .ctl = ctl, .offline = word == 1 };
	bid_auto_free char *store = ctl->store && argc == 1 ? realpath(ctl->store, NULL) : NULL;

	if (word < 0)
		return CTL_USAGE;
	for (int i = 1; i < argc; i++)
		order_named(&orders, argv[i]);
	orders.store = store ? store : argc == 1 ? ctl->store : NULL;
	if (argc == 1)
		order_named(&orders, NULL);
	ctl_totals(ctl, CTL_NUMBER("mounts", CTL_HIDDEN, orders.n));
	return orders.status;
}
