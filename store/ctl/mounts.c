// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "ctl/child.h"

enum {
	STATUS_MAX = 4 << 20, /* bytes */
	TIMEOUT_MS = 2000, /* time for a daemon to answer */
};

/* Copy @text, and decode blank, tab, newline and backslash, which the kernel writes as "\ooo". */
static int unescape_path(const char *text, char *ret_path, size_t size)
{
	size_t len = 0;

	while (*text) {
		char c = *text++;

		if (c == '\\' && strspn(text, "01234567") >= 3) {
			c = (char)((text[0] - '0') << 6 | (text[1] - '0') << 3 | (text[2] - '0'));
			text += 3;
		}
		if (len + 1 >= size)
			return -ENAMETOOLONG;
		ret_path[len++] = c;
	}
	ret_path[len] = '\0';
	return 0;
}

/* Does one of both lists of options have "ro"? */
static bool is_read_only(char *options, char *super)
{
	return hasmntopt(&(struct mntent){ .mnt_opts = options }, "ro") || hasmntopt(&(struct mntent){ .mnt_opts = super }, "ro");
}

/* The user_id= among the @options of a FUSE mount, or (uid_t)-1. */
static uid_t read_owner(char *options)
{
	const char *option = hasmntopt(&(struct mntent){ .mnt_opts = options }, "user_id");
	unsigned owner;

	return option && sscanf(option, "user_id=%u", &owner) == 1 ? (uid_t)owner : (uid_t)-1;
}

/* Parse @line in place. Returns false for a damaged line. */
static bool parse_line(char *line, struct ctl_mount *ret_mount)
{
	enum { ID = 0, DEVICE = 2, ROOT = 3, POINT = 4, OPTIONS = 5, FIRST_TAG = 6 };
	char *fields[FIRST_TAG], *field, *type, *source, *super;
	unsigned major, minor;

	for (size_t i = 0; i < FIRST_TAG; i++)
		if (!(fields[i] = strsep(&line, " ")))
			return false;
	/* any number of tags, then a dash */
	while ((field = strsep(&line, " ")) && strcmp(field, "-") != 0)
		;
	type = strsep(&line, " ");
	source = strsep(&line, " ");
	super = strsep(&line, " \n");
	if (!type || !source || !super)
		return false;
	snprintf(ret_mount->type, sizeof(ret_mount->type), "%s", type);
	if (sscanf(fields[ID], "%" SCNu64, &ret_mount->id) != 1 || sscanf(fields[DEVICE], "%u:%u", &major, &minor) != 2)
		return false;
	ret_mount->dev = makedev(major, minor);
	ret_mount->owner = read_owner(super);
	ret_mount->whole = strcmp(fields[ROOT], "/") == 0;
	ret_mount->read_only = is_read_only(fields[OPTIONS], super);
	return unescape_path(fields[POINT], ret_mount->point, sizeof(ret_mount->point)) == 0 &&
	       unescape_path(source, ret_mount->source, sizeof(ret_mount->source)) == 0;
}

bool ctl_mount_is_bidfs(const struct ctl_mount *mount)
{
	return strcmp(mount->type, "fuse.bidfs") == 0;
}

bool ctl_type_is_local(const char *type)
{
	static const char *const types[] = {
		"bcachefs", "btrfs",	"cramfs",  "devtmpfs", "erofs", "exfat",  "ext2",    "ext3",
		"ext4",	    "f2fs",	"iso9660", "jfs",      "ntfs3", "nilfs2", "overlay", "ramfs",
		"rootfs",   "squashfs", "tmpfs",   "ubifs",    "udf",	"vfat",	  "xfs",     "zfs",
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(type, types[i]) == 0)
			return true;
	return false;
}

/* Call @fn for every mount, of bidfs unless @all, at @point if not NULL. Returns -ENOENT without a mount at @point. */
static int each_mount(bool all, const char *point, int (*fn)(void *user, const struct ctl_mount *mount), void *user)
{
	bid_auto_file FILE *file = fopen(CTL_MOUNTINFO, "re");
	bid_auto_free char *line = NULL;
	struct ctl_mount mount;
	size_t room = 0, n = 0;
	int r = 0;

	if (!file)
		return -errno;
	while (r == 0 && getline(&line, &room, file) > 0) {
		if (!parse_line(line, &mount) || (!all && !ctl_mount_is_bidfs(&mount)) ||
		    (point && strcmp(mount.point, point) != 0))
			continue;
		n++;
		r = fn(user, &mount);
	}
	if (r == 0 && ferror(file))
		r = -EIO;
	return r == 0 && n == 0 && point ? -ENOENT : r;
}

int ctl_each_mount(int (*fn)(void *user, const struct ctl_mount *mount), void *user)
{
	return each_mount(false, NULL, fn, user);
}

int ctl_each_mount_at(const char *name, int (*fn)(void *user, const struct ctl_mount *mount), void *user)
{
	bid_auto_free char *path = strdup(name), *real = NULL;
	int r = path ? 0 : -ENOMEM;

	for (size_t len = path ? strlen(path) : 0; len > 1 && path[len - 1] == '/'; len--)
		path[len - 1] = '\0';
	/* first the name as typed: realpath(3) blocks on a stuck daemon, and fails without one */
	if (r == 0)
		r = each_mount(false, path, fn, user);
	if (r == -ENOENT)
		real = realpath(path, NULL);
	return real ? each_mount(false, real, fn, user) : r;
}

int ctl_each_mount_of_all(int (*fn)(void *user, const struct ctl_mount *mount), void *user)
{
	return each_mount(true, NULL, fn, user);
}

struct attribute_copy {
	const char *path;
	int to; /* memory shared with the parent */
};

static int copy_file(void *user)
{
	const struct attribute_copy *copying = user;
	bid_auto_free char *text = NULL;
	size_t len;
	int fd = open(copying->path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : bid_read_file(fd, STATUS_MAX, &text, &len);

	return r == 0 ? bid_pwrite_full(copying->to, text, len, 0) : r;
}

int ctl_mount_state(const struct ctl_mount *mount, json_t **ret_state)
{
	char path[PATH_MAX + sizeof("/.bidfs/status")];
	bid_auto_fd int shared = memfd_create("status", MFD_CLOEXEC);
	struct attribute_copy copying = { .path = path, .to = shared };
	bid_auto_free char *text = NULL;
	json_t *state;
	size_t len;
	int r;

	if (shared < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/.bidfs/status", mount->point);
	r = ctl_child_run(copy_file, &copying, TIMEOUT_MS, -1);
	if (r == 0)
		r = bid_read_file(shared, STATUS_MAX, &text, &len);
	if (r < 0)
		return r;
	state = json_loads(text, 0, NULL);
	if (!json_is_object(state)) {
		json_decref(state);
		return -EBADMSG;
	}
	*ret_state = state;
	return 0;
}

const char *ctl_mount_trouble(int error)
{
	switch (error) {
	case -ETIMEDOUT:
		return "its daemon does not answer";
	case -ENOTCONN:
	case -ECONNABORTED:
		return "its daemon is gone";
	case -EBADMSG:
		return "its daemon answers with something else than JSON";
	default:
		return strerror(-error);
	}
}
