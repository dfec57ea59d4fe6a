/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Unpacking: unarchive.c goes through the archive, add_member.c brings one member into the store. */
#ifndef BID_ARCHIVE_UNARCHIVE_H
#define BID_ARCHIVE_UNARCHIVE_H

#include "api/archive.h"
#include "archive/member_name.h"

struct archive;

/* probe definitions that precede the rest of their build; added at the end */
struct bid_unarchive_later {
	char *name; /* owned */
	struct bid_id id;
	char *data; /* owned */
	size_t len;
};

struct bid_unarchive {
	struct bid_store *store;
	const struct bid_unpack_config *config;
	struct archive *file; /* owned */
	struct archive *archive; /* borrowed; the archive being read: the file, or an archive inside it */
	uint64_t unpacked; /* bytes of output so far, from both and from compressed members */
	struct bid_unarchive_later *later; /* owned */
	size_t n_later, later_size;
	char why[256]; /* a member was refused */
};

/* Return the error of reading @archive: -EBADMSG for a damaged archive, or the error of reading the file. */
int bid_unarchive_error(struct archive *archive);

/* Read more of the current member. Returns the number of bytes, 0 at its end, or a negative errno that ends the unpacking. */
ssize_t bid_unarchive_read(struct bid_unarchive *unpack, void *buffer, size_t len);

/* Count @len more bytes of output. Returns 0, or -EFBIG if the output is too large for the input: a bomb. */
int bid_unarchive_count(struct bid_unarchive *unpack, size_t len);

/*
 * Add the current member, a file called @name. member->state and its fields have the result; -EINPROGRESS if it is deferred. Other
 * errors end the unpacking.
 */
int bid_unarchive_take(struct bid_unarchive *unpack, const struct bid_member_name *name, struct bid_archive_member *member);

/* As bid_unarchive_take(), for a hard link: its bytes belong to an earlier member of the same build. */
int bid_unarchive_take_known(struct bid_unarchive *unpack, const struct bid_member_name *name, struct bid_archive_member *member);

/* Add a deferred member. */
int bid_unarchive_take_later(struct bid_unarchive *unpack, const struct bid_unarchive_later *later,
			     struct bid_archive_member *member);

#endif
