// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/add_mapped_code.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/local_error.h"
#include "base/log.h"
#include "base/path.h"
#include "base/stat_data.h"
#include "ctl/child.h"
#include "ctl/mounts.h"
#include "ctl/proc_maps.h"

enum {
	ANSWER_MS = 2000, /* for the first byte of a file on a non-local file system */
	ADD_MS = 60000, /* for adding that file */
	SILENT_MS = 60000, /* pause for a silent file system */
};

enum look_outcome { GONE, SAME, ADDED, REFUSED, FAILED };

/* A file seen before. */
struct seen_file {
	dev_t dev;
	ino_t ino;
	unsigned pass; /* pass of the last look */
	bool unread; /* the file could not be opened, and has no stat data */
	struct bid_stat_data stat_data;
};

/* Result of a look at a file. */
struct ctl_look {
	enum look_outcome outcome;
	int error; /* cause of the refusal or the failure */
	bool archive; /* refused as an archive */
	struct bid_added added;
	struct seen_file seen; /* record for running->seen */
	char path[PATH_MAX];
};

static int by_file(const void *a, const void *b)
{
	const struct seen_file *one = a, *other = b;

	if (one->dev != other->dev)
		return one->dev < other->dev ? -1 : 1;
	return (one->ino > other->ino) - (one->ino < other->ino);
}

static struct seen_file *find_seen(const struct ctl_mapped_code *running, dev_t dev, ino_t ino)
{
	struct seen_file key = { .dev = dev, .ino = ino }, **found = tfind(&key, &running->seen, by_file);

	return found ? *found : NULL;
}

/* Remember @file, in place of an older record. Returns 0 or -ENOMEM. */
static int put_seen(struct ctl_mapped_code *running, const struct seen_file *file)
{
	struct seen_file *copy = malloc(sizeof(*copy)), **found;

	if (!copy)
		return -ENOMEM;
	*copy = *file;
	found = tsearch(copy, &running->seen, by_file);
	if (!found || *found != copy)
		free(copy);
	if (found)
		**found = *file;
	return found ? 0 : -ENOMEM;
}

static void drop_seen(struct ctl_mapped_code *running)
{
	tdestroy(running->seen, free);
	running->seen = NULL;
}

/* The tree of the files of the last pass. */
struct still_running {
	unsigned pass;
	void *seen;
};

static void keep_file(const void *node, VISIT visit, void *user)
{
	struct seen_file *const *file = node;
	struct still_running *still = user;

	if ((visit == postorder || visit == leaf) && ((*file)->pass != still->pass || !tsearch(*file, &still->seen, by_file)))
		free(*file);
}

static void leave_file(void *node)
{
}

/* Forget the files that no process maps any more, which bounds the memory. */
static void forget_ended(struct ctl_mapped_code *running)
{
	struct still_running still = { .pass = running->pass };

	twalk_r(running->seen, keep_file, &still);
	tdestroy(running->seen, leave_file);
	running->seen = still.seen;
}

int ctl_mapped_code_begin(struct ctl_mapped_code *running, struct ctl_add_stats *stats, struct bid_store *store)
{
	void *shared = mmap(NULL, sizeof(struct ctl_look), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	*running = (struct ctl_mapped_code){ .stats = stats, .store = store, .interrupt = -1 };
	if (shared == MAP_FAILED)
		return -errno;
	running->look = shared;
	return 0;
}

void ctl_mapped_code_release(struct ctl_mapped_code *running)
{
	if (running->look)
		munmap(running->look, sizeof(*running->look));
	running->look = NULL;
	if (running->stats)
		ctl_add_stats_forget(running->stats);
	free(running->devices);
	drop_seen(running);
}

/* Does the file belong to the store, or to a mount of one? */
static bool is_ours(const struct ctl_mapped_code *running, dev_t dev, const char *path)
{
	size_t len = strlen(bid_store_path(running->store));

	if (strncmp(path, bid_store_path(running->store), len) == 0 && path[len] == '/')
		return true;
	for (size_t i = 0; i < running->n_devices; i++)
		if (running->devices[i].bidfs && running->devices[i].dev == dev)
			return true;
	return false;
}

/* Is @dev a local file system? Returns false for one outside this process's mount namespace, too. */
static bool is_local(const struct ctl_mapped_code *running, dev_t dev)
{
	for (size_t i = 0; i < running->n_devices; i++)
		if (!running->devices[i].bidfs && running->devices[i].dev == dev)
			return true;
	return false;
}

static bool is_interrupted(const struct ctl_mapped_code *running)
{
	struct pollfd fd = { .fd = running->interrupt, .events = POLLIN };

	return running->interrupt >= 0 && poll(&fd, 1, 0) > 0;
}

static const char *reason_of(const struct ctl_mapped_code *running, const char *path, int error)
{
	switch (error) {
	case -ENOEXEC:
		return "a program or library inside an archive, where bidctl reads no build-id";
	case -ESTALE:
	case -ENOENT:
		return "replaced or removed, and the kernel denies access to its mapping";
	case -ETIMEDOUT:
		return "its file system does not answer";
	default:
		return ctl_add_file_reason(path, error, running->stats->ctl->link);
	}
}

static void note_failure(struct ctl_look *look, int error)
{
	look->outcome = bid_is_local_error(error) ? FAILED : REFUSED;
	look->error = error;
}

/* Add the file open at @fd, which is look->path. Changes nothing but the store and @look. */
static void add_mapped_file(const struct ctl_mapped_code *running, int fd, bool batch, struct ctl_look *look)
{
	struct bid_add add = {
		.path = look->path,
		.fd = fd,
		.link = running->stats->ctl->link,
		.batch = batch,
	};
	struct stat before, after;
	int r;

	if (fstat(fd, &before) < 0) {
		note_failure(look, -errno);
		return;
	}
	look->seen.stat_data = bid_stat_data_of(&before);
	r = bid_store_add_file(running->store, &add, &look->added);
	if (r < 0) {
		look->archive = r == -ENOEXEC && ctl_mapping_is_archive(fd);
		note_failure(look, r);
		return;
	}
	/* linking it into the store changes ctime alone; any other change comes from outside */
	if (fstat(fd, &after) == 0)
		look->seen.stat_data.changed = after.st_ctim;
	look->outcome = ADDED;
}

/* Is this the file of the last look, without a change? */
static bool is_unchanged(const struct seen_file *seen, const struct ctl_mapping *mapping)
{
	struct stat st;
	int r = ctl_mapping_stat(mapping, &st);

	return r == 0 ? !seen->unread && bid_stat_data_is_current(&seen->stat_data, &st) : seen->unread;
}

static void look_at(const struct ctl_mapped_code *running, const struct ctl_mapping *mapping, const struct seen_file *known,
		    bool batch, struct ctl_look *look)
{
	bid_auto_fd int fd = -1;
	struct stat st;

	if (known && is_unchanged(known, mapping)) {
		look->outcome = SAME;
		return;
	}
	fd = ctl_mapping_open(mapping, look->path);
	/* the process has ended or removed the mapping, or a device is mapped */
	if (fd == -ESRCH || fd == -EINVAL || (fd < 0 && fstatat(mapping->process, "exe", &st, AT_SYMLINK_NOFOLLOW) < 0)) {
		look->outcome = GONE;
	} else if (fd < 0) {
		look->seen.unread = true;
		note_failure(look, fd);
	} else {
		add_mapped_file(running, fd, batch, look);
	}
}

/* Arguments of a child. */
struct errand {
	const struct ctl_mapped_code *running;
	const struct ctl_mapping *mapping;
	const struct seen_file *known;
};

/* Read a byte of the file, to see whether its file system responds. */
static int touch_in_child(void *user)
{
	const struct errand *errand = user;
	char path[PATH_MAX], byte;
	bid_auto_fd int fd = ctl_mapping_open(errand->mapping, path);

	if (fd >= 0)
		(void)!pread(fd, &byte, 1, 0);
	return 0;
}

static int look_in_child(void *user)
{
	const struct errand *errand = user;

	look_at(errand->running, errand->mapping, errand->known, false, errand->running->look);
	return 0;
}

/* As look_at(), in a child, for a file system that may never respond. */
static int look_from_afar(struct ctl_mapped_code *running, const struct ctl_mapping *mapping, const struct seen_file *known)
{
	struct errand errand = { .running = running, .mapping = mapping, .known = known };
	struct ctl_look *look = running->look;
	bool left_alone = running->silent == mapping->dev && bid_clock_ms() < running->silent_ms;
	int r = left_alone ? -ETIMEDOUT : ctl_child_run(touch_in_child, &errand, ANSWER_MS, running->interrupt);

	if (r == 0)
		r = ctl_child_run(look_in_child, &errand, ADD_MS, running->interrupt);
	if (r != -ETIMEDOUT)
		return r;
	if (!left_alone) {
		running->silent = mapping->dev;
		running->silent_ms = bid_clock_ms() + SILENT_MS;
	}
	look->seen.unread = true;
	look->outcome = known && known->unread ? SAME : REFUSED;
	look->error = r;
	snprintf(look->path, sizeof(look->path), "%s", mapping->path);
	return 0;
}

/* Record the result of a look. Returns 0, or a negative errno of the store. */
static int take_look(struct ctl_mapped_code *running, const struct ctl_look *look)
{
	bool silent = look->error == -ETIMEDOUT;
	int r = 0;

	if (look->outcome == GONE)
		return 0;
	running->stats->seen += look->outcome != SAME;
	if (look->outcome == FAILED || look->outcome == REFUSED) {
		/* other code without ELF is a compiler's output; the user can make room for a file that is too large */
		if (look->error != -ENOEXEC || look->archive)
			ctl_add_stats_refused(running->stats, look->path, look->error, reason_of(running, look->path, look->error),
					      look->archive || silent || look->error == -EFBIG);
		running->passed_over += look->archive || silent;
		r = look->outcome == FAILED ? look->error : 0;
	} else if (look->outcome == ADDED) {
		r = ctl_add_stats_defer(running->stats, look->path, &look->added);
	}
	return r < 0 ? r : put_seen(running, &look->seen);
}

static int look_at_mapping(void *user, const struct ctl_mapping *mapping)
{
	struct ctl_mapped_code *running = user;
	struct ctl_look *look = running->look;
	struct seen_file *known = find_seen(running, mapping->dev, mapping->ino);
	int r = 0;

	/* one stat(2) for each file and pass */
	if ((known && known->pass == running->pass) || is_ours(running, mapping->dev, mapping->path))
		return 0;
	if (is_interrupted(running))
		return -EINTR;
	*look = (struct ctl_look){ .outcome = GONE, .seen = { .dev = mapping->dev, .ino = mapping->ino, .pass = running->pass } };
	if (is_local(running, mapping->dev))
		look_at(running, mapping, known, true, look);
	else
		r = look_from_afar(running, mapping, known);
	if (r == 0 && look->outcome == SAME) {
		known->pass = running->pass;
		return 0;
	}
	return r < 0 ? r : take_look(running, look);
}

static int look_at_process(struct ctl_mapped_code *running, const char *pid)
{
	int r = ctl_maps_each(pid, look_at_mapping, running);

	running->hidden += r == -EACCES;
	return r == -EACCES || r == -ENOENT ? 0 : r;
}

/* Collect local file systems, and mounts of bidfs, whose files are in a store. */
static int note_device(void *user, const struct ctl_mount *mount)
{
	struct ctl_mapped_code *running = user;
	bool bidfs = ctl_mount_is_bidfs(mount);
	struct ctl_device *grown;

	if (!bidfs && !ctl_type_is_local(mount->type))
		return 0;
	grown = reallocarray(running->devices, running->n_devices + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	running->devices = grown;
	running->devices[running->n_devices++] = (struct ctl_device){ .dev = mount->dev, .bidfs = bidfs };
	return 0;
}

int ctl_mapped_code_all(struct ctl_mapped_code *running)
{
	bid_auto_dir DIR *dir = opendir("/proc");
	struct dirent *entry;
	int r;

	if (!dir)
		return -errno;
	running->pass++;
	running->hidden = 0;
	running->n_devices = 0;
	r = ctl_each_mount_of_all(note_device, running);
	while (r == 0 && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		r = look_at_process(running, entry->d_name);
		ctl_add_stats_progress(running->stats, 0);
	}
	if (r == 0)
		forget_ended(running);
	ctl_progress_clear(&running->stats->progress);
	return r;
}

int ctl_mapped_code_processes(struct ctl_mapped_code *running, const pid_t *pids, size_t n)
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

int ctl_mapped_code_file(struct ctl_mapped_code *running, int fd)
{
	struct ctl_look *look = running->look;
	struct seen_file *known;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	known = find_seen(running, st.st_dev, st.st_ino);
	if (known && !known->unread && bid_stat_data_is_current(&known->stat_data, &st))
		return 0;
	*look = (struct ctl_look){ .seen = { .dev = st.st_dev, .ino = st.st_ino, .pass = running->pass } };
	r = bid_path_of(fd, look->path, sizeof(look->path));
	if (r < 0)
		return r;
	/* looked at again, because the program may be deleted meanwhile */
	if (fstat(fd, &st) == 0 && st.st_nlink == 0)
		bid_path_strip_deleted(look->path);
	if (is_ours(running, st.st_dev, look->path))
		return 0;
	add_mapped_file(running, fd, true, look);
	return take_look(running, look);
}

void ctl_mapped_code_warn_hidden(const struct ctl_mapped_code *running)
{
	if (running->hidden > 0)
		bid_warning("%s: skipped the processes of other users: %zu", strerror(EACCES), running->hidden);
}

int ctl_mapped_code_commit(struct ctl_mapped_code *running)
{
	int r = ctl_add_stats_sync(running->stats, running->store);

	if (r < 0)
		drop_seen(running);
	return r;
}

int ctl_mapped_code_end(struct ctl_mapped_code *running, int r)
{
	int committed = ctl_mapped_code_commit(running);

	ctl_mapped_code_release(running);
	ctl_progress_clear(&running->stats->progress);
	return r < 0 ? r : committed;
}
