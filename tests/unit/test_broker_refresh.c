// SPDX-License-Identifier: LGPL-2.1-or-later
/* bid_broker_refresh() drops the negative cache entries. */
#include "broker_scene.h"

#include <errno.h>
#include <stdlib.h>

#include "api/detail.h"
#include "base/log.h"

static void test_refresh_requests_absent_file_again(void **state)
{
	struct scene *scene = *state;
	struct bid_request request = elf_of(0xa), debuginfo = request_of(0xa, BID_KIND_DEBUGINFO);
	struct bid_request all = request_of(0xa, BID_KIND_NONE);
	struct bid_source *source;

	scene_broker(scene, &patient);
	source = scene_memory(scene, "memory");
	assert_int_equal(fetch(scene, &request, NULL), -ENOENT);
	assert_int_equal(fetch(scene, &debuginfo, NULL), -ENOENT);
	/* refresh removes the entries of one kind, and a recent result answers no new caller */
	assert_int_equal(bid_broker_refresh(scene->broker, &debuginfo, false), 0);
	assert_int_equal(find(scene, &request, NULL), -ENOENT);
	assert_int_equal(fetch(scene, &debuginfo, NULL), -ENOENT);
	assert_int_equal(source_memory_asked(source), 3);
	put_elf(source, 0xa, 0xa);
	assert_int_equal(bid_broker_refresh(scene->broker, &all, false), 0);
	assert_int_equal(stats_of(scene).negative_entries, 0);
	assert_int_equal(find(scene, &debuginfo, NULL), -EINPROGRESS);
	assert_int_equal(fetch(scene, &request, NULL), 0);
	assert_int_equal(source_memory_asked(source), 4);
}

static void test_refresh_drops_every_reason(void **state)
{
	static const enum bid_outcome outcomes[] = { BID_OUTCOME_UNSUPPORTED, BID_OUTCOME_TOO_LARGE };
	struct scene *scene = *state;
	struct bid_request request = elf_of(0xa);
	struct bid_source *source;
	unsigned asked = 0;

	scene_broker(scene, &patient);
	source = scene_memory(scene, "memory");
	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
		source_memory_set_default(source, outcomes[i]);
		assert_int_not_equal(fetch(scene, &request, NULL), 0);
		assert_int_equal(source_memory_asked(source), ++asked);
		assert_int_equal(bid_broker_refresh(scene->broker, &request, false), 0);
	}
	/* and the reason */
	put_elf(source, 0xa, 0xb);
	assert_int_equal(fetch(scene, &request, NULL), -EBADMSG);
	assert_int_equal(bid_broker_refresh(scene->broker, &request, false), 0);
	put_elf(source, 0xa, 0xa);
	assert_int_equal(fetch(scene, &request, NULL), 0);
}

static void test_refresh_of_bad_request_is_refused(void **state)
{
	struct scene *scene = *state;
	struct bid_request nobody = { .kind = BID_KIND_NONE }, source = request_of(0xa, BID_KIND_SOURCE);
	struct bid_request local = request_of(0xa, BID_KIND_KALLSYMS);
	struct bid_detail *detail;

	scene_broker(scene, &patient);
	assert_int_equal(bid_broker_refresh(scene->broker, &nobody, false), -EINVAL);
	assert_int_equal(bid_broker_refresh(scene->broker, &source, false), -EINVAL);
	assert_int_equal(bid_broker_refresh(scene->broker, &local, false), -EINVAL);
	assert_int_equal(bid_detail_source("/a.c", &detail), 0);
	source.detail = detail;
	scene_memory(scene, "memory");
	assert_int_equal(fetch(scene, &source, NULL), -ENOENT);
	assert_int_equal(find(scene, &source, NULL), -ENOENT);
	assert_int_equal(bid_broker_refresh(scene->broker, &source, false), 0);
	assert_int_equal(find(scene, &source, NULL), -EINPROGRESS);
	bid_detail_unref(detail);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(test_refresh_requests_absent_file_again),
		scene_test(test_refresh_drops_every_reason),
		scene_test(test_refresh_of_bad_request_is_refused),
	};

	/* the tests provoke warnings */
	bid_log_init("test", BID_LOG_ERROR);
	return cmocka_run_group_tests(tests, scene_compile, scene_clean);
}
