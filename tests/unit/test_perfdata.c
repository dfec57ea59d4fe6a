// SPDX-License-Identifier: LGPL-2.1-or-later
/* Every form of a recording, in both byte orders. */
#include "perfdata_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"

static void test_id_table_is_read(void **state)
{
	auto_recording table = { .big = is_big(state) }, recording = { .big = is_big(state) };
	auto_reading reading = { 0 };
	uint8_t *list;

	put_table(&table);
	put_header(&recording, HEADER);
	put_sample(&recording, 7);
	put_sample(&recording, 2);
	finish(&recording, &table);
	assert_reads(&recording, TABLE_TEXT);
	reading = read_recording(&recording);
	assert_int_equal(reading.summary.records, 2);
	assert_int_equal(reading.summary.dsos, 4);
	assert_true(reading.summary.lists_sampled);
	assert_false(reading.summary.interrupted || reading.summary.compressed);

	/* without a section in front of it */
	list = recording.data + recording.len - table.len - 56;
	memcpy(list, list + 16, 16);
	memset(list + 16, 0xff, 16);
	set64(&recording, 72, 1 << 2 | 1 << 3);
	assert_reads(&recording, TABLE_TEXT);
}

static void test_recording_without_table_uses_events(void **state)
{
	auto_recording recording = { .big = is_big(state) };
	auto_reading reading = { 0 };

	put_header(&recording, HEADER);
	put_mmap2(&recording, USER, ID_A, "/bin/a");
	finish(&recording, NULL);
	assert_reads(&recording, "user " ID_A " /bin/a\n");
	reading = read_recording(&recording);
	assert_false(reading.summary.lists_sampled || reading.summary.interrupted);
}

static void test_mapping_ids_are_read(void **state)
{
	static const char *const memory[] = { "//anon",
					      "[heap]",
					      "[stack]",
					      "[anon:x]",
					      "/dev/zero",
					      "/SYSV00000000 (deleted)",
					      "/memfd:x (deleted)",
					      "/anon_hugepage",
					      "anon_inode:x",
					      "" };
	auto_recording recording = { .big = is_big(state) };

	put_pipe_header(&recording);
	put_mmap(&recording, KERNEL, "[kernel.kallsyms]_text");
	put_mmap(&recording, KERNEL, "/lib/modules/1/ext4.ko");
	put_mmap(&recording, KERNEL, "[overlay]");
	put_mmap2(&recording, KERNEL, ID_A, "[kernel.kallsyms]_stext");
	put_mmap2(&recording, USER, NULL, "/bin/unnamed");
	put_mmap2(&recording, USER, NULL, "/bin/b");
	put_mmap2(&recording, USER, ID_B, "/bin/b");
	put_mmap2(&recording, USER, ID_C, "/bin/b");
	put_mmap2(&recording, USER, NULL, "/bin/b");
	put_mmap2(&recording, USER, ID_8, "/tmp/gone (deleted)");
	put_mmap2(&recording, USER, NULL, "[vdso]");
	put_mmap2(&recording, USER | DATA, NULL, "/etc/ld.so.cache");
	put_mmap2(&recording, USER | DATA, ID_A, "/lib/data.so");
	put_mmap2(&recording, GUEST_KERNEL, ID_C, "[guest.kernel.kallsyms]_text");
	put_mmap2(&recording, USER, "0000000000000000000000000000000000000000", "/bin/zeros");
	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
		put_mmap(&recording, USER, memory[i]);
		put_mmap2(&recording, USER, NULL, memory[i]);
	}
	assert_reads(&recording, "user " ID_B " /bin/b\n"
				 "user " ID_C " /bin/b\n"
				 "user - /bin/unnamed\n"
				 "user - /bin/zeros\n"
				 "user " ID_A " /lib/data.so\n"
				 "kernel - /lib/modules/1/ext4.ko\n"
				 "user " ID_8 " /tmp/gone (deleted)\n"
				 "guest " ID_C " [guest.kernel.kallsyms]\n"
				 "kernel " ID_A " [kernel.kallsyms]\n"
				 "kernel - [overlay]\n"
				 "user - [vdso]\n");
}

/* One id in two forms is one, and a name in two modes is two. */
static void test_id_sizes_and_padding_are_read(void **state)
{
	auto_recording recording = { .big = is_big(state) };

	put_pipe_header(&recording);
	put_build_id(&recording, BUILD_ID, USER, ID_8, "/bin/short");
	put_mmap2(&recording, USER, ID_8, "/bin/short");
	put_build_id(&recording, BUILD_ID, USER, ID_8, "/bin/padded");
	put_build_id(&recording, BUILD_ID, USER, ID_A, "/bin/a");
	put_build_id(&recording, BUILD_ID, USER | SIZED, ID_A, "/bin/a");
	put_build_id(&recording, BUILD_ID, GUEST_KERNEL | SIZED, ID_A, "/bin/a");
	/* some versions record the kernel as a program */
	put_build_id(&recording, BUILD_ID, USER | SIZED, ID_B, "[kernel.kallsyms]_text");
	/* perf inject names its copy of a vDSO */
	put_build_id(&recording, BUILD_ID, USER, ID_C, "/tmp/perf-vdso.so-a1B2c3");
	assert_reads(&recording, "user " ID_A " /bin/a\n"
				 "guest " ID_A " /bin/a\n"
				 "user " ID_8_PAD "? /bin/padded\n"
				 "user " ID_8 " /bin/short\n"
				 "kernel " ID_B " [kernel.kallsyms]\n"
				 "user " ID_C "? [vdso]\n");
}

/* Headers of other versions: the first magic, no features, features of a machine with longs of 32 bits, a longer header. */
static void test_old_headers_are_read(void **state)
{
	auto_recording table = { .big = is_big(state) }, recording = { .big = is_big(state) }, small = { .big = is_big(state) };
	auto_recording large = { .big = is_big(state) };

	put_table(&table);
	put_header(&recording, HEADER);
	put_sample(&recording, 1);
	finish(&recording, &table);
	memcpy(recording.data, "PERFFILE", 8);
	assert_reads(&recording, TABLE_TEXT);
	memcpy(recording.data, recording.big ? "2ELIFREP" : "PERFILE2", 8);
	if (recording.big) {
		set64(&recording, 72, 14ull << 32);
		assert_reads(&recording, TABLE_TEXT);
		set64(&recording, 72, 6ull << 32);
		assert_reads(&recording, TABLE_TEXT);
	}

	put_header(&small, 72);
	put_mmap2(&small, USER, ID_A, "/bin/a");
	finish(&small, NULL);
	assert_reads(&small, "user " ID_A " /bin/a\n");

	put_header(&large, 168);
	put_mmap2(&large, USER, ID_A, "/bin/a");
	finish(&large, &table);
	assert_reads(&large, "user " ID_A " /bin/a\n" TABLE_TEXT);
}

static void test_pipe_is_read(void **state)
{
	auto_recording recording = { .big = is_big(state) };
	auto_reading reading = { 0 };
	auto_recording table = { .big = is_big(state) };

	put_table(&table);
	put_pipe_header(&recording);
	put_sample(&recording, 3);
	begin(&recording, FEATURE, 0);
	put_number(&recording, 3, 8);
	put(&recording, table.data, table.len);
	end(&recording);
	assert_reads(&recording, "");
	begin(&recording, FEATURE, 0);
	put_number(&recording, 2, 8);
	put(&recording, table.data, table.len);
	end(&recording);
	assert_reads(&recording, TABLE_TEXT);
	reading = read_recording(&recording);
	assert_true(reading.summary.lists_sampled);
}

/* Bytes behind records with the look of records. */
static void test_large_jumps_are_followed(void **state)
{
	auto_recording recording = { .big = is_big(state) }, trap = { .big = is_big(state) };

	put_mmap2(&trap, USER, ID_A, "/bin/trap");
	put_pipe_header(&recording);
	begin(&recording, TRACING_DATA, 0);
	put_number(&recording, trap.len, 4);
	put_number(&recording, 0, 4);
	end(&recording);
	put(&recording, trap.data, trap.len);
	for (int i = 0; i < 2; i++) {
		begin(&recording, AUXTRACE, 0);
		put_number(&recording, 200 * trap.len, 8);
		put(&recording, NULL, 32);
		end(&recording);
		for (int j = 0; j < 200; j++)
			put(&recording, trap.data, trap.len);
	}
	put_mmap2(&recording, USER, ID_B, "/bin/b");
	assert_reads(&recording, "user " ID_B " /bin/b\n");

	/* a jump to the very end, and one beyond it */
	begin(&recording, AUXTRACE, 0);
	put_number(&recording, 1000, 8);
	end(&recording);
	put(&recording, NULL, 1000);
	assert_reads(&recording, "user " ID_B " /bin/b\n");
	recording.len--;
	for (int i = 0; i < 2; i++) {
		auto_reading reading = i ? read_recording(&recording) : read_through_pipe(&recording);

		assert_int_equal(reading.r, 0);
		assert_string_equal(reading.text, "user " ID_B " /bin/b\n");
		assert_true(reading.summary.cut);
	}
}

static void test_compressed_records_are_read(void **state)
{
	static const uint32_t types[] = { COMPRESSED, COMPRESSED2 };
	auto_recording content = { .big = is_big(state) }, plain = { .big = is_big(state) };
	auto_reading expected = { 0 };

	put_content(&content, 4000);
	put_pipe_header(&plain);
	put(&plain, content.data, content.len);
	expected = read_recording(&plain);
	assert_int_equal(expected.r, 0);
	assert_int_equal(expected.summary.dsos, 300);

	for (size_t i = 0; i < 2; i++) {
		for (size_t parts = 1; parts < 3000; parts = parts * 3 + 1) {
			auto_recording recording = { .big = is_big(state) };
			auto_reading reading = { 0 };

			put_header(&recording, HEADER);
			put_compressed(&recording, types[i], &content, parts);
			put_sample(&recording, 1);
			/* a second frame goes on in the same stream */
			put_compressed(&recording, types[i], &content, parts);
			finish(&recording, NULL);
			assert_reads(&recording, expected.text);
			reading = read_recording(&recording);
			assert_true(reading.summary.compressed);
			assert_int_equal(reading.summary.records, 2 * expected.summary.records + 2 * parts + 1);
		}
	}
}

/* A record may begin in one frame and end in another. */
static void test_straddling_records_are_read(void **state)
{
	auto_recording content = { .big = is_big(state) };

	put_mmap2(&content, USER, ID_A, "/bin/a");
	for (size_t i = 1; i < content.len; i++) {
		auto_recording recording = { .big = is_big(state) };
		struct recording head = { .data = content.data, .len = i };
		struct recording tail = { .data = content.data + i, .len = content.len - i };

		put_pipe_header(&recording);
		put_compressed(&recording, COMPRESSED, &head, 1);
		put_sample(&recording, 2);
		put_compressed(&recording, COMPRESSED, &tail, 2);
		assert_reads(&recording, "user " ID_A " /bin/a\n");
	}
}

static void test_interrupted_recording_is_read(void **state)
{
	auto_recording recording = { .big = is_big(state) };
	auto_reading reading = { 0 };

	put_header(&recording, HEADER);
	put_mmap2(&recording, USER, ID_A, "/bin/a");
	put_sample(&recording, 9);
	assert_reads(&recording, "user " ID_A " /bin/a\n");
	reading = read_recording(&recording);
	assert_true(reading.summary.interrupted);
}

static void write_file(const char *directory, const char *name, const struct recording *recording)
{
	char path[4096];
	bid_auto_fd int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && bid_pwrite_full(fd, recording->data, recording->len, 0) == 0);
}

static void remove_files(const char *directory, const char *const *names)
{
	char path[4096];

	for (; *names; names++) {
		snprintf(path, sizeof(path), "%s/%s", directory, *names);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(directory), 0);
}

static void test_directory_is_read(void **state)
{
	static const char *const names[] = { "data", "data.0", "data.1", "data.old", "data.", "data.7", NULL };
	auto_recording head = { .big = is_big(state) }, first = { .big = is_big(state) }, second = { .big = is_big(state) };
	auto_recording content = { .big = is_big(state) }, table = { .big = is_big(state) }, trap = { .big = is_big(state) };
	char directory[] = "/tmp/perfdata.XXXXXX", path[64];
	auto_reading empty = { 0 }, whole = { 0 };

	assert_non_null(mkdtemp(directory));
	empty = read_path(directory);
	assert_int_equal(empty.r, -EINVAL);

	put_table(&table);
	put_header(&head, HEADER);
	put_sample(&head, 4);
	finish(&head, &table);
	write_file(directory, "data", &head);
	/* each has a compressed stream of its own */
	put_mmap2(&content, USER, ID_A, "/bin/a");
	put_compressed(&first, COMPRESSED, &content, 2);
	write_file(directory, "data.0", &first);
	put_compressed(&second, COMPRESSED, &content, 1);
	put_mmap2(&second, USER, ID_B, "/bin/b");
	write_file(directory, "data.1", &second);
	put_mmap2(&trap, USER, ID_C, "/bin/trap");
	write_file(directory, "data.old", &trap);
	write_file(directory, "data.", &trap);

	whole = read_path(directory);
	assert_read(&whole, "user " ID_A " /bin/a\nuser " ID_B " /bin/b\n" TABLE_TEXT);
	assert_int_equal(whole.summary.bytes, head.len + first.len + second.len);
	reading_release(&whole);

	/* a FIFO without a writer */
	snprintf(path, sizeof(path), "%s/data.7", directory);
	assert_int_equal(mkfifo(path, 0600), 0);
	whole = read_path(directory);
	assert_int_equal(whole.r, 0);
	assert_string_equal(whole.summary.damage, "a part of the directory that is no regular file");
	remove_files(directory, names);
}

static void test_other_file_is_no_recording(void **state)
{
	auto_recording recording = { .big = is_big(state) };
	auto_reading reading = { 0 }, missing = { 0 }, zeros = { 0 };

	put(&recording, "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0>\0\1\0\0\0", 24);
	reading = read_recording(&recording);
	assert_int_equal(reading.r, -EINVAL);
	missing = read_path("/nonexistent/perf.data");
	assert_int_equal(missing.r, -ENOENT);
	/* a magic, and a header of an unknown size */
	put(&recording, NULL, 200);
	memcpy(recording.data, "PERFILE2", 8);
	set64(&recording, 8, 24);
	zeros = read_recording(&recording);
	assert_int_equal(zeros.r, -EINVAL);
}

static int stop_at_once(void *user, const struct bid_perfdata_dso *dso)
{
	++*(int *)user;
	return -ECANCELED;
}

static void test_callback_ends_the_reading(void **state)
{
	auto_recording recording = { .big = is_big(state) };
	struct bid_perfdata_summary summary = { .dsos = 77 };
	bid_auto_fd int in = -1;
	int calls = 0, fds[2];

	put_pipe_header(&recording);
	put_mmap2(&recording, USER, ID_A, "/bin/a");
	put_mmap2(&recording, USER, ID_B, "/bin/b");
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	in = fds[0];
	assert_int_equal(write(fds[1], recording.data, recording.len), (ssize_t)recording.len);
	close(fds[1]);
	assert_int_equal(bid_perfdata_read_fd(in, 0, stop_at_once, &calls, &summary), -ECANCELED);
	assert_int_equal(calls, 1);
	assert_int_equal(summary.dsos, 77);
}

static void test_many_builds_are_read(void **state)
{
	auto_recording recording = { .big = is_big(state) };
	auto_reading reading = { 0 };
	size_t lines = 0;
	char name[32];

	put_pipe_header(&recording);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 5000; i++) {
			snprintf(name, sizeof(name), "/lib/%u", i * 7919 % 5000);
			put_mmap2(&recording, USER, i % 2 ? ID_A : ID_B, name);
		}
	}
	reading = read_recording(&recording);
	assert_int_equal(reading.r, 0);
	assert_int_equal(reading.summary.dsos, 5000);
	for (const char *line = reading.text; *line; line = strchr(line, '\n') + 1)
		lines++;
	assert_int_equal(lines, 5000);
}

int main(void)
{
	static bool little = false, big = true;
	const struct CMUnitTest tests[] = {
		IN_BOTH(test_id_table_is_read),
		IN_BOTH(test_recording_without_table_uses_events),
		IN_BOTH(test_mapping_ids_are_read),
		IN_BOTH(test_id_sizes_and_padding_are_read),
		IN_BOTH(test_old_headers_are_read),
		IN_BOTH(test_pipe_is_read),
		IN_BOTH(test_large_jumps_are_followed),
		IN_BOTH(test_compressed_records_are_read),
		IN_BOTH(test_straddling_records_are_read),
		IN_BOTH(test_interrupted_recording_is_read),
		IN_BOTH(test_directory_is_read),
		IN_BOTH(test_other_file_is_no_recording),
		IN_BOTH(test_callback_ends_the_reading),
		IN_BOTH(test_many_builds_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
