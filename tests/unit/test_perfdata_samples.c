// SPDX-License-Identifier: LGPL-2.1-or-later
/* The build with the most samples comes first, in both byte orders. */
#include "perfdata_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"

/* linux/perf_event.h, enum perf_event_sample_format */
enum { IP = 1 << 0, TID = 1 << 1, TIME = 1 << 2, IDENTIFIER = 1 << 16 };

enum { ATTR_SIZE = 128, ATTR_AND_IDS = ATTR_SIZE + 16 };

static void put_attr(struct recording *recording, uint64_t type)
{
	put(recording, NULL, 24);
	put_number(recording, type, 8);
	put(recording, NULL, ATTR_SIZE - 32);
}

/* As a stream, where attributes are records. */
static void put_stream(struct recording *recording, const uint64_t *types, size_t n)
{
	put_pipe_header(recording);
	for (size_t i = 0; i < n; i++) {
		begin(recording, ATTR, 0);
		put_attr(recording, types[i]);
		end(recording);
	}
}

/* Its contents, in either form: in a file, the attributes are in front of the data or, as from perf inject, behind. */
static void put_file(struct recording *recording, const uint64_t *types, size_t n, const struct recording *data, bool behind)
{
	size_t attrs = n * ATTR_AND_IDS, at = behind ? HEADER + data->len : HEADER;

	put_header(recording, HEADER);
	recording->len = HEADER;
	set64(recording, 16, ATTR_AND_IDS);
	set64(recording, 24, at);
	set64(recording, 32, attrs);
	set64(recording, 40, behind ? HEADER : HEADER + attrs);
	set64(recording, 48, data->len);
	if (behind)
		put(recording, data->data, data->len);
	for (size_t i = 0; i < n; i++) {
		put_attr(recording, types[i]);
		put(recording, NULL, 16);
	}
	if (!behind)
		put(recording, data->data, data->len);
}

/* @n samples at @ip. */
static void sample(struct recording *recording, uint64_t type, uint16_t misc, uint32_t pid, uint64_t ip, size_t n)
{
	while (n-- > 0) {
		begin(recording, SAMPLE, misc);
		if (type & IDENTIFIER)
			put_number(recording, 0x4000000, 8);
		put_number(recording, ip, 8);
		put_number(recording, pid, 4);
		put_number(recording, pid + 1, 4);
		put_number(recording, 0x123456789, 8);
		end(recording);
	}
}

static void forks(struct recording *recording, uint32_t pid, uint32_t parent)
{
	begin(recording, FORK, 0);
	put_number(recording, pid, 4);
	put_number(recording, parent, 4);
	put_number(recording, pid, 4);
	put_number(recording, parent, 4);
	put_number(recording, 0x123456789, 8);
	end(recording);
}

/* Numbers of samples, in order, in both forms. */
static void assert_counts(const struct recording *data, uint64_t type, uint64_t samples, uint64_t placed, const char *text)
{
	auto_recording stream = { .big = data->big }, file = { .big = data->big }, behind = { .big = data->big };
	auto_recording packed = { .big = data->big };
	const uint64_t types[] = { type, type };
	const struct recording *all[] = { &stream, &file, &packed, &behind };

	put_stream(&stream, types, 2);
	put(&stream, data->data, data->len);
	put_file(&file, types, 2, data, false);
	put_file(&behind, types, 2, data, true);
	put_stream(&packed, types, 2);
	put_compressed(&packed, COMPRESSED, data, 3);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		for (int piped = 0; piped < 2; piped++) {
			auto_reading reading = piped ? read_through_pipe_with(all[i], BID_PERFDATA_SAMPLES)
						     : read_with(all[i], BID_PERFDATA_SAMPLES);

			if (piped && all[i] == &behind) {
				assert_int_equal(reading.summary.samples, 0);
				continue;
			}
			assert_read(&reading, text);
			assert_int_equal(reading.summary.samples, samples);
			assert_int_equal(reading.summary.placed, placed);
		}
	}
}

static void test_most_sampled_build_comes_first(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		const uint64_t type = IP | TID | TIME | (i ? IDENTIFIER : 0);
		auto_recording data = { .big = is_big(state) };

		/* in front of their mappings */
		sample(&data, type, USER, 7, 0x7f0000001234, 3);
		put_mmap2_at(&data, USER, ID_A, "/lib/a", &(struct place){ 7, 0x400000, 0x2000 });
		put_mmap2_at(&data, USER, ID_B, "/lib/b", &(struct place){ 7, 0x7f0000000000, 0x2000 });
		/* where another process has it, and behind its end */
		put_mmap2_at(&data, USER, ID_C, "/lib/c", &(struct place){ 8, 0x7f0000000000, 0x4000 });
		sample(&data, type, USER, 7, 0x401fff, 1);
		sample(&data, type, USER, 7, 0x402000, 5);
		sample(&data, type, USER, 8, 0x7f0000003fff, 2);
		sample(&data, type, USER, 9, 0x7f0000001000, 7);
		assert_counts(&data, type, 18, 6,
			      "3 user " ID_B " /lib/b\n"
			      "2 user " ID_C " /lib/c\n"
			      "1 user " ID_A " /lib/a\n");
	}
}

static void test_kernel_samples_are_counted(void **state)
{
	const uint64_t kernel = 0xffffffff81000000, module = 0xffffffffc0000000;
	auto_recording data = { .big = is_big(state) };

	/* perf lets the kernel reach to the end */
	put_mmap2_at(&data, KERNEL, NULL, "[kernel.kallsyms]_text", &(struct place){ UINT32_MAX, kernel, UINT64_MAX - kernel });
	put_mmap2_at(&data, KERNEL, NULL, "/lib/modules/1/ext4.ko", &(struct place){ UINT32_MAX, module, 0x3000 });
	put_mmap2_at(&data, GUEST_KERNEL, NULL, "[guest.kernel.kallsyms]", &(struct place){ 0, kernel, 0x3000 });
	put_build_id(&data, BUILD_ID, KERNEL | SIZED, ID_A, "[kernel.kallsyms]");
	put_build_id(&data, BUILD_ID, KERNEL | SIZED, ID_B, "/lib/modules/1/ext4.ko");
	put_build_id(&data, BUILD_ID, USER | SIZED, ID_C, "/never");
	sample(&data, IP, KERNEL, 7, kernel + 5, 1);
	sample(&data, IP, KERNEL, 8, module + 0x2fff, 4);
	sample(&data, IP, KERNEL, 9, module + 0x3000, 1);
	sample(&data, IP, GUEST_KERNEL, 9, kernel, 1);
	sample(&data, IP, USER, 9, kernel, 9);
	assert_counts(&data, IP | TID, 16, 7,
		      "4 kernel " ID_B " /lib/modules/1/ext4.ko\n"
		      "2 kernel " ID_A " [kernel.kallsyms]\n"
		      "1 guest - [guest.kernel.kallsyms]\n"
		      "user " ID_C " /never\n");
}

/* A child has its parent's mappings below its own; no process is its own ancestor. */
static void test_child_inherits_mappings(void **state)
{
	auto_recording data = { .big = is_big(state) };

	put_mmap2_at(&data, USER, ID_A, "/bin/a", &(struct place){ 1, 0x400000, 0x9000 });
	put_mmap2_at(&data, USER, ID_B, "/bin/b", &(struct place){ 2, 0x404000, 0x1000 });
	forks(&data, 2, 9);
	forks(&data, 2, 1);
	forks(&data, 3, 2);
	forks(&data, 3, 3);
	forks(&data, 5, 6);
	forks(&data, 6, 5);
	sample(&data, IP, USER, 2, 0x404fff, 1);
	sample(&data, IP, USER, 2, 0x405000, 1);
	sample(&data, IP, USER, 3, 0x403fff, 1);
	sample(&data, IP, USER, 3, 0x404000, 1);
	sample(&data, IP, USER, 3, 0x408fff, 1);
	sample(&data, IP, USER, 5, 0x400000, 1);
	assert_counts(&data, IP | TID, 6, 5, "3 user " ID_A " /bin/a\n2 user " ID_B " /bin/b\n");
}

/* The last one counts: larger, smaller, memory, or no file of the recording. */
static void test_latest_mapping_counts(void **state)
{
	auto_recording data = { .big = is_big(state) };

	put_mmap2_at(&data, USER, ID_A, "/bin/a", &(struct place){ 1, 0x1000, 0x1000 });
	put_mmap2_at(&data, USER, ID_B, "/bin/b", &(struct place){ 1, 0x1000, 0x9000 });
	put_mmap2_at(&data, USER, ID_A, "/bin/a", &(struct place){ 1, 0x3000, 0x1000 });
	put_mmap2_at(&data, USER, ID_C, "/bin/c", &(struct place){ 1, 0x3000, 0 });
	put_mmap2_at(&data, USER, NULL, "//anon", &(struct place){ 1, 0x6000, 0x1000 });
	put_mmap2_at(&data, USER | DATA, ID_8, "/data", &(struct place){ 1, 0x1000, 0x9000 });
	for (uint64_t page = 1; page < 11; page++)
		sample(&data, IP, USER, 1, page << 12, 1);
	assert_counts(&data, IP | TID, 10, 8,
		      "7 user " ID_B " /bin/b\n"
		      "1 user " ID_A " /bin/a\n"
		      "user " ID_C " /bin/c\n"
		      "user " ID_8 " /data\n");
}

/* Mapped by name alone, as perf records by default: the table tells the id, or several. */
static void test_equal_counts_are_sorted_by_name(void **state)
{
	auto_recording data = { .big = is_big(state) };

	put_mmap2_at(&data, USER, NULL, "/lib/one", &(struct place){ 1, 0x1000, 0x1000 });
	put_mmap2_at(&data, USER, NULL, "/lib/two", &(struct place){ 1, 0x2000, 0x1000 });
	put_mmap2_at(&data, USER, ID_8, "/lib/short", &(struct place){ 1, 0x3000, 0x1000 });
	put_mmap2_at(&data, USER, NULL, "/lib/none", &(struct place){ 1, 0x4000, 0x1000 });
	put_build_id(&data, BUILD_ID, USER | SIZED, ID_A, "/lib/one");
	put_build_id(&data, BUILD_ID, USER | SIZED, ID_B, "/lib/two");
	put_build_id(&data, BUILD_ID, USER | SIZED, ID_C, "/lib/two");
	put_build_id(&data, BUILD_ID, USER, ID_8, "/lib/short");
	for (uint64_t page = 1; page < 5; page++)
		sample(&data, IP, USER, 1, page << 12, page);
	assert_counts(&data, IP | TID, 10, 10,
		      "4 user - /lib/none\n"
		      "3 user " ID_8 " /lib/short\n"
		      "2 user " ID_B " /lib/two\n"
		      "2 user " ID_C " /lib/two\n"
		      "1 user " ID_A " /lib/one\n");
}

/* Samples of unknown layout, or too short: then the paths give the order. */
static void test_unreadable_samples_sort_by_path(void **state)
{
	static const uint64_t types[][2] = { { IP | TID, IP | TID | IDENTIFIER }, { IP | TIME, IP | TIME }, { IP | TID, TID } };
	auto_recording data = { .big = is_big(state) };

	put_mmap2_at(&data, USER, ID_A, "/lib/a", &(struct place){ 1, 0x1000, 0x1000 });
	put_mmap2_at(&data, USER, ID_B, "/lib/b", &(struct place){ 1, 0x2000, 0x1000 });
	sample(&data, IP, USER, 1, 0x2000, 9);
	for (size_t i = 0; i < 3; i++) {
		auto_recording recording = { .big = is_big(state) };
		auto_reading reading = { 0 };

		put_stream(&recording, types[i], 2);
		put(&recording, data.data, data.len);
		reading = read_with(&recording, BID_PERFDATA_SAMPLES);
		assert_read(&reading, "user " ID_A " /lib/a\nuser " ID_B " /lib/b\n");
		assert_int_equal(reading.summary.samples, 0);
	}
	begin(&data, SAMPLE, USER);
	put_number(&data, 0x2000, 8);
	end(&data);
	assert_counts(&data, IP | TID, 9, 9, "9 user " ID_B " /lib/b\nuser " ID_A " /lib/a\n");
}

static void test_samples_are_not_counted_unasked(void **state)
{
	auto_recording recording = { .big = is_big(state) };
	const uint64_t type = IP | TID;
	auto_reading reading = { 0 };

	put_stream(&recording, &type, 1);
	put_mmap2_at(&recording, USER, ID_A, "/lib/a", &(struct place){ 1, 0x1000, 0x1000 });
	put_mmap2_at(&recording, USER, ID_B, "/lib/b", &(struct place){ 1, 0x2000, 0x1000 });
	sample(&recording, IP, USER, 1, 0x2000, 9);
	reading = read_recording(&recording);
	assert_read(&reading, "user " ID_A " /lib/a\nuser " ID_B " /lib/b\n");
	assert_int_equal(reading.summary.samples, 0);
	assert_int_equal(reading.summary.records, 12);
}

/* After as many pages as the limit, no further sample counts. */
static void test_samples_above_the_limit_of_pages_are_dropped(void **state)
{
	auto_recording recording = { .big = is_big(state) };
	const uint64_t type = IP | TID, pages = (1u << 20) + 5;
	auto_reading reading = { 0 };
	char text[128];

	put_stream(&recording, &type, 1);
	put_mmap2_at(&recording, USER, ID_A, "/lib/a", &(struct place){ 1, 0, (pages + 1) << 12 });
	for (uint64_t page = 0; page < pages; page++)
		sample(&recording, IP, USER, 1, page << 12, 1);
	sample(&recording, IP, USER, 1, 0, 10);
	reading = read_with(&recording, BID_PERFDATA_SAMPLES);
	snprintf(text, sizeof(text), "%llu user " ID_A " /lib/a\n", (unsigned long long)pages - 5);
	assert_read(&reading, text);
	assert_int_equal(reading.summary.samples, pages + 10);
}

int main(void)
{
	static bool little = false, big = true;
	const struct CMUnitTest tests[] = {
		IN_BOTH(test_most_sampled_build_comes_first),  IN_BOTH(test_kernel_samples_are_counted),
		IN_BOTH(test_child_inherits_mappings),	       IN_BOTH(test_latest_mapping_counts),
		IN_BOTH(test_equal_counts_are_sorted_by_name), IN_BOTH(test_unreadable_samples_sort_by_path),
		IN_BOTH(test_samples_are_not_counted_unasked), IN_BOTH(test_samples_above_the_limit_of_pages_are_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
