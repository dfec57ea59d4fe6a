// SPDX-License-Identifier: LGPL-2.1-or-later
/* Ingest: choose the names of a file in the store. */
#include "disk/publish/ingest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <bid/error.h>

#include "api/evict.h"
#include "base/access.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "base/path.h"
#include "base/trouble.h"
#include "disk/beneath.h"
#include "disk/check.h"
#include "disk/find.h"
#include "disk/layout.h"
#include "disk/links.h"
#include "disk/names.h"
#include "disk/one.h"
#include "disk/publish/merge.h"
#include "disk/publish/publish.h"
#include "disk/publish/replace.h"
#include "disk/record.h"
#include "disk/store.h"

enum { TRIES = 8 }; /* while others add and remove the same */

bool bid_ingest_is_unsupported(int r)
{
	return r == -EOPNOTSUPP || r == -EXDEV || r == -EINVAL || r == -EPERM || r == -EMLINK || r == -ENOTTY || r == -ENOSYS ||
	       r == -ENOENT;
}

/* Point perf's link for @id at @path, for readers. The link led to @mismatched: the directory of another id, or nothing. */
static int mend_link(struct bid_store *store, const struct bid_id *id, const char *mismatched, const char *path, bool durable)
{
	struct bid_id filed = bid_layout_filed(id);
	char link[BID_LAYOUT_MAX];
	int r = bid_link_point(store, &filed, path);

	if (r == 0 && durable)
		r = bid_store_sync(store);
	if (r == 0)
		bid_warning("wrong link: '%s/%s' led to '%s', %s; it leads to '%s' now", bid_store_path(store),
			    bid_layout_link(&filed, link), mismatched,
			    bid_layout_is_mismatched(mismatched, id) ? "of another build" : "where nothing is", path);
	return r;
}

/* Add the file's own name to an artifact in the store, if the name is new. One object then has several names. */
static int add_name(struct bid_store *store, const struct bid_ingest *ingest, struct bid_file *file, const char *path,
		    enum bid_durability durability)
{
	bool durable = durability == BID_DURABLE_EACH, linked;
	char where[PATH_MAX];
	struct stat root;
	int r;

	if (file->kind != BID_KIND_ELF)
		return 0;
	/* a lower store on another file system: no link is possible, and a directory would stay empty */
	if (fstat(bid_store_root(store), &root) < 0 || root.st_dev != file->st.st_dev)
		return 0;
	linked = bid_one_where(store, &ingest->info.id, where, sizeof(where)) == 0;
	if (linked && strcmp(where, path) == 0)
		return 0;
	r = bid_publish(store, &ingest->info.id, file->kind, path, durable, BID_TEMP_OF(file->fd), NULL);
	if ((r == 0 || r == -EEXIST) && linked && bid_is_unnamed(where)) {
		int named = bid_merge_unnamed(store, &ingest->info.id, path, durable);

		if (named == 0 || bid_is_trouble(named))
			return named;
	} else if (r == 0 && linked && bid_layout_is_mismatched(where, &ingest->info.id)) {
		r = mend_link(store, &ingest->info.id, where, path, durable);
	}
	if (r == 0 || r == -EEXIST)
		bid_names_note(store, &ingest->info.id, path);
	return r == -EEXIST || bid_ingest_is_unsupported(r) ? 0 : r;
}

/* Format the object directory below the file's own path: "usr/bin/ls/ID". */
static int own_place(const struct bid_ingest *ingest, char ret_path[static PATH_MAX])
{
	struct bid_id filed = bid_layout_filed(&ingest->info.id);
	char hex[BID_ID_HEX_MAX];

	if (ingest->is_unnamed) {
		bid_layout_under(BID_STORE_UNNAMED, &filed, ret_path);
		return 0;
	}
	return snprintf(ret_path, PATH_MAX, "%s/%s", ingest->path + 1, bid_id_format(&filed, hex)) >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* May all users read the added file, but not the same artifact in the store? */
static bool opens_to_all(const struct bid_ingest *ingest, const struct bid_file *file, mode_t mode)
{
	return bid_all_read(mode) && !bid_all_read(file->st.st_mode) && !ingest->packed && ingest->st.st_size == file->st.st_size &&
	       bid_same_bytes(ingest->fd, file->fd) == 1;
}

/*
 * Replace @file, the stored artifact of @ingest, by a copy if it grants privileges. Replace it also if only its owner may read it
 * and all users may read @ingest, which has the same bytes.
 */
static void mend_class(struct bid_store *store, const struct bid_ingest *ingest, const struct bid_file *file)
{
	struct bid_request request = { .id = ingest->added.id, .kind = ingest->added.kind };
	bool linked = is_same(&file->st, &ingest->st), gives = bid_rights_given(file->fd, &file->st);
	/* the file to be added has a name of its own */
	struct bid_rights rights = { .mode = bid_ingest_mode(store, ingest), .elsewhere = linked };
	char hex[BID_ID_HEX_MAX];
	struct stat st;
	int r;

	/* perf also links files that grant privileges; files of a lower store stay as they are */
	if ((!gives && !opens_to_all(ingest, file, rights.mode)) || bid_find_stat(store, &request, &st) < 0 ||
	    !is_same(&st, &file->st))
		return;
	if (gives && !linked)
		rights.mode = file->st.st_mode;
	r = bid_rights_take(store, &request, file->fd, &rights);
	if (r < 0)
		bid_warning("%s: '%s' has other rights in the store '%s' than where it is, and no copy with its own could be made",
			    bid_strerror(r), bid_id_format(&request.id, hex), bid_store_path(store));
}

int bid_ingest_recognise(struct bid_store *store, struct bid_ingest *ingest, enum bid_durability durability)
{
	struct bid_request request = { .id = ingest->added.id, .kind = ingest->added.kind };
	struct bid_file file = BID_FILE_NONE;
	char own[PATH_MAX];
	int r, claimed;

	r = own_place(ingest, own);
	if (r < 0)
		return r;
	r = bid_find_stored(store, &request, &file);
	if (r < 0)
		return r == -ENOENT || bid_is_unusable(r) ? 0 : r;
	/* an added debug file is not stripped, and replaces a stripped one */
	if (file.stripped) {
		bid_file_release(&file);
		return 0;
	}
	/* an ELF file may substitute for its debuginfo, but is no debug file */
	r = file.kind == request.kind && !ingest->is_unnamed ? add_name(store, ingest, &file, own, durability) : 0;
	/* the file now belongs to the user, and is not evicted; if it was evicted meanwhile, it is added again */
	claimed = r == 0 && file.kind == request.kind ? bid_store_claim(store, &request) : -ENOENT;
	ingest->added.known = claimed >= 0;
	ingest->is_fresh = ingest->added.known && bid_store_is_fresh(store, &file.st);
	if (ingest->added.known) {
		mend_class(store, ingest, &file);
	}
	bid_file_release(&file);
	if (r == 0 && claimed < 0 && claimed != -ENOENT)
		r = claimed;
	return r < 0 ? r : ingest->added.known;
}

/* Choose the object directory. Readers follow perf's link, so its target comes first. Debug files go beside their ELF file. */
static int choose_place(struct bid_store *store, struct bid_ingest *ingest)
{
	if (ingest->is_new && ingest->added.kind == BID_KIND_ELF)
		return own_place(ingest, ingest->where);
	if (ingest->added.kind == BID_KIND_DEBUGINFO ||
	    (bid_one_where(store, &ingest->added.id, ingest->where, sizeof(ingest->where)) == 0 &&
	     !bid_layout_is_mismatched(ingest->where, &ingest->added.id))) {
		bid_publish_where(store, &ingest->added.id, ingest->where);
		return 0;
	}
	return own_place(ingest, ingest->where);
}

/* Merge with @target: another copy of the build got perf's link first. Returns true if one object now has both names. */
static bool join_copies(struct bid_store *store, const struct bid_ingest *ingest, const char *target)
{
	struct bid_request request = { .id = ingest->added.id, .kind = ingest->added.kind };
	struct bid_place_of entry = {
		.path = ingest->where, .id = bid_layout_filed(&request.id), .kinds = 1U << request.kind, .fd = -1
	};
	struct bid_file file = BID_FILE_NONE;
	bid_auto_fd int dir = -1;
	char path[PATH_MAX + 16];
	bool joined = false;

	snprintf(path, sizeof(path), "%s/%s", target, bid_kind_store_name(request.kind));
	/* not checked yet */
	if (bid_check_open(store, path, &request, &file) == 0 &&
	    bid_beneath_open(bid_store_root(store), ingest->where, O_RDONLY | O_DIRECTORY, &dir) == 0) {
		entry.fd = dir;
		/* the source is a file elsewhere, and stays separate; a build may exist twice with different bytes */
		joined = bid_merge(store, &entry, target, !ingest->is_staged) == 0;
		if (joined)
			bid_names_note(store, &request.id, ingest->where);
	}
	bid_file_release(&file);
	return joined;
}

/*
 * Publish the file in its object directory. Another process may point perf's link elsewhere meanwhile, for example for the debug
 * file of the same build. The file then goes there too, because readers follow the link.
 */
static int publish_file(struct bid_store *store, struct bid_ingest *ingest, enum bid_durability durability,
			const struct bid_temp *file)
{
	const struct bid_id *id = &ingest->added.id;
	bool durable = durability == BID_DURABLE_EACH;
	char where[PATH_MAX];
	struct stat st;
	bool linked;
	int r;

	r = bid_publish(store, id, ingest->added.kind, ingest->where, durable, file, &linked);
	if ((r < 0 && r != -EEXIST) || linked || bid_one_where(store, id, where, sizeof(where)) < 0)
		return r;
	if (bid_layout_is_mismatched(where, id) ||
	    (r == -EEXIST && bid_beneath_stat(bid_store_root(store), where, &st) == -ENOENT)) {
		int mended = mend_link(store, id, where, ingest->where, durable);

		return mended < 0 ? mended : r;
	}
	if (r == 0 && ingest->added.kind == BID_KIND_ELF && bid_is_unnamed(where) && !bid_is_unnamed(ingest->where) &&
	    bid_merge_unnamed(store, id, ingest->where, durable) == 0)
		return 0;
	if (r == 0 && strcmp(where, ingest->where) != 0 &&
	    bid_publish(store, id, ingest->added.kind, where, durable, file, NULL) == -EEXIST)
		ingest->added.known = ingest->is_fresh = join_copies(store, ingest, where);
	return r;
}

/* Publish the file. If a wrong file has its name, replace that file: no reader gets it, and it would block the name. */
static int publish_instead(struct bid_store *store, struct bid_ingest *ingest, enum bid_durability durability,
			   const struct bid_temp *file)
{
	struct bid_request request = { .id = ingest->added.id, .kind = ingest->added.kind };
	int r = publish_file(store, ingest, durability, file);
	char path[PATH_MAX + 16];

	if (r != -EEXIST)
		return r;
	snprintf(path, sizeof(path), "%s/%s", ingest->where, bid_kind_store_name(request.kind));
	return bid_publish_make_way(store, path, &request) ? publish_file(store, ingest, durability, file) : r;
}

int bid_ingest_sync_known(struct bid_store *store, const struct bid_ingest *ingest, enum bid_durability durability)
{
	return ingest->is_fresh && durability == BID_DURABLE_EACH ? bid_store_sync(store) : 0;
}

/* Does another build whose id begins alike have the name? */
static bool is_taken(struct bid_store *store, const struct bid_ingest *ingest)
{
	struct bid_request request = { .id = ingest->added.id, .kind = ingest->added.kind };
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/%s", ingest->where, bid_kind_store_name(request.kind));
	return bid_check_anothers(store, path, &request);
}

/* Finish publishing after the result @published: 0, or -EEXIST for another file of that name. Adds the other name of the file. */
static int finish_publishing(struct bid_store *store, struct bid_ingest *ingest, int published, enum bid_durability durability)
{
	char own[PATH_MAX];
	int r = published;

	/* also remove a record of a download killed meanwhile */
	if (r == 0 && !ingest->added.known)
		bid_record_drop(store, &(struct bid_request){ .id = ingest->added.id, .kind = ingest->added.kind });
	if (r == -EEXIST) {
		r = bid_ingest_recognise(store, ingest, durability);
		/* the existing file is wrong and stays, or could not be moved to the quarantine */
		if (r == 0)
			r = is_taken(store, ingest) ? -ENOTUNIQ : -EBADMSG;
	} else if (r == 0 && own_place(ingest, own) == 0 && strcmp(own, ingest->where) != 0) {
		r = bid_ingest_recognise(store, ingest, durability);
		ingest->added.known = false;
	}
	if (r < 0)
		return r;
	ingest->stage = BID_INGEST_PLACED;
	if (ingest->added.known) {
		ingest->added.link = BID_LINK_AUTO;
		return bid_ingest_sync_known(store, ingest, durability);
	}
	return 0;
}

int bid_ingest_publish(struct bid_store *store, struct bid_ingest *ingest, enum bid_durability durability,
		       const struct bid_temp *file)
{
	int r = -EBADMSG;

	/* a file of the user has no record, and none of an earlier download */
	bid_record_drop(store, &(struct bid_request){ .id = ingest->added.id, .kind = ingest->added.kind });
	/* the wrong file may have been removed just now: try again */
	for (int tries = 0; tries < TRIES && r == -EBADMSG; tries++) {
		r = choose_place(store, ingest);
		if (r == 0)
			r = publish_instead(store, ingest, durability, file);
		r = finish_publishing(store, ingest, r, durability);
	}
	return r;
}
