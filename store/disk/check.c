// SPDX-License-Identifier: LGPL-2.1-or-later
/* The last step before a file is served: check its build-id. */
#include "disk/check.h"

#include <errno.h>

#include "api/elf.h"
#include "base/access.h"
#include "base/cleanup.h"
#include "base/kallsyms.h"
#include "base/log.h"
#include "disk/derive/memory.h"
#include "disk/derived.h"
#include "disk/id_cache.h"
#include "disk/layout.h"
#include "disk/publish/temp.h"
#include "disk/store.h"

static int open_regular(struct bid_store *store, const char *path, struct bid_file *file)
{
	/* distributions' trees of debug files are full of links; ours and perf's stores have none but perf's own */
	return bid_store_open_file(store, path, bid_store_flags(store) & BID_STORE_LOWER, file);
}

/* Unpack @packed, at most @max bytes, into @fd, and copy its readers and time. Returns 0 and the id of the content. */
static int unpack_into(int fd, uint64_t max, const struct bid_file *packed, struct bid_id *ret_id)
{
	int r = bid_elf_unpack_to(packed->fd, max, fd);

	if (r == 0)
		r = bid_elf_identify(fd, ret_id);
	if (r < 0)
		return r;
	if (futimens(fd, (struct timespec[]){ { .tv_nsec = UTIME_NOW }, packed->st.st_mtim }) < 0)
		return -errno;
	return bid_set_readers(fd, packed->st.st_mode, packed->st.st_uid);
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
	r = bid_id_cache_get(bid_store_id_cache(upper), file->fd, &file->st, false, &identity);
	if (r == 0 && (identity.packed || !bid_id_answers(&identity.id, id)))
		r = -EBADMSG;
	if (r < 0)
		bid_file_release(file);
	return r;
}

/* Without a place to keep a copy: unpack into memory for as long as the file is open. */
static int unpack_to_memory(const struct bid_file *packed, struct bid_id *ret_id, struct bid_file *file)
{
	bid_auto_fd int fd = -1;
	uint64_t left = 0;
	struct stat st;
	int r;

	r = bid_memory_new("bid-unpacked", 0, &fd);
	if (r == 0)
		r = bid_memory_left(&left);
	if (r == 0)
		r = unpack_into(fd, left < BID_ELF_UNPACKED_MAX ? left : BID_ELF_UNPACKED_MAX, packed, ret_id);
	/* free memory was the limit, and may grow */
	if (r == -EFBIG && left < BID_ELF_UNPACKED_MAX)
		r = -ENOMEM;
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	st.st_uid = packed->st.st_uid;
	st.st_gid = packed->st.st_gid;
	file->fd = bid_steal_fd(&fd);
	file->st = st;
	return 0;
}

static int unpack_to_store(struct bid_store *upper, const struct bid_id *asked, const struct bid_file *packed,
			   struct bid_id *ret_id, struct bid_file *file)
{
	struct bid_temp temp = BID_TEMP_NONE;
	int r;

	r = bid_temp_new(upper, false, &temp);
	if (r == 0)
		r = unpack_into(temp.fd, BID_ELF_UNPACKED_MAX, packed, ret_id);
	if (r == 0 && bid_id_answers(ret_id, asked)) {
		r = bid_derived_keep(upper, &(struct bid_request){ .id = *asked, .kind = BID_KIND_ELF }, &temp);
		if (r == 0)
			r = open_kept(upper, asked, file);
	}
	bid_temp_release(&temp);
	return r;
}

/* Return the error of unpacking if the file causes it. Returns 0 for a lack of memory, descriptors or disk, which may pass. */
static int fault_of_file(int r)
{
	switch (r) {
	case -EFBIG:
		return r;
	case -EBADMSG:
	case -ENOEXEC:
	case -ENODATA:
	case -EOPNOTSUPP:
		return -EOPNOTSUPP;
	default:
		return 0;
	}
}

/* Replace the compressed @file, which lies in @store, by its content. */
static int unpack_file(struct bid_store *store, const struct bid_id *asked, struct bid_file *file)
{
	struct bid_store *upper = bid_store_upper(store);
	struct bid_file unpacked = { .fd = -1, .kind = file->kind };
	struct bid_id id = { 0 };
	int r, fault;

	r = open_kept(upper, asked, &unpacked);
	if (r < 0) {
		r = -EROFS;
		if (bid_store_writable(upper))
			r = unpack_to_store(upper, asked, file, &id, &unpacked);
		if (r < 0 && (id.len || !fault_of_file(r)))
			r = unpack_to_memory(file, &id, &unpacked);
		fault = id.len ? 0 : fault_of_file(r);
		/* a compressed file with a wrong or missing id is unpacked only once */
		if (id.len || fault)
			bid_id_cache_unpacked(bid_store_id_cache(store), &file->st, fault, &id);
		if (fault)
			r = fault;
		else if (r == 0 && !bid_id_answers(&id, asked))
			r = -EBADMSG;
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

	r = bid_id_cache_get(bid_store_id_cache(store), file->fd, &file->st, debuginfo, &identity);
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
	if (!bid_id_cache_report(bid_store_id_cache(store), &file->st))
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
	r = bid_id_cache_get(bid_store_id_cache(store), file->fd, &file->st, false, &identity);
	if (r < 0)
		return r;
	return identity.packed || !bid_id_answers(&identity.id, &request->id) ? -EBADMSG : 0;
}
