// SPDX-License-Identifier: LGPL-2.1-or-later
/* Ingest: the only way of a local file, or of a caller's data, into the store. */
#include "disk/publish/ingest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/access.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kallsyms.h"
#include "base/path.h"
#include "disk/find.h"
#include "disk/layout.h"
#include "disk/one.h"
#include "disk/publish/merge.h"
#include "disk/publish/publish.h"
#include "disk/store.h"

enum {
	IMAGE_MAX = 1 << 20, /* bytes */
	NAMES_MAX = 1 << 14, /* strings of .dynstr */
};

/* A compiler may have written the file a moment ago: its name in the store must not be on disk before its bytes. */
static int clean_source(const struct bid_ingest *ingest)
{
	const struct timespec *changed = &ingest->st.st_ctim, *clean = &ingest->clean_before;

	if (changed->tv_sec < clean->tv_sec || (changed->tv_sec == clean->tv_sec && changed->tv_nsec < clean->tv_nsec))
		return 0;
	/* a file without support for fsync(2) has no dirty data */
	return fsync(ingest->fd) < 0 && errno != EINVAL && errno != EROFS ? -errno : 0;
}

/* Does the store have an unstripped debug file of @id? */
static bool has_debug(struct bid_store *store, const struct bid_id *id)
{
	struct bid_request request = { .id = *id, .kind = BID_KIND_DEBUGINFO };
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;

	return bid_find_stored(store, &request, &file) == 0 && file.kind == BID_KIND_DEBUGINFO && !file.stripped;
}

/* Does the store have an ELF file of the id without the debuginfo or symbols of @ingest, and no debug file beside it? */
static bool completes_build(struct bid_store *store, const struct bid_ingest *ingest)
{
	struct bid_request request = { .id = ingest->added.id, .kind = BID_KIND_ELF };
	struct bid_file file = BID_FILE_NONE;
	bool does;

	if (ingest->added.kind != BID_KIND_ELF || !(ingest->info.has_dwarf || ingest->info.has_symtab) ||
	    has_debug(store, &request.id) || bid_find_stored(store, &request, &file) < 0)
		return false;
	does = (file.st.st_ino != ingest->st.st_ino || file.st.st_dev != ingest->st.st_dev) &&
	       bid_merge_completes(&ingest->info, file.fd);
	bid_file_release(&file);
	return does;
}

int bid_ingest_finish(struct bid_store *store, struct bid_ingest *ingest, enum bid_durability durability)
{
	return bid_ingest_publish(store, ingest, durability, &ingest->temp);
}

static int finish_or_leave(struct bid_store *store, struct bid_ingest *ingest, enum bid_durability durability)
{
	if (durability != BID_DURABLE_LATER)
		return bid_ingest_finish(store, ingest, durability);
	ingest->stage = BID_INGEST_PREPARED;
	return 0;
}

/* Finding out costs a temporary file or a directory: remember the failure. */
static bool is_denied(const atomic_ullong *denied, const struct stat *st)
{
	return atomic_load(denied) == (unsigned long long)st->st_dev + 1;
}

static void note_denied(atomic_ullong *denied, const struct stat *st)
{
	atomic_store(denied, (unsigned long long)st->st_dev + 1);
}

/* Did a hard link fail before for the file system of @st, or for other users' files on it? */
static bool is_link_denied(struct bid_store *store, const struct stat *st)
{
	const struct bid_denied *denied = &store->denied;

	return is_denied(&denied->link, st) || (st->st_uid != geteuid() && is_denied(&denied->link_of_others, st));
}

static void deny_link(struct bid_store *store, const struct stat *st, int r)
{
	struct bid_denied *denied = &store->denied;
	struct stat root;

	/* on the store's own file system the mount decides, and other files may lie in another mount */
	if (r == -EXDEV && fstat(bid_store_root(store), &root) == 0 && root.st_dev != st->st_dev)
		note_denied(&denied->link, st);
	/* fs.protected_hardlinks, proc_sys_fs(5); for a file of this user EPERM concerns one file, for example an immutable one */
	if (r == -EPERM && st->st_uid != geteuid())
		note_denied(&denied->link_of_others, st);
}

/* Put the file by the first method of @wanted that works. */
static int put_file(struct bid_store *store, struct bid_ingest *ingest, enum bid_link wanted, enum bid_durability durability)
{
	int r;

	if (!ingest->packed &&
	    (wanted == BID_LINK_REFLINK || (wanted == BID_LINK_AUTO && !is_denied(&store->denied.reflink, &ingest->st)))) {
		ingest->added.link = BID_LINK_REFLINK;
		r = bid_ingest_fill(store, ingest, true, durability);
		if (r == 0)
			return finish_or_leave(store, ingest, durability);
		if (wanted == BID_LINK_REFLINK || !bid_ingest_is_unsupported(r))
			return r;
		if (r == -EOPNOTSUPP || r == -ENOTTY || r == -EXDEV)
			note_denied(&store->denied.reflink, &ingest->st);
	}
	if (!ingest->packed && (wanted == BID_LINK_HARD || (wanted == BID_LINK_AUTO && !is_link_denied(store, &ingest->st))) &&
	    bid_ingest_may_link(store, ingest)) {
		ingest->added.link = BID_LINK_HARD;
		r = clean_source(ingest);
		/* the examined file, even if its name now belongs to another file */
		if (r == 0)
			r = bid_ingest_publish(store, ingest, durability, BID_TEMP_OF(ingest->fd));
		if (r == 0 || wanted == BID_LINK_HARD || !bid_ingest_is_unsupported(r))
			return r;
		deny_link(store, &ingest->st, r);
	}
	ingest->added.link = BID_LINK_COPY;
	r = bid_ingest_fill(store, ingest, false, durability);
	return r < 0 ? r : finish_or_leave(store, ingest, durability);
}

int bid_ingest_place(struct bid_store *store, struct bid_ingest *ingest, enum bid_link wanted, enum bid_durability durability)
{
	const struct bid_elf_info *info = &ingest->info;
	int r;

	/* a separate debug file keeps the code sections without bytes */
	ingest->added = (struct bid_added){
		.id = info->id,
		.kind = !info->has_code && (info->has_dwarf || info->has_symtab) ? BID_KIND_DEBUGINFO : BID_KIND_ELF,
	};
	r = ingest->is_new ? 0 : bid_ingest_recognise(store, ingest, durability);
	if (r < 0)
		return r;
	if (r > 0 && completes_build(store, ingest)) {
		ingest->added.kind = BID_KIND_DEBUGINFO;
		ingest->added.known = false;
	} else if (r > 0) {
		ingest->stage = BID_INGEST_PLACED;
		return bid_ingest_sync_known(store, ingest, durability);
	}
	return put_file(store, ingest, wanted, durability);
}

/* Let all users read @fd if @mode lets all users read. Make the owner of the store its owner if possible. */
static int set_readers(struct bid_store *store, const struct bid_request *request, mode_t mode, int fd)
{
	struct stat st;

	if (fstat(bid_store_root(store), &st) < 0)
		return -errno;
	/* if root lacks the permission the file stays root's */
	if (geteuid() == 0 && st.st_uid != 0)
		(void)!fchown(fd, st.st_uid, (gid_t)-1);
	mode = bid_all_read(mode) ? 0444 : S_IRUSR;
	/* perf writes probes on */
	return fchmod(fd, request->kind == BID_KIND_PROBES ? mode | S_IWUSR : mode) < 0 ? -errno : 0;
}

/* Publish @temp in perf's directory of this kind. */
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
	return bid_publish_instead(store, request, path, true, temp);
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

static bool begins_with(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Is @path /lib/modules/RELEASE/vdso/vdso32.so, or a name that programs use for the vDSO (vdso(7))? Only such files are read. */
static bool has_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t len = strlen(name);

	return (begins_with(name, "vdso") && len > 3 && strcmp(name + len - 3, ".so") == 0) || begins_with(name, "linux-vdso") ||
	       begins_with(name, "linux-gate");
}

/* Search the dynamic strings, including DT_SONAME, for the kernel's name of the vDSO. */
static bool has_soname(int fd)
{
	struct bid_elf_section section;
	char names[NAMES_MAX];
	size_t len;

	if (bid_elf_find_section(fd, ".dynstr", &section) < 0 || section.size > sizeof(names) ||
	    bid_pread_full(fd, names, section.size, (off_t)section.offset) != (ssize_t)section.size)
		return false;
	len = section.size;
	return memmem(names, len, "\0linux-vdso", strlen("linux-vdso") + 1) ||
	       memmem(names, len, "\0linux-gate", strlen("linux-gate") + 1);
}

int bid_ingest_vdso(struct bid_store *store, struct bid_ingest *ingest)
{
	struct bid_request request = { .id = ingest->info.id, .kind = BID_KIND_VDSO };
	bid_auto_free char *image = NULL;
	struct bid_added added;
	size_t len;
	int r;

	if (ingest->packed || !has_name(ingest->path) || ingest->st.st_size > IMAGE_MAX || !has_soname(ingest->fd))
		return 0;
	r = bid_read_file(ingest->fd, IMAGE_MAX, &image, &len);
	if (r == 0)
		r = bid_store_add_data(store, &request, bid_ingest_mode(store, ingest), image, len, &added);
	/* the ELF file goes beside it, to the target of perf's link */
	ingest->is_new = false;
	return r;
}

int bid_store_add_file(struct bid_store *store, const struct bid_add *add, struct bid_added *ret_added)
{
	struct bid_ingest ingest = { .fd = -1, .temp = BID_TEMP_NONE };
	int r;

	if (!bid_store_writable(store))
		return -EROFS;
	r = bid_ingest_begin(store, add, &ingest);
	if (r == 0)
		r = bid_ingest_vdso(store, &ingest);
	if (r == 0)
		r = bid_ingest_place(store, &ingest, add->link, add->batch ? BID_DURABLE_BATCH : BID_DURABLE_EACH);
	bid_ingest_release(&ingest);
	if (r < 0)
		return r;
	*ret_added = ingest.added;
	return 0;
}

int bid_store_add(struct bid_store *store, const char *path, enum bid_link link, struct bid_added *ret_added)
{
	return bid_store_add_file(store, &(struct bid_add){ .path = path, .fd = -1, .link = link }, ret_added);
}
