// SPDX-License-Identifier: LGPL-2.1-or-later
/* Additions of data without a file, and the recognition of a vDSO's image, which is such data in a file. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/io.h"
#include "base/kallsyms.h"
#include "base/world_readable.h"
#include "disk/derive/derive.h"
#include "disk/layout.h"
#include "disk/perf_link.h"
#include "disk/publish/add_data.h"
#include "disk/publish/publish.h"
#include "disk/store.h"

enum { NAMES_MAX = 1 << 14 }; /* bytes of .dynstr */

/* Let all users read @fd if @mode lets all users read. Make the owner of the store its owner if possible. */
static int set_readers(struct bid_store *store, const struct bid_artifact *artifact, mode_t mode, int fd)
{
	struct stat st;

	if (fstat(store->root, &st) < 0)
		return -errno;
	/* if root lacks the permission the file stays root's */
	if (geteuid() == 0 && st.st_uid != 0)
		(void)!fchown(fd, st.st_uid, (gid_t)-1);
	mode = bid_mode_is_world_readable(mode) ? 0444 : S_IRUSR;
	/* perf writes probes on */
	return fchmod(fd, artifact->kind == BID_KIND_PROBES ? mode | S_IWUSR : mode) < 0 ? -errno : 0;
}

/* Publish @temp in perf's directory of this kind. */
static int link_data(struct bid_store *store, const struct bid_artifact *artifact, mode_t mode, struct bid_temp *temp)
{
	static const char *const dirs[BID_KIND_COUNT] = { [BID_KIND_VDSO] = "[vdso]", [BID_KIND_KALLSYMS] = "[kernel.kallsyms]" };
	const char *dir = dirs[artifact->kind];
	struct bid_id disk_id = bid_layout_disk_id(&artifact->id);
	char path[PATH_MAX], under[BID_LAYOUT_MAX];
	int r;

	if (dir)
		snprintf(path, sizeof(path), "%s", bid_layout_under(dir, &disk_id, under));
	else if (bid_perf_link_find(store, &artifact->id, path, sizeof(path)) < 0)
		return -ENOENT;
	r = set_readers(store, artifact, mode, temp->fd);
	if (r < 0)
		return r;
	if (fsync(temp->fd) < 0)
		return -errno;
	return bid_publish_or_replace(store, artifact, path, true, temp);
}

int bid_store_add_data(struct bid_store *store, const struct bid_artifact *artifact, mode_t mode, const void *data, size_t len,
		       struct bid_added *ret_added)
{
	struct bid_added added = { .id = artifact->id, .kind = artifact->kind, .link = BID_LINK_COPY };
	struct bid_file file = BID_FILE_NONE;
	struct bid_temp temp = BID_TEMP_NONE;
	struct bid_id carried;
	int r;

	if ((artifact->kind != BID_KIND_KALLSYMS && artifact->kind != BID_KIND_VDSO && artifact->kind != BID_KIND_PROBES) ||
	    artifact->id.len == 0)
		return -EINVAL;
	if (!bid_store_writable(store))
		return -EROFS;
	r = bid_temp_new(store, false, &temp);
	if (r == 0)
		r = bid_pwrite_full(temp.fd, data, len, 0);
	if (r == 0 && artifact->kind == BID_KIND_VDSO) {
		r = bid_elf_build_id(temp.fd, &carried);
		if (r == -ENODATA || (r == 0 && !bid_id_equal(&carried, &artifact->id)))
			r = -EBADMSG;
	}
	if (r == 0 && artifact->kind == BID_KIND_KALLSYMS && bid_kallsyms_check(data, len) < 0)
		r = -EBADMSG;
	if (r == 0 && bid_find_unpacked(store, artifact, BID_MAY_DERIVE, &file) == 0) {
		added.known = true;
		r = bid_store_sync_file(store, &file);
	} else if (r == 0) {
		r = link_data(store, artifact, mode, &temp);
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

bool bid_is_vdso_image(const char *path, int fd)
{
	return has_name(path) && has_soname(fd);
}
