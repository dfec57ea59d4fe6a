// SPDX-License-Identifier: LGPL-2.1-or-later
/* The read side: from a request to a file, in the store and in the lower ones. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "api/elf.h"
#include "disk/beneath.h"
#include "disk/derived.h"
#include "disk/find.h"
#include "disk/id_cache.h"
#include "disk/id_check.h"
#include "disk/layout.h"
#include "disk/objdir.h"
#include "disk/record.h"
#include "disk/source_section.h"
#include "disk/store.h"

/*
 * Keep a poor debuginfo in @poor and return -ENOENT: another object directory may have a better file. The first counts, or a
 * compressed one before a stripped one.
 */
static int skip_poor(struct bid_file *file, struct bid_file *poor)
{
	struct bid_file worse = *file;

	if (poor->fd < 0 || (file->packed && poor->stripped)) {
		worse = *poor;
		*poor = *file;
	}
	bid_file_release(&worse);
	*file = BID_FILE_NONE;
	return -ENOENT;
}

/* Is @kind of @disk_id a download without a signer, and a signer required? */
static bool is_refused(struct bid_store *store, const struct bid_id *disk_id, enum bid_kind kind)
{
	return bid_store_requires_signed(store) &&
	       bid_record_lacks_signer(store, &(struct bid_request){ .id = *disk_id, .kind = kind });
}

/* Open the file of @request in @objdir; in perf's old layout @objdir is the file itself. */
static int find_in_objdir(struct bid_store *store, const char *objdir, const struct bid_id *disk_id,
			  const struct bid_request *request, struct bid_file *ret_file)
{
	char path[BID_LAYOUT_FILE_MAX];
	int r;

	if (is_refused(store, disk_id, request->kind))
		return -ENOENT;
	/* only ELF files carry an id; for others the name must match */
	if (!bid_kind_is_elf(request->kind) && !bid_layout_is_named_after(objdir, disk_id))
		return -ENOENT;
	r = bid_id_check_open(store, bid_layout_file(objdir, request->kind, path), request, ret_file);
	if (r == -ENOENT && request->kind == bid_objdir_file_kind(objdir) && !bid_is_unnamed(objdir))
		r = bid_id_check_open(store, objdir, request, ret_file);
	return r;
}

bool bid_find_instead(const struct stat *st, const struct stat *before)
{
	if (before->st_size > 0 || st->st_size > 0)
		return before->st_size == 0;
	return st->st_mtim.tv_sec > before->st_mtim.tv_sec ||
	       (st->st_mtim.tv_sec == before->st_mtim.tv_sec && st->st_mtim.tv_nsec > before->st_mtim.tv_nsec);
}

/* Find one kind in all object directories of one on-disk id. @objdir iterates over them, and begins with step 0. */
static int find_on_disk(struct bid_store *store, struct bid_objdir_iter *objdir, const struct bid_id *disk_id,
			const struct bid_request *request, struct bid_file *poor, struct bid_file *ret_file)
{
	struct bid_file file = BID_FILE_NONE, best = BID_FILE_NONE;
	struct bid_foreign foreign = { 0 };
	int result = -ENOENT;

	while (bid_objdir_next(objdir, store, disk_id, request->kind)) {
		int r = find_in_objdir(store, objdir->path, disk_id, request, &file);

		if (r == 0 && file.stripped)
			r = skip_poor(&file, poor);
		if (r == 0 && (best.fd < 0 || bid_find_instead(&file.st, &best.st))) {
			bid_file_release(&best);
			best = file;
		} else if (r == 0) {
			bid_file_release(&file);
		} else if (r != -ENOENT) {
			result = r;
		}
		if (best.fd >= 0 && (request->kind != BID_KIND_PROBES || best.st.st_size > 0))
			break;
	}
	if (best.fd >= 0) {
		*ret_file = best;
		return 0;
	}
	while (store->flags & BID_STORE_LOWER && bid_foreign_next(&foreign, disk_id, request->kind)) {
		int r = bid_foreign_is_there(store, &foreign) ? bid_id_check_open(store, foreign.path, request, &file) : -ENOENT;

		if (r == 0 && file.stripped)
			r = skip_poor(&file, poor);
		if (r == 0) {
			*ret_file = file;
			return 0;
		}
		if (r != -ENOENT)
			result = r;
	}
	return result;
}

/* Find an ELF file that was not stripped: it is its own debuginfo. A compressed one shows that only unpacked; see skip_poor(). */
static int find_elf_with_dwarf(struct bid_store *store, struct bid_objdir_iter *objdir, const struct bid_id *disk_id,
			       const struct bid_id *id, struct bid_file *poor, struct bid_file *ret_file)
{
	struct bid_request request = { .id = *id, .kind = BID_KIND_ELF };
	struct bid_file file = BID_FILE_NONE;
	struct bid_identity identity;
	int r;

	objdir->step = 0;
	r = find_on_disk(store, objdir, disk_id, &request, NULL, &file);
	if (r == 0 && file.packed)
		r = skip_poor(&file, poor);
	if (r < 0)
		return r;
	r = bid_id_cache_get(store->id_cache, file.fd, &file.st, true, &identity);
	if (r == 0 && !identity.has_dwarf)
		r = -ENOENT;
	if (r < 0) {
		bid_file_release(&file);
		return r;
	}
	*ret_file = file;
	return 0;
}

static int find_here(struct bid_store *store, const struct bid_request *request, struct bid_file *poor, struct bid_file *ret_file)
{
	struct bid_alias_iter alias = { 0 };
	struct bid_id disk_id;
	int result = -ENOENT;

	while (bid_alias_next(&alias, &request->id, &disk_id)) {
		struct bid_objdir_iter objdir = { 0 };
		int r = find_on_disk(store, &objdir, &disk_id, request, poor, ret_file), unstripped = -ENOENT;

		if (r < 0 && request->kind == BID_KIND_DEBUGINFO)
			unstripped = find_elf_with_dwarf(store, &objdir, &disk_id, &request->id, poor, ret_file);
		if (r == 0 || unstripped == 0)
			return 0;
		if (r != -ENOENT || unstripped != -ENOENT)
			result = r != -ENOENT ? r : unstripped;
	}
	return result;
}

int bid_find_stored(struct bid_store *store, const struct bid_request *request, struct bid_file *ret_file)
{
	struct bid_file poor = BID_FILE_NONE;
	int result = -ENOENT;

	for (; store && result != 0; store = store->lower) {
		int r = find_here(store, request, &poor, ret_file);

		if (r == 0 || result == -ENOENT)
			result = r;
	}
	if (result < 0 && poor.fd >= 0) {
		*ret_file = poor;
		return 0;
	}
	bid_file_release(&poor);
	return result;
}

int bid_find_in(struct bid_store *store, const char *dir, const struct bid_request *request, struct bid_file *ret_file)
{
	struct bid_id disk_id = bid_layout_disk_id(&request->id);
	int result = -ENOENT;

	for (; store; store = store->lower) {
		int r = bid_store_has_paths(store) ? find_in_objdir(store, dir, &disk_id, request, ret_file) : -ENOENT;

		if (r == 0)
			return 0;
		if (result == -ENOENT)
			result = r;
	}
	return result;
}

/* Does the store have a file or a directory for @disk_id that may contain @kind? */
static int has_on_disk(struct bid_store *store, const struct bid_id *disk_id, enum bid_kind kind)
{
	struct bid_objdir_iter objdir = { 0 };
	struct stat st;

	while (bid_objdir_next(&objdir, store, disk_id, kind)) {
		int r = bid_beneath_stat(store->root, objdir.path, &st);

		if (r != -ENOENT)
			return r < 0 ? r : 1;
	}
	return bid_one_foreign_kinds(store, disk_id) != 0;
}

/* In the store and the lower ones. */
static int has_kind(struct bid_store *store, const struct bid_id *id, enum bid_kind kind)
{
	for (; store; store = store->lower) {
		struct bid_alias_iter alias = { 0 };
		struct bid_id disk_id;

		while (bid_alias_next(&alias, id, &disk_id)) {
			int r = has_on_disk(store, &disk_id, kind);

			if (r != 0)
				return r;
		}
	}
	return 0;
}

int bid_store_has(struct bid_store *store, const struct bid_id *id)
{
	int r = has_kind(store, id, BID_KIND_NONE);

	return r != 0 ? r : bid_source_sections_any(store, id);
}

int bid_find_has_image(struct bid_store *store, const struct bid_id *id)
{
	return has_kind(store, id, BID_KIND_ELF);
}

int bid_find_stat(struct bid_store *store, const struct bid_request *request, struct stat *ret_stat)
{
	struct bid_alias_iter alias = { 0 };
	struct bid_id disk_id;

	if (request->subpath) {
		char path[PATH_MAX];

		bid_source_section_path(request, path);
		return bid_beneath_stat(store->root, path, ret_stat) == 0 ? 0 : -ENOENT;
	}
	while (bid_alias_next(&alias, &request->id, &disk_id)) {
		struct bid_objdir_iter objdir = { 0 };
		char path[BID_LAYOUT_FILE_MAX];

		while (bid_objdir_next(&objdir, store, &disk_id, request->kind)) {
			bid_layout_file(objdir.path, request->kind, path);
			if (bid_beneath_stat(store->root, path, ret_stat) == 0)
				return 0;
		}
	}
	return -ENOENT;
}

int bid_store_kinds(struct bid_store *store, const struct bid_id *id)
{
	int kinds = 0;

	for (; store; store = store->lower) {
		struct bid_alias_iter alias = { 0 };
		struct bid_id disk_id;

		while (bid_alias_next(&alias, id, &disk_id)) {
			struct bid_objdir_iter objdir = { 0 };

			while (bid_objdir_next(&objdir, store, &disk_id, BID_KIND_NONE))
				kinds |= bid_objdir_kinds(store, objdir.path);
			kinds |= bid_one_foreign_kinds(store, &disk_id);
			for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
				if (kinds & 1 << kind && is_refused(store, &disk_id, (enum bid_kind)kind))
					kinds &= ~(1 << kind);
			/* a derived file belongs to a file of the store */
			if (kinds & (1 << BID_KIND_ELF | 1 << BID_KIND_DEBUGINFO) && bid_derived_has_table(store, &disk_id))
				kinds |= 1 << BID_KIND_KALLSYMS;
		}
	}
	return kinds;
}

/* The files of perf's copy of /proc/kcore: "[kernel.kcore]/ID/TIMESTAMP/{kcore,kallsyms,modules}". */

/*
 * Is the file at @fd complete, as the file @name of a copy? perf writes kcore in place and its headers first, which contain its
 * length. The other files are text, and do not show truncation. Returns 0, -ENOENT, or as bid_elf_examine().
 */
static int check_whole(int fd, const char *name)
{
	struct bid_elf_info info;
	int r = strcmp(name, "kcore") == 0 ? bid_elf_examine(fd, &info) : 0;

	return r == -ENOEXEC || r == -EBADMSG ? -ENOENT : r;
}

int bid_store_open_kcore(struct bid_store *store, const char *path, struct bid_file *ret_file)
{
	const char *slash = strrchr(path, '/');
	struct bid_file file = BID_FILE_NONE;
	int r = -ENOENT;

	for (; store; store = store->lower) {
		if (bid_store_has_paths(store))
			r = bid_store_open_file(store, path, false, &file);
		if (r != -ENOENT)
			break;
	}
	if (r < 0)
		return r;
	r = check_whole(file.fd, slash ? slash + 1 : path);
	if (r < 0)
		bid_file_release(&file);
	else
		*ret_file = file;
	return r;
}
