// SPDX-License-Identifier: LGPL-2.1-or-later
/* The steps by which a file gets into the store: how its bytes do; its names are for placing.c. */
#include "disk/publish/add.h"

#include <errno.h>
#include <unistd.h>

#include "base/access.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "disk/find.h"
#include "disk/publish/join.h"
#include "disk/publish/placing.h"
#include "disk/publish/replace.h"
#include "disk/store.h"

enum { LINKS_MAX = 60000 }; /* ext4 allows 65000; leave some to others */

/* Does everybody read the file where it is? */
static bool is_public(struct bid_store *store, const struct bid_adding *adding)
{
	struct stat st;

	if (adding->is_reached)
		return bid_fstat(adding->fd, &st) == 0 && bid_all_read(st.st_mode);
	return bid_is_public(adding->fd, &adding->st, bid_store_path(store));
}

/*
 * May the store share the file's inode? Not one whose bits would outlive a security update in the store, and not one that
 * somebody may not read where it is; but what was written for the store alone is the store's.
 */
static bool may_link(struct bid_store *store, const struct bid_adding *adding)
{
	const struct stat *st = &adding->st;

	return adding->is_staged || (st->st_nlink < LINKS_MAX && !bid_rights_given(adding->fd, st) && is_public(store, adding));
}

mode_t bid_adding_mode(struct bid_store *store, const struct bid_adding *adding)
{
	if (!is_public(store, adding))
		return S_IRUSR;
	return adding->st.st_mode & (bid_rights_given(adding->fd, &adding->st) ? 0444 : 0555);
}

int bid_adding_fill(struct bid_store *store, struct bid_adding *adding, bool reflink, enum bid_durability durability)
{
	int r = 0;

	if (!adding->packed) {
		if (adding->temp.fd < 0)
			r = bid_temp_new(store, false, &adding->temp);
		if (r == 0)
			r = bid_adding_copy(adding, adding->temp.fd, reflink);
	}
	if (r < 0)
		return r;
	r = bid_set_readers(adding->temp.fd, bid_adding_mode(store, adding), geteuid());
	if (r < 0)
		return r;
	return durability != BID_DURABLE_LATER && fsync(adding->temp.fd) < 0 ? -errno : 0;
}

static int put_temp(void *user, int dir, const char *name)
{
	struct bid_adding *adding = user;

	return bid_temp_link(&adding->temp, dir, name);
}

static int put_hard(void *user, int dir, const char *name)
{
	const struct bid_adding *adding = user;

	/* what was examined, whatever has its name now */
	return bid_fd_link(adding->fd, dir, name);
}

/* A compiler may have written the file a moment ago: its name in the store must not be on disk before its bytes. */
static int clean_source(const struct bid_adding *adding)
{
	const struct timespec *changed = &adding->st.st_ctim, *clean = &adding->clean_before;

	if (changed->tv_sec < clean->tv_sec || (changed->tv_sec == clean->tv_sec && changed->tv_nsec < clean->tv_nsec))
		return 0;
	/* what cannot be synced cannot be dirty */
	return fsync(adding->fd) < 0 && errno != EINVAL && errno != EROFS ? -errno : 0;
}

/* Has the store a debug file of @id that is not stripped? */
static bool has_debug(struct bid_store *store, const struct bid_id *id)
{
	struct bid_request request = { .id = *id, .kind = BID_KIND_DEBUGINFO };
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;

	return bid_find_stored(store, &request, &file) == 0 && file.kind == BID_KIND_DEBUGINFO && !file.stripped;
}

/* Has the store an ELF file of its id that was stripped, and nothing of what this one, which was not, would tell beside it? */
static bool completes(struct bid_store *store, const struct bid_adding *adding)
{
	struct bid_request request = { .id = adding->added.id, .kind = BID_KIND_ELF };
	struct bid_file file = BID_FILE_NONE;
	bool does;

	if (adding->added.kind != BID_KIND_ELF || !(adding->info.has_dwarf || adding->info.has_symtab) ||
	    has_debug(store, &request.id) || bid_find_stored(store, &request, &file) < 0)
		return false;
	does = (file.st.st_ino != adding->st.st_ino || file.st.st_dev != adding->st.st_dev) &&
	       bid_join_completes(&adding->info, file.fd);
	bid_file_release(&file);
	return does;
}

int bid_adding_finish(struct bid_store *store, struct bid_adding *adding, enum bid_durability durability)
{
	return bid_placing_publish(store, adding, durability, put_temp);
}

static int finish_or_leave(struct bid_store *store, struct bid_adding *adding, enum bid_durability durability)
{
	if (durability != BID_DURABLE_LATER)
		return bid_adding_finish(store, adding, durability);
	adding->stage = BID_ADDING_PREPARED;
	return 0;
}

/* To find out that it cannot be done costs a temporary file or a directory: it is asked once. */
static bool is_denied(const atomic_ullong *denied, const struct stat *st)
{
	return atomic_load(denied) == (unsigned long long)st->st_dev + 1;
}

static void deny(atomic_ullong *denied, const struct stat *st)
{
	atomic_store(denied, (unsigned long long)st->st_dev + 1);
}

/* Did a hard link to a file like it fail: one of its file system, or one of somebody else's there? */
static bool is_link_denied(struct bid_store *store, const struct stat *st)
{
	const struct bid_denied *denied = &store->denied;

	return is_denied(&denied->link, st) || (st->st_uid != geteuid() && is_denied(&denied->link_of_others, st));
}

static void deny_link(struct bid_store *store, const struct stat *st, int r)
{
	struct bid_denied *denied = &store->denied;
	struct stat root;

	/* on the store's own file system it is a matter of mounts, which not all files need be below */
	if (r == -EXDEV && fstat(bid_store_root(store), &root) == 0 && root.st_dev != st->st_dev)
		deny(&denied->link, st);
	/* fs.protected_hardlinks, proc_sys_fs(5); of one's own it is said by a single file, as an immutable one */
	if (r == -EPERM && st->st_uid != geteuid())
		deny(&denied->link_of_others, st);
}

/* By the first of the ways of @wanted that works. */
static int put(struct bid_store *store, struct bid_adding *adding, enum bid_link wanted, enum bid_durability durability)
{
	int r;

	if (!adding->packed &&
	    (wanted == BID_LINK_REFLINK || (wanted == BID_LINK_AUTO && !is_denied(&store->denied.reflink, &adding->st)))) {
		adding->added.link = BID_LINK_REFLINK;
		r = bid_adding_fill(store, adding, true, durability);
		if (r == 0)
			return finish_or_leave(store, adding, durability);
		if (wanted == BID_LINK_REFLINK || !bid_placing_is_unsupported(r))
			return r;
		if (r == -EOPNOTSUPP || r == -ENOTTY || r == -EXDEV)
			deny(&store->denied.reflink, &adding->st);
	}
	if (!adding->packed && (wanted == BID_LINK_HARD || (wanted == BID_LINK_AUTO && !is_link_denied(store, &adding->st))) &&
	    may_link(store, adding)) {
		adding->added.link = BID_LINK_HARD;
		r = clean_source(adding);
		if (r == 0)
			r = bid_placing_publish(store, adding, durability, put_hard);
		if (r == 0 || wanted == BID_LINK_HARD || !bid_placing_is_unsupported(r))
			return r;
		deny_link(store, &adding->st, r);
	}
	adding->added.link = BID_LINK_COPY;
	r = bid_adding_fill(store, adding, false, durability);
	return r < 0 ? r : finish_or_leave(store, adding, durability);
}

int bid_adding_place(struct bid_store *store, struct bid_adding *adding, enum bid_link wanted, enum bid_durability durability)
{
	const struct bid_elf_info *info = &adding->info;
	int r;

	/* code that has no bytes is what is left in a separate debug file */
	adding->added = (struct bid_added){
		.id = info->id,
		.kind = !info->has_code && (info->has_dwarf || info->has_symtab) ? BID_KIND_DEBUGINFO : BID_KIND_ELF,
	};
	r = adding->is_new ? 0 : bid_placing_recognise(store, adding, durability);
	if (r < 0)
		return r;
	if (r > 0 && completes(store, adding)) {
		adding->added.kind = BID_KIND_DEBUGINFO;
		adding->added.known = false;
	} else if (r > 0) {
		adding->stage = BID_ADDING_PLACED;
		return bid_placing_sync_known(store, adding, durability);
	}
	return put(store, adding, wanted, durability);
}

void bid_adding_release(struct bid_adding *adding)
{
	bid_temp_release(&adding->temp);
	if (adding->own_fd)
		bid_close(adding->fd);
	adding->fd = -1;
	adding->own_fd = false;
}
