// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * bidctl add --running: whatever a process has mapped as code, read from the mapping where that is allowed. A name is only where
 * the file was once; the mapping is the file, deleted, replaced or in another mount namespace.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/add.h"
#include "ctl/mounts.h"

struct mapping {
	unsigned long long start, end;
	unsigned long long inode;
	unsigned major, minor;
	const char *path; /* as the kernel writes it: relative to the root of the process, perhaps with DELETED behind it */
};

struct seen {
	unsigned long long inode; /* 0: free */
	unsigned major, minor;
};

/* Added, and on disk with the next sync. */
struct taken {
	struct bid_added added;
	char *path; /* owned */
};

struct running {
	struct ctl_tally *tally;
	struct bid_store *store;
	int proc; /* open for the time of the walk */
	struct seen *seen; /* a table of n_slots, a power of two; owned */
	size_t n_seen, n_slots;
	struct taken *taken; /* owned */
	size_t n_taken, room;
	size_t hidden; /* processes that may not be looked into */
	dev_t *mounts; /* of bidfs; owned */
	size_t n_mounts;
	enum ctl_status status;
};

#define DELETED " (deleted)"

static struct seen *slot_of(struct seen *slots, size_t n, const struct mapping *mapping)
{
	size_t at = (size_t)((mapping->inode ^ (unsigned long long)mapping->minor << 40) * 0x9e3779b97f4a7c15U >> 20) & (n - 1);

	while (slots[at].inode &&
	       (slots[at].inode != mapping->inode || slots[at].major != mapping->major || slots[at].minor != mapping->minor))
		at = (at + 1) & (n - 1);
	return &slots[at];
}

static int grow_seen(struct running *running)
{
	size_t n = running->n_slots ? 2 * running->n_slots : 1024;
	struct seen *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < running->n_slots; i++) {
		const struct seen *old = &running->seen[i];

		if (old->inode)
			*slot_of(slots, n,
				 &(struct mapping){ .inode = old->inode, .major = old->major, .minor = old->minor }) = *old;
	}
	free(running->seen);
	running->seen = slots;
	running->n_slots = n;
	return 0;
}

/* 1 if this file comes for the first time, 0 if not, or -ENOMEM. */
static int is_first(struct running *running, const struct mapping *mapping)
{
	struct seen *slot;

	if (2 * running->n_seen >= running->n_slots && grow_seen(running) < 0)
		return -ENOMEM;
	slot = slot_of(running->seen, running->n_slots, mapping);
	if (slot->inode)
		return 0;
	*slot = (struct seen){ .inode = mapping->inode, .major = mapping->major, .minor = mapping->minor };
	running->n_seen++;
	return 1;
}

/* proc(5), "/proc/pid/maps". False for what is no file, or not mapped as code. */
static bool parse(char *line, struct mapping *ret_mapping)
{
	char permissions[8];
	int path = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%llx-%llx %7s %*x %x:%x %llu %n", &ret_mapping->start, &ret_mapping->end, permissions,
		   &ret_mapping->major, &ret_mapping->minor, &ret_mapping->inode, &path) != 6)
		return false;
	ret_mapping->path = line + path;
	return permissions[2] == 'x' && ret_mapping->inode != 0 && ret_mapping->path[0] == '/';
}

/* In maps, and only there, a newline in a path is written as "\012". */
static void unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from;) {
		if (strncmp(from, "\\012", 4) == 0) {
			*to++ = '\n';
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

/* Without the mark, if there is one: it says that the name is gone, which does not matter here. */
static bool strip_deleted(char *path)
{
	size_t len = strlen(path), mark = strlen(DELETED);

	if (len <= mark || strcmp(path + len - mark, DELETED) != 0)
		return false;
	path[len - mark] = '\0';
	return true;
}

/* What nobody can read by accident: opening a device may do something. */
static int open_regular(int dir, const char *name)
{
	struct stat st;
	int fd;

	if (fstatat(dir, name, &st, 0) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* By its name, as the process has it, if that still leads to the file that is mapped. */
static int open_by_path(int process, const struct mapping *mapping, const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	bid_auto_fd int root = openat(process, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bid_auto_fd int fd = -1;
	struct stat st;

	if (root < 0)
		return -errno;
	/* a path first: it costs nothing to open, whatever it is */
	how.flags = O_PATH | O_CLOEXEC;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* some file systems have another device number in maps than in stat(2) */
	if (!S_ISREG(st.st_mode) || st.st_ino != mapping->inode)
		return -ESTALE;
	how.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	bid_close(bid_steal_fd(&fd));
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	return bid_steal_fd(&fd);
}

/* The program itself can be had by whoever may look at the process, even if it was deleted. */
static int open_program(int process, const struct mapping *mapping)
{
	struct stat st;

	if (fstatat(process, "exe", &st, 0) < 0)
		return -errno;
	return st.st_ino == mapping->inode ? open_regular(process, "exe") : -ESTALE;
}

/*
 * Open what is mapped. @path is its path inside the mount namespace of the process. Returns a descriptor, or a negative errno:
 * -ESTALE if only the mapping leads to the file any more, and that may not be followed.
 */
static int open_mapping(int process, const struct mapping *mapping, char path[static PATH_MAX])
{
	char link[64];
	ssize_t len;
	int fd, by_path;

	snprintf(link, sizeof(link), "map_files/%llx-%llx", mapping->start, mapping->end);
	fd = open_regular(process, link);
	len = fd >= 0 ? readlinkat(process, link, path, PATH_MAX - 1) : -1;
	if (len > 0) {
		path[len] = '\0';
		strip_deleted(path);
		return fd;
	}
	bid_close(fd);
	if (strlen(mapping->path) >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(path, mapping->path, strlen(mapping->path) + 1);
	unescape(path);
	by_path = strip_deleted(path) ? -ESTALE : open_by_path(process, mapping, path);
	if (by_path >= 0)
		return by_path;
	fd = open_program(process, mapping);
	return fd >= 0 ? fd : by_path;
}

/* Does it run from the store, or from a mount of one? */
static bool is_ours(const struct running *running, const struct mapping *mapping)
{
	size_t len = strlen(bid_store_path(running->store));

	if (strncmp(mapping->path, bid_store_path(running->store), len) == 0 && mapping->path[len] == '/')
		return true;
	for (size_t i = 0; i < running->n_mounts; i++)
		if (running->mounts[i] == makedev(mapping->major, mapping->minor))
			return true;
	return false;
}

static int remember(struct running *running, const char *path, const struct bid_added *added)
{
	char *copy;

	if (running->n_taken == running->room) {
		size_t room = running->room ? 2 * running->room : 256;
		struct taken *grown = reallocarray(running->taken, room, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		running->taken = grown;
		running->room = room;
	}
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	running->taken[running->n_taken++] = (struct taken){ .added = *added, .path = copy };
	return 0;
}

static const char *reason(const struct running *running, int error)
{
	switch (error) {
	case -ESTALE:
	case -ENOENT:
		return "replaced or removed, and its mapping may not be read";
	default:
		return ctl_add_reason(error, running->tally->ctl->link);
	}
}

static int add_mapping(struct running *running, int process, const struct mapping *mapping)
{
	struct ctl_tally *tally = running->tally;
	char path[PATH_MAX];
	bid_auto_fd int fd = -1;
	struct bid_added added;
	struct stat st;
	int r;

	r = open_mapping(process, mapping, path);
	/* it has ended, or unmapped this; or what is mapped is a device */
	if (r == -ESRCH || r == -EINVAL || (r < 0 && fstatat(process, "exe", &st, AT_SYMLINK_NOFOLLOW) < 0))
		return 0;
	if (r >= 0) {
		fd = r;
		r = bid_store_add_file(running->store,
				       &(struct bid_add){ .path = path, .fd = fd, .link = tally->ctl->link, .batch = true },
				       &added);
	}
	tally->seen++;
	if (r == 0)
		return remember(running, path, &added);
	/* what a just-in-time compiler has written is code, and no program */
	if (r == -ENOEXEC)
		return 0;
	ctl_tally_refused(tally, path, reason(running, r), false);
	return ctl_add_is_refusal(r) ? 0 : r;
}

static int add_process(struct running *running, const char *pid)
{
	bid_auto_fd int process = openat(running->proc, pid, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int maps = process >= 0 ? openat(process, "maps", O_RDONLY | O_CLOEXEC) : -1;
	bid_auto_file FILE *file = maps >= 0 ? fdopen(maps, "re") : NULL;
	bid_auto_free char *line = NULL;
	size_t size = 0;
	int r = 0;

	if (!file) {
		running->hidden += errno == EACCES || errno == EPERM;
		bid_close(maps);
		return 0;
	}
	while (r == 0 && getline(&line, &size, file) > 0) {
		struct mapping mapping;

		if (!parse(line, &mapping))
			continue;
		r = is_first(running, &mapping);
		if (r > 0 && !is_ours(running, &mapping))
			r = add_mapping(running, process, &mapping);
	}
	/* a process that may not be looked into has maps that can be opened, and not read */
	if (ferror(file) && (errno == EACCES || errno == EPERM))
		running->hidden++;
	return r;
}

static int add_processes(struct running *running)
{
	bid_auto_dir DIR *dir = opendir("/proc");
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	running->proc = dirfd(dir);
	while (r == 0 && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		r = add_process(running, entry->d_name);
		ctl_tally_progress(running->tally, 0);
	}
	if (running->hidden > 0)
		bid_warning("%s: %zu processes of others were not looked into", strerror(EACCES), running->hidden);
	return r;
}

/* What runs from a mount of bidfs is in a store. */
static int note_mount(void *user, const struct ctl_mount *mount)
{
	struct running *running = user;
	dev_t *grown = reallocarray(running->mounts, running->n_mounts + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	running->mounts = grown;
	running->mounts[running->n_mounts++] = mount->dev;
	return 0;
}

/* What was added is on disk now, and may be called so; or nothing is. */
static int settle(struct running *running)
{
	int r = running->n_taken > 0 ? bid_store_sync(running->store) : 0;

	for (size_t i = 0; i < running->n_taken; i++) {
		if (r == 0)
			ctl_tally_taken(running->tally, running->taken[i].path, &running->taken[i].added);
		free(running->taken[i].path);
	}
	return r;
}

enum ctl_status ctl_add_running(struct ctl_tally *tally, struct bid_store *store)
{
	struct running running = { .tally = tally, .store = store };
	int r, settled;

	r = ctl_each_mount("/proc/self/mountinfo", note_mount, &running);
	if (r == 0)
		r = add_processes(&running);
	settled = settle(&running);
	free(running.taken);
	free(running.seen);
	free(running.mounts);
	ctl_progress_clear(&tally->progress);
	if (r == 0)
		r = settled;
	if (r < 0) {
		bid_error("%s: adding what runs to '%s'", strerror(-r), bid_store_path(store));
		return CTL_TROUBLE;
	}
	return ctl_add_kernel(tally, store);
}
