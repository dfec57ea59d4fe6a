// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/derive/derive.h"

#include <errno.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/local_error.h"
#include "base/log.h"
#include "base/world_readable.h"
#include "disk/check_cache.h"
#include "disk/derived.h"
#include "disk/lookup.h"
#include "disk/store.h"

/* The two files to put together. */
struct pair {
	struct bid_file elf, debug; /* owned */
	const struct bid_id *id;
};

#define PAIR_NONE ((struct pair){ .elf = { .fd = -1 }, .debug = { .fd = -1 } })

static void pair_release(struct pair *pair)
{
	bid_file_release(&pair->elf);
	bid_file_release(&pair->debug);
}

/* Is the debuginfo a whole ELF file? A user may add one beside the stripped file. */
static bool is_whole(const struct bid_file *debug)
{
	struct bid_elf_info info;

	return debug->kind == BID_KIND_ELF || (bid_elf_examine(debug->fd, &info) == 0 && info.has_code && info.has_dwarf);
}

/* Find the kept file, or a stored one that is not stripped. */
static int find_whole(struct bid_store *store, const struct bid_artifact *artifact, enum bid_derive derive,
		      struct bid_file *ret_file)
{
	bid_cleanup(bid_file_release) struct bid_file debug = BID_FILE_NONE;
	int r;

	/* a derived file belongs to a file of the store */
	if (bid_lookup_has_image(store, &artifact->id) == 0)
		return -ENOENT;
	/* a kept file does not show who signed its parts */
	if (!bid_store_requires_signed(store) && bid_open_kept(store, artifact, ret_file) == 0)
		return 0;
	r = bid_find_unpacked(store, &(struct bid_artifact){ .id = artifact->id, .kind = BID_KIND_DEBUGINFO }, derive, &debug);
	if (r < 0 || !is_whole(&debug))
		return r == -EAGAIN ? r : -ENOENT;
	*ret_file = debug;
	debug.fd = -1;
	return 0;
}

/* Find both files. -ENOENT if one is absent or refused: a server may have it. */
static int find_pair(struct bid_store *store, enum bid_derive derive, struct pair *pair)
{
	int r = bid_find_unpacked(store, &(struct bid_artifact){ .id = *pair->id, .kind = BID_KIND_ELF }, derive, &pair->elf);

	if (r == 0)
		r = bid_find_unpacked(store, &(struct bid_artifact){ .id = *pair->id, .kind = BID_KIND_DEBUGINFO }, derive,
				      &pair->debug);
	return bid_is_unusable(r) || (r == 0 && pair->debug.stripped) ? -ENOENT : r;
}

/* Set the attributes of the result: only readers of both files may read it. */
static int find_readers(const struct pair *pair, struct stat *ret_st)
{
	const struct stat *elf = &pair->elf.st, *debug = &pair->debug.st;

	if (!bid_mode_is_world_readable(elf->st_mode) && !bid_mode_is_world_readable(debug->st_mode) &&
	    elf->st_uid != debug->st_uid)
		return -EACCES;
	*ret_st = bid_mode_is_world_readable(debug->st_mode) ? *elf : *debug;
	ret_st->st_mtim = elf->st_mtim;
	return 0;
}

/* bid_derivation: write the result, and check that it is a whole file with the id. */
static int merge_into(void *user, int fd, uint64_t max)
{
	const struct pair *pair = user;
	struct bid_elf_info info;
	int r = bid_elf_unstrip(pair->elf.fd, pair->debug.fd, max, fd);

	if (r == 0)
		r = bid_elf_examine(fd, &info);
	return r == 0 && !bid_id_answers(&info.id, pair->id) ? -EBADMSG : r;
}

/* Log why there is no result, and remember it for both files: either may be replaced. */
static void note_refusal(struct bid_store *store, const struct pair *pair, int r)
{
	char hex[BID_ID_HEX_MAX];

	bid_note_failure(store, &pair->elf.st, BID_KIND_UNSTRIPPED, r);
	bid_note_failure(store, &pair->debug.st, BID_KIND_UNSTRIPPED, r);
	if (bid_is_unusable(r))
		bid_warning("cannot put the ELF file and the debuginfo of '%s' together: they %s", bid_id_format(pair->id, hex),
			    r == -EOPNOTSUPP ? "are relocatable, or have no section headers"
			    : r == -EFBIG    ? "need more than 512 MiB of memory, as the store cannot be written"
					     : "do not belong together");
}

int bid_find_unstripped(struct bid_store *store, const struct bid_artifact *artifact, enum bid_derive derive,
			struct bid_file *ret_file)
{
	bid_cleanup(pair_release) struct pair pair = PAIR_NONE;
	struct bid_derivation derivation = { .fill = merge_into, .user = &pair };
	int r = find_whole(store, artifact, derive, ret_file);

	if (r != -ENOENT)
		return r;
	pair.id = &artifact->id;
	r = find_pair(store, derive, &pair);
	if (r == 0)
		r = find_readers(&pair, &derivation.source);
	if (r == 0 && bid_check_cache_is_underivable(store->check_cache, &pair.elf.st, BID_KIND_UNSTRIPPED) &&
	    bid_check_cache_is_underivable(store->check_cache, &pair.debug.st, BID_KIND_UNSTRIPPED))
		r = -EOPNOTSUPP;
	if (r == 0 && derive == BID_NEVER_DERIVE)
		r = -EAGAIN;
	if (r < 0)
		return r;
	/* st_size of a sparse file is a claim */
	derivation.room = (uint64_t)(pair.elf.st.st_blocks + pair.debug.st.st_blocks) * 512;
	r = bid_derived_make(store, artifact, &derivation, !bid_store_requires_signed(store), ret_file);
	note_refusal(store, &pair, r);
	return r;
}
