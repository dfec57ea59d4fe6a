// SPDX-License-Identifier: LGPL-2.1-or-later
/* The write side of the store: transactions and additions. */
#include "api/verify.h"
#include "store_scene.h"

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
	const struct store_scene *scene; /* NULL: nothing */
	const char *adds;
} before_link;

int symlinkat(const char *target, int dir, const char *name)
{
	const struct store_scene *scene = before_link.scene;
	struct bid_added added;
	char path[96];

	before_link.scene = NULL;
	if (scene) {
		snprintf(path, sizeof(path), "%s/%s", scene->directory, before_link.adds);
		assert_int_equal(bid_store_add(scene->store, path, BID_LINK_COPY, &added), 0);
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

/* Write the scene's file @name through a transaction for @request and commit it. */
static int put(const struct store_scene *scene, struct bid_request request, const char *name, size_t cut)
{
	struct bid_origin origin = { .how = "fetched", .server = "http://example.org", .file = "/usr/bin/\xff" };
	struct bid_file file = BID_FILE_NONE;
	char path[96], buffer[1000];
	struct bid_txn *txn;
	size_t written = 0;
	ssize_t n;
	int fd, r;

	snprintf(path, sizeof(path), "%s/%s", scene->directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(bid_txn_begin(scene->store, &request, &txn), 0);
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

static void no_temporary_files(const struct store_scene *scene)
{
	run(scene, "test -z \"$(ls store/.bidfs/tmp)\"");
}

static void test_right_file_is_published_in_perfs_layout(void **state)
{
	struct store_scene *scene = *state;
	struct bid_id id = id_of(ID_A);
	json_t *info;
	char *text;
	struct timespec changed;

	assert_int_equal(put(scene, request_for(ID_A, BID_KIND_ELF), "a.stripped", 0), 0);
	assert_int_equal(put(scene, request_for(ID_A, BID_KIND_DEBUGINFO), "a.debug", 0), 0);
	run(scene, "cmp a.stripped store/.build-id/aa/%s/elf && cmp a.debug store/.build-id/aa/%s/debug", ID_A + 2, ID_A + 2);
	run(scene, "test \"$(readlink store/.build-id/aa/%s)\" = '../../[debuginfod]/" ID_A "'", ID_A + 2);
	no_temporary_files(scene);

	assert_int_equal(bid_store_info(scene->store, &id, &text, &changed), 0);
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
static void put_in_pieces(const struct store_scene *scene, const char *data, size_t len, const size_t *sizes, size_t n_sizes)
{
	struct bid_detail *detail;
	struct bid_request request = { .id = id_of(ID_A), .kind = BID_KIND_SOURCE };
	struct bid_origin origin = { .how = "fetched", .server = "http://example.org" };
	struct bid_file file = BID_FILE_NONE;
	struct bid_verify_config config = { .deep = true };
	struct bid_verify_stats stats;
	struct bid_txn *txn;
	size_t at = 0;

	assert_int_equal(bid_detail_source("/pieces", &detail), 0);
	request.detail = detail;
	assert_int_equal(bid_txn_begin(scene->store, &request, &txn), 0);
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
	run(scene, "cmp pieces store/.bidfs/source/aa/%s/pieces", ID_A + 2);
	/* the digest computed while writing is that of the file */
	assert_int_equal(bid_store_verify(scene->store, &config, &stats), 0);
	assert_int_equal(stats.digests, 1);
	assert_int_equal(stats.found[BID_FINDING_CORRUPT], 0);
	run(scene, "rm -r store/.bidfs/source store/.bidfs/first store/.bidfs/record/aa");
	bid_detail_unref(detail);
}

static void test_body_of_any_pieces_is_written(void **state)
{
	static const size_t sizes[] = { 1, 65535, 16384, 65536, 65537, 200000, 4095, 131072 }, small[] = { 16384 };
	enum { LEN = 3 * 1000 * 1000 + 7 };
	struct store_scene *scene = *state;
	unsigned long before;
	char path[96], *data = malloc(LEN);
	FILE *file;

	assert_non_null(data);
	for (size_t i = 0; i < LEN; i++)
		data[i] = (char)(i * 2654435761U >> 13);
	snprintf(path, sizeof(path), "%s/pieces", scene->directory);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, LEN, file), LEN);
	assert_int_equal(fclose(file), 0);
	put_in_pieces(scene, data, LEN, sizes, sizeof(sizes) / sizeof(*sizes));
	/* libcurl's are small, and each call costs */
	before = writes();
	put_in_pieces(scene, data, LEN, small, 1);
	assert_in_range(writes() - before, 1, LEN / (4 * 16384) + 20);
	free(data);
}

static void test_link_lost_in_crash_comes_with_next_download(void **state)
{
	struct store_scene *scene = *state;

	assert_int_equal(put(scene, request_for(ID_A, BID_KIND_ELF), "a", 0), 0);
	run(scene, "rm store/.build-id/aa/%s", ID_A + 2);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(put(scene, request_for(ID_A, BID_KIND_ELF), "a", 0), 0);
	run(scene, "cmp a store/.build-id/aa/%s/elf", ID_A + 2);
}

static void test_wrong_file_is_not_published(void **state)
{
	struct store_scene *scene = *state;

	assert_int_equal(put(scene, request_for(ID_A, BID_KIND_ELF), "b", 0), -EBADMSG); /* another build */
	assert_int_equal(put(scene, request_for(ID_A, BID_KIND_ELF), "none", 0), -EBADMSG); /* no id */
	assert_int_equal(put(scene, request_for(ID_A, BID_KIND_ELF), "a.c", 0), -EBADMSG); /* no ELF file */
	assert_int_equal(put(scene, request_for(ID_A, BID_KIND_ELF), "a", 5000), -EBADMSG); /* cut short */
	assert_int_equal(put(scene, request_for(ID_A, BID_KIND_DEBUGINFO), "a.stripped", 0), -EBADMSG); /* nothing to debug with */
	assert_false(has_path(scene, "[debuginfod]"));
	assert_false(has_path(scene, ".build-id"));
	no_temporary_files(scene);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), -ENOENT);
}

static void test_download_joins_perfs_build(void **state)
{
	struct store_scene *scene = *state;

	perf_adds(scene, "a.stripped", "usr/bin/a", ID_A, "elf");
	assert_int_equal(put(scene, request_for(ID_A, BID_KIND_DEBUGINFO), "a.debug", 0), 0);
	run(scene, "cmp a.debug store/usr/bin/a/" ID_A "/debug");
	assert_false(has_path(scene, "[debuginfod]"));
}

static void test_first_published_file_stays(void **state)
{
	struct store_scene *scene = *state;

	perf_adds(scene, "a.stripped", "usr/bin/a", ID_A, "elf");
	assert_int_equal(put(scene, request_for(ID_A, BID_KIND_ELF), "a", 0), 0);
	run(scene, "cmp a.stripped store/usr/bin/a/" ID_A "/elf");
}

static void test_wrong_file_in_the_way_is_bypassed(void **state)
{
	struct store_scene *scene = *state;

	/* the user's own is left alone, and the right one served from elsewhere */
	perf_adds(scene, "b", "usr/bin/a", ID_A, "elf");
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), -EBADMSG);
	assert_int_equal(put(scene, request_for(ID_A, BID_KIND_ELF), "a", 0), 0);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	run(scene, "cmp b store/usr/bin/a/" ID_A "/elf && cmp a 'store/[debuginfod]/" ID_A "/elf'");
	/* a wrong one in our own directory is quarantined */
	run(scene, "cp b other && mv other 'store/[debuginfod]/" ID_A "/elf'");
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), -EBADMSG);
	assert_int_equal(put(scene, request_for(ID_A, BID_KIND_ELF), "a", 0), 0);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	run(scene, "cmp b store/.bidfs/quarantine/*");
}

static void test_unusable_directory_is_bypassed(void **state)
{
	struct store_scene *scene = *state;

	/* perf's old layout: the file is in the place of the directory, so nothing can go beside it */
	run(scene,
	    "mkdir -p store/usr/bin/a store/.build-id/aa && cp a.stripped store/usr/bin/a/" ID_A " && ln -s ../../usr/bin/a/" ID_A
	    " store/.build-id/aa/%s",
	    ID_A + 2);
	assert_int_equal(put(scene, request_for(ID_A, BID_KIND_DEBUGINFO), "a.debug", 0), 0);
	assert_int_equal(find(scene, ID_A, BID_KIND_DEBUGINFO), 0);
	run(scene, "cmp a.debug 'store/[debuginfod]/" ID_A "/debug' && cmp a.stripped store/usr/bin/a/" ID_A);
}

static void test_long_id_has_perfs_directory(void **state)
{
	struct store_scene *scene = *state;

	assert_int_equal(put(scene, request_for(ID_LONG, BID_KIND_ELF), "long", 0), 0);
	assert_int_equal(find(scene, ID_LONG, BID_KIND_ELF), 0);
	assert_true(has_path(scene, ".build-id/cc/cccccccccccccccccccccccccccccccccccccc/elf"));
}

static void name_as_it_is_fetched(struct store_scene *scene, enum bid_kind kind, const char *fetched)
{
	before_link.adds = "a.stripped";
	before_link.scene = scene;
	assert_int_equal(put(scene, request_for(ID_A, kind), fetched, 0), 0);
	assert_null(before_link.scene);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(find(scene, ID_A, kind), 0);
	run(scene, "cmp %s \"store/$(realpath a.stripped)/" ID_A "/%s\" && test ! -e 'store/[debuginfod]'", fetched,
	    bid_kind_store_name(kind));
	nothing_is_wrong(scene);
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
	struct store_scene *scene = *state;
	char path[96];

	snprintf(path, sizeof(path), "%s/store", scene->directory);
	bid_store_free(scene->store);
	scene->store = NULL;
	assert_int_equal(bid_store_open(path, BID_STORE_WRITE | BID_STORE_NAMED_TEMP, &scene->store), 0);
	assert_int_equal(put(scene, request_for(ID_A, BID_KIND_ELF), "a", 0), 0);
	assert_int_equal(put(scene, request_for(ID_B, BID_KIND_ELF), "a", 0), -EBADMSG);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	no_temporary_files(scene);
}

static void open_again(struct store_scene *scene)
{
	char path[96];

	bid_store_free(scene->store);
	snprintf(path, sizeof(path), "%s/store", scene->directory);
	assert_int_equal(bid_store_open(path, BID_STORE_WRITE, &scene->store), 0);
}

/* A day has passed since the writer died. Only files with names of the store are swept. */
static void test_temporary_files_are_swept_after_a_day(void **state)
{
	struct store_scene *scene = *state;

	run(scene, "mkdir -p store/.bidfs/tmp && cd store/.bidfs/tmp && touch -d '3 days ago' temp-0123456789abcdef notes && "
		   "ln -s x temp-fedcba9876543210");
	open_again(scene);
	run(scene, "test $(ls store/.bidfs/tmp | wc -l) = 3");
	ahead = 25 * 3600;
	open_again(scene);
	ahead = -1;
	run(scene, "test \"$(ls store/.bidfs/tmp)\" = notes");
}

static int add(const struct store_scene *scene, const char *name, enum bid_link link, struct bid_added *added)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", scene->directory, name);
	return bid_store_add(scene->store, path, link, added);
}

static void test_file_is_added_under_its_real_path(void **state)
{
	struct store_scene *scene = *state;
	struct bid_id a = id_of(ID_A);
	struct bid_added added;
	char where[PATH_MAX];

	run(scene, "ln -sf a a.link");
	assert_int_equal(add(scene, "a.link", BID_LINK_COPY, &added), 0);
	assert_true(bid_id_equal(&added.id, &a));
	assert_int_equal(added.kind, BID_KIND_ELF);
	assert_false(added.known);
	assert_int_equal(bid_store_where(scene->store, &a, where, sizeof(where)), 0);
	assert_string_equal(where + strlen(where) - strlen("/a/" ID_A), "/a/" ID_A);
	assert_int_equal(add(scene, "a", BID_LINK_AUTO, &added), 0);
	assert_true(added.known);

	assert_int_equal(add(scene, "a.c", BID_LINK_AUTO, &added), -ENOEXEC);
	assert_int_equal(add(scene, "none", BID_LINK_AUTO, &added), -ENODATA);
	assert_int_equal(add(scene, "store", BID_LINK_AUTO, &added), -EINVAL);
	assert_int_equal(add(scene, "nowhere", BID_LINK_AUTO, &added), -ENOENT);
	no_temporary_files(scene);
}

static void test_debug_file_is_stored_beside_its_elf_file(void **state)
{
	struct store_scene *scene = *state;
	struct bid_added added;

	/* in either order */
	assert_int_equal(add(scene, "a.debug", BID_LINK_COPY, &added), 0);
	assert_int_equal(added.kind, BID_KIND_DEBUGINFO);
	assert_int_equal(find(scene, ID_A, BID_KIND_DEBUGINFO), 0);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), -ENOENT);
	assert_int_equal(add(scene, "a.stripped", BID_LINK_COPY, &added), 0);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	run(scene, "cmp a.stripped store/.build-id/aa/%s/elf && cmp a.debug store/.build-id/aa/%s/debug", ID_A + 2, ID_A + 2);
	/* and under the path it was added from */
	run(scene, "test -f store/$PWD/a.stripped/" ID_A "/elf");
}

static void test_object_has_several_paths(void **state)
{
	struct store_scene *scene = *state;
	struct bid_added added;

	run(scene, "cp a a2");
	assert_int_equal(add(scene, "a", BID_LINK_COPY, &added), 0);
	assert_int_equal(add(scene, "a2", BID_LINK_COPY, &added), 0);
	assert_true(added.known);
	run(scene, "test store/$PWD/a/" ID_A "/elf -ef store/$PWD/a2/" ID_A "/elf");
}

static void test_link_to_another_build_is_repaired(void **state)
{
	struct store_scene *scene = *state;
	struct bid_id a = id_of(ID_A);
	struct bid_added added;
	char where[PATH_MAX];

	perf_adds(scene, "b", "usr/bin/b", ID_B, "elf");
	run(scene, "mkdir -p store/.build-id/aa && ln -s ../../usr/bin/b/" ID_B " store/.build-id/aa/%s", ID_A + 2);
	assert_int_equal(add(scene, "a", BID_LINK_COPY, &added), 0);
	assert_false(added.known);
	assert_int_equal(bid_store_where(scene->store, &a, where, sizeof(where)), 0);
	assert_string_equal(where + strlen(where) - strlen("/a/" ID_A), "/a/" ID_A);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(find(scene, ID_B, BID_KIND_ELF), 0);
	run(scene, "cmp a store/.build-id/aa/%s/elf && cmp b store/.build-id/bb/%s/elf", ID_A + 2, ID_B + 2);

	/* a second addition of the same file counts as known */
	run(scene, "ln -sfn ../../usr/bin/b/" ID_B " store/.build-id/aa/%s", ID_A + 2);
	assert_int_equal(add(scene, "a", BID_LINK_COPY, &added), 0);
	assert_true(added.known);
	run(scene, "cmp a store/.build-id/aa/%s/elf", ID_A + 2);

	/* a debug file does not go there either */
	run(scene,
	    "rm -r store/.build-id/aa store/$PWD/a && mkdir store/.build-id/aa && ln -s ../../usr/bin/b/" ID_B
	    " store/.build-id/aa/%s",
	    ID_A + 2);
	assert_int_equal(add(scene, "a.debug", BID_LINK_COPY, &added), 0);
	assert_int_equal(find(scene, ID_A, BID_KIND_DEBUGINFO), 0);
	run(scene, "! test -e store/usr/bin/b/" ID_B "/debug && cmp a.debug store/.build-id/aa/%s/debug", ID_A + 2);
}

static mode_t mode_in_store(const struct store_scene *scene, const char *hex)
{
	struct bid_request request = request_for(hex, BID_KIND_ELF);
	struct bid_file file = BID_FILE_NONE;
	mode_t mode;

	assert_int_equal(bid_store_find(scene->store, &request, &file), 0);
	mode = file.st.st_mode & 07777;
	bid_file_release(&file);
	return mode;
}

static void test_only_safe_files_are_hard_linked(void **state)
{
	struct store_scene *scene = *state;
	struct bid_added added;

	run(scene, "cp a plain && chmod 755 plain && cp b suid && chmod 4755 suid && cp long secret && chmod 700 secret");
	assert_int_equal(add(scene, "plain", BID_LINK_HARD, &added), 0);
	assert_int_equal(added.link, BID_LINK_HARD);
	run(scene, "test plain -ef store/.build-id/aa/%s/elf", ID_A + 2);

	/* a setuid file is copied whatever the option, and loses the bit; a secret file stays secret */
	assert_int_equal(add(scene, "suid", BID_LINK_HARD, &added), 0);
	assert_int_equal(added.link, BID_LINK_COPY);
	assert_int_equal(mode_in_store(scene, ID_B), 0444);
	assert_int_equal(add(scene, "secret", BID_LINK_AUTO, &added), 0);
	assert_int_not_equal(added.link, BID_LINK_HARD);
	assert_int_equal(mode_in_store(scene, ID_LONG), 0400);
}

static void test_edited_hard_link_is_not_served(void **state)
{
	struct store_scene *scene = *state;
	struct bid_added added;

	run(scene, "cp a plain && chmod 755 plain");
	assert_int_equal(add(scene, "plain", BID_LINK_HARD, &added), 0);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	run(scene, "cat b > plain");
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), -EBADMSG);
}

static void test_damaged_record_loses_only_itself(void **state)
{
	struct store_scene *scene = *state;
	struct bid_id id = id_of(ID_A);
	char *text;
	struct timespec changed;

	store_scene_fetch(scene, request_for(ID_A, BID_KIND_ELF), "a");
	run(scene, "echo '{ \"size\": ' > store/.bidfs/record/aa/%s.elf", ID_A + 2);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(bid_store_info(scene->store, &id, &text, &changed), 0);
	assert_non_null(strstr(text, "\"elf\""));
	assert_null(strstr(text, "\"how\""));
	free(text);
}

static void test_read_only_store_is_not_written(void **state)
{
	struct store_scene *scene = *state;
	struct bid_request request = request_for(ID_A, BID_KIND_ELF);
	struct bid_store *reader;
	struct bid_added added;
	struct bid_txn *txn;
	char path[96];

	snprintf(path, sizeof(path), "%s/store", scene->directory);
	assert_int_equal(bid_store_open(path, 0, &reader), 0);
	assert_int_equal(bid_txn_begin(reader, &request, &txn), -EROFS);
	snprintf(path, sizeof(path), "%s/a", scene->directory);
	assert_int_equal(bid_store_add(reader, path, BID_LINK_AUTO, &added), -EROFS);
	bid_store_free(reader);
	assert_int_equal(bid_store_open("/nowhere/at/all", 0, &reader), -ENOENT);
	assert_int_equal(bid_store_open("/etc/passwd", 0, &reader), -ENOTDIR);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_scene_begin, store_scene_end)
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

	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
