// SPDX-License-Identifier: LGPL-2.1-or-later
/* The last step before a file is served: check its build-id. */
#include "disk/check.h"

#include <errno.h>

#include "api/elf.h"
#include "base/kallsyms.h"
#include "base/log.h"
#include "disk/derived.h"
#include "disk/id_cache.h"
#include "disk/layout.h"
#include "disk/store.h"

static int open_regular(struct bid_store *store, const char *path, struct bid_file *file)
{
	/* distributions' trees of debug files are full of links; ours and perf's stores have none but perf's own */
	return bid_store_open_file(store, path, store->flags & BID_STORE_LOWER, file);
}

/* an unpacking; see struct bid_derivation */
struct unpacking {
	const struct bid_file *packed;
	const struct bid_id *asked;
	struct bid_id id; /* id of the content; len 0 before */
};

static int unpack_into(void *user, int fd, uint64_t max)
{
	struct unpacking *unpacking = user;
	int r = bid_elf_unpack_to(unpacking->packed->fd, max < BID_ELF_UNPACKED_MAX ? max : BID_ELF_UNPACKED_MAX, fd);

	if (r == 0)
		r = bid_elf_identify(fd, &unpacking->id);
	return r == 0 && !bid_id_answers(&unpacking->id, unpacking->asked) ? -EBADMSG : r;
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

/* Replace the compressed @file, which lies in @store, by its content. */
static int unpack_file(struct bid_store *store, const struct bid_id *asked, struct bid_file *file)
{
	struct bid_store *upper = bid_store_upper(store);
	struct unpacking unpacking = { .packed = file, .asked = asked };
	struct bid_file unpacked = { .fd = -1, .kind = file->kind };
	int r, fault;

	r = open_kept(upper, asked, &unpacked);
	if (r < 0) {
		r = bid_derived_make(upper, &(struct bid_request){ .id = *asked, .kind = BID_KIND_ELF },
				     &(struct bid_derivation){ .fill = unpack_into, .user = &unpacking, .source = file->st }, true,
				     &unpacked);
		unpacked.kind = file->kind;
		fault = unpacking.id.len ? 0 : bid_derived_fault(r);
		/* a compressed file with a wrong or missing id is unpacked only once */
		if (unpacking.id.len || fault)
			bid_id_cache_unpacked(store->id_cache, &file->st, fault, &unpacking.id);
		if (fault)
			r = fault;
	}
	if (r < 0) {
		bid_file_release(&unpacked);
		return r;
	}
	bid_file_release(file);
	*file = unpacked;
	return 0;
}

/*
 * Check that the id of @file answers @asked; replace a compressed file by its content. Sets *@ret_wrong if the file lies under
 * another id.
 */
static int check_file(struct bid_store *store, const struct bid_id *asked, struct bid_file *file, bool *ret_wrong)
{
	struct bid_id disk_id = bid_layout_disk_id(asked);
	bool debuginfo = file->kind == BID_KIND_DEBUGINFO;
	struct bid_identity identity;
	int r;

	r = bid_id_cache_get(store->id_cache, file->fd, &file->st, debuginfo, &identity);
	if (r < 0)
		return r;
	file->skeleton = debuginfo && identity.is_skeleton;
	file->stripped = debuginfo && !identity.packed && !identity.has_dwarf && !identity.has_symtab;
	/* @asked may be longer than the on-disk id: a file may be correct at its path and still not answer @asked */
	*ret_wrong = !bid_id_answers(&identity.id, &disk_id);
	if (identity.fault < 0)
		return identity.fault;
	if (identity.packed && !identity.unpacked)
		return unpack_file(store, asked, file);
	if (!bid_id_answers(&identity.id, asked))
		return -EBADMSG;
	return identity.packed ? unpack_file(store, asked, file) : 0;
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
		bid_warning("wrong content: '%s/%s' does not carry the build-id '%s'; not served - see 'bidctl verify'",
			    bid_store_path(store), path, bid_id_format(id, hex));
	else
		bid_warning("not unpacked: '%s/%s' %s; not served", bid_store_path(store), path,
			    r == -EFBIG ? "has more than 512 MiB in it" : "is damaged, or this libarchive lacks its codec");
}

int bid_check_open(struct bid_store *store, const char *path, const struct bid_request *request, struct bid_file *ret_file)
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

bool bid_check_anothers(struct bid_store *store, const char *path, const struct bid_request *request)
{
	struct bid_request there = { .id = bid_layout_disk_id(&request->id), .kind = request->kind };
	struct bid_file file = BID_FILE_NONE;
	int right, wanted;

	if (bid_id_equal(&there.id, &request->id))
		return false;
	right = bid_check_open(store, path, &there, &file);
	bid_file_release(&file);
	wanted = bid_check_open(store, path, request, &file);
	bid_file_release(&file);
	return right == 0 && wanted == -EBADMSG;
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
