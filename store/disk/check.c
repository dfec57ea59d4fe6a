// SPDX-License-Identifier: LGPL-2.1-or-later
/* The last step before a file is served: does it carry the id? */
#include "disk/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include <bid/elf.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "disk/layout.h"
#include "disk/root.h"
#include "disk/store.h"
#include "disk/temp.h"
#include "disk/verdict.h"

enum { MAX_UNPACKED = 1 << 30 }; /* bytes; the largest kernel module with DWARF is well below */

/* Open the regular file @path below the store. -ENOENT for anything else. */
static int open_regular(struct bid_store *store, const char *path, struct bid_file *ret_file)
{
	bool lower = bid_store_flags(store) & BID_STORE_LOWER;
	bid_auto_fd int fd = -1;
	struct stat st;
	int r;

	/* distributions' trees of debug files are full of links; ours and perf's stores have none but perf's own */
	r = (lower ? bid_root_open_linked : bid_root_open)(bid_store_root(store), path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);
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

int bid_check_open(struct bid_store *store, const char *path, const struct bid_request *request, struct bid_file *ret_file)
{
	struct bid_file file = { .fd = -1, .kind = request->kind };
	char hex[BID_ID_HEX_MAX];
	bool fresh = false;
	int r;

	r = open_regular(store, path, &file);
	if (r < 0)
		return r;
	if (bid_kind_is_elf(request->kind))
		r = check(store, &request->id, &file, &fresh);
	if (r == -EBADMSG && fresh)
		bid_warning("wrong content: '%s/%s' does not carry the build-id '%s'; not served", bid_store_path(store), path,
			    bid_id_format(&request->id, hex));
	if (r < 0) {
		bid_file_release(&file);
		return r;
	}
	*ret_file = file;
	return 0;
}
