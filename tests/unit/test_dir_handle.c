// SPDX-License-Identifier: LGPL-2.1-or-later
/* The directory with all ids: read part by part, from any offset, while the store changes. */
#include "store_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "vfs/dir_handle.h"
#include "vfs/inode.h"

enum { IDS = 600, DOTS = 2 };
/* a store with long parts: the first two and every seventh have this many ids, the others none */
enum { PARTS = 256, THICK = 24, EVERY = 7 };

/* An id by its number; neighbours have different first bytes. */
static void name_id(unsigned number, char ret_hex[static 41])
{
	snprintf(ret_hex, 41, "%02x%038x", number * 7 & 0xff, number);
}

static void link_path(const struct store_fixture *fixture, unsigned number, char ret_path[static 256])
{
	char hex[41];

	name_id(number, hex);
	snprintf(ret_path, 256, "%s/store/.build-id/%.2s", fixture->directory, hex);
	mkdir(ret_path, 0755);
	snprintf(ret_path, 256, "%s/store/.build-id/%.2s/%s", fixture->directory, hex, hex + 2);
}

static void add_id(const struct store_fixture *fixture, unsigned number)
{
	char path[256], target[128], hex[41];

	link_path(fixture, number, path);
	name_id(number, hex);
	snprintf(target, sizeof(target), "../../usr/bin/a/%s", hex);
	assert_int_equal(symlink(target, path), 0);
}

static void remove_id(const struct store_fixture *fixture, unsigned number)
{
	char path[256];

	link_path(fixture, number, path);
	assert_int_equal(unlink(path), 0);
}

static int fill(void **state)
{
	int r = store_fixture_begin(state);
	const struct store_fixture *fixture = *state;

	run(fixture, "mkdir -p store/.build-id");
	for (unsigned i = 0; i < IDS; i++)
		add_id(fixture, i);
	return r;
}

static struct bid_dir_handle *list_ids(struct bid_tree *tree)
{
	struct bid_node ids = { .type = BID_NODE_IDS };
	struct bid_dir_handle *handle;

	assert_int_equal(bid_dir_handle_open(tree, &ids, bid_inode_number(&ids), &handle), 0);
	return handle;
}

/* List from @offset on into counts by number; returns how many there were. */
static unsigned count(struct bid_dir_handle *handle, uint64_t offset, unsigned seen[static 2 * IDS])
{
	struct bid_dirname name;
	unsigned n = 0;
	int r;

	while ((r = bid_dir_handle_at(handle, offset, &name)) > 0) {
		assert_true(name.next > offset);
		offset = name.next;
		n++;
		if (name.name[0] != '.')
			seen[strtoul(name.name + 30, NULL, 16)]++;
	}
	assert_int_equal(r, 0);
	return n;
}

static void test_listing_has_every_id_once(void **state)
{
	const struct store_fixture *fixture = *state;
	struct bid_tree tree = { .store = fixture->store };
	struct bid_dir_handle *handle = list_ids(&tree);
	unsigned seen[2 * IDS] = { 0 };

	assert_int_equal(count(handle, 0, seen), IDS + DOTS);
	for (unsigned i = 0; i < IDS; i++)
		assert_int_equal(seen[i], 1);
	bid_dir_handle_close(handle);
}

/* A program that opens a directory and does not read on makes the daemon keep its names. */
static void test_large_listings_share_a_limit(void **state)
{
	const struct store_fixture *fixture = *state;
	struct bid_tree tree = { .store = fixture->store };
	struct bid_node path = { .type = BID_NODE_PATH, .path = (char *)"a" };
	struct bid_dir_handle *large, *handle;
	struct bid_dirname name;

	run(fixture, "mkdir store/a && cd store/a && seq 1000 | xargs mkdir");
	assert_int_equal(bid_dir_handle_open(&tree, &path, 1, &large), 0);
	tree.listed += BID_LIMIT_LISTINGS - tree.listed;
	assert_int_equal(bid_dir_handle_open(&tree, &path, 1, &handle), -ENOMEM);
	handle = list_ids(&tree);
	assert_int_equal(bid_dir_handle_at(handle, 0, &name), 1);
	bid_dir_handle_close(handle);
	bid_dir_handle_close(large);
	assert_int_equal(bid_dir_handle_open(&tree, &path, 1, &handle), 0);
	bid_dir_handle_close(handle);
}

/* telldir(3) at every place, seekdir(3) in another handle. */
static void test_offsets_are_valid_in_every_handle(void **state)
{
	const struct store_fixture *fixture = *state;
	struct bid_tree tree = { .store = fixture->store };
	struct bid_dir_handle *handle = list_ids(&tree), *other = list_ids(&tree);
	struct bid_dirname name, again;
	uint64_t offset = 0;

	for (unsigned n = 0; n < IDS + DOTS; n++) {
		assert_int_equal(bid_dir_handle_at(handle, offset, &name), 1);
		/* somewhere else in between */
		assert_int_equal(bid_dir_handle_at(other, (uint64_t)(n % 256) << 47, &again), 1);
		assert_int_equal(bid_dir_handle_at(other, offset, &again), 1);
		assert_string_equal(again.name, name.name);
		assert_int_equal(again.number, name.number);
		assert_int_equal(again.next, name.next);
		offset = name.next;
	}
	assert_int_equal(bid_dir_handle_at(handle, offset, &name), 0);
	assert_int_equal(bid_dir_handle_at(handle, UINT64_MAX, &name), 0);
	bid_dir_handle_close(handle);
	bid_dir_handle_close(other);
}

/* A listing has each name that exists throughout once, despite other names that come and go. */
static void test_changes_do_not_move_other_names(void **state)
{
	const struct store_fixture *fixture = *state;
	struct bid_tree tree = { .store = fixture->store };
	struct bid_dir_handle *handle = list_ids(&tree);
	unsigned seen[2 * IDS] = { 0 };
	struct bid_dirname name;
	uint64_t offset = 0;
	unsigned n = 0;
	int r;

	while ((r = bid_dir_handle_at(handle, offset, &name)) > 0) {
		if (name.name[0] != '.')
			seen[strtoul(name.name + 30, NULL, 16)]++;
		offset = name.next;
		/* one handle for each name: as NFS, which has no open directories */
		bid_dir_handle_close(handle);
		handle = list_ids(&tree);
		if (n % 2 == 0 && n / 2 < IDS / 2) {
			remove_id(fixture, n);
			add_id(fixture, IDS + n);
		}
		n++;
	}
	assert_int_equal(r, 0);
	for (unsigned i = 1; i < IDS; i += 2)
		assert_int_equal(seen[i], 1);
	for (unsigned i = 0; i < IDS; i++)
		assert_true(seen[i] <= 1 && seen[IDS + i] <= 1);
	bid_dir_handle_close(handle);
}

/* rewinddir(3), wherever the listing is. */
static void test_rewind_reads_again(void **state)
{
	const struct store_fixture *fixture = *state;
	struct bid_tree tree = { .store = fixture->store };
	struct bid_dir_handle *handle = list_ids(&tree);
	unsigned seen[2 * IDS] = { 0 };
	struct bid_dirname name;

	assert_int_equal(bid_dir_handle_at(handle, 0, &name), 1);
	remove_id(fixture, 0);
	assert_int_equal(count(handle, 0, seen), IDS - 1 + DOTS);
	assert_int_equal(seen[0], 0);
	add_id(fixture, IDS);
	assert_int_equal(count(handle, 0, seen), IDS + DOTS);
	assert_int_equal(seen[IDS], 1);
	bid_dir_handle_close(handle);
}

/* A rewound listing of a directory that is read at once is read again, too. */
static void test_each_rewind_reads_again(void **state)
{
	const struct store_fixture *fixture = *state;
	struct bid_tree tree = { .store = fixture->store };
	struct bid_node fanout = { .type = BID_NODE_LINKS_FANOUT };
	unsigned seen[2 * IDS] = { 0 };
	struct bid_dir_handle *handle;

	assert_int_equal(bid_dir_handle_open(&tree, &fanout, bid_inode_number(&fanout), &handle), 0);
	assert_int_equal(count(handle, 0, seen), DOTS + 3);
	/* ids with a number whose low byte is zero */
	add_id(fixture, 768);
	remove_id(fixture, 256);
	assert_int_equal(count(handle, 0, seen), DOTS + 3);
	assert_true(seen[768] == 1 && seen[256] == 1 && seen[512] == 2);
	bid_dir_handle_close(handle);
}

static bool is_thick(unsigned part)
{
	return part == 1 || part % EVERY == 0;
}

static unsigned names_in(unsigned part)
{
	return (is_thick(part) ? THICK : 0) + (part == 0 ? DOTS : 0);
}

static void thick_path(const struct store_fixture *fixture, unsigned part, unsigned i, char ret_path[static 256])
{
	snprintf(ret_path, 256, "%s/store/.build-id/%02x/%038x", fixture->directory, part, i * 0x01234567 + part);
}

static int fill_thick(void **state)
{
	int r = store_fixture_begin(state);
	const struct store_fixture *fixture = *state;
	char path[256];

	run(fixture, "mkdir -p store/.build-id");
	for (unsigned part = 0; part < PARTS; part++) {
		if (!is_thick(part))
			continue;
		snprintf(path, sizeof(path), "%s/store/.build-id/%02x", fixture->directory, part);
		assert_int_equal(mkdir(path, 0755), 0);
		for (unsigned i = 0; i < THICK; i++) {
			thick_path(fixture, part, i, path);
			assert_int_equal(symlink("../../usr/bin/a", path), 0);
		}
	}
	return r;
}

/* List the names of @part, which has @expected of them. */
static void list_part(struct bid_dir_handle *handle, unsigned part, unsigned expected)
{
	uint64_t offset = part == 0 ? 0 : DOTS + ((uint64_t)part << 47);
	struct bid_dirname name;
	char fanout[16];

	snprintf(fanout, sizeof(fanout), "%02x", part);
	for (unsigned n = 0; n < expected; n++) {
		assert_int_equal(bid_dir_handle_at(handle, offset, &name), 1);
		assert_true(name.name[0] == '.' || memcmp(name.name, fanout, 2) == 0);
		assert_true(name.next > offset);
		offset = name.next;
	}
}

/* Back by one, far away, the same once more, and to the end; closed at any time. */
static void test_listing_in_any_order_has_the_names_of_each_part(void **state)
{
	const struct store_fixture *fixture = *state;
	struct bid_tree tree = { .store = fixture->store };

	srandom(1);
	for (unsigned turn = 0; turn < 20; turn++) {
		struct bid_dir_handle *handle = list_ids(&tree);
		unsigned part = 0, turns = (unsigned)random() % 100;

		for (unsigned n = 0; n < turns; n++) {
			unsigned way = (unsigned)random() % 16;

			list_part(handle, part, names_in(part));
			part = way == 0		      ? 0
			       : way == 1	      ? (unsigned)random() % PARTS
			       : way == 2 && part > 0 ? part - 1
			       : way == 3	      ? part
						      : part + 1;
			part %= PARTS;
		}
		bid_dir_handle_close(handle);
	}
}

/* The error of a part ends with its cause. */
static void test_unreadable_part_is_an_error_until_it_is_readable(void **state)
{
	const struct store_fixture *fixture = *state;
	struct bid_tree tree = { .store = fixture->store };
	struct bid_dir_handle *handle = list_ids(&tree);
	struct bid_dirname name;
	struct rlimit before;

	for (unsigned part = 0; part < 2; part++)
		list_part(handle, part, names_in(part));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ .rlim_cur = 3, .rlim_max = before.rlim_max }), 0);
	for (uint64_t part = 100; part < 103; part++)
		assert_int_equal(bid_dir_handle_at(handle, part << 47, &name), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (unsigned part = 100; part < PARTS; part++)
		list_part(handle, part, names_in(part));
	bid_dir_handle_close(handle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_listing_has_every_id_once, fill, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_offsets_are_valid_in_every_handle, fill, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_changes_do_not_move_other_names, fill, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_rewind_reads_again, fill, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_each_rewind_reads_again, fill, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_large_listings_share_a_limit, fill, store_fixture_end),
#define THICK_TEST(function) cmocka_unit_test_setup_teardown(function, fill_thick, store_fixture_end)
		THICK_TEST(test_listing_in_any_order_has_the_names_of_each_part),
		THICK_TEST(test_unreadable_part_is_an_error_until_it_is_readable),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
