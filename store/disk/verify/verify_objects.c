// SPDX-License-Identifier: LGPL-2.1-or-later
/* What lies under each name: is it what the name says, and can it be found? */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bid/elf.h>
#include <bid/error.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "disk/layout.h"
#include "disk/links.h"
#include "disk/names.h"
#include "disk/publish/join.h"
#include "disk/record.h"
#include "disk/root.h"
#include "disk/store.h"
#include "disk/verify/aside.h"
#include "disk/verify/verify.h"

enum {
	MAX_UNPACKED = 1 << 30, /* bytes; as in serving */
	TEXT_MAX = 256,
	FRESH_S = 60, /* a directory that is younger may be about to be filled */
};

struct memory {
	int fd;
	off_t len;
};

static int write_memory(void *user, const void *data, size_t len)
{
	struct memory *memory = user;
	int r = bid_pwrite_full(memory->fd, data, len, memory->len);

	memory->len += (off_t)len;
	return r;
}

/* The id of what is in the compressed file at @fd. */
static int identify_packed(int fd, struct bid_id *ret_id)
{
	bid_auto_fd int unpacked = memfd_create("bid-verify", MFD_CLOEXEC);
	struct memory memory = { .fd = unpacked };
	int r;

	if (unpacked < 0)
		return -errno;
	r = bid_elf_unpack(fd, MAX_UNPACKED, write_memory, &memory);
	return r < 0 ? r : bid_elf_identify(unpacked, ret_id);
}

/* What the file at @fd is judged to be. @ret_kind is set, and @text says why, if it is not right. Returns whether it is. */
static bool judge(int fd, const struct bid_request *request, struct bid_id *ret_id, enum bid_finding_kind *ret_kind,
		  char text[static TEXT_MAX])
{
	char hex[BID_ID_HEX_MAX];
	int r = bid_elf_identify(fd, ret_id);

	if (r == -ENOEXEC && request->kind == BID_KIND_ELF && bid_elf_is_packed(fd) > 0)
		r = identify_packed(fd, ret_id);
	*ret_kind = BID_FINDING_WRONG;
	if (r == -ENOEXEC)
		snprintf(text, TEXT_MAX, "is not an ELF file");
	else if (r == -ENODATA)
		snprintf(text, TEXT_MAX, "has no build-id");
	else if (r == -EBADMSG || r == -EFBIG)
		snprintf(text, TEXT_MAX, "cannot be unpacked");
	else if (r < 0)
		snprintf(text, TEXT_MAX, "%s", bid_strerror(r));
	else if (!bid_id_answers(ret_id, &request->id))
		snprintf(text, TEXT_MAX, "carries the build-id '%s'", bid_id_format(ret_id, hex));
	else
		return true;
	if (r < 0 && r != -ENOEXEC && r != -ENODATA && r != -EBADMSG && r != -EFBIG)
		*ret_kind = BID_FINDING_UNREADABLE;
	return false;
}

static int tick(void *user, uint64_t bytes)
{
	struct bid_verify *verify = user;

	verify->stats.bytes += bytes;
	return bid_verify_progress(verify);
}

int bid_verify_digest(struct bid_verify *verify, int fd, char ret_digest[static BID_DIGEST_MAX])
{
	return bid_digest_file(fd, tick, verify, ret_digest);
}

static int digest_failed(int r, enum bid_finding_kind *ret_kind, char text[static TEXT_MAX])
{
	/* what the callback returned, and memory, end the whole check; the disk's errors are this object's */
	if (r > 0 || r == -ENOMEM || r == -ECANCELED)
		return r;
	*ret_kind = BID_FINDING_UNREADABLE;
	snprintf(text, TEXT_MAX, "%s", bid_strerror(r));
	return 0;
}

/*
 * All of the bytes: against the digest that was recorded, and without one as an ELF file. *@ret_right is set; if it is not, the
 * kind and the text are too. Returns 0 or what ends the check.
 */
static int judge_deep(struct bid_verify *verify, int fd, const struct stat *st, const struct bid_request *request, bool *ret_right,
		      enum bid_finding_kind *ret_kind, char text[static TEXT_MAX])
{
	char digest[BID_DIGEST_MAX];
	struct bid_elf_info info;
	json_t *record = NULL;
	const char *recorded;
	bool same_size;
	int r, examined;

	*ret_right = false;
	r = bid_verify_digest(verify, fd, digest);
	if (r != 0)
		return digest_failed(r, ret_kind, text);
	if (bid_record_read(verify->store, request, &record) < 0)
		record = NULL;
	recorded = json_string_value(json_object_get(record, "digest"));
	same_size = json_integer_value(json_object_get(record, "size")) == (json_int_t)st->st_size;

	*ret_kind = BID_FINDING_CORRUPT;
	if (recorded && bid_digest_valid(recorded) && same_size) {
		verify->stats.digests++;
		*ret_right = strcmp(recorded, digest) == 0;
		snprintf(text, TEXT_MAX, "has other bytes than were recorded");
	} else {
		/* a packed file was read to its end already */
		examined = bid_elf_examine(fd, &info);
		*ret_right = examined == 0 || examined == -ENOEXEC;
		snprintf(text, TEXT_MAX, "is damaged or cut short");
		/* from now on rot can be told: the record holds as long as the size is the recorded one */
		if (*ret_right && verify->config->repair && record && same_size)
			bid_record_set(verify->store, request, "digest", digest);
	}
	json_decref(record);
	return 0;
}

int bid_verify_rerecord(struct bid_verify *verify, const struct bid_request *request, int fd)
{
	struct bid_origin origin = { .how = "found" };
	char digest[BID_DIGEST_MAX];
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	r = bid_digest_file(fd, NULL, NULL, digest);
	if (r < 0)
		return r;
	return bid_record_write(verify->store, &(struct bid_record){
						       .request = *request,
						       .origin = &origin,
						       .digest = digest,
						       .size = (uint64_t)st.st_size,
					       });
}

int bid_verify_object(struct bid_verify *verify, int dir, const char *name, const char *path, const struct bid_request *request,
		      bool *ret_right)
{
	char text[TEXT_MAX], aside[PATH_MAX];
	struct bid_finding finding = { .path = path, .request = *request, .text = text };
	bid_auto_fd int fd = -1;
	struct stat st;
	struct bid_id carried;
	bool right = false;
	int r;

	*ret_right = false;
	r = bid_root_open(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);
	if (r == 0 && verify->config->deep && fstat(fd, &st) < 0)
		r = -errno;
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		finding.kind = BID_FINDING_UNREADABLE;
		snprintf(text, sizeof(text), "%s", bid_strerror(r));
		return bid_verify_found(verify, &finding);
	}
	verify->stats.objects++;
	right = judge(fd, request, &carried, &finding.kind, text);
	r = 0;
	if (right && verify->config->deep)
		r = judge_deep(verify, fd, &st, &(struct bid_request){ carried, request->kind }, &right, &finding.kind, text);
	if (r == 0)
		r = bid_verify_progress(verify);
	*ret_right = right;
	if (r != 0 || right)
		return r;
	if (verify->config->repair && finding.kind != BID_FINDING_UNREADABLE)
		finding.vacated = bid_aside_move(verify->store, path, fd, request, aside, sizeof(aside)) == 0;
	if (finding.vacated) {
		bid_records_drop(verify->store, &request->id, 1U << request->kind, request->kind == BID_KIND_ELF);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "; set aside as '%.150s'", aside);
	}
	finding.repaired = finding.vacated;
	return bid_verify_found(verify, &finding);
}

/* Are the two names the same files, as far as both have any that carry an id? */
static int is_joined(struct bid_verify *verify, const struct bid_place_of *entry, const char *target)
{
	struct stat one, other;
	char path[PATH_MAX + 16];

	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		const char *name = bid_kind_store_name((enum bid_kind)kind);

		if (!(entry->kinds & 1U << kind) || kind == BID_KIND_PROBES)
			continue;
		snprintf(path, sizeof(path), "%s/%s", entry->path, name);
		if (bid_root_stat(bid_store_root(verify->store), entry->is_file ? entry->path : path, &one) < 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", target, name);
		if (bid_root_stat(bid_store_root(verify->store), path, &other) < 0 || one.st_ino != other.st_ino ||
		    one.st_dev != other.st_dev)
			return false;
	}
	return true;
}

/* Is it one of the directories in which readers look without a link? */
static bool is_known_place(const struct bid_place_of *entry)
{
	char path[BID_LAYOUT_MAX];

	for (unsigned i = 0; i < BID_PLACE_KNOWN_MAX; i++)
		if (strcmp(bid_layout_under(bid_place_known(i), &entry->id, path), entry->path) == 0)
			return true;
	return false;
}

/* Records of its files are not stale, though they cannot be found by the id. */
static int remember_orphan(struct bid_verify *verify, const struct bid_id *id)
{
	if (bid_array_grow(verify->orphans, verify->n_orphans, verify->orphan_room) < 0)
		return -ENOMEM;
	verify->orphans[verify->n_orphans++] = *id;
	return 0;
}

/* Is the last component of @path, which is an id, spelled as links are? */
static bool is_spelled_right(const char *path, const struct bid_id *id)
{
	const char *slash = strrchr(path, '/');
	char hex[BID_ID_HEX_MAX];

	return strcmp(slash ? slash + 1 : path, bid_id_format(id, hex)) == 0;
}

int bid_verify_adopt(struct bid_verify *verify, const struct bid_place_of *entry)
{
	struct bid_finding finding = { .kind = BID_FINDING_ORPHAN, .path = entry->path, .request = { .id = entry->id } };
	bool repair = verify->config->repair;
	char target[PATH_MAX];
	int fan;

	if (!bid_verify_wants(verify, &entry->id) || entry->kinds == 0)
		return 0;
	fan = bid_verify_fan(verify, &entry->id);
	/* so it is with most, and one system call says it */
	if (fan >= 0 && bid_link_leads(fan, &entry->id, entry->path))
		return verify->config->repair || !is_spelled_right(entry->path, &entry->id) ? 0
											    : bid_verify_linked(verify, &entry->id);
	switch (bid_link_look(verify->store, &entry->id, target)) {
	case BID_LINK_GOOD:
		if (strcmp(target, entry->path) == 0 || is_known_place(entry))
			return 0;
		if (is_joined(verify, entry, target)) {
			if (repair)
				bid_names_note(verify->store, &entry->id, entry->path);
			return 0;
		}
		finding.text = "has other files than the name to which the link of its id leads";
		finding.repaired = repair && bid_join(verify->store, entry, target) == 0;
		if (finding.repaired)
			bid_names_note(verify->store, &entry->id, entry->path);
		break;
	case BID_LINK_NONE:
	case BID_LINK_DANGLING:
	case BID_LINK_ASTRAY:
		finding.text = "no link leads to it";
		finding.repaired = repair && bid_link_point(verify->store, &entry->id, entry->path) == 0;
		break;
	default:
		finding.text = "in the place of its link is something else";
	}
	if (verify->again && !finding.repaired)
		return 0;
	if (!finding.repaired && remember_orphan(verify, &entry->id) < 0)
		return -ENOMEM;
	return bid_verify_found(verify, &finding);
}

/* Nothing lies in it, and nothing has for a while. */
static int check_empty(struct bid_verify *verify, const struct bid_place_of *entry)
{
	struct bid_finding finding = {
		.kind = BID_FINDING_EMPTY, .path = entry->path, .request = { .id = entry->id }, .text = "nothing lies in it"
	};
	struct stat st;

	if (fstat(entry->fd, &st) < 0 || st.st_ctim.tv_sec + FRESH_S > time(NULL))
		return 0;
	if (verify->config->repair) {
		/* the directory first: if it is being filled it stays, and so does its link */
		bid_entry_prune(verify->store, entry->path);
		finding.repaired = bid_root_stat(bid_store_root(verify->store), entry->path, &st) == -ENOENT;
		if (finding.repaired && bid_link_drop(verify->store, &entry->id, entry->path) == 0)
			verify->unlinked = true;
	}
	return bid_verify_found(verify, &finding);
}

int bid_verify_entry(struct bid_verify *verify, const struct bid_place_of *entry)
{
	struct bid_place_of left = *entry;
	char path[PATH_MAX + 16];
	int r;

	if (!bid_verify_wants(verify, &entry->id))
		return 0;
	verify->stats.names++;
	if (entry->kinds == 0)
		return check_empty(verify, entry);
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		struct bid_request request = { .id = entry->id, .kind = (enum bid_kind)kind };
		bool right;

		if (!(entry->kinds & 1U << kind) || !bid_kind_is_elf(request.kind))
			continue;
		snprintf(path, sizeof(path), "%s/%s", entry->path, bid_kind_store_name(request.kind));
		if (entry->is_file)
			r = bid_verify_object(verify, bid_store_root(verify->store), entry->path, entry->path, &request, &right);
		else
			r = bid_verify_object(verify, entry->fd, bid_kind_store_name(request.kind), path, &request, &right);
		if (r != 0)
			return r;
		if (!right)
			left.kinds &= ~(1U << kind);
	}
	if (left.kinds != entry->kinds && verify->config->repair) {
		r = bid_entry_take(verify->store, entry->path, 0);
		if (r <= 0)
			bid_link_leave(verify->store, &entry->id, entry->path);
		verify->unlinked = true;
		left.kinds = r > 0 ? (unsigned)r : 0;
	}
	return left.kinds ? bid_verify_adopt(verify, &left) : 0;
}
