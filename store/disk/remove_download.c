// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/remove_download.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "api/evict.h"
#include "base/cleanup.h"
#include "disk/beneath.h"
#include "disk/derived.h"
#include "disk/digest.h"
#include "disk/id_dirs.h"
#include "disk/layout.h"
#include "disk/lock_file.h"
#include "disk/other_paths.h"
#include "disk/record.h"
#include "disk/source_section.h"
#include "disk/store.h"

/* a download to remove under all its names */
struct download {
	struct bid_store *store;
	const struct bid_artifact *artifact;
	const json_t *record; /* NULL for a damaged one */
	bool kept; /* a file of the user's has one of the names */
};

/* Has the file at @fd the recorded bytes? */
static bool is_recorded(const json_t *record, int fd)
{
	const char *recorded = bid_json_string(record, "digest");
	char digest[BID_DIGEST_MAX];
	struct stat st;

	return *recorded && fstat(fd, &st) == 0 && st.st_size == (off_t)bid_json_number(record, "size") &&
	       bid_digest_file(fd, digest) == 0 && strcmp(digest, recorded) == 0;
}

/* Remove the artifact in @objdir if it is the download: [debuginfod] has downloads alone, and elsewhere its bytes tell. */
static int remove_copy(void *user, const char *objdir)
{
	struct download *download = user;
	int root = download->store->root, r;
	char path[BID_LAYOUT_FILE_MAX];
	bid_auto_fd int fd = -1;

	r = bid_beneath_open(root, bid_layout_file(objdir, download->artifact->kind, path), O_RDONLY | O_NONBLOCK, &fd);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (!bid_is_unnamed(objdir) && (r < 0 || !is_recorded(download->record, fd)))
		download->kept = true;
	else
		bid_beneath_unlink(root, path);
	return 0;
}

bool bid_remove_download(struct bid_store *store, const struct bid_artifact *artifact)
{
	struct bid_artifact stored = { .id = bid_layout_disk_id(&artifact->id),
				       .kind = artifact->kind,
				       .subpath = artifact->subpath };
	struct download download = { .store = store, .artifact = &stored };
	struct bid_id_dirs dirs = { 0 };
	json_t *record = NULL;

	if (!bid_store_is_download(store, &stored))
		return true;
	if (stored.subpath) {
		bid_source_section_remove(store, &stored);
		bid_record_remove(store, &stored);
		return true;
	}
	bid_record_read(store, &stored, &record);
	download.record = record;
	while (bid_id_dirs_next(&dirs, store, &stored.id, stored.kind))
		remove_copy(&download, dirs.path);
	bid_other_paths_each(store, &stored.id, remove_copy, &download);
	json_decref(record);
	if (!download.kept)
		bid_record_remove(store, &stored);
	bid_derived_forget(store, &stored.id);
	bid_source_sections_remove(store, &stored.id, BID_KIND_SECTION);
	return !download.kept;
}

void bid_remove_download_before_add(struct bid_store *store, const struct bid_artifact *artifact)
{
	bid_auto_fd int lock = -1;

	if (!bid_store_is_download(store, artifact))
		return;
	lock = bid_store_lock(store, true);
	bid_remove_download(store, artifact);
	/* a file that stays is the user's from now on */
	bid_record_remove(store, artifact);
}
