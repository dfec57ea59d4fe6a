// SPDX-License-Identifier: LGPL-2.1-or-later
/* Builds whose link was removed: until their directory is, or the link is made anew, and no longer than for a while. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../fs/leaving.h"

enum { NOW = 1000 };

static const struct bid_id ids[] = { { .len = 1, .bytes = { 0 } }, { .len = 1, .bytes = { 0x11 } } };

static void until_it_is_removed(void **state)
{
	struct bid_leaving leaving;
	struct bid_id id;

	bid_leaving_init(&leaving);
	assert_false(bid_leaving_has(&leaving, "usr/bin/ls/00", NOW));
	bid_leaving_begin(&leaving, &ids[0], "usr/bin/ls/00", NOW);
	bid_leaving_begin(&leaving, &ids[1], "usr/bin/ls/11", NOW);
	assert_true(bid_leaving_has(&leaving, "usr/bin/ls/00", NOW));
	assert_false(bid_leaving_end(&leaving, "usr/bin/ls", NOW, &id));
	assert_true(bid_leaving_end(&leaving, "usr/bin/ls/00", NOW, &id));
	assert_true(bid_id_equal(&id, &ids[0]));
	assert_false(bid_leaving_has(&leaving, "usr/bin/ls/00", NOW) || bid_leaving_hides(&leaving, &ids[0], NOW));
	assert_true(bid_leaving_has(&leaving, "usr/bin/ls/11", NOW) && bid_leaving_hides(&leaving, &ids[1], NOW));
	bid_leaving_release(&leaving);
}

static void until_the_link_is_made_anew(void **state)
{
	struct bid_leaving leaving;
	struct bid_id id;

	bid_leaving_init(&leaving);
	bid_leaving_begin(&leaving, &ids[0], "usr/bin/ls/00", NOW);
	assert_false(bid_leaving_cancel(&leaving, &ids[1], NOW));
	assert_true(bid_leaving_cancel(&leaving, &ids[0], NOW));
	assert_false(bid_leaving_cancel(&leaving, &ids[0], NOW));
	assert_false(bid_leaving_empties(&leaving, "usr/bin/ls/00", NOW) || bid_leaving_hides(&leaving, &ids[0], NOW));
	assert_false(bid_leaving_end(&leaving, "usr/bin/ls/00", NOW, &id));
	bid_leaving_release(&leaving);
}

static void probes_until_others_are_made(void **state)
{
	struct bid_leaving leaving;

	bid_leaving_init(&leaving);
	assert_false(bid_leaving_hides_probes(&leaving, &ids[0], NOW));
	bid_leaving_probes(&leaving, &ids[0], NOW);
	bid_leaving_probes(&leaving, &ids[1], NOW);
	assert_true(bid_leaving_hides_probes(&leaving, &ids[0], NOW + BID_LEAVING_MS - 1));
	assert_false(bid_leaving_hides_probes(&leaving, &ids[0], NOW + BID_LEAVING_MS));
	assert_false(bid_leaving_hides(&leaving, &ids[0], NOW));
	assert_true(bid_leaving_probes_cancel(&leaving, &ids[0], NOW));
	assert_false(bid_leaving_probes_cancel(&leaving, &ids[0], NOW));
	assert_false(bid_leaving_hides_probes(&leaving, &ids[0], NOW));
	assert_true(bid_leaving_hides_probes(&leaving, &ids[1], NOW));
	bid_leaving_release(&leaving);
}

/* A link that is only hidden takes no directory along. */
static void without_a_directory(void **state)
{
	struct bid_leaving leaving;

	bid_leaving_init(&leaving);
	bid_leaving_begin(&leaving, &ids[0], "usr/bin/ls/00", NOW);
	bid_leaving_begin(&leaving, &ids[0], NULL, NOW);
	assert_true(bid_leaving_hides(&leaving, &ids[0], NOW));
	assert_false(bid_leaving_has(&leaving, "usr/bin/ls/00", NOW));
	bid_leaving_release(&leaving);
}

static void for_a_while(void **state)
{
	struct bid_leaving leaving;
	struct bid_id id;

	bid_leaving_init(&leaving);
	bid_leaving_begin(&leaving, &ids[0], "usr/bin/ls/00", NOW);
	assert_true(bid_leaving_has(&leaving, "usr/bin/ls/00", NOW + BID_LEAVING_MS - 1));
	assert_true(bid_leaving_hides(&leaving, &ids[0], NOW + BID_LEAVING_MS - 1));
	assert_false(bid_leaving_has(&leaving, "usr/bin/ls/00", NOW + BID_LEAVING_MS));
	assert_false(bid_leaving_hides(&leaving, &ids[0], NOW + BID_LEAVING_MS));
	assert_false(bid_leaving_end(&leaving, "usr/bin/ls/00", NOW + BID_LEAVING_MS, &id));
	bid_leaving_release(&leaving);
}

/* Nobody gets to a directory but through those above it, and in it there is nothing. */
static void with_what_leads_to_it(void **state)
{
	struct bid_leaving leaving;

	bid_leaving_init(&leaving);
	bid_leaving_begin(&leaving, &ids[0], "usr/bin/ls/00", NOW);
	assert_true(bid_leaving_has(&leaving, "usr", NOW));
	assert_true(bid_leaving_has(&leaving, "usr/bin/ls", NOW));
	assert_false(bid_leaving_empties(&leaving, "usr/bin/ls", NOW));
	assert_true(bid_leaving_empties(&leaving, "usr/bin/ls/00", NOW));
	assert_false(bid_leaving_has(&leaving, "usr/bin/l", NOW));
	assert_false(bid_leaving_has(&leaving, "usr/bin/ls/0", NOW));
	assert_false(bid_leaving_has(&leaving, "usr/bin/ls/00/elf", NOW));
	bid_leaving_release(&leaving);
}

static void of_many_the_last(void **state)
{
	struct bid_leaving leaving;
	char path[16];

	bid_leaving_init(&leaving);
	for (int i = 0; i <= BID_LEAVING_MAX; i++) {
		snprintf(path, sizeof(path), "ls/%02d", i);
		bid_leaving_begin(&leaving, &(struct bid_id){ .len = 1, .bytes = { (uint8_t)i } }, path, NOW);
	}
	assert_false(bid_leaving_has(&leaving, "ls/00", NOW));
	assert_true(bid_leaving_has(&leaving, "ls/01", NOW));
	assert_true(bid_leaving_has(&leaving, path, NOW));
	bid_leaving_release(&leaving);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(until_it_is_removed),		cmocka_unit_test(until_the_link_is_made_anew),
		cmocka_unit_test(without_a_directory),		cmocka_unit_test(for_a_while),
		cmocka_unit_test(with_what_leads_to_it),	cmocka_unit_test(of_many_the_last),
		cmocka_unit_test(probes_until_others_are_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
