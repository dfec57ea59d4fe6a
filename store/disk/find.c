// SPDX-License-Identifier: LGPL-2.1-or-later
/* The read side: from a request to an open file whose id was checked. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <bid/elf.h>
#include <bid/error.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "disk/layout.h"
#include "disk/root.h"
#include "disk/store.h"
#include "disk/temp.h"
#include "disk/txn.h"
#include "disk/verdict.h"

enum { MAX_UNPACKED = 1 << 30 }; /* bytes; the largest kernel module with DWARF is well below */

/* Open the regular file @path below the store. -ENOENT for anything else. */
static int open_regular(struct bid_store *store, const char *path, struct bid_file *ret_file)
{
	bid_auto_fd int fd = -1;
	struct stat st;
	int r;

	r = bid_root_open(bid_store_root(store), path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	ret_file->fd = bid_steal_fd(&fd);
	ret_file->st = st;
	return 0;
}

/* Open the file of @kind in @place, which in perf's old layout is that file. */
static int open_in(struct bid_store *store, const char *place, enum bid_kind kind, struct bid_file *ret_file)
{
	char path[PATH_MAX + 16];
	int r;

	snprintf(path, sizeof(path), "%s/%s", place, bid_kind_store_name(kind));
	r = open_regular(store, path, ret_file);
	if (r == -ENOENT && (kind == BID_KIND_ELF || kind == BID_KIND_KALLSYMS))
		r = open_regular(store, place, ret_file);
	return r;
}

struct memory {
	int fd;
	off_t len;
};

static int write_memory(void *user, const void *data, size_t len)
{
	struct memory *memory = user;
	int r = bid_pwrite_full(memory->fd, data, len, memory->len);

	memory->len += (off_t)len;
	return r;
}

/* Unpack the compressed file @packed into a file without a name. */
static int unpack(const struct bid_file *packed, struct bid_file *ret_file)
{
	bid_auto_fd int fd = memfd_create("bid-unpacked", MFD_CLOEXEC);
	struct memory memory = { .fd = fd };
	struct stat st;
	int r;

	if (fd < 0)
		return -errno;
	r = bid_elf_unpack(packed->fd, MAX_UNPACKED, write_memory, &memory);
	if (r < 0)
		return r;
	/* it stands in for the packed file: its mode, time and owner */
	if (fchmod(fd, packed->st.st_mode & 0555) < 0 ||
	    futimens(fd, (struct timespec[]){ packed->st.st_atim, packed->st.st_mtim }) < 0 || fstat(fd, &st) < 0)
		return -errno;
	st.st_uid = packed->st.st_uid;
	st.st_gid = packed->st.st_gid;
	ret_file->fd = bid_steal_fd(&fd);
	ret_file->st = st;
	return 0;
}

/* Keep what was unpacked, so that it is done once; where that cannot be, nothing is lost. */
static void keep_unpacked(struct bid_store *store, const struct bid_id *id, struct bid_file *file)
{
	struct bid_temp temp = BID_TEMP_NONE;
	char path[BID_LAYOUT_MAX], name[BID_ID_HEX_MAX + 1];
	bid_auto_fd int dir = -1;

	if (bid_temp_new(store, false, &temp) < 0)
		return;
	snprintf(path, sizeof(path), "%s/%02x", BID_LAYOUT_UNPACKED, id->bytes[0]);
	bid_id_format(id, name);
	if (bid_copy_file(file->fd, temp.fd) == 0 && fchmod(temp.fd, file->st.st_mode & 0555) == 0 && fsync(temp.fd) == 0 &&
	    bid_root_mkdirs(bid_store_root(store), path, false, &dir) == 0)
		bid_temp_link(&temp, dir, name + 2);
	bid_temp_release(&temp);
}

/* Check that @file carries an id that answers @asked; a packed one is replaced by what is in it. */
static int check(struct bid_store *store, const struct bid_id *asked, struct bid_file *file, bool *ret_fresh)
{
	struct bid_file unpacked = BID_FILE_NONE;
	struct bid_verdict_on verdict;
	char path[BID_LAYOUT_MAX];
	int r;

	r = bid_verdict(bid_store_verdicts(store), file->fd, &file->st, false, &verdict);
	if (r < 0)
		return r;
	*ret_fresh = verdict.fresh;
	if (!verdict.packed)
		return bid_id_answers(&verdict.id, asked) ? 0 : -EBADMSG;

	bid_layout_fanned(BID_LAYOUT_UNPACKED, asked, "", path);
	r = open_regular(store, path, &unpacked);
	if (r == 0) {
		r = bid_verdict(bid_store_verdicts(store), unpacked.fd, &unpacked.st, false, &verdict);
		if (r == 0 && (verdict.packed || !bid_id_answers(&verdict.id, asked)))
			r = -EBADMSG;
		if (r < 0)
			bid_file_release(&unpacked);
	}
	if (r < 0) {
		r = unpack(file, &unpacked);
		if (r < 0)
			return r;
		r = bid_elf_identify(unpacked.fd, &verdict.id);
		if (r < 0 || !bid_id_answers(&verdict.id, asked)) {
			bid_file_release(&unpacked);
			return -EBADMSG;
		}
		keep_unpacked(store, asked, &unpacked);
	}
	bid_file_release(file);
	file->fd = bid_steal_fd(&unpacked.fd);
	file->st = unpacked.st;
	return 0;
}

/*
 * A crash between publishing and linking leaves an artifact that perf does not find. @place is the first one that exists for
 * @filed, so there is no link; make it, if it can be made.
 */
static void mend_link(struct bid_store *store, const struct bid_id *filed, const char *place)
{
	char nameless[BID_LAYOUT_MAX];

	if (bid_store_writable(store) && strcmp(place, bid_layout_under(BID_STORE_NAMELESS, filed, nameless)) == 0)
		bid_publish_link(store, filed, place, false);
}

/* One kind, in all places of one spelling. */
static int find_filed(struct bid_store *store, const struct bid_id *filed, const struct bid_request *request,
		      struct bid_file *ret_file)
{
	struct bid_place place = { 0 };
	int result = -ENOENT;

	while (bid_place_next(&place, store, filed, request->kind)) {
		struct bid_file file = { .fd = -1, .kind = request->kind };
		bool fresh = false;
		int r;

		r = open_in(store, place.path, request->kind, &file);
		if (r == 0 && bid_kind_is_elf(request->kind)) {
			r = check(store, &request->id, &file, &fresh);
			if (r < 0)
				bid_file_release(&file);
			if (r == -EBADMSG && fresh) {
				char hex[BID_ID_HEX_MAX];

				bid_warning("wrong content: '%s/%s/%s' does not carry the build-id '%s'; not served",
					    bid_store_path(store), place.path, bid_kind_store_name(request->kind),
					    bid_id_format(&request->id, hex));
			}
		}
		if (r == 0) {
			if (!place.linked)
				mend_link(store, filed, place.path);
			*ret_file = file;
			return 0;
		}
		if (r != -ENOENT)
			result = r;
	}
	return result;
}

static int find_kind(struct bid_store *store, const struct bid_request *request, struct bid_file *ret_file)
{
	struct bid_spelling spelling = { 0 };
	struct bid_id filed;
	int result = -ENOENT;

	while (bid_spelling_next(&spelling, &request->id, &filed)) {
		int r = find_filed(store, &filed, request, ret_file);

		if (r == 0)
			return 0;
		if (r != -ENOENT)
			result = r;
	}
	return result;
}

/* An ELF file that was not stripped is its own debuginfo. */
static int find_unstripped(struct bid_store *store, const struct bid_id *id, struct bid_file *ret_file)
{
	struct bid_request request = { .id = *id, .kind = BID_KIND_ELF };
	struct bid_file file = BID_FILE_NONE;
	struct bid_verdict_on verdict;
	int r;

	r = find_kind(store, &request, &file);
	if (r < 0)
		return r;
	r = bid_verdict(bid_store_verdicts(store), file.fd, &file.st, true, &verdict);
	if (r == 0 && !verdict.has_dwarf)
		r = -ENOENT;
	if (r < 0) {
		bid_file_release(&file);
		return r;
	}
	*ret_file = file;
	return 0;
}

int bid_store_find(struct bid_store *store, const struct bid_request *request, struct bid_file *ret_file)
{
	int r, unstripped;

	if (request->id.len == 0 || request->kind <= BID_KIND_NONE || request->kind >= BID_KIND_COUNT)
		return -EINVAL;

	r = find_kind(store, request, ret_file);
	if (r == 0 || request->kind != BID_KIND_DEBUGINFO)
		return r;
	unstripped = find_unstripped(store, &request->id, ret_file);
	return unstripped == 0 || r == -ENOENT ? unstripped : r;
}

int bid_store_has(struct bid_store *store, const struct bid_id *id)
{
	struct bid_spelling spelling = { 0 };
	struct bid_id filed;

	while (bid_spelling_next(&spelling, id, &filed)) {
		struct bid_place place = { 0 };

		while (bid_place_next(&place, store, &filed, BID_KIND_NONE)) {
			struct stat st;
			int r = bid_root_stat(bid_store_root(store), place.path, &st);

			if (r != -ENOENT)
				return r < 0 ? r : 1;
		}
	}
	return 0;
}

int bid_store_kinds(struct bid_store *store, const struct bid_id *id)
{
	struct bid_spelling spelling = { 0 };
	struct bid_id filed;
	int kinds = 0;

	while (bid_spelling_next(&spelling, id, &filed)) {
		struct bid_place place = { 0 };

		while (bid_place_next(&place, store, &filed, BID_KIND_NONE))
			kinds |= bid_place_kinds(store, place.path);
	}
	return kinds;
}
