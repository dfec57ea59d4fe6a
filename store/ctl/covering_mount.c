// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/covering_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/path.h"
#include "ctl/mounts.h"

enum {
	INFO_MAX = 4 * 1024 * 1024,
	CACHED_MS = 1010, /* the kernel caches absent names for a second at most: mount.bidfs(8) */
};

/* Is @mount the one with the number at @id, with a silent daemon? */
static int is_silent_cover(void *user, const struct ctl_mount *mount)
{
	const uint64_t *id = user;
	json_t *state = NULL;
	bool silent = mount->id == *id && ctl_mount_state(mount, &state) == -ETIMEDOUT;

	json_decref(state);
	return silent;
}

bool ctl_covering_mount_is_silent(const char *path)
{
	struct statx stx;
	uint64_t id;

	/* this statx(2) needs no response of the daemon */
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_MNT_ID, &stx) < 0 || !(stx.stx_mask & STATX_MNT_ID))
		return false;
	id = stx.stx_mnt_id;
	return ctl_each_mount(is_silent_cover, &id) > 0;
}

json_t *ctl_covering_mount_state(const char *path)
{
	struct ctl_mount mount = { 0 };
	json_t *state = NULL;

	if (!bid_is_mount(path))
		return NULL;
	snprintf(mount.point, sizeof(mount.point), "%s", path);
	return ctl_mount_state(&mount, &state) == 0 ? state : json_object();
}

/* Open the file @name of @id in the mount @path. */
static int open_in(const char *path, const struct bid_id *id, const char *name)
{
	char hex[BID_ID_HEX_MAX], file[2 * PATH_MAX];
	int fd;

	if (!bid_is_mount(path))
		return -ENOENT;
	snprintf(file, sizeof(file), "%s/buildid/%s/%s", path, bid_id_format(id, hex), name);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int ctl_covering_mount_info(const char *path, const struct bid_id *id, char **ret_text)
{
	bid_auto_fd int fd = open_in(path, id, "info");
	size_t len;
	int r = fd < 0 ? fd : bid_read_file(fd, INFO_MAX, ret_text, &len);

	if (r == 0 && len > 0 && (*ret_text)[len - 1] == '\n')
		(*ret_text)[len - 1] = '\0';
	return r;
}

int ctl_covering_mount_open(const char *path, const struct bid_artifact *artifact, struct bid_file *ret_file)
{
	const char *subpath = bid_subpath_text(artifact->subpath);
	char name[BID_SUBPATH_MAX + 16];
	struct bid_file file = { .kind = artifact->kind };
	char kind[16] = "";

	/* the subpath of a source is an absolute path */
	snprintf(name, sizeof(name), "%s%s%s", bid_kind_name(artifact->kind), *subpath && *subpath != '/' ? "/" : "", subpath);
	file.fd = open_in(path, &artifact->id, name);
	if (file.fd < 0)
		return file.fd;
	if (fstat(file.fd, &file.st) < 0 || !S_ISREG(file.st.st_mode)) {
		bid_file_release(&file);
		return -ENOENT;
	}
	/* an ELF file may be its own debuginfo */
	if (fgetxattr(file.fd, "user.bidfs.kind", kind, sizeof(kind) - 1) > 0 && bid_kind_parse(kind) != BID_KIND_NONE)
		file.kind = bid_kind_parse(kind);
	*ret_file = file;
	return 0;
}

json_t *ctl_covering_mount_responses(const char *path, const struct bid_id *id)
{
	bid_auto_free char *text = malloc(XATTR_SIZE_MAX);
	char hex[BID_ID_HEX_MAX], dir[2 * PATH_MAX];
	json_t *responses = NULL;
	ssize_t len = -1;

	snprintf(dir, sizeof(dir), "%s/buildid/%s", path, bid_id_format(id, hex));
	if (text && bid_is_mount(path))
		len = getxattr(dir, "user.bidfs.responses", text, XATTR_SIZE_MAX);
	if (len > 0)
		responses = json_loadb(text, (size_t)len, 0, NULL);
	return responses ? responses : json_array();
}

int ctl_covering_mount_refresh(const char *path, const struct bid_artifact *artifact, bool accept)
{
	const char *subpath = bid_subpath_text(artifact->subpath);
	char hex[BID_ID_HEX_MAX], dir[PATH_MAX + sizeof("/.bidfs")], value[BID_ID_HEX_MAX + BID_SUBPATH_MAX + 16];
	int len;

	if (!bid_kind_fetchable(artifact->kind) || !bid_is_mount(path))
		return 0;
	snprintf(dir, sizeof(dir), "%s/.bidfs", path);
	len = snprintf(value, sizeof(value), "%s/%s%s%s", bid_id_format(&artifact->id, hex), bid_kind_name(artifact->kind),
		       artifact->kind == BID_KIND_SECTION ? "/" : "", subpath);
	return setxattr(dir, accept ? "user.bidfs.accept" : "user.bidfs.refresh", value, (size_t)len, 0) < 0 ? -errno : 0;
}

void ctl_covering_mount_wait(const char *path)
{
	if (bid_is_mount(path))
		nanosleep(&(struct timespec){ .tv_sec = CACHED_MS / 1000, .tv_nsec = CACHED_MS % 1000 * 1000000 }, NULL);
}

const char *ctl_covering_mount_refusal(int error)
{
	switch (-error) {
	case EROFS:
		return "the mount that covers the store is read-only, and takes no order to ask its servers again - mount it "
		       "without 'ro', or unmount it";
	case EACCES:
	case EPERM:
		return "the mount that covers the store takes orders of its owner and of root alone";
	case EOPNOTSUPP:
		return "the mount that covers the store is of an older version, which takes no order to ask its servers again - "
		       "mount it anew";
	default:
		return NULL;
	}
}

bool ctl_covering_mount_is_offline(const json_t *state)
{
	return json_is_true(json_object_get(state, "offline")) && json_array_size(json_object_get(state, "servers")) > 0;
}
