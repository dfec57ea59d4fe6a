// SPDX-License-Identifier: LGPL-2.1-or-later
/* Stat data of the artifacts of many ids, for listings. */
#include "api/build_stat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "disk/beneath.h"
#include "disk/foreign_layout.h"
#include "disk/id_dirs.h"
#include "disk/layout.h"
#include "disk/lookup.h"
#include "disk/store.h"

enum { NO_BYTE = 256 };

/*
 * A store or a lower one, and its directories that are needed for more than one id: -1 if there is none, or in a mount none is
 * needed; owned.
 */
struct one {
	struct bid_store *store; /* borrowed */
	bool is_mount;
	int fanout; /* ".build-id/xx" */
	int tables; /* derived symbol tables of the ids with the same first byte */
	int known[BID_ID_DIRS_KNOWN_MAX]; /* directories of bid_id_dirs_known() */
};

struct bid_build_stats {
	unsigned first; /* first byte of the ids with open directories, or NO_BYTE */
	size_t n;
	struct one ones[];
};

static int open_dir(struct bid_store *store, const char *path)
{
	int fd = -1;

	return bid_beneath_open(store->root, path, O_PATH | O_DIRECTORY, &fd) == 0 ? fd : -1;
}

int bid_build_stats_new(struct bid_store *store, struct bid_build_stats **ret_stats)
{
	struct bid_build_stats *stats;
	size_t n = 0;

	for (struct bid_store *one = store; one; one = one->lower)
		n++;
	stats = calloc(1, sizeof(*stats) + n * sizeof(stats->ones[0]));
	if (!stats)
		return -ENOMEM;
	stats->first = NO_BYTE;
	stats->n = n;
	for (struct one *one = stats->ones; store; store = store->lower, one++) {
		/* in a mount each object directory shows all artifacts of a build, and a lookup costs a message */
		bool is_mount = bid_is_mount(bid_store_path(store));

		*one = (struct one){ .store = store, .is_mount = is_mount, .fanout = -1, .tables = -1 };
		for (unsigned i = 0; i < BID_ID_DIRS_KNOWN_MAX; i++)
			one->known[i] = is_mount ? -1 : open_dir(store, bid_id_dirs_known(i));
	}
	*ret_stats = stats;
	return 0;
}

void bid_build_stats_free(struct bid_build_stats *stats)
{
	if (!stats)
		return;
	for (size_t i = 0; i < stats->n; i++) {
		bid_close(stats->ones[i].fanout);
		bid_close(stats->ones[i].tables);
		for (unsigned j = 0; j < BID_ID_DIRS_KNOWN_MAX; j++)
			bid_close(stats->ones[i].known[j]);
	}
	free(stats);
}

static void open_fanouts(struct bid_build_stats *stats, unsigned first)
{
	char path[sizeof(BID_LAYOUT_LINKS) + 4], tables[sizeof(BID_LAYOUT_TABLES) + 4];

	snprintf(path, sizeof(path), BID_LAYOUT_LINKS "/%02x", first & 0xff);
	snprintf(tables, sizeof(tables), BID_LAYOUT_TABLES "/%02x", first & 0xff);
	for (size_t i = 0; i < stats->n; i++) {
		bid_close(stats->ones[i].fanout);
		stats->ones[i].fanout = open_dir(stats->ones[i].store, path);
		bid_close(stats->ones[i].tables);
		stats->ones[i].tables = open_dir(stats->ones[i].store, tables);
	}
	stats->first = first;
}

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
		kinds |= 1U << bid_kind_parse_store_name(entry->d_name);
	return kinds;
}

/* Stat the artifacts in the directory @path below @dir of @one. In a mount, a lookup of an unlisted name may fetch the file. */
static void look_at(const struct one *one, int dir, const char *path, struct bid_build_stat *build_stat,
		    struct timespec *ret_changed)
{
	bid_auto_fd int fd = -1;
	struct stat objdir, st;
	unsigned names = ~0U;
	ino_t elf = 0;

	if (bid_beneath_open(dir, path, O_PATH | O_DIRECTORY, &fd) < 0 || fstat(fd, &objdir) < 0)
		return;
	*ret_changed = objdir.st_mtim;
	if (one->is_mount)
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
}

/* Follow perf's link for @disk_id. */
static void look_along_link(const struct one *one, const char *rest, struct bid_build_stat *build_stat)
{
	struct timespec changed = { 0 };
	char text[PATH_MAX];
	const char *target;

	target = bid_beneath_readlink(one->fanout, rest, text) == 0 ? bid_layout_target(text) : NULL;
	if (!target)
		return;
	look_at(one, one->store->root, target, build_stat, &changed);
	if (build_stat->where[0] || !bid_store_has_paths(one->store))
		return;
	memcpy(build_stat->where, target, strlen(target) + 1);
	build_stat->changed = changed;
}

/* Stat the artifacts in foreign layouts. */
static void look_at_foreign_files(struct bid_store *store, const struct bid_id *disk_id, struct bid_build_stat *build_stat)
{
	unsigned kinds = (unsigned)bid_foreign_kinds(store, disk_id) & ~build_stat->kinds;

	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		struct bid_artifact artifact = { .id = *disk_id, .kind = (enum bid_kind)kind };
		struct bid_file file = BID_FILE_NONE;

		if (!(kinds & 1U << kind))
			continue;
		build_stat->kinds |= 1U << kind;
		if (bid_lookup_file(store, &artifact, &file) == 0)
			build_stat->size += (uint64_t)file.st.st_size;
		bid_file_release(&file);
	}
}

static void look_for(const struct one *one, const struct bid_id *disk_id, struct bid_build_stat *build_stat)
{
	char hex[BID_ID_HEX_MAX];
	struct stat st;

	bid_id_format(disk_id, hex);
	if (one->fanout >= 0)
		look_along_link(one, hex + 2, build_stat);
	for (unsigned i = 0; i < BID_ID_DIRS_KNOWN_MAX; i++) {
		char known[BID_LAYOUT_MAX];
		struct timespec changed;

		if (one->known[i] >= 0 && strcmp(bid_layout_under(bid_id_dirs_known(i), disk_id, known), build_stat->where) != 0)
			look_at(one, one->known[i], hex, build_stat, &changed);
	}
	look_at_foreign_files(one->store, disk_id, build_stat);
	if (one->tables >= 0 && build_stat->kinds & (1U << BID_KIND_ELF | 1U << BID_KIND_DEBUGINFO) &&
	    fstatat(one->tables, hex + 2, &st, AT_SYMLINK_NOFOLLOW) == 0)
		note_file(build_stat, BID_KIND_KALLSYMS, &st);
}

void bid_build_stat_of(struct bid_build_stats *stats, const struct bid_id *id, struct bid_build_stat *ret_stat)
{
	ret_stat->kinds = 0;
	ret_stat->size = 0;
	ret_stat->changed = (struct timespec){ 0 };
	ret_stat->where[0] = '\0';
	if (stats->first != id->bytes[0])
		open_fanouts(stats, id->bytes[0]);
	for (size_t i = 0; i < stats->n; i++) {
		struct bid_alias_iter alias = { 0 };
		struct bid_id disk_id;

		while (bid_alias_next(&alias, id, &disk_id))
			look_for(&stats->ones[i], &disk_id, ret_stat);
	}
}
