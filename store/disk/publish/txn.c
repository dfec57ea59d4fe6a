// SPDX-License-Identifier: LGPL-2.1-or-later
/* The write side: nothing is seen of an artifact before it was checked, and then it is there whole. */
#include "disk/publish/txn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include <bid/elf.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/trouble.h"
#include "disk/aside.h"
#include "disk/digest.h"
#include "disk/dirs.h"
#include "disk/entries.h"
#include "disk/history/evidence.h"
#include "disk/history/pins.h"
#include "disk/keeper.h"
#include "disk/layout.h"
#include "disk/one.h"
#include "disk/piece.h"
#include "disk/publish/filling.h"
#include "disk/publish/naming.h"
#include "disk/publish/room.h"
#include "disk/publish/temp.h"
#include "disk/record.h"
#include "disk/root.h"
#include "disk/store.h"

struct bid_txn {
	struct bid_store *store;
	struct bid_request request;
	struct bid_temp temp;
	struct bid_filling filling; /* of it */
	struct bid_room room; /* for it */
	bool accept; /* other bytes than the first ones */
	char path[PATH_MAX]; /* to file it under, as below the store; "" if nobody said */
	struct bid_id alt; /* of the dwz file that it needs; len 0 if none */
	char reason[256];
};

/* It came to @r with @len bytes more: may it be tried again? */
static bool may_retry(struct bid_txn *txn, int r, size_t len)
{
	return bid_room_retry(&txn->room, r, bid_filling_size(&txn->filling) + len);
}

int bid_txn_begin(struct bid_store *store, const struct bid_request *request, struct bid_txn **ret_txn)
{
	struct bid_txn *txn;
	int r;

	if (!bid_request_valid(request) || (!bid_kind_is_elf(request->kind) && !bid_kind_has_detail(request->kind)))
		return -EINVAL;
	txn = calloc(1, sizeof(*txn));
	if (!txn)
		return -ENOMEM;
	txn->store = store;
	txn->request = bid_request_keep(request);
	txn->temp = BID_TEMP_NONE;
	txn->room.keeper = bid_store_keeper(store);
	do
		r = bid_temp_new(store, false, &txn->temp);
	while (may_retry(txn, r, 0));
	if (r == 0)
		r = bid_filling_init(&txn->filling, txn->temp.fd);
	if (r < 0) {
		bid_txn_free(txn);
		return r;
	}
	*ret_txn = txn;
	return 0;
}

int bid_txn_expect(struct bid_txn *txn, uint64_t size, bool evict)
{
	uint64_t left = 0;
	int r = bid_room_expect(&txn->room, size, evict, &left);

	if (r < 0)
		snprintf(txn->reason, sizeof(txn->reason), "%s for %llu bytes, but for %llu", strerror(ENOSPC),
			 (unsigned long long)size, (unsigned long long)left);
	return r;
}

static int took(struct bid_txn *txn, uint64_t len)
{
	int r = bid_room_took(&txn->room, len);

	if (r == -ENOSPC)
		snprintf(txn->reason, sizeof(txn->reason), "%s for more than %llu bytes, and nothing tells how many there are",
			 strerror(-r), (unsigned long long)bid_filling_size(&txn->filling));
	return r;
}

int bid_txn_write(struct bid_txn *txn, const void *data, size_t len)
{
	const uint8_t *at = data;
	int r = 0;

	while (r == 0 && len > 0) {
		size_t taken = 0;

		do
			r = bid_filling_take(&txn->filling, at, len, &taken);
		while (may_retry(txn, r, len));
		at += taken;
		len -= taken;
		if (r == 0)
			r = took(txn, taken);
	}
	return r;
}

static int flush(struct bid_txn *txn)
{
	int r;

	do
		r = bid_filling_flush(&txn->filling);
	while (may_retry(txn, r, 0));
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
	bid_room_release(&txn->room);
	return bid_filling_reset(&txn->filling);
}

struct bid_id bid_txn_alt(const struct bid_txn *txn)
{
	return txn->alt;
}

const char *bid_txn_reason(const struct bid_txn *txn)
{
	return txn->reason;
}

void bid_txn_accept(struct bid_txn *txn)
{
	txn->accept = true;
}

int bid_txn_quarantine(struct bid_txn *txn, const struct bid_evidence *evidence)
{
	int r = flush(txn);

	return r < 0 ? r : bid_evidence_keep(txn->store, &txn->request, &txn->temp, bid_filling_size(&txn->filling), evidence);
}

void bid_txn_free(struct bid_txn *txn)
{
	if (!txn)
		return;
	bid_room_release(&txn->room);
	bid_filling_release(&txn->filling);
	bid_temp_release(&txn->temp);
	bid_request_release(&txn->request);
	free(txn);
}

int bid_examine_for(int fd, const struct bid_request *request, char *reason, size_t size, struct bid_elf_info *ret_info)
{
	char carried[BID_ID_HEX_MAX];
	struct stat st;
	int r;

	reason[0] = '\0';
	if (bid_kind_has_detail(request->kind)) {
		/* nothing in it says what it is */
		*ret_info = (struct bid_elf_info){ .id = request->id };
		return 0;
	}
	r = bid_elf_examine(fd, ret_info);
	if (r == -ENOEXEC)
		snprintf(reason, size, "not an ELF file");
	else if (r == -EBADMSG)
		snprintf(reason, size, "a damaged or truncated ELF file of %lld bytes",
			 fstat(fd, &st) == 0 ? (long long)st.st_size : 0LL);
	else if (r < 0)
		return r;
	else if (ret_info->id.len == 0)
		snprintf(reason, size, "an ELF file without build-id");
	else if (!bid_id_answers(&ret_info->id, &request->id))
		snprintf(reason, size, "carries the build-id '%.130s'", bid_id_format(&ret_info->id, carried));
	else if (request->kind == BID_KIND_DEBUGINFO && !ret_info->has_dwarf && !ret_info->has_symtab)
		snprintf(reason, size, "debuginfo without debug sections or a symbol table");
	return reason[0] ? -EBADMSG : 0;
}

static void close_pins(struct bid_pins **pins)
{
	bid_pins_close(*pins);
}

/* Against what was fetched first under this id, which may have been evicted since. */
static int check_pin(struct bid_txn *txn, const struct bid_pins *pins, const struct bid_request *request, XXH128_hash_t digest)
{
	char first[BID_DIGEST_MAX], now[BID_DIGEST_MAX];
	XXH128_hash_t pinned;

	if (txn->accept || bid_pin_get(pins, request, &pinned) < 0 || XXH128_isEqual(pinned, digest))
		return 0;
	bid_digest_format(pinned, first);
	bid_digest_format(digest, now);
	snprintf(txn->reason, sizeof(txn->reason), "other bytes than were fetched first under this id: %s, not %s", now, first);
	return -ESTALE;
}

/* Returns 1 if it was made. */
static int publish_link(struct bid_store *store, const struct bid_id *id, const char *target, struct bid_touched *touched)
{
	struct bid_id filed = bid_layout_filed(id);
	bid_auto_kept struct bid_dir dir = BID_DIR_NONE;
	char text[PATH_MAX + 8], link[BID_LAYOUT_MAX];
	char *slash;
	int r;

	bid_layout_link(&filed, link);
	slash = strrchr(link, '/');
	*slash = '\0';
	r = bid_dir_open(store, link, true, touched, &dir);
	if (r < 0)
		return r;
	snprintf(text, sizeof(text), BID_LAYOUT_UP "%s", target);
	if (symlinkat(text, dir.fd, slash + 1) < 0)
		return errno == EEXIST ? 0 : -errno;
	r = touched ? bid_touched_add(touched, dir.fd) : 0;
	return r < 0 ? r : 1;
}

int bid_publish_link(struct bid_store *store, const struct bid_id *id, const char *target, bool durable)
{
	struct bid_touched touched = { 0 };
	int r = publish_link(store, id, target, durable ? &touched : NULL);

	if (r >= 0)
		r = bid_touched_sync(&touched);
	bid_touched_release(&touched);
	return r;
}

void bid_publish_where(struct bid_store *store, const struct bid_id *id, char ret_path[static PATH_MAX])
{
	struct bid_id filed = bid_layout_filed(id);
	char nameless[BID_LAYOUT_MAX];

	if (bid_one_where(store, &filed, ret_path, PATH_MAX) < 0 || bid_layout_is_astray(ret_path, &filed))
		snprintf(ret_path, PATH_MAX, "%s", bid_layout_under(BID_STORE_NAMELESS, &filed, nameless));
}

/* Make and open "<path>/<id>": the directory that <path> is in is likely to be the last file's too. */
static int make_place(struct bid_store *store, const char *path, struct bid_touched *touched, int *ret_fd)
{
	bid_auto_kept struct bid_dir dir = BID_DIR_NONE;
	const char *last = strrchr(path, '/'), *slash = last ? memrchr(path, '/', (size_t)(last - path)) : NULL;
	char parent[PATH_MAX];
	int r;

	if (!slash)
		return bid_root_mkdirs_touching(bid_store_root(store), path, touched, ret_fd);
	if ((size_t)(slash - path) >= sizeof(parent))
		return -ENAMETOOLONG;
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	r = bid_dir_open(store, parent, true, touched, &dir);
	return r < 0 ? r : bid_root_mkdirs_below(dir.fd, slash + 1, touched, ret_fd);
}

static int try_to_publish(struct bid_store *store, const struct bid_id *id, enum bid_kind kind, const char *path, bool durable,
			  int (*put)(void *user, int dir, const char *name), void *user, bool *ret_linked)
{
	struct bid_touched touched = { 0 };
	bid_auto_fd int dir = -1;
	int r, after, taken = 0;
	bool linked = false;

	r = make_place(store, path, durable ? &touched : NULL, &dir);
	if (r == 0)
		r = put(user, dir, bid_kind_store_name(kind));
	if (r == -EEXIST)
		taken = r;
	if (r == 0 || taken) {
		after = r == 0 && durable ? bid_touched_add(&touched, dir) : 0;
		if (after == 0)
			after = publish_link(store, id, path, durable ? &touched : NULL);
		linked = after > 0;
		if (after >= 0)
			after = bid_touched_sync(&touched);
		r = after < 0 ? after : taken;
	}
	bid_touched_release(&touched);
	*ret_linked = linked;
	return r;
}

int bid_publish_linking(struct bid_store *store, const struct bid_id *id, enum bid_kind kind, const char *path, bool durable,
			int (*put)(void *user, int dir, const char *name), void *user, bool *ret_linked)
{
	int r = -ENOENT;

	/* a directory that has just been made is empty, and may be taken away again by who removes or evicts its neighbour */
	for (int tries = 0; tries < 8 && (r == -ENOENT || r == -ENOTDIR); tries++)
		r = try_to_publish(store, id, kind, path, durable, put, user, ret_linked);
	/* without the file, its directory says nothing */
	if (r < 0 && r != -EEXIST)
		bid_entry_prune(store, path);
	return r;
}

int bid_publish(struct bid_store *store, const struct bid_id *id, enum bid_kind kind, const char *path, bool durable,
		int (*put)(void *user, int dir, const char *name), void *user)
{
	bool linked;

	return bid_publish_linking(store, id, kind, path, durable, put, user, &linked);
}

int bid_publish_instead(struct bid_store *store, const struct bid_request *request, const char *path, bool durable,
			int (*put)(void *user, int dir, const char *name), void *user)
{
	int r = bid_publish(store, &request->id, request->kind, path, durable, put, user);
	char file[PATH_MAX + 16];

	if (r != -EEXIST)
		return r;
	snprintf(file, sizeof(file), "%s/%s", path, bid_kind_store_name(request->kind));
	return bid_aside_wrong(store, file, request) ? bid_publish(store, &request->id, request->kind, path, durable, put, user)
						     : r;
}

static int put_temp(void *user, int dir, const char *name)
{
	return bid_temp_link(user, dir, name);
}

/* Does this errno speak of the disk, so that another place on it would meet the same? */
static bool is_of_the_disk(int r)
{
	/* a file system that cannot be written may have it all the same */
	return bid_is_trouble(r) && r != -EROFS;
}

/*
 * Publish at @path and see whether it can be found then. -EBADMSG: a wrong file has the name. -ENOENT: it could not be put
 * there.
 */
static int publish_at(struct bid_txn *txn, const struct bid_id *id, const char *path, struct bid_file *ret_file)
{
	int r = bid_publish(txn->store, id, txn->request.kind, path, false, put_temp, &txn->temp);

	if (is_of_the_disk(r))
		return r;
	/* whatever else went wrong, a missing link of perf's or a directory of root's, counts only if it is not found */
	if (r < 0 && r != -EEXIST)
		bid_debug("%s: cannot publish in '%s/%s'", strerror(-r), bid_store_path(txn->store), path);
	return bid_store_find(txn->store, &txn->request, ret_file);
}

/* "<path>/<id>" */
static int under_path(const struct bid_txn *txn, const struct bid_id *filed, char ret_path[static PATH_MAX])
{
	char hex[BID_ID_HEX_MAX];

	return snprintf(ret_path, PATH_MAX, "%s/%s", txn->path, bid_id_format(filed, hex)) >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* It is published with the nameless: who named the build in this moment did not see it there. */
static void follow_name(struct bid_txn *txn, const struct bid_id *id, const struct bid_id *filed)
{
	char where[PATH_MAX];
	int r;

	if (bid_one_where(txn->store, filed, where, sizeof(where)) < 0 || bid_is_nameless(where) ||
	    bid_layout_is_astray(where, filed))
		return;
	r = bid_name_nameless(txn->store, id, where, false);
	if (r < 0)
		bid_debug("%s: cannot join the nameless and '%s/%s'", strerror(-r), bid_store_path(txn->store), where);
}

/* Publish where it belongs; where that cannot be, in the directory of the nameless, which is looked into next. */
static int publish(struct bid_txn *txn, const struct bid_id *id, struct bid_file *ret_file)
{
	char path[PATH_MAX], nameless[BID_LAYOUT_MAX], file[PATH_MAX];
	struct bid_id filed = bid_layout_filed(id);
	int r;

	if (bid_kind_has_detail(txn->request.kind)) {
		r = bid_piece_publish(txn->store, &txn->request, &txn->temp, false);
		return r == 0 || r == -EEXIST ? bid_piece_open(txn->store, &txn->request, ret_file) : r;
	}
	r = -ENOENT;
	if (txn->path[0] && bid_one_where(txn->store, &filed, path, sizeof(path)) < 0)
		r = under_path(txn, &filed, path);
	if (r < 0)
		bid_publish_where(txn->store, id, path);
	r = publish_at(txn, id, path, ret_file);
	if (r == 0 && bid_is_nameless(path))
		follow_name(txn, id, &filed);
	if (r == 0 || is_of_the_disk(r))
		return r;
	bid_layout_under(BID_STORE_NAMELESS, &filed, nameless);
	for (int tries = 0; tries < 2; tries++) {
		r = publish_at(txn, id, nameless, ret_file);
		if (r != -EBADMSG)
			return r;
		/* our own directory: what is wrong there is in the way of all that would be right */
		snprintf(file, sizeof(file), "%s/%s", nameless, bid_kind_store_name(txn->request.kind));
		bid_aside_wrong(txn->store, file, &txn->request);
	}
	return r;
}

static mode_t mode_of(enum bid_kind kind)
{
	return kind == BID_KIND_ELF || kind == BID_KIND_VDSO ? 0755 : 0644;
}

/* Remember what was published, and that there is more of it now. */
static void note(struct bid_txn *txn, struct bid_pins *pins, const struct bid_request *request, const struct bid_origin *origin,
		 XXH128_hash_t hash)
{
	char digest[BID_DIGEST_MAX];
	int r = bid_pin_set(pins, request, hash);

	if (r < 0)
		bid_debug("%s: no pin of what was published in '%s'", strerror(-r), bid_store_path(txn->store));
	bid_digest_format(hash, digest);
	r = bid_record_write(txn->store, &(struct bid_record){
						 .request = *request,
						 .origin = origin,
						 .digest = digest,
						 .size = bid_filling_size(&txn->filling),
					 });
	if (r < 0)
		bid_debug("%s: no record of what was published in '%s'", strerror(-r), bid_store_path(txn->store));
	/* not before there is a record: by that it counts */
	bid_keeper_published(bid_store_keeper(txn->store), bid_filling_size(&txn->filling));
}

int bid_txn_commit(struct bid_txn *txn, const struct bid_origin *origin, struct bid_file *ret_file)
{
	bid_cleanup(close_pins) struct bid_pins *pins = NULL;
	struct bid_elf_info info;
	struct bid_file file = BID_FILE_NONE;
	struct bid_request request;
	XXH128_hash_t hash;
	struct stat st;
	int r;

	r = flush(txn);
	if (r < 0)
		return r;
	/* of a small file this is all of it, and the disk is at work while it is examined */
	bid_filling_push(&txn->filling);
	r = bid_examine_for(txn->temp.fd, &txn->request, txn->reason, sizeof(txn->reason), &info);
	if (r < 0)
		return r;
	txn->alt = info.alt;
	request = (struct bid_request){ .id = info.id, .kind = txn->request.kind, .detail = txn->request.detail };
	hash = XXH3_128bits_digest(txn->filling.digest);
	r = bid_pins_open(txn->store, &pins);
	if (r == 0)
		r = check_pin(txn, pins, &request, hash);
	if (r < 0)
		return r;
	if (fchmod(txn->temp.fd, mode_of(txn->request.kind)) < 0 || fsync(txn->temp.fd) < 0)
		return -errno;
	do
		r = publish(txn, &info.id, &file);
	while (may_retry(txn, r, 0));
	if (r < 0)
		return r;
	/* what somebody else put there meanwhile has its own record, or none */
	if (fstat(txn->temp.fd, &st) == 0 && st.st_ino == file.st.st_ino && st.st_dev == file.st.st_dev)
		note(txn, pins, &request, origin, hash);
	*ret_file = file;
	return 0;
}
