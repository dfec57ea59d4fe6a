// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rot (row R30): every flipped bit that a digest covers is found, and no record, however damaged, does harm. */
#include "store_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bid/remove.h>
#include <bid/verify.h>

#include "base/io.h"

#define REST_A	 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OBJECT_A "[debuginfod]/" ID_A "/elf"
#define RECORD_A ".bidfs/record/aa/" REST_A ".elf"

/* A file of the store, read into memory and open for writing. */
struct target {
	char path[PATH_MAX];
	int fd;
	char *data;
	size_t len;
};

static struct target open_target(const struct store_scene *scene, const char *path)
{
	struct target target;

	snprintf(target.path, sizeof(target.path), "%s/store/%s", scene->directory, path);
	assert_int_equal(chmod(target.path, 0644), 0);
	target.fd = open(target.path, O_RDWR | O_CLOEXEC);
	assert_true(target.fd >= 0);
	assert_int_equal(bid_read_file(target.fd, 1 << 20, &target.data, &target.len), 0);
	assert_true(target.len > 0);
	return target;
}

static void close_target(struct target *target)
{
	close(target->fd);
	free(target->data);
}

static void put_byte(const struct target *target, size_t at, char byte)
{
	assert_int_equal(bid_pwrite_full(target->fd, &byte, 1, (off_t)at), 0);
}

/* Another bit in each byte. */
static char flipped(const struct target *target, size_t at)
{
	return (char)(target->data[at] ^ 1 << at % 8);
}

static void fetch(const struct store_scene *scene, const char *name)
{
	struct bid_request request = request_for(ID_A, BID_KIND_ELF);
	struct bid_file file = BID_FILE_NONE;
	char path[96], *data;
	struct bid_txn *txn;
	size_t len;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", scene->directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(bid_read_file(fd, 1 << 20, &data, &len), 0);
	close(fd);
	assert_int_equal(bid_txn_begin(scene->store, &request, &txn), 0);
	assert_int_equal(bid_txn_write(txn, data, len), 0);
	assert_int_equal(bid_txn_commit(txn, &(struct bid_origin){ .how = "fetched", .url = "http://example.org/x" }, &file), 0);
	bid_file_release(&file);
	bid_txn_free(txn);
	free(data);
}

static struct bid_verify_stats verify(const struct store_scene *scene, bool deep, bool repair)
{
	struct bid_verify_config config = { .deep = deep, .repair = repair };
	struct bid_verify_stats stats;

	assert_int_equal(bid_store_verify(scene->store, &config, &stats), 0);
	return stats;
}

static uint64_t sum(struct bid_verify_stats stats)
{
	uint64_t n = 0;

	for (int kind = 0; kind < BID_FINDING_COUNT; kind++)
		n += stats.found[kind];
	return n;
}

static void every_flipped_bit_of_an_object_is_found(void **state)
{
	struct store_scene *scene = *state;
	struct target target;

	fetch(scene, "a.stripped");
	target = open_target(scene, OBJECT_A);
	for (size_t at = 0; at < target.len; at += STRIDE) {
		struct bid_verify_stats stats;

		put_byte(&target, at, flipped(&target, at));
		stats = verify(scene, true, false);
		if (stats.found[BID_FINDING_WRONG] + stats.found[BID_FINDING_CORRUPT] != 1 || sum(stats) != 1)
			fail_msg("a flipped bit in byte %zu of %zu: %llu findings", at, target.len, (unsigned long long)sum(stats));
		put_byte(&target, at, target.data[at]);
	}
	assert_int_equal(verify(scene, true, false).digests, 1);
	assert_int_equal(verify(scene, true, false).left, 0);
	close_target(&target);
}

/* What the id depends on needs no digest: the magic number, the class, the note. */
static void flips_in_header_and_note_are_found_without_reading_all(void **state)
{
	struct store_scene *scene = *state;
	static const unsigned char note[] = { 4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xaa };
	struct target target;
	const char *begin;

	fetch(scene, "a.stripped");
	target = open_target(scene, OBJECT_A);
	begin = memmem(target.data, target.len, note, sizeof(note));
	assert_non_null(begin);
	for (size_t i = 0; i < 6 + 36; i++) {
		size_t at = i < 6 ? i : (size_t)(begin - target.data) + i - 6;
		struct bid_verify_stats stats;

		put_byte(&target, at, flipped(&target, at));
		stats = verify(scene, false, false);
		if (stats.found[BID_FINDING_WRONG] != 1)
			fail_msg("a flipped bit in byte %zu was not found", at);
		put_byte(&target, at, target.data[at]);
	}
	close_target(&target);
}

static void every_cut_is_found(void **state)
{
	struct store_scene *scene = *state;
	struct target target;

	fetch(scene, "a.stripped");
	target = open_target(scene, OBJECT_A);
	for (size_t len = 0; len < target.len; len += len < 1024 ? STRIDE : 61) {
		assert_int_equal(ftruncate(target.fd, (off_t)len), 0);
		if (sum(verify(scene, true, false)) == 0)
			fail_msg("cut to %zu of %zu bytes, and not found", len, target.len);
		assert_int_equal(bid_pwrite_full(target.fd, target.data, target.len, 0), 0);
	}
	assert_int_equal(verify(scene, true, false).left, 0);
	close_target(&target);
}

/* Serve, tell, check and repair over the record as it is now. What was sound stays. */
static void no_harm(const struct store_scene *scene, const struct target *object)
{
	struct bid_id id = id_of(ID_A);
	struct stat st;
	char *text;
	struct timespec changed;

	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(bid_store_info(scene->store, &id, &text, &changed), 0);
	free(text);
	assert_int_equal(verify(scene, true, true).left, 0);
	assert_int_equal(verify(scene, true, false).left, 0);
	assert_int_equal(stat(object->path, &st), 0);
	assert_int_equal(st.st_size, object->len);
}

static void put_record(const struct store_scene *scene, const char *path, const char *data, size_t len)
{
	char whole[PATH_MAX];
	int fd;

	/* a new file each time: the repaired record has another inode */
	snprintf(whole, sizeof(whole), "%s/store/%s", scene->directory, path);
	fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(bid_pwrite_full(fd, data, len, 0), 0);
	close(fd);
}

static void a_damaged_record_never_does_harm(void **state)
{
	struct store_scene *scene = *state;
	struct target object, record;
	uint64_t found = 0;

	fetch(scene, "a.stripped");
	object = open_target(scene, OBJECT_A);
	record = open_target(scene, RECORD_A);
	for (size_t at = 0; at < record.len; at += STRIDE) {
		char byte = record.data[at];

		record.data[at] = flipped(&record, at);
		put_record(scene, RECORD_A, record.data, record.len);
		record.data[at] = byte;
		found += sum(verify(scene, false, false));
		no_harm(scene, &object);
	}
	/* but for the white space between its parts, and the name of its sum, every byte counts */
	assert_true(found > record.len / STRIDE * 8 / 10);
	for (size_t len = 0; len < record.len; len += STRIDE) {
		put_record(scene, RECORD_A, record.data, len);
		no_harm(scene, &object);
	}
	close_target(&record);
	close_target(&object);
}

/* Two files are added by a scan, and what is recorded of them is in one pack. Returns its path in the store. */
static void scan_two(const struct store_scene *scene, char *ret_pack, size_t size)
{
	struct bid_scan_config config = { .jobs = 1, .link = BID_LINK_COPY };
	struct bid_scan_counts counts;
	char path[PATH_MAX];
	FILE *list;

	run(scene, "rm -rf tree && mkdir tree && cp a.stripped b tree");
	snprintf(path, sizeof(path), "%s/tree", scene->directory);
	assert_int_equal(bid_store_scan(scene->store, path, &config, &counts), 0);
	assert_int_equal(counts.added, 2);
	run(scene, "cd store && test ! -e .bidfs/record && ls -d .bidfs/pack/* > ../list");
	snprintf(path, sizeof(path), "%s/list", scene->directory);
	list = fopen(path, "re");
	assert_non_null(list);
	assert_non_null(fgets(ret_pack, (int)size, list));
	ret_pack[strcspn(ret_pack, "\n")] = '\0';
	fclose(list);
}

static int note_how(void *user, const char *key, const char *value)
{
	bool *added = user;

	*added = *added || (strcmp(key, "how") == 0 && strcmp(value, "added") == 0);
	return 0;
}

static bool is_recorded(const struct store_scene *scene, const char *id)
{
	struct bid_request request = request_for(id, BID_KIND_ELF);
	bool added = false;

	bid_store_each_fact(scene->store, &request, note_how, &added);
	return added;
}

enum { VERSION_AT = 8, VERSION_END = 16 }; /* of another version, or of a machine of another byte order: neither read nor touched */

static void a_damaged_pack_never_does_harm(void **state)
{
	struct store_scene *scene = *state;
	struct target object, pack;
	char name[PATH_MAX], path[PATH_MAX];
	unsigned both = 0;

	scan_two(scene, name, sizeof(name));
	assert_true(is_recorded(scene, ID_A) && is_recorded(scene, ID_B));
	assert_int_equal(sum(verify(scene, true, false)), 0);
	snprintf(path, sizeof(path), "%s/tree/a.stripped/" ID_A "/elf", scene->directory + 1);
	object = open_target(scene, path);
	pack = open_target(scene, name);
	/* flips, then cuts; each of them is looked at in test_pack.c */
	for (size_t i = 0; i < 2 * pack.len; i += 3 * STRIDE) {
		size_t at = i % pack.len, len = i < pack.len ? pack.len : at;
		bool other_version = i < pack.len && at >= VERSION_AT && at < VERSION_END;
		char byte = pack.data[at];

		pack.data[at] = flipped(&pack, at);
		run(scene, "rm -rf store/.bidfs/record store/.bidfs/pack/*");
		put_record(scene, name, pack.data, len);
		pack.data[at] = byte;
		both += is_recorded(scene, ID_A) && is_recorded(scene, ID_B);
		if ((sum(verify(scene, false, false)) == 0) != other_version)
			fail_msg("byte %zu of %zu, of %zu", at, len, pack.len);
		no_harm(scene, &object);
		if (at >= pack.len / 2 && i < pack.len)
			assert_true(is_recorded(scene, ID_A) || is_recorded(scene, ID_B));
		/* what was damaged is gone, what was sound is in another */
		assert_int_equal(sum(verify(scene, false, false)), 0);
	}
	/* a cut in the last text, or a flip in the sum of the index or the length of the file, leaves both as they are */
	assert_true(both < 64);
	close_target(&pack);
	close_target(&object);
}

/* To repair one build is no reason to write what is recorded of others, and whose damage nobody looks for. */
static void repair_of_one_build_leaves_its_pack_alone(void **state)
{
	struct store_scene *scene = *state;
	struct bid_request request = request_for(ID_A, BID_KIND_ELF);
	struct bid_verify_config config = { .deep = true, .repair = true, .ids = &request.id, .n_ids = 1 };
	struct bid_verify_stats stats;
	char name[PATH_MAX];

	scan_two(scene, name, sizeof(name));
	run(scene, "ls -i store/.bidfs/pack > before");
	assert_int_equal(bid_store_verify(scene->store, &config, &stats), 0);
	assert_int_equal(stats.digests, 0);
	run(scene, "ls -i store/.bidfs/pack | cmp - before");
	/* it has its digest all the same */
	assert_int_equal(bid_store_verify(scene->store, &config, &stats), 0);
	assert_int_equal(stats.digests, 1);
	assert_true(is_recorded(scene, ID_A) && is_recorded(scene, ID_B));
}

/* A build that goes takes its record with it, though it is in a pack with others. */
static void records_in_packs_go_with_what_they_are_of(void **state)
{
	struct store_scene *scene = *state;
	struct bid_removal removal = { .id = id_of(ID_A) };
	char name[PATH_MAX];

	scan_two(scene, name, sizeof(name));
	assert_int_equal(bid_store_remove(scene->store, &removal, 1), 0);
	assert_int_equal(removal.error, 0);
	assert_false(is_recorded(scene, ID_A));
	assert_true(is_recorded(scene, ID_B));
	assert_int_equal(sum(verify(scene, true, false)), 0);
	/* somebody who knows nothing of records */
	run(scene, "rm -r store/.build-id/bb store/\"$(pwd)\"/tree");
	assert_int_equal(verify(scene, false, false).found[BID_FINDING_STALE], 1);
	assert_int_equal(verify(scene, false, true).left, 0);
	assert_false(is_recorded(scene, ID_B));
	assert_int_equal(sum(verify(scene, true, false)), 0);
	/* and it comes again */
	fetch(scene, "a.stripped");
	assert_int_equal(sum(verify(scene, true, false)), 0);
	assert_false(is_recorded(scene, ID_A));
}

/* What may lie in the place of a record: anything. */
static void records_that_are_no_files(void **state)
{
	struct store_scene *scene = *state;
	struct bid_id id = id_of(ID_A);
	char *text;
	struct timespec changed;

	fetch(scene, "a.stripped");
	run(scene, "rm store/" RECORD_A " && mkdir store/" RECORD_A);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	verify(scene, true, true);
	run(scene, "test -f store/" RECORD_A " && rm store/" RECORD_A " && mkdir -p store/" RECORD_A "/x");
	assert_int_equal(verify(scene, true, true).found[BID_FINDING_RECORD], 1);
	run(scene, "test -f store/" RECORD_A " && rm store/" RECORD_A " && mkfifo store/" RECORD_A);
	assert_int_equal(bid_store_info(scene->store, &id, &text, &changed), 0);
	free(text);
	verify(scene, true, true);
	run(scene, "rm -f store/" RECORD_A " && ln -s /etc/passwd store/" RECORD_A);
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(verify(scene, true, true).found[BID_FINDING_RECORD], 1);
	run(scene, "test -f store/" RECORD_A " && ! test -L store/" RECORD_A);
	run(scene, "rm -rf store/.bidfs/record/aa && touch store/.bidfs/record/aa");
	assert_int_equal(verify(scene, true, true).found[BID_FINDING_RECORD], 1);
	assert_false(has_path(scene, ".bidfs/record/aa"));
	run(scene, "rm -rf store/.bidfs/record && touch store/.bidfs/record");
	assert_int_equal(find(scene, ID_A, BID_KIND_ELF), 0);
	verify(scene, true, true);
	run(scene, "head -c 65537 /dev/zero >huge && rm store/.bidfs/record && mkdir -p store/.bidfs/record/aa && mv huge "
		   "store/" RECORD_A);
	assert_int_equal(verify(scene, true, true).found[BID_FINDING_RECORD], 1);
	assert_int_equal(verify(scene, true, true).found[BID_FINDING_RECORD], 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_scene_begin, store_scene_end)
	const struct CMUnitTest tests[] = {
		TEST(every_flipped_bit_of_an_object_is_found),
		TEST(flips_in_header_and_note_are_found_without_reading_all),
		TEST(every_cut_is_found),
		TEST(a_damaged_record_never_does_harm),
		TEST(a_damaged_pack_never_does_harm),
		TEST(repair_of_one_build_leaves_its_pack_alone),
		TEST(records_in_packs_go_with_what_they_are_of),
		TEST(records_that_are_no_files),
	};

	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
