// SPDX-License-Identifier: LGPL-2.1-or-later
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../random.h"
#include "api/evict.h"
#include "api/remove.h"
#include "api/txn.h"
#include "api/written_file.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"

/* The process that adds. */
struct power_worker {
	const struct power_trial *trial;
	struct bid_store *store;
	int pipe;
	uint64_t state; /* state of the random numbers */
	uint32_t number; /* number of the next object */
};

/* Replace the C library's functions, so that a saboteur can disable them. */
bool without_fsync, without_syncfs, without_known, without_write_back;
static bool adds_known; /* at the moment */

int fsync(int fd)
{
	return without_fsync ? 0 : (int)syscall(SYS_fsync, fd);
}

int syncfs(int fd)
{
	return without_fsync || without_syncfs || (without_known && adds_known) ? 0 : (int)syscall(SYS_syncfs, fd);
}

int sync_file_range(int fd, off64_t offset, off64_t n, unsigned flags)
{
	return without_fsync || without_write_back ? 0 : (int)syscall(SYS_sync_file_range, fd, offset, n, flags);
}

/* The next object, as an unsynced file: "DIRECTORY/NUMBER". */
static int make_source(struct power_worker *worker, const char *directory, char *ret_path, size_t size)
{
	struct bid_id id;
	size_t len;
	bid_auto_free char *data = object_make(worker->trial, worker->number, &id, &len);

	snprintf(ret_path, size, "%s/source-%u", directory, worker->number++);
	return object_write(ret_path, data, len);
}

/* Return the number of the object in the file @path. */
static uint32_t number_of(const char *path)
{
	return (uint32_t)strtoul(strrchr(path, '-') + 1, NULL, 10);
}

static int acknowledge(const struct power_worker *worker, const char *path, bool together)
{
	struct acknowledgement acknowledgement = { .number = number_of(path), .together = together };

	return write(worker->pipe, &acknowledgement, sizeof(acknowledgement)) < 0 ? -errno : 0;
}

/* Add the next object alone: from the file system of the store, or from another one. */
static int add(struct power_worker *worker, bool near)
{
	const struct power_trial *trial = worker->trial;
	struct bid_added added;
	char path[PATH_MAX + 32];
	int r = make_source(worker, near ? trial->mountpoint : trial->scratch, path, sizeof(path));

	if (r == 0)
		r = bid_store_add(worker->store, path, BID_LINK_AUTO, &added);
	if (!near || number_of(path) % 3 == 0)
		unlink(path);
	return r < 0 ? r : acknowledge(worker, path, false);
}

/* Several, as "bidctl add FILE..." does: one sync before the report of all. */
static int add_batch(struct power_worker *worker, bool near, unsigned n)
{
	const struct power_trial *trial = worker->trial;
	bid_auto_free char(*paths)[PATH_MAX + 32] = calloc(n, sizeof(*paths));
	int r = paths ? 0 : -ENOMEM;

	for (unsigned i = 0; r == 0 && i < n; i++) {
		struct bid_add file = { .path = paths[i], .fd = -1, .batch = true };
		struct bid_added added;

		r = make_source(worker, near ? trial->mountpoint : trial->scratch, paths[i], sizeof(paths[i]));
		if (r == 0)
			r = bid_store_add_file(worker->store, &file, &added);
	}
	if (r == 0)
		r = bid_store_sync(worker->store);
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = acknowledge(worker, paths[i], true);
	return r;
}

/* Put the file @path into the store as perf does: without a sync. */
static int perf_adds(const struct power_worker *worker, const char *path)
{
	const char *store = worker->trial->store;
	char hex[BID_ID_HEX_MAX], directory[2 * PATH_MAX + 2 * BID_ID_HEX_MAX], file[sizeof(directory) + 8];
	char link[PATH_MAX + 2 * BID_ID_HEX_MAX], target[PATH_MAX + 2 * BID_ID_HEX_MAX];
	bid_auto_free char *data = NULL;
	struct bid_id id;
	size_t len;

	data = object_make(worker->trial, number_of(path), &id, &len);
	bid_id_format(&id, hex);
	snprintf(directory, sizeof(directory), "%s%s/%s", store, path, hex);
	for (char *slash = directory + strlen(store); (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		mkdir(directory, 0755);
		*slash = '/';
	}
	mkdir(directory, 0755);
	snprintf(file, sizeof(file), "%s/elf", directory);
	snprintf(link, sizeof(link), "%s/.build-id", store);
	mkdir(link, 0755);
	snprintf(link, sizeof(link), "%s/.build-id/%.2s", store, hex);
	mkdir(link, 0755);
	snprintf(link, sizeof(link), "%s/.build-id/%.2s/%s", store, hex, hex + 2);
	snprintf(target, sizeof(target), "../..%s/%s", path, hex);
	if (object_write(file, data, len) < 0 || symlink(target, link) < 0)
		return -errno;
	return 0;
}

static int scanned_known(void *user, const struct bid_scan_file *file)
{
	return file->error < 0 ? file->error : !file->added.known ? -EINVAL : acknowledge(user, file->path, false);
}

/* Add @n of perf's files: alone, or by a scan. */
static int add_known(struct power_worker *worker, bool near, unsigned n)
{
	const struct power_trial *trial = worker->trial;
	struct bid_scan_config config = { .jobs = 2, .cross = true, .file = scanned_known, .user = worker };
	struct bid_scan_counts counts;
	struct bid_added added;
	char tree[PATH_MAX], path[PATH_MAX + 32];
	int r;

	snprintf(tree, sizeof(tree), "%.1024s/" OF_PERF "%u", near ? trial->mountpoint : trial->scratch, worker->number);
	r = mkdir(tree, 0755) < 0 ? -errno : 0;
	for (unsigned i = 0; r == 0 && i < n; i++) {
		r = make_source(worker, tree, path, sizeof(path));
		if (r == 0)
			r = perf_adds(worker, path);
	}
	adds_known = true;
	if (r == 0 && n % 2)
		r = bid_store_scan(worker->store, tree, &config, &counts);
	else if (r == 0)
		r = bid_store_add(worker->store, path, BID_LINK_AUTO, &added);
	adds_known = false;
	return r < 0 || n % 2 ? r : !added.known ? -EINVAL : acknowledge(worker, path, false);
}

static int scanned(void *user, const struct bid_scan_file *file)
{
	return file->error < 0 ? file->error : acknowledge(user, file->path, true);
}

/* A tree of several files, whose records go into a pack. */
static int scan(struct power_worker *worker, bool near, unsigned n)
{
	const struct power_trial *trial = worker->trial;
	struct bid_scan_config config = { .jobs = 2, .cross = true, .file = scanned, .user = worker };
	struct bid_scan_counts counts;
	char tree[PATH_MAX], path[PATH_MAX + 32];
	int r;

	snprintf(tree, sizeof(tree), "%.1024s/source-tree-%u", near ? trial->mountpoint : trial->scratch, worker->number);
	r = mkdir(tree, 0755) < 0 ? -errno : 0;
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = make_source(worker, tree, path, sizeof(path));
	return r < 0 ? r : bid_store_scan(worker->store, tree, &config, &counts);
}

static int fetch(struct power_worker *worker, struct bid_id *ret_id)
{
	struct bid_origin origin = { .how = "fetched", .server = "memory" };
	struct bid_artifact artifact = { .kind = BID_KIND_ELF };
	struct bid_file file = BID_FILE_NONE;
	struct bid_txn *txn = NULL;
	size_t len;
	bid_auto_free char *data = object_make(worker->trial, worker->number++, &artifact.id, &len);
	int r = bid_txn_begin(worker->store, &artifact, &txn);

	for (size_t at = 0; r == 0 && at < len; at += 16384)
		r = bid_txn_write(txn, data + at, len - at < 16384 ? len - at : 16384);
	if (r == 0)
		r = bid_txn_commit(txn, &origin, &file);
	bid_file_release(&file);
	bid_txn_free(txn);
	*ret_id = artifact.id;
	return r;
}

/* Write the next object as a program does through a mount. It may be lost, but not torn. */
static int publish_staged(struct power_worker *worker)
{
	struct acknowledgement acknowledgement = { .number = worker->number++, .unsynced = true };
	struct bid_artifact artifact = { .kind = BID_KIND_ELF };
	char hex[BID_ID_HEX_MAX], path[PATH_MAX];
	struct bid_written_file *written;
	size_t len;
	bid_auto_free char *data = object_make(worker->trial, acknowledgement.number, &artifact.id, &len);
	int r = bid_written_file_new(worker->store, &written);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "usr/bin/staged-%u/%s", acknowledgement.number, bid_id_format(&artifact.id, hex));
	r = bid_written_file_write(written, data, len, 0);
	if (r == 0)
		r = bid_written_file_publish(written, &artifact, path);
	bid_written_file_free(written);
	return r < 0 ? r : write(worker->pipe, &acknowledgement, sizeof(acknowledgement)) < 0 ? -errno : 0;
}

/* One operation on a store. */
static int step(struct power_worker *worker)
{
	struct bid_evict_config all = { .limits = { .cache_size = 1 } };
	struct bid_evict_stats evicted;
	struct bid_removal removal = { .id = { 0 } };
	unsigned what = next_random(&worker->state) % 14;
	bool near = next_random(&worker->state) % 5 < 3;
	unsigned n = 2 + next_random(&worker->state) % (TOGETHER_MAX - 1);
	int r;

	if (what < 5)
		return add(worker, near);
	if (what == 5)
		return add_batch(worker, near, n);
	if (what == 6)
		return scan(worker, near, n);
	if (what == 11)
		return add_known(worker, near, n);
	if (what > 11)
		return publish_staged(worker);
	r = fetch(worker, &removal.id);
	if (r == 0 && what == 8) {
		/* the same object, which gets its path now */
		worker->number--;
		r = add(worker, near);
	} else if (r == 0 && what == 9) {
		r = bid_store_evict(worker->store, &all, &evicted);
	} else if (r == 0 && what == 10) {
		r = bid_store_remove(worker->store, &removal, 1);
	}
	return r;
}

void worker_run(const struct power_trial *trial, int pipe)
{
	struct power_worker worker = { .trial = trial, .pipe = pipe, .state = trial->seed };
	int r;

	bid_log_init("power-cut", BID_LOG_ERROR);
	r = bid_store_open(trial->store, BID_STORE_WRITE | (next_random(&worker.state) % 2 ? BID_STORE_NAMED_TEMP : 0),
			   &worker.store);
	while (r == 0 && worker.number + TOGETHER_MAX < OBJECTS_MAX)
		r = step(&worker);
	_exit(0);
}
