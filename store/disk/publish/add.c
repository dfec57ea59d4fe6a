// SPDX-License-Identifier: LGPL-2.1-or-later
/* Adding a file of this machine: what it is, and then through the steps of adding.c. */
#include "disk/publish/add.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/access.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kallsyms.h"
#include "base/mount.h"
#include "base/path.h"
#include "disk/find.h"
#include "disk/layout.h"
#include "disk/one.h"
#include "disk/publish/publish.h"
#include "disk/record.h"
#include "disk/store.h"

static int unpack(struct bid_store *store, struct bid_adding *adding)
{
	int r = adding->temp.fd < 0 ? bid_temp_new(store, false, &adding->temp) : 0;
	struct stat st;

	if (r == 0)
		r = bid_elf_unpack_to(adding->fd, BID_ELF_UNPACKED_MAX, adding->temp.fd);
	if (r == 0)
		r = bid_elf_examine(adding->temp.fd, &adding->info);
	if (r == 0)
		r = bid_fstat(adding->temp.fd, &st);
	if (r == 0)
		adding->temp_size = (uint64_t)st.st_size;
	adding->packed = true;
	return r;
}

int bid_adding_examine(struct bid_store *store, struct bid_adding *adding)
{
	int r = adding->is_elf ? 0 : bid_elf_is_packed(adding->fd);

	if (r < 0)
		return r;
	r = r ? unpack(store, adding) : bid_elf_examine(adding->fd, &adding->info);
	if (r < 0)
		return r;
	/* an id of one byte has no link in perf's layout, whose name is what follows the first byte */
	return adding->info.id.len > 1 ? 0 : -ENODATA;
}

/* The path that the file open at @fd, with @st, has or had, whatever happens to it meanwhile. */
static int read_path(int fd, const struct stat *st, char ret_path[static PATH_MAX])
{
	int r = bid_path_of(fd, ret_path, PATH_MAX);

	if (r == 0 && ret_path[0] != '/')
		r = -ENAMETOOLONG;
	if (r == 0 && st->st_nlink == 0)
		bid_path_strip_deleted(ret_path);
	return r;
}

int bid_adding_open(const struct bid_add *add, struct bid_adding *adding)
{
	int r = 0;

	adding->temp = BID_TEMP_NONE;
	adding->own_fd = add->fd < 0;
	adding->clean_before = add->clean_before;
	adding->fd = add->fd < 0 ? open(add->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : add->fd;
	if (adding->fd < 0 || fstat(adding->fd, &adding->st) < 0)
		return -errno;
	if (!S_ISREG(adding->st.st_mode))
		return -EINVAL;
	if (adding->own_fd)
		r = read_path(adding->fd, &adding->st, adding->path);
	else if (strlen(add->path) >= sizeof(adding->path))
		r = -ENAMETOOLONG;
	else
		memcpy(adding->path, add->path, strlen(add->path) + 1);
	if (r < 0)
		return r;
	return bid_layout_is_original(adding->path) ? 0 : -EINVAL;
}

bool bid_adding_is_own(const struct bid_store *store, const struct bid_adding *adding)
{
	size_t len = strlen(bid_store_path(store));

	return strncmp(adding->path, bid_store_path(store), len) == 0 && adding->path[len] == '/';
}

int bid_adding_begin(struct bid_store *store, const struct bid_add *add, struct bid_adding *adding)
{
	int r = bid_adding_open(add, adding);

	if (r < 0)
		return r;
	/* what is in a mount of bidfs is from a store, where its path is another */
	adding->is_nameless = bid_adding_is_own(store, adding) || bid_is_in_mount(adding->fd, &adding->st);
	return bid_adding_examine(store, adding);
}

int bid_store_add_file(struct bid_store *store, const struct bid_add *add, struct bid_added *ret_added)
{
	struct bid_adding adding = { .fd = -1, .temp = BID_TEMP_NONE };
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	r = bid_adding_begin(store, add, &adding);
	if (r == 0)
		r = bid_adding_vdso(store, &adding);
	if (r == 0)
		r = bid_adding_place(store, &adding, add->link, add->batch ? BID_DURABLE_BATCH : BID_DURABLE_EACH);
	bid_adding_release(&adding);
	if (r < 0)
		return r;
	*ret_added = adding.added;
	return 0;
}

int bid_store_add(struct bid_store *store, const char *path, enum bid_link link, struct bid_added *ret_added)
{
	return bid_store_add_file(store, &(struct bid_add){ .path = path, .fd = -1, .link = link }, ret_added);
}

static int put_temp(void *user, int dir, const char *name)
{
	return bid_temp_link(user, dir, name);
}

/* Everybody reads the file open at @fd if everybody reads one of @mode; and the owner of the store, if it can be his. */
static int set_readers(struct bid_store *store, const struct bid_request *request, mode_t mode, int fd)
{
	struct stat st;

	if (fstat(bid_store_root(store), &st) < 0)
		return -errno;
	/* where root may not, it stays root's */
	if (geteuid() == 0 && st.st_uid != 0)
		(void)!fchown(fd, st.st_uid, (gid_t)-1);
	mode = bid_all_read(mode) ? 0444 : S_IRUSR;
	/* perf writes probes on */
	return fchmod(fd, request->kind == BID_KIND_PROBES ? mode | S_IWUSR : mode) < 0 ? -errno : 0;
}

/* Publish what is in @temp, in perf's directory of this kind. */
static int publish_data(struct bid_store *store, const struct bid_request *request, mode_t mode, struct bid_temp *temp)
{
	static const char *const dirs[BID_KIND_COUNT] = { [BID_KIND_VDSO] = "[vdso]", [BID_KIND_KALLSYMS] = "[kernel.kallsyms]" };
	const char *dir = dirs[request->kind];
	struct bid_id filed = bid_layout_filed(&request->id);
	char path[PATH_MAX], under[BID_LAYOUT_MAX];
	int r;

	if (dir)
		snprintf(path, sizeof(path), "%s", bid_layout_under(dir, &filed, under));
	else if (bid_one_where(store, &request->id, path, sizeof(path)) < 0)
		return -ENOENT;
	r = set_readers(store, request, mode, temp->fd);
	if (r < 0)
		return r;
	if (fsync(temp->fd) < 0)
		return -errno;
	return bid_publish_instead(store, request, path, true, put_temp, temp);
}

int bid_store_add_data(struct bid_store *store, const struct bid_request *request, mode_t mode, const void *data, size_t len,
		       struct bid_added *ret_added)
{
	struct bid_added added = { .id = request->id, .kind = request->kind, .link = BID_LINK_COPY };
	struct bid_file file = BID_FILE_NONE;
	struct bid_temp temp = BID_TEMP_NONE;
	struct bid_id carried;
	int r;

	if ((request->kind != BID_KIND_KALLSYMS && request->kind != BID_KIND_VDSO && request->kind != BID_KIND_PROBES) ||
	    request->id.len == 0)
		return -EINVAL;
	if (!bid_store_writable(store))
		return -EROFS;
	r = bid_temp_new(store, false, &temp);
	if (r == 0)
		r = bid_pwrite_full(temp.fd, data, len, 0);
	if (r == 0 && request->kind == BID_KIND_VDSO) {
		r = bid_elf_identify(temp.fd, &carried);
		if (r == -ENODATA || (r == 0 && !bid_id_equal(&carried, &request->id)))
			r = -EBADMSG;
	}
	if (r == 0 && request->kind == BID_KIND_KALLSYMS && bid_kallsyms_check(data, len) < 0)
		r = -EBADMSG;
	if (r == 0 && bid_find_stored(store, request, &file) == 0) {
		added.known = true;
		r = bid_store_settle(store, &file);
	} else if (r == 0) {
		r = publish_data(store, request, mode, &temp);
	}
	if (r == -EEXIST) {
		added.known = true;
		r = bid_store_sync(store);
	}
	bid_file_release(&file);
	bid_temp_release(&temp);
	if (r < 0)
		return r;
	if (added.known)
		added.link = BID_LINK_AUTO;
	*ret_added = added;
	return 0;
}
