// SPDX-License-Identifier: LGPL-2.1-or-later
/* Cut and damaged recordings: the builds found are right, and the result reports the damage. */
#include "perfdata_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static void assert_damaged(const struct recording *recording, const char *text, const char *damage)
{
	auto_reading reading = read_recording(recording);

	assert_int_equal(reading.r, 0);
	assert_string_equal(reading.text, text);
	assert_true(reading.summary.damaged > 0);
	assert_non_null(reading.summary.damage);
	assert_string_equal(reading.summary.damage, damage);
}

/* Each prefix of a file yields a part of the whole, and reports that it is cut. */
static void test_cut_recording_yields_its_part(void **state)
{
	auto_recording table = { .big = is_big(state) }, recording = { .big = is_big(state) }, content = { .big = is_big(state) };
	size_t whole;

	put_table(&table);
	put_content(&content, 4);
	put_header(&recording, HEADER);
	put_mmap2(&recording, USER, ID_A, "/bin/a");
	put_compressed(&recording, COMPRESSED, &content, 3);
	put_mmap(&recording, USER, "/bin/z");
	finish(&recording, &table);
	whole = recording.len;
	for (recording.len = 0; recording.len < whole; recording.len++) {
		auto_reading reading = read_recording(&recording), piped = read_through_pipe(&recording);

		assert_int_equal(reading.r, recording.len < 16 ? -EINVAL : 0);
		assert_int_equal(piped.r, reading.r);
		assert_string_equal(piped.text, reading.text);
		if (reading.r < 0)
			continue;
		assert_true(reading.summary.cut);
		assert_true(piped.summary.cut);
		assert_int_equal(reading.summary.damaged, 0);
		assert_true(recording.len < 250 || strstr(reading.text, "user " ID_A " /bin/a\n"));
	}
	assert_reads(&recording, "user " ID_B " /bin/00000\nuser " ID_A " /bin/00001\nuser " ID_B " /bin/00002\n"
				 "user " ID_A " /bin/00003\nuser " ID_A " /bin/a\nuser " ID_8 " /bin/short\n"
				 "user " ID_C "? /bin/unsized\nuser - /bin/z\nkernel " ID_A " [kernel.kallsyms]\n"
				 "user " ID_B " [vdso]\n");
}

/* Cut between two records: only the header shows that there should be more. */
static void test_cut_between_records_is_reported(void **state)
{
	auto_recording recording = { .big = is_big(state) };
	auto_reading reading = { 0 };
	size_t first;

	put_header(&recording, HEADER);
	put_mmap2(&recording, USER, ID_A, "/bin/a");
	first = recording.len;
	put_mmap2(&recording, USER, ID_B, "/bin/b");
	finish(&recording, NULL);
	recording.len = first;
	reading = read_recording(&recording);
	assert_int_equal(reading.r, 0);
	assert_string_equal(reading.text, "user " ID_A " /bin/a\n");
	assert_true(reading.summary.cut);
}

/* No record is smaller than its own head. */
static void test_undersized_record_is_damage(void **state)
{
	for (size_t size = 0; size < 8; size++) {
		auto_recording recording = { .big = is_big(state) };
		size_t at;

		put_pipe_header(&recording);
		put_mmap2(&recording, USER, ID_A, "/bin/a");
		at = recording.len;
		begin(&recording, SAMPLE, 0);
		recording.data[at + (recording.big ? 7 : 6)] = (uint8_t)size;
		put_mmap2(&recording, USER, ID_B, "/bin/lost");
		assert_damaged(&recording, "user " ID_A " /bin/a\n", "a record");
	}
}

static void test_damaged_record_is_skipped(void **state)
{
	auto_recording table = { .big = is_big(state) }, recording = { .big = is_big(state) };
	size_t at;

	put_table(&table);
	put_header(&recording, HEADER);
	put_mmap2(&recording, USER, ID_A, "/bin/a");
	/* an id that is too long, a name without an end, and none at all: only these are lost */
	at = recording.len;
	put_mmap2(&recording, USER, ID_B, "/bin/b");
	recording.data[at + 40] = 21;
	begin(&recording, MMAP2, USER);
	put(&recording, NULL, 64);
	put(&recording, "/bin/without-end", 16);
	end(&recording);
	begin(&recording, MMAP, USER);
	end(&recording);
	begin(&recording, BUILD_ID, USER);
	end(&recording);
	begin(&recording, COMPRESSED2, 0);
	end(&recording);
	put_mmap2(&recording, USER, ID_C, "/bin/c");
	/* the records behind this one cannot be found, but the table can */
	begin(&recording, SAMPLE, 0);
	put(&recording, NULL, 64);
	put_mmap2(&recording, USER, ID_C, "/bin/lost");
	finish(&recording, &table);
	assert_damaged(&recording, "user " ID_A " /bin/a\nuser - /bin/b\nuser " ID_C " /bin/c\n" TABLE_TEXT,
		       "a build-id of more than 20 bytes");
}

static void test_damaged_section_is_reported(void **state)
{
	static const uint64_t hostile[] = { 1ull << 20, INT64_MAX, UINT64_MAX - 200, UINT64_MAX };
	auto_recording table = { .big = is_big(state) }, recording = { .big = is_big(state) };
	size_t list;

	put_table(&table);
	put_header(&recording, HEADER);
	put_mmap2(&recording, USER, ID_A, "/bin/a");
	finish(&recording, &table);
	list = recording.len - table.len - 56;
	for (size_t field = 0; field < 4; field++) {
		/* data offset and size, table offset and size */
		size_t at = field < 2 ? 40 + 8 * field : list + 16 + 8 * (field - 2);
		uint8_t saved[8];

		memcpy(saved, recording.data + at, 8);
		for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
			auto_reading reading = { 0 };

			set64(&recording, at, hostile[i]);
			reading = read_recording(&recording);
			assert_int_equal(reading.r, 0);
			assert_true(reading.summary.cut || reading.summary.damaged > 0);
		}
		memcpy(recording.data + at, saved, 8);
	}
	/* as perf inject did: data where the attributes are */
	set64(&recording, 40, HEADER);
	set64(&recording, 48, list - HEADER);
	assert_damaged(&recording, TABLE_TEXT, "data where the header or the attributes are");
}

static void test_damaged_jump_is_reported(void **state)
{
	static const uint64_t hostile[] = { 1ull << 30, INT64_MAX, UINT64_MAX - 100, UINT64_MAX };

	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		auto_recording table = { .big = is_big(state) }, recording = { .big = is_big(state) };
		auto_reading unfinished = { 0 };

		put_table(&table);
		put_header(&recording, HEADER);
		begin(&recording, AUXTRACE, 0);
		put_number(&recording, hostile[i], 8);
		end(&recording);
		put_mmap2(&recording, USER, ID_A, "/bin/lost");
		unfinished = read_recording(&recording);
		assert_int_equal(unfinished.r, 0);
		assert_true(unfinished.summary.cut || unfinished.summary.damaged);
		finish(&recording, &table);
		assert_damaged(&recording, TABLE_TEXT, "a record with more behind it than there is data");
	}
}

static void test_damaged_compression_is_reported(void **state)
{
	auto_recording content = { .big = is_big(state) }, recording = { .big = is_big(state) }, nested = { .big = is_big(state) };
	auto_recording zeros = { .big = is_big(state) }, bomb = { .big = is_big(state) };
	size_t at;

	put_content(&content, 3);
	put_pipe_header(&recording);
	at = recording.len;
	put_compressed(&recording, COMPRESSED, &content, 1);
	put_mmap2(&recording, USER, ID_A, "/bin/a");
	recording.data[at + 8] ^= 0xff;
	assert_damaged(&recording, "user " ID_A " /bin/a\n", "compressed data");

	/* compressed records must not contain compressed records */
	put_pipe_header(&nested);
	recording.len = 0;
	put_compressed(&recording, COMPRESSED, &content, 1);
	put_compressed(&nested, COMPRESSED, &recording, 1);
	assert_damaged(&nested, "", "compressed data");

	/* unused bytes become records of no size */
	put(&zeros, NULL, 64);
	recording.len = 0;
	put_pipe_header(&recording);
	put_compressed(&recording, COMPRESSED, &zeros, 1);
	assert_damaged(&recording, "", "compressed data");

	/* 300 MiB in 30 KiB */
	zeros.len = 0;
	for (size_t i = 0; i < (6u << 20) / 60000; i++) {
		begin(&zeros, SAMPLE, 0);
		put(&zeros, NULL, 59992);
		end(&zeros);
	}
	put_pipe_header(&bomb);
	for (int i = 0; i < 50; i++)
		put_compressed(&bomb, COMPRESSED, &zeros, 1);
	put_mmap2(&bomb, USER, ID_A, "/bin/a");
	assert_damaged(&bomb, "user " ID_A " /bin/a\n", "compressed data that grows beyond reason");
}

/* A recording without an end, with the longest possible paths, until the reader stops. */
static void *send_names(void *user)
{
	auto_recording head = { 0 }, mapping = { 0 };
	char name[60001];
	int fd = *(int *)user;
	ssize_t n;

	memset(name, '/', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	put_pipe_header(&head);
	put_mmap(&mapping, USER, name);
	n = send(fd, head.data, head.len, MSG_NOSIGNAL);
	for (unsigned i = 0; n > 0; i++) {
		char number[16];

		memcpy(mapping.data + 40, number, (size_t)snprintf(number, sizeof(number), "/%08u", i));
		n = send(fd, mapping.data, mapping.len, MSG_NOSIGNAL);
	}
	close(fd);
	return NULL;
}

static int none(void *user, const struct bid_perfdata_dso *dso)
{
	fail_msg("told of one");
	return 0;
}

static void test_endless_names_stop_with_the_reader(void **state)
{
	struct bid_perfdata_summary summary;
	pthread_t sender;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pthread_create(&sender, NULL, send_names, &pair[1]), 0);
	assert_int_equal(bid_perfdata_read_fd(pair[0], 0, none, NULL, &summary), -E2BIG);
	close(pair[0]);
	pthread_join(sender, NULL);
}

int main(void)
{
	static bool little = false, big = true;
	const struct CMUnitTest tests[] = {
		IN_BOTH(test_cut_recording_yields_its_part),
		IN_BOTH(test_cut_between_records_is_reported),
		IN_BOTH(test_undersized_record_is_damage),
		IN_BOTH(test_damaged_record_is_skipped),
		IN_BOTH(test_damaged_section_is_reported),
		IN_BOTH(test_damaged_jump_is_reported),
		IN_BOTH(test_damaged_compression_is_reported),
		cmocka_unit_test_prestate(test_endless_names_stop_with_the_reader, &little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
