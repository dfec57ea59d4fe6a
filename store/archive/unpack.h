/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Unpacking: unpack.c goes through the archive, take.c brings one member into the store, and both read by read.c. */
#ifndef BID_ARCHIVE_UNPACK_H
#define BID_ARCHIVE_UNPACK_H

#include "api/archive.h"
#include "archive/member.h"

struct archive;

/* Probe definitions that came before the rest of their build; they are taken at the end. */
struct bid_unpack_later {
	char *name; /* owned */
	struct bid_id id;
	char *data; /* owned */
	size_t len;
};

struct bid_unpack {
	struct bid_store *store;
	const struct bid_unpack_config *config;
	struct archive *file; /* owned */
	struct archive *archive; /* whose members are read: the file, or an archive in it; borrowed */
	uint64_t unpacked; /* bytes that came out of both so far, and out of packed members */
	struct bid_unpack_later *later; /* owned */
	size_t n_later, later_size;
	char why[256]; /* a member was refused */
};

/* Why @archive could not be read: -EBADMSG for a damaged one, unless it is the file that could not be read. */
int bid_unpack_error(struct archive *archive);

/* Read on in the current member. Bytes, 0 at its end, or a negative errno that ends the unpacking. */
ssize_t bid_unpack_read(struct bid_unpack *unpack, void *buffer, size_t len);

/* @len more bytes came out of it. Returns 0, or -EFBIG if those are too many for what was read of the file: a bomb. */
int bid_unpack_count(struct bid_unpack *unpack, size_t len);

/*
 * Take the current member, a file that is called @name. member->state and what belongs to it say what came of it; -EINPROGRESS if
 * it is put off. Other errors end the unpacking.
 */
int bid_unpack_take(struct bid_unpack *unpack, const struct bid_member_name *name, struct bid_archive_member *member);

/* The same for one that is a hard link: it has no bytes here, but an earlier one of the same build had. */
int bid_unpack_take_known(struct bid_unpack *unpack, const struct bid_member_name *name, struct bid_archive_member *member);

/* Take what was put off. */
int bid_unpack_take_later(struct bid_unpack *unpack, const struct bid_unpack_later *later, struct bid_archive_member *member);

#endif
