// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/derive/derive.h"

#include <errno.h>

#include "api/elf.h"
#include "base/local_error.h"
#include "disk/check_cache.h"
#include "disk/derived.h"
#include "disk/lookup.h"
#include "disk/store.h"

enum { TRIES = 4 }; /* compressed files, of which all but the last are wrong */

/* an unpacking; see struct bid_derivation */
struct unpacking {
	const struct bid_file *packed;
	const struct bid_id *requested;
	struct bid_id id; /* id of the content; len 0 before */
};

static int unpack_into(void *user, int fd, uint64_t max)
{
	struct unpacking *unpacking = user;
	int r = bid_elf_unpack_to(unpacking->packed->fd, max < BID_ELF_UNPACKED_MAX ? max : BID_ELF_UNPACKED_MAX, fd);

	if (r == 0)
		r = bid_elf_build_id(fd, &unpacking->id);
	return r == 0 && !bid_id_answers(&unpacking->id, unpacking->requested) ? -EBADMSG : r;
}

/* Replace the compressed @file, found in @store for @artifact, by its content; release it on failure. As bid_store_find(). */
static int unpack_file(struct bid_store *store, const struct bid_artifact *artifact, struct bid_file *file)
{
	struct bid_store *upper = bid_store_upper(store);
	struct unpacking unpacking = { .packed = file, .requested = &artifact->id };
	struct bid_file unpacked = BID_FILE_NONE;
	int r = bid_derived_make(upper, &(struct bid_artifact){ .id = artifact->id, .kind = BID_KIND_ELF },
				 &(struct bid_derivation){ .fill = unpack_into, .user = &unpacking, .source = file->st }, true,
				 &unpacked);
	int fault = unpacking.id.len ? 0 : bid_derived_fault(r);

	/* a compressed file with a wrong or missing id is unpacked only once */
	if (unpacking.id.len || fault)
		bid_check_cache_unpacked(store->check_cache, &file->st, fault, &unpacking.id);
	unpacked.kind = file->kind;
	bid_file_release(file);
	*file = unpacked;
	return fault ? fault : r;
}

/* An unpacked module can only be its own debuginfo if it was not stripped. */
static int check_dwarf(struct bid_file *file)
{
	struct bid_elf_info info;
	int r = bid_elf_examine(file->fd, &info);

	if (r == 0 && info.has_dwarf)
		return 0;
	bid_file_release(file);
	return -ENOENT;
}

int bid_find_unpacked(struct bid_store *store, const struct bid_artifact *artifact, enum bid_derive derive,
		      struct bid_file *ret_file)
{
	struct bid_file file = BID_FILE_NONE;
	int r = -ENOENT;

	for (int tries = 0; tries < TRIES; tries++) {
		r = bid_lookup_file(store, artifact, &file);
		if (r == 0 && file.packed && derive == BID_NEVER_DERIVE) {
			bid_file_release(&file);
			return -EAGAIN;
		}
		if (r == 0 && file.packed) {
			r = unpack_file(store, artifact, &file);
			if (r == 0 && artifact->kind == BID_KIND_DEBUGINFO && file.kind == BID_KIND_ELF)
				r = check_dwarf(&file);
			/* the next lookup passes the file: the check cache has its fault, or the store its content */
			if (bid_is_unusable(r) || (r == -ENOENT && bid_store_writable(store)))
				continue;
		}
		break;
	}
	if (r == 0)
		*ret_file = file;
	return r;
}
