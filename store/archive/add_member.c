// SPDX-License-Identifier: LGPL-2.1-or-later
/* One member of an archive becomes an artifact of the store, or does not. */
#include <archive.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <bid/error.h>

#include "api/elf.h"
#include "api/evict.h"
#include "api/txn.h"
#include "archive/unarchive.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kallsyms.h"
#include "base/limits.h"
#include "base/local_error.h"

enum {
	HEAD = 64 << 10, /* bytes with the build-id of nearly every file */
	MODULE_MAX = 64 << 20, /* bytes of a module, compressed */
	LATER_MAX = 16 << 20, /* bytes of deferred probe definitions */
	BOMB_RATIO = 250,
};

#define BOMB_MIN (UINT64_C(256) << 20)

int bid_unarchive_error(struct archive *archive)
{
	switch (archive_errno(archive)) {
	case ENOMEM:
	case EIO:
	case EISDIR:
	case EBADF:
		return -archive_errno(archive);
	default:
		return -EBADMSG;
	}
}

/* A few bytes that unpack to many could fill a disk, or take forever. */
int bid_unarchive_count(struct bid_unarchive *unpack, size_t len)
{
	la_int64_t packed = archive_filter_bytes(unpack->file, -1);

	unpack->unpacked += len;
	return unpack->unpacked > BOMB_MIN && packed > 0 && unpack->unpacked / BOMB_RATIO > (uint64_t)packed ? -EFBIG : 0;
}

ssize_t bid_unarchive_read(struct bid_unarchive *unpack, void *buffer, size_t len)
{
	la_ssize_t n = archive_read_data(unpack->archive, buffer, len);
	int r;

	if (n < 0)
		return bid_unarchive_error(unpack->archive);
	r = bid_unarchive_count(unpack, (size_t)n);
	return r < 0 ? r : (ssize_t)n;
}

static int refuse_member(struct bid_unarchive *unpack, struct bid_archive_member *member, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse_member(struct bid_unarchive *unpack, struct bid_archive_member *member, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(unpack->why, sizeof(unpack->why), format, arguments);
	va_end(arguments);
	member->state = BID_MEMBER_REFUSED;
	member->why = unpack->why;
	return 0;
}

/* Would the next member meet the same trouble? Else this one is refused. */
static int fail_member(struct bid_unarchive *unpack, struct bid_archive_member *member, int error)
{
	return bid_is_local_error(error) ? error : refuse_member(unpack, member, "%s", bid_strerror(error));
}

/*
 * Is the member in the store? If so, add its path as another name, unless it is no file of a path, and mark the artifact as added
 * by the user. Returns 1, 0 or a negative errno.
 */
static int recognise_member(struct bid_unarchive *unpack, const struct bid_member_name *name)
{
	struct bid_artifact artifact = { .id = name->id, .kind = name->kind };
	bool has_path = name->path[0] == '/' && (name->kind == BID_KIND_ELF || name->kind == BID_KIND_DEBUGINFO);
	struct bid_file file = BID_FILE_NONE;
	struct bid_added added;
	int r = bid_store_find(unpack->store, &artifact, BID_MAY_DERIVE, &file);

	/* a download may have other bytes than the member */
	if (r == 0 && bid_store_is_download(unpack->store, &artifact))
		r = -ENOENT;
	else if (r == 0 && file.kind == name->kind && has_path)
		r = bid_store_add_file(unpack->store,
				       &(struct bid_add){ .path = name->path, .fd = file.fd, .link = BID_LINK_HARD, .batch = true },
				       &added);
	else if (r == 0)
		r = file.kind == name->kind ? 0 : -ENOENT;
	bid_file_release(&file);
	if (r == 0)
		r = bid_store_mark_added(unpack->store, &artifact);
	/* wrong content is replaced by the right one */
	return r >= 0 ? 1 : r == -ENOENT || bid_is_unusable(r) ? 0 : r;
}

int bid_unarchive_take_known(struct bid_unarchive *unpack, const struct bid_member_name *name, struct bid_archive_member *member)
{
	int r = recognise_member(unpack, name);

	if (r < 0)
		return fail_member(unpack, member, r);
	member->state = BID_MEMBER_KNOWN;
	/* empty probe definitions are nowhere, and others may wait for the rest of their build */
	return r > 0 || name->kind == BID_KIND_PROBES ? 0 : refuse_member(unpack, member, "a hard link to an absent member");
}

/* The whole member, of @size bytes, into memory. */
static int read_all(struct bid_unarchive *unpack, size_t size, char **ret_data)
{
	bid_auto_free char *data = malloc(size + 1);
	size_t len = 0;

	if (!data)
		return -ENOMEM;
	while (len < size) {
		ssize_t n = bid_unarchive_read(unpack, data + len, size - len);

		if (n <= 0)
			return n < 0 ? (int)n : -EBADMSG;
		len += (size_t)n;
	}
	*ret_data = bid_steal(data);
	return 0;
}

static int take_data(struct bid_unarchive *unpack, const struct bid_artifact *artifact, const char *data, size_t len,
		     struct bid_archive_member *member)
{
	struct bid_added added;
	int r;

	if (!bid_member_has_form(artifact->kind, data, len))
		return refuse_member(unpack, member, "not of the form of %s", bid_kind_name(artifact->kind));
	r = artifact->kind == BID_KIND_KALLSYMS ? bid_kallsyms_check(data, len) : 0;
	if (r < 0)
		return refuse_member(unpack, member, "%s", bid_kallsyms_why(r));
	r = bid_store_add_data(unpack->store, artifact, 0444, data, len, &added);
	if (r == -ENOENT && artifact->kind == BID_KIND_PROBES)
		return -EINPROGRESS;
	if (r < 0)
		return fail_member(unpack, member, r);
	member->state = added.known ? BID_MEMBER_KNOWN : BID_MEMBER_ADDED;
	return 0;
}

static int put_off(struct bid_unarchive *unpack, const struct bid_archive_member *member, char *data)
{
	struct bid_unarchive_later *larger = reallocarray(unpack->later, unpack->n_later + 1, sizeof(*larger));
	struct bid_unarchive_later *later;

	if (!larger) {
		free(data);
		return -ENOMEM;
	}
	unpack->later = larger;
	later = &larger[unpack->n_later++];
	*later = (struct bid_unarchive_later){ .name = strdup(member->name), .id = member->id, .data = data, .len = member->size };
	unpack->later_size += member->size + strlen(member->name) + sizeof(*later);
	return later->name ? -EINPROGRESS : -ENOMEM;
}

static int take_text(struct bid_unarchive *unpack, const struct bid_member_name *name, struct bid_archive_member *member)
{
	struct bid_artifact artifact = { .id = name->id, .kind = name->kind };
	bid_auto_free char *data = NULL;
	int r;

	if (member->size > BID_LIMIT_KALLSYMS)
		return refuse_member(unpack, member, "larger than any %s", bid_kind_name(name->kind));
	if (member->size == 0 && name->kind == BID_KIND_PROBES) {
		member->state = BID_MEMBER_KNOWN; /* empty, and perf creates such files at each lookup */
		return 0;
	}
	r = read_all(unpack, member->size, &data);
	if (r == 0)
		r = take_data(unpack, &artifact, data, member->size, member);
	if (r != -EINPROGRESS)
		return r;
	if (unpack->later_size + member->size > LATER_MAX)
		return refuse_member(unpack, member, "the store has nothing of its build");
	return put_off(unpack, member, bid_steal(data));
}

int bid_unarchive_take_later(struct bid_unarchive *unpack, const struct bid_unarchive_later *later,
			     struct bid_archive_member *member)
{
	struct bid_artifact artifact = { .id = later->id, .kind = BID_KIND_PROBES };
	int r = take_data(unpack, &artifact, later->data, later->len, member);

	return r == -EINPROGRESS ? refuse_member(unpack, member, "the store has nothing of its build") : r;
}

struct unpacked {
	struct bid_unarchive *unpack;
	struct bid_txn *txn;
	int bomb; /* -EFBIG if this one ends the unpacking */
};

/* Write unpacked bytes of a compressed member; they count as output of the archive. */
static int write_unpacked(void *user, const void *data, size_t len)
{
	struct unpacked *to = user;

	to->bomb = bid_unarchive_count(to->unpack, len);
	return to->bomb < 0 ? to->bomb : bid_txn_write(to->txn, data, len);
}

/* Copy the member into @txn: first the @head bytes in @buffer, then the rest. Returns 1 for a wrong member. */
static int copy_member(struct bid_unarchive *unpack, struct bid_txn *txn, char *buffer, size_t head)
{
	ssize_t n = (ssize_t)head;
	int r;

	do {
		r = bid_txn_write(txn, buffer, (size_t)n);
		if (r < 0)
			return r == -EBADMSG ? 1 : r;
		n = bid_unarchive_read(unpack, buffer, HEAD);
	} while (n > 0);
	return (int)n;
}

/* As copy_member(), for a compressed module, which the store keeps unpacked. Returns 1 if it cannot be unpacked. */
static int copy_packed(struct bid_unarchive *unpack, struct bid_txn *txn, char *buffer, size_t head, uint64_t max)
{
	bid_auto_fd int packed = memfd_create("module", MFD_CLOEXEC);
	struct unpacked to = { .unpack = unpack, .txn = txn };
	ssize_t n = (ssize_t)head;
	off_t at = 0;
	int r;

	if (packed < 0)
		return -errno;
	do {
		r = at > MODULE_MAX ? 1 : bid_pwrite_full(packed, buffer, (size_t)n, at);
		if (r != 0)
			return r;
		at += n;
		n = bid_unarchive_read(unpack, buffer, HEAD);
	} while (n > 0);
	r = n < 0 ? (int)n : bid_elf_is_packed(packed);
	if (r <= 0)
		return r < 0 ? r : 1;
	r = bid_elf_unpack(packed, max < BID_ELF_UNPACKED_MAX ? max : BID_ELF_UNPACKED_MAX, write_unpacked, &to);
	if (to.bomb < 0)
		return to.bomb;
	return r == -EBADMSG || r == -EFBIG ? 1 : r;
}

/* Do the first bytes prove that the file is wrong? They detect most wrong files before any write. */
static bool is_wrong(struct bid_unarchive *unpack, struct bid_archive_member *member, const char *head, size_t len)
{
	char hex[BID_ID_HEX_MAX];
	struct bid_id carried;

	if (bid_elf_build_id_in(head, len, &carried) != 0 || bid_id_answers(&carried, &member->id))
		return false;
	refuse_member(unpack, member, "carries the build-id '%s'", bid_id_format(&carried, hex));
	return true;
}

static void cleanup_txn(struct bid_txn **txn)
{
	bid_txn_free(*txn);
}

static int commit_member(struct bid_unarchive *unpack, const struct bid_member_name *name, struct bid_txn *txn,
			 struct bid_archive_member *member)
{
	struct bid_file file = BID_FILE_NONE;
	int r = bid_txn_commit(txn, NULL, &file);

	bid_file_release(&file);
	/* another process may have fetched the artifact meanwhile */
	if (r == 0)
		r = bid_store_mark_added(unpack->store, &(struct bid_artifact){ .id = name->id, .kind = name->kind });
	if (r == -EBADMSG || r == -ESTALE)
		return refuse_member(unpack, member, "%s", bid_txn_reason(txn)[0] ? bid_txn_reason(txn) : bid_strerror(r));
	if (r < 0)
		return fail_member(unpack, member, r);
	member->state = BID_MEMBER_ADDED;
	return 0;
}

static int take_elf(struct bid_unarchive *unpack, const struct bid_member_name *name, struct bid_archive_member *member,
		    uint64_t max)
{
	struct bid_artifact artifact = { .id = name->id, .kind = name->kind };
	bid_cleanup(cleanup_txn) struct bid_txn *txn = NULL;
	bid_auto_free char *buffer = malloc(HEAD);
	size_t len = 0;
	ssize_t n = 1;
	int r;

	if (!buffer)
		return -ENOMEM;
	for (; len < HEAD && n > 0; len += (size_t)n) {
		n = bid_unarchive_read(unpack, buffer + len, HEAD - len);
		if (n < 0)
			return (int)n;
	}
	r = bid_txn_begin(unpack->store, &artifact, &txn);
	if (r == 0 && name->path[0])
		r = bid_txn_set_path(txn, name->path);
	if (r < 0)
		return fail_member(unpack, member, r);
	if (len < strlen(ELFMAG) || memcmp(buffer, ELFMAG, strlen(ELFMAG)) != 0)
		r = copy_packed(unpack, txn, buffer, len, max);
	else if (is_wrong(unpack, member, buffer, len))
		return 0;
	else
		r = copy_member(unpack, txn, buffer, len);
	if (r > 0)
		return refuse_member(unpack, member, "%s",
				     *bid_txn_reason(txn) ? bid_txn_reason(txn) : "not an ELF file, nor a good one that is packed");
	return r < 0 ? r : commit_member(unpack, name, txn, member);
}

int bid_unarchive_take(struct bid_unarchive *unpack, const struct bid_member_name *name, struct bid_archive_member *member)
{
	uint64_t max = unpack->config->max_size ? unpack->config->max_size : UINT64_C(16) << 30;
	int r;

	if (member->size > max)
		return refuse_member(unpack, member, "%llu bytes, the limit is %llu", (unsigned long long)member->size,
				     (unsigned long long)max);
	r = recognise_member(unpack, name);
	if (r < 0)
		return fail_member(unpack, member, r);
	if (r > 0) {
		member->state = BID_MEMBER_KNOWN;
		return 0;
	}
	return bid_kind_is_elf(name->kind) ? take_elf(unpack, name, member, max) : take_text(unpack, name, member);
}
