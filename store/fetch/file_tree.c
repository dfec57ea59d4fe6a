// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fetch/file_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "base/world_readable.h"

static int open_below(int root, const char *name, int flags, const char *const *links)
{
	struct open_how how = {
		.flags = (unsigned)flags | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, root, name, &how, sizeof(how));

	if (fd < 0 && errno == EXDEV)
		return bid_path_open_linked(root, name, flags, links);
	return fd < 0 ? -errno : (int)fd;
}

static bool has_directory(int root, const char *name, const char *const *links)
{
	bid_auto_fd int fd = open_below(root, name, O_PATH | O_DIRECTORY, links);

	return fd >= 0;
}

/* Format the name of @request in the layout of debuginfod's web API. Returns false if it has none. */
static bool web_name(const struct bid_request *request, const char *hex, char *buf, size_t size)
{
	const char *kind = request->kind == BID_KIND_ELF ? "executable" : bid_kind_name(request->kind);
	const char *subpath = bid_subpath_text(request->subpath);
	int n = snprintf(buf, size, "buildid/%s/%s%s%s", hex, kind, request->kind == BID_KIND_SECTION ? "/" : "", subpath);

	return (size_t)n < size;
}

/* The same in the debuggers' directory. */
static bool debug_name(const struct bid_request *request, const char *hex, char *buf, size_t size)
{
	if (!bid_kind_is_elf(request->kind) || !hex[2])
		return false;
	snprintf(buf, size, ".build-id/%.2s/%s%s", hex, hex + 2, request->kind == BID_KIND_DEBUGINFO ? ".debug" : "");
	return true;
}

/* The same in perf's build-id cache. */
static bool perf_name(const struct bid_request *request, const char *hex, char *buf, size_t size)
{
	if (!bid_kind_is_elf(request->kind) || !hex[2])
		return false;
	snprintf(buf, size, ".build-id/%.2s/%s/%s", hex, hex + 2, bid_kind_store_name(request->kind));
	return true;
}

static int open_regular(int root, const char *const *links, struct bid_file_tree_file *file)
{
	bid_auto_fd int fd = open_below(root, file->name, O_RDONLY | O_NONBLOCK | O_NOCTTY, links);
	struct stat st;

	if (fd < 0)
		return fd == -ENOTDIR ? -ENOENT : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	file->size = (uint64_t)st.st_size;
	file->modified = st.st_mtim.tv_sec;
	file->is_public = bid_is_world_readable(fd, &st, NULL);
	file->fd = bid_steal_fd(&fd);
	return 0;
}

static int find(int root, const struct bid_request *request, const char *const *links, struct bid_file_tree_file *file)
{
	char hex[BID_ID_HEX_MAX];
	int r = -ENOENT;

	bid_id_format(&request->id, hex);
	if (web_name(request, hex, file->name, sizeof(file->name)))
		r = open_regular(root, links, file);
	if (r == -ENOENT && debug_name(request, hex, file->name, sizeof(file->name)))
		r = open_regular(root, links, file);
	/* the object directory at the target of perf's link */
	if (r == -EISDIR && !request->subpath)
		r = -ENOENT;
	if (r == -ENOENT && perf_name(request, hex, file->name, sizeof(file->name)))
		r = open_regular(root, links, file);
	return r;
}

/* Does ENOENT prove absence? Not on FUSE: ENOENT may also mean a server without a response there, see mount.bidfs(8). */
static bool is_final(int root)
{
	struct statfs fs;

	return fstatfs(root, &fs) == 0 && fs.f_type != FUSE_SUPER_MAGIC;
}

/* Is @root on @device? Does not access the file system, because this thread may block it. */
static bool is_on(int root, dev_t device)
{
	struct statx st;

	return statx(root, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
	       makedev(st.stx_dev_major, st.stx_dev_minor) == device;
}

int bid_file_tree_open(const char *path, dev_t own, const struct bid_request *request, const char *const *links,
		       struct bid_file_tree_file *ret_file)
{
	bid_auto_fd int root = -1;
	int r;

	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return errno == ENOENT ? -ENOTDIR : -errno;
	if (own && is_on(root, own))
		return -EDEADLK;
	r = find(root, request, links, ret_file);
	if (r < 0)
		ret_file->name[0] = '\0';
	if (r != -ENOENT)
		return r;
	/* a tree without one file still has a directory */
	if (!has_directory(root, "buildid", links) && !has_directory(root, ".build-id", links))
		return -ENOTDIR;
	ret_file->proves_absence = is_final(root);
	return r;
}

void bid_file_tree_release(struct bid_file_tree_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}
