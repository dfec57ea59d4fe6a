// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/objdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/publish/temp.h"
#include "disk/store.h"

/* Read the target of perf's link for @id. Returns -EINVAL if there is no symbolic link, or one of another form. */
static int read_target(struct bid_store *store, const struct bid_id *id, char *ret_path, size_t size)
{
	char link[BID_LAYOUT_MAX], text[PATH_MAX];
	bid_auto_fd int dir = -1;
	const char *name, *target;
	int r = bid_beneath_parent(store->root, bid_layout_link(id, link), O_PATH, &dir, &name);

	if (r == 0)
		r = bid_beneath_readlink(dir, name, text);
	if (r < 0)
		return r;
	target = bid_layout_target(text);
	if (!target)
		return -EINVAL;
	if (strlen(target) >= size)
		return -ENAMETOOLONG;
	memcpy(ret_path, target, strlen(target) + 1);
	return 0;
}

/* perf's old layout: set @ret_path to the path of the link of @id, if a file is there. */
static bool is_file_there(struct bid_store *store, const struct bid_id *id, char *ret_path, size_t size)
{
	char link[BID_LAYOUT_MAX];
	struct stat st;

	snprintf(ret_path, size, "%s", bid_layout_link(id, link));
	return bid_beneath_stat(store->root, link, &st) == 0 && S_ISREG(st.st_mode);
}

/* well-known directories of perf and bidfs, each with the kind found only there; BID_KIND_NONE for any kind */
static const struct {
	const char *dir;
	unsigned kinds;
} known_objdirs[] = {
	{ BID_STORE_UNNAMED, ~0U },
	{ "[kernel.kallsyms]", 1U << BID_KIND_NONE | 1U << BID_KIND_KALLSYMS | 1U << BID_KIND_PROBES },
	{ "[vdso]", 1U << BID_KIND_NONE | 1U << BID_KIND_VDSO | 1U << BID_KIND_PROBES },
};

_Static_assert(sizeof(known_objdirs) / sizeof(known_objdirs[0]) == BID_OBJDIR_KNOWN_MAX, "each has its number");

const char *bid_objdir_known(unsigned number)
{
	return known_objdirs[number].dir;
}

bool bid_objdir_next(struct bid_objdir_iter *objdir, struct bid_store *store, const struct bid_id *id, enum bid_kind kind)
{
	if (!objdir->looked) {
		int r = read_target(store, id, objdir->target, sizeof(objdir->target));

		objdir->linked = r == 0 || (r == -EINVAL && is_file_there(store, id, objdir->target, sizeof(objdir->target)));
	}
	objdir->looked = true;
	if (objdir->step++ == 0) {
		objdir->path = objdir->target;
		if (objdir->linked)
			return true;
		objdir->step++;
	}
	for (; objdir->step - 2 < BID_OBJDIR_KNOWN_MAX; objdir->step++) {
		if (!(known_objdirs[objdir->step - 2].kinds & 1U << kind))
			continue;
		objdir->path = bid_layout_under(known_objdirs[objdir->step - 2].dir, id, objdir->known);
		return true;
	}
	return false;
}

int bid_one_where(struct bid_store *store, const struct bid_id *id, char *ret_path, size_t size)
{
	struct bid_alias_iter alias = { 0 };
	struct bid_id disk_id;
	int r = -ENOENT;

	while (r == -ENOENT && bid_alias_next(&alias, id, &disk_id))
		r = read_target(store, &disk_id, ret_path, size);
	return r;
}

int bid_objdir_kinds(struct bid_store *store, const char *path)
{
	bid_auto_fd int dir = -1;
	struct stat st;
	int kinds = 0;

	if (bid_beneath_open(store->root, path, O_PATH | O_DIRECTORY, &dir) < 0)
		return 0;
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		if (fstatat(dir, bid_kind_store_name((enum bid_kind)kind), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			kinds |= 1 << kind;
	return kinds;
}

bool bid_foreign_is_there(struct bid_store *store, const struct bid_foreign *foreign)
{
	bid_auto_fd int fd = -1;
	struct stat st;

	return !(foreign->is_download && bid_store_requires_signed(store)) &&
	       bid_store_open_linked(store, foreign->path, O_PATH, &fd) == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size > 0;
}

int bid_one_foreign_kinds(struct bid_store *store, const struct bid_id *disk_id)
{
	struct bid_foreign foreign = { 0 };
	int kinds = 0;

	while (store->upper && bid_foreign_next(&foreign, disk_id, BID_KIND_NONE))
		kinds |= bid_foreign_is_there(store, &foreign) ? 1 << foreign.kind : 0;
	return kinds;
}

int bid_objdir_take(struct bid_store *store, const char *path, unsigned kinds)
{
	bid_auto_fd int dir = -1;
	unsigned left = 0;
	struct stat st;
	int r;

	r = bid_beneath_open(store->root, path, O_RDONLY | O_DIRECTORY, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		const char *name = bid_kind_store_name((enum bid_kind)kind);

		if (kinds & 1U << kind) {
			if (unlinkat(dir, name, 0) < 0 && errno != ENOENT && errno != EISDIR)
				return -errno;
		} else if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
			left |= 1U << kind;
		}
	}
	if (left == 1U << BID_KIND_PROBES && fstatat(dir, bid_kind_store_name(BID_KIND_PROBES), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_size == 0 && unlinkat(dir, bid_kind_store_name(BID_KIND_PROBES), 0) == 0)
		left = 0;
	if (left == 0)
		bid_beneath_prune(store->root, path);
	return (int)left;
}

bool bid_link_leads(int fanout, const struct bid_id *disk_id, const char *path)
{
	char hex[BID_ID_HEX_MAX], text[PATH_MAX];
	const char *target = NULL;

	if (bid_beneath_readlink(fanout, bid_id_format(disk_id, hex) + 2, text) == 0)
		target = bid_layout_target(text);
	return target && strcmp(target, path) == 0;
}

/* Is @path absent? A failing stat(2) counts as present. */
static bool is_absent(struct bid_store *store, const char *path)
{
	bid_auto_fd int fd = -1;
	int r = bid_beneath_open(store->root, path, O_PATH, &fd);

	return r == -ENOENT || r == -ENAMETOOLONG;
}

enum bid_link_state bid_link_look(struct bid_store *store, const struct bid_id *disk_id, char ret_target[static PATH_MAX])
{
	char link[BID_LAYOUT_MAX];
	bid_auto_fd int fanout = -1;
	const char *name;

	if (bid_beneath_parent(store->root, bid_layout_link(disk_id, link), O_PATH, &fanout, &name) < 0)
		return BID_LINK_NONE;
	return bid_link_look_in(store, fanout, disk_id, ret_target);
}

enum bid_link_state bid_link_look_in(struct bid_store *store, int fanout, const struct bid_id *disk_id,
				     char ret_target[static PATH_MAX])
{
	char text[PATH_MAX], hex[BID_ID_HEX_MAX];
	const char *target;
	int r = bid_beneath_readlink(fanout, bid_id_format(disk_id, hex) + 2, text);

	if (r == -EINVAL)
		return BID_LINK_ODD;
	if (r == -ENAMETOOLONG)
		return BID_LINK_FOREIGN;
	if (r < 0)
		return BID_LINK_NONE;
	target = bid_layout_target(text);
	if (!target)
		return BID_LINK_FOREIGN;
	memcpy(ret_target, target, strlen(target) + 1);
	if (is_absent(store, target))
		return BID_LINK_DANGLING;
	return bid_layout_is_named_after(target, disk_id) ? BID_LINK_GOOD : BID_LINK_MISMATCHED;
}

int bid_link_point(struct bid_store *store, const struct bid_id *disk_id, const char *target)
{
	char text[PATH_MAX + 8], link[BID_LAYOUT_MAX], temp[BID_TEMP_NAME_MAX];
	bid_auto_fd int fanout = -1, dir = -1;
	const char *name;
	int r;

	r = bid_beneath_parent(store->root, bid_layout_link(disk_id, link), O_CREAT, &fanout, &name);
	if (r == 0)
		r = bid_beneath_mkdirs(store->root, BID_LAYOUT_TEMP, NULL, &dir);
	if (r < 0)
		return r;
	snprintf(text, sizeof(text), BID_LAYOUT_UP "%s", target);
	if (symlinkat(text, fanout, name) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	/* rename(2) replaces the old link atomically: readers always see a link */
	r = bid_temp_name(temp);
	if (r < 0)
		return r;
	if (symlinkat(text, dir, temp) < 0)
		return -errno;
	if (renameat(dir, temp, fanout, name) < 0) {
		r = -errno;
		unlinkat(dir, temp, 0);
	}
	return r;
}

int bid_link_drop(struct bid_store *store, const struct bid_id *disk_id, const char *target)
{
	char link[BID_LAYOUT_MAX];
	bid_auto_fd int fanout = -1;
	const char *name;
	int r = bid_beneath_parent(store->root, bid_layout_link(disk_id, link), O_PATH, &fanout, &name);

	if (r < 0)
		return r;
	if (!bid_link_leads(fanout, disk_id, target))
		return -ENOENT;
	return unlinkat(fanout, name, 0) < 0 ? -errno : 0;
}

void bid_link_leave(struct bid_store *store, const struct bid_id *disk_id, const char *path)
{
	if (bid_link_drop(store, disk_id, path) == 0 && bid_objdir_kinds(store, path) != 0)
		bid_link_point(store, disk_id, path);
}

/* ".bidfs/name/xx/rest" */
static const char *notes_of(const struct bid_id *id, char buf[static BID_LAYOUT_MAX])
{
	struct bid_id disk_id = bid_layout_disk_id(id);

	return bid_layout_fanout_path(BID_LAYOUT_NAMES, &disk_id, "", buf);
}

/* Record @path as a symbolic link, because symlink(2) is atomic. Nothing follows the link. Returns 1 if it is new. */
static int note_path(int dir, const char *path)
{
	char name[17];

	snprintf(name, sizeof(name), "%016llx", (unsigned long long)XXH3_64bits(path, strlen(path)));
	if (symlinkat(path, dir, name) < 0)
		return errno == EEXIST ? 0 : -errno;
	return 1;
}

int bid_names_note(struct bid_store *store, const struct bid_id *id, const char *path)
{
	char notes[BID_LAYOUT_MAX], where[PATH_MAX];
	bid_auto_fd int dir = -1;
	int r = bid_beneath_mkdirs(store->root, notes_of(id, notes), NULL, &dir);

	if (r == 0)
		r = note_path(dir, path);
	if (r > 0 && bid_one_where(store, id, where, sizeof(where)) == 0)
		r = note_path(dir, where);
	return r < 0 ? r : 0;
}

/* Can @path be a name of @id? Names that this program records can; damage may turn a record into anything. */
static bool is_name_of(const struct bid_id *id, const char *path)
{
	struct bid_id disk_id = bid_layout_disk_id(id);

	return strchr(path, '/') && bid_path_is_plain(path) && bid_layout_is_named_after(path, &disk_id);
}

int bid_names_each(struct bid_store *store, const struct bid_id *id,
		   int (*fn)(void *user, const char *note, const char *path, bool there), void *user)
{
	char notes[BID_LAYOUT_MAX], file[BID_LAYOUT_MAX + NAME_MAX + 2], path[PATH_MAX];
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r = bid_beneath_opendir(store->root, notes_of(id, notes), &dir);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, path, sizeof(path) - 1);

		if (len < 0)
			continue;
		path[len] = '\0';
		snprintf(file, sizeof(file), "%s/%s", notes, entry->d_name);
		r = fn(user, file, path, is_name_of(id, path) && bid_objdir_kinds(store, path) != 0);
	}
	return r != 0 ? r : -errno;
}

static int forget_note(void *user, const char *note, const char *path, bool there)
{
	const struct bid_store *store = user;

	bid_beneath_unlink(store->root, note);
	return 0;
}

void bid_names_forget(struct bid_store *store, const struct bid_id *id)
{
	char notes[BID_LAYOUT_MAX];

	bid_names_each(store, id, forget_note, store);
	bid_beneath_rmdir(store->root, notes_of(id, notes));
}
