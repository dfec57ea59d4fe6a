// SPDX-License-Identifier: LGPL-2.1-or-later
/* Common parts of the checks: their scope, their threads' shares and results, and the report of findings. */
#include "disk/verify/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/store.h"

enum { REPORT_MS = 50 }; /* between two progress reports of a thread */

bool bid_verify_wants(const struct bid_verify *verify, const struct bid_id *disk_id)
{
	return !verify->config->ids || bid_idset_find(verify->wanted, disk_id);
}

int bid_verify_found(struct bid_verify *verify, const struct bid_finding *finding)
{
	const struct bid_verify_config *config = verify->config;
	int r = 0;

	verify->stats.found[finding->kind]++;
	if (!finding->repaired)
		verify->stats.left++;
	if (!config->found)
		return 0;
	pthread_mutex_lock(&verify->shared->lock);
	r = atomic_load(&verify->shared->ended);
	if (r == 0)
		r = bid_verify_end(verify, config->found(config->user, finding));
	pthread_mutex_unlock(&verify->shared->lock);
	return r;
}

void bid_verify_count(struct bid_verify *verify)
{
	struct bid_verify_stats *all = &verify->shared->reported, *now = &verify->stats, *before = &verify->reported;

	all->names += now->names - before->names;
	all->objects += now->objects - before->objects;
	all->bytes += now->bytes - before->bytes;
	all->digests += now->digests - before->digests;
	all->links += now->links - before->links;
	all->records += now->records - before->records;
	all->foreign += now->foreign - before->foreign;
	all->left += now->left - before->left;
	for (int kind = 0; kind < BID_FINDING_COUNT; kind++)
		all->found[kind] += now->found[kind] - before->found[kind];
	*before = *now;
}

int bid_verify_progress(struct bid_verify *verify)
{
	const struct bid_verify_config *config = verify->config;
	int r = atomic_load_explicit(&verify->shared->ended, memory_order_relaxed);
	uint64_t now;

	if (r != 0 || !config->progress)
		return r;
	now = (uint64_t)bid_clock_ms();
	if (now < verify->progress_ms + REPORT_MS)
		return 0;
	verify->progress_ms = now;
	pthread_mutex_lock(&verify->shared->lock);
	bid_verify_count(verify);
	r = bid_verify_end(verify, config->progress(config->user, &verify->shared->reported));
	pthread_mutex_unlock(&verify->shared->lock);
	return r;
}

int bid_verify_fanout(struct bid_verify *verify, const struct bid_id *disk_id)
{
	atomic_int *fanout = &verify->shared->fanouts[disk_id->bytes[0]];
	char path[sizeof(BID_LAYOUT_LINKS) + 4];
	int fd = atomic_load(fanout), none = -1;

	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), BID_LAYOUT_LINKS "/%02x", disk_id->bytes[0]);
	if (bid_beneath_open(verify->store->root, path, O_PATH | O_DIRECTORY, &fd) < 0)
		return -ENOENT;
	if (atomic_compare_exchange_strong(fanout, &none, fd))
		return fd;
	bid_close(fd);
	return none;
}

bool bid_verify_remove(struct bid_verify *verify, const char *path)
{
	return bid_beneath_unlink(verify->store->root, path) == 0 || bid_beneath_rmdir(verify->store->root, path) == 0;
}

/* Report an entry among the 256 folders "xx" of the private folder that is no folder, and blocks writes there. */
static int report_no_folder(struct bid_verify *verify, const char *path)
{
	struct bid_finding finding = { .kind = BID_FINDING_RECORD, .path = path, .text = "is no folder" };

	if (verify->config->ids)
		return 0;
	finding.repaired = verify->config->repair && bid_verify_remove(verify, path);
	return bid_verify_found(verify, &finding);
}

/* Visit the entry @name of the folder @first, "xx"; @path is its path. */
static int visit_named(struct bid_verify *verify, const struct bid_verify_folder *folder, const char *path, const char *first,
		       const struct dirent *entry)
{
	char hex[2 + NAME_MAX + 1];
	struct bid_id id;

	if (folder->has_suffix)
		return folder->visit(verify, folder, path, NULL);
	snprintf(hex, sizeof(hex), "%.2s%s", first, entry->d_name);
	if (bid_id_parse_str(hex, &id) < 0) {
		verify->stats.foreign++;
		return 0;
	}
	return bid_verify_wants(verify, &id) ? folder->visit(verify, folder, path, &id) : 0;
}

static int visit_fanout(struct bid_verify *verify, const struct bid_verify_folder *folder, const char *first)
{
	char path[64 + 2 * NAME_MAX];
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r;

	snprintf(path, sizeof(path), "%s/%s", folder->base, first);
	r = bid_beneath_opendir(verify->store->root, path, &dir);
	if (r == -ENOENT)
		return strcmp(folder->base, BID_LAYOUT_LINKS) == 0 ? 0 : report_no_folder(verify, path);
	if (r == 0 && folder->is_checked && folder->is_checked(verify, first, dir))
		return 0;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/%s", folder->base, first, entry->d_name);
		r = visit_named(verify, folder, path, first, entry);
		if (r == 0)
			r = bid_verify_progress(verify);
	}
	return r != 0 ? r : -errno;
}

int bid_verify_fanouts(struct bid_verify *verify, const struct bid_verify_folder *folder)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r = bid_beneath_opendir(verify->store->root, folder->base, &dir);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		struct bid_id first;

		if (entry->d_name[0] == '.')
			continue;
		if (bid_id_parse_str(entry->d_name, &first) < 0 || first.len != 1)
			verify->stats.foreign += verify->worker == 0;
		else if (first.bytes[0] % verify->shared->workers == verify->worker)
			r = visit_fanout(verify, folder, entry->d_name);
	}
	return r != 0 ? r : -errno;
}
