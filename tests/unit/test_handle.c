// SPDX-License-Identifier: LGPL-2.1-or-later
/* From a number back to its node, by those who have never heard of either. */
#include "store_scene.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../fs/handle.h"
#include "../../fs/inode.h"

#define REST_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void walk(const struct bid_tree *tree, const char *path, struct bid_node *ret_node)
{
	struct bid_node node = { .type = BID_NODE_PATH };
	char *copy = strdup(path), *rest = copy, *name;

	while ((name = strsep(&rest, "/"))) {
		struct bid_node child;

		if (bid_tree_lookup(tree, &node, name, &child) != 0)
			fail_msg("'%s' is not there", path);
		bid_node_release(&node);
		node = child;
	}
	free(copy);
	*ret_node = node;
}

/* Who waits for an answer. */
struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	bool gone, over;
	int error;
	struct bid_node node;
};

static void answer(void *user, int error, const struct bid_node *node)
{
	struct waiter *waiter = user;

	pthread_mutex_lock(&waiter->lock);
	assert_false(waiter->over);
	waiter->error = error;
	if (error == 0)
		assert_int_equal(bid_node_copy(node, &waiter->node), 0);
	waiter->over = true;
	pthread_cond_signal(&waiter->answered);
	pthread_mutex_unlock(&waiter->lock);
}

static bool is_gone(void *user)
{
	const struct waiter *waiter = user;

	return waiter->gone;
}

static int resolve(struct bid_handles *handles, uint64_t number, bool gone, struct bid_node *ret_node)
{
	struct waiter waiter = { .lock = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER, .gone = gone };
	const struct bid_handle_waiter call = { .answer = answer, .is_gone = is_gone, .user = &waiter };
	int r = bid_handles_resolve(handles, number, ret_node);

	if (r != -EINPROGRESS)
		return r;
	assert_int_equal(bid_handles_seek(handles, number, &call), 0);
	pthread_mutex_lock(&waiter.lock);
	while (!waiter.over)
		pthread_cond_wait(&waiter.answered, &waiter.lock);
	pthread_mutex_unlock(&waiter.lock);
	if (waiter.error == 0)
		*ret_node = waiter.node;
	return waiter.error;
}

static void every_number_is_resolved(void **state)
{
	struct store_scene *scene = *state;
	struct bid_tree tree = { .store = scene->store };
	static const char *const paths[] = {
		"buildid",
		"buildid/" ID_A,
		"buildid/" ID_A "/elf",
		"buildid/" ID_A "/info",
		"buildid/" ID_A "/section",
		"buildid/" ID_A "/section/.text",
		"buildid/" ID_A "/source",
		"buildid/" ID_A "/source/usr",
		"buildid/" ID_A "/source/usr/src",
		"buildid/" ID_A "/source/usr/src/a.c",
		".build-id/aa/" REST_A,
		"by-path",
		"by-path/usr",
		"by-path/usr/bin",
		"by-path/usr/bin/a",
		"by-path/usr/bin/other",
		"usr",
		"usr/lib/debug",
		"usr/bin",
		"usr/bin/a",
		"usr/bin/a/" ID_A,
		"usr/bin/other/" ID_A,
		"opt/app/bin/b",
		"opt/app/bin/b/" ID_B,
		"usr/lib/debug/.build-id/aa",
		"[debuginfod]",
		"[debuginfod]/" ID_LONG,
		"[kernel.kcore]",
		"[kernel.kcore]/" ID_A,
		"[kernel.kcore]/" ID_A "/1970010100000000",
		"[kernel.kcore]/" ID_A "/1970010100000000/modules",
		/* of which perf has a copy alone */
		"[kernel.kcore]/cccccccccccccccccccccccccccccccccccccccc",
		"[kernel.kcore]/cccccccccccccccccccccccccccccccccccccccc/2026112108080800",
		"[kernel.kcore]/cccccccccccccccccccccccccccccccccccccccc/2026112108080800/kcore",
		/* perf's spellings */
		"buildid/" ID_SHORT "0000000000000000000000000000",
		"buildid/" ID_SHORT "00000000/elf",
		"debug",
		".bidfs/README",
	};
	struct bid_handles *handles;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(scene, "b", "opt/app/bin/b", ID_B, "elf");
	perf_adds(scene, "short", "usr/bin/short", ID_SHORT, "elf");
	run(scene, "mkdir -p 'store/[debuginfod]/" ID_LONG "' && cp long 'store/[debuginfod]/" ID_LONG "/elf'");
	run(scene, "mkdir -p store/.build-id/cc && ln -s '../../[debuginfod]/" ID_LONG "' store/.build-id/cc/%s", ID_LONG + 2);
	run(scene, "mkdir -p store/.bidfs/source/aa/" REST_A "/usr/src && touch store/.bidfs/source/aa/" REST_A "/usr/src/a.c");
	run(scene, "mkdir -p 'store/[kernel.kcore]/cccccccccccccccccccccccccccccccccccccccc/2026112108080800'");
	run(scene, "cp a 'store/[kernel.kcore]/cccccccccccccccccccccccccccccccccccccccc/2026112108080800/kcore'");
	/* a second path, to which perf's link does not lead */
	run(scene,
	    "mkdir -p store/usr/bin/other/" ID_A " store/.bidfs/name/aa/" REST_A " && cp a store/usr/bin/other/" ID_A "/elf");
	run(scene, "ln -s usr/bin/other/" ID_A " store/.bidfs/name/aa/" REST_A "/0000000000000000");

	assert_int_equal(bid_handles_new(&tree, &handles), 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct bid_node node, found = { 0 };
		int r;

		walk(&tree, paths[i], &node);
		r = resolve(handles, bid_inode_number(&node), false, &found);
		if (r < 0 || !bid_node_equal(&node, &found))
			fail_msg("'%s' is not resolved: %d", paths[i], r);
		bid_node_release(&found);
		bid_node_release(&node);
	}
	bid_handles_end(handles);
	bid_handles_free(handles);
}

/* Nothing that was read before is taken for what is there now. */
/* The number of a node without id, path and text is a constant that anybody can find out. */
static void what_is_of_nothing_is_no_handle(void **state)
{
	struct store_scene *scene = *state;
	struct bid_tree tree = { .store = scene->store };
	struct bid_handles *handles;

	assert_int_equal(bid_handles_new(&tree, &handles), 0);
	for (enum bid_node_type type = BID_NODE_NONE; type <= BID_NODE_STAGED; type++) {
		for (enum bid_kind kind = BID_KIND_NONE; kind < BID_KIND_COUNT; kind++) {
			struct bid_node node = { .type = type, .kind = kind }, found = { 0 };
			bool is_one = kind == BID_KIND_NONE &&
				      (type == BID_NODE_PATH || type == BID_NODE_BY_PATH || type == BID_NODE_IDS ||
				       type == BID_NODE_LINKS || type == BID_NODE_LINKS_FAN || type == BID_NODE_DEBUG ||
				       type == BID_NODE_DEBUG_FAN || type == BID_NODE_META || type == BID_NODE_README);
			int r;

			if (kind != BID_KIND_NONE && type != BID_NODE_FILE)
				continue;
			r = resolve(handles, bid_inode_number(&node), false, &found);
			if (r != (is_one ? 0 : -ESTALE))
				fail_msg("type %d, kind %d: %d", type, kind, r);
			bid_node_release(&found);
		}
	}
	bid_handles_end(handles);
	bid_handles_free(handles);
}

static void what_comes_and_goes(void **state)
{
	struct store_scene *scene = *state;
	struct bid_tree tree = { .store = scene->store };
	const struct bid_node bin = { .type = BID_NODE_PATH, .path = (char *)"opt/bin/b" };
	struct bid_node found;
	struct bid_handles *handles;

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	assert_int_equal(bid_handles_new(&tree, &handles), 0);
	assert_int_equal(resolve(handles, bid_inode_number(&bin), false, &found), -ESTALE);
	perf_adds(scene, "b", "opt/bin/b", ID_B, "elf");
	assert_int_equal(resolve(handles, bid_inode_number(&bin), false, &found), 0);
	assert_true(bid_node_equal(&found, &bin));
	bid_node_release(&found);
	run(scene, "rm -r store/opt store/.build-id/bb");
	assert_int_equal(resolve(handles, bid_inode_number(&bin), false, &found), -ESTALE);
	bid_handles_end(handles);
	bid_handles_free(handles);
}

/* A second path is noted beside the first, and no link of perf's tells of it. */
static void another_path_of_what_is_there(void **state)
{
	struct store_scene *scene = *state;
	struct bid_tree tree = { .store = scene->store };
	struct bid_handles *handles;
	struct bid_added added;
	char path[96];

	perf_adds(scene, "a", "usr/bin/a", ID_A, "elf");
	assert_int_equal(bid_handles_new(&tree, &handles), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct bid_node node = { .type = BID_NODE_PATH, .path = path + 1 }, found;

		snprintf(path, sizeof(path), "%s/copy%u", scene->directory, i);
		assert_int_equal(resolve(handles, bid_inode_number(&node), false, &found), -ESTALE);
		/* what is younger than a clock tick is read anew in any case */
		run(scene, "cp a copy%u && sleep 0.1", i);
		assert_int_equal(resolve(handles, bid_inode_number(&node), false, &found), -ESTALE);
		assert_int_equal(bid_store_add(scene->store, path, BID_LINK_AUTO, &added), 0);
		assert_true(added.known);
		assert_int_equal(resolve(handles, bid_inode_number(&node), false, &found), 0);
		assert_true(bid_node_equal(&found, &node));
		bid_node_release(&found);
	}
	bid_handles_end(handles);
	bid_handles_free(handles);
}

static void who_has_given_up_is_sent_away(void **state)
{
	struct store_scene *scene = *state;
	struct bid_tree tree = { .store = scene->store };
	const struct bid_node none = { .type = BID_NODE_PATH, .path = (char *)"opt/bin/none" };
	struct bid_node found;
	struct bid_handles *handles;

	/* as many ids as are looked at between two questions */
	run(scene, "mkdir -p store/.build-id/aa; for i in $(seq 100 200); do ln -s ../../usr/bin/a/aa0${i}" ID_SHORT
		   " store/.build-id/aa/0${i}" ID_SHORT "; done");
	assert_int_equal(bid_handles_new(&tree, &handles), 0);
	assert_int_equal(resolve(handles, bid_inode_number(&none), true, &found), -EINTR);
	bid_handles_end(handles);
	bid_handles_free(handles);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_scene_begin, store_scene_end)
	const struct CMUnitTest tests[] = {
		TEST(every_number_is_resolved),	     TEST(what_is_of_nothing_is_no_handle), TEST(what_comes_and_goes),
		TEST(another_path_of_what_is_there), TEST(who_has_given_up_is_sent_away),
	};

	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
