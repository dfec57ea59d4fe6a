// SPDX-License-Identifier: LGPL-2.1-or-later
/* Write an archive of builds in the layout of perf archive, by libarchive. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "api/archive.h"
#include "archive/member_name.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"

int bid_packing_parse(const char *name)
{
	static const struct {
		const char *suffix;
		int filter; /* libarchive's code */
	} packings[] = {
		{ ".tar", ARCHIVE_FILTER_NONE },  { ".tar.bz2", ARCHIVE_FILTER_BZIP2 }, { ".tar.gz", ARCHIVE_FILTER_GZIP },
		{ ".tar.xz", ARCHIVE_FILTER_XZ }, { ".tar.zst", ARCHIVE_FILTER_ZSTD },
	};
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++) {
		size_t cut = strlen(packings[i].suffix);

		if (len > cut && strcmp(name + len - cut, packings[i].suffix) == 0)
			return packings[i].filter;
	}
	return -EINVAL;
}

struct packer {
	struct bid_store *store;
	struct archive *archive; /* owned */
	struct archive_entry *entry; /* for all members; owned */
	char *buffer; /* owned */
};

enum { BUFFER = 256 << 10 };

/* a build with its open files */
struct open_build {
	struct bid_file files[BID_KIND_COUNT];
	char hex[BID_ID_HEX_MAX]; /* on-disk id */
	char place[PATH_MAX]; /* "usr/bin/ls" */
};

static void load_release(struct open_build *load)
{
	for (int kind = 0; kind < BID_KIND_COUNT; kind++)
		bid_file_release(&load->files[kind]);
}

static void packer_release(struct packer *packer)
{
	archive_entry_free(packer->entry);
	if (packer->archive)
		archive_write_free(packer->archive);
	free(packer->buffer);
}

static int archive_error(struct archive *archive)
{
	int error = archive_errno(archive);

	/* libarchive has numbers of its own below zero */
	return error > 0 ? -error : -EIO;
}

static int packer_init(struct packer *packer, int packing, int fd)
{
	packer->archive = archive_write_new();
	packer->entry = archive_entry_new();
	packer->buffer = malloc(BUFFER);
	if (!packer->archive || !packer->entry || !packer->buffer)
		return -ENOMEM;
	/* ustar, readable by every tar, with pax headers only where ustar does not suffice */
	if (archive_write_set_format_pax_restricted(packer->archive) != ARCHIVE_OK ||
	    archive_write_add_filter(packer->archive, packing) != ARCHIVE_OK)
		return -ENOTSUP;
	/* gzip would note the time of day */
	if (packing == ARCHIVE_FILTER_GZIP)
		(void)archive_write_set_filter_option(packer->archive, "gzip", "timestamp", NULL);
	/* no padding behind the last byte: a decompressor could report it as damage */
	(void)archive_write_set_bytes_in_last_block(packer->archive, 1);
	if (archive_write_open_fd(packer->archive, fd) != ARCHIVE_OK)
		return archive_error(packer->archive);
	return 0;
}

/* Where its files are on this machine, or were on the other one. */
static void find_place(struct bid_store *store, const struct bid_archive_build *build, struct open_build *load)
{
	if (bid_store_perf_link(store, &build->id, load->place, sizeof(load->place)) == 0 && strchr(load->place, '/'))
		*strrchr(load->place, '/') = '\0';
	else if (build->path && build->path[0] == '/' && strlen(build->path) < sizeof(load->place) &&
		 bid_path_is_plain(build->path + 1))
		memcpy(load->place, build->path + 1, strlen(build->path));
	else if (load->files[BID_KIND_KALLSYMS].fd >= 0)
		snprintf(load->place, sizeof(load->place), "[kernel.kallsyms]");
	else if (load->files[BID_KIND_VDSO].fd >= 0)
		snprintf(load->place, sizeof(load->place), "[vdso]");
	else
		snprintf(load->place, sizeof(load->place), BID_STORE_UNNAMED);
}

/* Open all artifacts of @build. Returns 0, or an error that concerns only this build. */
static int open_artifacts(struct bid_store *store, struct bid_archive_build *build, struct open_build *load)
{
	struct bid_id disk_id = build->id;

	build->kinds = 0;
	build->size = 0;
	build->left_out = BID_KIND_NONE;
	build->why = -ENOENT;
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		struct bid_artifact artifact = { .id = build->id, .kind = (enum bid_kind)kind };
		struct bid_file *file = &load->files[kind];
		int r = bid_store_find(store, &artifact, BID_MAY_DERIVE, file);

		/* perf stores a debug file only beside an ELF file, and often an empty probe cache */
		if (r == 0 && (file->kind != artifact.kind || (kind == BID_KIND_PROBES && file->st.st_size == 0)))
			bid_file_release(file);
		if (file->fd >= 0) {
			build->kinds |= 1U << kind;
			build->size += (uint64_t)file->st.st_size;
		}
		if (r < 0 && r != -ENOENT && build->left_out == BID_KIND_NONE) {
			build->left_out = artifact.kind;
			build->why = r;
		}
	}
	if (disk_id.len > BID_ID_PERF_MAX)
		bid_id_from_bytes(build->id.bytes, BID_ID_PERF_MAX, &disk_id);
	bid_id_format(&disk_id, load->hex);
	find_place(store, build, load);
	return build->kinds & ~(1U << BID_KIND_PROBES) ? 0 : build->why;
}

/* Begin a member without the user and time of packing. Times differ between stores anyway; tar(1) warns of a zero. */
static void begin_member(struct packer *packer, const char *name)
{
	archive_entry_clear(packer->entry);
	archive_entry_set_pathname(packer->entry, name);
	archive_entry_set_mtime(packer->entry, 1, 0);
	archive_entry_set_uid(packer->entry, 0);
	archive_entry_set_gid(packer->entry, 0);
}

static int write_header(struct packer *packer)
{
	/* a warning concerns names that are not text */
	return archive_write_header(packer->archive, packer->entry) < ARCHIVE_WARN ? archive_error(packer->archive) : 0;
}

static int write_file(struct packer *packer, const struct open_build *load, enum bid_kind kind)
{
	const struct bid_file *file = &load->files[kind];
	char name[PATH_MAX + BID_ID_HEX_MAX + 16];
	off_t at = 0;
	int r;

	snprintf(name, sizeof(name), "%s/%s/%s", load->place, load->hex, bid_kind_store_name(kind));
	begin_member(packer, name);
	archive_entry_set_mode(packer->entry, S_IFREG | (kind == BID_KIND_ELF ? 0755 : 0644));
	archive_entry_set_size(packer->entry, file->st.st_size);
	r = write_header(packer);
	while (r == 0 && at < file->st.st_size) {
		off_t left = file->st.st_size - at;
		ssize_t n = bid_pread_full(file->fd, packer->buffer, left < BUFFER ? (size_t)left : BUFFER, at);

		if (n <= 0)
			return n < 0 ? (int)n : -EAGAIN;
		if (archive_write_data(packer->archive, packer->buffer, (size_t)n) != n)
			return archive_error(packer->archive);
		at += n;
	}
	return r;
}

static int write_link(struct packer *packer, const struct open_build *load)
{
	char name[BID_ID_HEX_MAX + 16], target[PATH_MAX + BID_ID_HEX_MAX + 16];

	snprintf(name, sizeof(name), ".build-id/%.2s/%s", load->hex, load->hex + 2);
	snprintf(target, sizeof(target), "../../%s/%s", load->place, load->hex);
	begin_member(packer, name);
	archive_entry_set_mode(packer->entry, S_IFLNK | 0777);
	archive_entry_set_symlink(packer->entry, target);
	return write_header(packer);
}

static int pack_one(struct packer *packer, struct bid_archive_build *build)
{
	static const enum bid_kind order[] = { BID_KIND_DEBUGINFO, BID_KIND_ELF, BID_KIND_KALLSYMS, BID_KIND_PROBES,
					       BID_KIND_VDSO };
	bid_cleanup(load_release) struct open_build load = { 0 };
	int r;

	for (int kind = 0; kind < BID_KIND_COUNT; kind++)
		load.files[kind] = BID_FILE_NONE;
	build->error = open_artifacts(packer->store, build, &load);
	if (build->error < 0)
		return 0;
	r = write_link(packer, &load);
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]) && r == 0; i++)
		if (load.files[order[i]].fd >= 0)
			r = write_file(packer, &load, order[i]);
	return r;
}

static int by_id(const void *a, const void *b)
{
	const struct bid_archive_build *one = *(struct bid_archive_build *const *)a, *other = *(struct bid_archive_build *const *)b;
	int r = memcmp(one->id.bytes, other->id.bytes, BID_ID_MAX);

	if (r == 0)
		r = one->id.len - other->id.len;
	if (r == 0 && (one->path || other->path))
		r = !one->path ? 1 : !other->path ? -1 : strcmp(one->path, other->path);
	return r;
}

static int pack_all(struct packer *packer, struct bid_archive_build **sorted, size_t n, bid_archive_tick_fn tick, void *user)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		if (i > 0 && bid_id_equal(&sorted[i]->id, &sorted[i - 1]->id)) {
			struct bid_archive_build same = *sorted[i - 1];

			same.path = sorted[i]->path;
			*sorted[i] = same;
			continue;
		}
		r = pack_one(packer, sorted[i]);
		if (r == 0 && tick)
			r = tick(user, i + 1, n);
	}
	return r;
}

int bid_archive_pack(struct bid_store *store, struct bid_archive_build *builds, size_t n, int packing, int fd,
		     bid_archive_tick_fn tick, void *user)
{
	bid_cleanup(packer_release) struct packer packer = { .store = store };
	bid_auto_free struct bid_archive_build **sorted = calloc(n + 1, sizeof(struct bid_archive_build *));
	int r;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &builds[i];
	qsort(sorted, n, sizeof(struct bid_archive_build *), by_id);
	r = packer_init(&packer, packing, fd);
	if (r == 0)
		r = pack_all(&packer, sorted, n, tick, user);
	if (r == 0 && archive_write_close(packer.archive) != ARCHIVE_OK)
		r = archive_error(packer.archive);
	return r;
}
