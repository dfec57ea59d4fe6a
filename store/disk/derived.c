// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/derived.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/world_readable.h"
#include "disk/beneath.h"
#include "disk/publish/temp.h"
#include "disk/record.h"
#include "disk/source_section.h"
#include "disk/space.h"
#include "disk/store.h"

static const struct {
	enum bid_kind kind;
	const char *folder;
} sorts[] = {
	{ BID_KIND_ELF, BID_LAYOUT_UNPACKED },
	{ BID_KIND_KALLSYMS, BID_LAYOUT_TABLES },
	{ BID_KIND_UNSTRIPPED, BID_LAYOUT_UNSTRIPPED },
};

#define SORTS (sizeof(sorts) / sizeof(sorts[0]))

const char *bid_derived_path(const struct bid_artifact *artifact, char buf[static BID_LAYOUT_MAX])
{
	struct bid_id disk_id = bid_layout_disk_id(&artifact->id);
	const char *folder = BID_LAYOUT_UNPACKED;

	for (size_t sort = 0; sort < SORTS; sort++)
		if (sorts[sort].kind == artifact->kind)
			folder = sorts[sort].folder;
	return bid_layout_fanout_path(folder, &disk_id, "", buf);
}

bool bid_derived_has_table(struct bid_store *store, const struct bid_id *disk_id)
{
	char path[BID_LAYOUT_MAX];
	struct stat st;

	bid_derived_path(&(struct bid_artifact){ .id = *disk_id, .kind = BID_KIND_KALLSYMS }, path);
	return bid_beneath_stat(store->root, path, &st) == 0;
}

/* Fill the empty file at @fd, and give it the time and the readers of its source. */
static int fill_file(int fd, uint64_t max, const struct bid_derivation *derivation)
{
	const struct stat *source = &derivation->source;
	int r = derivation->fill(derivation->user, fd, max);

	if (r < 0)
		return r;
	if (futimens(fd, (struct timespec[]){ { .tv_nsec = UTIME_NOW }, source->st_mtim }) < 0)
		return -errno;
	return bid_set_readers(fd, source->st_mode, source->st_uid);
}

static int derive_to_store(struct bid_store *store, const struct bid_artifact *artifact, const struct bid_derivation *derivation,
			   struct bid_file *ret_file)
{
	struct bid_record record = { .artifact = *artifact, .origin = &(struct bid_origin){ .how = BID_SLICED } };
	struct bid_file file = { .fd = -1, .kind = artifact->kind };
	struct bid_temp temp = BID_TEMP_NONE;
	char path[PATH_MAX];
	int r = bid_temp_new(store, false, &temp);

	if (r == 0)
		r = fill_file(temp.fd, UINT64_MAX, derivation);
	if (r == 0 && fsync(temp.fd) < 0)
		r = -errno;
	if (r == 0)
		r = bid_temp_publish(&temp, store,
				     artifact->subpath ? bid_source_section_path(artifact, path) : bid_derived_path(artifact, path),
				     true);
	bid_temp_release(&temp);
	if (r == 0)
		r = bid_store_open_file(store, path, false, &file);
	if (r < 0)
		return r;
	bid_space_published(store->space, (uint64_t)file.st.st_size);
	record.size = (uint64_t)file.st.st_size;
	/* before the first use: a section without a record counts as fetched, and is cut again */
	r = artifact->subpath ? bid_record_write(store, &record) : 0;
	if (r < 0)
		bid_file_release(&file);
	else
		*ret_file = file;
	return r;
}

/* Artifacts that the store cannot keep are files in memory. BID_LIMIT_MEMORY bounds the sum of all open ones of this process. */

/* Sum up the bytes of the open files in memory; @fd is one of them. Takes up to a few milliseconds. */
static int count_memory(int fd, uint64_t *ret_bytes)
{
	bid_auto_dir DIR *descriptors = opendir("/proc/self/fd");
	struct dirent *entry;
	struct stat like, st;

	if (!descriptors || fstat(fd, &like) < 0)
		return -errno;
	*ret_bytes = 0;
	while ((entry = readdir(descriptors)))
		/* by the name: another thread may close the descriptor meanwhile */
		if (entry->d_name[0] != '.' && fstatat(dirfd(descriptors), entry->d_name, &st, 0) == 0 &&
		    st.st_dev == like.st_dev && st.st_nlink == 0)
			*ret_bytes += (uint64_t)st.st_size;
	return 0;
}

static int derive_to_memory(enum bid_kind kind, const struct bid_derivation *derivation, struct bid_file *ret_file)
{
	bid_auto_fd int fd = memfd_create("bid-derived", MFD_CLOEXEC);
	uint64_t used = 0;
	struct stat st;
	int r;

	if (fd < 0)
		return -errno;
	if (derivation->size > BID_LIMIT_MEMORY)
		return -ENOMEM;
	/* set the size first, so that a counting thread includes it */
	if (ftruncate(fd, (off_t)derivation->size) < 0)
		return -errno;
	r = count_memory(fd, &used);
	if (r == 0)
		r = used > BID_LIMIT_MEMORY ? -ENOMEM : fill_file(fd, BID_LIMIT_MEMORY - used + derivation->size, derivation);
	/* memory was the limit, and others may release it */
	if (r == -EFBIG && used > 0)
		r = -ENOMEM;
	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r < 0)
		return r;
	st.st_uid = derivation->source.st_uid;
	st.st_gid = derivation->source.st_gid;
	*ret_file = (struct bid_file){ .fd = bid_steal_fd(&fd), .kind = kind, .st = st };
	return 0;
}

int bid_derived_fault(int r)
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

int bid_derived_make(struct bid_store *store, const struct bid_artifact *artifact, const struct bid_derivation *derivation,
		     bool keep, struct bid_file *ret_file)
{
	int r = -EROFS;

	if (keep && bid_store_writable(store))
		r = derive_to_store(store, artifact, derivation, ret_file);
	if ((r == -ENOSPC || r == -EDQUOT) && derivation->room > 0 && bid_space_make_room(store->space, derivation->room, false))
		r = derive_to_store(store, artifact, derivation, ret_file);
	if (r == 0 || bid_derived_fault(r))
		return r;
	if (r != -EROFS)
		bid_debug("%s: cannot keep a derived file in '%s'", strerror(-r), bid_store_path(store));
	return derive_to_memory(artifact->kind, derivation, ret_file);
}

void bid_derived_used(struct bid_store *store, const struct bid_artifact *artifact, time_t if_before)
{
	static const struct timespec now[] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT } };
	char path[BID_LAYOUT_MAX];
	bid_auto_fd int dir = -1;
	const char *name;
	struct stat st;

	if (!bid_kind_is_elf(artifact->kind) && artifact->kind != BID_KIND_KALLSYMS)
		return;
	if (bid_beneath_parent(store->root, bid_derived_path(artifact, path), O_PATH, &dir, &name) < 0 ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_atim.tv_sec >= if_before || !S_ISREG(st.st_mode))
		return;
	bid_touch(dir, name, now);
}

struct each_derived {
	enum bid_kind kind;
	int (*fn)(void *user, const struct bid_artifact *artifact, const struct stat *st);
	void *user;
};

static int each_in(void *user, DIR *dir, const char *first)
{
	const struct each_derived *each = user;
	char hex[2 + NAME_MAX + 1];
	struct dirent *entry;
	int r = 0;

	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		struct bid_artifact artifact = { .kind = each->kind };
		struct stat st;

		snprintf(hex, sizeof(hex), "%s%s", first, entry->d_name);
		if (bid_id_parse_str(hex, &artifact.id) == 0 && fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			r = each->fn(each->user, &artifact, &st);
	}
	return r != 0 ? r : -errno;
}

int bid_derived_each(struct bid_store *store, int (*fn)(void *user, const struct bid_artifact *artifact, const struct stat *st),
		     void *user)
{
	int r = 0;

	for (size_t sort = 0; r == 0 && sort < SORTS; sort++)
		r = bid_store_each_fanout(store, sorts[sort].folder, each_in,
					  &(struct each_derived){ .kind = sorts[sort].kind, .fn = fn, .user = user });
	return r;
}

void bid_derived_forget(struct bid_store *store, const struct bid_id *disk_id)
{
	char path[BID_LAYOUT_MAX];

	for (size_t sort = 0; sort < SORTS; sort++)
		bid_beneath_unlink(store->root,
				   bid_derived_path(&(struct bid_artifact){ .id = *disk_id, .kind = sorts[sort].kind }, path));
}
