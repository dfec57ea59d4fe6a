// SPDX-License-Identifier: LGPL-2.1-or-later
/* The namespace, without a mount. */
#include "store_fixture.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vfs/inode.h"
#include "vfs/tree.h"

#define REST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define REST_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* Walk @path from the root. Returns 0 and the node, or the error of the first failing component. */
static int walk(const struct bid_tree *tree, const char *path, struct bid_node *ret_node)
{
	struct bid_node node = { .type = BID_NODE_PATH };
	char *copy = strdup(path), *rest = copy, *name;
	int r = 0;

	while (r == 0 && (name = strsep(&rest, "/"))) {
		struct bid_node child;

		r = bid_tree_lookup(tree, &node, name, &child, NULL);
		bid_node_release(&node);
		if (r == 0)
			node = child;
	}
	free(copy);
	if (r == 0)
		*ret_node = node;
	return r;
}

static int type_of(const struct bid_tree *tree, const char *path)
{
	struct bid_node node;
	int r = walk(tree, path, &node);

	if (r < 0)
		return r;
	r = (int)node.type;
	bid_node_release(&node);
	return r;
}

static void test_every_path_has_its_node(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_tree tree = { .store = fixture->store };
	static const struct {
		const char *path;
		int type;
	} cases[] = {
		{ "buildid", BID_NODE_IDS },
		{ "buildid/" ID_A, BID_NODE_ID },
		{ "buildid/" ID_A "/elf", BID_NODE_FILE },
		{ "buildid/" ID_A "/executable", BID_NODE_FILE },
		{ "buildid/" ID_A "/debuginfo", BID_NODE_FILE },
		{ "buildid/" ID_A "/kallsyms", BID_NODE_FILE },
		{ "buildid/" ID_A "/info", BID_NODE_INFO },
		{ "buildid/" ID_A "/section", BID_NODE_SECTIONS },
		{ "buildid/" ID_A "/section/.text", BID_NODE_FILE },
		{ "buildid/" ID_A "/section/\t", -EINVAL },
		{ "buildid/" ID_A "/source", BID_NODE_SOURCES },
		{ "buildid/" ID_A "/source/usr", BID_NODE_SOURCES },
		{ "buildid/" ID_A "/source/usr/a.c", BID_NODE_FILE },
		{ "buildid/" ID_A "/source/usr/b.c", -ENOENT },
		{ "buildid/" ID_A "/source/usr/vector", BID_NODE_FILE },
		{ "buildid/" ID_A "/source/usr/a.c/x", -ENOTDIR },
		{ "buildid/" ID_A "/debug", -EINVAL },
		{ "buildid/" ID_A "/none", -EINVAL },
		{ "buildid/" ID_LONG, -ENOENT },
		{ "buildid/AAAA", -ENOENT },
		{ "buildid/AAAAAAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", BID_NODE_ALIAS },
		{ "buildid/aaaaaaa", BID_NODE_ALIAS },
		{ "buildid/aaaaaa", -ENOENT },
		{ "buildid/aaaaaab", -ENOENT },
		{ "buildid/aaaaaax", -EINVAL },
		{ "buildid/abc", -EINVAL },
		{ ".build-id/aa", BID_NODE_LINKS_FANOUT },
		{ ".build-id/x", -EINVAL },
		{ ".build-id/aaa", -EINVAL },
		{ "by-path/usr/bin/a", BID_NODE_BY_PATH },
		{ "by-path/usr/bin/a/" ID_A, BID_NODE_FILE },
		{ "by-path/usr/bin/a/" ID_B, -ENOENT },
		{ "by-path/[kernel.kallsyms]/" ID_B, BID_NODE_FILE },
		{ "usr/bin/a", BID_NODE_PATH },
		{ "usr/bin/a/" ID_A, BID_NODE_PATH_ID },
		{ "usr/bin/a/" ID_A "/debug", BID_NODE_FILE },
		{ "usr/bin/a/" ID_A "/debuginfo", -EINVAL },
		{ "usr/bin/nothing", -ENOENT },
		{ "usr/lib/debug", BID_NODE_PATH },
		{ "usr/lib/debug/.build-id/aa", BID_NODE_DEBUG_FANOUT },
		{ "usr/lib/debug/.build-id/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.debug", BID_NODE_FILE },
		{ "usr/lib/debug/.build-id/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", BID_NODE_FILE },
		{ "usr/lib/debug/.build-id/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.1.debug", -EINVAL },
		{ "usr/lib/debug/.build-id/aa/libc.so.6.dwp", -EINVAL },
		{ "debug", BID_NODE_ALIAS },
		{ ".debug", BID_NODE_ALIAS },
		{ ".bidfs/status", BID_NODE_STATUS },
		{ ".bidfs/tmp", -EINVAL },
		{ "[debuginfod]", BID_NODE_PATH },
		{ "[debuginfod]/" ID_A, -ENOENT },
		{ "[vdso]", -ENOENT },
		{ "[kernel.kallsyms]/" ID_A, -ENOENT },
		{ "[kernel.kallsyms]/" ID_B "/kallsyms", BID_NODE_FILE },
		{ "usr/bin/a/" ID_B, -ENOENT },
		{ "usr/bin/copy/" ID_A "/elf", BID_NODE_FILE },
		{ "usr/bin/copy/" ID_A "/debug", -ENOENT },
		{ "usr/bin/made/" ID_A "/elf", -ENOENT },
		{ "[kernel.kcore]", BID_NODE_PATH },
		{ "[kernel.kcore]/" ID_A, BID_NODE_KCORE },
		{ "[kernel.kcore]/" ID_LONG, -ENOENT },
		{ "[kernel.kcore]/x", -EINVAL },
		{ "[kernel.kcore]/" ID_A "/1970010100000000", BID_NODE_KCORE_COPY },
		{ "[kernel.kcore]/" ID_A "/1970010100000000/kallsyms", BID_NODE_FILE },
		{ "[kernel.kcore]/" ID_A "/1970010100000000/modules", BID_NODE_MODULES },
		{ "[kernel.kcore]/" ID_A "/1970010100000000/kcore", -EINVAL },
		{ "[kernel.kcore]/" ID_B "/2026112108080800", BID_NODE_KCORE_COPY },
		{ "[kernel.kcore]/" ID_B "/2026112108080800/kcore", BID_NODE_KCORE_FILE },
		{ "[kernel.kcore]/" ID_B "/2026112108080800/modules", -ENOENT },
		{ "[kernel.kcore]/" ID_B "/2026112108080800/elf", -EINVAL },
		{ "[kernel.kcore]/" ID_B "/2026112108080801", -ENOENT },
		{ "[kernel.kcore]/" ID_B "/2026112108080802/kcore", -ENOENT },
		{ "by-path/[kernel.kcore]", -ENOENT },
		{ "nowhere", -ENOENT },
	};

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	run(fixture, "mkdir -p store/usr/bin/copy/" ID_A " store/usr/bin/made/" ID_A " && cp a store/usr/bin/copy/" ID_A "/elf");
	run(fixture, "mkdir -p store/.bidfs/source/aa/" REST_A "/usr && touch store/.bidfs/source/aa/" REST_A "/usr/a.c"
		     " store/.bidfs/source/aa/" REST_A "/usr/vector");
	run(fixture, "mkdir -p 'store/[kernel.kallsyms]/" ID_B "' && touch 'store/[kernel.kallsyms]/" ID_B "/kallsyms'");
	run(fixture, "mkdir -p 'store/[kernel.kcore]/" ID_B "/2026112108080800'");
	run(fixture, "cp a 'store/[kernel.kcore]/" ID_B "/2026112108080800/kcore'");
	run(fixture, "mkdir 'store/[kernel.kcore]/" ID_B "/2026112108080802'");
	run(fixture, "head -c 1000 a >'store/[kernel.kcore]/" ID_B "/2026112108080802/kcore'");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (type_of(&tree, cases[i].path) != cases[i].type)
			fail_msg("'%s' is %d, not %d", cases[i].path, type_of(&tree, cases[i].path), cases[i].type);
}

/* The servers decide if the file exists. */
static void test_name_with_a_dot_may_be_a_source(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_tree tree = { .store = fixture->store, .any_id = true };
	static const struct {
		const char *path;
		int type;
	} cases[] = {
		{ "usr", BID_NODE_SOURCES },
		{ "usr/src/glibc-2.36", BID_NODE_FILE },
		{ "usr/include/c++/12/vector", BID_NODE_SOURCES },
		{ "usr/src/a.c", BID_NODE_FILE },
		{ "usr/src/lib.rs", BID_NODE_FILE },
		{ "usr/src/conf.d", BID_NODE_FILE },
		{ "usr/src/.c", BID_NODE_SOURCES },
		{ "usr/src/a.c/b.c", -ENOTDIR },
		{ "usr/src/a\n.c", -EINVAL },
		/* a stored path has the type of the stored file */
		{ "kept.c", BID_NODE_SOURCES },
		{ "kept.c/vector", BID_NODE_FILE },
	};

	run(fixture, "mkdir -p store/.bidfs/source/aa/" REST_A "/kept.c && touch store/.bidfs/source/aa/" REST_A "/kept.c/vector");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char path[512];

		snprintf(path, sizeof(path), "buildid/" ID_A "/source/%s", cases[i].path);
		if (type_of(&tree, path) != cases[i].type)
			fail_msg("'%s' is %d, not %d", path, type_of(&tree, path), cases[i].type);
	}
}

static void test_only_buildid_has_any_id(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_tree tree = { .store = fixture->store, .any_id = true };

	run(fixture, "mkdir -p store/usr/bin/a/" ID_LONG);
	assert_int_equal(type_of(&tree, "buildid/" ID_B), BID_NODE_ID);
	assert_int_equal(type_of(&tree, "buildid/" ID_LONG), BID_NODE_ID);
	assert_int_equal(type_of(&tree, "buildid/xyz"), -EINVAL);
	assert_int_equal(type_of(&tree, "buildid/aa"), BID_NODE_ID);
	assert_int_equal(type_of(&tree, "buildid/abababab"), BID_NODE_ID);
	assert_int_equal(type_of(&tree, "buildid/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB"), BID_NODE_ALIAS);
	/* a link needs a file behind it, and a path an object of the store */
	assert_int_equal(type_of(&tree, ".build-id/bb/" REST_B), -ENOENT);
	assert_int_equal(type_of(&tree, "[debuginfod]/" ID_B), -ENOENT);
	assert_int_equal(type_of(&tree, "[kernel.kcore]/" ID_B), -ENOENT);
	assert_int_equal(type_of(&tree, "usr/bin/a/" ID_B), -ENOENT);
	assert_int_equal(type_of(&tree, "usr/bin/a/" ID_LONG), BID_NODE_PATH_ID);
	assert_int_equal(type_of(&tree, "usr/bin/a/" ID_LONG "/elf"), -ENOENT);
	assert_int_equal(type_of(&tree, "by-path/usr/bin/a/" ID_B), -ENOENT);
	assert_int_equal(type_of(&tree, "by-path/usr/bin/a/" ID_LONG), -ENOENT);
	/* the target of the link is below .build-id, too */
	perf_adds(fixture, "b", "usr/bin/b", ID_B, "elf");
	assert_int_equal(type_of(&tree, ".build-id/bb/" REST_B), BID_NODE_LINK);
	assert_int_equal(type_of(&tree, "usr/bin/b/" ID_B "/debug"), BID_NODE_FILE);
}

static void test_links_have_perfs_targets(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_tree tree = { .store = fixture->store, .any_id = true };
	struct bid_node link = { .type = BID_NODE_LINK, .id = id_of(ID_A) };
	char text[PATH_MAX];

	assert_int_equal(bid_tree_readlink(&tree, &link, text, sizeof(text)), 0);
	assert_string_equal(text, "../../[debuginfod]/" ID_A);
	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	assert_int_equal(bid_tree_readlink(&tree, &link, text, sizeof(text)), 0);
	assert_string_equal(text, "../../usr/bin/a/" ID_A);
	assert_int_equal(bid_tree_readlink(&tree, &link, text, 10), -ENAMETOOLONG);
	/* a path that the mount has for itself */
	perf_adds(fixture, "b", "debug/b", ID_B, "elf");
	link.id = id_of(ID_B);
	assert_int_equal(bid_tree_readlink(&tree, &link, text, sizeof(text)), 0);
	assert_string_equal(text, "../../[debuginfod]/" ID_B);
}

static int collect(void *user, const char *name, const struct bid_node *node)
{
	char *names = user;
	size_t len = strlen(names);

	snprintf(names + len, 1024 - len, "%s ", name);
	return 0;
}

static void assert_lists(const struct bid_tree *tree, const char *path, const char *expected)
{
	struct bid_node node = { .type = BID_NODE_PATH };
	char names[1024] = "";

	if (*path)
		assert_int_equal(walk(tree, path, &node), 0);
	for (unsigned part = 0; part < bid_tree_parts(&node); part++)
		assert_int_equal(bid_tree_list(tree, &node, part, collect, names), 0);
	bid_node_release(&node);
	assert_string_equal(names, expected);
}

static void test_listing_has_only_stored_files(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_tree tree = { .store = fixture->store, .any_id = true };

	perf_adds(fixture, "a.stripped", "usr/bin/a", ID_A, "elf");
	assert_lists(&tree, "buildid", ID_A " ");
	assert_lists(&tree, "buildid/" ID_A, "elf executable section info ");
	assert_lists(&tree, "usr/bin/a", ID_A " ");
	assert_lists(&tree, "usr/bin/a/" ID_A, "elf ");
	assert_lists(&tree, ".build-id", "aa ");
	assert_lists(&tree, "usr/lib/debug/.build-id/aa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ");
	assert_lists(&tree, "", "buildid by-path .build-id .bidfs .debug debug usr ");
	assert_lists(&tree, "by-path", "usr ");

	perf_adds(fixture, "a.debug", "usr/bin/a", ID_A, "debug");
	assert_lists(&tree, "buildid/" ID_A, "elf executable debuginfo section info ");
	assert_lists(&tree, "usr/bin/a/" ID_A, "elf debug ");
	/* wrong files are not listed either */
	run(fixture, "cp b store/usr/bin/a/" ID_A "/elf");
	assert_lists(&tree, "buildid/" ID_A, "debuginfo section info ");
}

/* As bazel, conan and docker have them in their paths. */
static void test_path_may_have_an_id_as_component(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_node early = { .type = BID_NODE_PATH_ID, .id = id_of(ID_B), .path = (char *)"opt/" ID_B }, child;
	char names[1024] = "";

	run(fixture, "mkdir -p store/opt/" ID_B "/debug/x store/opt/" ID_LONG);
	for (int any_id = 0; any_id < 2; any_id++) {
		struct bid_tree tree = { .store = fixture->store, .any_id = any_id };

		assert_int_equal(type_of(&tree, "opt/" ID_B), BID_NODE_PATH);
		assert_int_equal(type_of(&tree, "opt/" ID_B "/debug"), BID_NODE_PATH);
		assert_int_equal(type_of(&tree, "opt/" ID_B "/debug/x"), BID_NODE_PATH);
		assert_int_equal(type_of(&tree, "opt/" ID_B "/elf"), -ENOENT);
		assert_lists(&tree, "opt/" ID_B, "debug ");
		/* an empty one belongs to a build that perf is about to add */
		assert_int_equal(type_of(&tree, "opt/" ID_LONG), BID_NODE_PATH_ID);
		assert_int_equal(type_of(&tree, "opt/" ID_LONG "/elf"), -ENOENT);
		assert_int_equal(type_of(&tree, "opt/" ID_LONG "/x"), -EINVAL);
	}
	/* the kernel may have cached it while it was empty */
	run(fixture, "mkdir store/opt/" ID_B "/y");
	assert_int_equal(bid_tree_lookup(&(struct bid_tree){ .store = fixture->store }, &early, "y", &child, NULL), 0);
	assert_int_equal(child.type, BID_NODE_PATH);
	bid_node_release(&child);
	assert_int_equal(bid_tree_list(&(struct bid_tree){ .store = fixture->store }, &early, 0, collect, names), 0);
	assert_int_equal(strlen(names), strlen("debug y "));
}

static void test_number_depends_only_on_the_node(void **state)
{
	struct bid_node root = { .type = BID_NODE_PATH };
	struct bid_node elf = { .type = BID_NODE_FILE, .kind = BID_KIND_ELF, .id = id_of(ID_A) };
	struct bid_node debug = { .type = BID_NODE_FILE, .kind = BID_KIND_DEBUGINFO, .id = id_of(ID_A) };
	struct bid_node usr = { .type = BID_NODE_PATH, .path = (char *)"usr" };
	struct bid_node by_usr = { .type = BID_NODE_BY_PATH, .path = (char *)"usr" };

	assert_int_equal(bid_inode_number(&root), BID_INODE_ROOT);
	assert_int_not_equal(bid_inode_number(&elf), bid_inode_number(&debug));
	assert_int_not_equal(bid_inode_number(&usr), bid_inode_number(&by_usr));
	assert_int_equal(bid_inode_number(&elf) >> 46 & 0xff, 0xaa);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_every_path_has_its_node),	    TEST(test_only_buildid_has_any_id),
		TEST(test_name_with_a_dot_may_be_a_source), TEST(test_links_have_perfs_targets),
		TEST(test_listing_has_only_stored_files),   TEST(test_path_may_have_an_id_as_component),
		TEST(test_number_depends_only_on_the_node),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
