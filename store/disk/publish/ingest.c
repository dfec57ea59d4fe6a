// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ingest: the only way of a local file into the store. The parts are, in this order: the bytes of the file, its names, its way
 * through both, the image of a vDSO, and replacement. add_data.c has data without a file.
 */
#include "disk/publish/ingest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/elf.h"
#include "api/evict.h"
#include "api/remove.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/local_error.h"
#include "base/log.h"
#include "base/path.h"
#include "base/stat_data.h"
#include "base/world_readable.h"
#include "disk/beneath.h"
#include "disk/derive/derive.h"
#include "disk/layout.h"
#include "disk/lookup.h"
#include "disk/objdir.h"
#include "disk/other_paths.h"
#include "disk/perf_link.h"
#include "disk/publish/add_data.h"
#include "disk/publish/merge.h"
#include "disk/publish/publish.h"
#include "disk/publish/replace.h"
#include "disk/publish/rights.h"
#include "disk/record.h"
#include "disk/remove_download.h"
#include "disk/store.h"

enum {
	IMAGE_MAX = 1 << 20, /* bytes of a vDSO */
	LINKS_MAX = 60000, /* ext4 allows 65000; leave some to others */
	COPY_TRIES = 2, /* to have another name, or other rights, changes the times of a file, too */
	TICK_NS = 20 * 1000 * 1000,
	FULL = 1 << 20, /* bytes; with less free space the disk is full for any file */
	PUBLISH_TRIES = 8, /* while others add and remove the same */
};

/* Does another process have the file open for writing? Returns false if the kernel does not say. */
static bool is_open_for_writing(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	/* a caller with a writable descriptor knows its own writes */
	return flags >= 0 && (flags & O_ACCMODE) == O_RDONLY && bid_lease_refused(fd, F_RDLCK);
}

/* Take the state of the file before the copy, for a comparison after it. Waits until a change would show. */
static int begin_copy(int fd, struct stat *ret_st, struct bid_stat_data *ret_stat_data)
{
	for (int attempts = 0; attempts < 2; attempts++) {
		if (fstat(fd, ret_st) < 0)
			return -errno;
		*ret_stat_data = bid_stat_data_of(ret_st);
		if (!ret_stat_data->racy)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = TICK_NS }, NULL);
	}
	return is_open_for_writing(fd) ? -EAGAIN : 0;
}

static uint64_t free_beside(int fd)
{
	struct statvfs space;

	/* a file system without such numbers shows a full disk only by a failing write */
	return fstatvfs(fd, &space) < 0 || space.f_blocks == 0 ? UINT64_MAX : (uint64_t)space.f_bavail * space.f_frsize;
}

/* If the file is too large for the free space, return -EFBIG: smaller files may still fit. */
static int copy_bytes(int from, const struct stat *st, int to, bool reflink)
{
	uint64_t left, needed = (uint64_t)st->st_blocks * 512;
	int r;

	if (reflink)
		return ioctl(to, FICLONE, from) < 0 ? -errno : 0;
	left = free_beside(to);
	if (needed > (uint64_t)st->st_size)
		needed = (uint64_t)st->st_size;
	if (left >= FULL && needed > left)
		return -EFBIG;
	r = bid_copy_file(from, to);
	/* a compressing source file system may count fewer blocks */
	if (r == -ENOSPC && left >= FULL && ftruncate(to, 0) == 0 && free_beside(to) >= FULL)
		r = -EFBIG;
	return r;
}

/* Copy the file into the empty file @to, or share its blocks. Returns as bid_ingest_fill(). */
static int copy_source(struct bid_ingest *ingest, int to, bool reflink)
{
	struct bid_elf_info info;
	struct bid_stat_data stat_data;
	struct stat before, after;

	for (int attempts = 0; attempts < COPY_TRIES; attempts++) {
		int r = begin_copy(ingest->fd, &before, &stat_data);

		if (r == 0 && attempts > 0 && ftruncate(to, 0) < 0)
			r = -errno;
		if (r == 0)
			r = copy_bytes(ingest->fd, &before, to, reflink);
		if (r < 0)
			return r;
		if (fstat(ingest->fd, &after) < 0)
			return -errno;
		if (!bid_stat_data_matches(&stat_data, &after))
			continue;
		if (ingest->info.id.len > 0) {
			r = bid_elf_examine(to, &info);
			if (r < 0 || !bid_id_equal(&info.id, &ingest->info.id))
				return r == -ENOMEM ? r : -EAGAIN; /* the file was replaced before */
		}
		ingest->st = before;
		return 0;
	}
	return -EAGAIN;
}

/* Return the path that the file @fd has or had, even if it is renamed or removed meanwhile. */
static int read_path(int fd, char ret_path[static PATH_MAX])
{
	int r = bid_path_of(fd, ret_path, PATH_MAX);
	struct stat st;

	if (r == 0 && ret_path[0] != '/')
		r = -ENAMETOOLONG;
	if (r == 0 && fstat(fd, &st) == 0 && st.st_nlink == 0)
		bid_path_strip_deleted(ret_path);
	return r;
}

static int unpack_source(struct bid_store *store, struct bid_ingest *ingest)
{
	int r = ingest->temp.fd < 0 ? bid_temp_new(store, false, &ingest->temp) : 0;

	if (r == 0)
		r = bid_elf_unpack_to(ingest->fd, BID_ELF_UNPACKED_MAX, ingest->temp.fd);
	/* -EFBIG is a matter of the free space */
	if (r == -EFBIG)
		r = -E2BIG;
	if (r == 0)
		r = bid_elf_examine(ingest->temp.fd, &ingest->info);
	ingest->packed = true;
	return r;
}

int bid_ingest_examine(struct bid_store *store, struct bid_ingest *ingest)
{
	int r = bid_elf_examine(ingest->fd, &ingest->info), packed = r == -ENOEXEC ? bid_elf_is_packed(ingest->fd) : 0;

	if (packed != 0)
		r = packed < 0 ? packed : unpack_source(store, ingest);
	if (r < 0)
		return r;
	/* an id of one byte has no link in perf's layout: the name of a link is the rest after the first byte */
	return ingest->info.id.len > 1 ? 0 : -ENODATA;
}

int bid_ingest_open(const struct bid_add *add, struct bid_ingest *ingest)
{
	int r = 0;

	ingest->temp = BID_TEMP_NONE;
	ingest->own_fd = add->fd < 0;
	ingest->fd = add->fd < 0 ? open(add->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : add->fd;
	if (ingest->fd < 0 || fstat(ingest->fd, &ingest->st) < 0)
		return -errno;
	if (!S_ISREG(ingest->st.st_mode))
		return -EINVAL;
	if (ingest->own_fd)
		r = read_path(ingest->fd, ingest->path);
	else if (strlen(add->path) >= sizeof(ingest->path))
		r = -ENAMETOOLONG;
	else
		memcpy(ingest->path, add->path, strlen(add->path) + 1);
	if (r < 0)
		return r;
	return bid_layout_is_original(ingest->path) ? 0 : -EINVAL;
}

/* Is the file a file of the store itself, with another path than its source? */
static bool is_own(const struct bid_store *store, const struct bid_ingest *ingest)
{
	size_t len = strlen(bid_store_path(store));

	return strncmp(ingest->path, bid_store_path(store), len) == 0 && ingest->path[len] == '/';
}

int bid_ingest_begin(struct bid_store *store, const struct bid_add *add, struct bid_ingest *ingest)
{
	int r = bid_ingest_open(add, ingest);

	if (r < 0)
		return r;
	/* a file in a mount of bidfs comes from a store, and its path there is another one */
	ingest->is_unnamed = is_own(store, ingest) || bid_is_in_mount(ingest->fd, &ingest->st);
	return bid_ingest_examine(store, ingest);
}

/* May all users read the file at its path? */
static bool is_public(struct bid_store *store, const struct bid_ingest *ingest)
{
	struct stat st;

	if (ingest->by_mode)
		return bid_fstat(ingest->fd, &st) == 0 && bid_mode_is_world_readable(st.st_mode);
	return bid_is_world_readable(ingest->fd, &ingest->st, bid_store_path(store));
}

/*
 * May the store share the file's inode? False for a file whose privileges would survive a security update in the store, and for a
 * file that some users cannot read at its path. True for a file written only for the store.
 */
static bool may_link(struct bid_store *store, const struct bid_ingest *ingest)
{
	const struct stat *st = &ingest->st;

	return ingest->is_ours || (st->st_nlink < LINKS_MAX && !bid_rights_given(ingest->fd, st) && is_public(store, ingest));
}

/*
 * Return the mode of a copy of the file: readable by all users, or only by the adding user. A copy of a file with privileges is not
 * executable.
 */
static mode_t mode_of(struct bid_store *store, const struct bid_ingest *ingest)
{
	if (!is_public(store, ingest))
		return S_IRUSR;
	return ingest->st.st_mode & (bid_rights_given(ingest->fd, &ingest->st) ? 0444 : 0555);
}

/* Let no name that the file gets be on disk before its bytes. */
static int sync_data(int fd, enum bid_durability durability)
{
	if (durability == BID_DURABLE_BATCH)
		return bid_write_back(fd);
	/* a file without support for fsync(2) has no dirty data */
	return fsync(fd) < 0 && errno != EINVAL && errno != EROFS ? -errno : 0;
}

int bid_ingest_fill(struct bid_store *store, struct bid_ingest *ingest, bool reflink, enum bid_durability durability)
{
	int r = 0;

	if (!ingest->packed) {
		if (ingest->temp.fd < 0)
			r = bid_temp_new(store, false, &ingest->temp);
		if (r == 0)
			r = copy_source(ingest, ingest->temp.fd, reflink);
	}
	if (r < 0)
		return r;
	r = bid_set_readers(ingest->temp.fd, mode_of(store, ingest), geteuid());
	if (r < 0)
		return r;
	return sync_data(ingest->temp.fd, durability);
}

void bid_ingest_release(struct bid_ingest *ingest)
{
	bid_temp_release(&ingest->temp);
	if (ingest->own_fd)
		bid_close(ingest->fd);
	ingest->fd = -1;
	ingest->own_fd = false;
}

/*
 * Does the errno only mean that the file system, or the rules for links, do not support the operation? A deleted file is -ENOENT.
 */
static bool is_unsupported(int r)
{
	return r == -EOPNOTSUPP || r == -EXDEV || r == -EINVAL || r == -EPERM || r == -EMLINK || r == -ENOTTY || r == -ENOSYS ||
	       r == -ENOENT;
}

/* Point perf's link for @id at @path, for readers. The link led to @mismatched: the directory of another id, or nothing. */
static int mend_link(struct bid_store *store, const struct bid_id *id, const char *mismatched, const char *path, bool durable)
{
	struct bid_id disk_id = bid_layout_disk_id(id);
	char link[BID_LAYOUT_MAX];
	int r = bid_perf_link_point(store, &disk_id, path);

	if (r == 0 && durable)
		r = bid_store_sync(store);
	if (r == 0)
		bid_warning("wrong link: '%s/%s' led to '%s', %s; it leads to '%s' now", bid_store_path(store),
			    bid_layout_link(&disk_id, link), mismatched,
			    bid_layout_is_mismatched(mismatched, id) ? "of another build" : "which is absent", path);
	return r;
}

/* Add the file's own name to an artifact in the store, if the name is new. One object then has several names. */
static int add_name(struct bid_store *store, const struct bid_ingest *ingest, struct bid_file *file, const char *path,
		    enum bid_durability durability)
{
	bool durable = durability == BID_DURABLE_EACH, linked;
	char where[PATH_MAX];
	struct stat root;
	int r;

	if (file->kind != BID_KIND_ELF)
		return 0;
	/* a lower store on another file system: no link is possible, and a directory would stay empty */
	if (fstat(store->root, &root) < 0 || root.st_dev != file->st.st_dev)
		return 0;
	linked = bid_perf_link_find(store, &ingest->info.id, where, sizeof(where)) == 0;
	if (linked && strcmp(where, path) == 0)
		return 0;
	r = bid_publish(store, &ingest->info.id, file->kind, path, durable, BID_TEMP_OF(file->fd), NULL);
	if ((r == 0 || r == -EEXIST) && linked && bid_is_unnamed(where)) {
		int named = bid_merge_unnamed(store, &ingest->info.id, path, durable);

		if (named == 0 || bid_is_local_error(named))
			return named;
	} else if (r == 0 && linked && bid_layout_is_mismatched(where, &ingest->info.id)) {
		r = mend_link(store, &ingest->info.id, where, path, durable);
	}
	if (r == 0 || r == -EEXIST)
		bid_other_paths_note(store, &ingest->info.id, path);
	return r == -EEXIST || is_unsupported(r) ? 0 : r;
}

/* Format the object directory below the file's own path: "usr/bin/ls/ID". */
static int own_objdir(const struct bid_ingest *ingest, char ret_path[static PATH_MAX])
{
	struct bid_id disk_id = bid_layout_disk_id(&ingest->info.id);
	char hex[BID_ID_HEX_MAX];

	if (ingest->is_unnamed) {
		bid_layout_under(BID_STORE_UNNAMED, &disk_id, ret_path);
		return 0;
	}
	return snprintf(ret_path, PATH_MAX, "%s/%s", ingest->path + 1, bid_id_format(&disk_id, hex)) >= PATH_MAX ? -ENAMETOOLONG
														 : 0;
}

/* May all users read the added file, but not the same artifact in the store? */
static bool opens_to_all(const struct bid_ingest *ingest, const struct bid_file *file, mode_t mode)
{
	return bid_mode_is_world_readable(mode) && !bid_mode_is_world_readable(file->st.st_mode) && !ingest->packed &&
	       ingest->st.st_size == file->st.st_size && bid_same_bytes(ingest->fd, file->fd) == 1;
}

/*
 * Replace @file, the stored artifact of @ingest, by a copy if it grants privileges. Replace it also if only its owner may read it
 * and all users may read @ingest, which has the same bytes.
 */
static void fix_readers(struct bid_store *store, const struct bid_ingest *ingest, const struct bid_file *file)
{
	struct bid_artifact artifact = { .id = ingest->added.id, .kind = ingest->added.kind };
	bool linked = bid_same_inode(&file->st, &ingest->st), gives = bid_rights_given(file->fd, &file->st);
	mode_t mode = mode_of(store, ingest);
	char hex[BID_ID_HEX_MAX];
	struct stat st;
	int r;

	/* perf also links files that grant privileges; files of a lower store stay as they are */
	if ((!gives && !opens_to_all(ingest, file, mode)) || bid_lookup_stat(store, &artifact, &st) < 0 ||
	    !bid_same_inode(&st, &file->st))
		return;
	if (gives && !linked)
		mode = file->st.st_mode;
	r = bid_rights_strip(store, &artifact, file->fd, NULL, mode);
	if (r < 0)
		bid_warning("%s: cannot give '%s' in the store '%s' the rights of the file that was added", bid_strerror(r),
			    bid_id_format(&artifact.id, hex), bid_store_path(store));
}

/* Is the stored @file a download with other bytes than the file of @ingest? */
static bool is_other_download(struct bid_store *store, const struct bid_ingest *ingest, const struct bid_artifact *artifact,
			      const struct bid_file *file)
{
	return bid_store_is_download(store, artifact) &&
	       bid_same_bytes(ingest->packed ? ingest->temp.fd : ingest->fd, file->fd) == 0;
}

/*
 * Look up the artifact of @ingest->added in the store. Returns 1 if it exists, with this file's name added and its record removed;
 * 0; or a negative errno.
 */
static int reuse_stored(struct bid_store *store, struct bid_ingest *ingest, enum bid_durability durability)
{
	struct bid_artifact artifact = { .id = ingest->added.id, .kind = ingest->added.kind };
	struct bid_file file = BID_FILE_NONE;
	char own[PATH_MAX];
	int r, claimed;

	r = own_objdir(ingest, own);
	if (r < 0)
		return r;
	r = bid_find_unpacked(store, &artifact, BID_MAY_DERIVE, &file);
	if (r < 0)
		return r == -ENOENT || bid_is_unusable(r) ? 0 : r;
	/* an added debug file is not stripped, and replaces a stripped one; a download of other bytes makes way */
	if (file.stripped || is_other_download(store, ingest, &artifact, &file)) {
		bid_file_release(&file);
		return 0;
	}
	/* an ELF file may substitute for its debuginfo, but is no debug file */
	r = file.kind == artifact.kind && !ingest->is_unnamed ? add_name(store, ingest, &file, own, durability) : 0;
	/* the file now belongs to the user, and is not evicted; if it was evicted meanwhile, it is added again */
	claimed = r == 0 && file.kind == artifact.kind ? bid_store_mark_added(store, &artifact) : -ENOENT;
	ingest->added.known = claimed >= 0;
	ingest->is_fresh = ingest->added.known && bid_store_is_fresh(store, &file.st);
	if (ingest->added.known)
		fix_readers(store, ingest, &file);
	bid_file_release(&file);
	if (r == 0 && claimed < 0 && claimed != -ENOENT)
		r = claimed;
	return r < 0 ? r : ingest->added.known;
}

/* Choose the object directory. Readers follow perf's link, so its target comes first. Debug files go beside their ELF file. */
static int choose_objdir(struct bid_store *store, struct bid_ingest *ingest)
{
	if (ingest->is_new && ingest->added.kind == BID_KIND_ELF)
		return own_objdir(ingest, ingest->where);
	if (ingest->added.kind == BID_KIND_DEBUGINFO ||
	    (bid_perf_link_find(store, &ingest->added.id, ingest->where, sizeof(ingest->where)) == 0 &&
	     !bid_layout_is_mismatched(ingest->where, &ingest->added.id))) {
		bid_publish_where(store, &ingest->added.id, ingest->where);
		return 0;
	}
	return own_objdir(ingest, ingest->where);
}

/*
 * Publish the file in its object directory. Another process may point perf's link elsewhere meanwhile, for example for the debug
 * file of the same build. The file then goes there too, because readers follow the link.
 */
static int link_file(struct bid_store *store, struct bid_ingest *ingest, enum bid_durability durability,
		     const struct bid_temp *file)
{
	const struct bid_id *id = &ingest->added.id;
	bool durable = durability == BID_DURABLE_EACH;
	char where[PATH_MAX];
	struct stat st;
	bool linked;
	int r;

	r = bid_publish(store, id, ingest->added.kind, ingest->where, durable, file, &linked);
	if ((r < 0 && r != -EEXIST) || linked || bid_perf_link_find(store, id, where, sizeof(where)) < 0)
		return r;
	if (bid_layout_is_mismatched(where, id) || (r == -EEXIST && bid_beneath_stat(store->root, where, &st) == -ENOENT)) {
		int mended = mend_link(store, id, where, ingest->where, durable);

		return mended < 0 ? mended : r;
	}
	if (r == 0 && ingest->added.kind == BID_KIND_ELF && bid_is_unnamed(where) && !bid_is_unnamed(ingest->where) &&
	    bid_merge_unnamed(store, id, ingest->where, durable) == 0)
		return 0;
	if (r < 0 || strcmp(where, ingest->where) == 0)
		return r;
	/* another copy of the build got the link first, and serves both names */
	if (bid_publish(store, id, ingest->added.kind, where, durable, file, NULL) == -EEXIST) {
		bid_objdir_remove(store, ingest->where, 1U << ingest->added.kind);
		return -EEXIST;
	}
	bid_other_paths_note(store, id, ingest->where);
	return 0;
}

/* Publish the file. If a wrong file has its name, replace that file: no reader gets it, and it would block the name. */
static int link_or_replace(struct bid_store *store, struct bid_ingest *ingest, enum bid_durability durability,
			   const struct bid_temp *file)
{
	struct bid_artifact artifact = { .id = ingest->added.id, .kind = ingest->added.kind };
	int r = link_file(store, ingest, durability, file);

	if (r != -EEXIST)
		return r;
	return bid_publish_make_way(store, ingest->where, &artifact) ? link_file(store, ingest, durability, file) : r;
}

/* Sync a known artifact: another process may have published it without a sync, or before one. */
static int sync_known(struct bid_store *store, const struct bid_ingest *ingest, enum bid_durability durability)
{
	return ingest->is_fresh && durability == BID_DURABLE_EACH ? bid_store_sync(store) : 0;
}

/* Does another build whose id begins alike have the name? */
static bool is_taken(struct bid_store *store, const struct bid_ingest *ingest)
{
	struct bid_artifact artifact = { .id = ingest->added.id, .kind = ingest->added.kind };
	char path[BID_LAYOUT_FILE_MAX];

	return bid_is_anothers_file(store, bid_layout_file(ingest->where, artifact.kind, path), &artifact);
}

/* Does the store have an unstripped debug file of @id? */
static bool has_debug(struct bid_store *store, const struct bid_id *id)
{
	struct bid_artifact artifact = { .id = *id, .kind = BID_KIND_DEBUGINFO };
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;

	return bid_find_unpacked(store, &artifact, BID_MAY_DERIVE, &file) == 0 && file.kind == BID_KIND_DEBUGINFO && !file.stripped;
}

/*
 * Does the store have an ELF file of the id without the debuginfo or symbols of @ingest, and no debug file beside it? Then the file
 * of @ingest becomes its debug file.
 */
static bool becomes_debug(struct bid_store *store, struct bid_ingest *ingest)
{
	struct bid_artifact artifact = { .id = ingest->added.id, .kind = BID_KIND_ELF };
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	struct bid_elf_info stored;

	if (ingest->added.kind != BID_KIND_ELF || !(ingest->info.has_dwarf || ingest->info.has_symtab) ||
	    has_debug(store, &artifact.id) || bid_find_unpacked(store, &artifact, BID_MAY_DERIVE, &file) < 0)
		return false;
	if (bid_same_inode(&file.st, &ingest->st) || bid_elf_examine(file.fd, &stored) < 0 || stored.has_dwarf ||
	    (!ingest->info.has_dwarf && stored.has_symtab))
		return false;
	ingest->added.kind = BID_KIND_DEBUGINFO;
	ingest->added.known = false;
	return true;
}

/* Finish publishing after the result @published: 0, or -EEXIST for another file of that name. Adds the other name of the file. */
static int finish_link(struct bid_store *store, struct bid_ingest *ingest, int published, enum bid_durability durability)
{
	char own[PATH_MAX];
	int r = published;

	/* also remove a record of a download killed meanwhile */
	if (r == 0 && !ingest->added.known)
		bid_record_remove(store, &(struct bid_artifact){ .id = ingest->added.id, .kind = ingest->added.kind });
	if (r == -EEXIST) {
		r = reuse_stored(store, ingest, durability);
		/* the existing file is wrong and stays, or could not be moved to the quarantine */
		if (r == 0)
			r = is_taken(store, ingest) ? -ENOTUNIQ : -EBADMSG;
		else if (r > 0 && becomes_debug(store, ingest))
			r = -EBADMSG;
	} else if (r == 0 && own_objdir(ingest, own) == 0 && strcmp(own, ingest->where) != 0) {
		r = reuse_stored(store, ingest, durability);
		ingest->added.known = false;
	}
	if (r < 0)
		return r;
	if (ingest->added.known) {
		ingest->added.link = BID_LINK_AUTO;
		return sync_known(store, ingest, durability);
	}
	return 0;
}

/*
 * Publish @file, the file of @ingest or its copy, under its names. If another process has published the same meanwhile, the
 * artifact counts as present.
 */
static int link_names(struct bid_store *store, struct bid_ingest *ingest, enum bid_durability durability,
		      const struct bid_temp *file)
{
	int r = -EBADMSG;

	/* again: the wrong file was removed just now, or the file becomes a debug file */
	for (int attempts = 0; attempts < PUBLISH_TRIES && r == -EBADMSG; attempts++) {
		bid_remove_download_before_add(store, &(struct bid_artifact){ .id = ingest->added.id, .kind = ingest->added.kind });
		r = choose_objdir(store, ingest);
		if (r == 0)
			r = link_or_replace(store, ingest, durability, file);
		r = finish_link(store, ingest, r, durability);
	}
	return r;
}

/* Finding out costs a temporary file or a directory: remember the failure. */
static bool is_denied(const atomic_ullong *denied, const struct stat *st)
{
	return atomic_load(denied) == (unsigned long long)st->st_dev + 1;
}

static void note_denied(atomic_ullong *denied, const struct stat *st)
{
	atomic_store(denied, (unsigned long long)st->st_dev + 1);
}

/* Did a hard link fail before for the file system of @st, or for other users' files on it? */
static bool is_link_denied(struct bid_store *store, const struct stat *st)
{
	const struct bid_denied *denied = &store->denied;

	return is_denied(&denied->link, st) || (st->st_uid != geteuid() && is_denied(&denied->link_of_others, st));
}

static void deny_link(struct bid_store *store, const struct stat *st, int r)
{
	struct bid_denied *denied = &store->denied;
	struct stat root;

	/* on the store's own file system the mount decides, and other files may lie in another mount */
	if (r == -EXDEV && fstat(store->root, &root) == 0 && root.st_dev != st->st_dev)
		note_denied(&denied->link, st);
	/* fs.protected_hardlinks, proc_sys_fs(5); for a file of this user EPERM concerns one file, for example an immutable one */
	if (r == -EPERM && st->st_uid != geteuid())
		note_denied(&denied->link_of_others, st);
}

/* Put the file by the first method of @wanted that works. */
static int put_file(struct bid_store *store, struct bid_ingest *ingest, enum bid_link wanted, enum bid_durability durability)
{
	int r;

	if (!ingest->packed &&
	    (wanted == BID_LINK_REFLINK || (wanted == BID_LINK_AUTO && !is_denied(&store->denied.reflink, &ingest->st)))) {
		ingest->added.link = BID_LINK_REFLINK;
		r = bid_ingest_fill(store, ingest, true, durability);
		if (r == 0)
			return link_names(store, ingest, durability, &ingest->temp);
		if (wanted == BID_LINK_REFLINK || !is_unsupported(r))
			return r;
		if (r == -EOPNOTSUPP || r == -ENOTTY || r == -EXDEV)
			note_denied(&store->denied.reflink, &ingest->st);
	}
	if (!ingest->packed && (wanted == BID_LINK_HARD || (wanted == BID_LINK_AUTO && !is_link_denied(store, &ingest->st))) &&
	    may_link(store, ingest)) {
		ingest->added.link = BID_LINK_HARD;
		/* a compiler may have written the file a moment ago */
		r = sync_data(ingest->fd, durability);
		/* the examined file, even if its name now belongs to another file */
		if (r == 0)
			r = link_names(store, ingest, durability, BID_TEMP_OF(ingest->fd));
		if (r == 0 || wanted == BID_LINK_HARD || !is_unsupported(r))
			return r;
		deny_link(store, &ingest->st, r);
	}
	ingest->added.link = BID_LINK_COPY;
	r = bid_ingest_fill(store, ingest, false, durability);
	return r < 0 ? r : link_names(store, ingest, durability, &ingest->temp);
}

int bid_ingest_store(struct bid_store *store, struct bid_ingest *ingest, enum bid_link wanted, enum bid_durability durability)
{
	const struct bid_elf_info *info = &ingest->info;
	int r;

	/* a separate debug file keeps the code sections without bytes */
	ingest->added = (struct bid_added){
		.id = info->id,
		.kind = !info->has_code && (info->has_dwarf || info->has_symtab) ? BID_KIND_DEBUGINFO : BID_KIND_ELF,
	};
	r = ingest->is_new ? 0 : reuse_stored(store, ingest, durability);
	if (r < 0)
		return r;
	if (r == 0 || becomes_debug(store, ingest))
		return put_file(store, ingest, wanted, durability);
	return sync_known(store, ingest, durability);
}

int bid_ingest_vdso(struct bid_store *store, struct bid_ingest *ingest)
{
	struct bid_artifact artifact = { .id = ingest->info.id, .kind = BID_KIND_VDSO };
	bid_auto_free char *image = NULL;
	struct bid_added added;
	size_t len;
	int r;

	if (ingest->packed || ingest->st.st_size > IMAGE_MAX || !bid_is_vdso_image(ingest->path, ingest->fd))
		return 0;
	r = bid_read_file(ingest->fd, IMAGE_MAX, &image, &len);
	if (r == 0)
		r = bid_store_add_data(store, &artifact, mode_of(store, ingest), image, len, &added);
	/* the ELF file goes beside it, to the target of perf's link */
	ingest->is_new = false;
	return r;
}

int bid_store_add_file(struct bid_store *store, const struct bid_add *add, struct bid_added *ret_added)
{
	struct bid_ingest ingest = { .fd = -1, .temp = BID_TEMP_NONE };
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	r = bid_ingest_begin(store, add, &ingest);
	if (r == 0)
		r = bid_ingest_vdso(store, &ingest);
	if (r == 0)
		r = bid_ingest_store(store, &ingest, add->link, add->batch ? BID_DURABLE_BATCH : BID_DURABLE_EACH);
	bid_ingest_release(&ingest);
	if (r < 0)
		return r;
	*ret_added = ingest.added;
	return 0;
}

int bid_store_add(struct bid_store *store, const char *path, enum bid_link link, struct bid_added *ret_added)
{
	return bid_store_add_file(store, &(struct bid_add){ .path = path, .fd = -1, .link = link }, ret_added);
}

/* Replace the stored artifact. */
static int update_file(struct bid_store *store, struct bid_ingest *ingest, bool *ret_replaced)
{
	const struct bid_elf_info *info = &ingest->info;
	struct bid_artifact artifact = { .id = info->id };
	bid_cleanup(bid_file_release) struct bid_file stored = BID_FILE_NONE;
	int r;

	artifact.kind = !info->has_code && (info->has_dwarf || info->has_symtab) ? BID_KIND_DEBUGINFO : BID_KIND_ELF;
	if (bid_find_unpacked(store, &artifact, BID_MAY_DERIVE, &stored) < 0 || stored.kind != artifact.kind)
		return 0;
	/* a hard link is the file already */
	r = bid_same_inode(&stored.st, &ingest->st) ? 1 : bid_ingest_fill(store, ingest, false, BID_DURABLE_EACH);
	if (r == 0)
		r = bid_replace(store, &artifact, NULL, NULL, ingest->temp.fd);
	*ret_replaced = r > 0;
	/* it is of the bytes from before */
	if (r > 0)
		bid_record_remove(store, &artifact);
	return r < 0 ? r : 0;
}

int bid_store_update(struct bid_store *store, const char *path, enum bid_link link, struct bid_added *ret_added, bool *ret_replaced)
{
	struct bid_add add = { .path = path, .fd = -1 };
	struct bid_ingest ingest = { .fd = -1, .temp = BID_TEMP_NONE };
	struct bid_added added = { 0 };
	bool replaced = false, own = false;
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	r = bid_ingest_open(&add, &ingest);
	/* a file of the store replaces neither itself nor the source that its record names */
	if (r == 0)
		own = replaced = is_own(store, &ingest);
	/* a named temporary file that no sweep removes, whatever its other names */
	if (r == 0)
		r = bid_temp_new(store, true, &ingest.temp);
	if (r == 0)
		r = bid_ingest_examine(store, &ingest);
	if (r == 0 && !own)
		r = update_file(store, &ingest, &replaced);
	bid_ingest_release(&ingest);
	/* now the file needs only its own name, unless the build is new */
	if (r == 0)
		r = bid_store_add(store, path, link, &added);
	if (r < 0)
		return r;
	*ret_added = added;
	*ret_replaced = replaced;
	return 0;
}
