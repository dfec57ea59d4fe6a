// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A scan: workers walk the tree, examine its files, add them and report them, one at a time. A file is reported as added only when
 * it is on disk: new files wait for a batch, many for one syncfs(2). The calling thread reports the progress.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "api/elf.h"
#include "api/evict.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/local_error.h"
#include "base/log.h"
#include "base/path.h"
#include "base/process.h"
#include "base/stat_data.h"
#include "base/world_readable.h"
#include "disk/beneath.h"
#include "disk/dirwalk.h"
#include "disk/layout.h"
#include "disk/lookup.h"
#include "disk/perf_link.h"
#include "disk/publish/ingest.h"
#include "disk/publish/rights.h"
#include "disk/scan/scan_cache.h"
#include "disk/store.h"

enum {
	JOBS_MAX = 256,
	UNSYNCED_MAX = 8000, /* published, and not on disk yet */
	TICK_MS = 100,
};

/* a file to report */
struct pending {
	STAILQ_ENTRY(pending) next;
	int error;
	struct bid_added added; /* with error 0 */
	bool is_fresh; /* known, but perhaps not on disk before the next sync */
	bool keep; /* save in the cache, under key, after a report without error */
	uint64_t key;
	char path[];
};

STAILQ_HEAD(pending_list, pending);

struct worker {
	struct scan *scan;
	pthread_t thread;
	struct bid_scan_found found;
};

struct scan {
	struct bid_store *store;
	const struct bid_scan_config *config;
	struct bid_scan_cache *cache; /* owned; constant while workers run */
	struct bid_dirwalk *walk; /* owned */
	dev_t dev; /* device of the tree's root */
	dev_t store_dev;
	ino_t store_ino;
	struct worker *workers; /* owned */
	unsigned jobs;
	bool privileged; /* may do without atime */
	atomic_ullong seen, recalled; /* for counts */

	pthread_mutex_t lock; /* protects the fields below; held during a callback */
	pthread_cond_t changed; /* a worker ended */
	struct bid_scan_found committed; /* results */
	struct bid_scan_counts counts;
	struct pending_list unsynced; /* to report after the next sync */
	unsigned n_unsynced;
	int ended; /* error of a sync, or result of a callback, that ended the reports; 0 for none */
	unsigned running; /* workers */
};

/* Does the error end a scan? A failure of the store or the machine does; an unreadable file does not. */
static bool is_fatal(int r)
{
	return bid_is_local_error(r) && r != -EIO;
}

static struct pending *pending_new(const char *dir_path, const char *name)
{
	size_t dir_len = strlen(dir_path), name_len = strlen(name);
	struct pending *pending = calloc(1, sizeof(*pending) + dir_len + name_len + 2);

	if (!pending)
		return NULL;
	memcpy(pending->path, dir_path, dir_len);
	if (name_len > 0)
		pending->path[dir_len++] = '/';
	memcpy(pending->path + dir_len, name, name_len + 1);
	return pending;
}

static void pending_list_release(struct pending_list *list)
{
	struct pending *pending;

	while ((pending = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, next);
		free(pending);
	}
}

static void worker_ends(struct scan *scan)
{
	pthread_mutex_lock(&scan->lock);
	scan->running--;
	pthread_cond_signal(&scan->changed);
	pthread_mutex_unlock(&scan->lock);
}

/* Count, keep and report a finished file, and free it. A non-zero return ends the scan. Under the lock. */
static int report_file(struct scan *scan, struct pending *pending)
{
	struct bid_scan_file file = { .path = pending->path, .error = pending->error, .added = pending->added };
	struct bid_scan_entry entry = {
		.key = pending->key, .what = BID_SCAN_KNOWN, .kind = (uint8_t)pending->added.kind, .id_len = pending->added.id.len
	};
	int r = 0;

	if (pending->error < 0)
		scan->counts.refused++;
	else if (pending->added.known)
		scan->counts.known++;
	else
		scan->counts.added++;
	/* an entry has room for perf's ids alone; a file with a longer one is opened again */
	if (pending->keep && pending->error == 0 && entry.id_len <= sizeof(entry.id)) {
		memcpy(entry.id, pending->added.id.bytes, entry.id_len);
		r = bid_scan_found_add(&scan->committed, &entry, true);
	}
	if (r == 0 && scan->config->file)
		r = scan->config->file(scan->config->user, &file);
	free(pending);
	return r;
}

/* Would the file survive a power cut? */
static bool is_durable(const struct pending *pending)
{
	return pending->error != 0 || (pending->added.known && !pending->is_fresh);
}

/* Sync the files that wait for it, and report them. Under the lock, which is released during the sync. */
static void commit_batch(struct scan *scan)
{
	struct pending_list batch = STAILQ_HEAD_INITIALIZER(batch);
	struct pending *pending;
	int r;

	STAILQ_CONCAT(&batch, &scan->unsynced);
	scan->n_unsynced = 0;
	pthread_mutex_unlock(&scan->lock);
	r = bid_store_sync(scan->store);
	pthread_mutex_lock(&scan->lock);
	if (scan->ended == 0)
		scan->ended = r;
	while (scan->ended == 0 && (pending = STAILQ_FIRST(&batch))) {
		STAILQ_REMOVE_HEAD(&batch, next);
		scan->ended = report_file(scan, pending);
	}
	pending_list_release(&batch);
}

/* Report a file, now or after the next sync. Returns the result that ended the scan, or 0. */
static int push_pending(struct scan *scan, struct pending *pending)
{
	int r;

	pthread_mutex_lock(&scan->lock);
	if (scan->ended != 0) {
		free(pending);
	} else if (is_durable(pending)) {
		scan->ended = report_file(scan, pending);
	} else {
		STAILQ_INSERT_TAIL(&scan->unsynced, pending, next);
		/* the worker that fills a batch waits for it, so that no number of files waits for a slow disk */
		if (++scan->n_unsynced >= UNSYNCED_MAX)
			commit_batch(scan);
	}
	r = scan->ended;
	pthread_mutex_unlock(&scan->lock);
	return r;
}

/* Does @name look like a compressed kernel module or a kernel image? A scan unpacks no other files. */
static bool is_packed_kernel_file(const char *name)
{
	static const char *const suffixes[] = { ".ko.gz", ".ko.xz", ".ko.zst" };
	static const char *const images[] = { "vmlinuz", "bzImage" };
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(images) / sizeof(images[0]); i++)
		if (strncmp(name, images[i], strlen(images[i])) == 0)
			return true;

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t suffix = strlen(suffixes[i]);

		if (len > suffix && memcmp(name + len - suffix, suffixes[i], suffix) == 0)
			return true;
	}
	return false;
}

/* Is the last change so recent that another change could leave the same times? */
static bool is_racy(const struct stat *st)
{
	return bid_stat_data_of(st).racy;
}

static void keep_key(struct pending *pending, const struct bid_dirwalk_file *file, const struct stat *st)
{
	pending->keep = true;
	pending->key = bid_scan_key(file->dir_path, file->note, file->name, st);
}

/*
 * @stored is the stat of the stored file; NULL for a file of a lower store or for none. @st is the stat of a file with a new result
 * to save, else NULL.
 */
static int push_file(struct scan *scan, const struct bid_dirwalk_file *file, int error, const struct bid_added *added,
		     const struct stat *stored, const struct stat *st)
{
	struct pending *pending = pending_new(file->dir_path, file->name);

	if (!pending)
		return -ENOMEM;
	pending->error = error;
	if (added)
		pending->added = *added;
	pending->is_fresh = stored && bid_store_is_fresh(scan->store, stored);
	if (st && !is_racy(st))
		keep_key(pending, file, st);
	return push_pending(scan, pending);
}

/* Format the object directory of the file's own name, "usr/bin/ls/ID". Returns false if it is too long. */
static bool own_objdir(const struct bid_dirwalk_file *file, const struct bid_id *id, char ret_path[static PATH_MAX])
{
	struct bid_id disk_id = bid_layout_disk_id(id);
	char hex[BID_ID_HEX_MAX];
	/* the first character of a directory's path is its slash, and the root's path is empty */
	const char *dir = *file->dir_path ? file->dir_path + 1 : "";

	return snprintf(ret_path, PATH_MAX, "%s%s%s/%s", dir, *dir ? "/" : "", file->name, bid_id_format(&disk_id, hex)) < PATH_MAX;
}

/* Stat the artifact under the file's own name in the store. */
static int stat_stored(struct scan *scan, const struct bid_dirwalk_file *file, const struct bid_id *id, enum bid_kind kind,
		       struct stat *ret_stat)
{
	char objdir[PATH_MAX], path[BID_LAYOUT_FILE_MAX];

	if (!own_objdir(file, id, objdir))
		return -ENAMETOOLONG;
	return bid_beneath_stat(scan->store->root, bid_layout_file(objdir, kind, path), ret_stat);
}

/*
 * Does perf's link for @id lead to the file's own name, or to another path of the build? Without the link no reader finds the
 * build, and behind a link to a download it has no path.
 */
static bool is_linked(struct scan *scan, const struct bid_dirwalk_file *file, const struct bid_id *id)
{
	struct bid_id disk_id = bid_layout_disk_id(id);
	char link[BID_LAYOUT_MAX], own[PATH_MAX], target[PATH_MAX];
	bid_auto_fd int fanout = -1;
	enum bid_perf_link_state state;
	const char *name;

	if (!own_objdir(file, id, own) ||
	    bid_beneath_parent(scan->store->root, bid_layout_link(&disk_id, link), O_PATH, &fanout, &name) < 0)
		return false;
	if (bid_perf_link_points_to(fanout, &disk_id, own))
		return true;
	state = bid_perf_link_look_in(scan->store, fanout, &disk_id, target);
	return state != BID_PERF_LINK_NONE && state != BID_PERF_LINK_DANGLING && state != BID_PERF_LINK_MISMATCHED &&
	       !(state == BID_PERF_LINK_GOOD && bid_is_unnamed(target));
}

/* Is the file in the store? @ret_stat is zero if only a lower store has it. */
static bool is_stored(struct scan *scan, const struct bid_dirwalk_file *file, const struct bid_id *id, enum bid_kind kind,
		      struct stat *ret_stat)
{
	struct bid_artifact artifact = { .id = *id, .kind = kind };
	int kinds;

	if (kind == BID_KIND_ELF && stat_stored(scan, file, id, kind, ret_stat) == 0)
		return S_ISREG(ret_stat->st_mode) && is_linked(scan, file, id);
	/* another name of the build proves nothing: a user may have removed this name */
	if (kind == BID_KIND_ELF)
		return false;
	/* a debug file lies beside its ELF file */
	kinds = bid_store_kinds(scan->store, id);
	if (kinds < 0 || !(kinds & 1 << kind))
		return false;
	/* it may have been evicted and fetched again since the scan that added it, perhaps with other bytes */
	if (bid_store_is_download(scan->store, &artifact))
		return false;
	if (bid_lookup_stat(scan->store, &artifact, ret_stat) < 0)
		*ret_stat = (struct stat){ 0 };
	return true;
}

/* Look the file up in the results of an earlier scan. Returns 1 if they suffice. */
static int recall_file(struct scan *scan, struct worker *worker, const struct bid_dirwalk_file *file)
{
	const struct bid_scan_entry *entry;
	struct stat st;
	int r = 0;

	if (fstatat(file->dir, file->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	entry = bid_scan_cache_find(scan->cache, bid_scan_key(file->dir_path, file->note, file->name, &st));
	if (!entry)
		return 0;
	if (entry->what == BID_SCAN_KNOWN) {
		struct bid_added added = { .kind = (enum bid_kind)entry->kind, .known = true };
		struct stat stored;

		if ((added.kind != BID_KIND_ELF && added.kind != BID_KIND_DEBUGINFO) || entry->id_len > sizeof(entry->id) ||
		    bid_id_from_bytes(entry->id, entry->id_len, &added.id) < 0 ||
		    !is_stored(scan, file, &added.id, added.kind, &stored))
			return 0;
		r = push_file(scan, file, 0, &added, &stored, NULL);
	} else if (entry->what == BID_SCAN_NO_ID) {
		r = push_file(scan, file, -ENODATA, NULL, NULL, NULL);
	}
	if (r == 0)
		r = bid_scan_found_add(&worker->found, entry, false);
	atomic_fetch_add_explicit(&scan->seen, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&scan->recalled, 1, memory_order_relaxed);
	return r < 0 ? r : 1;
}

/* Save that the file has no build-id. */
static int keep_result(struct worker *worker, const struct bid_dirwalk_file *file, const struct stat *st, enum bid_scan_what what)
{
	struct bid_scan_entry entry = { .key = bid_scan_key(file->dir_path, file->note, file->name, st), .what = what };

	return is_racy(st) ? 0 : bid_scan_found_add(&worker->found, &entry, true);
}

/*
 * Is the ELF file with @id in the store by this very name? With the same inode the id comes from the stored file itself. A copy
 * counts if it has the same size and readers get it. The scan then reads only the id of the file.
 */
static bool is_placed(struct scan *scan, const struct bid_dirwalk_file *file, int fd, const struct bid_id *id,
		      const struct stat *st, struct stat *ret_stored)
{
	struct bid_artifact artifact = { .id = *id, .kind = BID_KIND_ELF };
	struct bid_file found = BID_FILE_NONE;
	bool same;

	if (stat_stored(scan, file, id, BID_KIND_ELF, ret_stored) < 0)
		return false;
	/* the file may grant privileges by now, or lie in a private directory; perf links all files */
	if (bid_same_inode(ret_stored, st))
		return is_linked(scan, file, id) && !bid_rights_given(fd, st) && file->note == 0 &&
		       (!bid_store_is_download(scan->store, &artifact) || bid_store_mark_added(scan->store, &artifact) == 0);
	/* or all users may read the file by now */
	if (ret_stored->st_size != st->st_size ||
	    (bid_mode_is_world_readable(st->st_mode) && !bid_mode_is_world_readable(ret_stored->st_mode)) ||
	    bid_lookup_file(scan->store, &artifact, &found) < 0)
		return false;
	same = bid_same_inode(&found.st, ret_stored) && !found.packed;
	bid_file_release(&found);
	/* a download may have other bytes */
	return same && !bid_store_is_download(scan->store, &artifact);
}

/* Finish adding the file ingest->fd; @st is its earlier stat. */
static int place_file(struct scan *scan, const struct bid_dirwalk_file *file, struct bid_ingest *ingest, struct pending *pending,
		      const struct stat *st)
{
	struct stat after;
	int r = bid_ingest_examine(scan->store, ingest);

	if (r == 0)
		ingest->is_new = bid_lookup_has_image(scan->store, &ingest->info.id) == 0;
	if (r == 0)
		r = bid_ingest_vdso(scan->store, ingest);
	if (r == 0)
		r = bid_ingest_store(scan->store, ingest, scan->config->link, BID_DURABLE_BATCH);
	if (r < 0)
		return r;
	/* linking changes only ctime; any other change came from outside */
	if (!is_racy(st) && fstat(ingest->fd, &after) == 0 && after.st_size == st->st_size &&
	    bid_compare_times(&after.st_mtim, &st->st_mtim) == 0)
		keep_key(pending, file, &after);
	return 0;
}

/* Add the file open at @fd, and take over the descriptor. */
static int add_file(struct scan *scan, const struct bid_dirwalk_file *file, int fd, const struct stat *st)
{
	struct pending *pending = pending_new(file->dir_path, file->name);
	struct bid_ingest ingest = { .by_mode = file->note == 0 };
	int r;

	if (!pending) {
		bid_close(fd);
		return -ENOMEM;
	}
	r = bid_ingest_open(&(struct bid_add){ .path = pending->path, .fd = fd }, &ingest);
	ingest.own_fd = true;
	if (r == 0)
		r = place_file(scan, file, &ingest, pending, st);
	bid_ingest_release(&ingest);
	if (is_fatal(r)) {
		free(pending);
		return r;
	}
	pending->error = r;
	pending->added = ingest.added;
	pending->is_fresh = ingest.is_fresh;
	return push_pending(scan, pending);
}

/* Open the file without changing its access time, if permitted. */
static int open_file(const struct scan *scan, const struct bid_dirwalk_file *file)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = openat(file->dir, file->name, flags | (scan->privileged ? O_NOATIME : 0));

	if (fd < 0 && errno == EPERM && scan->privileged)
		fd = openat(file->dir, file->name, flags);
	return fd < 0 ? -errno : fd;
}

/* Read the magic first: most files are no ELF files, and 4 bytes cost less than the page for an id. */
static int identify_elf(int fd, struct bid_id *ret_id)
{
	char magic[SELFMAG];
	ssize_t n = pread(fd, magic, sizeof(magic), 0);

	if (n < 0)
		return -errno;
	return n == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0 ? bid_elf_build_id(fd, ret_id) : -ENOEXEC;
}

/* Open and examine the file. */
static int examine_file(struct scan *scan, struct worker *worker, const struct bid_dirwalk_file *file)
{
	int opened = open_file(scan, file), r, pushed;
	bid_auto_fd int fd = opened < 0 ? -1 : opened;
	struct bid_added added = { .kind = BID_KIND_ELF, .known = true };
	struct stat st, stored;

	if (opened == -ENOENT || opened == -ELOOP || opened == -ENXIO)
		return 0; /* the file was removed or replaced */
	if (fd >= 0 && fstat(fd, &st) < 0)
		opened = -errno;
	else if (fd >= 0 && !S_ISREG(st.st_mode))
		return 0;
	atomic_fetch_add_explicit(&scan->seen, 1, memory_order_relaxed);
	if (opened < 0)
		return is_fatal(opened) ? opened : push_file(scan, file, opened, NULL, NULL, NULL);

	r = identify_elf(fd, &added.id);
	if (r == 0 && is_placed(scan, file, fd, &added.id, &st, &stored))
		return push_file(scan, file, 0, &added, &stored, &st);
	if (r == 0 || (r == -ENOEXEC && is_packed_kernel_file(file->name)))
		return add_file(scan, file, bid_steal_fd(&fd), &st);
	if (r == -ENOEXEC)
		return keep_result(worker, file, &st, BID_SCAN_OTHER);
	if (is_fatal(r))
		return r;
	pushed = push_file(scan, file, r, NULL, NULL, NULL);
	if (pushed == 0 && r == -ENODATA)
		pushed = keep_result(worker, file, &st, BID_SCAN_NO_ID);
	return pushed;
}

/* Handle one file of the tree; @user is the worker. Returns 0, or an error that ends the scan. */
static int scan_file(void *user, const struct bid_dirwalk_file *file)
{
	struct worker *worker = user;
	struct scan *scan = worker->scan;
	int r;

	if (file->type != DT_REG)
		return 0;
	r = bid_scan_cache_is_empty(scan->cache) ? 0 : recall_file(scan, worker, file);
	return r == 0 ? examine_file(scan, worker, file) : r < 0 ? r : 0;
}

/* Is @fd on a file system with generated, perhaps endless, files? */
static bool is_made_up(int fd)
{
	static const long magics[] = {
		PROC_SUPER_MAGIC,    SYSFS_MAGIC,    DEBUGFS_MAGIC,	 TRACEFS_MAGIC,	   CGROUP_SUPER_MAGIC,
		CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,   DEVPTS_SUPER_MAGIC, SECURITYFS_MAGIC, SELINUX_MAGIC,
		PSTOREFS_MAGIC,	     EFIVARFS_MAGIC, NSFS_MAGIC,	 BINFMTFS_MAGIC,
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if ((long)fs.f_type == magics[i])
			return true;
	return false;
}

static int enter_directory(void *user, const char *path, int fd, uint64_t *note, bool *ret_enter)
{
	const struct scan *scan = ((const struct worker *)user)->scan;
	struct stat st;

	if (fstat(fd, &st) < 0 || (st.st_ino == scan->store_ino && st.st_dev == scan->store_dev))
		return 0;
	*note = *note || !bid_dir_is_world_searchable(fd, &st);
	*ret_enter = st.st_dev == scan->dev || (scan->config->cross && !bid_is_in_mount(fd, &st) && !is_made_up(fd));
	return 0;
}

static int push_error(void *user, const char *path, int error)
{
	struct scan *scan = ((const struct worker *)user)->scan;
	struct pending *pending = is_fatal(error) ? NULL : pending_new(path, "");

	if (!pending)
		return is_fatal(error) ? error : -ENOMEM;
	pending->error = error;
	return push_pending(scan, pending);
}

/* The counts so far. Under the lock, or after the end of the workers. */
static const struct bid_scan_counts *counts_of(struct scan *scan)
{
	scan->counts.seen = atomic_load(&scan->seen);
	scan->counts.recalled = atomic_load(&scan->recalled);
	return &scan->counts;
}

static void report_progress(struct scan *scan)
{
	int r = scan->config->progress ? scan->config->progress(scan->config->user, counts_of(scan)) : 0;

	if (r != 0)
		bid_dirwalk_end(scan->walk, r);
}

/* Report the progress until all workers have ended. */
static void await_workers(struct scan *scan)
{
	struct timespec until;

	pthread_mutex_lock(&scan->lock);
	while (scan->running > 0) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += TICK_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&scan->changed, &scan->lock, &until);
		report_progress(scan);
	}
	pthread_mutex_unlock(&scan->lock);
}

static void *run_worker(void *user)
{
	struct worker *worker = user;

	bid_dirwalk_work(worker->scan->walk, worker);
	worker_ends(worker->scan);
	return NULL;
}

/* Run the workers until all have ended, and finish their last files. */
static int run_scan(struct scan *scan)
{
	unsigned started = 0;
	int r = 0;

	for (; started < scan->jobs; started++) {
		struct worker *worker = &scan->workers[started];

		worker->scan = scan;
		r = bid_thread_start(&worker->thread, "bid-scan", run_worker, worker);
		if (r < 0)
			break;
	}
	if (started > 0)
		r = 0; /* fewer do, too */
	for (unsigned i = started; i < scan->jobs; i++)
		worker_ends(scan);
	await_workers(scan);
	for (unsigned i = 0; i < started; i++)
		pthread_join(scan->workers[i].thread, NULL);
	pthread_mutex_lock(&scan->lock);
	if (scan->ended == 0 && scan->n_unsynced > 0)
		commit_batch(scan);
	pthread_mutex_unlock(&scan->lock);
	if (r == 0)
		r = scan->ended;
	/* all workers return the result that ended the dirwalk */
	return r != 0 ? r : bid_dirwalk_work(scan->walk, &scan->workers[0]);
}

/* Save the results. A failure only makes the next scan slower. */
static void save_results(struct scan *scan, const char *path)
{
	bid_auto_free struct bid_scan_found *found = calloc(scan->jobs + 1, sizeof(*found));
	int r = -ENOMEM;

	if (found) {
		for (unsigned i = 0; i < scan->jobs; i++)
			found[i] = scan->workers[i].found;
		found[scan->jobs] = scan->committed;
		r = bid_scan_cache_save(scan->store, scan->cache, found, scan->jobs + 1);
	}
	if (r < 0)
		bid_info("%s: cannot keep the results of '%s' for the next scan", strerror(-r), path);
}

/* Open the root of the tree. @ret_path is its real path. */
static int open_tree(struct scan *scan, const char *path, int *ret_fd, char **ret_path)
{
	bid_auto_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	bid_auto_free char *real = fd >= 0 ? realpath(path, NULL) : NULL;
	size_t len = strlen(bid_store_path(scan->store));
	struct stat st, store;

	if (!real || fstat(fd, &st) < 0 || fstat(scan->store->root, &store) < 0)
		return -errno;
	/*
	 * reading the files of a mount would fetch them, and would add them from the store to the store; those of the store, or of
	 * a directory in it, have other original paths
	 */
	if (bid_is_in_mount(fd, &st) ||
	    (strncmp(real, bid_store_path(scan->store), len) == 0 && (real[len] == '\0' || real[len] == '/')))
		return -ELOOP;
	scan->dev = st.st_dev;
	scan->store_dev = store.st_dev;
	scan->store_ino = store.st_ino;
	*ret_fd = bid_steal_fd(&fd);
	*ret_path = bid_steal(real);
	return 0;
}

static int init_scan(struct scan *scan)
{
	scan->jobs = scan->config->jobs ? scan->config->jobs : bid_cpus();
	if (scan->jobs > JOBS_MAX)
		scan->jobs = JOBS_MAX;
	scan->workers = calloc(scan->jobs, sizeof(*scan->workers));
	if (!scan->workers)
		return -ENOMEM;
	scan->running = scan->jobs;
	scan->privileged = geteuid() == 0;
	STAILQ_INIT(&scan->unsynced);
	pthread_mutex_init(&scan->lock, NULL);
	bid_cond_init(&scan->changed);
	return 0;
}

static void scan_release(struct scan *scan)
{
	for (unsigned i = 0; scan->workers && i < scan->jobs; i++)
		free(scan->workers[i].found.entries);
	free(scan->workers);
	free(scan->committed.entries);
	bid_dirwalk_free(scan->walk);
	pending_list_release(&scan->unsynced);
	bid_scan_cache_free(scan->cache);
	pthread_cond_destroy(&scan->changed);
	pthread_mutex_destroy(&scan->lock);
}

int bid_store_scan(struct bid_store *store, const char *path, const struct bid_scan_config *config,
		   struct bid_scan_counts *ret_counts)
{
	static const struct bid_dirwalk_ops ops = { .enter = enter_directory, .file = scan_file, .error = push_error };
	struct scan scan = { .store = store, .config = config };
	bid_auto_free char *real = NULL;
	bid_auto_fd int fd = -1;
	char below[PATH_MAX + 1];
	int r;

	*ret_counts = scan.counts;
	if (!bid_store_writable(store))
		return -EROFS;
	r = init_scan(&scan);
	if (r < 0)
		return r;
	r = open_tree(&scan, path, &fd, &real);
	if (r == 0)
		r = bid_scan_cache_load(store, real, &scan.cache);
	if (r == 0) {
		snprintf(below, sizeof(below), "%s/", real);
		r = bid_dirwalk_new(bid_steal_fd(&fd), strcmp(real, "/") == 0 ? "" : real,
				    !bid_path_is_world_searchable(below, bid_store_path(store)), &ops, &scan.walk);
	}
	if (r == 0)
		r = run_scan(&scan);
	if (r == 0)
		save_results(&scan, real);
	*ret_counts = *counts_of(&scan);
	scan_release(&scan);
	return r;
}
