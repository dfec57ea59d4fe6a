// SPDX-License-Identifier: LGPL-2.1-or-later
/* Iteration over the members of an untrusted archive. */
#include "archive/unarchive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

enum { BLOCK = 128 << 10 };

static void unpack_release(struct bid_unarchive *unpack)
{
	for (size_t i = 0; i < unpack->n_later; i++) {
		free(unpack->later[i].name);
		free(unpack->later[i].data);
	}
	free(unpack->later);
	if (unpack->file)
		archive_read_free(unpack->file);
}

/*
 * Make a reader of the formats of perf and bidctl. It tries no other format, and starts no program. Returns 0, -ENOMEM or -ENOTSUP.
 */
static int new_archive(struct archive **ret_archive)
{
	struct archive *archive = *ret_archive = archive_read_new();

	if (!archive)
		return -ENOMEM;
	if (archive_read_support_filter_bzip2(archive) < ARCHIVE_WARN || archive_read_support_filter_gzip(archive) < ARCHIVE_WARN ||
	    archive_read_support_filter_xz(archive) < ARCHIVE_WARN || archive_read_support_filter_zstd(archive) < ARCHIVE_WARN ||
	    archive_read_support_format_tar(archive) != ARCHIVE_OK)
		return -ENOTSUP;
	return 0;
}

/* Translate the result of opening an archive, which reads its beginning. */
static int translate_open(struct archive *archive, int result)
{
	int r = result == ARCHIVE_OK ? 0 : bid_unarchive_error(archive);

	return r == -EBADMSG ? -EINVAL : r;
}

static int open_file(struct bid_unarchive *unpack, int fd)
{
	int r = new_archive(&unpack->file);

	unpack->archive = unpack->file;
	return r < 0 ? r : translate_open(unpack->file, archive_read_open_fd(unpack->file, fd, BLOCK));
}

/* Skip the rest of the current member. libarchive's own skipping has no limit. */
static int pass_over(struct bid_unarchive *unpack)
{
	for (;;) {
		const void *data;
		la_int64_t offset;
		size_t len = 0;
		int r = archive_read_data_block(unpack->archive, &data, &len, &offset); /* holes cost nothing */

		if (r == ARCHIVE_EOF)
			return 0;
		if (r < ARCHIVE_WARN)
			return bid_unarchive_error(unpack->archive);
		r = bid_unarchive_count(unpack, len);
		if (r < 0)
			return r;
	}
}

static int count_member(struct bid_unarchive *unpack, const struct bid_archive_member *member, struct bid_archive_counts *counts)
{
	counts->added += member->state == BID_MEMBER_ADDED;
	counts->known += member->state == BID_MEMBER_KNOWN;
	counts->refused += member->state == BID_MEMBER_REFUSED;
	if (member->state == BID_MEMBER_ADDED)
		counts->size += member->size;
	return unpack->config->member ? unpack->config->member(unpack->config->user, member) : 0;
}

/* Check a member that is no file. Returns 0 to ignore it, 1 to refuse it for member->why, or -EINPROGRESS to treat it as a file. */
static int look_at_type(struct archive_entry *entry, struct bid_archive_member *member)
{
	const char *target = archive_entry_hardlink(entry);

	/*
	 * The store makes perf's links itself. perf archive lists code sampled under two paths twice, and tar(1) packs the second
	 * link as a hard link.
	 */
	if ((target || archive_entry_filetype(entry) == AE_IFLNK) && bid_member_is_link(member->name))
		return 0;
	if (target)
		return -EINPROGRESS;
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return -EINPROGRESS;
	case AE_IFDIR:
		return 0; /* directories follow from the files in them */
	case AE_IFLNK:
		member->why = "a symbolic link other than perf's";
		return 1;
	default:
		member->why = "neither a file nor a link";
		return 1;
	}
}

static int take_member(struct bid_unarchive *unpack, struct archive_entry *entry, struct bid_archive_member *member)
{
	const char *target = archive_entry_hardlink(entry);
	struct bid_member_name name, other;

	member->why = "its name is not in the layout of perf's cache";
	if (!bid_member_parse(member->name, &name))
		return 0;
	member->id = name.id;
	member->kind = name.kind;
	/* tar(1) packs a hard link for a file given twice, or with two names */
	member->why = "a hard link to something else";
	if (target && (!bid_member_parse(target, &other) || !bid_id_equal(&other.id, &name.id) || other.kind != name.kind))
		return 0;
	return target ? bid_unarchive_take_known(unpack, &name, member) : bid_unarchive_take(unpack, &name, member);
}

/*
 * Is the member a recording? Its first bytes decide, since it may have any name. Returns 1, 0 or a negative errno that ends the
 * unpacking.
 */
static int is_recording(struct bid_unarchive *unpack)
{
	static const char magics[][9] = { "PERFILE2", "2ELIFREP", "PERFFILE", "ELIFFREP" };
	char head[8];
	ssize_t n = bid_unarchive_read(unpack, head, sizeof(head));

	for (size_t i = 0; n == sizeof(head) && i < sizeof(magics) / sizeof(magics[0]); i++)
		if (memcmp(head, magics[i], sizeof(head)) == 0)
			return 1;
	return n < 0 ? (int)n : 0;
}

/* an archive inside the archive */
struct nested {
	struct bid_unarchive *unpack;
	struct archive *archive; /* owned */
	char *block; /* owned */
	int error; /* error of reading the outer archive */
};

static void nested_release(struct nested *nested)
{
	if (nested->archive)
		archive_read_free(nested->archive);
	free(nested->block);
	nested->unpack->archive = nested->unpack->file;
}

static la_ssize_t read_nested(struct archive *archive, void *user, const void **ret_block)
{
	struct nested *nested = user;
	la_ssize_t n = archive_read_data(nested->unpack->file, nested->block, BLOCK);

	if (n < 0)
		nested->error = bid_unarchive_error(nested->unpack->file);
	else
		nested->error = bid_unarchive_count(nested->unpack, (size_t)n);
	if (nested->error < 0)
		archive_set_error(archive, -nested->error, "reading the archive around it");
	*ret_block = nested->block;
	return nested->error < 0 ? ARCHIVE_FATAL : n;
}

static int all_members(struct bid_unarchive *unpack, uint64_t total, struct bid_archive_counts *counts);

/* perf archive --all packs the builds of its recording into an archive of their own. */
static int take_nested(struct bid_unarchive *unpack, struct bid_archive_member *member, uint64_t total,
		       struct bid_archive_counts *counts)
{
	bid_cleanup(nested_release) struct nested nested = { .unpack = unpack, .block = malloc(BLOCK) };
	int r = nested.block ? new_archive(&nested.archive) : -ENOMEM;

	if (r == 0)
		r = translate_open(nested.archive, archive_read_open(nested.archive, &nested, NULL, read_nested, NULL));
	unpack->archive = nested.archive;
	if (r == 0)
		r = all_members(unpack, total, counts);
	if (nested.error < 0)
		return nested.error;
	if (r != -EINVAL)
		return r;
	member->why = "not a tar archive, plain or packed once, or cut short before a file";
	return count_member(unpack, member, counts);
}

/*
 * Handle the members that perf archive --all packs beside artifacts. Returns 1 for such a member, 0 for another one, or a negative
 * errno as take_member().
 */
static int take_beside(struct bid_unarchive *unpack, struct archive_entry *entry, struct bid_archive_member *member, uint64_t total,
		       struct bid_archive_counts *counts)
{
	struct bid_member_name name;
	int r;

	if (unpack->archive != unpack->file || archive_entry_hardlink(entry) || bid_member_parse(member->name, &name))
		return 0;
	if (!bid_member_is_symbols(member->name))
		return is_recording(unpack);
	r = take_nested(unpack, member, total, counts);
	return r == 0 ? 1 : r;
}

static int one_member(struct bid_unarchive *unpack, struct archive_entry *entry, uint64_t total, struct bid_archive_counts *counts)
{
	const char *name = archive_entry_pathname(entry);
	struct bid_archive_member member = { .state = BID_MEMBER_REFUSED };
	int r;

	/* the locale lacks the characters of the name, which does not matter */
	if (!name)
		name = archive_entry_pathname_utf8(entry);
	member.name = name ? name : "?";
	member.size = archive_entry_size(entry) > 0 ? (uint64_t)archive_entry_size(entry) : 0;
	r = look_at_type(entry, &member);
	if (r == 0)
		return 0;
	if (r < 0) {
		r = take_beside(unpack, entry, &member, total, counts);
		if (r != 0)
			return r > 0 ? pass_over(unpack) : r;
		r = take_member(unpack, entry, &member);
	}
	if (r == -EINPROGRESS)
		return 0;
	if (r >= 0)
		r = count_member(unpack, &member, counts);
	return r == 0 ? pass_over(unpack) : r;
}

static int all_members(struct bid_unarchive *unpack, uint64_t total, struct bid_archive_counts *counts)
{
	const struct bid_unpack_config *config = unpack->config;
	struct archive_entry *entry;
	bool any = false;

	for (;;) {
		int r = archive_read_next_header(unpack->archive, &entry);

		if (r == ARCHIVE_EOF)
			return 0;
		/* ARCHIVE_RETRY, above ARCHIVE_WARN, means a damaged header; the bytes behind it cannot be trusted */
		if (r != ARCHIVE_OK && r != ARCHIVE_WARN) {
			r = bid_unarchive_error(unpack->archive);
			return r == -EBADMSG && !any ? -EINVAL : r;
		}
		/* libarchive's count has one for the end of the chain */
		if (!any && archive_filter_count(unpack->archive) > 2)
			return -EINVAL;
		any = true;
		r = one_member(unpack, entry, total, counts);
		if (r == 0 && config->tick)
			r = config->tick(config->user, (uint64_t)archive_filter_bytes(unpack->file, -1), total);
		if (r != 0)
			return r;
	}
}

static int all_put_off(struct bid_unarchive *unpack, struct bid_archive_counts *counts)
{
	int r = 0;

	for (size_t i = 0; i < unpack->n_later && r == 0; i++) {
		const struct bid_unarchive_later *later = &unpack->later[i];
		struct bid_archive_member member = {
			.name = later->name, .id = later->id, .kind = BID_KIND_PROBES, .size = later->len
		};

		r = bid_unarchive_take_later(unpack, later, &member);
		if (r == 0)
			r = count_member(unpack, &member, counts);
	}
	return r;
}

int bid_archive_unpack(struct bid_store *store, int fd, const struct bid_unpack_config *config,
		       struct bid_archive_counts *ret_counts)
{
	bid_cleanup(unpack_release) struct bid_unarchive unpack = { .store = store, .config = config };
	struct bid_archive_counts counts = { 0 };
	struct stat st;
	int r, put_off, synced;

	*ret_counts = counts;
	if (!bid_store_writable(store))
		return -EROFS;
	if (fstat(fd, &st) < 0)
		return -errno;
	r = open_file(&unpack, fd);
	if (r == 0)
		r = all_members(&unpack, S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0, &counts);
	/* keep the members before the failure */
	put_off = r == 0 || r == -EBADMSG ? all_put_off(&unpack, &counts) : 0;
	synced = counts.added + counts.known > 0 ? bid_store_sync(store) : 0;
	*ret_counts = counts;
	return r != 0 ? r : put_off != 0 ? put_off : synced;
}
