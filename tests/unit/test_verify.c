// SPDX-License-Identifier: LGPL-2.1-or-later
/* Check and repair a store: every kind of damage is found, and right files stay. */
#include "api/verify.h"
#include "store_fixture.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#define LINK_A	     ".build-id/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LINK_B	     ".build-id/bb/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define RECORD_PIECE "store/.bidfs/record/aa/*.source-*"
#define RECORD_A     ".bidfs/record/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static time_t ahead; /* seconds that the tested code's clock is ahead, because no test can make an old directory */

/* in the place of the C library's */
time_t time(time_t *ret_now)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret_now)
		*ret_now = now.tv_sec + ahead;
	return now.tv_sec + ahead;
}

static const struct store_fixture *evicting; /* its record of A disappears before another process gets the lock; or NULL */

int flock(int fd, int operation)
{
	if (evicting)
		run(evicting, "rm store/" RECORD_A ".elf");
	evicting = NULL;
	return (int)syscall(SYS_flock, fd, operation);
}

enum { LIGHT = 0, DEEP = 1, REPAIR = 2 };

/* Check the store; of each kind of finding there must be as many as @wanted says, "orphan=1 dangling=2". */
static struct bid_verify_stats verify(const struct store_fixture *fixture, unsigned how, const char *wanted)
{
	struct bid_verify_config config = { .deep = how & DEEP, .repair = how & REPAIR };
	struct bid_verify_stats stats = { 0 };
	char found[256] = "";

	assert_int_equal(bid_store_verify(fixture->store, &config, &stats), 0);
	for (int kind = 0; kind < BID_FINDING_COUNT; kind++) {
		size_t at = strlen(found);

		if (stats.found[kind])
			snprintf(found + at, sizeof(found) - at, "%s%s=%u", at ? " " : "",
				 bid_finding_name((enum bid_finding_kind)kind), (unsigned)stats.found[kind]);
	}
	assert_string_equal(found, wanted);
	return stats;
}

/* Repair all findings; a second run finds nothing. */
static void mend(const struct store_fixture *fixture, unsigned how, const char *wanted)
{
	assert_int_equal(verify(fixture, how | REPAIR, wanted).left, 0);
	verify(fixture, DEEP, "");
	run(fixture, "test -z \"$(ls store/.bidfs/tmp)\"");
}

static void add(const struct store_fixture *fixture, const char *name, enum bid_link link)
{
	struct bid_added added;
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	assert_int_equal(bid_store_add(fixture->store, path, link, &added), 0);
}

static void test_right_store_has_no_findings(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_verify_stats stats;

	verify(fixture, DEEP, "");
	add(fixture, "a", BID_LINK_COPY);
	add(fixture, "short", BID_LINK_COPY);
	add(fixture, "long", BID_LINK_COPY);
	store_fixture_fetch(fixture, request_for(ID_B, BID_KIND_ELF), "b");
	run(fixture, "printf '0000000000000000 A first\nffffffff81000000 T _text\n' >table");
	perf_adds(fixture, "table", "[kernel.kallsyms]", "1111111111111111111111111111111111111111", "kallsyms");
	/* perf leaves probe caches everywhere, and has its copies of the kernel's memory and of JIT dumps */
	run(fixture,
	    "touch 'store/[debuginfod]/" ID_B "/probes' && mkdir -p 'store/[kernel.kcore]/" ID_A "/2026112108080800' && "
	    "touch 'store/[kernel.kcore]/" ID_A "/2026112108080800/kallsyms' && mkdir -p store/jit && touch store/jit/x.dump");
	/* as an eviction and a download leave them */
	run(fixture, "touch store/.bidfs/evicted store/.bidfs/fetching");
	stats = verify(fixture, DEEP, "");
	assert_int_equal(stats.names, 5);
	assert_int_equal(stats.objects, 5);
	assert_int_equal(stats.links, 5);
	assert_int_equal(stats.records, 1);
	assert_int_equal(stats.digests, 1);
	assert_int_equal(stats.foreign, 0);
	verify(fixture, DEEP | REPAIR, "");
}

static void test_deep_check_reads_no_hole(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_verify_stats stats;

	run(fixture, "cp a large && truncate -s 4T large");
	add(fixture, "large", BID_LINK_COPY);
	stats = verify(fixture, DEEP, "");
	assert_true(stats.bytes < 16 << 20);
}

static void test_paths_of_one_object_are_right(void **state)
{
	struct store_fixture *fixture = *state;

	run(fixture, "cp a a2");
	add(fixture, "a", BID_LINK_COPY);
	add(fixture, "a2", BID_LINK_COPY);
	assert_int_equal(verify(fixture, LIGHT, "").names, 2);
}

static void test_wrong_objects_are_quarantined(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "b", "usr/bin/a", ID_A, "elf"); /* another build */
	perf_adds(fixture, "none", "usr/bin/b", ID_B, "elf"); /* no id */
	perf_adds(fixture, "a.c", "usr/bin/c", "1111111111111111111111111111111111111111", "elf"); /* no ELF file */
	verify(fixture, LIGHT, "wrong=3");
	run(fixture, "cmp b store/usr/bin/a/" ID_A "/elf");
	mend(fixture, LIGHT, "wrong=3");
	/* none is lost, and nothing leads to where they were */
	run(fixture, "cmp b store/.bidfs/quarantine/" ID_A ".elf.* && cmp none store/.bidfs/quarantine/" ID_B ".elf.* && "
		     "cmp a.c store/.bidfs/quarantine/1111111111111111111111111111111111111111.elf.*");
	assert_false(has_path(fixture, "usr"));
	run(fixture, "! test -L store/" LINK_A " && ! test -L store/" LINK_B);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
}

/* A module that cannot be unpacked may be right: it is too large, damaged, or libarchive lacks the codec. */
static void test_file_that_cannot_be_unpacked_stays(void **state)
{
	struct store_fixture *fixture = *state;

	run(fixture, "cp a large && truncate -s 513M large && (zstd -qc -1 large || gzip -1c large) >large.zst && rm large && "
		     "gzip -c a | head -c -100 >cut.gz && gzip -c a.c >text.gz && head -c 1000 none >none.cut");
	perf_adds(fixture, "large.zst", "lib/large.ko.zst", ID_A, "elf");
	perf_adds(fixture, "cut.gz", "lib/cut.ko.gz", ID_B, "elf");
	perf_adds(fixture, "text.gz", "lib/text.ko.gz", "1111111111111111111111111111111111111111", "elf");
	perf_adds(fixture, "none.cut", "usr/none", "2222222222222222222222222222222222222222", "elf");
	run(fixture, "find store -exec touch -h -d '1 hour ago' {} + && (cd store && find usr lib .build-id | sort) >before");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -EFBIG);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -EFBIG);
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), -EOPNOTSUPP);
	assert_int_equal(find(fixture, "1111111111111111111111111111111111111111", BID_KIND_ELF), -EOPNOTSUPP);
	assert_int_equal(find(fixture, "2222222222222222222222222222222222222222", BID_KIND_ELF), -EBADMSG);
	verify(fixture, LIGHT | REPAIR, "unreadable=4");
	run(fixture, "(cd store && find usr lib .build-id | sort) | cmp before - && ! test -e store/.bidfs/quarantine");
}

static void test_tables_without_addresses_are_quarantined(void **state)
{
	struct store_fixture *fixture = *state;

	run(fixture, "yes '0000000000000000 T hidden' | head -c 100000 >zeros && echo 'ffffffff81000000 T _text' >table");
	perf_adds(fixture, "zeros", "[kernel.kallsyms]", ID_A, "kallsyms");
	perf_adds(fixture, "a.c", "[kernel.kallsyms]", ID_B, "kallsyms");
	perf_adds(fixture, "table", "[kernel.kallsyms]", "1111111111111111111111111111111111111111", "kallsyms");
	verify(fixture, LIGHT, "wrong=2");
	verify(fixture, DEEP, "wrong=2");
	assert_int_equal(find(fixture, ID_A, BID_KIND_KALLSYMS), -ENOENT);
	assert_int_equal(find(fixture, ID_B, BID_KIND_KALLSYMS), -ENOENT);
	mend(fixture, LIGHT, "wrong=2");
	run(fixture,
	    "cmp zeros store/.bidfs/quarantine/" ID_A ".kallsyms.* && cmp a.c store/.bidfs/quarantine/" ID_B ".kallsyms.*");
	assert_int_equal(find(fixture, "1111111111111111111111111111111111111111", BID_KIND_KALLSYMS), 0);
}

static void test_edited_hard_link_is_quarantined(void **state)
{
	struct store_fixture *fixture = *state;

	run(fixture, "cp a plain && chmod 755 plain");
	add(fixture, "plain", BID_LINK_HARD);
	run(fixture, "cat b >plain");
	verify(fixture, LIGHT, "wrong=1");
	mend(fixture, LIGHT, "wrong=1");
	/* the user's file is the user's */
	run(fixture, "cmp b plain");
}

static void test_files_beside_a_wrong_object_stay(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "b", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "a.debug", "usr/bin/a", ID_A, "debug");
	run(fixture, "echo text >store/usr/bin/a/" ID_A "/notes");
	mend(fixture, LIGHT, "wrong=1");
	run(fixture, "cmp a.debug store/" LINK_A "/debug && test -f store/" LINK_A "/notes");
	assert_int_equal(verify(fixture, LIGHT, "").foreign, 1);
}

static void test_orphans_get_a_link(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	store_fixture_fetch(fixture, request_for(ID_B, BID_KIND_ELF), "b");
	run(fixture, "rm store/" LINK_A " store/" LINK_B);
	verify(fixture, LIGHT, "orphan=2");
	mend(fixture, LIGHT, "orphan=2");
	run(fixture, "test \"$(readlink store/" LINK_A ")\" = ../../usr/bin/a/" ID_A " && cmp b store/" LINK_B "/elf");
}

static void test_orphans_beside_a_link_become_paths(void **state)
{
	struct store_fixture *fixture = *state;

	/* as perf leaves them: the link is the first one's */
	perf_adds(fixture, "a.stripped", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "a.stripped", "opt/copy", ID_A, "elf");
	perf_adds(fixture, "a.debug", "opt/full", ID_A, "debug");
	perf_adds(fixture, "long", "opt/wrong", ID_A, "elf");
	verify(fixture, LIGHT, "wrong=1 orphan=1");
	mend(fixture, LIGHT, "wrong=1 orphan=1");
	run(fixture, "cmp a.stripped store/usr/bin/a/" ID_A "/elf && cmp a.stripped store/opt/copy/" ID_A "/elf");
	run(fixture, "cmp a.debug store/" LINK_A "/debug");
	assert_int_equal(find(fixture, ID_A, BID_KIND_DEBUGINFO), 0);
	assert_false(has_path(fixture, "opt/wrong"));
}

static void test_build_that_perf_added_after_a_download_gets_its_path(void **state)
{
	struct store_fixture *fixture = *state;

	store_fixture_fetch(fixture, request_for(ID_A, BID_KIND_DEBUGINFO), "a.debug");
	perf_adds(fixture, "a.stripped", "usr/bin/a", ID_A, "elf");
	mend(fixture, LIGHT, "orphan=1");
	run(fixture, "test \"$(readlink store/" LINK_A ")\" = ../../usr/bin/a/" ID_A " && cmp a.stripped store/" LINK_A "/elf && "
		     "cmp a.debug store/" LINK_A "/debug");
	assert_false(has_path(fixture, "[debuginfod]"));
}

/* In any order of names, the target of the link counts as right only after its check. */
static void test_right_file_is_not_replaced_by_a_wrong_one(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	/* another name of the same file */
	add(fixture, "a", BID_LINK_COPY);
	run(fixture, "for i in $(seq 30); do mkdir -p store/usr/bin/a$i/" ID_A " && cp a store/usr/bin/a$i/" ID_A "/elf; done && "
		     "cp b store/" LINK_A "/elf");
	mend(fixture, LIGHT, "wrong=2 orphan=1");
	run(fixture, "for i in $(seq 30); do cmp a store/usr/bin/a$i/" ID_A "/elf; done && cmp a store/" LINK_A "/elf && "
		     "test $(ls store/.bidfs/quarantine | wc -l) = 2");
}

static void test_dangling_and_wrong_links_are_repaired(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "b", "usr/bin/b", ID_B, "elf");
	/* swapped, and one more to nothing */
	run(fixture, "ln -sfn ../../usr/bin/b/" ID_B " store/" LINK_A " && ln -sfn ../../usr/bin/a/" ID_A " store/" LINK_B
		     " && mkdir store/.build-id/11 && "
		     "ln -s ../../usr/bin/gone/1111111111111111111111111111111111111111 "
		     "store/.build-id/11/11111111111111111111111111111111111111");
	verify(fixture, LIGHT, "orphan=2 dangling=1 mismatched=2");
	mend(fixture, LIGHT, "orphan=2 dangling=1 mismatched=2");
	run(fixture, "cmp a store/" LINK_A "/elf && cmp b store/" LINK_B "/elf");
}

/* As after a kill of perf: before the first file is in, or after the last is out; with a link or without. */
static void test_empty_directories_are_removed(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "b", "usr/bin/b", ID_B, "elf");
	run(fixture, "rm store/usr/bin/b/" ID_B "/elf && mkdir store/usr/bin/a/" ID_B);
	/* perf may be about to put something in */
	verify(fixture, LIGHT, "");
	ahead = 3600;
	verify(fixture, LIGHT, "empty=2");
	mend(fixture, LIGHT, "empty=2");
	ahead = 0;
	run(fixture, "test -f store/" LINK_A "/elf && ! test -e store/usr/bin/b && ! test -L store/" LINK_B);
}

static void test_foreign_files_stay(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_verify_stats stats;

	add(fixture, "a", BID_LINK_COPY);
	run(fixture,
	    "mkdir -p store/.build-id/22 store/notes store/.build-id/zz && ln -s /etc/passwd store/.build-id/22/2222 && "
	    "ln -s ../../../../etc store/.build-id/22/2233 && mkdir store/.build-id/22/2244 && mkfifo store/notes/fifo && "
	    "ln -s ../../usr/./bin/b/222255 store/.build-id/22/2255 && "
	    "echo hello >store/notes/text && ln -s / store/notes/root && touch store/.bidfs/mine store/.build-id/22/22.debug && "
	    "find store >before");
	stats = verify(fixture, DEEP, "foreign-link=4");
	assert_int_equal(stats.foreign, 6);
	stats = verify(fixture, DEEP | REPAIR, "foreign-link=4");
	assert_int_equal(stats.left, 4);
	run(fixture, "find store ! -name lock >after && cmp before after");
}

static int keep_orphan(void *user, const struct bid_finding *finding)
{
	char *text = user;

	if (finding->kind == BID_FINDING_ORPHAN)
		snprintf(text, 128, "%s", finding->text);
	return 0;
}

static void test_orphan_reports_its_foreign_link(void **state)
{
	struct store_fixture *fixture = *state;
	char text[128] = "";
	struct bid_verify_config config = { .found = keep_orphan, .user = text };
	struct bid_verify_stats stats;

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	run(fixture, "ln -sfn /usr/bin/a store/" LINK_A);
	assert_int_equal(bid_store_verify(fixture->store, &config, &stats), 0);
	assert_non_null(strstr(text, "does not have the form"));
	run(fixture, "rm store/" LINK_A " && mkdir store/" LINK_A);
	assert_int_equal(bid_store_verify(fixture->store, &config, &stats), 0);
	assert_non_null(strstr(text, "no symbolic link"));
}

/* A writer may still be alive, and a new directory about to be filled. */
static void test_leftovers_are_removed_after_a_day(void **state)
{
	struct store_fixture *fixture = *state;

	add(fixture, "a", BID_LINK_COPY);
	run(fixture, "touch -d '2 days ago' store/.bidfs/tmp/temp-0123456789abcdef && mkdir -p store/opt/x/" ID_B " && "
		     "touch -d '2 days ago' store/opt/x/" ID_B);
	verify(fixture, LIGHT, "");
	ahead = 25 * 3600;
	verify(fixture, LIGHT, "empty=1 temporary=1");
	mend(fixture, LIGHT, "empty=1 temporary=1");
	ahead = 0;
	assert_false(has_path(fixture, "opt/x/" ID_B));
}

static void test_damaged_record_is_replaced_by_repair(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_id id = id_of(ID_B);
	struct timespec changed;
	char *text;

	store_fixture_fetch(fixture, request_for(ID_A, BID_KIND_ELF), "a");
	store_fixture_fetch(fixture, request_for(ID_B, BID_KIND_ELF), "b");
	store_fixture_fetch(fixture, request_for(ID_LONG, BID_KIND_ELF), "long");
	run(fixture, "rm -r 'store/[debuginfod]/" ID_A "' store/" LINK_A " && truncate -s 20 store/.bidfs/record/bb/* && "
		     "cp store/.bidfs/record/aa/* store/.bidfs/record/cc/");
	verify(fixture, LIGHT, "record=1 stale=2");
	mend(fixture, LIGHT, "record=1 stale=2");
	assert_int_equal(bid_store_info(fixture->store, &id, &text, &changed), 0);
	/* nothing evicts the file, and nothing vouches for it */
	assert_non_null(strstr(text, "\"pinned\""));
	assert_null(strstr(text, "xxh3-128:"));
	free(text);
}

static void test_record_of_an_eviction_in_progress_is_right(void **state)
{
	struct store_fixture *fixture = *state;

	store_fixture_fetch(fixture, request_for(ID_A, BID_KIND_ELF), "a");
	run(fixture, "rm -r 'store/[debuginfod]/" ID_A "' store/" LINK_A);
	evicting = fixture;
	verify(fixture, LIGHT, "");
	assert_null(evicting);
}

/* The user owns the file from then on, and the digest of the download stays. */
static void test_rotten_byte_of_an_added_download_is_found(void **state)
{
	struct store_fixture *fixture = *state;

	store_fixture_fetch(fixture, request_for(ID_A, BID_KIND_ELF), "a");
	add(fixture, "a", BID_LINK_COPY);
	assert_int_equal(verify(fixture, DEEP, "").digests, 1);
	run(fixture, "chmod 644 store/" LINK_A "/elf && printf XX | dd of=store/" LINK_A
		     "/elf bs=1 seek=$(($(stat -c %%s a) - 2)) conv=notrunc status=none");
	verify(fixture, LIGHT, "");
	verify(fixture, DEEP, "corrupt=1");
}

static void test_file_replaced_by_perf_is_right(void **state)
{
	struct store_fixture *fixture = *state;

	/* fetched stripped; then somebody put the same build there with its symbols */
	store_fixture_fetch(fixture, request_for(ID_A, BID_KIND_ELF), "a.stripped");
	run(fixture, "rm 'store/[debuginfod]/" ID_A "/elf' && cp a 'store/[debuginfod]/" ID_A "/elf'");
	mend(fixture, DEEP, "record=1");
	run(fixture, "cmp a store/" LINK_A "/elf");
}

static void test_only_the_selected_build_is_checked(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_id ids[] = { id_of(ID_A), id_of(ID_LONG) };
	struct bid_verify_config config = { .ids = ids, .n_ids = 2 };
	struct bid_verify_stats stats;

	perf_adds(fixture, "b", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "a", "usr/bin/b", ID_B, "elf");
	store_fixture_fetch(fixture, request_for(ID_LONG, BID_KIND_ELF), "long");
	assert_int_equal(bid_store_verify(fixture->store, &config, &stats), 0);
	assert_int_equal(stats.found[BID_FINDING_WRONG], 1);
	assert_int_equal(stats.names, 2);
	assert_int_equal(stats.records, 1);
}

static int stop_at_first(void *user, const struct bid_finding *finding)
{
	assert_int_equal(finding->kind, BID_FINDING_WRONG);
	assert_non_null(strstr(finding->text, ID_B));
	return 42;
}

static void test_callback_ends_verify(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_verify_config config = { .found = stop_at_first };
	struct bid_verify_stats stats;
	struct bid_store *reader;
	char path[96];

	perf_adds(fixture, "b", "usr/bin/a", ID_A, "elf");
	assert_int_equal(bid_store_verify(fixture->store, &config, &stats), 42);
	snprintf(path, sizeof(path), "%s/store", fixture->directory);
	assert_int_equal(bid_store_open(path, 0, &reader), 0);
	config.repair = true;
	assert_int_equal(bid_store_verify(reader, &config, &stats), -EROFS);
	bid_store_free(reader);
}

#define SOURCE_A  ".bidfs/source/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/usr/src/a.c"
#define SECTION_A ".bidfs/section/aa/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/.text"

static void fetch_source(const struct store_fixture *fixture)
{
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_SOURCE);
	struct bid_subpath *subpath;

	assert_int_equal(bid_subpath_source("/usr/src/a.c", &subpath), 0);
	artifact.subpath = subpath;
	store_fixture_fetch(fixture, artifact, "a.c");
	bid_subpath_unref(subpath);
	assert_true(has_path(fixture, SOURCE_A));
}

/* Nothing is left, so the file is downloaded again. */
static void no_source_is_left(const struct store_fixture *fixture)
{
	run(fixture, "! test -e store/.bidfs/source/aa && ! test -e " RECORD_PIECE);
}

static void test_rotten_source_is_removed(void **state)
{
	struct store_fixture *fixture = *state;

	fetch_source(fixture);
	assert_int_equal(verify(fixture, DEEP, "").digests, 1);
	assert_int_equal(verify(fixture, DEEP, "").foreign, 0);
	run(fixture, "chmod 644 store/" SOURCE_A " && printf X | dd of=store/" SOURCE_A " conv=notrunc status=none");
	verify(fixture, LIGHT, "");
	verify(fixture, DEEP, "corrupt=1");
	mend(fixture, DEEP, "corrupt=1");
	no_source_is_left(fixture);
}

/* Without its record nothing would ever evict it. */
static void test_source_is_removed_with_its_record(void **state)
{
	struct store_fixture *fixture = *state;
	static const char *const damages[] = {
		"rm " RECORD_PIECE,
		"for f in " RECORD_PIECE "; do printf '{' >$f; done",
		"sed -i 's/fetched/fitched/' " RECORD_PIECE,
		"for f in " RECORD_PIECE "; do printf '{}' >$f; done",
		"for f in " RECORD_PIECE "; do rm $f; mkdir $f; done",
		"for f in " RECORD_PIECE "; do ln -sf /etc/passwd $f; done",
	};

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		fetch_source(fixture);
		run(fixture, "test -f " RECORD_PIECE);
		run(fixture, "%s", damages[i]);
		/* the source, and the damaged record */
		verify(fixture, LIGHT, i == 0 ? "record=1" : "record=2");
		mend(fixture, LIGHT, i == 0 ? "record=1" : "record=2");
		no_source_is_left(fixture);
	}
}

static void test_section_is_compared_with_its_file(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_SECTION);
	struct bid_file file = BID_FILE_NONE;
	struct bid_subpath *subpath;

	add(fixture, "a", BID_LINK_COPY);
	assert_int_equal(bid_subpath_section(".text", &subpath), 0);
	artifact.subpath = subpath;
	for (int round = 0; round < 2; round++) {
		assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
		bid_file_release(&file);
		verify(fixture, DEEP, "");
		run(fixture, "chmod 644 store/" SECTION_A " && printf %s | dd of=store/" SECTION_A " conv=notrunc status=none",
		    round ? "'\\377\\377'" : "XXXX");
		mend(fixture, DEEP, "corrupt=1");
		assert_false(has_path(fixture, SECTION_A));
	}
	bid_subpath_unref(subpath);
}

/* Ignore empty directories: they are reported from an age of a minute on, which they may reach during a slow test. */
static void leave_out_empty(struct bid_verify_stats *stats)
{
	stats->left -= stats->found[BID_FINDING_EMPTY];
	stats->found[BID_FINDING_EMPTY] = 0;
}

/* Several threads find the same as one: names that are right, wrong, empty, without a link, and dangling links. */
static void test_threads_find_the_same_as_one(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_verify_config config = { .jobs = 1 };
	struct bid_verify_stats one, many;

	add(fixture, "a", BID_LINK_COPY);
	add(fixture, "b", BID_LINK_COPY);
	run(fixture, "echo 'ffffffff81000000 T _text' >table");
	run(fixture,
	    "cd store && i=0 && while [ $((i += 1)) -le 300 ]; do id=$(echo $i | sha1sum | cut -c1-40); link=$(echo $id | "
	    "cut -c3-); fanout=.build-id/$(echo $id | cut -c1-2); dir=usr/$((i %% 7))/$((i %% 90))/x; mkdir -p $fanout $dir/$id; "
	    "case $((i %% 4)) in 0) ;; 1) cp ../b $dir/$id/elf ;; *) cp ../table $dir/$id/kallsyms ;; esac; "
	    "case $((i %% 5)) in 0) ;; 1) ln -s ../../gone/$id $fanout/$link ;; *) ln -s ../../$dir/$id $fanout/$link ;; esac; "
	    "done");
	assert_int_equal(bid_store_verify(fixture->store, &config, &one), 0);
	leave_out_empty(&one);
	assert_int_equal(one.names, 302);
	assert_true(one.found[BID_FINDING_WRONG] > 50 && one.found[BID_FINDING_ORPHAN] > 20 &&
		    one.found[BID_FINDING_DANGLING] > 50);
	config.jobs = 8;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(bid_store_verify(fixture->store, &config, &many), 0);
		leave_out_empty(&many);
		assert_memory_equal(&many, &one, sizeof(one));
	}
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_right_store_has_no_findings),
		TEST(test_deep_check_reads_no_hole),
		TEST(test_paths_of_one_object_are_right),
		TEST(test_wrong_objects_are_quarantined),
		TEST(test_file_that_cannot_be_unpacked_stays),
		TEST(test_tables_without_addresses_are_quarantined),
		TEST(test_edited_hard_link_is_quarantined),
		TEST(test_files_beside_a_wrong_object_stay),
		TEST(test_orphans_get_a_link),
		TEST(test_orphans_beside_a_link_become_paths),
		TEST(test_build_that_perf_added_after_a_download_gets_its_path),
		TEST(test_right_file_is_not_replaced_by_a_wrong_one),
		TEST(test_dangling_and_wrong_links_are_repaired),
		TEST(test_empty_directories_are_removed),
		TEST(test_foreign_files_stay),
		TEST(test_orphan_reports_its_foreign_link),
		TEST(test_leftovers_are_removed_after_a_day),
		TEST(test_damaged_record_is_replaced_by_repair),
		TEST(test_record_of_an_eviction_in_progress_is_right),
		TEST(test_rotten_byte_of_an_added_download_is_found),
		TEST(test_file_replaced_by_perf_is_right),
		TEST(test_only_the_selected_build_is_checked),
		TEST(test_rotten_source_is_removed),
		TEST(test_source_is_removed_with_its_record),
		TEST(test_section_is_compared_with_its_file),
		TEST(test_threads_find_the_same_as_one),
		TEST(test_callback_ends_verify),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
