// SPDX-License-Identifier: LGPL-2.1-or-later
/* One file of a scan: find its id with as few system calls as possible. */
#include "disk/scan/scan.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/elf.h"
#include "api/evict.h"
#include "base/access.h"
#include "base/cleanup.h"
#include "base/stamp.h"
#include "disk/beneath.h"
#include "disk/dirs.h"
#include "disk/find.h"
#include "disk/layout.h"
#include "disk/links.h"
#include "disk/publish/replace.h"
#include "disk/record.h"
#include "disk/store.h"

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
	return bid_stamp_take(st).racy;
}

/* @stored is the stat of the stored file; NULL for a file of a lower store or for none. */
static int push_file(struct bid_scan *scan, const struct bid_walk_file *file, int error, const struct bid_added *added,
		     const struct stat *stored, const struct bid_scan_key *key)
{
	struct bid_settling *settling = bid_settling_new(file->dir_path, file->name);

	if (!settling)
		return -ENOMEM;
	settling->error = error;
	if (added)
		settling->added = *added;
	settling->is_fresh = stored && bid_store_is_fresh(scan->store, stored);
	if (key) {
		settling->keep = true;
		settling->key = *key;
	}
	bid_settle_push(scan->settle, settling);
	return 0;
}

/* Stat the artifact under the file's own name in the store. */
static int stat_stored(struct bid_scan *scan, const struct bid_walk_file *file, const struct bid_id *id, enum bid_kind kind,
		       struct stat *ret_stat)
{
	bid_auto_kept struct bid_dir dir = BID_DIR_NONE;
	struct bid_id filed = bid_layout_filed(id);
	char path[PATH_MAX], hex[BID_ID_HEX_MAX];
	int r;

	if (snprintf(path, sizeof(path), "%s/%s/%s", file->name, bid_id_format(&filed, hex), bid_kind_store_name(kind)) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	/* the first character of a directory's path is its slash, and the root's path is empty */
	r = bid_dir_open(scan->store, *file->dir_path ? file->dir_path + 1 : ".", false, NULL, &dir);
	return r < 0 ? r : bid_beneath_stat(dir.fd, path, ret_stat);
}

/* Does perf's link for @id lead to the file's own name, or to another existing name? Without the link no reader finds the build. */
static bool is_linked(struct bid_scan *scan, const struct bid_walk_file *file, const struct bid_id *id)
{
	bid_auto_kept struct bid_dir fan = BID_DIR_NONE;
	struct bid_id filed = bid_layout_filed(id);
	char link[BID_LAYOUT_MAX], hex[BID_ID_HEX_MAX], own[PATH_MAX], target[PATH_MAX];
	enum bid_link_state state;

	bid_layout_link(&filed, link);
	*strrchr(link, '/') = '\0';
	if (snprintf(own, sizeof(own), "%s/%s/%s", file->dir_path, file->name, bid_id_format(&filed, hex)) >= (int)sizeof(own) ||
	    bid_dir_open(scan->store, link, false, NULL, &fan) < 0)
		return false;
	if (bid_link_leads(fan.fd, &filed, own + 1))
		return true;
	state = bid_link_look_in(scan->store, fan.fd, &filed, target);
	return state != BID_LINK_NONE && state != BID_LINK_DANGLING && state != BID_LINK_MISMATCHED;
}

/* Is the file in the store? @ret_stat is zero if only a lower store has it. */
static bool is_stored(struct bid_scan *scan, const struct bid_walk_file *file, const struct bid_id *id, enum bid_kind kind,
		      struct stat *ret_stat)
{
	struct bid_request request = { .id = *id, .kind = kind };
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
	/* it may have been evicted and fetched again since the scan that added it */
	if (bid_store_claim(scan->store, &request) < 0)
		return false;
	if (bid_find_stat(scan->store, &request, ret_stat) < 0)
		*ret_stat = (struct stat){ 0 };
	return true;
}

/* Look the file up in the results of an earlier scan. Returns 1 if they suffice. */
static int recall_file(struct bid_scan *scan, struct bid_scan_worker *worker, const struct bid_walk_file *file)
{
	struct bid_scan_result result;
	struct bid_scan_key key;
	struct stat st;
	int r = 0;

	if (fstatat(file->dir, file->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	key = bid_scan_key(file->dir_path, file->note, file->name, &st);
	result = bid_scan_cache_find(scan->cache, &key);
	if (result.what == BID_SCAN_UNKNOWN)
		return 0;
	if (result.what == BID_SCAN_KNOWN) {
		struct bid_added added = { .id = result.id, .kind = result.kind, .known = true };
		struct stat stored;

		if (!is_stored(scan, file, &result.id, result.kind, &stored))
			return 0;
		r = push_file(scan, file, 0, &added, &stored, NULL);
	} else if (result.what == BID_SCAN_NO_ID) {
		r = push_file(scan, file, -ENODATA, NULL, NULL, NULL);
	}
	if (r == 0)
		r = bid_scan_found_add(&worker->found, &key, &result, false);
	atomic_fetch_add_explicit(&worker->seen, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&worker->recalled, 1, memory_order_relaxed);
	return r < 0 ? r : 1;
}

static int keep_result(struct bid_scan_worker *worker, const struct bid_walk_file *file, const struct stat *st, int what)
{
	struct bid_scan_key key = bid_scan_key(file->dir_path, file->note, file->name, st);

	return bid_scan_found_add(&worker->found, &key, &(struct bid_scan_result){ .what = what }, true);
}

/*
 * One sync writes all dirty data. After it, hard links of files without later changes are durable. Syncs once for all files, and
 * only if there is a file to add.
 */
static int clean_store(struct bid_scan *scan, struct timespec *ret_before)
{
	int r = 0;

	pthread_mutex_lock(&scan->clean_lock);
	if (!scan->is_clean) {
		struct timespec before;

		clock_gettime(CLOCK_REALTIME_COARSE, &before);
		r = bid_store_sync(scan->store);
		scan->is_clean = r == 0;
		scan->clean_before = before;
	}
	*ret_before = scan->clean_before;
	pthread_mutex_unlock(&scan->clean_lock);
	return r;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* Mark the ELF file below its original path as added by the user: eviction then spares it, and no lookup is repeated. */
static bool is_claimed(struct bid_store *store, const struct bid_request *request)
{
	struct stat st;

	return bid_record_stat(store, request, &st) == -ENOENT || bid_store_claim(store, request) == 0;
}

/*
 * Is the ELF file with @id in the store by this very name? With the same inode the id comes from the stored file itself. A copy
 * counts if it has the same size and readers get it. The scan then reads only the id of the file.
 */
static bool is_placed(struct bid_scan *scan, const struct bid_walk_file *file, int fd, const struct bid_id *id,
		      const struct stat *st, struct stat *ret_stored)
{
	struct bid_request request = { .id = *id, .kind = BID_KIND_ELF };
	struct bid_file found = BID_FILE_NONE;
	bool same;

	if (stat_stored(scan, file, id, BID_KIND_ELF, ret_stored) < 0)
		return false;
	/* the file may grant privileges by now, or lie in a private directory; perf links all files */
	if (is_same(ret_stored, st))
		return is_linked(scan, file, id) && !bid_rights_given(fd, st) && file->note == 0 &&
		       is_claimed(scan->store, &request);
	/* or all users may read the file by now */
	if (ret_stored->st_size != st->st_size || (bid_all_read(st->st_mode) && !bid_all_read(ret_stored->st_mode)) ||
	    bid_find_stored(scan->store, &request, &found) < 0)
		return false;
	same = is_same(&found.st, ret_stored);
	bid_file_release(&found);
	/* the file is the user's now, and no download */
	return same && is_claimed(scan->store, &request);
}

/* Finish adding the file ingest->fd; @st is its earlier stat. */
static int place_file(struct bid_scan *scan, const struct bid_walk_file *file, struct bid_settling *settling, const struct stat *st)
{
	struct bid_ingest *ingest = settling->ingest;
	struct stat after;
	int r = bid_ingest_examine(scan->store, ingest);

	if (r == 0)
		ingest->is_new = bid_find_has_image(scan->store, &ingest->info.id) == 0;
	if (r == 0 && ingest->is_new && scan->config->link != BID_LINK_COPY)
		r = clean_store(scan, &ingest->clean_before);
	if (r == 0)
		r = bid_ingest_vdso(scan->store, ingest);
	if (r == 0)
		r = bid_ingest_place(scan->store, ingest, scan->config->link, BID_DURABLE_LATER);
	if (r < 0)
		return r;
	/* linking changes only ctime; any other change came from outside */
	settling->keep = !is_racy(st) && fstat(ingest->fd, &after) == 0 && after.st_size == st->st_size &&
			 after.st_mtim.tv_sec == st->st_mtim.tv_sec && after.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
	if (settling->keep)
		settling->key = bid_scan_key(file->dir_path, file->note, file->name, &after);
	return 0;
}

/* Add the file open at @fd, and take over the descriptor. @is_elf: the file is not compressed. */
static int add_file(struct bid_scan *scan, const struct bid_walk_file *file, int fd, const struct stat *st, bool is_elf)
{
	struct bid_settling *settling = bid_settling_new(file->dir_path, file->name);
	struct bid_ingest *ingest = calloc(1, sizeof(*ingest));
	int r;

	if (!settling || !ingest) {
		bid_close(fd);
		free(settling);
		free(ingest);
		return -ENOMEM;
	}
	settling->ingest = ingest;
	r = bid_ingest_open(&(struct bid_add){ .path = settling->path, .fd = fd }, ingest);
	ingest->own_fd = true;
	ingest->is_elf = is_elf;
	ingest->is_reached = file->note == 0;
	if (r == 0)
		r = place_file(scan, file, settling, st);
	if (bid_scan_is_fatal(r)) {
		bid_settling_free(settling);
		return r;
	}
	settling->error = r;
	settling->added = ingest->added;
	settling->is_fresh = ingest->is_fresh;
	if (r < 0 || ingest->stage == BID_INGEST_PLACED) {
		bid_ingest_release(ingest);
		free(ingest);
		settling->ingest = NULL;
	} else {
		/* the file waits for its batch: keep the copy open, close the source */
		bid_close(bid_steal_fd(&ingest->fd));
	}
	bid_settle_push(scan->settle, settling);
	return 0;
}

/* Open the file without changing its access time, if permitted. */
static int open_file(const struct bid_scan *scan, const struct bid_walk_file *file)
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
	return n == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0 ? bid_elf_identify(fd, ret_id) : -ENOEXEC;
}

/* Open and examine the file. */
static int examine_file(struct bid_scan *scan, struct bid_scan_worker *worker, const struct bid_walk_file *file)
{
	int opened = open_file(scan, file), r, pushed;
	bid_auto_fd int fd = opened < 0 ? -1 : opened;
	struct bid_added added = { .kind = BID_KIND_ELF, .known = true };
	struct bid_scan_key key;
	struct stat st, stored;

	if (opened == -ENOENT || opened == -ELOOP || opened == -ENXIO)
		return 0; /* the file was removed or replaced */
	if (fd >= 0 && fstat(fd, &st) < 0)
		opened = -errno;
	else if (fd >= 0 && !S_ISREG(st.st_mode))
		return 0;
	atomic_fetch_add_explicit(&worker->seen, 1, memory_order_relaxed);
	if (opened < 0)
		return bid_scan_is_fatal(opened) ? opened : push_file(scan, file, opened, NULL, NULL, NULL);

	r = identify_elf(fd, &added.id);
	if (r == 0 && is_placed(scan, file, fd, &added.id, &st, &stored)) {
		key = bid_scan_key(file->dir_path, file->note, file->name, &st);
		return push_file(scan, file, 0, &added, &stored, is_racy(&st) ? NULL : &key);
	}
	if (r == 0 || (r == -ENOEXEC && is_packed_kernel_file(file->name)))
		return add_file(scan, file, bid_steal_fd(&fd), &st, r == 0);
	if (r == -ENOEXEC)
		return is_racy(&st) ? 0 : keep_result(worker, file, &st, BID_SCAN_OTHER);
	if (bid_scan_is_fatal(r))
		return r;
	pushed = push_file(scan, file, r, NULL, NULL, NULL);
	if (pushed == 0 && r == -ENODATA && !is_racy(&st))
		pushed = keep_result(worker, file, &st, BID_SCAN_NO_ID);
	return pushed;
}

int bid_scan_one(void *user, const struct bid_walk_file *file)
{
	struct bid_scan_worker *worker = user;
	struct bid_scan *scan = worker->scan;
	int r;

	if (file->type != DT_REG)
		return 0;
	r = bid_scan_cache_is_empty(scan->cache) ? 0 : recall_file(scan, worker, file);
	return r == 0 ? examine_file(scan, worker, file) : r < 0 ? r : 0;
}
