// SPDX-License-Identifier: LGPL-2.1-or-later
/* Putting a file in the place of what the store has of its build. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bid/remove.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "disk/entries.h"
#include "disk/idset.h"
#include "disk/layout.h"
#include "disk/publish/add.h"
#include "disk/publish/join.h"
#include "disk/record.h"
#include "disk/root.h"
#include "disk/store.h"

struct replacing {
	struct bid_store *store;
	const struct bid_idset *wanted;
	enum bid_kind kind;
	int fd; /* what comes instead; -1 as long as it is only counted what there is */
	unsigned names;
};

static int replace(void *user, const struct bid_place_of *entry)
{
	struct replacing *replacing = user;
	const char *name = bid_kind_store_name(replacing->kind);
	bid_auto_fd int parent = -1;
	char path[PATH_MAX];
	char *slash;
	int r;

	if (!(entry->kinds & 1U << replacing->kind) || !bid_idset_find(replacing->wanted, &entry->id))
		return 0;
	replacing->names++;
	if (replacing->fd < 0)
		return 0;
	if (!entry->is_file) {
		r = bid_join_file(replacing->store, replacing->fd, entry->fd, name);
		return r == 0 && fsync(entry->fd) < 0 ? -errno : r;
	}
	/* perf's old layout: the entry is the file */
	snprintf(path, sizeof(path), "%s", entry->path);
	slash = strrchr(path, '/');
	*(slash ? slash : path) = '\0';
	r = bid_root_open(bid_store_root(replacing->store), path, O_RDONLY | O_DIRECTORY, &parent);
	return r < 0 ? r : bid_join_file(replacing->store, replacing->fd, parent, entry->path + strlen(path) + (slash != NULL));
}

/* A copy in the store of what was examined, synced, and examined again. */
static int copy(struct bid_store *store, struct bid_adding *adding)
{
	struct bid_elf_info info;
	mode_t mode = adding->st.st_mode;
	int r = 0;

	if (!adding->packed) {
		r = bid_temp_new(store, false, &adding->temp);
		if (r == 0)
			r = bid_copy_file(adding->fd, adding->temp.fd);
		if (r == 0)
			r = bid_elf_examine(adding->temp.fd, &info);
		if (r == 0 && !bid_id_equal(&info.id, &adding->info.id))
			r = -EAGAIN; /* it is being written */
	}
	if (r < 0)
		return r;
	/* as in adding: never a copy that may more than what it was copied from, and none that is setuid */
	mode &= mode & (S_ISUID | S_ISGID) || !(mode & S_IROTH) ? 0444 : 0555;
	return fchmod(adding->temp.fd, mode) < 0 || fsync(adding->temp.fd) < 0 ? -errno : 0;
}

static void record(struct bid_store *store, const struct bid_adding *adding, const struct bid_request *request)
{
	struct bid_origin origin = { .how = adding->packed ? "unpacked" : "added", .file = adding->path };
	struct stat st;

	if (fstat(adding->temp.fd, &st) == 0)
		bid_record_write(store, &(struct bid_record){
						.request = *request,
						.origin = &origin,
						.link = BID_LINK_COPY,
						.source = &adding->st,
						.size = (uint64_t)st.st_size,
					});
}

static int update(struct bid_store *store, struct bid_adding *adding, const struct bid_idset *wanted, bool *ret_replaced)
{
	const struct bid_elf_info *info = &adding->info;
	struct replacing replacing = { .store = store, .wanted = wanted, .fd = -1 };
	struct bid_visitor visitor = { .entry = replace, .user = &replacing };
	struct bid_request request = { .id = info->id };
	int r;

	request.kind = !info->has_code && (info->has_dwarf || info->has_symtab) ? BID_KIND_DEBUGINFO : BID_KIND_ELF;
	replacing.kind = request.kind;
	r = bid_entries_each(store, &visitor);
	*ret_replaced = replacing.names > 0;
	if (r < 0 || replacing.names == 0)
		return r;
	r = copy(store, adding);
	if (r < 0)
		return r;
	replacing.fd = adding->temp.fd;
	r = bid_entries_each(store, &visitor);
	if (r == 0)
		record(store, adding, &request);
	return r;
}

int bid_store_update(struct bid_store *store, const char *path, struct bid_added *ret_added, bool *ret_replaced)
{
	struct bid_add add = { .path = path, .fd = -1 };
	struct bid_adding adding = { .fd = -1, .temp = BID_TEMP_NONE };
	struct bid_idset wanted = { 0 };
	struct bid_added added = { 0 };
	bool replaced = false;
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	r = bid_adding_begin(store, &add, &adding);
	if (r == 0)
		r = bid_idset_init(&wanted, &adding.info.id, 1);
	if (r == 0)
		r = update(store, &adding, &wanted, &replaced);
	/* now it has only to get its own name, unless it is new altogether */
	if (r == 0)
		r = bid_store_add(store, path, BID_LINK_AUTO, &added);
	bid_idset_release(&wanted);
	bid_adding_release(&adding);
	if (r < 0)
		return r;
	*ret_added = added;
	*ret_replaced = replaced;
	return 0;
}
