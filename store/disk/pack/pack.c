// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reading a pack. */
#include "disk/pack/pack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "disk/pack/pack_format.h"

enum {
	WINDOW = 64, /* entries that are read at a time while one is looked for: 2 KiB */
	GUESSES = 8, /* by what the keys are; then by halves, in an index that is not what it should be */
	TEXTS = 4 * BID_PACK_TEXT_MAX, /* bytes of texts that are read at a time then */
};

#define SUM_BEGIN ",\"sum\":\""

struct bid_pack_key bid_pack_key(const struct bid_id *filed, enum bid_kind kind)
{
	struct {
		uint8_t kind, len, bytes[BID_ID_MAX];
	} key = { (uint8_t)kind, filed->len, { 0 } };
	XXH128_hash_t hash;

	memcpy(key.bytes, filed->bytes, sizeof(key.bytes));
	hash = XXH3_128bits(&key, sizeof(key));
	return (struct bid_pack_key){ hash.high64, hash.low64 };
}

static void put_sum(char to[static BID_PACK_SUM + 1], unsigned long long sum)
{
	snprintf(to, BID_PACK_SUM + 1, SUM_BEGIN "%016llx\"}", sum);
}

/* The last '}' of the object goes, and comes again behind the sum. */
size_t bid_pack_seal(char *text, size_t len)
{
	put_sum(text + len - 1, XXH3_64bits(text, len));
	return len - 1 + BID_PACK_SUM;
}

bool bid_pack_is_sound(char *text, size_t len)
{
	char wanted[BID_PACK_SUM + 1], *end;

	if (len <= BID_PACK_SUM)
		return false;
	end = text + len - BID_PACK_SUM;
	if (*end != SUM_BEGIN[0])
		return false;
	/* as it was before it was sealed */
	*end = '}';
	put_sum(wanted, XXH3_64bits(text, len - BID_PACK_SUM + 1));
	*end = SUM_BEGIN[0];
	return memcmp(end, wanted, BID_PACK_SUM) == 0;
}

int bid_pack_open(int fd, struct bid_pack *ret_pack)
{
	struct bid_pack_header header;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	n = S_ISREG(st.st_mode) ? bid_pread_full(fd, &header, sizeof(header), 0) : 0;
	if (n < 0)
		return (int)n;
	if (n != sizeof(header) || memcmp(header.magic, BID_PACK_MAGIC, sizeof(header.magic)) != 0)
		return -EBADMSG;
	if (header.version != BID_PACK_VERSION || header.order != BID_PACK_ORDER)
		return -EPROTONOSUPPORT;
	/* one that was cut in its texts still has those before */
	if (header.sum != bid_pack_header_sum(&header) ||
	    header.n > ((uint64_t)st.st_size - sizeof(header)) / sizeof(struct bid_pack_entry))
		return -EBADMSG;
	*ret_pack = (struct bid_pack){ .fd = fd, .n = header.n, .size = header.size, .index_sum = header.index_sum };
	return 0;
}

void bid_pack_release(struct bid_pack *pack)
{
	bid_close(pack->fd);
	pack->fd = -1;
}

int bid_pack_read_entries(const struct bid_pack *pack, uint64_t at, size_t n, struct bid_pack_entry *entries)
{
	ssize_t got = bid_pread_full(pack->fd, entries, n * sizeof(*entries),
				     (off_t)(sizeof(struct bid_pack_header) + at * sizeof(*entries)));

	if (got < 0)
		return (int)got;
	return (size_t)got == n * sizeof(*entries) ? 0 : -EBADMSG;
}

/* A part of the index, and between which keys it is. */
struct part {
	uint64_t low, high; /* entries */
	uint64_t low_key, high_key;
};

/* Where in @part, which is larger than a window, the window with @key begins most likely: keys are evenly spread. */
static uint64_t guess(const struct part *part, const struct bid_pack_key *key, unsigned step)
{
	uint64_t n = part->high - part->low, at = n / 2;

	if (step < GUESSES && part->low_key <= key->high && key->high <= part->high_key && part->low_key < part->high_key)
		at = (uint64_t)((double)(key->high - part->low_key) / (double)(part->high_key - part->low_key) * (double)n);
	at = at > WINDOW / 2 ? at - WINDOW / 2 : 0;
	return part->low + (at < n - WINDOW ? at : n - WINDOW);
}

/* The first entry whose key is not below @key, if it was read. Returns 1 and *@ret_entry, or 0 if only its number is known. */
static int search(const struct bid_pack *pack, const struct bid_pack_key *key, uint64_t *ret_at, struct bid_pack_entry *ret_entry)
{
	struct part part = { .high = pack->n, .high_key = UINT64_MAX };
	struct bid_pack_entry window[WINDOW];

	for (unsigned step = 0; part.low < part.high; step++) {
		uint64_t n = part.high - part.low, at = part.low;
		int r;

		if (n > WINDOW) {
			at = guess(&part, key, step);
			n = WINDOW;
		}
		r = bid_pack_read_entries(pack, at, n, window);
		if (r < 0)
			return r;
		if (at > part.low && bid_pack_compare(key, &window[0].key) < 0) {
			part.high = at;
			part.high_key = window[0].key.high;
			continue;
		}
		for (uint64_t i = 0; i < n; i++) {
			if (bid_pack_compare(&window[i].key, key) < 0)
				continue;
			*ret_at = at + i;
			*ret_entry = window[i];
			return 1;
		}
		part.low = at + n;
		part.low_key = window[n - 1].key.high;
	}
	*ret_at = part.low;
	return 0;
}

int bid_pack_find(const struct bid_pack *pack, const struct bid_pack_key *key, struct bid_pack_entry *ret_entry)
{
	struct bid_pack_entry entry;
	uint64_t at;
	int r = search(pack, key, &at, &entry);

	if (r < 0)
		return r;
	if (r == 0 || bid_pack_compare(&entry.key, key) != 0)
		return -ENOENT;
	*ret_entry = entry;
	return 0;
}

int bid_pack_read(const struct bid_pack *pack, const struct bid_pack_entry *entry, char **ret_text)
{
	bid_auto_free char *text = NULL;
	ssize_t n;

	if (!bid_pack_may_be_at(entry->offset, entry->len))
		return -EBADMSG;
	text = malloc(entry->len + 1);
	if (!text)
		return -ENOMEM;
	n = bid_pread_full(pack->fd, text, entry->len, (off_t)entry->offset);
	if (n < 0)
		return (int)n;
	if ((size_t)n != entry->len || !bid_pack_is_sound(text, entry->len))
		return -EBADMSG;
	text[entry->len] = '\0';
	*ret_text = bid_steal(text);
	return 0;
}

/* Texts that were read together: they lie in the order of the index. */
struct texts {
	char *data; /* owned */
	uint64_t offset;
	size_t len;
};

/* The text of @entry, or NULL if it is damaged; a negative errno if it cannot be read. */
static int text_of(const struct bid_pack *pack, struct texts *texts, const struct bid_pack_entry *entry, char **ret_text)
{
	*ret_text = NULL;
	if (!bid_pack_may_be_at(entry->offset, entry->len))
		return 0;
	if (entry->offset < texts->offset || entry->offset + entry->len > texts->offset + texts->len) {
		ssize_t n = bid_pread_full(pack->fd, texts->data, TEXTS, (off_t)entry->offset);

		if (n < 0)
			return (int)n;
		texts->offset = entry->offset;
		texts->len = (size_t)n;
	}
	if (entry->len > texts->offset + texts->len - entry->offset)
		return 0;
	*ret_text = texts->data + (entry->offset - texts->offset);
	if (!bid_pack_is_sound(*ret_text, entry->len))
		*ret_text = NULL;
	return 0;
}

int bid_pack_each(const struct bid_pack *pack, unsigned first,
		  int (*fn)(void *user, const struct bid_pack_entry *entry, char *text), void *user)
{
	bid_auto_free struct bid_pack_entry *entries = calloc(BID_PACK_BLOCK, sizeof(*entries));
	bid_auto_free char *data = malloc(TEXTS);
	struct texts texts = { .data = data };
	uint64_t at = 0;
	int r = 0;

	if (!entries || !data)
		return -ENOMEM;
	if (first != BID_PACK_ALL)
		r = search(pack, &(struct bid_pack_key){ (uint64_t)first << 56, 0 }, &at, entries);
	while (r >= 0 && at < pack->n) {
		size_t n = pack->n - at < BID_PACK_BLOCK ? (size_t)(pack->n - at) : BID_PACK_BLOCK;

		r = bid_pack_read_entries(pack, at, n, entries);
		for (size_t i = 0; r == 0 && i < n; i++) {
			char *text;

			if (first != BID_PACK_ALL && entries[i].key.high >> 56 != first)
				return 0;
			r = text_of(pack, &texts, &entries[i], &text);
			if (r == 0)
				r = fn(user, &entries[i], text);
		}
		if (r != 0)
			return r;
		at += n;
	}
	return r < 0 ? r : 0;
}

int bid_pack_check(const struct bid_pack *pack)
{
	bid_auto_free struct bid_pack_entry *entries = calloc(BID_PACK_BLOCK, sizeof(*entries));
	struct bid_pack_key last = { 0, 0 };
	uint64_t sum = 0;
	struct stat st;

	if (!entries)
		return -ENOMEM;
	if (fstat(pack->fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size != pack->size)
		return -EBADMSG;
	for (uint64_t at = 0; at < pack->n; at += BID_PACK_BLOCK) {
		size_t n = pack->n - at < BID_PACK_BLOCK ? (size_t)(pack->n - at) : BID_PACK_BLOCK;
		int r = bid_pack_read_entries(pack, at, n, entries);

		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++) {
			if (at + i > 0 && bid_pack_compare(&last, &entries[i].key) >= 0)
				return -EBADMSG;
			last = entries[i].key;
		}
		sum = bid_pack_index_sum(entries, n, sum);
	}
	return sum == pack->index_sum ? 0 : -EBADMSG;
}
