// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rot: every flipped bit under a digest is found, and damaged records do no harm. */
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/remove.h"
#include "api/verify.h"
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

static struct target open_target(const struct store_fixture *fixture, const char *path)
{
	struct target target;

	snprintf(target.path, sizeof(target.path), "%s/store/%s", fixture->directory, path);
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

static struct bid_verify_stats verify(const struct store_fixture *fixture, bool deep, bool repair)
{
	struct bid_verify_config config = { .deep = deep, .repair = repair };
	struct bid_verify_stats stats;

	assert_int_equal(bid_store_verify(fixture->store, &config, &stats), 0);
	return stats;
}

static uint64_t sum(struct bid_verify_stats stats)
{
	uint64_t n = 0;

	for (int kind = 0; kind < BID_FINDING_COUNT; kind++)
		n += stats.found[kind];
	return n;
}

static void test_every_flipped_bit_is_found(void **state)
{
	struct store_fixture *fixture = *state;
	struct target target;

	store_fixture_fetch(fixture, request_for(ID_A, BID_KIND_ELF), "a.stripped");
	target = open_target(fixture, OBJECT_A);
	for (size_t at = 0; at < target.len; at += STRIDE) {
		struct bid_verify_stats stats;

		put_byte(&target, at, flipped(&target, at));
		stats = verify(fixture, true, false);
		if (stats.found[BID_FINDING_WRONG] + stats.found[BID_FINDING_CORRUPT] != 1 || sum(stats) != 1)
			fail_msg("a flipped bit in byte %zu of %zu: %llu findings", at, target.len, (unsigned long long)sum(stats));
		put_byte(&target, at, target.data[at]);
	}
	assert_int_equal(verify(fixture, true, false).digests, 1);
	assert_int_equal(verify(fixture, true, false).left, 0);
	close_target(&target);
}

/* Damage to the id needs no digest: the magic number, the class, the note. */
static void test_flips_in_header_and_note_are_found_early(void **state)
{
	struct store_fixture *fixture = *state;
	static const unsigned char note[] = { 4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xaa };
	struct target target;
	const char *begin;

	store_fixture_fetch(fixture, request_for(ID_A, BID_KIND_ELF), "a.stripped");
	target = open_target(fixture, OBJECT_A);
	begin = memmem(target.data, target.len, note, sizeof(note));
	assert_non_null(begin);
	for (size_t i = 0; i < 6 + 36; i++) {
		size_t at = i < 6 ? i : (size_t)(begin - target.data) + i - 6;
		struct bid_verify_stats stats;

		put_byte(&target, at, flipped(&target, at));
		stats = verify(fixture, false, false);
		if (stats.found[BID_FINDING_WRONG] != 1)
			fail_msg("a flipped bit in byte %zu was not found", at);
		put_byte(&target, at, target.data[at]);
	}
	close_target(&target);
}

static void test_every_truncation_is_found(void **state)
{
	struct store_fixture *fixture = *state;
	struct target target;

	store_fixture_fetch(fixture, request_for(ID_A, BID_KIND_ELF), "a.stripped");
	target = open_target(fixture, OBJECT_A);
	for (size_t len = 0; len < target.len; len += len < 1024 ? STRIDE : 61) {
		assert_int_equal(ftruncate(target.fd, (off_t)len), 0);
		if (sum(verify(fixture, true, false)) == 0)
			fail_msg("cut to %zu of %zu bytes, and not found", len, target.len);
		assert_int_equal(bid_pwrite_full(target.fd, target.data, target.len, 0), 0);
	}
	assert_int_equal(verify(fixture, true, false).left, 0);
	close_target(&target);
}

/* Serve, list, check and repair with the current record. Sound files stay. */
static void no_harm(const struct store_fixture *fixture, const struct target *object)
{
	struct bid_id id = id_of(ID_A);
	struct stat st;
	char *text;
	struct timespec changed;

	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(bid_store_info(fixture->store, &id, &text, &changed), 0);
	free(text);
	assert_int_equal(verify(fixture, true, true).left, 0);
	assert_int_equal(verify(fixture, true, false).left, 0);
	assert_int_equal(stat(object->path, &st), 0);
	assert_int_equal(st.st_size, object->len);
}

static void put_record(const struct store_fixture *fixture, const char *path, const char *data, size_t len)
{
	char whole[PATH_MAX];
	int fd;

	/* a new file each time: the repaired record has another inode */
	snprintf(whole, sizeof(whole), "%s/store/%s", fixture->directory, path);
	fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(bid_pwrite_full(fd, data, len, 0), 0);
	close(fd);
}

static void test_damaged_record_does_no_harm(void **state)
{
	struct store_fixture *fixture = *state;
	struct target object, record;
	uint64_t found = 0;

	store_fixture_fetch(fixture, request_for(ID_A, BID_KIND_ELF), "a.stripped");
	object = open_target(fixture, OBJECT_A);
	record = open_target(fixture, RECORD_A);
	for (size_t at = 0; at < record.len; at += STRIDE) {
		char byte = record.data[at];

		record.data[at] = flipped(&record, at);
		put_record(fixture, RECORD_A, record.data, record.len);
		record.data[at] = byte;
		found += sum(verify(fixture, false, false));
		no_harm(fixture, &object);
	}
	/* but for the white space between its parts, and the name of its sum, every byte counts */
	assert_true(found > record.len / STRIDE * 8 / 10);
	for (size_t len = 0; len < record.len; len += STRIDE) {
		put_record(fixture, RECORD_A, record.data, len);
		no_harm(fixture, &object);
	}
	close_target(&record);
	close_target(&object);
}

/* A damaged record may have any content. */
static void test_record_that_is_no_file_does_no_harm(void **state)
{
	struct store_fixture *fixture = *state;
	struct bid_id id = id_of(ID_A);
	char *text;
	struct timespec changed;

	store_fixture_fetch(fixture, request_for(ID_A, BID_KIND_ELF), "a.stripped");
	run(fixture, "rm store/" RECORD_A " && mkdir store/" RECORD_A);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	verify(fixture, true, true);
	/* the repair has written a record */
	run(fixture, "rm store/" RECORD_A " && mkfifo store/" RECORD_A);
	assert_int_equal(bid_store_info(fixture->store, &id, &text, &changed), 0);
	free(text);
	assert_int_equal(verify(fixture, true, true).found[BID_FINDING_RECORD], 1);
	run(fixture, "ln -sf /etc/passwd store/" RECORD_A);
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_int_equal(verify(fixture, true, true).found[BID_FINDING_RECORD], 1);
	assert_int_equal(verify(fixture, true, true).found[BID_FINDING_RECORD], 0);
	/* a directory that is not empty stays, and the downloads go on without a record */
	run(fixture, "rm store/" RECORD_A " && mkdir -p store/" RECORD_A "/x");
	assert_int_equal(verify(fixture, true, true).found[BID_FINDING_RECORD], 1);
	run(fixture, "rm -rf 'store/[debuginfod]' store/.build-id");
	store_fixture_fetch(fixture, request_for(ID_A, BID_KIND_ELF), "a.stripped");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	assert_true(has_path(fixture, RECORD_A "/x"));
	run(fixture, "rm -rf store/.bidfs/record/aa && touch store/.bidfs/record/aa");
	assert_int_equal(verify(fixture, true, true).found[BID_FINDING_RECORD], 1);
	assert_false(has_path(fixture, ".bidfs/record/aa"));
	run(fixture, "rm -rf store/.bidfs/record && touch store/.bidfs/record");
	assert_int_equal(find(fixture, ID_A, BID_KIND_ELF), 0);
	verify(fixture, true, true);
	run(fixture, "head -c 65537 /dev/zero >huge && rm store/.bidfs/record && mkdir -p store/.bidfs/record/aa && mv huge "
		     "store/" RECORD_A);
	assert_int_equal(verify(fixture, true, true).found[BID_FINDING_RECORD], 1);
	assert_int_equal(verify(fixture, true, true).found[BID_FINDING_RECORD], 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_every_flipped_bit_is_found),		TEST(test_flips_in_header_and_note_are_found_early),
		TEST(test_every_truncation_is_found),		TEST(test_damaged_record_does_no_harm),
		TEST(test_record_that_is_no_file_does_no_harm),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
