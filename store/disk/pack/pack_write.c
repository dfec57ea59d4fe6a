// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writing a pack: of records in memory, and of those that other packs have. */
#include "disk/pack/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "disk/pack/pack_format.h"

enum {
	PIECE = 4 * BID_PACK_TEXT_MAX, /* bytes that are written at a time */
	LEFT_OUT = 1,
};

/* A part of the file that is written from its beginning to its end. */
struct part {
	int fd;
	char *piece; /* owned */
	size_t len;
	uint64_t at;
};

static int flush(struct part *part)
{
	int r = bid_pwrite_full(part->fd, part->piece, part->len, (off_t)part->at);

	part->at += part->len;
	part->len = 0;
	return r;
}

/* Where @len more bytes go, at most BID_PACK_TEXT_MAX of them; part->len is the caller's to raise. */
static int room(struct part *part, size_t len, char **ret_room)
{
	int r = part->len + len > PIECE ? flush(part) : 0;

	*ret_room = part->piece + part->len;
	return r;
}

int bid_pack_items(const struct bid_pack *pack, unsigned rank, struct bid_pack_item *items)
{
	bid_auto_free struct bid_pack_entry *entries = calloc(BID_PACK_BLOCK, sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	for (uint64_t at = 0; at < pack->n; at += BID_PACK_BLOCK) {
		size_t n = pack->n - at < BID_PACK_BLOCK ? (size_t)(pack->n - at) : BID_PACK_BLOCK;
		int r = bid_pack_read_entries(pack, at, n, entries);

		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++)
			items[at + i] = (struct bid_pack_item){ .key = entries[i].key,
								.rank = rank,
								.from = pack,
								.offset = entries[i].offset,
								.len = entries[i].len };
	}
	return 0;
}

static int by_key(const void *a, const void *b)
{
	const struct bid_pack_item *one = a, *other = b;
	int order = bid_pack_compare(&one->key, &other->key);

	return order != 0 ? order : (one->rank > other->rank) - (one->rank < other->rank);
}

/*
 * Put the text of @item where there is room, and the length of what it became into *@ret_len. Returns 0, LEFT_OUT if it is damaged
 * or not wanted, or as pread(2) and pwrite(2).
 */
static int put_text(struct part *texts, const struct bid_pack_item *item, const struct bid_pack_amender *amender, uint32_t *ret_len)
{
	ssize_t n = item->len;
	size_t len = item->len;
	char *to;
	int r;

	if (!bid_pack_may_be_at(item->offset, item->len))
		return LEFT_OUT;
	r = room(texts, amender ? BID_PACK_TEXT_MAX : item->len, &to);
	if (r < 0)
		return r;
	if (item->from)
		n = bid_pread_full(item->from->fd, to, item->len, (off_t)item->offset);
	else
		memcpy(to, item->text, item->len);
	if (n < 0)
		return (int)n;
	if ((size_t)n != item->len || !bid_pack_is_sound(to, item->len))
		return LEFT_OUT;
	if (amender && !amender->amend(amender->user, &item->key, to, &len))
		return LEFT_OUT;
	*ret_len = (uint32_t)len;
	return 0;
}

/* The texts, and an entry for each in the index before them, which has room for all. */
static int put_all(struct part *texts, struct part *index, const struct bid_pack_item *items, size_t n,
		   const struct bid_pack_amender *amender, struct bid_pack_header *header)
{
	struct bid_pack_entry entry = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		uint32_t len = 0;
		char *to;

		if (header->n > 0 && bid_pack_compare(&entry.key, &items[i].key) == 0)
			continue;
		r = put_text(texts, &items[i], amender, &len);
		if (r == LEFT_OUT) {
			r = 0;
			continue;
		}
		if (r < 0)
			return r;
		entry = (struct bid_pack_entry){ .key = items[i].key, .offset = texts->at + texts->len, .len = len };
		texts->len += entry.len;
		header->n++;
		r = room(index, sizeof(entry), &to);
		memcpy(to, &entry, sizeof(entry));
		index->len += sizeof(entry);
	}
	if (r == 0)
		r = flush(texts);
	return r == 0 ? flush(index) : r;
}

int64_t bid_pack_write(int fd, struct bid_pack_item *items, size_t n, const struct bid_pack_amender *amender)
{
	bid_auto_free char *pieces = malloc(2 * PIECE);
	bid_auto_free struct bid_pack_entry *entries = calloc(BID_PACK_BLOCK, sizeof(*entries));
	struct bid_pack_header header = { .magic = BID_PACK_MAGIC, .version = BID_PACK_VERSION, .order = BID_PACK_ORDER };
	struct part texts = { .fd = fd, .piece = pieces, .at = sizeof(header) + n * sizeof(struct bid_pack_entry) };
	struct part index = { .fd = fd, .piece = pieces + PIECE, .at = sizeof(header) };
	struct bid_pack pack = { .fd = fd };
	int r;

	if (!pieces || !entries)
		return -ENOMEM;
	if (n > 0)
		qsort(items, n, sizeof(*items), by_key);
	r = put_all(&texts, &index, items, n, amender, &header);
	header.size = texts.at;
	pack.n = header.n;
	for (uint64_t at = 0; r == 0 && at < header.n; at += BID_PACK_BLOCK) {
		size_t some = header.n - at < BID_PACK_BLOCK ? (size_t)(header.n - at) : BID_PACK_BLOCK;

		r = bid_pack_read_entries(&pack, at, some, entries);
		header.index_sum = bid_pack_index_sum(entries, some, header.index_sum);
	}
	header.sum = bid_pack_header_sum(&header);
	/* last: a file that was not written to its end is no pack */
	if (r == 0)
		r = bid_pwrite_full(fd, &header, sizeof(header), 0);
	return r < 0 ? r : (int64_t)header.n;
}
