// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/known.h"

#include <stdio.h>
#include <string.h>

#include <bid/error.h>

#include "base/access.h"
#include "base/io.h"
#include "base/log.h"
#include "disk/find.h"
#include "disk/one.h"
#include "disk/publish/replace.h"

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* Do all read the file to be added, and not all what is the same in the store? */
static bool opens(const struct bid_adding *adding, const struct bid_file *file, const struct bid_readers *readers)
{
	return readers->mode & S_IROTH && !(file->st.st_mode & S_IROTH) && !adding->packed &&
	       adding->st.st_size == file->st.st_size && bid_same_bytes(adding->fd, file->fd) == 1;
}

/* Is the file to be added, by the name to which perf's link leads, one that all get to? */
static bool is_open_elsewhere(struct bid_store *store, const struct bid_adding *adding)
{
	char where[PATH_MAX], path[PATH_MAX];
	struct stat st;

	if (bid_one_where(store, &adding->added.id, where, sizeof(where)) < 0 || !strrchr(where, '/') ||
	    snprintf(path, sizeof(path), "/%.*s", (int)(strrchr(where, '/') - where), where) >= (int)sizeof(path))
		return false;
	return lstat(path, &st) == 0 && is_same(&st, &adding->st) && bid_all_get_to(path);
}

/* What is there may have been linked when it gave no rights, or by perf, which links anything: is it to be copied? */
static bool is_wrong(struct bid_store *store, const struct bid_adding *adding, const struct bid_file *file, bool linked,
		     struct bid_readers *ret_readers)
{
	if (bid_rights_given(file->fd, &file->st) && !linked) {
		*ret_readers = bid_readers_by_mode(file->fd, &file->st);
		return true;
	}
	if (!linked && file->st.st_mode & S_IROTH)
		return false;
	*ret_readers = bid_adding_readers(store, adding);
	/* what it was linked by may be open to all as it was, though this way to it is not */
	if (linked && ret_readers->untold)
		*ret_readers = bid_readers_by_mode(file->fd, &file->st);
	if (linked)
		return (ret_readers->hidden && !is_open_elsewhere(store, adding)) || bid_rights_given(file->fd, &file->st);
	return opens(adding, file, ret_readers);
}

void bid_known_mend(struct bid_store *store, const struct bid_adding *adding, const struct bid_file *file)
{
	struct bid_request request = { .id = adding->added.id, .kind = adding->added.kind };
	bool linked = is_same(&file->st, &adding->st);
	/* that of the file to be added */
	struct bid_rights rights = { .elsewhere = linked };
	char hex[BID_ID_HEX_MAX];
	struct stat st;
	int r;

	/* what a lower store has is not ours to change */
	if (!is_wrong(store, adding, file, linked, &rights.readers) || bid_find_stat(store, &request, &st) < 0 ||
	    !is_same(&st, &file->st))
		return;
	r = bid_rights_take(store, &request, file->fd, &rights);
	if (r < 0)
		bid_warning("%s: '%s' has other rights in the store '%s' than where it is, and no copy with its own could be made",
			    bid_strerror(r), bid_id_format(&request.id, hex), bid_store_path(store));
}
