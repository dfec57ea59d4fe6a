// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files of recorded builds: add the file at the path if it is still the same build. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/content_key.h"
#include "base/cleanup.h"
#include "base/local_error.h"
#include "base/path.h"
#include "ctl/add.h"
#include "ctl/perf_data.h"
#include "ctl/proc_maps.h"

enum { PAGE_LARGEST = 64 << 10 };

/* Does a file with the id @carried match the recorded build? */
static bool carries_id_of(const struct bid_id *carried, const struct ctl_build *build)
{
	if (bid_id_answers(carried, &build->id))
		return true;
	/* an id without a size may have any padding */
	return !build->sized && carried->len >= CTL_ID_UNIQUE && carried->len < build->id.len &&
	       memcmp(carried->bytes, build->id.bytes, carried->len) == 0;
}

/*
 * Open the path of a file, with O_PATH. With a core file and a process, the path is below the root of the process, such as in a
 * container. Returns a descriptor.
 */
static int open_path(const struct ctl *ctl, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	bid_auto_fd int root = -1;
	int fd;

	if (ctl->core && ctl->pid) {
		root = ctl_process_root(ctl->pid);
		if (root < 0)
			return root;
		fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	} else {
		fd = open(path, O_PATH | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

/* Open a regular file. A recording may name any file; the open(2) of a device may have side effects. */
static int open_regular(const struct ctl *ctl, const char *path, struct stat *ret_st, char ret_name[static BID_FD_PATH_MAX])
{
	bid_auto_fd int path_fd = open_path(ctl, path);
	int fd;

	if (path_fd < 0)
		return path_fd;
	if (fstat(path_fd, ret_st) < 0)
		return -errno;
	if (!S_ISREG(ret_st->st_mode))
		return -ENOENT;
	fd = open(bid_fd_path(path_fd, ret_name), O_RDONLY | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* opens the same file again, even after its path leads elsewhere */
	bid_fd_path(fd, ret_name);
	return fd;
}

/* Open the file at the recorded path. A file deleted at the time of the recording may exist again. */
static int open_build(const struct ctl *ctl, const struct ctl_build *build, struct stat *ret_st,
		      char ret_name[static BID_FD_PATH_MAX])
{
	bid_auto_free char *path = strdup(build->path);
	int fd = path ? open_regular(ctl, path, ret_st, ret_name) : -ENOMEM;

	return fd == -ENOENT && bid_path_strip_deleted(path) ? open_regular(ctl, path, ret_st, ret_name) : fd;
}

static int refuse_build(const struct ctl *ctl, struct ctl_build *build, int error)
{
	build->state = CTL_BUILD_REFUSED;
	build->why = strdup(ctl_add_reason(error, ctl->link));
	return !bid_is_local_error(error) && build->why ? 0 : error;
}

static void note_replaced(struct ctl_build *build, const struct bid_id *found, time_t mtime)
{
	build->state = CTL_BUILD_REPLACED;
	build->looked = true;
	build->found = *found;
	build->mtime = mtime;
}

int ctl_add_build(const struct ctl *ctl, struct bid_store *store, struct ctl_build *build, struct ctl_debug_files *debug_files)
{
	struct bid_added added;
	struct bid_id found = { 0 };
	bid_auto_fd int fd = -1;
	struct stat st;
	char name[BID_FD_PATH_MAX], path[PATH_MAX];
	int r;

	fd = open_build(ctl, build, &st, name);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ENAMETOOLONG || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return refuse_build(ctl, build, fd);
	r = ctl_identify(fd, &found);
	if (r < 0 && r != -ENOEXEC && r != -ENODATA)
		return refuse_build(ctl, build, r);
	if (r < 0 || !carries_id_of(&found, build)) {
		note_replaced(build, &found, st.st_mtime);
		return 0;
	}
	r = bid_store_add(store, name, ctl->link, &added);
	if (r < 0)
		return refuse_build(ctl, build, r);
	if (!carries_id_of(&added.id, build)) {
		note_replaced(build, &added.id, st.st_mtime);
		return 0;
	}
	build->state = added.known ? CTL_BUILD_KNOWN : CTL_BUILD_ADDED;
	if (!debug_files || added.kind != BID_KIND_ELF || bid_path_of(fd, path, sizeof(path)) < 0)
		return 0;
	return ctl_debug_files_want(debug_files, path, &added.id);
}

/* Is the file shorter than its mapping? The last page exceeds the file by less than the largest page size. */
static bool is_shorter(const struct stat *st, const struct ctl_build *build)
{
	return build->mapped > (uint64_t)st->st_size && build->mapped - (uint64_t)st->st_size >= PAGE_LARGEST;
}

int ctl_guess_build(const struct ctl *ctl, struct bid_store *store, struct ctl_build *build, time_t recorded)
{
	struct bid_content_key key;
	struct stat st;
	char name[BID_FD_PATH_MAX], text[BID_CONTENT_KEY_NAME_MAX + 64];
	bid_auto_fd int fd = open_build(ctl, build, &st, name);
	int r;

	if (fd < 0)
		return 0;
	/* files with later changes, or shorter than their mapping, are other builds */
	if ((recorded && st.st_mtime > recorded) || is_shorter(&st, build)) {
		build->why = is_shorter(&st, build) ? strdup("shorter than its recorded mapping") : NULL;
		(void)ctl_identify(fd, &build->found);
		build->looked = true;
		build->mtime = st.st_mtime;
		return 0;
	}
	r = bid_store_keep_content_key(store, name, &key);
	if (r < 0)
		return bid_is_local_error(r) ? r : 0;
	snprintf(text, sizeof(text), "a guess, because it has no build-id: content key %s", key.name);
	build->why = strdup(text);
	build->state = CTL_BUILD_GUESSED;
	return build->why ? 0 : -ENOMEM;
}
