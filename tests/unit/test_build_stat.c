// SPDX-License-Identifier: LGPL-2.1-or-later
/* Build stats for listings: for every id they agree with the other calls, wherever its files lie. */
#include "api/build_stat.h"
#include "store_fixture.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define ID_UNNAMED "1111111111111111111111111111111111111111"
#define ID_KERNEL  "2222222222222222222222222222222222222222"
#define ID_VDSO	   "3333333333333333333333333333333333333333"
#define ID_GONE	   "5555555555555555555555555555555555555555"
#define ID_UP	   "6666666666666666666666666666666666666666"

/* The size of the artifact, found as open finds it, but unchecked: 0 if there is none. */
static uint64_t size_at(const struct store_fixture *fixture, const char *path)
{
	struct stat st;

	assert_int_equal(bid_store_stat_path(fixture->store, path, &st), 0);
	return (uint64_t)st.st_size;
}

/* Summed up by themselves, and after an id of another first byte, which has other directories open. */
static struct bid_build_stat stat_of(const struct store_fixture *fixture, const char *hex)
{
	struct bid_id id = id_of(hex), other = id_of("ffffffff");
	struct bid_build_stats *stats;
	struct bid_build_stat first, again;
	char where[PATH_MAX];

	assert_int_equal(bid_build_stats_new(fixture->store, &stats), 0);
	bid_build_stat_of(stats, &id, &first);
	bid_build_stat_of(stats, &other, &again);
	assert_int_equal(again.kinds, 0);
	bid_build_stat_of(stats, &id, &again);
	bid_build_stats_free(stats);
	assert_int_equal(again.kinds, first.kinds);
	assert_int_equal(again.size, first.size);
	assert_string_equal(again.where, first.where);

	assert_int_equal(first.kinds, bid_store_kinds(fixture->store, &id));
	if (bid_store_perf_link(fixture->store, &id, where, sizeof(where)) < 0)
		where[0] = '\0';
	assert_string_equal(first.where, where);
	return first;
}

static void test_build_stat_covers_all_layouts(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_build_stat build_stat;

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "a.debug", "usr/bin/a", ID_A, "debug");
	build_stat = stat_of(fixture, ID_A);
	assert_int_equal(build_stat.kinds, 1 << BID_KIND_ELF | 1 << BID_KIND_DEBUGINFO);
	assert_int_equal(build_stat.size,
			 size_at(fixture, "usr/bin/a/" ID_A "/elf") + size_at(fixture, "usr/bin/a/" ID_A "/debug"));
	assert_string_equal(build_stat.where, "usr/bin/a/" ID_A);
	assert_true(build_stat.changed.tv_sec > 0);

	/* a second file of a kind does not count, one of another kind does */
	run(fixture, "mkdir -p 'store/[debuginfod]/" ID_A "' && cp b 'store/[debuginfod]/" ID_A "/elf' && "
		     "echo x > 'store/[debuginfod]/" ID_A "/probes'");
	assert_int_equal(stat_of(fixture, ID_A).size, build_stat.size + 2);

	run(fixture, "mkdir -p 'store/[debuginfod]/" ID_UNNAMED "' && cp a 'store/[debuginfod]/" ID_UNNAMED "/elf'");
	build_stat = stat_of(fixture, ID_UNNAMED);
	assert_int_equal(build_stat.kinds, 1 << BID_KIND_ELF);
	assert_int_equal(build_stat.changed.tv_sec, 0);

	perf_adds(fixture, "a.c", "[kernel.kallsyms]", ID_KERNEL, "kallsyms");
	assert_int_equal(stat_of(fixture, ID_KERNEL).kinds, 1 << BID_KIND_KALLSYMS);
	perf_adds(fixture, "a", "[vdso]", ID_VDSO, "vdso");
	assert_int_equal(stat_of(fixture, ID_VDSO).kinds, 1 << BID_KIND_VDSO);
	perf_adds(fixture, "long", "usr/bin/long", "cccccccccccccccccccccccccccccccccccccccc", "elf");
	assert_int_equal(stat_of(fixture, ID_LONG).kinds, 1 << BID_KIND_ELF);
	assert_int_equal(stat_of(fixture, ID_SHORT).kinds, 0);
	perf_adds(fixture, "short", "usr/bin/short", ID_SHORT "0000", "elf");
	assert_int_equal(stat_of(fixture, ID_SHORT).kinds, 1 << BID_KIND_ELF);
}

static void test_build_stat_covers_broken_layouts(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_build_stat build_stat;

	run(fixture, "mkdir -p store/.build-id/aa store/.build-id/55 store/.build-id/66");
	/* a file in the place of the link */
	run(fixture, "cp a store/.build-id/aa/%s", ID_A + 2);
	assert_int_equal(stat_of(fixture, ID_A).kinds, 0);
	run(fixture, "ln -s ../../usr/bin/gone/" ID_GONE " store/.build-id/55/%s", ID_GONE + 2);
	build_stat = stat_of(fixture, ID_GONE);
	assert_int_equal(build_stat.kinds, 0);
	assert_string_equal(build_stat.where, "usr/bin/gone/" ID_GONE);

	/* perf makes no links upwards: do not follow one, even inside the store */
	run(fixture,
	    "mkdir -p store/usr/bin/up/" ID_UP " && cp a store/usr/bin/up/" ID_UP "/elf && "
	    "ln -s ../../usr/../usr/bin/up/" ID_UP " store/.build-id/66/%s",
	    ID_UP + 2);
	build_stat = stat_of(fixture, ID_UP);
	assert_int_equal(build_stat.kinds, 0);
	assert_string_equal(build_stat.where, "");
	assert_int_equal(find(fixture, ID_UP, BID_KIND_ELF), -ENOENT);
	/* only regular files count */
	run(fixture, "mkdir -p store/usr/bin/gone/" ID_GONE "/debug && mkfifo store/usr/bin/gone/" ID_GONE "/elf");
	assert_int_equal(stat_of(fixture, ID_GONE).kinds, 0);
}

static void test_build_stat_covers_lower_stores(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_build_stat build_stat;
	char path[96];

	run(fixture,
	    "rm -rf tree cache perf && mkdir -p tree/.build-id/aa tree/usr cache/" ID_LONG " perf/.build-id/bb perf/b/" ID_B);
	run(fixture, "cp a.debug tree/usr/a.debug && ln -s ../../usr/a.debug tree/.build-id/aa/%s.debug", ID_A + 2);
	run(fixture, "cp long cache/" ID_LONG "/executable");
	run(fixture, "cp b perf/b/" ID_B "/elf && ln -s ../../b/" ID_B " perf/.build-id/bb/%s", ID_B + 2);
	for (const char *const *name = (const char *const[]){ "tree", "cache", "perf", NULL }; *name; name++) {
		snprintf(path, sizeof(path), "%s/%s", fixture->directory, *name);
		assert_int_equal(bid_store_add_lower(fixture->store, path), 0);
	}
	build_stat = stat_of(fixture, ID_A);
	assert_int_equal(build_stat.kinds, 1 << BID_KIND_DEBUGINFO);
	assert_true(build_stat.size > 0);
	assert_string_equal(build_stat.where, "");
	build_stat = stat_of(fixture, ID_LONG);
	assert_int_equal(build_stat.kinds, 1 << BID_KIND_ELF);
	assert_true(build_stat.size > 0);
	build_stat = stat_of(fixture, ID_B);
	assert_int_equal(build_stat.size, size_at(fixture, "b/" ID_B "/elf"));
	assert_string_equal(build_stat.where, "b/" ID_B);
	/* a file of the store itself comes first, and hides the same kind of a lower store */
	perf_adds(fixture, "a", "usr/bin/b", ID_B, "elf");
	build_stat = stat_of(fixture, ID_B);
	assert_int_equal(build_stat.size, size_at(fixture, "usr/bin/b/" ID_B "/elf"));
	assert_string_equal(build_stat.where, "usr/bin/b/" ID_B);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_build_stat_covers_all_layouts, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_build_stat_covers_broken_layouts, store_fixture_begin, store_fixture_end),
		cmocka_unit_test_setup_teardown(test_build_stat_covers_lower_stores, store_fixture_begin, store_fixture_end),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
