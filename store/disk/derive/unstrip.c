// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/derive/unstrip.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/access.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/trouble.h"
#include "disk/check.h"
#include "disk/derive/memory.h"
#include "disk/derived.h"
#include "disk/find.h"
#include "disk/id_cache.h"
#include "disk/space.h"
#include "disk/store.h"

/* The two files to put together. */
struct pair {
	struct bid_file elf, debug; /* owned */
};

#define PAIR_NONE ((struct pair){ .elf = { .fd = -1 }, .debug = { .fd = -1 } })

static void pair_release(struct pair *pair)
{
	bid_file_release(&pair->elf);
	bid_file_release(&pair->debug);
}

static int open_kept(struct bid_store *store, const struct bid_request *request, struct bid_file *ret_file)
{
	char path[BID_LAYOUT_MAX];

	return bid_check_open(store, bid_derived_path(request, path), request, ret_file);
}

/* Is the debuginfo a whole ELF file? A user may add one beside the stripped file. */
static bool is_whole(const struct bid_file *debug)
{
	struct bid_elf_info info;

	return debug->kind == BID_KIND_ELF || (bid_elf_examine(debug->fd, &info) == 0 && info.has_code && info.has_dwarf);
}

int bid_unstripped_find(struct bid_store *store, const struct bid_request *request, struct bid_file *ret_file)
{
	bid_cleanup(bid_file_release) struct bid_file debug = BID_FILE_NONE;
	struct bid_request debuginfo = { .id = request->id, .kind = BID_KIND_DEBUGINFO };

	/* a derived file belongs to a file of the store */
	if (bid_find_has_image(store, &request->id) == 0)
		return -ENOENT;
	/* a kept file does not show who signed its parts */
	if (!bid_store_requires_signed(store) && open_kept(store, request, ret_file) == 0)
		return 0;
	if (bid_find_stored(store, &debuginfo, &debug) < 0 || !is_whole(&debug))
		return -ENOENT;
	*ret_file = debug;
	debug.fd = -1;
	return 0;
}

/* Return the mode and the owner for the result: only readers of both files may read it. */
static int find_readers(const struct pair *pair, mode_t *ret_mode, uid_t *ret_owner)
{
	const struct stat *elf = &pair->elf.st, *debug = &pair->debug.st;

	if (!bid_all_read(elf->st_mode) && !bid_all_read(debug->st_mode) && elf->st_uid != debug->st_uid)
		return -EACCES;
	*ret_mode = bid_all_read(debug->st_mode) ? elf->st_mode : debug->st_mode;
	*ret_owner = bid_all_read(debug->st_mode) ? elf->st_uid : debug->st_uid;
	return 0;
}

/* Write the result into the empty file open at @fd, and check that it is a whole file with the id. */
static int merge_into(int fd, uint64_t max, const struct pair *pair, const struct bid_id *id)
{
	struct bid_elf_info info;
	uid_t owner = 0;
	mode_t mode = 0;
	int r;

	r = find_readers(pair, &mode, &owner);
	if (r == 0)
		r = bid_elf_unstrip(pair->elf.fd, pair->debug.fd, max, fd);
	if (r == 0)
		r = bid_elf_examine(fd, &info);
	if (r == 0 && !bid_id_answers(&info.id, id))
		r = -EBADMSG;
	if (r == 0 && futimens(fd, (struct timespec[]){ { .tv_nsec = UTIME_NOW }, pair->elf.st.st_mtim }) < 0)
		r = -errno;
	return r == 0 ? bid_set_readers(fd, mode & 0555, owner) : r;
}

static int merge_to_store(struct bid_store *store, const struct bid_request *request, const struct pair *pair,
			  struct bid_file *ret_file)
{
	struct bid_temp temp = BID_TEMP_NONE;
	int r = bid_temp_new(store, false, &temp);

	if (r == 0)
		r = merge_into(temp.fd, UINT64_MAX, pair, &request->id);
	if (r == 0)
		r = bid_derived_keep(store, request, &temp);
	bid_temp_release(&temp);
	return r < 0 ? r : open_kept(store, request, ret_file);
}

static int merge_to_memory(const struct bid_request *request, const struct pair *pair, struct bid_file *ret_file)
{
	bid_auto_fd int fd = -1;
	uint64_t left = 0;
	struct stat st;
	int r;

	r = bid_memory_new("bid-unstripped", 0, &fd);
	if (r == 0)
		r = bid_memory_left(&left);
	if (r == 0)
		r = merge_into(fd, left, pair, &request->id);
	if (r < 0)
		return r == -EFBIG && left < BID_LIMIT_MEMORY ? -ENOMEM : r;
	if (fstat(fd, &st) < 0)
		return -errno;
	r = find_readers(pair, &st.st_mode, &st.st_uid);
	if (r < 0)
		return r;
	st.st_mode = S_IFREG | (st.st_mode & 0555);
	*ret_file = (struct bid_file){ .fd = bid_steal_fd(&fd), .kind = request->kind, .st = st };
	return 0;
}

/* Log once why there is no result. */
static void log_refusal(struct bid_store *store, const struct bid_id *id, const struct pair *pair, int r)
{
	char hex[BID_ID_HEX_MAX];

	if (!bid_is_unusable(r) || !bid_id_cache_report(bid_store_id_cache(store), &pair->debug.st))
		return;
	bid_warning("not put together: the ELF file and the debuginfo of '%s' %s", bid_id_format(id, hex),
		    r == -EOPNOTSUPP ? "are relocatable, or have no section headers"
		    : r == -EFBIG    ? "need more than 512 MiB of memory, as the store cannot be written"
				     : "do not belong together");
}

int bid_store_unstrip(struct bid_store *store, const struct bid_id *id, struct bid_file *ret_file)
{
	struct bid_request request = { .id = *id, .kind = BID_KIND_UNSTRIPPED };
	bid_cleanup(pair_release) struct pair pair = PAIR_NONE;
	int r = bid_unstripped_find(store, &request, ret_file);

	if (r != -ENOENT)
		return r;
	r = bid_find_stored(store, &(struct bid_request){ .id = *id, .kind = BID_KIND_ELF }, &pair.elf);
	if (r == 0)
		r = bid_find_stored(store, &(struct bid_request){ .id = *id, .kind = BID_KIND_DEBUGINFO }, &pair.debug);
	if (r == 0 && pair.debug.stripped)
		r = -ENOENT;
	if (r < 0)
		return r;
	if (!bid_store_writable(store) || bid_store_requires_signed(store))
		r = merge_to_memory(&request, &pair, ret_file);
	else
		r = merge_to_store(store, &request, &pair, ret_file);
	if ((r == -ENOSPC || r == -EDQUOT) &&
	    bid_space_make_room(bid_store_space(store), (uint64_t)(pair.elf.st.st_size + pair.debug.st.st_size)))
		r = merge_to_store(store, &request, &pair, ret_file);
	log_refusal(store, id, &pair, r);
	return r;
}
