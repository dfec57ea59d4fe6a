// SPDX-License-Identifier: LGPL-2.1-or-later
/* The directory server: lookup, and the meaning of its ENOENT. */
#include "fetch_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define WEB_ID	  ID
#define DEBUG_ID  OTHER_ID
#define KERNEL_ID "aacc"
#define PERF_ID	  "aabbccddeeff00112233445566778899aabbccdd"

/* Puts the body of all artifacts at @format below the tree. */
static void put(const char *name)
{
	char path[256];
	bid_auto_fd int fd = -1;

	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(path, sizeof(path), "%s/tree/%.*s", world.root, (int)(slash - name), name);
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	}
	snprintf(path, sizeof(path), "%s/tree/%s", world.root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(bid_pwrite_full(fd, world.body, BODY_SIZE, 0), 0);
}

static void link_to(const char *target, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/tree/%s", world.root, name);
	assert_int_equal(symlink(target, path), 0);
}

static int begin_tree(void **state)
{
	char path[256];

	begin_world(state);
	snprintf(path, sizeof(path), "%s/tree", world.root);
	assert_int_equal(mkdir(path, 0755), 0);
	put("buildid/" WEB_ID "/debuginfo");
	put("buildid/" WEB_ID "/executable");
	put("buildid/" WEB_ID "/source/usr/src/a b.c");
	put("buildid/" WEB_ID "/section/.text");
	put(".build-id/ff/eeddccbbaa99887766554433221100ffeeddcc.debug");
	put("usr/bin/program");
	link_to("../../usr/bin/program", ".build-id/ff/eeddccbbaa99887766554433221100ffeeddcc");
	put("usr/bin/perf/" PERF_ID "/elf");
	put("usr/bin/perf/" PERF_ID "/debug");
	put(".build-id/aa/x");
	link_to("../../usr/bin/perf/" PERF_ID, ".build-id/aa/bbccddeeff00112233445566778899aabbccdd");
	put("[kernel.kallsyms]/" KERNEL_ID "/kallsyms");
	link_to("../../[kernel.kallsyms]/" KERNEL_ID, ".build-id/aa/cc");
	put(".build-id/01/escape");
	link_to("../../../" ID "/debuginfo", ".build-id/01/23456789abcdef0123456789abcdef01234567.debug");
	return 0;
}

/* A fetcher, and a server of the directory @name in the world's. */
static void set_up_tree(struct setting *setting, const char *name)
{
	char url[256];

	snprintf(url, sizeof(url), "file://%s/%s", world.root, name);
	assert_int_equal(bid_fetch_new(&calm, &setting->fetch), 0);
	assert_int_equal(bid_fetch_server_new(setting->fetch, url, &setting->server), 0);
	assert_string_equal(setting->server->name, url);
}

static void ask_kind(struct bid_server *server, const char *id, enum bid_kind kind, struct capture *capture)
{
	capture_init(capture);
	start(server, id, kind, capture);
	await_done(capture);
}

static void test_each_layout_is_found(void **state)
{
	struct capture capture;
	struct setting setting;

	set_up_tree(&setting, "tree");
	for (enum bid_kind kind = BID_KIND_ELF; kind <= BID_KIND_DEBUGINFO; kind++) {
		ask_kind(setting.server, WEB_ID, kind, &capture);
		assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
		assert_body(&capture);
		assert_int_equal(capture.size, BODY_SIZE);
		ask_kind(setting.server, PERF_ID, kind, &capture);
		assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
		assert_body(&capture);
		/* this kernel has only a symbol table */
		ask_kind(setting.server, KERNEL_ID, kind, &capture);
		assert_int_equal(capture.outcome, BID_OUTCOME_ABSENT);
		ask_kind(setting.server, DEBUG_ID, kind, &capture);
		assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
		assert_body(&capture);
	}
	assert_string_equal(capture.file, ".build-id/ff/eeddccbbaa99887766554433221100ffeeddcc.debug");
	tear_down(&setting);
}

/* How many descriptors of this process lead into the tree. */
static unsigned count_open(void)
{
	char prefix[256], target[512];
	bid_auto_dir DIR *fds = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned count = 0;

	assert_non_null(fds);
	snprintf(prefix, sizeof(prefix), "%s/tree", world.root);
	while ((entry = readdir(fds))) {
		ssize_t n = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target));

		count += n > 0 && (size_t)n >= strlen(prefix) && memcmp(target, prefix, strlen(prefix)) == 0;
	}
	return count;
}

static void test_build_directory_instead_of_file_is_closed(void **state)
{
	static const char *const ids[] = { PERF_ID, KERNEL_ID };
	struct capture capture;
	struct setting setting;

	set_up_tree(&setting, "tree");
	for (size_t i = 0; i < 2 * sizeof(ids) / sizeof(ids[0]); i++)
		ask_kind(setting.server, ids[i % 2], BID_KIND_ELF, &capture);
	tear_down(&setting);
	assert_int_equal(count_open(), 0);
}

static void test_servers_and_sections_are_found(void **state)
{
	static const struct {
		enum bid_kind kind;
		const char *subpath;
		enum bid_outcome outcome;
	} cases[] = {
		{ BID_KIND_SOURCE, "/usr/src/a b.c", BID_OUTCOME_FOUND }, { BID_KIND_SOURCE, "/usr/src/b.c", BID_OUTCOME_ABSENT },
		{ BID_KIND_SOURCE, "/usr/src", BID_OUTCOME_UNAVAILABLE }, { BID_KIND_SECTION, ".text", BID_OUTCOME_FOUND },
		{ BID_KIND_SECTION, ".data", BID_OUTCOME_ABSENT },
	};
	struct setting setting;

	set_up_tree(&setting, "tree");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bid_artifact artifact = { .kind = cases[i].kind };
		struct bid_subpath *subpath;
		struct capture capture;

		assert_int_equal(bid_id_parse_str(WEB_ID, &artifact.id), 0);
		assert_int_equal(cases[i].kind == BID_KIND_SOURCE ? bid_subpath_source(cases[i].subpath, &subpath)
								  : bid_subpath_section(cases[i].subpath, &subpath),
				 0);
		artifact.subpath = subpath;
		capture_init(&capture);
		assert_int_equal(setting.server->ops->request(setting.server, &artifact, &receiver, &capture), 0);
		bid_subpath_unref(subpath);
		await_done(&capture);
		if (capture.outcome != cases[i].outcome)
			fail_msg("%s: %s, %s", cases[i].subpath, bid_outcome_name(capture.outcome), capture.text);
	}
	tear_down(&setting);
}

/* A missing file is absent; without a tree the result is unknown. */
static void test_missing_tree_is_not_absence(void **state)
{
	static const struct {
		const char *tree, *id;
		enum bid_outcome outcome;
		const char *text;
	} cases[] = {
		{ "tree", "aa" ABSENT_ID, BID_OUTCOME_ABSENT, "no such file" },
		{ "tree", "aa", BID_OUTCOME_ABSENT, "no such file" },
		{ "none", ID, BID_OUTCOME_UNAVAILABLE, "not a tree of files by build-id, or not mounted" },
		{ "tree/usr", ID, BID_OUTCOME_UNAVAILABLE, "not a tree of files by build-id, or not mounted" },
		/* a link out of the tree */
		{ "tree", ABSENT_ID, BID_OUTCOME_REFUSED, "a link leads out of the tree" },
	};
	struct capture capture;
	struct setting setting;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_up_tree(&setting, cases[i].tree);
		ask(setting.server, cases[i].id, &capture);
		if (capture.outcome != cases[i].outcome || strncmp(capture.text, cases[i].text, strlen(cases[i].text)) != 0)
			fail_msg("%s: %s, \"%s\"", cases[i].id, bid_outcome_name(capture.outcome), capture.text);
		assert_int_equal(capture.heads, 0);
		tear_down(&setting);
	}
}

static void test_receiver_error_ends_the_transfer(void **state)
{
	struct capture capture;
	struct setting setting;

	set_up_tree(&setting, "tree");
	for (int where = 0; where < 2; where++) {
		capture_init(&capture);
		*(where ? &capture.head_result : &capture.body_result) = -ENOSPC;
		start(setting.server, ID, BID_KIND_DEBUGINFO, &capture);
		await_done(&capture);
		assert_int_equal(capture.outcome, BID_OUTCOME_FAILED);
	}
	tear_down(&setting);
}

/* In every case each transfer ends once. */
static void test_free_ends_running_transfers(void **state)
{
	enum { N = 50 };
	static struct capture captures[N];
	struct setting setting;

	set_up_tree(&setting, "tree");
	for (size_t i = 0; i < N; i++) {
		capture_init(&captures[i]);
		start(setting.server, ID, BID_KIND_DEBUGINFO, &captures[i]);
		if (i % 3 == 0)
			setting.server->ops->cancel(setting.server, &captures[i]);
	}
	tear_down(&setting);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(captures[i].dones, 1);
		if (captures[i].outcome == BID_OUTCOME_FOUND)
			assert_body(&captures[i]);
		else
			assert_int_equal(captures[i].outcome, BID_OUTCOME_CANCELLED);
	}
}

static void look_at_health(void *user)
{
	struct capture *capture = user;
	struct bid_server_health health;

	capture->next_server->ops->health(capture->next_server, &health);
}

/* The server calls done() without its lock. */
static void test_receiver_may_submit_a_request(void **state)
{
	struct bid_artifact artifact = { .kind = BID_KIND_DEBUGINFO };
	struct bid_receiver looks = receiver;
	struct capture capture;
	struct setting setting;

	set_up_tree(&setting, "tree");
	capture_init(&capture);
	capture.next_server = setting.server;
	looks.sent = look_at_health;
	assert_int_equal(bid_id_parse_str(WEB_ID, &artifact.id), 0);
	assert_int_equal(setting.server->ops->request(setting.server, &artifact, &looks, &capture), 0);
	await_done(&capture);
	assert_int_equal(capture.outcome, BID_OUTCOME_FOUND);
	tear_down(&setting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_layout_is_found),
		cmocka_unit_test(test_servers_and_sections_are_found),
		cmocka_unit_test(test_missing_tree_is_not_absence),
		cmocka_unit_test(test_receiver_error_ends_the_transfer),
		cmocka_unit_test(test_receiver_may_submit_a_request),
		cmocka_unit_test(test_free_ends_running_transfers),
		cmocka_unit_test(test_build_directory_instead_of_file_is_closed),
	};

	return cmocka_run_group_tests(tests, begin_tree, end_world);
}
