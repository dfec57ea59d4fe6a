/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The mounts of bidfs in this process's mount namespace. */
#ifndef BID_CTL_MOUNTS_H
#define BID_CTL_MOUNTS_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The remedy for a mount whose store is removed. */
#define CTL_STORE_REMOVED "unmount it, make the store again, and mount it"

#define CTL_MOUNTINFO "/proc/self/mountinfo"

struct ctl_mount {
	uint64_t id; /* the kernel's id, as in statx(2) */
	char point[PATH_MAX];
	char source[PATH_MAX]; /* path of the store */
	uid_t owner; /* whoever mounted it; (uid_t)-1 if the kernel does not tell */
	bool read_only;
	bool whole; /* its root is that of the file system; not a bind mount of a part */
	dev_t dev; /* device number of the files in it */
	char type[64];
};

bool ctl_mount_is_bidfs(const struct ctl_mount *mount);

/* Is @type a file system of this kernel alone, independent of servers and other processes? */
bool ctl_type_is_local(const char *type);

/*
 * Call @fn for every mount of bidfs in this process's mount namespace. A non-zero return ends the loop and is returned. Returns 0
 * or a negative errno otherwise.
 */
int ctl_each_mount(int (*fn)(void *user, const struct ctl_mount *mount), void *user);

/* As ctl_each_mount(), for the mounts at the mount point @name, in any spelling. Returns -ENOENT without such a mount. */
int ctl_each_mount_at(const char *name, int (*fn)(void *user, const struct ctl_mount *mount), void *user);

/* As ctl_each_mount(), for mounts of any type. */
int ctl_each_mount_of_all(int (*fn)(void *user, const struct ctl_mount *mount), void *user);

/*
 * Read the state that @mount reports in .bidfs/status, an object, for the caller to release. Returns 0; -ETIMEDOUT for a daemon
 * without an answer; -EBADMSG for something else than JSON; or as open(2).
 */
int ctl_mount_state(const struct ctl_mount *mount, json_t **ret_state);

/* Return the cause behind errno @error of a report or an order to a mount. Static, or as strerror(3). */
const char *ctl_mount_trouble(int error);

#endif
