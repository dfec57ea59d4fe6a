// SPDX-License-Identifier: LGPL-2.1-or-later
/* What becomes of wrong answers, of those who gave them, and of bytes that are not the first ones. */
#include "held_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/evict.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "broker/broker.h"

static bool quarantine_is_absent(struct scene *scene)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/.bidfs/quarantine", scene->directory);
	return access(path, F_OK) < 0 && errno == ENOENT;
}

static void test_wrong_id_leaves_nothing_in_the_store_and_its_reason_names_it(void **state)
{
	struct scene *scene = *state;
	struct bid_request request = elf_of(0xa);
	struct call *call;

	scene_broker(scene, &patient);
	put_elf(scene_memory(scene, "wrong"), 0xa, 0xb);
	assert_int_equal(fetch(scene, &request, &call), -EBADMSG);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_REJECTED);
	assert_non_null(strstr(call->texts[0], "0b0b0b0b"));
	assert_true(quarantine_is_absent(scene));
}

/* A page for everybody is wrong in the place of a program, and nobody can tell in that of a source file. */
static void test_the_source_learns_what_the_check_of_a_program_came_to(void **state)
{
	struct scene *scene = *state;
	struct bid_request wrong = elf_of(1), right = elf_of(0xa), file = { .id = right.id, .kind = BID_KIND_SOURCE };
	struct held_source *held;
	struct bid_detail *detail;

	assert_int_equal(bid_detail_source("/a.c", &detail), 0);
	file.detail = detail;
	scene_broker(scene, &patient);
	held = scene_held(scene, "held");
	held_elf(held, 0xa);
	assert_int_equal(fetch(scene, &wrong, NULL), -EBADMSG);
	assert_int_equal(held->wrong, 1);
	assert_int_equal(fetch(scene, &file, NULL), 0);
	assert_int_equal(held->right, 0);
	assert_int_equal(fetch(scene, &right, NULL), 0);
	assert_int_equal(held->right, 1);
	assert_int_equal(held->wrong, 1);
	bid_detail_unref(detail);
}

/* What a source sent wrong it is not asked for again and again; but it proves nothing, and not for long. */
static void test_wrong_is_remembered(void **state)
{
	struct scene *scene = *state;
	struct bid_request request = elf_of(0xa);
	struct bid_source *wrong;
	struct call *call;
	unsigned ttl;

	scene_broker(scene, &patient);
	wrong = scene_memory(scene, "wrong");
	put_elf(wrong, 0xa, 0xb);
	assert_int_equal(fetch(scene, &request, NULL), -EBADMSG);
	sleep_ms(300); /* the lingering */
	assert_int_equal(fetch(scene, &request, &call), -EBADMSG);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_REJECTED);
	assert_non_null(strstr(call->texts[0], "wrong content earlier"));
	assert_int_equal(source_memory_asked(wrong), 1);
	assert_int_equal(find(scene, &request, NULL), -EINPROGRESS);
	assert_int_equal(bid_negative_lookup(&scene->broker->negative, &request, "wrong", &ttl), BID_OUTCOME_REJECTED);
	assert_in_range(ttl, 30, 90);
	bid_negative_forget(&scene->broker->negative, &request, "wrong");
	put_elf(wrong, 0xa, 0xa);
	sleep_ms(300);
	assert_int_equal(fetch(scene, &request, NULL), 0);
}

/* All sections are there, but not all that was said to be. */
static void test_the_announced_size(void **state)
{
	struct scene *scene = *state;
	struct bid_request request = elf_of(0xa);
	struct held_source *held;
	struct call *call;

	scene_broker(scene, &patient);
	held = scene_held(scene, "held");
	held_elf(held, 0xa);
	held->announce = held->body_len + 1;
	assert_int_equal(fetch(scene, &request, &call), -EBADMSG);
	assert_non_null(strstr(call->texts[0], "announced"));
	sleep_ms(300); /* the lingering */
	bid_negative_forget(&scene->broker->negative, &request, "held");
	held->announce = held->body_len - 1;
	assert_int_equal(fetch(scene, &request, &call), -EBADMSG);
	sleep_ms(300);
	bid_negative_forget(&scene->broker->negative, &request, "held");
	held->announce = BID_SIZE_UNKNOWN;
	assert_int_equal(fetch(scene, &request, NULL), 0);
}

static void evict_all(struct scene *scene)
{
	struct bid_evict_config config = { .limits.cache_size = 1 };
	struct bid_evict_stats stats;

	/* what is open is not evicted: the broker's is closed by now */
	for (struct call *call = scene->calls; call; call = call->next) {
		bid_close(call->fd);
		call->fd = -1;
	}
	assert_int_equal(bid_store_evict(scene->store, &config, &stats), 0);
	assert_int_equal(stats.evicted, 1);
}

static void test_other_bytes_than_the_first(void **state)
{
	struct scene *scene = *state;
	struct bid_request request = elf_of(0xa);
	struct bid_source *first, *second;
	size_t len;
	const void *original = elf_bytes(0xa, &len);
	bid_auto_free char *changed = calloc(1, len + 16);
	struct call *call;

	assert_non_null(changed);
	memcpy(changed, original, len);
	scene_broker(scene, &patient);
	first = scene_memory(scene, "first");
	put_elf(first, 0xa, 0xa);
	assert_int_equal(fetch(scene, &request, NULL), 0);
	scene_end_broker(scene);
	evict_all(scene);

	/* the same build by its id, and sound, but another file */
	scene_broker(scene, &patient);
	first = scene_memory(scene, "first");
	assert_int_equal(source_memory_put(first, &request, changed, len + 16), 0);
	assert_int_equal(fetch(scene, &request, &call), -EBADMSG);
	assert_non_null(strstr(call->texts[0], "other bytes"));
	assert_int_equal(call->outcomes[0], BID_OUTCOME_REJECTED);
	scene_end_broker(scene);

	/* another server has the first bytes */
	scene_broker(scene, &patient);
	first = scene_memory(scene, "first");
	assert_int_equal(source_memory_put(first, &request, changed, len + 16), 0);
	second = scene_memory(scene, "second");
	put_elf(second, 0xa, 0xa);
	assert_int_equal(fetch(scene, &request, &call), 0);
	assert_content(call->fd, 0xa);
	scene_end_broker(scene);
	evict_all(scene);

	/* the user wants them all the same, and from then on they are the ones */
	scene_broker(scene, &(struct bid_broker_config){ .accept = true });
	first = scene_memory(scene, "first");
	assert_int_equal(source_memory_put(first, &request, changed, len + 16), 0);
	assert_int_equal(fetch(scene, &request, &call), 0);
	assert_int_equal(call->size, len + 16);
	scene_end_broker(scene);
	evict_all(scene);
	scene_broker(scene, &patient);
	put_elf(scene_memory(scene, "first"), 0xa, 0xa);
	assert_int_equal(fetch(scene, &request, NULL), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scene_test(test_wrong_id_leaves_nothing_in_the_store_and_its_reason_names_it),
		scene_test(test_the_source_learns_what_the_check_of_a_program_came_to),
		scene_test(test_wrong_is_remembered),
		scene_test(test_the_announced_size),
		scene_test(test_other_bytes_than_the_first),
	};

	/* what the tests provoke is looked for where it matters */
	bid_log_init("test", BID_LOG_ERROR);
	return cmocka_run_group_tests(tests, scene_compile, scene_clean);
}
