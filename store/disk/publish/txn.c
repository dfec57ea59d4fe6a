// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Transactions: the bytes of a download, in order, that become one artifact. Readers see it only after its check, and always whole.
 * written_file.c has the files that programs write.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "api/elf.h"
#include "api/txn.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/local_error.h"
#include "base/log.h"
#include "base/stat_data.h"
#include "disk/derive/derive.h"
#include "disk/digest.h"
#include "disk/fact.h"
#include "disk/layout.h"
#include "disk/lock_file.h"
#include "disk/lookup.h"
#include "disk/perf_link.h"
#include "disk/publish/merge.h"
#include "disk/publish/publish.h"
#include "disk/publish/temp.h"
#include "disk/quarantine.h"
#include "disk/record.h"
#include "disk/remove_download.h"
#include "disk/source_section.h"
#include "disk/space.h"
#include "disk/store.h"

enum {
	PIECE = 64 << 10, /* bytes of a write: libcurl delivers 16 KiB, and each call costs */
	PUSH = 1 << 20, /* bytes per early writeback; a smaller rest waits for the end */
	SAMPLE = 1 << 20, /* bytes of a rejected download that go to the quarantine */
};

#define STEP (64ULL << 20) /* bytes of a body of unknown size between two looks at the free space */

struct bid_txn {
	struct bid_store *store; /* borrowed */
	struct bid_temp temp;
	char reason[256]; /* see bid_txn_reason() */
	struct bid_artifact artifact;
	XXH3_state_t *digest; /* owned; state over the bytes in temp */
	uint8_t buffer[PIECE]; /* bytes not in temp yet */
	size_t held; /* bytes in buffer */
	uint64_t written; /* bytes in temp */
	uint64_t pushed; /* bytes in temp with writeback started */
	uint64_t expected; /* announced bytes; 0 if unknown */
	uint64_t allowed; /* size of temp up to which the free space was seen to suffice */
	uint64_t lacking; /* bytes to make room for before the next write; 0 for none */
	bool disk_full; /* the last write has failed, not the look at the free space */
	bool evicted; /* an eviction for a failed write has run, or will */
	int no_room; /* result of making room: 0 or a negative errno */
	char path[PATH_MAX]; /* requested path below the store; "" if none */
	struct bid_id alt; /* id of the dwz file; len 0 if none */
};

/* Start writeback of the file while more bytes come: a client waits for the final fsync(2). */
static void push_bytes(struct bid_txn *txn)
{
	/* some file systems lack it, at no loss; a write error shows in fsync(2) */
	sync_file_range(txn->temp.fd, (off_t)txn->pushed, (off_t)(txn->written - txn->pushed), SYNC_FILE_RANGE_WRITE);
	txn->pushed = txn->written;
}

static int write_bytes(struct bid_txn *txn, const void *data, size_t len)
{
	int r = txn->temp.fd < 0 ? bid_temp_new(txn->store, false, &txn->temp) : 0;

	if (r == 0)
		r = bid_pwrite_full(txn->temp.fd, data, len, (off_t)txn->written);
	if (r < 0)
		return r;
	XXH3_128bits_update(txn->digest, data, len);
	txn->written += len;
	if (txn->written - txn->pushed >= PUSH)
		push_bytes(txn);
	return 0;
}

/* Write all accepted bytes to the file. The caller may repeat a failed call. */
static int flush_bytes(struct bid_txn *txn)
{
	int r = write_bytes(txn, txn->buffer, txn->held);

	if (r == 0)
		txn->held = 0;
	return r;
}

/* Accept all bytes, or none. */
static int put_bytes(struct bid_txn *txn, const void *data, size_t len)
{
	int r = txn->held + len > sizeof(txn->buffer) ? flush_bytes(txn) : 0;

	if (r < 0 || len > sizeof(txn->buffer))
		return r < 0 ? r : write_bytes(txn, data, len);
	memcpy(txn->buffer + txn->held, data, len);
	txn->held += len;
	return 0;
}

/* Bytes accepted. */
static uint64_t size_of(const struct bid_txn *txn)
{
	return txn->written + txn->held;
}

int bid_txn_begin(struct bid_store *store, const struct bid_artifact *artifact, struct bid_txn **ret_txn)
{
	struct bid_txn *txn;

	if (!bid_artifact_valid(artifact) || (!bid_kind_is_elf(artifact->kind) && !bid_kind_has_subpath(artifact->kind)))
		return -EINVAL;
	if (!bid_store_writable(store))
		return -EROFS;
	txn = calloc(1, sizeof(*txn));
	if (!txn)
		return -ENOMEM;
	txn->store = store;
	txn->temp = BID_TEMP_NONE;
	txn->artifact = bid_artifact_copy(artifact);
	txn->allowed = STEP;
	txn->digest = XXH3_createState();
	if (!txn->digest) {
		bid_txn_free(txn);
		return -ENOMEM;
	}
	XXH3_128bits_reset(txn->digest);
	*ret_txn = txn;
	return 0;
}

/* Translate the result @r of a write of @len bytes: -EAGAIN if bid_txn_make_room() may help, once for each transaction; else @r. */
static int plan_eviction(struct bid_txn *txn, int r, size_t len)
{
	if ((r != -ENOSPC && r != -EDQUOT) || txn->evicted)
		return r;
	txn->evicted = txn->disk_full = true;
	txn->lacking = bid_temp_wanted_room(&txn->temp, txn->held + len);
	if (txn->expected == 0 && txn->lacking > BID_TXN_UNANNOUNCED_MAX)
		txn->lacking = BID_TXN_UNANNOUNCED_MAX;
	return -EAGAIN;
}

/* Did the commit end with @r for lack of room, and is there room now? Evicts, and blocks. */
static bool made_room(struct bid_txn *txn, int r)
{
	return plan_eviction(txn, r, 0) == -EAGAIN && bid_txn_make_room(txn) == 0;
}

/* Look whether @bytes more fit. Returns as bid_space_check(), and explains -ENOSPC. */
static int check_space(struct bid_txn *txn, uint64_t bytes)
{
	uint64_t left = 0;
	int r = bid_space_check(txn->store->space, bytes, &left);

	/* an endless body must not evict the whole cache */
	if (r == -EAGAIN && size_of(txn) > txn->expected + BID_TXN_UNANNOUNCED_MAX)
		r = -ENOSPC;
	if (r == -EAGAIN) {
		txn->disk_full = false;
		txn->lacking = bytes;
	} else if (r == 0) {
		txn->allowed += bytes;
	} else if (bytes == txn->expected) {
		snprintf(txn->reason, sizeof(txn->reason), "%s for %llu bytes, but for %llu", strerror(-r),
			 (unsigned long long)bytes, (unsigned long long)left);
	} else {
		snprintf(txn->reason, sizeof(txn->reason), "%s for more than %llu bytes: the server did not announce how many",
			 strerror(-r), (unsigned long long)size_of(txn));
	}
	return r;
}

int bid_txn_make_room(struct bid_txn *txn)
{
	uint64_t bytes = txn->lacking;

	txn->lacking = 0;
	if (bytes == 0)
		return 0;
	/* without room the write fails once more */
	if (txn->disk_full)
		return bid_space_make_room(txn->store->space, bytes, false) ? 0 : -ENOSPC;
	bid_space_make_room(txn->store->space, bytes, true);
	txn->no_room = check_space(txn, bytes) < 0 ? -ENOSPC : 0;
	txn->lacking = 0;
	return txn->no_room;
}

int bid_txn_expect(struct bid_txn *txn, uint64_t size)
{
	txn->lacking = 0;
	/* the caller has the error of an earlier one; the next write must not repeat it */
	txn->no_room = 0;
	txn->expected = size;
	txn->allowed = size > 0 ? 0 : STEP;
	return size > 0 ? check_space(txn, size) : 0;
}

int bid_txn_try_write(struct bid_txn *txn, const void *data, size_t len)
{
	struct bid_space *space = txn->store->space;
	int r = txn->no_room;

	if (r == 0 && txn->lacking > 0)
		return -EAGAIN;
	if (r == 0 && size_of(txn) + len > txn->allowed) {
		if (space && space->limits.cache_size > 0 && size_of(txn) > space->limits.cache_size)
			return -ENOSPC;
		r = check_space(txn, len > STEP ? len : STEP);
	}
	return r < 0 ? r : plan_eviction(txn, put_bytes(txn, data, len), len);
}

int bid_txn_write(struct bid_txn *txn, const void *data, size_t len)
{
	int r;

	while ((r = bid_txn_try_write(txn, data, len)) == -EAGAIN)
		bid_txn_make_room(txn);
	return r;
}

int bid_txn_set_path(struct bid_txn *txn, const char *path)
{
	bool name = path[0] == '[' && path[strlen(path) - 1] == ']' && !strchr(path, '/');

	if (strlen(path) >= sizeof(txn->path))
		return -ENAMETOOLONG;
	if (!name && !bid_layout_is_original(path))
		return -EINVAL;
	snprintf(txn->path, sizeof(txn->path), "%s", name ? path : path + 1);
	return 0;
}

int bid_txn_reset(struct bid_txn *txn)
{
	bid_txn_expect(txn, 0);
	txn->held = 0;
	txn->written = txn->pushed = 0;
	XXH3_128bits_reset(txn->digest);
	return txn->temp.fd >= 0 && ftruncate(txn->temp.fd, 0) < 0 ? -errno : 0;
}

struct bid_id bid_txn_alt(const struct bid_txn *txn)
{
	return txn->alt;
}

const char *bid_txn_reason(const struct bid_txn *txn)
{
	return txn->reason;
}

void bid_store_forget_digest(struct bid_store *store, const struct bid_artifact *artifact)
{
	bid_fact_remove(store, BID_LAYOUT_FIRST, artifact, "");
}

int bid_txn_quarantine(struct bid_txn *txn)
{
	char name[NAME_MAX + 1];
	bid_auto_fd int dir = -1;
	int r = flush_bytes(txn);

	if (r == 0)
		r = bid_quarantine_open(txn->store, &txn->artifact, &dir, name);
	if (r == 0 && txn->written > SAMPLE && ftruncate(txn->temp.fd, SAMPLE) < 0)
		r = -errno;
	if (r == 0 && fchmod(txn->temp.fd, 0400) < 0)
		r = -errno;
	return r < 0 ? r : bid_temp_link(&txn->temp, dir, name);
}

void bid_txn_free(struct bid_txn *txn)
{
	if (!txn)
		return;
	XXH3_freeState(txn->digest);
	bid_temp_release(&txn->temp);
	bid_artifact_release(&txn->artifact);
	free(txn);
}

/* Compare @digest with the first-seen digest of the id, which outlives an eviction. Sets @ret_noted if there is one. */
static int check_first(struct bid_txn *txn, const struct bid_artifact *artifact, const char *digest, bool *ret_noted)
{
	char first[BID_FACT_MAX];
	int r = bid_fact_read(txn->store, BID_LAYOUT_FIRST, artifact, "", first);

	if (r == -ENOENT || (r == 0 && !bid_digest_valid(first)))
		return 0;
	if (r < 0) {
		snprintf(txn->reason, sizeof(txn->reason), "%s: cannot read the digest of the first download", strerror(-r));
		return r;
	}
	*ret_noted = strcmp(first, digest) == 0;
	if (*ret_noted)
		return 0;
	snprintf(txn->reason, sizeof(txn->reason), "other bytes than the first download of this id: %s, not %s", digest, first);
	return -ESTALE;
}

/* Does the errno concern the whole disk, so that another directory on it fails too? */
static bool is_of_the_disk(int r)
{
	/* a read-only file system may still have the file */
	return bid_is_local_error(r) && r != -EROFS;
}

/*
 * Publish at @path and look the file up. Returns -EBADMSG if a wrong file or stripped debuginfo has the name, -ENOENT if publishing
 * failed.
 */
static int link_and_find(struct bid_txn *txn, const struct bid_id *id, const char *path, struct bid_file *ret_file)
{
	int r = bid_publish(txn->store, id, txn->artifact.kind, path, false, &txn->temp, NULL);

	if (is_of_the_disk(r))
		return r;
	/* other errors, for example a missing link of perf's or a directory of root's, matter only if the lookup fails */
	if (r < 0 && r != -EEXIST)
		bid_debug("%s: cannot publish in '%s/%s'", strerror(-r), bid_store_path(txn->store), path);
	r = bid_find_unpacked(txn->store, &txn->artifact, BID_MAY_DERIVE, ret_file);
	if (r == 0 && ret_file->stripped) {
		bid_file_release(ret_file);
		r = -EBADMSG;
	}
	return r;
}

/* "<path>/<id>" */
static int under_path(const struct bid_txn *txn, const struct bid_id *disk_id, char ret_path[static PATH_MAX])
{
	char hex[BID_ID_HEX_MAX];

	return snprintf(ret_path, PATH_MAX, "%s/%s", txn->path, bid_id_format(disk_id, hex)) >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* Merge with a name that another process gave the build meanwhile: it did not see the file in the unnamed directory. */
static void follow_name(struct bid_txn *txn, const struct bid_id *id, const struct bid_id *disk_id)
{
	char where[PATH_MAX];
	int r;

	if (bid_perf_link_find(txn->store, disk_id, where, sizeof(where)) < 0 || bid_is_unnamed(where) ||
	    bid_layout_is_mismatched(where, disk_id))
		return;
	r = bid_merge_unnamed(txn->store, id, where, false);
	if (r < 0)
		bid_debug("%s: cannot merge the unnamed build and '%s/%s'", strerror(-r), bid_store_path(txn->store), where);
}

/* Publish in the right object directory; if that fails, in the unnamed directory, which readers try next. */
static int link_in_objdir(struct bid_txn *txn, const struct bid_id *id, struct bid_file *ret_file)
{
	char path[PATH_MAX], unnamed[BID_LAYOUT_MAX];
	struct bid_id disk_id = bid_layout_disk_id(id);
	int r;

	if (bid_kind_has_subpath(txn->artifact.kind)) {
		r = bid_temp_publish(&txn->temp, txn->store, bid_source_section_path(&txn->artifact, path), false);
		return r == 0 || r == -EEXIST ? bid_source_section_open(txn->store, &txn->artifact, ret_file) : r;
	}
	r = -ENOENT;
	if (txn->path[0] && bid_perf_link_find(txn->store, &disk_id, path, sizeof(path)) < 0)
		r = under_path(txn, &disk_id, path);
	if (r < 0)
		bid_publish_where(txn->store, id, path);
	r = link_and_find(txn, id, path, ret_file);
	if (r == 0 && bid_is_unnamed(path))
		follow_name(txn, id, &disk_id);
	if (r == 0 || is_of_the_disk(r))
		return r;
	bid_layout_under(BID_STORE_UNNAMED, &disk_id, unnamed);
	for (int attempts = 0; attempts < 2; attempts++) {
		r = link_and_find(txn, id, unnamed, ret_file);
		if (r != -EBADMSG)
			return r;
		/* the directory is ours: a wrong file there blocks every correct one */
		bid_publish_make_way(txn->store, unnamed, &txn->artifact);
	}
	return r;
}

static mode_t mode_of(enum bid_kind kind)
{
	return kind == BID_KIND_ELF || kind == BID_KIND_VDSO ? 0755 : 0644;
}

static int write_record(struct bid_txn *txn, const struct bid_artifact *artifact, const struct bid_origin *origin,
			const char *digest)
{
	int r = bid_record_write(txn->store, &(struct bid_record){
						     .artifact = *artifact,
						     .origin = origin,
						     .digest = digest,
						     .size = txn->written,
					     });

	if (r < 0)
		bid_debug("%s: cannot write the record of a file published in '%s'", strerror(-r), bid_store_path(txn->store));
	return r;
}

/* Record the first-seen digest, or the digest of a signed file in its place. */
static void note_first(struct bid_txn *txn, const struct bid_artifact *artifact, const char *digest)
{
	int r = bid_fact_write(txn->store, BID_LAYOUT_FIRST, artifact, "", digest);

	if (r < 0)
		bid_debug("%s: cannot note the digest of a file published in '%s'", strerror(-r), bid_store_path(txn->store));
}

/*
 * Publish a download with its record, the record first. A process killed in between leaves a record without a file, for eviction to
 * remove; a file without a record would never count. A file that another process published there has its own record. An added file
 * has no record.
 */
static int commit_recorded(struct bid_txn *txn, const struct bid_artifact *artifact, const struct bid_origin *origin,
			   const char *digest, struct bid_file *ret_file, bool *ret_ours)
{
	/* an addition of the same file finds it with its record, or not at all */
	bool is_vouched = !origin || *origin->signer, recorded;
	bid_auto_fd int lock = bid_store_lock(txn->store, is_vouched);
	struct stat st;
	int r;

	/* a file of the user or of a signer takes the place of a download, also of one just published by another process */
	if (is_vouched && bid_record_lacks_signer(txn->store, artifact) && !bid_remove_download(txn->store, artifact) &&
	    bid_store_requires_signed(txn->store)) {
		snprintf(txn->reason, sizeof(txn->reason), "the store has other bytes of this build without a signature");
		return -EBADMSG;
	}
	recorded = origin && bid_lookup_stat(txn->store, artifact, &st) < 0 && write_record(txn, artifact, origin, digest) == 0;
	r = link_in_objdir(txn, &artifact->id, ret_file);
	*ret_ours = r == 0 && fstat(txn->temp.fd, &st) == 0 && bid_same_inode(&st, &ret_file->st);
	if (recorded && !*ret_ours)
		bid_record_remove(txn->store, artifact);
	else if (*ret_ours && !origin)
		bid_record_remove(txn->store, artifact);
	else if (*ret_ours && !recorded)
		write_record(txn, artifact, origin, digest);
	return r;
}

/* Set the time from the server on the file, because debuggers compare the times of sources and programs. Ignores a future time. */
static void set_time(const struct bid_txn *txn, const struct bid_origin *origin)
{
	struct timespec times[] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = origin->modified } };

	if (origin->modified > 0 && origin->modified <= time(NULL) && futimens(txn->temp.fd, times) < 0)
		bid_debug("%s: cannot set the time of a file in '%s'", strerror(errno), bid_store_path(txn->store));
}

/* Check the signature of the bytes if @origin requires one, and set the signer. */
static int check_signature(struct bid_txn *txn, struct bid_origin *origin)
{
	char text[BID_SIGNER_MAX] = "";
	int r = origin->signers ? bid_signers_check(origin->signers, txn->temp.fd, origin->ima_signature, text, sizeof(text)) : 0;

	if (r == -EBADMSG)
		snprintf(txn->reason, sizeof(txn->reason), "%s", text);
	else if (r == 0)
		memcpy(origin->signer, text, sizeof(text));
	return r;
}

int bid_txn_commit(struct bid_txn *txn, struct bid_origin *origin, struct bid_file *ret_file)
{
	struct bid_elf_info info;
	struct bid_file file = BID_FILE_NONE;
	struct bid_artifact artifact;
	char digest[BID_DIGEST_MAX];
	bool ours, noted = false;
	int r;

	do
		r = flush_bytes(txn);
	while (made_room(txn, r));
	if (r < 0)
		return r;
	/* the whole of a small file: the disk works during the examination */
	push_bytes(txn);
	r = bid_publish_examine(txn->temp.fd, &txn->artifact, txn->reason, sizeof(txn->reason), &info);
	if (r == 0 && origin)
		r = check_signature(txn, origin);
	if (r < 0)
		return r;
	txn->alt = info.alt;
	artifact = (struct bid_artifact){ .id = info.id, .kind = txn->artifact.kind, .subpath = txn->artifact.subpath };
	bid_digest_format(XXH3_128bits_digest(txn->digest), digest);
	/* a signature is better proof than the order of two downloads */
	r = origin && *origin->signer ? 0 : check_first(txn, &artifact, digest, &noted);
	if (r < 0)
		return r;
	if (origin)
		set_time(txn, origin);
	if (fchmod(txn->temp.fd, mode_of(txn->artifact.kind)) < 0 || fsync(txn->temp.fd) < 0)
		return -errno;
	do
		r = commit_recorded(txn, &artifact, origin, digest, &file, &ours);
	while (made_room(txn, r));
	if (r < 0)
		return r;
	if (ours && origin) {
		if (!noted)
			note_first(txn, &artifact, digest);
		/* only after the record, which makes the file count */
		bid_space_published(txn->store->space, txn->written);
	}
	*ret_file = file;
	return 0;
}
