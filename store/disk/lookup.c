// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lookup of an artifact, without a change: its file with a checked build-id, in the store or a lower one. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/kallsyms.h"
#include "base/log.h"
#include "disk/beneath.h"
#include "disk/check_cache.h"
#include "disk/derived.h"
#include "disk/foreign_layout.h"
#include "disk/id_dirs.h"
#include "disk/layout.h"
#include "disk/lookup.h"
#include "disk/objdir.h"
#include "disk/record.h"
#include "disk/source_section.h"
#include "disk/store.h"

static int open_regular(struct bid_store *store, const char *path, struct bid_file *file)
{
	/* a lower store may be a distribution's tree, which is full of links; ours and perf's stores have none but perf's own */
	return bid_store_open_file(store, path, bid_store_is_lower(store), file);
}

/* Open the unpacked copy for @id, if there is a correct one. */
static int open_unpacked(struct bid_store *upper, const struct bid_id *id, struct bid_file *file)
{
	struct bid_check check;
	char path[BID_LAYOUT_MAX];
	int r;

	r = open_regular(upper, bid_derived_path(&(struct bid_artifact){ .id = *id, .kind = BID_KIND_ELF }, path), file);
	if (r < 0)
		return r;
	r = bid_check_cache_get(upper->check_cache, file->fd, &file->st, false, &check);
	if (r == 0 && (check.packed || !bid_id_answers(&check.id, id)))
		r = -EBADMSG;
	if (r < 0)
		bid_file_release(file);
	return r;
}

/* Replace the compressed @file by its unpacked copy, if there is a correct one. */
static void use_unpacked(struct bid_store *store, const struct bid_id *requested, struct bid_file *file)
{
	struct bid_file kept = { .fd = -1, .kind = file->kind };

	file->packed = open_unpacked(bid_store_upper(store), requested, &kept) < 0;
	if (file->packed)
		return;
	bid_file_release(file);
	*file = kept;
}

/*
 * Check that the id of @file answers @requested. A compressed file becomes its unpacked copy, or stays with @file->packed. Sets
 * *@ret_wrong if the file lies under another id.
 */
static int check_file(struct bid_store *store, const struct bid_id *requested, struct bid_file *file, bool *ret_wrong)
{
	struct bid_id disk_id = bid_layout_disk_id(requested);
	bool debuginfo = file->kind == BID_KIND_DEBUGINFO;
	struct bid_check check;
	int r;

	r = bid_check_cache_get(store->check_cache, file->fd, &file->st, debuginfo, &check);
	if (r < 0)
		return r;
	file->stripped = debuginfo && !check.packed && !check.has_dwarf && !check.has_symtab;
	/* @requested may be longer than the on-disk id: a file may be correct at its path and still not answer @requested */
	*ret_wrong = !bid_id_answers(&check.id, &disk_id);
	if (check.fault < 0)
		return check.fault;
	if ((!check.packed || check.unpacked) && !bid_id_answers(&check.id, requested))
		return -EBADMSG;
	if (check.packed)
		use_unpacked(store, requested, file);
	return 0;
}

/* Log once why the store does not serve @file at @path. */
static void log_refusal(struct bid_store *store, const char *path, const struct bid_id *id, const struct bid_file *file, int r)
{
	char hex[BID_ID_HEX_MAX];

	if (r != -EBADMSG && r != -EFBIG && r != -EOPNOTSUPP)
		return;
	if (!bid_check_cache_log_once(store->check_cache, &file->st))
		return;
	if (r == -EBADMSG)
		bid_warning("wrong content: '%s/%s' does not carry the build-id '%s': bidfs does not serve it - see "
			    "'bidctl verify'",
			    bid_store_path(store), path, bid_id_format(id, hex));
	else
		bid_warning("cannot unpack '%s/%s': it %s", bid_store_path(store), path,
			    r == -EFBIG ? "has more than 512 MiB in it" : "is damaged, or this libarchive lacks its codec");
}

int bid_open_checked(struct bid_store *store, const char *path, const struct bid_artifact *artifact, struct bid_file *ret_file)
{
	struct bid_file file = { .fd = -1, .kind = artifact->kind };
	bool wrong = false;
	int r;

	r = open_regular(store, path, &file);
	if (r < 0)
		return r;
	if (bid_kind_is_elf(artifact->kind))
		r = check_file(store, &artifact->id, &file, &wrong);
	else if (artifact->kind == BID_KIND_KALLSYMS)
		r = bid_kallsyms_check_file(file.fd);
	if (r == -EPERM)
		r = -EBADMSG;
	if (wrong)
		log_refusal(store, path, &artifact->id, &file, r);
	if (r < 0) {
		bid_file_release(&file);
		return r;
	}
	*ret_file = file;
	return 0;
}

bool bid_is_anothers_file(struct bid_store *store, const char *path, const struct bid_artifact *artifact)
{
	struct bid_id disk_id = bid_layout_disk_id(&artifact->id), carried;
	bid_auto_fd int fd = -1;

	return !bid_id_equal(&disk_id, &artifact->id) && bid_kind_is_elf(artifact->kind) &&
	       bid_beneath_open(store->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd) == 0 &&
	       bid_elf_build_id_any(fd, &carried) == 0 && bid_id_answers(&carried, &disk_id) &&
	       !bid_id_answers(&carried, &artifact->id);
}

int bid_store_recheck(struct bid_store *store, const struct bid_artifact *artifact, const struct bid_file *file)
{
	struct bid_check check;
	int r;

	if (!bid_kind_is_elf(artifact->kind))
		return 0;
	r = bid_check_cache_get(store->check_cache, file->fd, &file->st, false, &check);
	if (r < 0)
		return r;
	return check.packed || !bid_id_answers(&check.id, &artifact->id) ? -EBADMSG : 0;
}

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
	       bid_record_lacks_signer(store, &(struct bid_artifact){ .id = *disk_id, .kind = kind });
}

/* Open the file of @artifact in @objdir; in perf's old layout @objdir is the file itself. */
static int lookup_in_objdir(struct bid_store *store, const char *objdir, const struct bid_id *disk_id,
			    const struct bid_artifact *artifact, struct bid_file *ret_file)
{
	char path[BID_LAYOUT_FILE_MAX];
	int r;

	if (is_refused(store, disk_id, artifact->kind))
		return -ENOENT;
	/* only ELF files carry an id; for others the name must match */
	if (!bid_kind_is_elf(artifact->kind) && !bid_layout_is_named_after(objdir, disk_id))
		return -ENOENT;
	r = bid_open_checked(store, bid_layout_file(objdir, artifact->kind, path), artifact, ret_file);
	if (r == -ENOENT && artifact->kind == bid_layout_file_kind(objdir) && !bid_is_unnamed(objdir))
		r = bid_open_checked(store, objdir, artifact, ret_file);
	return r;
}

bool bid_probes_precede(const struct stat *st, const struct stat *before)
{
	if (before->st_size > 0 || st->st_size > 0)
		return before->st_size == 0;
	return bid_compare_times(&st->st_mtim, &before->st_mtim) > 0;
}

/* Find one kind in all object directories of one on-disk id. @objdir iterates over them, and begins with step 0. */
static int lookup_on_disk(struct bid_store *store, struct bid_id_dirs *dirs, const struct bid_id *disk_id,
			  const struct bid_artifact *artifact, struct bid_file *poor, struct bid_file *ret_file)
{
	struct bid_file file = BID_FILE_NONE, best = BID_FILE_NONE;
	struct bid_foreign foreign = { 0 };
	int result = -ENOENT;

	while (bid_id_dirs_next(dirs, store, disk_id, artifact->kind)) {
		int r = lookup_in_objdir(store, dirs->path, disk_id, artifact, &file);

		if (r == 0 && file.stripped)
			r = skip_poor(&file, poor);
		if (r == 0 && (best.fd < 0 || bid_probes_precede(&file.st, &best.st))) {
			bid_file_release(&best);
			best = file;
		} else if (r == 0) {
			bid_file_release(&file);
		} else if (r != -ENOENT) {
			result = r;
		}
		if (best.fd >= 0 && (artifact->kind != BID_KIND_PROBES || best.st.st_size > 0))
			break;
	}
	if (best.fd >= 0) {
		*ret_file = best;
		return 0;
	}
	while (bid_store_is_lower(store) && bid_foreign_next(&foreign, disk_id, artifact->kind)) {
		int r = bid_foreign_is_there(store, &foreign) ? bid_open_checked(store, foreign.path, artifact, &file) : -ENOENT;

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
static int lookup_elf_with_dwarf(struct bid_store *store, struct bid_id_dirs *dirs, const struct bid_id *disk_id,
				 const struct bid_id *id, struct bid_file *poor, struct bid_file *ret_file)
{
	struct bid_artifact artifact = { .id = *id, .kind = BID_KIND_ELF };
	struct bid_file file = BID_FILE_NONE;
	struct bid_check check;
	int r;

	dirs->step = 0;
	r = lookup_on_disk(store, dirs, disk_id, &artifact, NULL, &file);
	if (r == 0 && file.packed)
		r = skip_poor(&file, poor);
	if (r < 0)
		return r;
	r = bid_check_cache_get(store->check_cache, file.fd, &file.st, true, &check);
	if (r == 0 && !check.has_dwarf)
		r = -ENOENT;
	if (r < 0) {
		bid_file_release(&file);
		return r;
	}
	*ret_file = file;
	return 0;
}

static int lookup_here(struct bid_store *store, const struct bid_artifact *artifact, struct bid_file *poor,
		       struct bid_file *ret_file)
{
	struct bid_alias_iter alias = { 0 };
	struct bid_id disk_id;
	int result = -ENOENT;

	while (bid_alias_next(&alias, &artifact->id, &disk_id)) {
		struct bid_id_dirs dirs = { 0 };
		int r = lookup_on_disk(store, &dirs, &disk_id, artifact, poor, ret_file), unstripped = -ENOENT;

		if (r < 0 && artifact->kind == BID_KIND_DEBUGINFO)
			unstripped = lookup_elf_with_dwarf(store, &dirs, &disk_id, &artifact->id, poor, ret_file);
		if (r == 0 || unstripped == 0)
			return 0;
		if (r != -ENOENT || unstripped != -ENOENT)
			result = r != -ENOENT ? r : unstripped;
	}
	return result;
}

int bid_lookup_file(struct bid_store *store, const struct bid_artifact *artifact, struct bid_file *ret_file)
{
	struct bid_file poor = BID_FILE_NONE;
	int result = -ENOENT;

	for (; store && result != 0; store = store->lower) {
		int r = lookup_here(store, artifact, &poor, ret_file);

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

int bid_store_lookup_in(struct bid_store *store, const char *dir, const struct bid_artifact *artifact, struct bid_file *ret_file)
{
	struct bid_id disk_id = bid_layout_disk_id(&artifact->id);
	struct bid_file file = BID_FILE_NONE;
	int result = -ENOENT;

	for (; store; store = store->lower) {
		int r = bid_store_has_paths(store) ? lookup_in_objdir(store, dir, &disk_id, artifact, &file) : -ENOENT;

		if (r == 0 && file.packed) {
			bid_file_release(&file);
			return -EAGAIN;
		}
		if (r == 0) {
			*ret_file = file;
			return 0;
		}
		if (result == -ENOENT)
			result = r;
	}
	return result;
}

/* Does the store have a file or a directory for @disk_id that may contain @kind? */
static int has_on_disk(struct bid_store *store, const struct bid_id *disk_id, enum bid_kind kind)
{
	struct bid_id_dirs dirs = { 0 };
	struct stat st;

	while (bid_id_dirs_next(&dirs, store, disk_id, kind)) {
		int r = bid_beneath_stat(store->root, dirs.path, &st);

		if (r != -ENOENT)
			return r < 0 ? r : 1;
	}
	return bid_foreign_kinds(store, disk_id) != 0;
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

int bid_lookup_has_image(struct bid_store *store, const struct bid_id *id)
{
	return has_kind(store, id, BID_KIND_ELF);
}

int bid_lookup_stat(struct bid_store *store, const struct bid_artifact *artifact, struct stat *ret_stat)
{
	struct bid_alias_iter alias = { 0 };
	struct bid_id disk_id;

	if (artifact->subpath) {
		char path[PATH_MAX];

		bid_source_section_path(artifact, path);
		return bid_beneath_stat(store->root, path, ret_stat) == 0 ? 0 : -ENOENT;
	}
	while (bid_alias_next(&alias, &artifact->id, &disk_id)) {
		struct bid_id_dirs dirs = { 0 };
		char path[BID_LAYOUT_FILE_MAX];

		while (bid_id_dirs_next(&dirs, store, &disk_id, artifact->kind)) {
			bid_layout_file(dirs.path, artifact->kind, path);
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
			struct bid_id_dirs dirs = { 0 };

			while (bid_id_dirs_next(&dirs, store, &disk_id, BID_KIND_NONE))
				kinds |= bid_objdir_kinds(store, dirs.path);
			kinds |= bid_foreign_kinds(store, &disk_id);
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
