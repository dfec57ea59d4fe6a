/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A pack: the records of many artifacts in one file, which is written once and never changed (docs/FORMAT.md, "A pack"). Only
 * what is never evicted is in one. Nothing in the file is believed: a text counts if it has its own sum, and is never mapped into
 * memory, because a file that is cut would be a SIGBUS then.
 */
#ifndef BID_DISK_PACK_H
#define BID_DISK_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bid/artifact.h>

enum {
	BID_PACK_TEXT_MAX = 64 * 1024, /* bytes of one record */
	BID_PACK_ALL = 256, /* no first byte of a key */
};

/* What a record is found by: a hash of the kind of an artifact and of the id that it is filed under. */
struct bid_pack_key {
	uint64_t high, low;
};

/* As it is in the file. */
struct bid_pack_entry {
	struct bid_pack_key key;
	uint64_t offset; /* of the text, from the beginning of the file */
	uint32_t len; /* bytes of it */
	uint32_t none; /* 0 */
};

/* A file that is open. Any number of threads may read it. */
struct bid_pack {
	int fd; /* -1 in a released one; owned */
	uint64_t n; /* records */
	uint64_t size; /* bytes that the file had when it was written */
	uint64_t index_sum;
};

#define BID_PACK_NONE ((struct bid_pack){ .fd = -1 })

/* A record on its way into a pack: one in memory, or one of another pack. */
struct bid_pack_item {
	struct bid_pack_key key;
	unsigned rank; /* of several with one key the lowest counts */
	const struct bid_pack *from; /* borrowed; NULL: text is it */
	char *text; /* borrowed */
	uint64_t offset; /* in from */
	uint32_t len;
};

/* What becomes of records on their way from one pack into another. */
struct bid_pack_amender {
	/*
	 * May change @text, of *@len bytes, in room of BID_PACK_TEXT_MAX; what it leaves there ends with its sum again. Returns
	 * whether it goes into the new pack.
	 */
	bool (*amend)(void *user, const struct bid_pack_key *key, char *text, size_t *len);
	void *user;
};

struct bid_pack_key bid_pack_key(const struct bid_id *filed, enum bid_kind kind);

/*
 * Take the file open at @fd for a pack; only then is @fd taken over. Returns 0, -EBADMSG if it is damaged or none,
 * -EPROTONOSUPPORT if it is of another version or byte order, or as pread(2).
 */
int bid_pack_open(int fd, struct bid_pack *ret_pack);

void bid_pack_release(struct bid_pack *pack);

/* Where the record of @key is. -ENOENT if it has none, -EBADMSG if the index is cut short, or as pread(2). */
int bid_pack_find(const struct bid_pack *pack, const struct bid_pack_key *key, struct bid_pack_entry *ret_entry);

/* The text of @entry with a NUL behind it. The caller frees @ret_text. -EBADMSG if it is damaged, or as pread(2). */
int bid_pack_read(const struct bid_pack *pack, const struct bid_pack_entry *entry, char **ret_text);

/*
 * Call @fn for every record whose key begins with the byte @first, or BID_PACK_ALL, in the order of the keys: with its text, of
 * entry->len bytes and without an end, or with NULL if it is damaged. A non-zero return ends it and is returned.
 */
int bid_pack_each(const struct bid_pack *pack, unsigned first,
		  int (*fn)(void *user, const struct bid_pack_entry *entry, char *text), void *user);

/* Is it what was written, as far as that shows without reading the texts? Returns 0, -EBADMSG, or as pread(2). */
int bid_pack_check(const struct bid_pack *pack);

/* Does the record @text, of @len bytes, end with the sum of what is before? It is changed meanwhile. */
bool bid_pack_is_sound(char *text, size_t len);

/*
 * Give the JSON object @text of @len bytes, which has no sum, its sum as the last key. It has room for BID_PACK_SUM more bytes.
 * Returns the new length.
 */
enum { BID_PACK_SUM = 26 };
size_t bid_pack_seal(char *text, size_t len);

/* All records of @pack as items: @items has room for pack->n. Returns 0, -EBADMSG if the index is cut short, or as pread(2). */
int bid_pack_items(const struct bid_pack *pack, unsigned rank, struct bid_pack_item *items);

/*
 * Write the @n items, in any order, as a pack to the empty file @fd, as @amender, if not NULL, wants them. Those whose text is
 * damaged are left out. Returns how many are in it, or a negative errno. If that is none of any the file is no pack.
 */
int64_t bid_pack_write(int fd, struct bid_pack_item *items, size_t n, const struct bid_pack_amender *amender);

#endif
