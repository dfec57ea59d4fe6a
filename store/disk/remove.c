// SPDX-License-Identifier: LGPL-2.1-or-later
/* Removal of builds and of names of builds. A build with a name left keeps all its files. */
#include "disk/remove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "api/remove.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/stat_data.h"
#include "disk/beneath.h"
#include "disk/derived.h"
#include "disk/idset.h"
#include "disk/layout.h"
#include "disk/lock_file.h"
#include "disk/objdir.h"
#include "disk/objdir_walk.h"
#include "disk/other_paths.h"
#include "disk/perf_link.h"
#include "disk/publish/merge.h"
#include "disk/publish/publish.h"
#include "disk/record.h"
#include "disk/source_section.h"
#include "disk/store.h"

enum { ALL_KINDS = (1U << BID_KIND_COUNT) - 1 };

void bid_remove_records(struct bid_store *store, const struct bid_id *disk_id, unsigned kinds, bool last)
{
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		if (kinds & 1U << kind)
			bid_record_remove(store, &(struct bid_artifact){ .id = *disk_id, .kind = (enum bid_kind)kind });
	if (last) {
		bid_source_sections_remove(store, disk_id, BID_KIND_SOURCE);
		bid_source_sections_remove(store, disk_id, BID_KIND_SECTION);
		bid_other_paths_forget(store, disk_id, true);
		bid_derived_forget(store, disk_id);
	}
}

/* a name of a build to remove */
struct name {
	size_t removal; /* index of its removal */
	struct bid_id disk_id;
	unsigned kinds;
	bool goes;
	char *path; /* relative to the store; owned */
};

struct build_names {
	struct name *names; /* owned */
	size_t n, room;
	const struct bid_idset *wanted;
	const struct bid_removal *removals;
};

static int add_name(struct build_names *names, const struct name *name, const char *path)
{
	if (bid_array_grow(names->names, names->n, names->room) < 0)
		return -ENOMEM;
	names->names[names->n] = *name;
	names->names[names->n].path = strdup(path);
	return names->names[names->n].path ? (int)(names->n++, 0) : -ENOMEM;
}

static void names_release(struct build_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->names[i].path);
	free(names->names);
}

/* Is "usr/bin/ls/ID" a name of the original path "/usr/bin/ls"? */
static bool is_of_path(const char *name, const char *path)
{
	const char *slash = strrchr(name, '/');
	size_t len;

	path += *path == '/';
	len = strlen(path);
	return slash && (size_t)(slash - name) == len && memcmp(name, path, len) == 0;
}

static int collect_name(void *user, const struct bid_objdir *entry)
{
	struct build_names *names = user;
	const struct bid_idset_member *member = bid_idset_find(names->wanted, &entry->id);

	for (; member; member = bid_idset_next(names->wanted, member)) {
		const struct bid_removal *removal = &names->removals[member->index];
		struct name name = { .removal = member->index, .disk_id = entry->id, .kinds = entry->kinds };
		int r;

		name.goes = !removal->path || is_of_path(entry->path, removal->path);
		r = add_name(names, &name, entry->path);
		if (r < 0)
			return r;
	}
	return 0;
}

static int by_removal(const void *a, const void *b)
{
	const struct name *one = a, *other = b;

	if (one->removal != other->removal)
		return one->removal < other->removal ? -1 : 1;
	return strcmp(one->path, other->path);
}

/* Stat the file of @kind under @name. */
static bool stat_file(struct bid_store *store, const struct name *name, int kind, struct stat *ret_st)
{
	char path[BID_LAYOUT_FILE_MAX];

	if (!(name->kinds & 1U << kind))
		return false;
	bid_layout_file(name->path, (enum bid_kind)kind, path);
	return bid_beneath_stat(store->root, path, ret_st) == 0 && S_ISREG(ret_st->st_mode);
}

/* Return the bytes of the files of names[@at], without files counted for an earlier name. */
static uint64_t size_of(struct bid_store *store, const struct name *names, size_t at)
{
	uint64_t size = 0;
	struct stat st, other;

	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		bool counted = !stat_file(store, &names[at], kind, &st);

		for (size_t i = 0; i < at && !counted; i++)
			counted = stat_file(store, &names[i], kind, &other) && bid_same_inode(&st, &other);
		size += counted ? 0 : (uint64_t)st.st_size;
	}
	return size;
}

/* The unnamed directory does not count as a remaining name: it disappears with the last real name. */
static void take_unnamed_along(struct name *names, size_t n)
{
	bool goes = false, stays = false;

	for (size_t i = 0; i < n; i++) {
		goes = goes || names[i].goes;
		stays = stays || (!names[i].goes && names[i].kinds != 0 && !bid_is_unnamed(names[i].path));
	}
	for (size_t i = 0; i < n && goes && !stays; i++)
		names[i].goes = names[i].goes || bid_is_unnamed(names[i].path);
}

/* Choose the remaining name with the most files among the @n names of a build: perf's link must lead to the ELF file. */
static const struct name *choose_heir(const struct name *names, size_t n)
{
	const struct name *best = NULL;
	int most = -1;

	for (size_t i = 0; i < n; i++) {
		int offers = 2 * !!(names[i].kinds & 1U << BID_KIND_ELF) + !bid_is_unnamed(names[i].path);

		if (names[i].goes || names[i].kinds == 0 || offers <= most)
			continue;
		best = &names[i];
		most = offers;
	}
	return best;
}

/* Move a wrong file at @to, for example one edited in place, out of the way of the file of @from. */
static void make_way(struct bid_store *store, const struct name *from, const struct name *to)
{
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		struct bid_artifact artifact = { .id = to->disk_id, .kind = (enum bid_kind)kind };
		struct stat ours, theirs;

		if (!bid_kind_is_elf(artifact.kind) || !stat_file(store, from, kind, &ours) ||
		    !stat_file(store, to, kind, &theirs) || bid_same_inode(&ours, &theirs))
			continue;
		bid_publish_make_way(store, to->path, &artifact);
	}
}

/* Give the remaining name all files of the removed names, and the link, before those disappear. */
static int pass_on(struct bid_store *store, const struct name *names, size_t n, const struct name *to)
{
	char target[PATH_MAX];
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		if (!names[i].goes || !bid_id_equal(&names[i].disk_id, &to->disk_id))
			continue;
		make_way(store, &names[i], to);
		r = bid_merge(store, names[i].path, to->path, names[i].kinds);
	}
	if (r < 0)
		return r == -ENOENT ? -EAGAIN : r; /* another process is removing the remaining name */
	switch (bid_perf_link_look(store, &to->disk_id, target)) {
	case BID_PERF_LINK_GOOD:
		for (size_t i = 0; i < n; i++)
			if (names[i].goes && strcmp(target, names[i].path) == 0)
				return bid_perf_link_point(store, &to->disk_id, to->path);
		return 0;
	case BID_PERF_LINK_NONE:
	case BID_PERF_LINK_DANGLING:
	case BID_PERF_LINK_MISMATCHED:
		return bid_perf_link_point(store, &to->disk_id, to->path);
	default:
		return 0;
	}
}

/* Does the link lead to a name outside @names, for example a build added just now? */
static bool leads_elsewhere(struct bid_store *store, const struct name *names, size_t n, const char *target)
{
	struct stat st, there;

	if (bid_beneath_stat(store->root, target, &there) < 0 || bid_objdir_kinds(store, target) == 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (bid_beneath_stat(store->root, names[i].path, &st) == 0 && bid_same_inode(&st, &there))
			return false;
	return true;
}

/* Remove the link of a build without a remaining name. */
static int remove_link(struct bid_store *store, const struct bid_id *disk_id, const struct name *names, size_t n,
		       struct bid_removal *removal)
{
	char target[PATH_MAX];
	int r;

	switch (bid_perf_link_look(store, disk_id, target)) {
	case BID_PERF_LINK_GOOD:
		r = leads_elsewhere(store, names, n, target) ? 0 : bid_perf_link_remove(store, disk_id, target);
		return r == -ENOENT ? 0 : r;
	case BID_PERF_LINK_DANGLING:
		r = bid_perf_link_remove(store, disk_id, target);
		if (r == 0)
			removal->names++; /* the last remains of a name */
		return r == -ENOENT ? 0 : r;
	default:
		return 0;
	}
}

/* Run one removal; @names are the @n names of its build. */
static void remove_one(struct bid_store *store, struct bid_removal *removal, struct name *names, size_t n)
{
	bid_auto_fd int lock = bid_store_lock(store, true);
	bool source_sections = n == 0 && !removal->path && bid_source_sections_any(store, &removal->id);
	const struct name *to;
	struct bid_alias_iter alias = { 0 };
	struct bid_id disk_id;
	bool any = false;
	int r = 0;

	take_unnamed_along(names, n);
	to = choose_heir(names, n);
	for (size_t i = 0; i < n; i++)
		any = any || names[i].goes;
	if (to && any)
		r = pass_on(store, names, n, to);
	/* without a remaining name, remove the link first, as perf does: no reader then follows it to a vanishing file */
	while (r == 0 && !to && (any || !removal->path) && bid_alias_next(&alias, &removal->id, &disk_id))
		r = remove_link(store, &disk_id, names, n, removal);
	for (size_t i = 0; i < n && !to; i++)
		removal->size += size_of(store, names, i);
	for (size_t i = 0; i < n && r >= 0; i++) {
		if (!names[i].goes) {
			removal->left++;
			continue;
		}
		r = bid_objdir_remove(store, names[i].path, ALL_KINDS);
		if (r >= 0)
			removal->names++;
		if (r >= 0 && !to)
			bid_remove_records(store, &names[i].disk_id, ALL_KINDS, true);
	}
	/* sources and sections of a build without other artifacts */
	if (source_sections && r == 0) {
		bid_source_sections_remove(store, &removal->id, BID_KIND_SOURCE);
		bid_source_sections_remove(store, &removal->id, BID_KIND_SECTION);
		r = bid_source_sections_any(store, &removal->id) ? -EACCES : 0;
	}
	removal->error = r < 0 ? r : removal->names == 0 && !source_sections ? -ENOENT : 0;
}

static int remove_all(struct bid_store *store, struct bid_removal *removals, size_t n, struct build_names *names)
{
	struct bid_visitor visitor = { .entry = collect_name, .user = names };
	size_t at = 0;
	int r = bid_objdirs_each(store, &visitor);

	if (r < 0)
		return r;
	if (names->n > 0)
		qsort(names->names, names->n, sizeof(*names->names), by_removal);
	for (size_t i = 0; i < n; i++) {
		size_t end = at;

		while (end < names->n && names->names[end].removal == i)
			end++;
		remove_one(store, &removals[i], names->names ? names->names + at : NULL, end - at);
		at = end;
	}
	return 0;
}

int bid_store_remove(struct bid_store *store, struct bid_removal *removals, size_t n)
{
	bid_auto_free struct bid_id *ids = calloc(n + 1, sizeof(*ids));
	struct bid_idset wanted = { 0 };
	struct build_names names = { .wanted = &wanted, .removals = removals };
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		ids[i] = removals[i].id;
		removals[i].error = -ENOENT;
		removals[i].names = removals[i].left = 0;
		removals[i].size = 0;
	}
	r = bid_idset_init(&wanted, ids, n);
	if (r == 0)
		r = remove_all(store, removals, n, &names);
	names_release(&names);
	bid_idset_release(&wanted);
	return r;
}
