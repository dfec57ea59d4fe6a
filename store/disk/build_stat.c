// SPDX-License-Identifier: LGPL-2.1-or-later
/* Stat data of the artifacts of many ids, for listings. */
#include "api/build_stat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "disk/beneath.h"
#include "disk/derived.h"
#include "disk/find.h"
#include "disk/layout.h"
#include "disk/objdir.h"
#include "disk/store.h"

static void note_file(struct bid_build_stat *build_stat, enum bid_kind kind, const struct stat *st)
{
	if (!S_ISREG(st->st_mode) || build_stat->kinds & 1U << kind)
		return;
	build_stat->kinds |= 1U << kind;
	build_stat->size += (uint64_t)st->st_size;
}

/* Return the kinds of the files that the directory @fd lists. */
static unsigned listed_in(int fd)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	unsigned kinds = 0;

	if (bid_beneath_opendir(fd, "", &dir) < 0)
		return 0;
	while ((entry = readdir(dir)))
		kinds |= 1U << bid_objdir_kind(entry->d_name);
	return kinds;
}

/*
 * Stat the artifacts in the directory @path. In a mount, a lookup of an unlisted name may fetch the file. Returns false without
 * such a directory.
 */
static bool look_at(struct bid_store *store, const char *path, struct bid_build_stat *build_stat, struct timespec *ret_changed)
{
	bid_auto_fd int fd = -1;
	struct stat objdir, st;
	unsigned names = ~0U;
	ino_t elf = 0;

	if (bid_beneath_open(store->root, path, O_PATH | O_DIRECTORY, &fd) < 0 || fstat(fd, &objdir) < 0)
		return false;
	*ret_changed = objdir.st_mtim;
	if (store->is_mount)
		names = listed_in(fd);
	/* stat each name: the kernel caches absent names, and reading the directory takes longer */
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		if (build_stat->kinds & 1U << kind || !(names & 1U << kind) ||
		    fstatat(fd, bid_kind_store_name((enum bid_kind)kind), &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (kind == BID_KIND_ELF)
			elf = st.st_ino;
		/* a mount shows an unstripped program also as its own debuginfo */
		if (kind != BID_KIND_DEBUGINFO || st.st_ino != elf)
			note_file(build_stat, (enum bid_kind)kind, &st);
	}
	return true;
}

/* Stat the artifacts in foreign layouts. */
static void look_at_foreign_files(struct bid_store *store, const struct bid_id *disk_id, struct bid_build_stat *build_stat)
{
	unsigned kinds = (unsigned)bid_one_foreign_kinds(store, disk_id) & ~build_stat->kinds;

	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		struct bid_request request = { .id = *disk_id, .kind = (enum bid_kind)kind };
		struct bid_file file = BID_FILE_NONE;

		if (!(kinds & 1U << kind))
			continue;
		build_stat->kinds |= 1U << kind;
		if (bid_find_stored(store, &request, &file) == 0)
			build_stat->size += (uint64_t)file.st.st_size;
		bid_file_release(&file);
	}
}

static void look_for(struct bid_store *store, const struct bid_id *disk_id, struct bid_build_stat *build_stat)
{
	struct bid_request table = { .id = *disk_id, .kind = BID_KIND_KALLSYMS };
	struct bid_objdir_iter objdir = { 0 };
	char path[BID_LAYOUT_MAX];
	struct stat st;

	while (bid_objdir_next(&objdir, store, disk_id, BID_KIND_NONE)) {
		bool linked = objdir.path == objdir.target;
		struct timespec changed;

		/* in a mount each object directory shows all artifacts of a build, and a lookup costs a message */
		if (!linked && (store->is_mount || strcmp(objdir.path, objdir.target) == 0))
			continue;
		if (!look_at(store, objdir.path, build_stat, &changed) || !linked || build_stat->where[0] ||
		    !bid_store_has_paths(store))
			continue;
		memcpy(build_stat->where, objdir.path, strlen(objdir.path) + 1);
		build_stat->changed = changed;
	}
	look_at_foreign_files(store, disk_id, build_stat);
	if (!store->is_mount && build_stat->kinds & (1U << BID_KIND_ELF | 1U << BID_KIND_DEBUGINFO) &&
	    bid_beneath_stat(store->root, bid_derived_path(&table, path), &st) == 0)
		note_file(build_stat, BID_KIND_KALLSYMS, &st);
}

void bid_build_stat_of(struct bid_store *store, const struct bid_id *id, struct bid_build_stat *ret_stat)
{
	ret_stat->kinds = 0;
	ret_stat->size = 0;
	ret_stat->changed = (struct timespec){ 0 };
	ret_stat->where[0] = '\0';
	for (struct bid_store *one = store; one; one = one->lower) {
		struct bid_alias_iter alias = { 0 };
		struct bid_id disk_id;

		while (bid_alias_next(&alias, id, &disk_id))
			look_for(one, &disk_id, ret_stat);
	}
	/* a link that leads nowhere */
	if (!ret_stat->where[0])
		bid_store_where(store, id, ret_stat->where, sizeof(ret_stat->where));
}
