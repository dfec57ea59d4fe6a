// SPDX-License-Identifier: LGPL-2.1-or-later
/* Adding a file of this machine: which build it is, and how its bytes get into the store. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <bid/elf.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "disk/layout.h"
#include "disk/record.h"
#include "disk/root.h"
#include "disk/store.h"
#include "disk/temp.h"
#include "disk/txn.h"

enum {
	LINKS_MAX = 60000, /* ext4 allows 65000; leave some to others */
	MAX_UNPACKED = 1 << 30,
};

struct source {
	int fd; /* owned */
	struct stat st;
	char path[PATH_MAX]; /* the real one */
	struct bid_elf_info info;
	bool packed; /* a compressed module: info is of what is in it, which is in temp */
	struct bid_temp temp;
	uint64_t temp_size;
};

static int write_temp(void *user, const void *data, size_t len)
{
	struct source *source = user;
	int r = bid_pwrite_full(source->temp.fd, data, len, (off_t)source->temp_size);

	source->temp_size += len;
	return r;
}

static int unpack(struct bid_store *store, struct source *source)
{
	int r = bid_temp_new(store, false, &source->temp);

	if (r == 0)
		r = bid_elf_unpack(source->fd, MAX_UNPACKED, write_temp, source);
	if (r == 0)
		r = bid_elf_examine(source->temp.fd, &source->info);
	source->packed = true;
	return r == -EBADMSG ? -ENOEXEC : r;
}

static int examine(struct bid_store *store, struct source *source)
{
	char head[8];
	ssize_t n = bid_pread_full(source->fd, head, sizeof(head), 0);
	int r;

	if (n < 0)
		return (int)n;
	if (n == sizeof(head) && bid_elf_is_packed(head, sizeof(head)))
		r = unpack(store, source);
	else
		r = bid_elf_examine(source->fd, &source->info);
	if (r < 0)
		return r;
	return source->info.id.len ? 0 : -ENODATA;
}

static int open_source(const char *path, struct source *source)
{
	char link[64];
	ssize_t len;

	source->fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (source->fd < 0 || fstat(source->fd, &source->st) < 0)
		return -errno;
	if (!S_ISREG(source->st.st_mode))
		return -EINVAL;
	/* the path of what was opened, whatever happens to the name meanwhile */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", source->fd);
	len = readlink(link, source->path, sizeof(source->path));
	if (len < 0)
		return -errno;
	if ((size_t)len >= sizeof(source->path) || source->path[0] != '/')
		return -ENAMETOOLONG;
	source->path[len] = '\0';
	return 0;
}

/*
 * May the store share the file's inode? Not one whose bits would outlive a security update in the store, and not one that
 * somebody may not read where it is.
 */
static bool may_link(const struct source *source)
{
	const struct stat *st = &source->st;

	if (st->st_mode & (S_ISUID | S_ISGID) || !(st->st_mode & S_IROTH) || st->st_nlink >= LINKS_MAX)
		return false;
	return fgetxattr(source->fd, "security.capability", NULL, 0) < 0 && (errno == ENODATA || errno == EOPNOTSUPP);
}

static mode_t copied_mode(const struct source *source)
{
	mode_t mode = source->st.st_mode;

	if (mode & (S_ISUID | S_ISGID) || !may_link(source))
		return mode & 0444;
	return mode & 0555;
}

/* Fill source->temp with the file's bytes, and check that they are still those of its id. */
static int fill_temp(struct bid_store *store, struct source *source, bool reflink)
{
	struct bid_elf_info info;
	int r;

	if (!source->packed) {
		if (source->temp.fd < 0) {
			r = bid_temp_new(store, false, &source->temp);
			if (r < 0)
				return r;
		}
		if (reflink)
			r = ioctl(source->temp.fd, FICLONE, source->fd) < 0 ? -errno : 0;
		else
			r = bid_copy_file(source->fd, source->temp.fd);
		if (r < 0)
			return r;
		r = bid_elf_examine(source->temp.fd, &info);
		if (r < 0 || !bid_id_equal(&info.id, &source->info.id))
			return r == -ENOMEM ? r : -EAGAIN; /* it is being written */
	}
	if (fchmod(source->temp.fd, copied_mode(source)) < 0 || fsync(source->temp.fd) < 0)
		return -errno;
	return 0;
}

static int put_temp(void *user, int dir, const char *name)
{
	struct source *source = user;

	return bid_temp_link(&source->temp, dir, name);
}

static int put_hard(void *user, int dir, const char *name)
{
	struct source *source = user;
	char link[64];

	/* by descriptor: what was examined, whatever has its name now */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", source->fd);
	return linkat(AT_FDCWD, link, dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* Does this errno only say that the file system, or the rules for links, do not have it? */
static bool not_to_be_had(int r)
{
	return r == -EOPNOTSUPP || r == -EXDEV || r == -EINVAL || r == -EPERM || r == -EMLINK || r == -ENOTTY || r == -ENOSYS;
}

/* Publish as @path by the first of the ways of @wanted that works. */
static int put(struct bid_store *store, struct source *source, enum bid_kind kind, const char *path, enum bid_link wanted,
	       enum bid_link *ret_link)
{
	int r = -EOPNOTSUPP;

	if (!source->packed && (wanted == BID_LINK_AUTO || wanted == BID_LINK_REFLINK)) {
		*ret_link = BID_LINK_REFLINK;
		r = fill_temp(store, source, true);
		if (r == 0)
			return bid_publish(store, &source->info.id, kind, path, true, put_temp, source);
		if (wanted == BID_LINK_REFLINK || !not_to_be_had(r))
			return r;
	}
	if (!source->packed && may_link(source) && (wanted == BID_LINK_AUTO || wanted == BID_LINK_HARD)) {
		*ret_link = BID_LINK_HARD;
		r = bid_publish(store, &source->info.id, kind, path, true, put_hard, source);
		if (r == 0 || r == -EEXIST || wanted == BID_LINK_HARD || !not_to_be_had(r))
			return r;
	}
	*ret_link = BID_LINK_COPY;
	r = fill_temp(store, source, false);
	return r < 0 ? r : bid_publish(store, &source->info.id, kind, path, true, put_temp, source);
}

static int put_known(void *user, int dir, const char *name)
{
	const struct bid_file *file = user;
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
	return linkat(AT_FDCWD, link, dir, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* The artifact is in the store: give it this name too, if it is a new one. One object, several names. */
static int add_name(struct bid_store *store, const struct source *source, struct bid_file *file, const char *path)
{
	char where[PATH_MAX];
	int r;

	if (source->packed || (bid_store_where(store, &source->info.id, where, sizeof(where)) == 0 && strcmp(where, path) == 0))
		return 0;
	r = bid_publish(store, &source->info.id, file->kind, path, true, put_known, file);
	return r == -EEXIST || not_to_be_had(r) ? 0 : r;
}

static int add(struct bid_store *store, struct source *source, enum bid_link wanted, struct bid_added *added)
{
	struct bid_id filed = bid_layout_filed(&source->info.id);
	struct bid_origin origin = { .how = source->packed ? "unpacked" : "added", .file = source->path };
	struct bid_request request;
	struct bid_file file = BID_FILE_NONE;
	char path[PATH_MAX], where[PATH_MAX], hex[BID_ID_HEX_MAX];
	int r;

	/* code that has no bytes is what is left in a separate debug file */
	added->kind = !source->info.has_code && (source->info.has_dwarf || source->info.has_symtab) ? BID_KIND_DEBUGINFO
												    : BID_KIND_ELF;
	added->id = source->info.id;
	request = (struct bid_request){ .id = added->id, .kind = added->kind };
	if (snprintf(path, sizeof(path), "%s/%s", source->path + 1, bid_id_format(&filed, hex)) >= (int)sizeof(path))
		return -ENAMETOOLONG;

	r = bid_store_find(store, &request, &file);
	added->known = r == 0 && file.kind == added->kind;
	if (!added->known) {
		/*
		 * readers follow perf's link, so that is where it goes if there is one; debug files always go beside their ELF
		 * file
		 */
		if (added->kind == BID_KIND_DEBUGINFO || bid_store_where(store, &added->id, where, sizeof(where)) == 0)
			bid_publish_where(store, &added->id, where);
		else
			memcpy(where, path, sizeof(where));
		bid_file_release(&file);
		r = put(store, source, added->kind, where, wanted, &added->link);
		if (r < 0 && r != -EEXIST)
			return r;
		r = bid_store_find(store, &request, &file);
		if (r < 0)
			return r;
	}
	if (added->kind == BID_KIND_ELF)
		r = add_name(store, source, &file, path);
	bid_file_release(&file);
	if (r < 0 || added->known)
		return r;
	bid_record_write(store, &(struct bid_record){
					.request = request,
					.origin = &origin,
					.link = added->link,
					.source = &source->st,
					.size = source->packed ? source->temp_size : (uint64_t)source->st.st_size,
				});
	return 0;
}

int bid_store_add(struct bid_store *store, const char *path, enum bid_link link, struct bid_added *ret_added)
{
	struct source source = { .fd = -1, .temp = BID_TEMP_NONE };
	struct bid_added added = { .link = BID_LINK_AUTO };
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	r = open_source(path, &source);
	if (r == 0)
		r = examine(store, &source);
	if (r == 0)
		r = add(store, &source, link, &added);
	bid_temp_release(&source.temp);
	bid_close(source.fd);
	if (r < 0)
		return r;
	*ret_added = added;
	return 0;
}
