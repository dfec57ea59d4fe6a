// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The reader of packs against its contract. The input says how many records a pack has, and how it is then damaged; bytes of a pack
 * would not come past the sum of its header. The first byte times 8 is the number of records, and if it is odd the damaged header
 * gets a right sum; each 16 bytes that follow are a change.
 *   - a pack without damage has all that was written to it, and passes its check;
 *   - of one with damage no text is given whose sum is wrong, and the same one by bid_pack_each() as by bid_pack_read();
 *   - what is written anew of what is sound in it is a pack that passes its check, and has all of that.
 */
#include "disk/pack/pack.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "disk/pack/pack_format.h"
#include "target.h"

enum {
	INPUT_MAX = 1024,
	TEXT_MAX = 64,
	EACH = 20, /* of so many records each is looked for; of more as many */
	PART = 0x80, /* of the keys, by their first byte */
};

enum change_kind { CHANGE_BYTE, CHANGE_LENGTH, CHANGE_NUMBER, CUT, CHANGE_KINDS };

/* In the input. */
struct change {
	uint64_t number;
	uint32_t at;
	uint32_t kind;
};

static int memory_file(void)
{
	int fd = memfd_create("pack", MFD_CLOEXEC);

	require(fd >= 0);
	return fd;
}

static struct bid_pack_key key_of(unsigned number)
{
	uint8_t bytes[20] = { (uint8_t)number, (uint8_t)(number >> 8) };
	struct bid_id id;

	require(bid_id_from_bytes(bytes, sizeof(bytes), &id) == 0);
	return bid_pack_key(&id, BID_KIND_ELF);
}

static void write_pack(int fd, unsigned n)
{
	bid_auto_free struct bid_pack_item *items = calloc(n + 1, sizeof(*items));
	bid_auto_free char *texts = malloc((n + 1) * TEXT_MAX);

	require(items && texts);
	for (unsigned i = 0; i < n; i++) {
		char *text = texts + (size_t)i * TEXT_MAX;
		int len = snprintf(text, TEXT_MAX, "{\"number\":%u}", i);

		items[i] =
			(struct bid_pack_item){ .key = key_of(i), .text = text, .len = (uint32_t)bid_pack_seal(text, (size_t)len) };
	}
	require(bid_pack_write(fd, items, n, NULL) == n);
}

static void damage(int fd, const struct change *change)
{
	static const size_t widths[] = {
		[CHANGE_BYTE] = 1, [CHANGE_LENGTH] = sizeof(uint32_t), [CHANGE_NUMBER] = sizeof(uint64_t)
	};
	enum change_kind kind = change->kind % CHANGE_KINDS;
	struct stat st;
	off_t at;

	require(fstat(fd, &st) == 0);
	at = st.st_size > 0 ? (off_t)change->at % st.st_size : 0;
	if (kind == CUT)
		require(ftruncate(fd, at) == 0);
	else
		require(bid_pwrite_full(fd, &change->number, widths[kind], at) == 0);
}

static void mend_header(int fd)
{
	struct bid_pack_header header;

	if (bid_pread_full(fd, &header, sizeof(header), 0) != sizeof(header))
		return;
	header.sum = bid_pack_header_sum(&header);
	require(bid_pwrite_full(fd, &header, sizeof(header), 0) == 0);
}

struct seen {
	const struct bid_pack *pack;
	bool whole; /* it passed its check */
	uint64_t entries, sound;
	uint64_t of_a_part; /* entries whose key begins with PART */
};

static int see(void *user, const struct bid_pack_entry *entry, char *text)
{
	struct seen *seen = user;
	bid_auto_free char *again = NULL;
	struct bid_pack_entry found;
	int r;

	seen->sound += text != NULL;
	seen->of_a_part += entry->key.high >> 56 == PART;
	if (seen->entries++ % (seen->pack->n / EACH + 1) != 0)
		return 0;
	r = bid_pack_read(seen->pack, entry, &again);
	require(r == (text ? 0 : -EBADMSG));
	if (text) {
		require(memcmp(text, again, entry->len) == 0 && again[entry->len] == '\0');
		require(bid_pack_is_sound(text, entry->len));
	}
	r = bid_pack_find(seen->pack, &entry->key, &found);
	require(r == 0 || r == -ENOENT);
	require(!seen->whole || (r == 0 && found.offset == entry->offset && found.len == entry->len));
	return 0;
}

static void check_written_anew(const struct seen *seen)
{
	bid_auto_free struct bid_pack_item *items = calloc(seen->pack->n + 1, sizeof(*items));
	bid_cleanup(bid_pack_release) struct bid_pack anew = BID_PACK_NONE;
	int fd = memory_file();
	int64_t n;

	require(items && bid_pack_items(seen->pack, 0, items) == 0);
	n = bid_pack_write(fd, items, seen->pack->n, NULL);
	/* a key that damage made twice is written once */
	require(n >= 0 && (uint64_t)n <= seen->sound && (!seen->whole || (uint64_t)n == seen->sound));
	if (n == 0) {
		close(fd);
		return;
	}
	require(bid_pack_open(fd, &anew) == 0 && anew.n == (uint64_t)n && bid_pack_check(&anew) == 0);
}

static void check_pack(int fd, unsigned n, bool damaged)
{
	bid_cleanup(bid_pack_release) struct bid_pack pack = BID_PACK_NONE;
	struct seen seen = { .pack = &pack };
	int r = bid_pack_open(fd, &pack);

	if (r < 0) {
		require(damaged && (r == -EBADMSG || r == -EPROTONOSUPPORT));
		close(fd);
		return;
	}
	r = bid_pack_check(&pack);
	require(r == 0 || r == -EBADMSG);
	seen.whole = r == 0;
	require(bid_pack_each(&pack, BID_PACK_ALL, see, &seen) == 0 && seen.entries == pack.n);
	require(damaged || (seen.whole && seen.sound == n));
	check_written_anew(&seen);
	if (!seen.whole)
		return;
	seen.entries = 0;
	require(bid_pack_each(&pack, PART, see, &seen) == 0 && 2 * seen.entries == seen.of_a_part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct change change;
	unsigned n;
	int fd;

	if (size == 0 || size > INPUT_MAX)
		return 0;
	n = data[0] * 8u;
	fd = memory_file();
	write_pack(fd, n);
	for (size_t at = 1; at + sizeof(change) <= size; at += sizeof(change)) {
		memcpy(&change, data + at, sizeof(change));
		damage(fd, &change);
	}
	if (data[0] % 2)
		mend_header(fd);
	check_pack(fd, n, size > sizeof(change));
	return 0;
}
