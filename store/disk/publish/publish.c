// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/kallsyms.h"
#include "base/log.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/lookup.h"
#include "disk/perf_link.h"
#include "disk/quarantine.h"
#include "disk/record.h"
#include "disk/remove_download.h"
#include "disk/store.h"

int bid_publish_examine(int fd, const struct bid_artifact *artifact, char *reason, size_t size, struct bid_elf_info *ret_info)
{
	char carried[BID_ID_HEX_MAX];
	struct stat st;
	int r;

	reason[0] = '\0';
	if (bid_kind_has_subpath(artifact->kind)) {
		/* the file itself contains no id */
		*ret_info = (struct bid_elf_info){ .id = artifact->id };
		return 0;
	}
	r = bid_elf_examine(fd, ret_info);
	if (r == -ENOEXEC)
		snprintf(reason, size, "not an ELF file");
	else if (r == -EBADMSG)
		snprintf(reason, size, "a damaged or truncated ELF file of %lld bytes",
			 fstat(fd, &st) == 0 ? (long long)st.st_size : 0LL);
	else if (r < 0)
		return r;
	else if (ret_info->id.len == 0)
		snprintf(reason, size, "an ELF file without build-id");
	else if (!bid_id_answers(&ret_info->id, &artifact->id))
		snprintf(reason, size, "carries the build-id '%.130s'", bid_id_format(&ret_info->id, carried));
	else if (artifact->kind == BID_KIND_DEBUGINFO && !ret_info->has_dwarf && !ret_info->has_symtab)
		snprintf(reason, size, "debuginfo without debug sections or a symbol table");
	return reason[0] ? -EBADMSG : 0;
}

/* Is the file at @fd certainly not @artifact? */
static bool is_wrong(int fd, const struct bid_artifact *artifact)
{
	struct bid_id carried;
	int r;

	if (artifact->kind == BID_KIND_KALLSYMS) {
		r = bid_kallsyms_check_file(fd);
		return r == -EBADMSG || r == -EPERM;
	}
	if (!bid_kind_is_elf(artifact->kind))
		return false;
	r = bid_elf_build_id_any(fd, &carried);
	return r == -ENOEXEC || r == -ENODATA || (r == 0 && !bid_id_answers(&carried, &artifact->id));
}

/* Is the file @path stripped debuginfo that answers @artifact? */
static bool is_stripped(struct bid_store *store, const char *path, const struct bid_artifact *artifact, struct bid_file *ret_file)
{
	return artifact->kind == BID_KIND_DEBUGINFO && bid_open_checked(store, path, artifact, ret_file) == 0 && ret_file->stripped;
}

bool bid_publish_make_way(struct bid_store *store, const char *place, const struct bid_artifact *artifact)
{
	/* an object directory of ids that begin alike answers only for the on-disk id, not for a longer one */
	struct bid_artifact there = { .id = bid_layout_disk_id(&artifact->id), .kind = artifact->kind };
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	char path[BID_LAYOUT_FILE_MAX], moved[PATH_MAX];
	bid_auto_fd int fd = -1;

	bid_layout_file(place, artifact->kind, path);
	if (is_stripped(store, path, &there, &file))
		return bid_quarantine_move(store, path, file.fd, &there, moved) == 0 && bid_beneath_unlink(store->root, moved) == 0;
	/* open the file before checking it: another file that gets its name meanwhile stays there */
	if (bid_beneath_open(store->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd) < 0 || !is_wrong(fd, &there) ||
	    bid_quarantine_move(store, path, fd, &there, moved) < 0)
		return false;
	bid_warning("wrong content: bidfs quarantined '%s' as '%s'", path, moved);
	return true;
}

/* Sync the names that try_to_publish() has made: all together, because the first fsync(2) waits for the journal of all. */
static int sync_names(struct bid_store *store, const struct bid_id *id, const char *path, unsigned made, bool linked,
		      unsigned made_links)
{
	struct bid_id disk_id = bid_layout_disk_id(id);
	char link[BID_LAYOUT_MAX];
	int r = bid_beneath_sync(store->root, path, made);

	if (r < 0 || !linked)
		return r;
	bid_layout_link(&disk_id, link);
	*strrchr(link, '/') = '\0';
	return bid_beneath_sync(store->root, link, made_links);
}

void bid_publish_where(struct bid_store *store, const struct bid_id *id, char ret_path[static PATH_MAX])
{
	struct bid_id disk_id = bid_layout_disk_id(id);
	char unnamed[BID_LAYOUT_MAX];

	if (bid_perf_link_find(store, &disk_id, ret_path, PATH_MAX) < 0 || bid_layout_is_mismatched(ret_path, &disk_id))
		snprintf(ret_path, PATH_MAX, "%s", bid_layout_under(BID_STORE_UNNAMED, &disk_id, unnamed));
}

static int try_to_publish(struct bid_store *store, const struct bid_id *id, enum bid_kind kind, const char *path, bool durable,
			  const struct bid_temp *file, bool *ret_linked)
{
	unsigned made = 0, made_links = 0;
	bid_auto_fd int dir = -1;
	int r, linked;

	r = bid_beneath_mkdirs(store->root, path, &made, &dir);
	if (r == 0)
		r = bid_temp_link(file, dir, bid_kind_store_name(kind));
	if (r < 0 && r != -EEXIST)
		return r;
	linked = bid_perf_link_make(store, id, path, &made_links);
	if (linked < 0)
		return linked;
	if (ret_linked)
		*ret_linked = linked;
	if (durable && (r == 0 || linked)) {
		int synced = sync_names(store, id, path, made, linked, made_links);

		return synced < 0 ? synced : r;
	}
	return r;
}

int bid_publish(struct bid_store *store, const struct bid_id *id, enum bid_kind kind, const char *path, bool durable,
		const struct bid_temp *file, bool *ret_linked)
{
	int r = -ENOENT;

	if (ret_linked)
		*ret_linked = false;
	/* a new directory is empty, and another process may remove it together with its neighbour */
	for (int attempts = 0; attempts < 8 && (r == -ENOENT || r == -ENOTDIR); attempts++)
		r = try_to_publish(store, id, kind, path, durable, file, ret_linked);
	/* without the file, its directory says nothing */
	if (r < 0 && r != -EEXIST)
		bid_beneath_prune(store->root, path);
	return r;
}

int bid_publish_or_replace(struct bid_store *store, const struct bid_artifact *artifact, const char *path, bool durable,
			   const struct bid_temp *file)
{
	int r;

	bid_remove_download_before_add(store, artifact);
	r = bid_publish(store, &artifact->id, artifact->kind, path, durable, file, NULL);
	if (r == -EEXIST && bid_publish_make_way(store, path, artifact))
		r = bid_publish(store, &artifact->id, artifact->kind, path, durable, file, NULL);
	/* also remove a record of a download killed meanwhile */
	if (r == 0)
		bid_record_remove(store, artifact);
	return r;
}
