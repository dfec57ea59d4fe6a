// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/running.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "base/trouble.h"
#include "ctl/maps.h"
#include "ctl/mounts.h"

void ctl_running_begin(struct ctl_running *running, struct ctl_tally *tally, struct bid_store *store)
{
	*running = (struct ctl_running){ .tally = tally, .store = store, .interrupt = -1 };
	ctl_batch_begin(&running->batch, tally, store);
}

void ctl_running_release(struct ctl_running *running)
{
	ctl_batch_release(&running->batch);
	free(running->mounts);
	ctl_seen_release(&running->seen);
}

/* Does it run from the store, or from a mount of one? */
static bool is_ours(const struct ctl_running *running, dev_t dev, const char *path)
{
	size_t len = strlen(bid_store_path(running->store));

	if (strncmp(path, bid_store_path(running->store), len) == 0 && path[len] == '/')
		return true;
	for (size_t i = 0; i < running->n_mounts; i++)
		if (running->mounts[i] == dev)
			return true;
	return false;
}

static bool is_interrupted(const struct ctl_running *running)
{
	struct pollfd fd = { .fd = running->interrupt, .events = POLLIN };

	return running->interrupt >= 0 && poll(&fd, 1, 0) > 0;
}

static const char *reason(const struct ctl_running *running, int error)
{
	switch (error) {
	case -ENOEXEC:
		return "a program or library inside an archive, of which no build-id is read";
	case -ESTALE:
	case -ENOENT:
		return "replaced or removed, and its mapping may not be read";
	default:
		return ctl_add_reason(error, running->tally->ctl->link);
	}
}

/* Only trouble is an error. @fd is the file, or negative. */
static int refuse(struct ctl_running *running, int fd, const char *path, int error)
{
	bool archive = error == -ENOEXEC;

	/* what a just-in-time compiler has written is code, and no program */
	if (archive && !(fd >= 0 && ctl_mapping_is_archive(fd)))
		return 0;
	running->archives += archive;
	/* for what is too large somebody may make room */
	ctl_tally_refused(running->tally, path, reason(running, error), archive || error == -EFBIG);
	return bid_is_trouble(error) ? error : 0;
}

/* Add the file open at @fd, and say in @seen what it was then. */
static int add(struct ctl_running *running, int fd, const char *path, struct ctl_seen_file *seen)
{
	struct bid_add add = {
		.path = path,
		.fd = fd,
		.link = running->tally->ctl->link,
		.batch = true,
		.clean_before = running->batch.clean_before,
	};
	struct bid_added added;
	struct stat before, after;
	int r;

	if (fstat(fd, &before) < 0)
		return -errno;
	seen->stamp = bid_stamp_take(&before);
	running->tally->seen++;
	r = bid_store_add_file(running->store, &add, &added);
	if (r < 0)
		return refuse(running, fd, path, r);
	/* to be linked into the store changes nothing but ctime; anything else happened to it from outside */
	if (fstat(fd, &after) == 0)
		seen->stamp.changed = after.st_ctim;
	return ctl_batch_put(&running->batch, path, &added);
}

/* It, and nothing else, was looked at before, and did not change since. Looking at a file costs a stat(2) once in a pass. */
static bool is_unchanged(struct ctl_running *running, const struct ctl_mapping *mapping)
{
	struct ctl_seen_file *seen = ctl_seen_find(&running->seen, mapping->dev, mapping->ino);
	struct stat st;

	if (!seen)
		return false;
	if (seen->pass != running->pass) {
		int r = ctl_mapping_stat(mapping, &st);

		if (r == 0 ? seen->unread || !bid_stamp_holds(&seen->stamp, &st) : !seen->unread)
			return false;
		seen->pass = running->pass;
	}
	return true;
}

static int look_at_mapping(void *user, const struct ctl_mapping *mapping)
{
	struct ctl_running *running = user;
	struct ctl_seen_file seen = { .dev = mapping->dev, .ino = mapping->ino, .pass = running->pass };
	bid_auto_fd int fd = -1;
	char path[PATH_MAX];
	struct stat st;
	int r;

	if (is_unchanged(running, mapping) || is_ours(running, mapping->dev, mapping->path))
		return 0;
	if (is_interrupted(running))
		return -EINTR;
	r = ctl_mapping_open(mapping, path);
	/* it has ended, or unmapped this; or what is mapped is a device */
	if (r == -ESRCH || r == -EINVAL || (r < 0 && fstatat(mapping->process, "exe", &st, AT_SYMLINK_NOFOLLOW) < 0))
		return 0;
	if (r >= 0) {
		fd = r;
		r = add(running, fd, path, &seen);
	} else {
		seen.unread = true;
		running->tally->seen++;
		r = refuse(running, -1, path, r);
	}
	return r < 0 ? r : ctl_seen_put(&running->seen, &seen);
}

static int look_at_process(struct ctl_running *running, const char *pid)
{
	int r = ctl_maps_each(pid, look_at_mapping, running);

	running->hidden += r == -EACCES;
	return r == -EACCES || r == -ENOENT ? 0 : r;
}

/* What runs from a mount of bidfs is in a store. */
static int note_mount(void *user, const struct ctl_mount *mount)
{
	struct ctl_running *running = user;
	dev_t *grown = reallocarray(running->mounts, running->n_mounts + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	running->mounts = grown;
	running->mounts[running->n_mounts++] = mount->dev;
	return 0;
}

int ctl_running_all(struct ctl_running *running)
{
	bid_auto_dir DIR *dir = opendir("/proc");
	struct dirent *entry;
	int r;

	if (!dir)
		return -errno;
	running->pass++;
	running->hidden = 0;
	running->n_mounts = 0;
	r = ctl_each_mount(CTL_MOUNTINFO, note_mount, running);
	while (r == 0 && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		r = look_at_process(running, entry->d_name);
		ctl_tally_progress(running->tally, 0);
	}
	ctl_progress_clear(&running->tally->progress);
	return r;
}

int ctl_running_processes(struct ctl_running *running, const pid_t *pids, size_t n)
{
	int r = 0;

	running->pass++;
	for (size_t i = 0; i < n && r == 0; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%d", (int)pids[i]);
		r = look_at_process(running, name);
	}
	return r;
}

int ctl_running_file(struct ctl_running *running, int fd)
{
	struct ctl_seen_file *known, seen = { .pass = running->pass };
	char path[PATH_MAX];
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	known = ctl_seen_find(&running->seen, st.st_dev, st.st_ino);
	if (known && !known->unread && bid_stamp_holds(&known->stamp, &st))
		return 0;
	r = bid_path_of(fd, path, sizeof(path));
	if (r < 0)
		return r;
	if (st.st_nlink == 0)
		bid_path_strip_deleted(path);
	if (is_ours(running, st.st_dev, path))
		return 0;
	seen.dev = st.st_dev;
	seen.ino = st.st_ino;
	r = add(running, fd, path, &seen);
	return r < 0 ? r : ctl_seen_put(&running->seen, &seen);
}

void ctl_running_warn_hidden(const struct ctl_running *running)
{
	if (running->hidden > 0)
		bid_warning("%s: not looked into processes of others: %zu", strerror(EACCES), running->hidden);
}

int ctl_running_settle(struct ctl_running *running)
{
	int r = ctl_batch_settle(&running->batch);

	if (r < 0)
		ctl_seen_release(&running->seen);
	return r;
}
