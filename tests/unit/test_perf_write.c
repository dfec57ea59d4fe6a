// SPDX-License-Identifier: LGPL-2.1-or-later
/* The write side of the store: transactions and additions. */
#include "api/verify.h"
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

/* Last event before the next symlink(2). */
static struct {
	const struct store_fixture *fixture; /* NULL: nothing */
	const char *adds;
} before_link;

int symlinkat(const char *target, int dir, const char *name)
{
	const struct store_fixture *fixture = before_link.fixture;
	struct bid_added added;
	char path[96];

	before_link.fixture = NULL;
	if (fixture) {
		snprintf(path, sizeof(path), "%s/%s", fixture->directory, before_link.adds);
		assert_int_equal(bid_store_add(fixture->store, path, BID_LINK_COPY, &added), 0);
	}
	return (int)syscall(SYS_symlinkat, target, dir, name);
}

/* The kernel's clock of files may be ahead of this one, by up to a tick: here that is always so, unless a test moves this one. */
static time_t ahead = -1; /* seconds */

time_t time(time_t *ret_now)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret_now)
		*ret_now = now.tv_sec + ahead;
	return now.tv_sec + ahead;
}

/* Write the fixture's file @name through a transaction for @artifact and commit it. */
static int put(const struct store_fixture *fixture, struct bid_artifact artifact, const char *name, size_t cut)
{
	struct bid_origin origin = { .how = "fetched", .server = "http://example.org", .file = "/usr/bin/\xff" };
	struct bid_file file = BID_FILE_NONE;
	char path[96], buffer[1000];
	struct bid_txn *txn;
	size_t written = 0;
	ssize_t n;
	int fd, r;

	snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(bid_txn_begin(fixture->store, &artifact, &txn), 0);
	assert_int_equal(bid_txn_write(txn, "rubbish", 7), 0);
	assert_int_equal(bid_txn_reset(txn), 0);
	while ((n = read(fd, buffer, cut && cut < sizeof(buffer) ? cut : sizeof(buffer))) > 0) {
		assert_int_equal(bid_txn_write(txn, buffer, (size_t)n), 0);
		written += (size_t)n;
		if (cut && written >= cut)
			break;
	}
	close(fd);
	r = bid_txn_commit(txn, &origin, &file);
	assert_int_equal(r == -EBADMSG, *bid_txn_reason(txn) != '\0');
	bid_file_release(&file);
	bid_txn_free(txn);
	return r;
}

static void no_temporary_files(const struct store_fixture *fixture)
{
	run(fixture, "test -z \"$(ls store/.bidfs/tmp)\"");
}

static void test_right_file_is_published_in_perfs_layout(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_id id = id_of(ID_A);
	json_t *info;
	char *text;
	struct timespec changed;

	assert_int_equal(put(fixture, request_for(ID_A, BID_KIND_ELF), "a.stripped", 0), 0);
	assert_int_equal(put(fixture, request_for(ID_A, BID_KIND_DEBUGINFO), "a.debug", 0), 0);
	run(fixture, "cmp a.stripped store/.build-id/aa/%s/elf && cmp a.debug store/.build-id/aa/%s/debug", ID_A + 2, ID_A + 2);
	run(fixture, "test \"$(readlink store/.build-id/aa/%s)\" = '../../[debuginfod]/" ID_A "'", ID_A + 2);
	no_temporary_files(fixture);

	assert_int_equal(bid_store_info(fixture->store, &id, &text, &changed), 0);
	info = json_loads(text, 0, NULL);
	assert_non_null(info);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(json_object_get(info, "artifacts"), "elf"), "server")),
		"http://example.org");
	/* only a name that is no text is left out */
	assert_null(json_object_get(json_object_get(json_object_get(info, "artifacts"), "elf"), "file"));
	assert_memory_equal(
		json_string_value(json_object_get(json_object_get(json_object_get(info, "artifacts"), "elf"), "digest")),
		"xxh3-128:", 9);
	json_decref(info);
	free(text);
}

/* How many system calls have written anything. */
static unsigned long writes(void)
{
	char line[128];
	unsigned long count = 0;
	FILE *file = fopen("/proc/self/io", "r");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, "syscw: ", 7) == 0)
			count = strtoul(line + 7, NULL, 10);
	fclose(file);
	return count;
}

/* The bytes of "pieces" in pieces of these sizes, one after the other and over again. */
static void put_in_pieces(const struct store_fixture *fixture, const char *data, size_t len, const size_t *sizes, size_t n_sizes)
{
	struct bid_subpath *subpath;
	struct bid_artifact artifact = { .id = id_of(ID_A), .kind = BID_KIND_SOURCE };
	struct bid_origin origin = { .how = "fetched", .server = "http://example.org" };
	struct bid_file file = BID_FILE_NONE;
	struct bid_verify_config config = { .deep = true };
	struct bid_verify_stats stats;
	struct bid_txn *txn;
	size_t at = 0;

	assert_int_equal(bid_subpath_source("/pieces", &subpath), 0);
	artifact.subpath = subpath;
	assert_int_equal(bid_txn_begin(fixture->store, &artifact, &txn), 0);
	assert_int_equal(bid_txn_write(txn, "rubbish", 7), 0);
	assert_int_equal(bid_txn_reset(txn), 0);
	for (size_t i = 0; at < len; i++) {
		size_t piece = sizes[i % n_sizes] < len - at ? sizes[i % n_sizes] : len - at;

		assert_int_equal(bid_txn_write(txn, data + at, piece), 0);
		at += piece;
	}
	assert_int_equal(bid_txn_commit(txn, &origin, &file), 0);
	bid_file_release(&file);
	bid_txn_free(txn);
	run(fixture, "cmp pieces store/.bidfs/source/aa/%s/pieces", ID_A + 2);
	/* the digest computed while writing is that of the file */
	assert_int_equal(bid_store_verify(fixture->store, &config, &stats), 0);
	assert_int_equal(stats.digests, 1);
	assert_int_equal(stats.found[BID_FINDING_CORRUPT], 0);
	run(fixture, "rm -r store/.bidfs/source store/.bidfs/first store/.bidfs/record/aa");
	bid_subpath_unref(subpath);
}

static void test_body_of_any_pieces_is_written(void **state)
{
	static const size_t sizes[] = { 1, 65535, 16384, 65536, 65537, 200000, 4095, 131072 }, small[] = { 16384 };
	enum { LEN = 3 * 1000 * 1000 + 7 };
	struct store_fixture *fixture = *state;
	unsigned long before;
	char path[96], *data = malloc(LEN);
	FILE *file;

	assert_non_null(data);
	for (size_t i = 0; i < LEN; i++)
		data[i] = (char)(i * 2654435761U >> 13);
	snprintf(path, sizeof(path), "%s/pieces", fixture->directory);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, LEN, file), LEN);
	assert_int_equal(fclose(file), 0);
	put_in_pieces(fixture, data, LEN, sizes, sizeof(sizes) / sizeof(*sizes));
	/* libcurl's are small, and each call costs */
	before = writes();
	put_in_pieces(fixture, data, LEN, small, 1);
	assert_in_range(writes() - before, 1, LEN / (4 * 16384) + 20);
	free(data);
}

static void test_link_lost_in_crash_comes_with_next_download(void **state)
{
	struct store_fixture *fixture = *state;

	assert_int_equal(put(fixture, request_for(ID_A, BID_KIND_ELF), "a", 0), 0);
	run(fixture, "rm store/.build-id/aa/%s", ID_A + 2);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(put(fixture, request_for(ID_A, BID_KIND_ELF), "a", 0), 0);
	run(fixture, "cmp a store/.build-id/aa/%s/elf", ID_A + 2);
}

static void test_wrong_file_is_not_published(void **state)
{
	struct store_fixture *fixture = *state;

	assert_int_equal(put(fixture, request_for(ID_A, BID_KIND_ELF), "b", 0), -EBADMSG); /* another build */
	assert_int_equal(put(fixture, request_for(ID_A, BID_KIND_ELF), "none", 0), -EBADMSG); /* no id */
	assert_int_equal(put(fixture, request_for(ID_A, BID_KIND_ELF), "a.c", 0), -EBADMSG); /* no ELF file */
	assert_int_equal(put(fixture, request_for(ID_A, BID_KIND_ELF), "a", 5000), -EBADMSG); /* cut short */
	assert_int_equal(put(fixture, request_for(ID_A, BID_KIND_DEBUGINFO), "a.stripped", 0),
			 -EBADMSG); /* nothing to debug with */
	assert_false(has_path(fixture, "[debuginfod]"));
	assert_false(has_path(fixture, ".build-id"));
	no_temporary_files(fixture);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
}

static void test_download_joins_perfs_build(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "a.stripped", "usr/bin/a", ID_A, "elf");
	assert_int_equal(put(fixture, request_for(ID_A, BID_KIND_DEBUGINFO), "a.debug", 0), 0);
	run(fixture, "cmp a.debug store/usr/bin/a/" ID_A "/debug");
	assert_false(has_path(fixture, "[debuginfod]"));
}

static void test_first_published_file_stays(void **state)
{
	struct store_fixture *fixture = *state;

	perf_adds(fixture, "a.stripped", "usr/bin/a", ID_A, "elf");
	assert_int_equal(put(fixture, request_for(ID_A, BID_KIND_ELF), "a", 0), 0);
	run(fixture, "cmp a.stripped store/usr/bin/a/" ID_A "/elf");
}

static void test_wrong_file_in_the_way_is_bypassed(void **state)
{
	struct store_fixture *fixture = *state;

	/* the user's own is left alone, and the right one served from elsewhere */
	perf_adds(fixture, "b", "usr/bin/a", ID_A, "elf");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -EBADMSG);
	assert_int_equal(put(fixture, request_for(ID_A, BID_KIND_ELF), "a", 0), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	run(fixture, "cmp b store/usr/bin/a/" ID_A "/elf && cmp a 'store/[debuginfod]/" ID_A "/elf'");
	/* a wrong one in our own directory is quarantined */
	run(fixture, "cp b other && mv other 'store/[debuginfod]/" ID_A "/elf'");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -EBADMSG);
	assert_int_equal(put(fixture, request_for(ID_A, BID_KIND_ELF), "a", 0), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	run(fixture, "cmp b store/.bidfs/quarantine/*");
}

static void test_unusable_directory_is_bypassed(void **state)
{
	struct store_fixture *fixture = *state;

	/* a file is in the place of the directory, so nothing can go into it */
	run(fixture,
	    "mkdir -p store/usr/bin/a store/.build-id/aa && cp a.stripped store/usr/bin/a/" ID_A " && ln -s ../../usr/bin/a/" ID_A
	    " store/.build-id/aa/%s",
	    ID_A + 2);
	assert_int_equal(put(fixture, request_for(ID_A, BID_KIND_DEBUGINFO), "a.debug", 0), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_DEBUGINFO), 0);
	run(fixture, "cmp a.debug 'store/[debuginfod]/" ID_A "/debug' && cmp a.stripped store/usr/bin/a/" ID_A);
}

static void test_long_id_has_perfs_directory(void **state)
{
	struct store_fixture *fixture = *state;

	assert_int_equal(put(fixture, request_for(ID_LONG, BID_KIND_ELF), "long", 0), 0);
	assert_int_equal(find(fixture, ID_LONG, BID_KIND_ELF), 0);
	assert_true(has_path(fixture, ".build-id/cc/cccccccccccccccccccccccccccccccccccccc/elf"));
}

static void name_as_it_is_fetched(struct store_fixture *fixture, enum bid_kind kind, const char *fetched)
{
	before_link.adds = "a.stripped";
	before_link.fixture = fixture;
	assert_int_equal(put(fixture, request_for(ID_A, kind), fetched, 0), 0);
	assert_null(before_link.fixture);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(find(fixture, ID_A, kind), 0);
	run(fixture, "cmp %s \"store/$(realpath a.stripped)/" ID_A "/%s\" && test ! -e 'store/[debuginfod]'", fetched,
	    bid_kind_store_name(kind));
	nothing_is_wrong(fixture);
}

static void test_debuginfo_download_names_the_build(void **state)
{
	name_as_it_is_fetched(*state, BID_KIND_DEBUGINFO, "a.debug");
}

static void test_download_names_the_build(void **state)
{
	name_as_it_is_fetched(*state, BID_KIND_ELF, "a.stripped");
}

static void test_temporary_file_works_without_o_tmpfile(void **state)
{
	struct store_fixture *fixture = *state;
	char path[96];

	snprintf(path, sizeof(path), "%s/store", fixture->directory);
	bid_store_free(fixture->store);
	fixture->store = NULL;
	assert_int_equal(bid_store_open(path, BID_STORE_WRITE | BID_STORE_NAMED_TEMP, &fixture->store), 0);
	assert_int_equal(put(fixture, request_for(ID_A, BID_KIND_ELF), "a", 0), 0);
	assert_int_equal(put(fixture, request_for(ID_B, BID_KIND_ELF), "a", 0), -EBADMSG);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	no_temporary_files(fixture);
}

static void open_again(struct store_fixture *fixture)
{
	char path[96];

	bid_store_free(fixture->store);
	snprintf(path, sizeof(path), "%s/store", fixture->directory);
	assert_int_equal(bid_store_open(path, BID_STORE_WRITE, &fixture->store), 0);
}

/* A day has passed since the writer died. Only files with names of the store are swept. */
static void test_temporary_files_are_swept_after_a_day(void **state)
{
	struct store_fixture *fixture = *state;

	run(fixture, "mkdir -p store/.bidfs/tmp && cd store/.bidfs/tmp && touch -d '3 days ago' temp-0123456789abcdef notes && "
		     "ln -s x temp-fedcba9876543210");
	open_again(fixture);
	run(fixture, "test $(ls store/.bidfs/tmp | wc -l) = 3");
	ahead = 25 * 3600;
	open_again(fixture);
	ahead = -1;
	run(fixture, "test \"$(ls store/.bidfs/tmp)\" = notes");
}

static int add(const struct store_fixture *fixture, const char *name, enum bid_link link, struct bid_added *added)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	return bid_store_add(fixture->store, path, link, added);
}

static void test_file_is_added_under_its_real_path(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_id a = id_of(ID_A);
	struct bid_added added;
	char where[PATH_MAX];

	run(fixture, "ln -sf a a.link");
	assert_int_equal(add(fixture, "a.link", BID_LINK_COPY, &added), 0);
	assert_true(bid_id_equal(&added.id, &a));
	assert_int_equal(added.kind, BID_KIND_ELF);
	assert_false(added.known);
	assert_int_equal(bid_store_perf_link(fixture->store, &a, where, sizeof(where)), 0);
	assert_string_equal(where + strlen(where) - strlen("/a/" ID_A), "/a/" ID_A);
	assert_int_equal(add(fixture, "a", BID_LINK_AUTO, &added), 0);
	assert_true(added.known);

	assert_int_equal(add(fixture, "a.c", BID_LINK_AUTO, &added), -ENOEXEC);
	assert_int_equal(add(fixture, "none", BID_LINK_AUTO, &added), -ENODATA);
	assert_int_equal(add(fixture, "store", BID_LINK_AUTO, &added), -EINVAL);
	assert_int_equal(add(fixture, "nowhere", BID_LINK_AUTO, &added), -ENOENT);
	no_temporary_files(fixture);
}

static void test_debug_file_is_stored_beside_its_elf_file(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_added added;

	/* in either order */
	assert_int_equal(add(fixture, "a.debug", BID_LINK_COPY, &added), 0);
	assert_int_equal(added.kind, BID_KIND_DEBUGINFO);
	assert_int_equal(find(fixture, ID_A, BID_KIND_DEBUGINFO), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -ENOENT);
	assert_int_equal(add(fixture, "a.stripped", BID_LINK_COPY, &added), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	run(fixture, "cmp a.stripped store/.build-id/aa/%s/elf && cmp a.debug store/.build-id/aa/%s/debug", ID_A + 2, ID_A + 2);
	/* and under the path it was added from */
	run(fixture, "test -f store/$PWD/a.stripped/" ID_A "/elf");
}

static void test_object_has_several_paths(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_added added;

	run(fixture, "cp a a2");
	assert_int_equal(add(fixture, "a", BID_LINK_COPY, &added), 0);
	assert_int_equal(add(fixture, "a2", BID_LINK_COPY, &added), 0);
	assert_true(added.known);
	run(fixture, "test store/$PWD/a/" ID_A "/elf -ef store/$PWD/a2/" ID_A "/elf");
}

static void test_link_to_another_build_is_repaired(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_id a = id_of(ID_A);
	struct bid_added added;
	char where[PATH_MAX];

	perf_adds(fixture, "b", "usr/bin/b", ID_B, "elf");
	run(fixture, "mkdir -p store/.build-id/aa && ln -s ../../usr/bin/b/" ID_B " store/.build-id/aa/%s", ID_A + 2);
	assert_int_equal(add(fixture, "a", BID_LINK_COPY, &added), 0);
	assert_false(added.known);
	assert_int_equal(bid_store_perf_link(fixture->store, &a, where, sizeof(where)), 0);
	assert_string_equal(where + strlen(where) - strlen("/a/" ID_A), "/a/" ID_A);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(find(fixture, ID_B, BID_KIND_ELF), 0);
	run(fixture, "cmp a store/.build-id/aa/%s/elf && cmp b store/.build-id/bb/%s/elf", ID_A + 2, ID_B + 2);

	/* a second addition of the same file counts as known */
	run(fixture, "ln -sfn ../../usr/bin/b/" ID_B " store/.build-id/aa/%s", ID_A + 2);
	assert_int_equal(add(fixture, "a", BID_LINK_COPY, &added), 0);
	assert_true(added.known);
	run(fixture, "cmp a store/.build-id/aa/%s/elf", ID_A + 2);

	/* a debug file does not go there either */
	run(fixture,
	    "rm -r store/.build-id/aa store/$PWD/a && mkdir store/.build-id/aa && ln -s ../../usr/bin/b/" ID_B
	    " store/.build-id/aa/%s",
	    ID_A + 2);
	assert_int_equal(add(fixture, "a.debug", BID_LINK_COPY, &added), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_DEBUGINFO), 0);
	run(fixture, "! test -e store/usr/bin/b/" ID_B "/debug && cmp a.debug store/.build-id/aa/%s/debug", ID_A + 2);
}

static mode_t mode_in_store(const struct store_fixture *fixture, const char *hex)
{
	struct bid_artifact artifact = request_for(hex, BID_KIND_ELF);
	struct bid_file file = BID_FILE_NONE;
	mode_t mode;

	assert_int_equal(bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file), 0);
	mode = file.st.st_mode & 07777;
	bid_file_release(&file);
	return mode;
}

static void test_only_safe_files_are_hard_linked(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_added added;

	run(fixture, "cp a plain && chmod 755 plain && cp b suid && chmod 4755 suid && cp long secret && chmod 700 secret");
	assert_int_equal(add(fixture, "plain", BID_LINK_HARD, &added), 0);
	assert_int_equal(added.link, BID_LINK_HARD);
	run(fixture, "test plain -ef store/.build-id/aa/%s/elf", ID_A + 2);

	/* a setuid file is copied whatever the option, and loses the bit; a secret file stays secret */
	assert_int_equal(add(fixture, "suid", BID_LINK_HARD, &added), 0);
	assert_int_equal(added.link, BID_LINK_COPY);
	assert_int_equal(mode_in_store(fixture, ID_B), 0444);
	assert_int_equal(add(fixture, "secret", BID_LINK_AUTO, &added), 0);
	assert_int_not_equal(added.link, BID_LINK_HARD);
	assert_int_equal(mode_in_store(fixture, ID_LONG), 0400);
}

static void test_edited_hard_link_is_not_served(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_added added;

	run(fixture, "cp a plain && chmod 755 plain");
	assert_int_equal(add(fixture, "plain", BID_LINK_HARD, &added), 0);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	run(fixture, "cat b > plain");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), -EBADMSG);
}

static void test_damaged_record_loses_only_itself(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_id id = id_of(ID_A);
	char *text;
	struct timespec changed;

	store_fixture_fetch(fixture, request_for(ID_A, BID_KIND_ELF), "a");
	run(fixture, "echo '{ \"size\": ' > store/.bidfs/record/aa/%s.elf", ID_A + 2);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(bid_store_info(fixture->store, &id, &text, &changed), 0);
	assert_non_null(strstr(text, "\"elf\""));
	assert_null(strstr(text, "\"how\""));
	free(text);
}

static void test_read_only_store_is_not_written(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_artifact artifact = request_for(ID_A, BID_KIND_ELF);
	struct bid_store *reader;
	struct bid_added added;
	struct bid_txn *txn;
	char path[96];

	snprintf(path, sizeof(path), "%s/store", fixture->directory);
	assert_int_equal(bid_store_open(path, 0, &reader), 0);
	assert_int_equal(bid_txn_begin(reader, &artifact, &txn), -EROFS);
	snprintf(path, sizeof(path), "%s/a", fixture->directory);
	assert_int_equal(bid_store_add(reader, path, BID_LINK_AUTO, &added), -EROFS);
	bid_store_free(reader);
	assert_int_equal(bid_store_open("/nowhere/at/all", 0, &reader), -ENOENT);
	assert_int_equal(bid_store_open("/etc/passwd", 0, &reader), -ENOTDIR);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_right_file_is_published_in_perfs_layout),
		TEST(test_body_of_any_pieces_is_written),
		TEST(test_link_lost_in_crash_comes_with_next_download),
		TEST(test_wrong_file_is_not_published),
		TEST(test_download_joins_perfs_build),
		TEST(test_first_published_file_stays),
		TEST(test_wrong_file_in_the_way_is_bypassed),
		TEST(test_unusable_directory_is_bypassed),
		TEST(test_long_id_has_perfs_directory),
		TEST(test_debuginfo_download_names_the_build),
		TEST(test_download_names_the_build),
		TEST(test_temporary_file_works_without_o_tmpfile),
		TEST(test_temporary_files_are_swept_after_a_day),
		TEST(test_file_is_added_under_its_real_path),
		TEST(test_debug_file_is_stored_beside_its_elf_file),
		TEST(test_link_to_another_build_is_repaired),
		TEST(test_object_has_several_paths),
		TEST(test_only_safe_files_are_hard_linked),
		TEST(test_edited_hard_link_is_not_served),
		TEST(test_damaged_record_loses_only_itself),
		TEST(test_read_only_store_is_not_written),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
