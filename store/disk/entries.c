// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/entries.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "disk/layout.h"
#include "disk/root.h"
#include "disk/store.h"

enum {
	DEPTH_MAX = 400, /* directories; each is a descriptor while the walk is below it */
	BARE_ID_MIN = 8, /* bytes; a shorter hex name with nothing below it is taken for a part of a path */
};

struct walk {
	const struct bid_visitor *visitor;
	char path[PATH_MAX];
	unsigned depth;
	bool flat; /* what lies directly below the beginning, and no deeper */
};

bool bid_entry_name(const char *name, struct bid_id *ret_id)
{
	return bid_id_parse_str(name, ret_id) == 0;
}

/* The kind whose file in the store has the name @name, or BID_KIND_NONE. */
static enum bid_kind kind_of(const char *name)
{
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		if (strcmp(name, bid_kind_store_name((enum bid_kind)kind)) == 0)
			return (enum bid_kind)kind;
	return BID_KIND_NONE;
}

/* ".elf.XXXXXX": mkstemp(3)'s form behind the name of an artifact (perf, util/util.c: copyfile_mode_ns()). */
static bool is_perf_temp(const char *name)
{
	const char *dot = strrchr(name, '.');
	char kind[16];

	if (name[0] != '.' || !dot || dot == name || strlen(dot) != 7)
		return false;
	for (const char *at = dot + 1; *at; at++)
		if (!isalnum((unsigned char)*at))
			return false;
	if ((size_t)(dot - name) >= sizeof(kind))
		return false;
	memcpy(kind, name + 1, (size_t)(dot - name) - 1);
	kind[dot - name - 1] = '\0';
	return kind_of(kind) != BID_KIND_NONE;
}

/* At the top, what is not an original path. */
static bool is_passed_by(const char *name)
{
	static const char *const names[] = { BID_LAYOUT_LINKS, BID_LAYOUT_PRIVATE, "[kernel.kcore]", "jit" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static unsigned char type_of(int dir, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_LNK;
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* What lies in an open directory: kinds of artifacts, and whether there is anything else. */
static int survey(DIR *dir, unsigned *ret_kinds, bool *ret_more)
{
	struct dirent *entry;

	*ret_kinds = 0;
	*ret_more = false;
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		enum bid_kind kind = kind_of(entry->d_name);

		if (is_dot(entry->d_name))
			continue;
		if (kind != BID_KIND_NONE && type_of(dirfd(dir), entry) == DT_REG)
			*ret_kinds |= 1U << kind;
		else
			*ret_more = true;
	}
	return -errno;
}

static int walk(struct walk *at, DIR *dir, bool inside);

/* A directory: an entry if its name is an id and artifacts or nothing lie in it; also a part of paths, if there is more in it. */
static int visit_dir(struct walk *at, int parent, const char *name)
{
	struct bid_place_of entry = { .path = at->path };
	bid_auto_fd int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bid_auto_dir DIR *dir = NULL;
	bool named = bid_entry_name(name, &entry.id), more = true;
	int r;

	/* it may be gone by now: others write here too */
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	entry.fd = bid_steal_fd(&fd);
	if (named) {
		r = survey(dir, &entry.kinds, &more);
		if (r < 0)
			return r;
		named = entry.kinds != 0 || (!more && entry.id.len >= BARE_ID_MIN);
		if (!named || more)
			rewinddir(dir);
	}
	if (named) {
		r = at->visitor->entry(at->visitor->user, &entry);
		if (r != 0 || !more)
			return r;
	}
	if (at->flat && !named)
		return 0;
	at->depth++;
	r = walk(at, dir, named);
	at->depth--;
	return r;
}

static int visit_file(struct walk *at, const char *name, bool inside)
{
	const struct bid_visitor *visitor = at->visitor;
	struct bid_place_of entry = { .path = at->path, .is_file = true, .fd = -1 };

	if (inside && kind_of(name) != BID_KIND_NONE)
		return 0;
	if (inside && is_perf_temp(name))
		return visitor->temp ? visitor->temp(visitor->user, at->path) : 0;
	if (bid_entry_name(name, &entry.id) && entry.id.len >= BARE_ID_MIN) {
		entry.kinds = strncmp(at->path, "[kernel.kallsyms]/", 18) == 0 ? 1U << BID_KIND_KALLSYMS : 1U << BID_KIND_ELF;
		return visitor->entry(visitor->user, &entry);
	}
	return visitor->foreign ? visitor->foreign(visitor->user, at->path) : 0;
}

/* @inside: @dir is an entry. */
static int walk(struct walk *at, DIR *dir, bool inside)
{
	size_t len = strlen(at->path);
	struct dirent *entry;
	int r = 0;

	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		size_t name = strlen(entry->d_name);
		unsigned char type;

		if (is_dot(entry->d_name) || (len == 0 && is_passed_by(entry->d_name)))
			continue;
		if (len + name + 2 > sizeof(at->path))
			continue;
		snprintf(at->path + len, sizeof(at->path) - len, "%s%s", len ? "/" : "", entry->d_name);
		type = type_of(dirfd(dir), entry);
		if (type == DT_DIR && at->depth < DEPTH_MAX)
			r = visit_dir(at, dirfd(dir), entry->d_name);
		else if (type == DT_REG)
			r = visit_file(at, entry->d_name, inside);
		else if (at->visitor->foreign)
			r = at->visitor->foreign(at->visitor->user, at->path);
		at->path[len] = '\0';
	}
	return r != 0 ? r : -errno;
}

static int walk_from(struct bid_store *store, const char *path, bool flat, const struct bid_visitor *visitor)
{
	bid_auto_dir DIR *dir = NULL;
	struct walk at = { .visitor = visitor, .flat = flat };
	int r;

	if (strlen(path) >= sizeof(at.path))
		return -ENAMETOOLONG;
	memcpy(at.path, path, strlen(path) + 1);
	r = bid_root_opendir(bid_store_root(store), path, &dir);
	return r < 0 ? r : walk(&at, dir, false);
}

int bid_entries_each(struct bid_store *store, const struct bid_visitor *visitor)
{
	return walk_from(store, "", false, visitor);
}

int bid_entries_of_path(struct bid_store *store, const char *path, const struct bid_visitor *visitor)
{
	return walk_from(store, path, true, visitor);
}

/* Open the directory that @path is in, and cut @path in two: @ret_name is the rest. */
static int open_parent(struct bid_store *store, const char *path, char copy[static PATH_MAX], int *ret_dir, const char **ret_name)
{
	char *slash;

	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(copy, path, strlen(path) + 1);
	slash = strrchr(copy, '/');
	*ret_name = slash ? slash + 1 : path;
	if (slash)
		*slash = '\0';
	return bid_root_open(bid_store_root(store), slash ? copy : "", O_PATH | O_DIRECTORY, ret_dir);
}

static int unlink_below(struct bid_store *store, const char *path, int flags)
{
	bid_auto_fd int dir = -1;
	char copy[PATH_MAX];
	const char *name;
	int r = open_parent(store, path, copy, &dir, &name);

	if (r < 0)
		return r;
	return unlinkat(dir, name, flags) < 0 ? -errno : 0;
}

int bid_entry_unlink(struct bid_store *store, const char *path)
{
	return unlink_below(store, path, 0);
}

int bid_entry_rmdir(struct bid_store *store, const char *path)
{
	return unlink_below(store, path, AT_REMOVEDIR);
}

void bid_entry_prune(struct bid_store *store, const char *path)
{
	char rest[PATH_MAX], copy[PATH_MAX];

	snprintf(rest, sizeof(rest), "%s", path);
	while (*rest) {
		bid_auto_fd int dir = -1;
		const char *name;

		if (open_parent(store, rest, copy, &dir, &name) < 0 || unlinkat(dir, name, AT_REMOVEDIR) < 0)
			return;
		*(strrchr(rest, '/') ? strrchr(rest, '/') : rest) = '\0';
	}
}

/* perf's old layout: the entry is the file. */
static int take_file(struct bid_store *store, const char *path)
{
	char parent[PATH_MAX];
	int r = bid_entry_unlink(store, path);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	snprintf(parent, sizeof(parent), "%s", path);
	*(strrchr(parent, '/') ? strrchr(parent, '/') : parent) = '\0';
	bid_entry_prune(store, parent);
	return 0;
}

int bid_entry_take(struct bid_store *store, const char *path, unsigned kinds)
{
	bid_auto_fd int dir = -1;
	unsigned left = 0;
	struct stat st;
	int r;

	r = bid_root_open(bid_store_root(store), path, O_RDONLY | O_DIRECTORY, &dir);
	if (r == -ENOENT)
		return bid_root_stat(bid_store_root(store), path, &st) == 0 && S_ISREG(st.st_mode) ? take_file(store, path) : 0;
	if (r < 0)
		return r;
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
		bid_entry_prune(store, path);
	return (int)left;
}
