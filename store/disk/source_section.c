// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/source_section.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/source_section.h"
#include "base/cleanup.h"
#include "disk/beneath.h"
#include "disk/dirwalk.h"
#include "disk/layout.h"
#include "disk/record.h"
#include "disk/store.h"

const char *bid_source_section_path(const struct bid_artifact *artifact, char buf[static PATH_MAX])
{
	struct bid_id disk_id = bid_layout_disk_id(&artifact->id);
	bool source = artifact->kind == BID_KIND_SOURCE;
	char dir[BID_LAYOUT_MAX];

	bid_layout_fanout_path(source ? BID_LAYOUT_SOURCES : BID_LAYOUT_SECTIONS, &disk_id, "", dir);
	/* BID_SUBPATH_MAX leaves room */
	snprintf(buf, PATH_MAX, "%s%s%s", dir, source || !artifact->subpath ? "" : "/", bid_subpath_text(artifact->subpath));
	return buf;
}

int bid_source_section_open(struct bid_store *store, const struct bid_artifact *artifact, struct bid_file *ret_file)
{
	struct bid_file file = { .kind = artifact->kind };
	char path[PATH_MAX];
	int r = bid_store_open_file(store, bid_source_section_path(artifact, path), false, &file);

	if (r < 0)
		return r;
	*ret_file = file;
	return 0;
}

bool bid_source_sections_any(struct bid_store *store, const struct bid_id *id)
{
	char path[PATH_MAX];
	struct stat st;

	for (int kind = BID_KIND_SOURCE; kind < BID_KIND_END; kind++) {
		struct bid_artifact all = { .id = *id, .kind = (enum bid_kind)kind };

		if (bid_beneath_stat(store->root, bid_source_section_path(&all, path), &st) == 0)
			return true;
	}
	return false;
}

int bid_source_section_remove(struct bid_store *store, const struct bid_artifact *artifact)
{
	char path[PATH_MAX];
	int r;

	r = bid_beneath_unlink(store->root, bid_source_section_path(artifact, path));
	if (r == 0)
		bid_beneath_prune_above(store->root, path);
	return r;
}

/* an iteration over the sources or sections of one id and kind */
struct source_section_walk {
	struct bid_artifact all;
	bid_source_section_fn fn;
	void *user;
};

/* @depth counts the directories on the way. A subpath has no more than BID_SUBPATH_DEPTH components. */
static int enter_directory(void *user, const char *path, int fd, uint64_t *depth, bool *ret_enter)
{
	const struct source_section_walk *walk = user;

	*ret_enter = walk->all.kind == BID_KIND_SOURCE && ++*depth < BID_SUBPATH_DEPTH;
	return 0;
}

static int visit_file(void *user, const struct bid_dirwalk_file *file)
{
	const struct source_section_walk *walk = user;
	struct bid_artifact artifact = walk->all;
	struct bid_subpath *subpath;
	char path[PATH_MAX];
	int r;

	if (file->type != DT_REG || snprintf(path, sizeof(path), "%s/%s", file->dir_path, file->name) >= (int)sizeof(path))
		return 0;
	r = artifact.kind == BID_KIND_SOURCE ? bid_subpath_source(path, &subpath) : bid_subpath_section(file->name, &subpath);
	if (r < 0)
		return 0;
	artifact.subpath = subpath;
	r = walk->fn(walk->user, &artifact);
	bid_subpath_unref(subpath);
	return r;
}

static int report_unread(void *user, const char *path, int error)
{
	return error == -ENAMETOOLONG ? 0 : error;
}

int bid_store_each_source_section(struct bid_store *store, const struct bid_id *id, enum bid_kind kind, bid_source_section_fn fn,
				  void *user)
{
	static const struct bid_dirwalk_ops ops = { .enter = enter_directory, .file = visit_file, .error = report_unread };
	struct source_section_walk walk = { .all = { .id = *id, .kind = kind }, .fn = fn, .user = user };
	char path[PATH_MAX];

	if (!bid_kind_has_subpath(kind) || id->len == 0)
		return -EINVAL;
	return bid_dirwalk_each(store->root, bid_source_section_path(&walk.all, path), &ops, &walk);
}

static int remove_one(void *user, const struct bid_artifact *artifact)
{
	struct bid_store *store = user;

	bid_record_remove(store, artifact);
	bid_source_section_remove(store, artifact);
	return 0;
}

void bid_source_sections_remove(struct bid_store *store, const struct bid_id *id, enum bid_kind kind)
{
	bid_store_each_source_section(store, id, kind, remove_one, store);
}

enum bid_entry bid_store_source_entry(struct bid_store *store, const struct bid_id *id, const char *path)
{
	struct bid_artifact all = { .id = *id, .kind = BID_KIND_SOURCE };
	char dir[PATH_MAX], full[2 * PATH_MAX];
	struct stat st;

	snprintf(full, sizeof(full), "%s%s", bid_source_section_path(&all, dir), path);
	if (bid_beneath_stat(store->root, full, &st) < 0)
		return BID_ENTRY_NONE;
	return S_ISDIR(st.st_mode) ? BID_ENTRY_DIR : S_ISREG(st.st_mode) ? BID_ENTRY_FILE : BID_ENTRY_NONE;
}

int bid_store_each_source_in(struct bid_store *store, const struct bid_id *id, const char *path, bid_store_entry_fn fn, void *user)
{
	struct bid_artifact all = { .id = *id, .kind = BID_KIND_SOURCE };
	char below[PATH_MAX], full[2 * PATH_MAX];
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r;

	snprintf(full, sizeof(full), "%s%s", bid_source_section_path(&all, below), path);
	r = bid_beneath_opendir(store->root, full, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		struct stat st;

		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
			r = fn(user, entry->d_name, S_ISDIR(st.st_mode) ? BID_ENTRY_DIR : BID_ENTRY_FILE);
	}
	return r != 0 ? r : -errno;
}
