// SPDX-License-Identifier: LGPL-2.1-or-later
/* Files that programs write through the mount: bytes at any offset, published as the artifact that they turn out to be. */
#include "api/written_file.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <bid/error.h>

#include "api/elf.h"
#include "base/io.h"
#include "base/kallsyms.h"
#include "disk/layout.h"
#include "disk/publish/ingest.h"
#include "disk/publish/merge.h"
#include "disk/publish/publish.h"
#include "disk/publish/temp.h"
#include "disk/space.h"
#include "disk/store.h"

enum {
	ROOM_MAX = 1 << 30, /* bytes to make room for at a time */
	MODE = 0755, /* permitted bits of the mode: never setuid, never writable by others */
	TABLE_MODE = 0700, /* the same for a kernel's symbol table: perf makes it public, while the kernel shows it to few users */
};

struct bid_written_file {
	struct bid_store *store; /* borrowed */
	struct bid_temp temp;
	pthread_mutex_t lock; /* held during changes, and from check to publish: readers get the checked bytes; guards all below */
	bool evicted; /* an eviction for a failed write has run */
	bool published;
	bool abandoned; /* the file will not be published */
	char reason[256]; /* see bid_written_file_reason() */
};

int bid_written_file_new(struct bid_store *store, struct bid_written_file **ret_file)
{
	struct bid_written_file *file = calloc(1, sizeof(*file));
	int r;

	if (!file)
		return -ENOMEM;
	file->store = store;
	file->temp = BID_TEMP_NONE;
	pthread_mutex_init(&file->lock, NULL);
	r = bid_temp_new(store, false, &file->temp);
	if (r < 0) {
		bid_written_file_free(file);
		return r;
	}
	*ret_file = file;
	return 0;
}

void bid_written_file_free(struct bid_written_file *file)
{
	if (!file)
		return;
	bid_temp_release(&file->temp);
	pthread_mutex_destroy(&file->lock);
	free(file);
}

int bid_written_file_fd(const struct bid_written_file *file)
{
	return file->temp.fd;
}

int bid_written_file_lock(struct bid_written_file *file)
{
	pthread_mutex_lock(&file->lock);
	if (!file->published)
		return 0;
	pthread_mutex_unlock(&file->lock);
	return -EPERM;
}

void bid_written_file_unlock(struct bid_written_file *file)
{
	pthread_mutex_unlock(&file->lock);
}

int bid_written_file_abandon(struct bid_written_file *file)
{
	int r = bid_written_file_lock(file);

	if (r < 0)
		return r;
	file->abandoned = true;
	bid_written_file_unlock(file);
	return 0;
}

/* Did a write of @len bytes end with @r for lack of room, the first time, and is there room now? Evicts, and blocks. */
static bool made_room(struct bid_written_file *file, int r, size_t len)
{
	uint64_t bytes;

	if ((r != -ENOSPC && r != -EDQUOT) || file->evicted)
		return false;
	file->evicted = true;
	bytes = bid_temp_wanted_room(&file->temp, len);
	return bid_space_make_room(file->store->space, bytes < ROOM_MAX ? bytes : ROOM_MAX, false);
}

int bid_written_file_write(struct bid_written_file *file, const void *data, size_t len, off_t offset)
{
	int r = bid_written_file_lock(file);

	if (r < 0)
		return r;
	do
		r = bid_pwrite_full(file->temp.fd, data, len, offset);
	while (made_room(file, r, len));
	bid_written_file_unlock(file);
	return r;
}

const char *bid_written_file_reason(const struct bid_written_file *file)
{
	return file->reason;
}

static int refuse_file(struct bid_written_file *file, const char *reason)
{
	snprintf(file->reason, sizeof(file->reason), "%s", reason);
	return -EBADMSG;
}

/* Publish a program, library or module: add it by its descriptor, below the original path of @path. */
static int ingest_elf(struct bid_written_file *file, const struct bid_artifact *artifact, const char *path)
{
	struct bid_ingest ingest = { .fd = -1, .temp = BID_TEMP_NONE, .by_mode = true, .is_ours = true };
	char original[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int r;

	if (!slash || snprintf(original, sizeof(original), "/%.*s", (int)(slash - path), path) >= (int)sizeof(original))
		return -EINVAL;
	r = bid_ingest_begin(file->store, &(struct bid_add){ .path = original, .fd = file->temp.fd }, &ingest);
	if (r == -ENOEXEC)
		r = refuse_file(file, "not an ELF file");
	else if (r == -EBADMSG)
		r = refuse_file(file, "a damaged or truncated ELF file");
	else if (r == -ENODATA)
		r = refuse_file(file, "an ELF file without build-id");
	else if (r == 0 && !bid_id_answers(&ingest.info.id, &artifact->id))
		r = refuse_file(file, "carries another build-id");
	/* the file is already on the store's file system */
	if (r == 0) {
		r = bid_ingest_store(file->store, &ingest, BID_LINK_HARD, BID_DURABLE_BATCH);
		if (r == -EBADMSG)
			r = refuse_file(file, "another file has its name, and cannot be quarantined");
		else if (r == -ENOTUNIQ)
			r = refuse_file(file, bid_strerror(r));
	}
	bid_ingest_release(&ingest);
	return r;
}

/* Publish a file whose object directory follows from its kind and id alone. */
static int link_beside(struct bid_written_file *file, const struct bid_artifact *artifact, const char *path)
{
	struct bid_id disk_id = bid_layout_disk_id(&artifact->id);
	struct bid_artifact carried = *artifact;
	struct bid_elf_info info;
	char where[PATH_MAX];
	int r;

	if (bid_kind_is_elf(artifact->kind)) {
		r = bid_publish_examine(file->temp.fd, artifact, file->reason, sizeof(file->reason), &info);
		if (r < 0)
			return r;
		carried.id = info.id;
	}
	if (artifact->kind == BID_KIND_KALLSYMS) {
		r = bid_kallsyms_check_file(file->temp.fd);
		if (r < 0)
			return r == -EBADMSG || r == -EPERM ? refuse_file(file, bid_kallsyms_why(r)) : r;
	}
	r = bid_write_back(file->temp.fd);
	if (r < 0)
		return r;
	/* debug files go beside their ELF file; readers look for kernel files also in their well-known directory */
	if (artifact->kind == BID_KIND_DEBUGINFO && bid_store_perf_link(file->store, &disk_id, where, sizeof(where)) == 0)
		path = where;
	r = bid_publish_or_replace(file->store, &carried, path, false, &file->temp);
	if (r < 0 && r != -EEXIST)
		return r;
	/* an earlier unnamed download moves along */
	if (artifact->kind != BID_KIND_DEBUGINFO && bid_store_perf_link(file->store, &disk_id, where, sizeof(where)) == 0 &&
	    bid_is_unnamed(where) && !bid_is_unnamed(path))
		bid_merge_unnamed(file->store, &carried.id, path, false);
	return 0;
}

static int set_mode(struct bid_written_file *file, const struct bid_artifact *artifact)
{
	struct stat st;

	if (fstat(file->temp.fd, &st) < 0)
		return -errno;
	return fchmod(file->temp.fd, st.st_mode & (artifact->kind == BID_KIND_KALLSYMS ? TABLE_MODE : MODE)) < 0 ? -errno : 0;
}

int bid_written_file_publish(struct bid_written_file *file, const struct bid_artifact *artifact, const char *path)
{
	int r;

	if (artifact->kind <= BID_KIND_NONE || artifact->kind >= BID_KIND_COUNT || artifact->kind == BID_KIND_PROBES)
		return -EINVAL;
	pthread_mutex_lock(&file->lock);
	r = file->abandoned ? -ESTALE : set_mode(file, artifact);
	if (r == 0)
		r = artifact->kind == BID_KIND_ELF ? ingest_elf(file, artifact, path) : link_beside(file, artifact, path);
	file->published |= r == 0;
	pthread_mutex_unlock(&file->lock);
	return r;
}
