// SPDX-License-Identifier: LGPL-2.1-or-later
/* The table of nodes known to the kernel. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "vfs/inode.h"

static int begin(void **state)
{
	return bid_inodes_new(NULL, (struct bid_inodes **)state);
}

static int end(void **state)
{
	bid_inodes_free(*state);
	return 0;
}

static struct bid_node node_of(enum bid_node_type type, enum bid_kind kind, const void *id, size_t len)
{
	struct bid_node node = { .type = type, .kind = kind };

	if (len)
		assert_int_equal(bid_id_from_bytes(id, len, &node.id), 0);
	return node;
}

static struct bid_node numbered(enum bid_node_type type, uint32_t i)
{
	uint8_t id[20] = { (uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i >> 16), 1 };

	return node_of(type, type == BID_NODE_FILE ? BID_KIND_ELF : BID_KIND_NONE, id, sizeof(id));
}

static uint64_t get(struct bid_inodes *inodes, const struct bid_node *node)
{
	struct bid_inode inode;

	assert_int_equal(bid_inodes_lookup(inodes, node, &inode), 0);
	assert_true(bid_node_equal(&inode.node, node));
	return inode.number;
}

static void assert_holds(struct bid_inodes *inodes, uint64_t number, const struct bid_node *node)
{
	struct bid_inode buffer, *inode = bid_inodes_find(inodes, number, &buffer);

	assert_ptr_equal(inode, &buffer);
	assert_true(inode->number == number);
	assert_true(bid_node_equal(&inode->node, node));
}

static void assert_holds_none(struct bid_inodes *inodes, uint64_t number)
{
	struct bid_inode buffer;

	assert_null(bid_inodes_find(inodes, number, &buffer));
}

static void test_inode_lives_until_forget(void **state)
{
	struct bid_node elf = numbered(BID_NODE_FILE, 1), root = { .type = BID_NODE_PATH };
	uint64_t number = get(*state, &elf);

	assert_true(number == bid_inode_number(&elf));
	assert_true(number == get(*state, &elf));
	assert_int_equal(bid_inodes_count(*state), 2);
	bid_inodes_forget(*state, number, 1);
	assert_holds(*state, number, &elf);
	bid_inodes_forget(*state, number, 1);
	assert_holds_none(*state, number);
	bid_inodes_forget(*state, number, 1); /* nothing happens */
	bid_inodes_forget(*state, BID_INODE_ROOT, 1);
	assert_holds(*state, BID_INODE_ROOT, &root);
	assert_true(get(*state, &root) == BID_INODE_ROOT);
	assert_int_equal(bid_inodes_count(*state), 1);
}

/* While the kernel holds an artifact of one file, or a link of one text, another one has a number of its own. */
static void test_another_file_or_text_has_another_number(void **state)
{
	const uint8_t id[64] = { 0xab, 0xcd, 1 };

	for (size_t i = 0; i < 4; i++) {
		size_t len = i % 2 ? 64 : 20;
		struct bid_node node = i < 2 ? node_of(BID_NODE_FILE, BID_KIND_ELF, id, len)
					     : node_of(BID_NODE_LINK, BID_KIND_NONE, id, len);
		struct bid_node one = node, other = node;
		uint64_t first, second;

		one.version = 1000;
		other.version = 2000;
		first = get(*state, &one);
		assert_true(first == bid_inode_number(&node));
		second = get(*state, &other);
		assert_true(second != first && second == get(*state, &other));
		assert_true(first == get(*state, &one));
		assert_holds(*state, first, &one);
		assert_holds(*state, second, &other);
		bid_inodes_forget(*state, first, 2);
		assert_true(get(*state, &other) == first);
		assert_holds(*state, first, &other);
		assert_holds(*state, second, &other);
		bid_inodes_forget(*state, first, 1);
		bid_inodes_forget(*state, second, 2);
		assert_int_equal(bid_inodes_count(*state), 1);
	}
}

/* An inode may turn out to be of another file. The earlier file gets another inode then. */
static void test_replaced_file_keeps_the_inode(void **state)
{
	const uint8_t id[64] = { 0xab, 0xcd, 1 };

	for (size_t len = 20; len <= sizeof(id); len += 44) {
		struct bid_node node = node_of(BID_NODE_FILE, BID_KIND_ELF, id, len), files[3] = { node, node, node };
		uint64_t first, second;

		for (uint32_t i = 0; i < 3; i++)
			files[i].version = 1000 + i;
		first = get(*state, &files[0]);
		second = get(*state, &files[1]);
		bid_inodes_set_version(*state, first, files[2].version);
		assert_holds(*state, first, &files[2]);
		assert_true(get(*state, &files[2]) == first);
		bid_inodes_set_version(*state, second, files[0].version);
		assert_holds(*state, second, &files[0]);
		assert_true(get(*state, &files[1]) != second);
		bid_inodes_set_version(*state, first, files[0].version);
		assert_true(get(*state, &files[0]) == first);
	}
}

/* Each node has all fields, and no node is taken for another. */
static void test_every_node_type_is_kept(void **state)
{
	uint8_t id[64] = { 0xab, 0xcd, 1 };
	struct bid_subpath *subpath;
	struct bid_node nodes[] = {
		{ .type = BID_NODE_IDS },
		{ .type = BID_NODE_LINKS },
		{ .type = BID_NODE_META },
		{ .type = BID_NODE_BY_PATH },
		{ .type = BID_NODE_LINKS_FANOUT, .fanout = 0 },
		{ .type = BID_NODE_LINKS_FANOUT, .fanout = 0xab },
		{ .type = BID_NODE_DEBUG_FANOUT, .fanout = 0xab },
		{ .type = BID_NODE_PATH, .path = (char *)"usr" },
		{ .type = BID_NODE_BY_PATH, .path = (char *)"usr" },
		{ .type = BID_NODE_STATUS },
		{ .type = BID_NODE_METRICS },
		node_of(BID_NODE_ID, BID_KIND_NONE, id, 1),
		node_of(BID_NODE_ID, BID_KIND_NONE, id, 20),
		node_of(BID_NODE_ID, BID_KIND_NONE, id, 21),
		node_of(BID_NODE_ID, BID_KIND_NONE, id, 64),
		node_of(BID_NODE_LINK, BID_KIND_NONE, id, 20),
		node_of(BID_NODE_FILE, BID_KIND_ELF, id, 20),
		node_of(BID_NODE_FILE, BID_KIND_DEBUGINFO, id, 20),
		node_of(BID_NODE_FILE, BID_KIND_ELF, id, 64),
		node_of(BID_NODE_FILE, BID_KIND_SOURCE, id, 20),
		node_of(BID_NODE_SOURCES, BID_KIND_NONE, id, 20),
		node_of(BID_NODE_SOURCES, BID_KIND_NONE, id, 20),
	};
	enum { N = sizeof(nodes) / sizeof(nodes[0]), SOURCE = N - 3, DIRECTORY = N - 1 };
	uint64_t numbers[N];

	assert_int_equal(bid_subpath_source("/usr/src/a.c", &subpath), 0);
	nodes[SOURCE].subpath = subpath;
	nodes[DIRECTORY].path = (char *)"/usr/src";
	for (size_t i = 0; i < N; i++)
		numbers[i] = get(*state, &nodes[i]);
	assert_int_equal(bid_inodes_count(*state), N + 1);
	for (size_t i = 0; i < N; i++) {
		assert_holds(*state, numbers[i], &nodes[i]);
		for (size_t j = 0; j < i; j++)
			assert_true(numbers[i] != numbers[j]);
	}
	for (size_t i = 0; i < N; i++) {
		bid_inodes_forget(*state, numbers[i], 1);
		assert_holds_none(*state, numbers[i]);
		for (size_t j = i + 1; j < N; j++)
			assert_holds(*state, numbers[j], &nodes[j]);
	}
	assert_int_equal(bid_inodes_count(*state), 1);
	bid_subpath_unref(subpath);
}

/* These two ids have one hash: found by looking at 30 million. */
static void test_colliding_nodes_get_two_numbers(void **state)
{
	struct bid_node a = node_of(BID_NODE_ID, BID_KIND_NONE, "\xaa\x26\x34\x5a\x00", 5);
	struct bid_node b = node_of(BID_NODE_ID, BID_KIND_NONE, "\xaa\x1a\x3f\x00\x01", 5);
	uint64_t of_a, of_b;

	assert_true(bid_inode_number(&a) == bid_inode_number(&b));
	of_a = get(*state, &a);
	of_b = get(*state, &b);
	assert_true(of_a == bid_inode_number(&a));
	assert_true(of_b != of_a);
	assert_true(get(*state, &b) == of_b);
	assert_holds(*state, of_a, &a);
	assert_holds(*state, of_b, &b);
	/* its file can have its own number */
	b.type = BID_NODE_FILE;
	b.kind = BID_KIND_ELF;
	assert_true(get(*state, &b) == bid_inode_number(&b));
	assert_holds(*state, bid_inode_number(&b), &b);
	bid_inodes_forget(*state, of_a, 1);
	b.type = BID_NODE_ID;
	b.kind = BID_KIND_NONE;
	assert_holds(*state, of_b, &b);
	assert_holds_none(*state, of_a);
}

/* Numbers come from untrusted file handles. */
static void test_unknown_number_finds_no_node(void **state)
{
	struct bid_node link = numbered(BID_NODE_LINK, 7);
	uint64_t number = get(*state, &link), key = number & ((1ULL << 54) - 1);

	for (uint64_t class = 0; class < 1024; class ++)
		if (class << 54 != number - key)
			assert_holds_none(*state, class << 54 | key);
	bid_inodes_forget(*state, key, 1);
	assert_holds(*state, number, &link);
}

/* After references in any order, exactly the held inodes remain. */
static void test_many_inodes_leak_nothing(void **state)
{
	enum { IDS = 5000, TYPES = 3, TURNS = 200000 };
	static const enum bid_node_type types[TYPES] = { BID_NODE_ID, BID_NODE_FILE, BID_NODE_LINK };
	static unsigned held[IDS][TYPES];
	unsigned seed = 1;
	uint64_t n = 1;

	for (int turn = 0; turn < TURNS; turn++) {
		/* first more come than go, then fewer */
		bool more = rand_r(&seed) % 100 < (turn < TURNS / 2 ? 80 : 10);
		unsigned i = (unsigned)rand_r(&seed) % IDS, type = (unsigned)rand_r(&seed) % TYPES;
		struct bid_node node = numbered(types[type], i);
		uint64_t number = bid_inode_number(&node);

		if (more) {
			n += held[i][type]++ == 0;
			get(*state, &node);
		} else {
			n -= held[i][type] > 0;
			bid_inodes_forget(*state, number, held[i][type]);
			held[i][type] = 0;
		}
		assert_int_equal(bid_inodes_count(*state), n);
	}
	for (unsigned i = 0; i < IDS; i++)
		for (unsigned type = 0; type < TYPES; type++) {
			struct bid_node node = numbered(types[type], i);

			if (held[i][type])
				assert_holds(*state, bid_inode_number(&node), &node);
			else
				assert_holds_none(*state, bid_inode_number(&node));
		}
}

static void test_removed_directory_keeps_its_number_from_the_next(void **state)
{
	enum { TIMES = 100 };
	struct bid_inodes *inodes = *state;
	struct bid_node node = { .type = BID_NODE_PATH, .path = (char *)"usr/lib" };
	uint64_t numbers[TIMES];
	struct bid_inode buffer;

	for (size_t i = 0; i < TIMES; i++) {
		numbers[i] = get(inodes, &node);
		for (size_t j = 0; j < i; j++)
			assert_true(numbers[i] != numbers[j]);
		if (i < TIMES - 1)
			bid_inodes_remove(inodes, &node);
	}
	assert_int_equal(get(inodes, &node), numbers[TIMES - 1]);
	/* an open one is still a directory of that path */
	assert_string_equal(bid_inodes_find(inodes, numbers[0], &buffer)->node.path, "usr/lib");
	assert_int_equal(bid_node_format(&buffer.node), S_IFDIR);
	for (size_t i = 0; i < TIMES; i++)
		assert_true(bid_inodes_forget(inodes, numbers[i], 2));
	assert_int_equal(get(inodes, &node), bid_inode_number(&node));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(test_inode_lives_until_forget),
		TEST(test_another_file_or_text_has_another_number),
		TEST(test_replaced_file_keeps_the_inode),
		TEST(test_every_node_type_is_kept),
		TEST(test_colliding_nodes_get_two_numbers),
		TEST(test_unknown_number_finds_no_node),
		TEST(test_removed_directory_keeps_its_number_from_the_next),
		TEST(test_many_inodes_leak_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
