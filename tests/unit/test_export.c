// SPDX-License-Identifier: LGPL-2.1-or-later
/* From an inode number back to its node, by a daemon that has seen neither. */
#include "store_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vfs/export.h"
#include "vfs/inode.h"

#define REST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void walk(const struct bid_tree *tree, const char *path, struct bid_node *ret_node)
{
	struct bid_node node = { .type = BID_NODE_PATH };
	char *copy = strdup(path), *rest = copy, *name;

	while ((name = strsep(&rest, "/"))) {
		struct bid_node child;

		if (bid_tree_lookup(tree, &node, name, &child, NULL) != 0)
			fail_msg("'%s' is not there", path);
		bid_node_release(&node);
		node = child;
	}
	free(copy);
	*ret_node = node;
}

/* bid_export_find() of the number of @path says @expected, and finds the node of @path. */
static void check(const struct bid_tree *tree, const char *path, int expected)
{
	struct bid_node node, found = { 0 };
	int r;

	walk(tree, path, &node);
	r = bid_export_find(tree, bid_inode_number(&node), &found);
	if (r != expected || (r == 0 && !bid_node_equal(&node, &found)))
		fail_msg("'%s': %d", path, r);
	bid_node_release(&node);
}

static int fill(void **state)
{
	int r = store_fixture_begin(state);
	const struct store_fixture *fixture = *state;

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "short", "usr/bin/short", ID_SHORT, "elf");
	run(fixture, "mkdir -p 'store/[debuginfod]/" ID_LONG "' && cp long 'store/[debuginfod]/" ID_LONG "/elf'");
	run(fixture, "mkdir -p store/.build-id/cc && ln -s '../../[debuginfod]/" ID_LONG "' store/.build-id/cc/%s", ID_LONG + 2);
	run(fixture, "mkdir -p store/.bidfs/source/aa/" REST_A "/usr/src && touch store/.bidfs/source/aa/" REST_A "/usr/src/a.c");
	return r;
}

static void test_number_of_an_id_finds_its_node(void **state)
{
	const struct store_fixture *fixture = *state;
	const struct bid_tree tree = { .store = fixture->store };
	static const char *const paths[] = {
		"buildid/" ID_A,
		"buildid/" ID_A "/elf",
		"buildid/" ID_A "/info",
		"buildid/" ID_A "/section",
		"buildid/" ID_A "/source",
		"buildid/" ID_LONG,
		".build-id/aa/" REST_A,
		/* perf's aliases */
		"buildid/" ID_SHORT "0000000000000000000000000000",
		"buildid/" ID_SHORT "00000000/elf",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		check(&tree, paths[i], 0);
}

static void test_number_of_a_name_in_every_store_finds_its_node(void **state)
{
	const struct store_fixture *fixture = *state;
	const struct bid_tree tree = { .store = fixture->store };
	static const char *const paths[] = {
		"buildid", ".build-id",	    ".build-id/aa", "by-path", "usr/lib/debug/.build-id", "usr/lib/debug/.build-id/aa",
		".bidfs",  ".bidfs/README",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		check(&tree, paths[i], 0);
}

static void test_number_of_a_path_or_a_section_is_stale(void **state)
{
	const struct store_fixture *fixture = *state;
	const struct bid_tree tree = { .store = fixture->store };
	static const char *const paths[] = {
		"usr/bin",
		"usr/bin/a",
		"usr/bin/a/" ID_A,
		"by-path/usr/bin",
		"debug",
		"buildid/" ID_A "/section/.text",
		"buildid/" ID_A "/source/usr",
		"buildid/" ID_A "/source/usr/src/a.c",
		"[kernel.kcore]",
		"[kernel.kcore]/" ID_A,
		"[kernel.kcore]/" ID_A "/1970010100000000",
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		check(&tree, paths[i], -ESTALE);
}

/* The number of a node without id, path and text is a constant that anybody can find out. */
static void test_number_without_an_id_finds_no_node_of_an_id(void **state)
{
	const struct store_fixture *fixture = *state;
	const struct bid_tree tree = { .store = fixture->store };

	for (enum bid_node_type type = BID_NODE_NONE; type <= BID_NODE_TMPFILE; type++) {
		for (enum bid_kind kind = BID_KIND_NONE; kind < BID_KIND_COUNT; kind++) {
			struct bid_node node = { .type = type, .kind = kind }, found = { 0 };
			bool is_one = kind == BID_KIND_NONE &&
				      (type == BID_NODE_PATH || type == BID_NODE_BY_PATH || type == BID_NODE_IDS ||
				       type == BID_NODE_LINKS || type == BID_NODE_LINKS_FANOUT || type == BID_NODE_DEBUG ||
				       type == BID_NODE_DEBUG_FANOUT || type == BID_NODE_META || type == BID_NODE_STATUS ||
				       type == BID_NODE_METRICS || type == BID_NODE_README);
			int r;

			if (kind != BID_KIND_NONE && type != BID_NODE_FILE)
				continue;
			r = bid_export_find(&tree, bid_inode_number(&node), &found);
			if (r != (is_one ? 0 : -ESTALE))
				fail_msg("type %d, kind %d: %d", type, kind, r);
		}
	}
}

static void test_number_of_a_removed_id_is_stale(void **state)
{
	const struct store_fixture *fixture = *state;
	const struct bid_tree tree = { .store = fixture->store };
	const struct bid_node node = { .type = BID_NODE_ID, .id = id_of(ID_B) };
	struct bid_node found;

	assert_int_equal(bid_export_find(&tree, bid_inode_number(&node), &found), -ESTALE);
	perf_adds(fixture, "b", "usr/bin/b", ID_B, "elf");
	check(&tree, "buildid/" ID_B, 0);
	run(fixture, "rm -r store/usr/bin/b store/.build-id/bb");
	assert_int_equal(bid_export_find(&tree, bid_inode_number(&node), &found), -ESTALE);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, fill, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_number_of_an_id_finds_its_node),	   TEST(test_number_of_a_name_in_every_store_finds_its_node),
		TEST(test_number_of_a_path_or_a_section_is_stale), TEST(test_number_without_an_id_finds_no_node_of_an_id),
		TEST(test_number_of_a_removed_id_is_stale),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
