// SPDX-License-Identifier: LGPL-2.1-or-later
/* Staged files: other programs write them at any offset until they are published. Publishing follows the rules of an addition. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <bid/error.h>

#include "api/write.h"
#include "base/io.h"
#include "base/kallsyms.h"
#include "disk/layout.h"
#include "disk/publish/ingest.h"
#include "disk/publish/publish.h"
#include "disk/publish/relink.h"
#include "disk/publish/temp.h"
#include "disk/record.h"
#include "disk/space.h"
#include "disk/store.h"

/* the permitted part of a requested mode: never setuid, never writable by others */
enum {
	MODE = 0755,
	TABLE_MODE = 0700, /* mode of a symbol table of a kernel: perf makes it public, while the kernel shows it to few users */
};

struct bid_stage {
	struct bid_store *store; /* borrowed */
	pthread_mutex_t lock; /* held during changes, and from check to publish: readers get the checked bytes */
	bool sealed; /* the file is published */
	bool ended; /* the file will not be published */
	struct bid_temp temp;
	char reason[256]; /* see bid_stage_reason() */
};

int bid_stage_new(struct bid_store *store, struct bid_stage **ret_stage)
{
	struct bid_stage *stage = calloc(1, sizeof(*stage));
	int r;

	if (!stage)
		return -ENOMEM;
	stage->store = store;
	pthread_mutex_init(&stage->lock, NULL);
	stage->temp = BID_TEMP_NONE;
	r = bid_temp_new(store, false, &stage->temp);
	if (r < 0) {
		bid_stage_free(stage);
		return r;
	}
	*ret_stage = stage;
	return 0;
}

void bid_stage_free(struct bid_stage *stage)
{
	if (!stage)
		return;
	bid_temp_release(&stage->temp);
	pthread_mutex_destroy(&stage->lock);
	free(stage);
}

int bid_stage_fd(const struct bid_stage *stage)
{
	return stage->temp.fd;
}

int bid_stage_lock(struct bid_stage *stage)
{
	pthread_mutex_lock(&stage->lock);
	if (!stage->sealed)
		return 0;
	pthread_mutex_unlock(&stage->lock);
	return -EPERM;
}

void bid_stage_unlock(struct bid_stage *stage)
{
	pthread_mutex_unlock(&stage->lock);
}

int bid_stage_end(struct bid_stage *stage)
{
	int r = bid_stage_lock(stage);

	if (r < 0)
		return r;
	stage->ended = true;
	bid_stage_unlock(stage);
	return 0;
}

static int write_or_make_room(struct bid_stage *stage, const void *data, size_t len, off_t offset)
{
	int r = bid_pwrite_full(stage->temp.fd, data, len, offset);

	if (r != -ENOSPC && r != -EDQUOT)
		return r;
	if (!bid_space_make_room(stage->store->space, 2 * ((uint64_t)offset + len)))
		return r;
	return bid_pwrite_full(stage->temp.fd, data, len, offset);
}

int bid_stage_write(struct bid_stage *stage, const void *data, size_t len, off_t offset)
{
	int r = bid_stage_lock(stage);

	if (r < 0)
		return r;
	r = write_or_make_room(stage, data, len, offset);
	bid_stage_unlock(stage);
	return r;
}

const char *bid_stage_reason(const struct bid_stage *stage)
{
	return stage->reason;
}

static int refuse_file(struct bid_stage *stage, const char *reason)
{
	snprintf(stage->reason, sizeof(stage->reason), "%s", reason);
	return -EBADMSG;
}

/* Publish a program, library or module: add it by its descriptor, below the original path of @path. */
static int publish_elf(struct bid_stage *stage, const struct bid_request *request, const char *path)
{
	struct bid_ingest ingest = { .fd = -1, .temp = BID_TEMP_NONE, .by_mode = true, .is_staged = true };
	char original[PATH_MAX];
	const char *slash = strrchr(path, '/');
	int r;

	if (!slash || snprintf(original, sizeof(original), "/%.*s", (int)(slash - path), path) >= (int)sizeof(original))
		return -EINVAL;
	r = bid_ingest_begin(stage->store, &(struct bid_add){ .path = original, .fd = stage->temp.fd }, &ingest);
	if (r == -ENOEXEC)
		r = refuse_file(stage, "not an ELF file");
	else if (r == -EBADMSG)
		r = refuse_file(stage, "a damaged or truncated ELF file");
	else if (r == -ENODATA)
		r = refuse_file(stage, "an ELF file without build-id");
	else if (r == 0 && !bid_id_answers(&ingest.info.id, &request->id))
		r = refuse_file(stage, "carries another build-id");
	/* the file is already on the store's file system */
	if (r == 0) {
		r = bid_ingest_store(stage->store, &ingest, BID_LINK_HARD, BID_DURABLE_BATCH);
		if (r == -EBADMSG)
			r = refuse_file(stage, "another file has its name, and cannot be quarantined");
		else if (r == -ENOTUNIQ)
			r = refuse_file(stage, bid_strerror(r));
	}
	bid_ingest_release(&ingest);
	return r;
}

/* Publish a file whose object directory follows from its kind and id alone. */
static int publish_beside(struct bid_stage *stage, const struct bid_request *request, const char *path)
{
	struct bid_id disk_id = bid_layout_disk_id(&request->id);
	struct bid_request carried = *request;
	struct bid_elf_info info;
	char where[PATH_MAX];
	struct stat st;
	int r;

	if (bid_kind_is_elf(request->kind)) {
		r = bid_examine_for(stage->temp.fd, request, stage->reason, sizeof(stage->reason), &info);
		if (r < 0)
			return r;
		carried.id = info.id;
	}
	if (request->kind == BID_KIND_KALLSYMS) {
		r = bid_kallsyms_check_file(stage->temp.fd);
		if (r < 0)
			return r == -EBADMSG || r == -EPERM ? refuse_file(stage, bid_kallsyms_why(r)) : r;
	}
	r = bid_write_back(stage->temp.fd);
	if (r < 0)
		return r;
	if (fstat(stage->temp.fd, &st) < 0)
		return -errno;
	/* debug files go beside their ELF file; readers look for kernel files also in their well-known directory */
	if (request->kind == BID_KIND_DEBUGINFO && bid_store_where(stage->store, &disk_id, where, sizeof(where)) == 0)
		path = where;
	r = bid_publish_instead(stage->store, &carried, path, false, &stage->temp);
	if (r < 0 && r != -EEXIST)
		return r;
	/* an earlier unnamed download moves along */
	if (request->kind != BID_KIND_DEBUGINFO && bid_store_where(stage->store, &disk_id, where, sizeof(where)) == 0 &&
	    bid_is_unnamed(where) && !bid_is_unnamed(path))
		bid_merge_unnamed(stage->store, &carried.id, path, false);
	return 0;
}

static int set_mode(struct bid_stage *stage, const struct bid_request *request)
{
	struct stat st;

	if (fstat(stage->temp.fd, &st) < 0)
		return -errno;
	return fchmod(stage->temp.fd, st.st_mode & (request->kind == BID_KIND_KALLSYMS ? TABLE_MODE : MODE)) < 0 ? -errno : 0;
}

int bid_stage_publish(struct bid_stage *stage, const struct bid_request *request, const char *path)
{
	int r;

	if (request->kind <= BID_KIND_NONE || request->kind >= BID_KIND_COUNT || request->kind == BID_KIND_PROBES)
		return -EINVAL;
	pthread_mutex_lock(&stage->lock);
	r = stage->ended ? -ESTALE : set_mode(stage, request);
	if (r == 0)
		r = request->kind == BID_KIND_ELF ? publish_elf(stage, request, path) : publish_beside(stage, request, path);
	stage->sealed |= r == 0;
	pthread_mutex_unlock(&stage->lock);
	return r;
}
