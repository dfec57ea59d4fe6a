// SPDX-License-Identifier: LGPL-2.1-or-later
/* Eviction: choose the artifacts, their order, and what perf's links of their builds lead to then. */
#include "disk/evict.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/evict.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "disk/beneath.h"
#include "disk/derived.h"
#include "disk/eviction_log.h"
#include "disk/id_dirs.h"
#include "disk/idset.h"
#include "disk/layout.h"
#include "disk/lock_file.h"
#include "disk/lookup.h"
#include "disk/objdir.h"
#include "disk/objdir_walk.h"
#include "disk/perf_link.h"
#include "disk/record.h"
#include "disk/source_section.h"
#include "disk/space.h"
#include "disk/store.h"

enum { HOUR_S = 3600 };

/* an artifact to evict */
struct candidate {
	struct bid_artifact artifact; /* kept; with the on-disk id */
	struct timespec last_use;
	uint64_t size;
	bool made; /* derived from a file of the store */
	bool kept; /* has no record: see derived.h */
};

struct eviction {
	struct bid_store *store;
	const struct bid_evict_config *config;
	const char *why; /* reason of the evictions */
	struct candidate *candidates; /* owned */
	size_t n, room;
	struct bid_evict_stats stats;
};

/* the current file of a candidate */
struct found {
	char objdir[PATH_MAX]; /* "[debuginfod]/ID"; the file itself for a source, a section, and a file without a record */
	char path[BID_LAYOUT_FILE_MAX]; /* path of the file */
	struct stat st;
};

/* Does @record say BID_FETCHED or BID_SLICED, and a size? Sets *@ret_made for BID_SLICED. */
static bool was_got(const json_t *record, bool *ret_made, off_t *ret_size)
{
	const char *how = bid_json_string(record, "how");

	*ret_made = strcmp(how, BID_SLICED) == 0;
	*ret_size = (off_t)bid_json_number(record, "size");
	return (*ret_made || strcmp(how, BID_FETCHED) == 0) && json_is_integer(json_object_get(record, "size"));
}

/*
 * Find the artifact of such a record if it still has the recorded size and no other name. A user gave it any other name: an ELF
 * file below an original path has one.
 */
static bool locate_artifact(struct bid_store *store, const struct bid_artifact *artifact, off_t size, struct found *ret_found)
{
	char unnamed[BID_LAYOUT_MAX];
	struct bid_id_dirs dirs = { 0 };

	if (artifact->subpath) {
		bid_source_section_path(artifact, ret_found->objdir);
		snprintf(ret_found->path, sizeof(ret_found->path), "%s", ret_found->objdir);
		return bid_beneath_stat(store->root, ret_found->objdir, &ret_found->st) == 0 && S_ISREG(ret_found->st.st_mode) &&
		       ret_found->st.st_size == size;
	}
	bid_layout_under(BID_STORE_UNNAMED, &artifact->id, unnamed);
	while (bid_id_dirs_next(&dirs, store, &artifact->id, artifact->kind)) {
		if (artifact->kind != BID_KIND_DEBUGINFO && strcmp(dirs.path, unnamed) != 0)
			continue;
		bid_layout_file(dirs.path, artifact->kind, ret_found->path);
		if (bid_beneath_stat(store->root, ret_found->path, &ret_found->st) < 0 || !S_ISREG(ret_found->st.st_mode))
			continue;
		if (ret_found->st.st_nlink != 1 || ret_found->st.st_size != size)
			return false;
		memcpy(ret_found->objdir, dirs.path, strlen(dirs.path) + 1);
		return true;
	}
	return false;
}

static uint64_t on_disk(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512;
}

/* Add @candidate, and keep its artifact. */
static int add_candidate(struct eviction *eviction, const struct candidate *candidate)
{
	struct bid_evict_stats *stats = &eviction->stats;

	if (bid_array_grow(eviction->candidates, eviction->n, eviction->room) < 0)
		return -ENOMEM;
	bid_subpath_ref(candidate->artifact.subpath);
	eviction->candidates[eviction->n++] = *candidate;
	stats->artifacts++;
	stats->size += candidate->size;
	stats->made += candidate->made;
	stats->made_size += candidate->made ? candidate->size : 0;
	return 0;
}

/* Remove the remains of a download or an eviction that was killed between the record and the file. */
static void remove_remains(struct bid_store *store, const struct bid_artifact *artifact)
{
	bid_auto_fd int lock = bid_store_lock(store, true);
	char unnamed[BID_LAYOUT_MAX], target[PATH_MAX];
	struct stat st;

	if (bid_lookup_stat(store, artifact, &st) == 0)
		return;
	if (!artifact->subpath) {
		bid_beneath_prune(store->root, bid_layout_under(BID_STORE_UNNAMED, &artifact->id, unnamed));
		if (bid_perf_link_look(store, &artifact->id, target) == BID_PERF_LINK_DANGLING)
			bid_perf_link_remove(store, &artifact->id, target);
	}
	bid_record_remove(store, artifact);
}

/* bid_record_fn */
static int collect_candidate(void *user, const struct bid_artifact *artifact, const json_t *record, const struct stat *st)
{
	struct eviction *eviction = user;
	struct candidate candidate = { .artifact = *artifact, .last_use = st->st_mtim };
	struct found found;
	struct stat other;
	off_t size;

	if (!was_got(record, &candidate.made, &size))
		return 0;
	if (!locate_artifact(eviction->store, artifact, size, &found)) {
		if (!eviction->config->dry_run && bid_lookup_stat(eviction->store, artifact, &other) < 0)
			remove_remains(eviction->store, artifact);
		return 0;
	}
	candidate.size = on_disk(&found.st);
	return add_candidate(eviction, &candidate);
}

static int collect_made(void *user, const struct bid_artifact *artifact, const struct stat *st)
{
	return add_candidate(
		user, &(struct candidate){
			      .artifact = *artifact, .last_use = st->st_atim, .size = on_disk(st), .made = true, .kept = true });
}

static int by_last_use(const void *a, const void *b)
{
	const struct candidate *one = a, *other = b;

	return bid_compare_times(&one->last_use, &other->last_use);
}

/* How many bytes are to go. */
static uint64_t compute_excess(const struct bid_limits *limits, uint64_t used, uint64_t free_now, uint64_t at_least, bool slack)
{
	uint64_t wanted = limits->cache_size, needed = limits->min_free, size = at_least;

	if (wanted > 0 && used > wanted) {
		wanted -= slack ? wanted / 20 : 0;
		size = used - wanted > size ? used - wanted : size;
	}
	if (free_now < needed) {
		needed += slack ? needed / 20 : 0;
		size = needed - free_now > size ? needed - free_now : size;
	}
	return size;
}

/* Is the file, open at @fd or at @path if @fd is -1, open or mapped elsewhere? */
static bool is_open_beside(struct bid_store *store, const char *path, int fd)
{
	bid_auto_fd int own = fd;
	int r = 0;

	/* another evicting process may hold a lease just now: do not wait for it */
	if (own < 0)
		r = bid_beneath_open(store->root, path, O_RDONLY | O_NONBLOCK, &own);
	return r == 0 ? bid_lease_refused(own, F_WRLCK) : r == -EAGAIN;
}

/* Is the file open or mapped elsewhere? Drops the cached descriptor of this process. */
static bool is_open(struct bid_store *store, const struct found *found)
{
	return is_open_beside(store, found->path, -1) &&
	       is_open_beside(store, found->path, bid_space_drop_fd(store->space, &found->st));
}

/* Find the artifact of a record again. */
static bool locate_recorded(struct bid_store *store, const struct bid_artifact *artifact, struct stat *ret_record,
			    struct found *ret_found)
{
	json_t *record;
	bool made, got;
	off_t size;

	if (bid_record_stat(store, artifact, ret_record) < 0 || bid_record_read(store, artifact, &record) < 0)
		return false;
	got = was_got(record, &made, &size);
	json_decref(record);
	return got && locate_artifact(store, artifact, size, ret_found);
}

/* Find the file of the candidate. Returns false if it was used or changed since it was chosen. */
static bool is_unused(struct bid_store *store, const struct candidate *candidate, struct found *ret_found)
{
	struct stat record;

	if (!candidate->kept)
		return locate_recorded(store, &candidate->artifact, &record, ret_found) &&
		       bid_compare_times(&record.st_mtim, &candidate->last_use) == 0;
	bid_derived_path(&candidate->artifact, ret_found->objdir);
	memcpy(ret_found->path, ret_found->objdir, strlen(ret_found->objdir) + 1);
	return bid_beneath_stat(store->root, ret_found->path, &ret_found->st) == 0 && S_ISREG(ret_found->st.st_mode) &&
	       bid_compare_times(&ret_found->st.st_atim, &candidate->last_use) == 0;
}

/*
 * Remove one candidate, unless it was used or changed since it was chosen. Returns 1 if its directory went with it, and perf's link
 * to it, 0 if not, -EAGAIN, or -EBUSY for an open file.
 */
static int remove_candidate(const struct eviction *eviction, const struct candidate *candidate, struct found *ret_found)
{
	const struct bid_artifact *artifact = &candidate->artifact;
	struct bid_store *store = eviction->store;
	bid_auto_fd int lock = -1;
	bool emptied;
	int r;

	if (!is_unused(store, candidate, ret_found))
		return -EAGAIN;
	if (is_open(store, ret_found))
		return -EBUSY;
	if (eviction->config->dry_run)
		return 0;
	lock = bid_store_lock(store, true);
	/* a user who adds the file meanwhile owns it */
	if (!is_unused(store, candidate, ret_found))
		return -EAGAIN;
	if (candidate->kept)
		r = bid_beneath_unlink(store->root, ret_found->path);
	else if (artifact->subpath)
		r = bid_source_section_remove(store, artifact);
	else
		r = bid_objdir_remove(store, ret_found->objdir, 1U << artifact->kind);
	if (r < 0)
		return r;
	bid_eviction_log_add(store, artifact, candidate->size, eviction->why);
	if (candidate->kept)
		return 0;
	emptied = r == 0 && !artifact->subpath;
	if (emptied)
		bid_objdir_remove_link(store, &artifact->id, ret_found->objdir);
	/* last: if this process is killed before, the next eviction finds the remains by the record */
	bid_record_remove(store, artifact);
	return emptied;
}

/* Note an open file as used. */
static void note_open(struct eviction *eviction, const struct candidate *candidate)
{
	time_t before = time(NULL) - HOUR_S;

	eviction->stats.in_use++;
	eviction->stats.in_use_size += candidate->size;
	if (eviction->config->dry_run)
		return;
	if (candidate->kept)
		bid_derived_used(eviction->store, &candidate->artifact, before);
	else
		bid_record_used(eviction->store, &candidate->artifact, before);
}

struct unlinked {
	struct bid_store *store;
	const struct bid_idset *ids;
};

/* Point perf's link of a build to @entry, if no link is there. */
static int link_copy(void *user, const struct bid_objdir *entry)
{
	const struct unlinked *unlinked = user;
	bid_auto_fd int lock = -1;
	char target[PATH_MAX];

	if (entry->kinds == 0 || !bid_idset_find(unlinked->ids, &entry->id))
		return 0;
	lock = bid_store_lock(unlinked->store, true);
	if (bid_perf_link_look(unlinked->store, &entry->id, target) == BID_PERF_LINK_NONE)
		bid_perf_link_point(unlinked->store, &entry->id, entry->path);
	return 0;
}

/* Go on after a directory that cannot be read. */
static int skip_unread(void *user, const char *path, int error)
{
	return 0;
}

/* Let perf find its own copies of the builds @ids: it makes no second link, so theirs led to the downloads. */
static void link_copies(struct bid_store *store, const struct bid_id *ids, size_t n)
{
	struct bid_idset set = { 0 };
	struct unlinked unlinked = { .store = store, .ids = &set };

	if (n > 0 && bid_idset_init(&set, ids, n) == 0)
		bid_objdirs_each(store, &(struct bid_visitor){ .entry = link_copy, .unread = skip_unread, .user = &unlinked });
	bid_idset_release(&set);
}

/* Evict @size bytes, if there are as many. */
static int evict_candidates(struct eviction *eviction, uint64_t size)
{
	bid_auto_free struct bid_id *emptied = calloc(eviction->n + 1, sizeof(*emptied));
	const struct bid_evict_config *config = eviction->config;
	struct bid_evict_stats *stats = &eviction->stats;
	size_t n = 0;

	if (!emptied)
		return -ENOMEM;

	for (size_t i = 0; i < eviction->n && stats->evicted_size < size; i++) {
		const struct candidate *candidate = &eviction->candidates[i];
		struct found found;
		int r = remove_candidate(eviction, candidate, &found);

		if (r == -EBUSY)
			note_open(eviction, candidate);
		if (r < 0)
			continue;
		stats->evicted++;
		stats->evicted_size += candidate->size;
		if (r > 0)
			emptied[n++] = candidate->artifact.id;
		if (config->evicted)
			config->evicted(config->user, &(struct bid_eviction){ .artifact = candidate->artifact,
									      .path = found.path,
									      .made = candidate->made,
									      .size = candidate->size,
									      .last_use = candidate->last_use.tv_sec });
	}
	link_copies(eviction->store, emptied, n);
	return 0;
}

int bid_evict(struct bid_store *store, const struct bid_evict_config *config, uint64_t at_least, bool slack,
	      struct bid_evict_stats *ret_stats)
{
	struct eviction eviction = { .store = store, .config = config };
	struct bid_evict_stats *stats = &eviction.stats;
	struct statvfs space;
	int r;

	if (!config->dry_run && !bid_store_writable(store))
		return -EROFS;
	r = bid_store_statfs(store, &space);
	if (r == 0)
		r = bid_record_each(store, collect_candidate, &eviction);
	if (r == 0)
		r = bid_derived_each(store, collect_made, &eviction);
	if (r == 0) {
		stats->free = (uint64_t)space.f_bavail * space.f_frsize;
		eviction.why = at_least > 0 ? "no space" : stats->free < config->limits.min_free ? "min-free" : "cache-size";
		if (eviction.n > 0)
			qsort(eviction.candidates, eviction.n, sizeof(*eviction.candidates), by_last_use);
		r = evict_candidates(&eviction, compute_excess(&config->limits, stats->size, stats->free, at_least, slack));
	}
	for (size_t i = 0; i < eviction.n; i++)
		bid_artifact_release(&eviction.candidates[i].artifact);
	free(eviction.candidates);
	if (r == 0)
		*ret_stats = eviction.stats;
	return r;
}

int bid_store_evict(struct bid_store *store, const struct bid_evict_config *config, struct bid_evict_stats *ret_stats)
{
	return bid_evict(store, config, 0, false, ret_stats);
}
