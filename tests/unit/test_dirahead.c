// SPDX-License-Identifier: LGPL-2.1-or-later
/* The parts of the directory with all ids, read ahead by a thread: each is what is there, in whatever order they are taken. */
#include "store_scene.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../fs/dirahead.h"
#include "../../fs/inode.h"
#include "base/cleanup.h"

enum { PARTS = 256, THICK = 24, EVERY = 7, FAR = 100, DOTS = 2 }; /* every seventh part has so many ids, the others none */

static const struct bid_node ids = { .type = BID_NODE_IDS };

static void link_path(const struct store_scene *scene, unsigned part, unsigned i, char ret_path[static 256])
{
	snprintf(ret_path, 256, "%s/store/.build-id/%02x/%038x", scene->directory, part, i * 0x01234567 + part);
}

static int fill(void **state)
{
	int r = store_scene_begin(state);
	const struct store_scene *scene = *state;
	char path[256];

	run(scene, "mkdir -p store/.build-id");
	for (unsigned part = 0; part < PARTS; part++) {
		/* the first two are those that a thread is started for */
		if (part > 1 && part % EVERY)
			continue;
		snprintf(path, sizeof(path), "%s/store/.build-id/%02x", scene->directory, part);
		assert_int_equal(mkdir(path, 0755), 0);
		for (unsigned i = 0; i < THICK; i++) {
			link_path(scene, part, i, path);
			assert_int_equal(symlink("../../usr/bin/a", path), 0);
		}
	}
	return r;
}

static atomic_uint running; /* threads */

static struct bid_dirahead *begin(const struct bid_tree *tree)
{
	struct bid_dirahead *ahead;

	assert_int_equal(bid_dirahead_new(tree, &ids, bid_inode_number(&ids), &running, &ahead), 0);
	return ahead;
}

static size_t take(struct bid_dirahead *ahead, unsigned index, bool anew)
{
	const struct bid_dirpart *part;
	char fan[16];

	assert_int_equal(bid_dirahead_take(ahead, index, anew, &part), 0);
	snprintf(fan, sizeof(fan), "%02x", index);
	for (size_t i = index == 0 ? DOTS : 0; i < part->n; i++) {
		assert_memory_equal(part->names + part->entries[i].name, fan, 2);
		assert_int_equal(bid_dirpart_of(part->entries[i].offset), index);
		assert_true(i == 0 || part->entries[i].offset > part->entries[i - 1].offset);
	}
	return part->n;
}

static size_t expected(unsigned index)
{
	if (index == 0)
		return THICK + DOTS;
	return index == 1 || index % EVERY == 0 ? THICK : 0;
}

/* Threads that read ahead. */
static unsigned threads(void)
{
	bid_auto_dir DIR *dir = opendir("/proc/self/task");
	unsigned n = 0;

	assert_non_null(dir);
	for (const struct dirent *entry; (entry = readdir(dir));) {
		char path[64], name[32] = "";
		bid_auto_fd int fd = -1;

		snprintf(path, sizeof(path), "%.20s/comm", entry->d_name);
		fd = openat(dirfd(dir), path, O_RDONLY | O_CLOEXEC);
		n += fd >= 0 && read(fd, name, sizeof(name) - 1) > 0 && strcmp(name, "bid-list\n") == 0;
	}
	return n;
}

/* What is joined may be there for a moment more. */
static void no_threads(void)
{
	while (threads() > 0)
		usleep(1000);
}

static void parts_in_order(void **state)
{
	const struct store_scene *scene = *state;
	struct bid_tree tree = { .store = scene->store };
	struct bid_dirahead *ahead = begin(&tree);

	no_threads();
	for (unsigned i = 0; i < PARTS; i++) {
		assert_int_equal(take(ahead, i, false), expected(i));
		/* for one part alone there is none, and from the second one on one and no more */
		assert_int_equal(threads(), i > 0);
	}
	bid_dirahead_free(ahead);
	no_threads();
}

/* As NFS reads, which has no open directories. */
static void parts_here_and_there(void **state)
{
	const struct store_scene *scene = *state;
	struct bid_tree tree = { .store = scene->store };
	struct bid_dirahead *ahead = begin(&tree);

	no_threads();
	for (unsigned i = 0; i < PARTS; i += EVERY)
		assert_int_equal(take(ahead, i, false), expected(i));
	assert_int_equal(threads(), 0);
	bid_dirahead_free(ahead);
}

/* Back by one, as who has little room for names; far away; the same once more; and to the end, with the thread anywhere. */
static void parts_in_any_order(void **state)
{
	const struct store_scene *scene = *state;
	struct bid_tree tree = { .store = scene->store };

	srandom(1);
	for (unsigned turn = 0; turn < 10; turn++) {
		struct bid_dirahead *ahead = begin(&tree);
		unsigned at = 0;

		for (unsigned n = 0; n < 100; n++) {
			unsigned way = (unsigned)random() % 16;

			assert_int_equal(take(ahead, at, way == 0), expected(at));
			at = way == 1 ? (unsigned)random() % PARTS : way == 2 && at > 0 ? at - 1 : way == 3 ? at : at + 1;
			at %= PARTS;
		}
		bid_dirahead_free(ahead);
	}
}

/* What was read, and what was read ahead, is given up when all is to be read anew. */
static void anew(void **state)
{
	const struct store_scene *scene = *state;
	struct bid_tree tree = { .store = scene->store };
	struct bid_dirahead *ahead = begin(&tree);
	char path[256];

	for (unsigned i = 0; i <= 2 * EVERY; i++)
		assert_int_equal(take(ahead, i, false), expected(i));
	for (unsigned i = 0; i < PARTS; i += EVERY) {
		link_path(scene, i, 0, path);
		assert_int_equal(unlink(path), 0);
	}
	for (unsigned i = 0; i < PARTS; i++)
		assert_int_equal(take(ahead, i, i == 0), expected(i) - (i % EVERY == 0));
	bid_dirahead_free(ahead);
}

/* An error is told to who takes the part, and is over when its cause is, whoever met it first. */
static void an_error_is_told(void **state)
{
	const struct store_scene *scene = *state;
	struct bid_tree tree = { .store = scene->store };
	struct bid_dirahead *ahead = begin(&tree);
	const struct bid_dirpart *part;
	struct rlimit before;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(take(ahead, i, false), expected(i));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ .rlim_cur = 3, .rlim_max = before.rlim_max }), 0);
	for (unsigned i = FAR; i < FAR + 3; i++)
		assert_int_equal(bid_dirahead_take(ahead, i, false, &part), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (unsigned i = FAR; i < PARTS; i++)
		assert_int_equal(take(ahead, i, false), expected(i));
	bid_dirahead_free(ahead);
}

/* Many who list at once share a few threads; all get what is there, also who goes on without one, or gets it later. */
static void few_threads_for_many(void **state)
{
	const struct store_scene *scene = *state;
	struct bid_tree tree = { .store = scene->store };
	struct bid_dirahead *all[3 * BID_DIRAHEAD_THREADS];

	no_threads();
	for (unsigned n = 0; n < 3 * BID_DIRAHEAD_THREADS; n++)
		all[n] = begin(&tree);
	for (unsigned i = 0; i < PARTS; i++) {
		for (unsigned n = 0; n < 3 * BID_DIRAHEAD_THREADS; n++) {
			/* the first ones end halfway */
			if (n < BID_DIRAHEAD_THREADS && i == PARTS / 2) {
				bid_dirahead_free(all[n]);
				all[n] = NULL;
			}
			if (all[n])
				assert_int_equal(take(all[n], i, false), expected(i));
		}
		if (i > 0 && i < PARTS / 2)
			assert_int_equal(threads(), BID_DIRAHEAD_THREADS);
	}
	assert_int_equal(running, BID_DIRAHEAD_THREADS);
	for (unsigned n = 0; n < 3 * BID_DIRAHEAD_THREADS; n++)
		bid_dirahead_free(all[n]);
	assert_int_equal(running, 0);
	no_threads();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(parts_in_order, fill, store_scene_end),
		cmocka_unit_test_setup_teardown(parts_here_and_there, fill, store_scene_end),
		cmocka_unit_test_setup_teardown(parts_in_any_order, fill, store_scene_end),
		cmocka_unit_test_setup_teardown(anew, fill, store_scene_end),
		cmocka_unit_test_setup_teardown(an_error_is_told, fill, store_scene_end),
		cmocka_unit_test_setup_teardown(few_threads_for_many, fill, store_scene_end),
	};

	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
