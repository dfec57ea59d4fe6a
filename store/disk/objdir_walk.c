// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/objdir_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/getdents.h"
#include "disk/beneath.h"
#include "disk/dirwalk.h"
#include "disk/layout.h"
#include "disk/store.h"

enum {
	BARE_ID_MIN = 8, /* bytes; a shorter hex name with nothing below it counts as a component of a path */
	DEPTH_MAX = 400, /* directories; each may cost the dirwalk a descriptor */
};

/* note of a directory in the dirwalk: this bit, and how many times DEPTH it lies below the first */
enum {
	INSIDE = 1, /* an entry */
	DEPTH = 2,
};

/* ".elf.XXXXXX": mkstemp(3)'s form behind the name of an artifact (perf, util/util.c: copyfile_mode_ns()). */
static bool is_perf_temp(const char *name)
{
	char kind[16], digits[7];
	int end = 0;

	return sscanf(name, ".%15[a-z].%6[A-Za-z0-9]%n", kind, digits, &end) == 2 && strlen(digits) == 6 && name[end] == '\0' &&
	       bid_kind_parse_store_name(kind) != BID_KIND_NONE;
}

/* Is @path a directory at the top of the store that is no part of an original path? */
static bool is_passed_by(const char *path)
{
	return bid_layout_is_beside(path) || strcmp(path, "[kernel.kcore]") == 0 || strcmp(path, "jit") == 0;
}

/* List the kinds of artifacts in the open directory @dir, and whether it has other entries. */
static int list_kinds(int dir, unsigned *ret_kinds, bool *ret_more)
{
	struct bid_dents dents;
	struct bid_dent *entry;

	*ret_kinds = 0;
	*ret_more = false;
	bid_dents_init(&dents, dir);
	while ((entry = bid_dents_next(&dents))) {
		enum bid_kind kind = bid_kind_parse_store_name(entry->name);
		struct stat st;

		if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
			continue;
		if (kind != BID_KIND_NONE &&
		    (entry->type == DT_REG || (entry->type == DT_UNKNOWN &&
					       fstatat(dir, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))))
			*ret_kinds |= 1U << kind;
		else
			*ret_more = true;
	}
	return -errno;
}

/* Report an unreadable @path to the visitor. Without descriptors or memory no directory can. */
static int report_unread(void *user, const char *path, int error)
{
	const struct bid_visitor *visitor = user;

	path += *path == '/';
	if (is_passed_by(path))
		return 0;
	if (error == -ENAMETOOLONG)
		return visitor->foreign ? visitor->foreign(visitor->user, path) : 0;
	if (!visitor->unread || !*path || error == -EMFILE || error == -ENFILE || error == -ENOMEM)
		return error;
	return visitor->unread(visitor->user, path, error);
}

/*
 * Visit a directory. It is an entry if its name is an id and it contains artifacts or nothing. With other contents it is also a
 * component of paths.
 */
static int visit_dir(void *user, const char *path, int fd, uint64_t *note, bool *ret_enter)
{
	const struct bid_visitor *visitor = user;
	struct bid_objdir entry = { .path = path + 1, .fd = fd };
	bool named = bid_id_parse_str(strrchr(path, '/') + 1, &entry.id) == 0, more = true;
	int r = 0;

	if (is_passed_by(entry.path))
		return 0;
	if (*note / DEPTH >= DEPTH_MAX)
		return report_unread(user, path, -ENAMETOOLONG);
	if (named) {
		r = list_kinds(fd, &entry.kinds, &more);
		if (r < 0)
			return report_unread(user, path, r);
		named = entry.kinds != 0 || (!more && entry.id.len >= BARE_ID_MIN);
		if ((!named || more) && lseek(fd, 0, SEEK_SET) < 0)
			return -errno;
	}
	if (named)
		r = visitor->entry(visitor->user, &entry);
	*ret_enter = !named || more;
	*note = (*note & ~(uint64_t)INSIDE) + DEPTH + (named ? INSIDE : 0);
	return r;
}

static int visit_file(void *user, const struct bid_dirwalk_file *file)
{
	const struct bid_visitor *visitor = user;
	bool inside = file->note & INSIDE;
	char path[PATH_MAX];

	if (file->type == DT_REG && inside && bid_kind_parse_store_name(file->name) != BID_KIND_NONE)
		return 0;
	if (snprintf(path, sizeof(path), "%s/%s", file->dir_path, file->name) >= (int)sizeof(path))
		return 0;
	if (file->type == DT_REG && inside && is_perf_temp(file->name))
		return visitor->temp ? visitor->temp(visitor->user, path + 1) : 0;
	return visitor->foreign ? visitor->foreign(visitor->user, path + 1) : 0;
}

static const struct bid_dirwalk_ops ops = { .enter = visit_dir, .file = visit_file, .error = report_unread };

int bid_objdirs_walk(struct bid_store *store, struct bid_dirwalk **ret_walk)
{
	int fd = -1;
	int r = bid_beneath_open(store->root, "", O_RDONLY | O_DIRECTORY, &fd);

	return r < 0 ? r : bid_dirwalk_new(fd, "", 0, &ops, ret_walk);
}

int bid_objdirs_each(struct bid_store *store, const struct bid_visitor *visitor)
{
	return bid_dirwalk_each(store->root, "", &ops, (void *)visitor);
}
