// SPDX-License-Identifier: LGPL-2.1-or-later
/* The read side of the store, over files of perf and of saboteurs. */
#include "api/perf_write.h"
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk/lookup.h"

#define ABSENT "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"

enum { NAMES_MAX = 4096 };

static void test_file_added_by_perf_is_found(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_ELF);
	struct bid_file file = BID_FILE_NONE;
	struct bid_id id = id_of(ID_A);
	char where[PATH_MAX];

	perf_adds(fixture, "a.stripped", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "a.debug", "usr/bin/a", ID_A, "debug");
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
	assert_int_equal(file.kind, BID_KIND_ELF);
	assert_true(file.st.st_size > 0);
	bid_file_release(&file);
	assert_int_equal(find(fixture, ID_A, BID_KIND_DEBUGINFO), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_KALLSYMS), -ENOENT);
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), -ENOENT);
	assert_int_equal(bid_store_has(fixture->store, &id), 1);
	assert_int_equal(bid_store_perf_link(fixture->store, &id, where, sizeof(where)), 0);
	assert_string_equal(where, "usr/bin/a/" ID_A);
	assert_int_equal(bid_store_kinds(fixture->store, &id), 1 << BID_KIND_ELF | 1 << BID_KIND_DEBUGINFO);
}

static void test_unstripped_file_is_its_own_debuginfo(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_DEBUGINFO);
	struct bid_file file = BID_FILE_NONE;

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
	assert_int_equal(file.kind, BID_KIND_ELF);
	bid_file_release(&file);

	run(fixture, "cp a.stripped store/usr/bin/a/" ID_A "/elf");
	assert_int_equal(find(fixture, ID_A, BID_KIND_DEBUGINFO), -ENOENT);
}

static void test_stripped_debug_file_comes_last(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_DEBUGINFO);
	struct bid_file file = BID_FILE_NONE;

	perf_adds(fixture, "a.stripped", "usr/bin/a", ID_A, "debug");
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
	assert_int_equal(file.kind, BID_KIND_DEBUGINFO);
	assert_true(file.stripped);
	bid_file_release(&file);

	run(fixture, "cp a store/usr/bin/a/" ID_A "/elf");
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
	assert_int_equal(file.kind, BID_KIND_ELF);
	assert_false(file.stripped);
	bid_file_release(&file);

	run(fixture, "mkdir -p 'store/[debuginfod]/" ID_A "' && cp a.debug 'store/[debuginfod]/" ID_A "/debug'");
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
	assert_int_equal(file.kind, BID_KIND_DEBUGINFO);
	assert_false(file.stripped);
	bid_file_release(&file);
}

static void test_wrong_content_is_not_served(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "b", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "none", "usr/bin/n", ID_B, "elf");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -EBADMSG);
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), -EBADMSG);
	run(fixture, "cp a.c store/usr/bin/n/" ID_B "/elf");
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), -EBADMSG);
	run(fixture, ": > store/usr/bin/n/" ID_B "/elf");
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), -EBADMSG);
	/* the control: the right file in the same place */
	run(fixture, "cp b store/usr/bin/n/" ID_B "/elf");
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), 0);
}

static void test_file_changed_in_place_is_not_served(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	run(fixture, "touch -d '1 hour ago' store/usr/bin/a/" ID_A "/elf");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	usleep(50 * 1000); /* past the age at which the check cache keeps a file */
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	/* same inode, same size, even the same time of modification */
	run(fixture,
	    "cp b new && touch -r store/usr/bin/a/" ID_A "/elf new && "
	    "dd if=new of=store/usr/bin/a/" ID_A "/elf conv=notrunc status=none && touch -r new store/usr/bin/a/" ID_A "/elf");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -EBADMSG);
	run(fixture, "cmp b store/usr/bin/a/" ID_A "/elf && ! test -e store/.bidfs/quarantine");
}

/* A reader writes nothing: neither the link that a crash lost, nor a quarantine. */
static void test_read_store_stays_as_it_is(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "b", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "b", "[debuginfod]", ID_B, "elf");
	run(fixture, "rm store/.build-id/bb/* && find store -exec touch -h -d '1 hour ago' {} + && find store -ls >before");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -EBADMSG);
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), 0);
	run(fixture, "find store -ls | cmp before -");
}

static void test_id_aliases_are_found(void **state)
{
	struct store_fixture *fixture = *state;

	/* perf files a 32-byte id under its first 20 bytes, and pads a 6-byte one to 8 */
	perf_adds(fixture, "long", "usr/bin/long", "cccccccccccccccccccccccccccccccccccccccc", "elf");
	perf_adds(fixture, "short", "usr/bin/short", ID_SHORT "0000", "elf");
	assert_int_equal(find(fixture, ID_LONG, BID_KIND_ELF), 0);
	assert_int_equal(find(fixture, "cccccccccccccccccccccccccccccccccccccccc", BID_KIND_ELF), 0);
	assert_int_equal(find(fixture, ID_SHORT, BID_KIND_ELF), 0);
	assert_int_equal(find(fixture, ID_SHORT "0000", BID_KIND_ELF), 0);
	assert_int_equal(find(fixture, ID_SHORT "0000000000000000000000000000", BID_KIND_ELF), 0);
	/* another long id with the same first 20 bytes is another build, and the file there is valid */
	run(fixture, "touch -d '1 hour ago' store/usr/bin/long/*/elf");
	assert_int_equal(find(fixture, "cccccccccccccccccccccccccccccccccccccccc000000000000000000000000", BID_KIND_ELF), -EBADMSG);
	assert_int_equal(find(fixture, ID_LONG, BID_KIND_ELF), 0);
}

static void test_old_perf_layouts_are_found(void **state)
{
	struct store_fixture *fixture = *state;

	run(fixture,
	    "mkdir -p store/.build-id/aa 'store/[kernel.kallsyms]' && cp a store/.build-id/aa/%s && "
	    "echo 'f T _stext' > 'store/[kernel.kallsyms]/" ID_B "'",
	    ID_A + 2);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_DEBUGINFO), 0);
	assert_int_equal(find(fixture, ID_B, BID_KIND_KALLSYMS), 0);
}

static void test_uncheckable_file_needs_its_name(void **state)
{
	struct store_fixture *fixture = *state;

	/* an ELF file in the place of perf's directory is no symbol table */
	run(fixture, "mkdir -p store/usr/bin/p store/.build-id/aa store/.build-id/bb 'store/[kernel.kallsyms]/" ID_A "'");
	run(fixture, "cp b store/usr/bin/p/" ID_B " && ln -s ../../usr/bin/p/" ID_B " store/.build-id/bb/%s", ID_B + 2);
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), 0);
	assert_int_equal(find(fixture, ID_B, BID_KIND_KALLSYMS), -ENOENT);
	/* a link does not make the table of one kernel that of another */
	run(fixture, "echo 'f T _stext' > 'store/[kernel.kallsyms]/" ID_A "/kallsyms'");
	assert_int_equal(find(fixture, ID_A, BID_KIND_KALLSYMS), 0);
	run(fixture, "ln -sfn '../../[kernel.kallsyms]/" ID_A "' store/.build-id/bb/%s", ID_B + 2);
	assert_int_equal(find(fixture, ID_B, BID_KIND_KALLSYMS), -ENOENT);
}

static void test_link_out_of_the_store_is_not_followed(void **state)
{
	struct store_fixture *fixture = *state;

	/* a file with the right id, outside: reached by no kind of link */
	run(fixture, "mkdir -p outside/" ID_A " store/.build-id/aa store/usr && cp a outside/" ID_A "/elf");
	run(fixture, "ln -s ../../../outside/" ID_A " store/.build-id/aa/%s", ID_A + 2);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
	run(fixture, "ln -sfn $PWD/outside/" ID_A " store/.build-id/aa/%s", ID_A + 2);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
	run(fixture, "ln -sfn ../../usr/out/" ID_A " store/.build-id/aa/%s && ln -s $PWD/outside store/usr/out", ID_A + 2);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
	run(fixture,
	    "rm store/usr/out && mkdir -p store/usr/out/" ID_A " && ln -s $PWD/outside/" ID_A "/elf store/usr/out/" ID_A "/elf");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
	run(fixture, "rm store/usr/out/" ID_A "/elf && mkfifo store/usr/out/" ID_A "/elf");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
	/* the control */
	run(fixture, "rm store/usr/out/" ID_A "/elf && cp a store/usr/out/" ID_A "/elf");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
}

static void test_compressed_module_is_unpacked(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_ELF);
	static const char *const packers[] = { "xz -kc", "gzip -kc", "zstd -qc" };

	for (size_t i = 0; i < sizeof(packers) / sizeof(packers[0]); i++) {
		struct bid_file file = BID_FILE_NONE;
		struct stat st;
		char path[96];

		run(fixture, "rm -rf store/* store/.build-id && %s a > packed", packers[i]);
		perf_adds(fixture, "packed", "lib/modules/6/a.ko.xz", ID_A, "elf");
		snprintf(path, sizeof(path), "%s/a", fixture->directory);
		assert_int_equal(stat(path, &st), 0);
		for (int times = 0; times < 2; times++) {
			assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
			assert_int_equal(file.st.st_size, st.st_size);
			bid_file_release(&file);
		}
	}
	run(fixture, "xz -kc b > packed && cp packed store/lib/modules/6/a.ko.xz/" ID_A "/elf && rm -r store/.bidfs/unpacked");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -EBADMSG);
}

/* The lookup below bid_store_find() leaves a compressed module as it is. */
static void test_lookup_alone_derives_nothing(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_ELF), debuginfo = request_for(ID_A, BID_KIND_DEBUGINFO);
	struct bid_file file = BID_FILE_NONE;

	run(fixture, "xz -kc a > packed");
	perf_adds(fixture, "packed", "lib/modules/6/a.ko.xz", ID_A, "elf");
	assert_int_equal(bid_lookup_file(fixture->store, &artifact, &file), 0);
	assert_true(file.packed);
	bid_file_release(&file);
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_NEVER_DERIVE, &file), -EAGAIN);
	assert_int_equal(bid_store_find(fixture->store, &debuginfo, BID_NEVER_DERIVE, &file), -EAGAIN);
	assert_false(has_path(fixture, ".bidfs/unpacked"));

	/* a compressed file may be unstripped, and comes before stripped debuginfo */
	run(fixture, "cp a.stripped store/lib/modules/6/a.ko.xz/" ID_A "/debug");
	assert_int_equal(bid_store_find(fixture->store, &debuginfo, BID_MAY_DERIVE, &file), 0);
	assert_true(file.kind == BID_KIND_ELF && !file.packed && !file.stripped);
	bid_file_release(&file);
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_NEVER_DERIVE, &file), 0);
	assert_false(file.packed);
	bid_file_release(&file);
}

/* Until one of the files changes. */
static void test_files_of_different_builds_are_put_together_once(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_UNSTRIPPED);
	struct bid_file file = BID_FILE_NONE;

	run(fixture, "echo 'char pad[99999] = { 1 }; int main(void) { return pad[0]; }' >other.c && "
		     "gcc -g -Wl,--build-id=0x" ID_A " -o other other.c && objcopy --only-keep-debug other other.debug");
	perf_adds(fixture, "a.stripped", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "other.debug", "usr/bin/a", ID_A, "debug");
	/* longer than a tick of the clock, so that the result is cached */
	usleep(50 * 1000);
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_NEVER_DERIVE, &file), -EAGAIN);
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), -EBADMSG);
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_NEVER_DERIVE, &file), -EOPNOTSUPP);
	run(fixture, "cp a.debug store/usr/bin/a/" ID_A "/debug");
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_NEVER_DERIVE, &file), -EAGAIN);
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
	bid_file_release(&file);
}

/* A lack of descriptors, for the store and for memory, is no fault of the packed file. */
static void test_module_not_unpacked_now_is_retried(void **state)
{
	struct store_fixture *fixture = *state;
	struct rlimit before, few;
	int first_free, r;

	run(fixture, "xz -kc a > packed");
	perf_adds(fixture, "packed", "lib/modules/6/a.ko.xz", ID_A, "elf");
	/* longer than a tick of the clock, so that the result is cached */
	usleep(50 * 1000);
	first_free = dup(STDIN_FILENO);
	assert_true(first_free >= 0);
	close(first_free);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	/* one descriptor for the packed file, and none for anything else */
	few.rlim_cur = (rlim_t)(first_free + 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	r = find(fixture, ID_A, BID_KIND_ELF);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(r, -EMFILE);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
}

static int count(void *user, const struct bid_id *id)
{
	(*(unsigned *)user)++;
	return 0;
}

static int collect(void *user, const char *name, enum bid_entry entry)
{
	char *names = user;
	size_t len = strlen(names);

	snprintf(names + len, 256 - len, "%s=%d ", name, entry);
	return 0;
}

static void test_ids_and_paths_are_listed(void **state)
{
	struct store_fixture *fixture = *state;
	char names[256] = "";
	unsigned n = 0;

	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	perf_adds(fixture, "b", "usr/bin/a", ID_B, "elf");
	run(fixture, "mkdir -p store/usr/bin/ab/deep && touch store/.build-id/aa/nothex store/usr/bin/file && mkdir store/jit");
	assert_int_equal(bid_store_each_id(fixture->store, count, &n), 0);
	assert_int_equal(n, 2);
	n = 0;
	assert_int_equal(bid_store_each_id_in(fixture->store, 0xaa, count, &n), 0);
	assert_int_equal(n, 1);

	assert_int_equal(bid_store_entry_at(fixture->store, "usr/bin", NULL), BID_ENTRY_DIR);
	assert_int_equal(bid_store_entry_at(fixture->store, "usr/bin/a/" ID_A, NULL), BID_ENTRY_ID);
	assert_int_equal(bid_store_entry_at(fixture->store, "usr/bin/ab", NULL), BID_ENTRY_DIR); /* a name that could be an id */
	assert_int_equal(bid_store_entry_at(fixture->store, "usr/bin/file", NULL), BID_ENTRY_NONE);
	assert_int_equal(bid_store_entry_at(fixture->store, ".build-id/aa", NULL), BID_ENTRY_NONE);
	assert_int_equal(bid_store_entry_at(fixture->store, "../store", NULL), BID_ENTRY_NONE);
	assert_int_equal(bid_store_each_entry(fixture->store, "usr/bin", collect, names), 0);
	assert_non_null(strstr(names, "a=1 "));
	assert_non_null(strstr(names, "ab=1 "));
	assert_null(strstr(names, "file"));
	names[0] = '\0';
	assert_int_equal(bid_store_each_entry(fixture->store, "", collect, names), 0);
	assert_null(strstr(names, ".build-id"));
	assert_null(strstr(names, ".bidfs"));
	assert_non_null(strstr(names, "usr=1 "));
	assert_int_equal(bid_store_each_entry(fixture->store, "nowhere", collect, names), -ENOENT);
}

static void test_store_is_searched_before_lower_stores(void **state)
{
	struct store_fixture *fixture = *state;
	char path[96];

	/* a tree of debug files with a link inside and a link out of the tree, a cache of libdebuginfod, another cache of perf */
	run(fixture, "rm -rf tree cache perf && mkdir -p tree/.build-id/aa tree/.build-id/bb tree/usr cache/" ID_LONG
		     " perf/.build-id/bb perf/b/" ID_B);
	run(fixture, "cp a.debug tree/usr/a.debug && ln -s ../../usr/a.debug tree/.build-id/aa/%s.debug", ID_A + 2);
	run(fixture, "ln -s $PWD/b tree/.build-id/bb/%s", ID_B + 2);
	run(fixture, "cp a cache/" ID_LONG "/executable");
	for (const char *const *name = (const char *const[]){ "tree", "cache", "perf", NULL }; *name; name++) {
		snprintf(path, sizeof(path), "%s/%s", fixture->directory, *name);
		assert_int_equal(bid_store_add_lower(fixture->store, path), 0);
	}
	assert_int_equal(find(fixture, ID_A, BID_KIND_DEBUGINFO), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), -ENOENT);
	/* the cache of libdebuginfod does not check ids, the store does */
	assert_int_equal(find(fixture, ID_LONG, BID_KIND_ELF), -EBADMSG);
	run(fixture, "cp long cache/" ID_LONG "/executable");
	assert_int_equal(find(fixture, ID_LONG, BID_KIND_ELF), 0);
	run(fixture, "cp b perf/b/" ID_B "/elf && ln -s ../../b/" ID_B " perf/.build-id/bb/%s", ID_B + 2);
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), 0);
	assert_int_equal(bid_store_has(fixture->store, (struct bid_id[]){ id_of(ID_A) }), 1);
	assert_int_equal(bid_store_kinds(fixture->store, (struct bid_id[]){ id_of(ID_A) }), 1 << BID_KIND_DEBUGINFO);
	/* nothing was written into any of them */
	run(fixture, "test ! -e tree/.bidfs -a ! -e cache/.bidfs -a ! -e perf/.bidfs");
	/* the store itself comes first */
	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(bid_store_add_lower(fixture->store, "/nowhere"), -ENOENT);
}

static int remember_entry(void *user, const char *name, enum bid_entry entry)
{
	char *names = user;

	snprintf(names + strlen(names), NAMES_MAX - strlen(names), "%s=%d ", name, entry);
	return 0;
}

static int remember_id(void *user, const struct bid_id *id)
{
	char hex[BID_ID_HEX_MAX];

	return remember_entry(user, bid_id_format(id, hex), BID_ENTRY_ID);
}

/* How often is @word among @names? */
static unsigned times(const char *names, const char *word)
{
	unsigned n = 0;

	while ((names = strstr(names, word))) {
		n++;
		names++;
	}
	return n;
}

static void test_unreadable_probes_hide_nothing(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_PROBES);
	struct rlimit unlimited, small;
	struct bid_file lower = BID_FILE_NONE;
	char path[96], place[64];
	int fd = -1, r;

	run(fixture,
	    "rm -rf low && mkdir -p low/usr/bin/a/" ID_A " low/.build-id/aa && yes '#probe' | head -c 8192 >low/usr/bin/a/" ID_A
	    "/probes && ln -s ../../usr/bin/a/" ID_A " low/.build-id/aa/%s",
	    ID_A + 2);
	snprintf(path, sizeof(path), "%s/low", fixture->directory);
	snprintf(place, sizeof(place), "usr/bin/a/%s", ID_A);
	assert_int_equal(bid_store_add_lower(fixture->store, path), 0);
	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_NEVER_DERIVE, &lower), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
	small = unlimited;
	small.rlim_cur = 4096;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	r = bid_store_open_probes(fixture->store, &artifact.id, place, &lower, &fd);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
	assert_true(r < 0);
	run(fixture, "! test -e store/usr/bin/a/" ID_A "/probes");
	assert_int_equal(bid_store_open_probes(fixture->store, &artifact.id, place, &lower, &fd), 0);
	close(fd);
	run(fixture, "cmp low/usr/bin/a/" ID_A "/probes store/usr/bin/a/" ID_A "/probes && rm store/usr/bin/a/" ID_A "/probes");
	assert_int_equal(bid_store_open_probes(fixture->store, &artifact.id, place, NULL, &fd), -ENOENT);
	assert_int_equal(bid_store_open_probes(fixture->store, &artifact.id, place, &BID_FILE_NONE, &fd), 0);
	close(fd);
	bid_file_release(&lower);
	run(fixture, "test -e store/usr/bin/a/" ID_A "/probes && ! test -s store/usr/bin/a/" ID_A "/probes");
}

static void test_lower_stores_are_listed(void **state)
{
	struct store_fixture *fixture = *state;
	char path[96], names[NAMES_MAX] = "", where[128];
	struct bid_id id = id_of(ID_B);
	bool has[256];
	struct stat st;

	/* the same id in all of them, one more in each, and a negative entry of libdebuginfod */
	perf_adds(fixture, "a", "usr/bin/a", ID_A, "elf");
	run(fixture,
	    "rm -rf tree cache perf && mkdir -p tree/.build-id/aa tree/.build-id/cc tree/usr cache/" ID_A " cache/" ID_SHORT
	    " cache/" ABSENT " perf/.build-id/aa perf/.build-id/bb perf/usr/bin/b/" ID_B " perf/usr/bin/a/" ID_A);
	run(fixture, "cp a.debug tree/.build-id/aa/%s.debug && cp a tree/.build-id/aa/%s", ID_A + 2, ID_A + 2);
	run(fixture, "cp long tree/.build-id/cc/%s.debug", ID_LONG + 2);
	run(fixture, "cp a cache/" ID_A "/executable && cp short cache/" ID_SHORT "/executable && : >cache/" ABSENT "/debuginfo && "
		     "chmod 0 cache/" ABSENT "/debuginfo");
	run(fixture, "cp b perf/usr/bin/b/" ID_B "/elf && ln -s ../../usr/bin/b/" ID_B " perf/.build-id/bb/%s", ID_B + 2);
	run(fixture, "cp a perf/usr/bin/a/" ID_A "/elf && ln -s ../../usr/bin/a/" ID_A " perf/.build-id/aa/%s", ID_A + 2);
	for (const char *const *name = (const char *const[]){ "tree", "cache", "perf", NULL }; *name; name++) {
		snprintf(path, sizeof(path), "%s/%s", fixture->directory, *name);
		assert_int_equal(bid_store_add_lower(fixture->store, path), 0);
	}

	assert_int_equal(bid_store_each_id(fixture->store, remember_id, names), 0);
	assert_int_equal(times(names, "="), 4);
	assert_true(times(names, ID_A) == 1 && times(names, ID_B) == 1 && times(names, ID_LONG) == 1 &&
		    times(names, ID_SHORT) == 1);
	names[0] = '\0';
	assert_int_equal(bid_store_each_id_in(fixture->store, 0xaa, remember_id, names), 0);
	assert_string_equal(names, ID_A "=2 ");
	names[0] = '\0';
	assert_int_equal(bid_store_each_id_in(fixture->store, 0xdd, remember_id, names), 0);
	assert_string_equal(names, ID_SHORT "=2 ");
	bid_store_first_bytes(fixture->store, has);
	for (unsigned first = 0; first < 256; first++)
		assert_int_equal(has[first], first == 0xaa || first == 0xbb || first == 0xcc || first == 0xdd);

	/* paths are those of perf's stores alone */
	names[0] = '\0';
	assert_int_equal(bid_store_each_entry(fixture->store, "", remember_entry, names), 0);
	assert_string_equal(names, "usr=1 ");
	names[0] = '\0';
	assert_int_equal(bid_store_each_entry(fixture->store, "usr/bin", remember_entry, names), 0);
	assert_true(times(names, "=") == 2 && times(names, "a=1 ") == 1 && times(names, "b=1 ") == 1);
	names[0] = '\0';
	assert_int_equal(bid_store_each_entry(fixture->store, "usr/bin/a", remember_entry, names), 0);
	assert_string_equal(names, ID_A "=2 ");
	assert_int_equal(bid_store_entry_at(fixture->store, "usr/bin/b/" ID_B, NULL), BID_ENTRY_ID);
	assert_int_equal(bid_store_entry_at(fixture->store, ID_SHORT, NULL), BID_ENTRY_NONE);
	assert_int_equal(bid_store_perf_link(fixture->store, &id, where, sizeof(where)), 0);
	assert_string_equal(where, "usr/bin/b/" ID_B);
	assert_int_equal(bid_store_stat_path(fixture->store, where, &st), 0);

	/* an empty file in libdebuginfod's cache means absent, and not unreadable */
	assert_int_equal(find(fixture, ABSENT, BID_KIND_DEBUGINFO), -ENOENT);
	id = id_of(ABSENT);
	assert_int_equal(bid_store_has(fixture->store, &id), 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_file_added_by_perf_is_found),
		TEST(test_unstripped_file_is_its_own_debuginfo),
		TEST(test_stripped_debug_file_comes_last),
		TEST(test_wrong_content_is_not_served),
		TEST(test_file_changed_in_place_is_not_served),
		TEST(test_read_store_stays_as_it_is),
		TEST(test_id_aliases_are_found),
		TEST(test_old_perf_layouts_are_found),
		TEST(test_uncheckable_file_needs_its_name),
		TEST(test_link_out_of_the_store_is_not_followed),
		TEST(test_compressed_module_is_unpacked),
		TEST(test_lookup_alone_derives_nothing),
		TEST(test_files_of_different_builds_are_put_together_once),
		TEST(test_module_not_unpacked_now_is_retried),
		TEST(test_ids_and_paths_are_listed),
		TEST(test_store_is_searched_before_lower_stores),
		TEST(test_unreadable_probes_hide_nothing),
		TEST(test_lower_stores_are_listed),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
