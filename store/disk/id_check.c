// SPDX-License-Identifier: LGPL-2.1-or-later
/* The last step before a file is served: check its build-id. */
#include "disk/id_check.h"

#include <errno.h>
#include <fcntl.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/kallsyms.h"
#include "base/log.h"
#include "disk/beneath.h"
#include "disk/derived.h"
#include "disk/id_cache.h"
#include "disk/layout.h"
#include "disk/store.h"

static int open_regular(struct bid_store *store, const char *path, struct bid_file *file)
{
	/* distributions' trees of debug files are full of links; ours and perf's stores have none but perf's own */
	return bid_store_open_file(store, path, store->flags & BID_STORE_LOWER, file);
}

/* Open the unpacked copy for @id, if there is a correct one. */
static int open_kept(struct bid_store *upper, const struct bid_id *id, struct bid_file *file)
{
	struct bid_identity identity;
	char path[BID_LAYOUT_MAX];
	int r;

	r = open_regular(upper, bid_derived_path(&(struct bid_request){ .id = *id, .kind = BID_KIND_ELF }, path), file);
	if (r < 0)
		return r;
	r = bid_id_cache_get(upper->id_cache, file->fd, &file->st, false, &identity);
	if (r == 0 && (identity.packed || !bid_id_answers(&identity.id, id)))
		r = -EBADMSG;
	if (r < 0)
		bid_file_release(file);
	return r;
}

/* Replace the compressed @file by its unpacked copy, if there is a correct one. */
static void look_unpacked(struct bid_store *store, const struct bid_id *requested, struct bid_file *file)
{
	struct bid_file kept = { .fd = -1, .kind = file->kind };

	file->packed = open_kept(bid_store_upper(store), requested, &kept) < 0;
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
	struct bid_identity identity;
	int r;

	r = bid_id_cache_get(store->id_cache, file->fd, &file->st, debuginfo, &identity);
	if (r < 0)
		return r;
	file->stripped = debuginfo && !identity.packed && !identity.has_dwarf && !identity.has_symtab;
	/* @requested may be longer than the on-disk id: a file may be correct at its path and still not answer @requested */
	*ret_wrong = !bid_id_answers(&identity.id, &disk_id);
	if (identity.fault < 0)
		return identity.fault;
	if ((!identity.packed || identity.unpacked) && !bid_id_answers(&identity.id, requested))
		return -EBADMSG;
	if (identity.packed)
		look_unpacked(store, requested, file);
	return 0;
}

/* Log once why the store does not serve @file at @path. */
static void log_refusal(struct bid_store *store, const char *path, const struct bid_id *id, const struct bid_file *file, int r)
{
	char hex[BID_ID_HEX_MAX];

	if (r != -EBADMSG && r != -EFBIG && r != -EOPNOTSUPP)
		return;
	if (!bid_id_cache_report(store->id_cache, &file->st))
		return;
	if (r == -EBADMSG)
		bid_warning("wrong content: '%s/%s' does not carry the build-id '%s': bidfs does not serve it - see "
			    "'bidctl verify'",
			    bid_store_path(store), path, bid_id_format(id, hex));
	else
		bid_warning("cannot unpack '%s/%s': it %s", bid_store_path(store), path,
			    r == -EFBIG ? "has more than 512 MiB in it" : "is damaged, or this libarchive lacks its codec");
}

int bid_id_check_open(struct bid_store *store, const char *path, const struct bid_request *request, struct bid_file *ret_file)
{
	struct bid_file file = { .fd = -1, .kind = request->kind };
	bool wrong = false;
	int r;

	r = open_regular(store, path, &file);
	if (r < 0)
		return r;
	if (bid_kind_is_elf(request->kind))
		r = check_file(store, &request->id, &file, &wrong);
	else if (request->kind == BID_KIND_KALLSYMS)
		r = bid_kallsyms_check_file(file.fd);
	if (r == -EPERM)
		r = -EBADMSG;
	if (wrong)
		log_refusal(store, path, &request->id, &file, r);
	if (r < 0) {
		bid_file_release(&file);
		return r;
	}
	*ret_file = file;
	return 0;
}

bool bid_id_check_anothers(struct bid_store *store, const char *path, const struct bid_request *request)
{
	struct bid_id disk_id = bid_layout_disk_id(&request->id), carried;
	bid_auto_fd int fd = -1;

	return !bid_id_equal(&disk_id, &request->id) && bid_kind_is_elf(request->kind) &&
	       bid_beneath_open(store->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd) == 0 &&
	       bid_elf_build_id_any(fd, &carried) == 0 && bid_id_answers(&carried, &disk_id) &&
	       !bid_id_answers(&carried, &request->id);
}

int bid_store_recheck(struct bid_store *store, const struct bid_request *request, const struct bid_file *file)
{
	struct bid_identity identity;
	int r;

	if (!bid_kind_is_elf(request->kind))
		return 0;
	r = bid_id_cache_get(store->id_cache, file->fd, &file->st, false, &identity);
	if (r < 0)
		return r;
	return identity.packed || !bid_id_answers(&identity.id, &request->id) ? -EBADMSG : 0;
}
