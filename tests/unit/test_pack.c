// SPDX-License-Identifier: LGPL-2.1-or-later
/* A pack of records: what is in one is found, and what is damaged counts as none. */
#include "pack_scene.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "disk/pack/pack.h"

enum { MANY = 20000, FLIPPED = 5 };

static struct bid_pack_key key_of(unsigned number)
{
	struct bid_request request = request_of(number);

	return bid_pack_key(&request.id, request.kind);
}

/* The caller frees it. */
static char *text_of(unsigned number, size_t *ret_len)
{
	char *text;
	int len = asprintf(&text, "{\"number\":%u,\"of\":\"%0*d\"}%32s", number, (int)(number % 300) + 1, 0, "");

	assert_true(len > 0);
	*ret_len = bid_pack_seal(text, (size_t)len - 32);
	return text;
}

/* A pack of the first @n numbers, in memory. */
static struct bid_pack pack_of(unsigned n)
{
	struct bid_pack_item *items = calloc(n + 1, sizeof(*items));
	struct bid_pack pack;
	int fd = memfd_create("pack", MFD_CLOEXEC);

	assert_true(fd >= 0);
	for (unsigned i = 0; i < n; i++) {
		size_t len;

		items[i].text = text_of(i, &len);
		items[i].len = (uint32_t)len;
		items[i].key = key_of(i);
	}
	assert_int_equal(bid_pack_write(fd, items, n, NULL), n);
	/* the order is another now */
	for (unsigned i = 0; i < n; i++)
		free(items[i].text);
	free(items);
	assert_int_equal(bid_pack_open(fd, &pack), 0);
	return pack;
}

/* 0 if it is there, and it must be right then; else what was said. */
static int look_up(const struct bid_pack *pack, unsigned number)
{
	struct bid_pack_key key = key_of(number);
	struct bid_pack_entry entry;
	char *text, *wanted;
	size_t len;
	int r = bid_pack_find(pack, &key, &entry);

	if (r == 0)
		r = bid_pack_read(pack, &entry, &text);
	if (r < 0)
		return r;
	wanted = text_of(number, &len);
	assert_int_equal(entry.len, len);
	assert_string_equal(text, wanted);
	free(wanted);
	free(text);
	return 0;
}

static int count_one(void *user, const struct bid_pack_entry *entry, char *text)
{
	unsigned *count = user;

	assert_non_null(text);
	++*count;
	return 0;
}

static void each_record_is_found_in_a_pack_of_any_size(void **state)
{
	static const unsigned sizes[] = { 0, 1, 2, 63, 64, 65, 129, 1023, 1024, 1025, MANY };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bid_pack pack = pack_of(sizes[i]);
		unsigned all = 0, parts = 0;

		assert_int_equal(pack.n, sizes[i]);
		for (unsigned number = 0; number < sizes[i]; number++)
			assert_int_equal(look_up(&pack, number), 0);
		for (unsigned number = sizes[i]; number < sizes[i] + 200; number++)
			assert_int_equal(look_up(&pack, number), -ENOENT);
		assert_int_equal(bid_pack_check(&pack), 0);
		assert_int_equal(bid_pack_each(&pack, BID_PACK_ALL, count_one, &all), 0);
		for (unsigned first = 0; first < 256; first++)
			assert_int_equal(bid_pack_each(&pack, first, count_one, &parts), 0);
		assert_int_equal(all, sizes[i]);
		assert_int_equal(parts, sizes[i]);
		bid_pack_release(&pack);
	}
}

/* Of several records with one key the one of the lowest rank counts, and what is damaged is not carried over. */
static void what_is_merged_is_the_first_and_the_sound(void **state)
{
	struct bid_pack pack = pack_of(3), merged;
	struct bid_pack_item items[5];
	struct bid_pack_key key = key_of(0);
	struct bid_pack_entry entry;
	char *found;
	size_t len;
	char *text = text_of(2, &len), *damaged = text_of(3, &len);
	int fd = memfd_create("merged", MFD_CLOEXEC);

	assert_int_equal(bid_pack_items(&pack, 1, items), 0);
	items[3] = (struct bid_pack_item){ .key = key_of(0), .text = text, .len = (uint32_t)strlen(text) };
	damaged[3] ^= 1;
	items[4] = (struct bid_pack_item){ .key = key_of(3), .text = damaged, .len = (uint32_t)len };
	assert_int_equal(bid_pack_write(fd, items, 5, NULL), 3);
	assert_int_equal(bid_pack_open(fd, &merged), 0);
	assert_int_equal(bid_pack_check(&merged), 0);
	assert_int_equal(look_up(&merged, 1), 0);
	assert_int_equal(look_up(&merged, 2), 0);
	assert_int_equal(look_up(&merged, 3), -ENOENT);
	/* number 0 has the text of 2 now: as told */
	assert_int_equal(bid_pack_find(&merged, &key, &entry), 0);
	assert_int_equal(bid_pack_read(&merged, &entry, &found), 0);
	assert_string_equal(found, text);
	free(found);
	free(text);
	free(damaged);
	bid_pack_release(&pack);
	bid_pack_release(&merged);
}

static int note_damage(void *user, const struct bid_pack_entry *entry, char *text)
{
	bool *damaged = user;

	*damaged = *damaged || !text;
	return 0;
}

/* Whatever is in the file: no crash, and no record but the right one. Returns whether it shows that something is wrong. */
static bool shows(int fd)
{
	bool damaged = false;
	struct bid_pack pack;

	if (bid_pack_open(fd, &pack) < 0)
		return true;
	for (unsigned number = 0; number < FLIPPED; number++)
		look_up(&pack, number);
	assert_int_not_equal(look_up(&pack, FLIPPED), 0);
	damaged = bid_pack_check(&pack) < 0;
	if (bid_pack_each(&pack, BID_PACK_ALL, note_damage, &damaged) < 0)
		damaged = true;
	return damaged;
}

static void every_flipped_bit_and_every_cut_shows(void **state)
{
	struct bid_pack pack = pack_of(FLIPPED);
	char *data;
	size_t len;

	assert_int_equal(bid_read_file(pack.fd, 1 << 20, &data, &len), 0);
	assert_false(shows(pack.fd));
	for (size_t at = 0; at < len; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			char byte = (char)(data[at] ^ 1 << bit);

			assert_int_equal(bid_pwrite_full(pack.fd, &byte, 1, (off_t)at), 0);
			if (!shows(pack.fd))
				fail_msg("bit %u of byte %zu of %zu", bit, at, len);
		}
		assert_int_equal(bid_pwrite_full(pack.fd, data + at, 1, (off_t)at), 0);
	}
	for (size_t cut = len; cut-- > 0;) {
		assert_int_equal(ftruncate(pack.fd, (off_t)cut), 0);
		assert_true(shows(pack.fd));
	}
	free(data);
	bid_pack_release(&pack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_record_is_found_in_a_pack_of_any_size),
		cmocka_unit_test(what_is_merged_is_the_first_and_the_sound),
		cmocka_unit_test(every_flipped_bit_and_every_cut_shows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
