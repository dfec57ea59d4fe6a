// SPDX-License-Identifier: LGPL-2.1-or-later
/* store/elf/unpack.c, on a module packed by gzip(1), xz(1) and zstd(1). */
#include "elf_fixture.h"

#include <endian.h>
#include <errno.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/limits.h"

struct test_unpack_output {
	char *data;
	size_t len;
	size_t fail_at; /* refuse what goes beyond */
	int error;
};

static int write_output(void *user, const void *data, size_t len)
{
	struct test_unpack_output *output = user;

	if (output->len + len > output->fail_at)
		return output->error;
	output->data = realloc(output->data, output->len + len + 1);
	assert_non_null(output->data);
	memcpy(output->data + output->len, data, len);
	output->len += len;
	return 0;
}

static int unpack(const char *data, size_t len, uint64_t max, struct test_unpack_output *output)
{
	bid_auto_fd int fd = elf_fixture_memory(data, len);
	int r;

	assert_int_equal(lseek(fd, 5, SEEK_SET), 5);
	r = bid_elf_unpack(fd, max, write_output, output);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 5);
	return r;
}

static bool is_packed(const char *data, size_t len)
{
	bid_auto_fd int fd = elf_fixture_memory(data, len);
	int r = bid_elf_is_packed(fd);

	assert_true(r >= 0);
	return r > 0;
}

static const char *const packed[] = { "module.ko.gz", "module.ko.xz", "module.ko.zst" };

/* The byte to try after @n of @len: each one of the headers and checksums at both ends, and some in between. */
static size_t next_byte(size_t n, size_t len)
{
	enum { ENDS = 96, STEP = 11 };

	return n < ENDS || n + ENDS >= len ? n + 1 : n + STEP;
}

static void test_each_compression_is_unpacked(void **state)
{
	bid_auto_free char *wanted = NULL;
	size_t wanted_len;

	elf_fixture_read("module.ko", &wanted, &wanted_len);
	for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++) {
		struct test_unpack_output output = { .fail_at = SIZE_MAX };
		bid_auto_free char *data = NULL;
		size_t len;

		elf_fixture_read(packed[i], &data, &len);
		assert_true(is_packed(data, len));
		assert_int_equal(unpack(data, len, wanted_len, &output), 0);
		assert_int_equal(output.len, wanted_len);
		assert_memory_equal(output.data, wanted, wanted_len);
		free(output.data);

		output = (struct test_unpack_output){ .fail_at = SIZE_MAX };
		assert_int_equal(unpack(data, len, wanted_len - 1, &output), -EFBIG);
		assert_true(output.len <= wanted_len - 1);
		free(output.data);

		output = (struct test_unpack_output){ .fail_at = 0, .error = -ENOSPC };
		assert_int_equal(unpack(data, len, UINT64_MAX, &output), -ENOSPC);
		assert_null(output.data);
	}
}

static void test_truncated_file_is_an_error(void **state)
{
	for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++) {
		bid_auto_free char *data = NULL;
		size_t len;

		elf_fixture_read(packed[i], &data, &len);
		for (size_t n = 0; n < len; n = next_byte(n, len)) {
			struct test_unpack_output output = { .fail_at = SIZE_MAX };

			if (unpack(data, n, UINT64_MAX, &output) != -EBADMSG)
				fail_msg("'%s' cut to %zu of %zu bytes was unpacked", packed[i], n, len);
			free(output.data);
		}
	}
}

/* A flipped bit may have no effect. It must not change the content unnoticed. */
static void test_damaged_file_is_an_error(void **state)
{
	bid_auto_free char *wanted = NULL;
	size_t wanted_len;

	elf_fixture_read("module.ko", &wanted, &wanted_len);
	for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++) {
		bid_auto_free char *data = NULL;
		size_t len, tried = 0, refused = 0;

		elf_fixture_read(packed[i], &data, &len);
		for (size_t n = 0; n < len; n = next_byte(n, len), tried++) {
			struct test_unpack_output output = { .fail_at = SIZE_MAX };
			int r;

			data[n] ^= 0x10;
			r = unpack(data, len, UINT64_MAX, &output);
			data[n] ^= 0x10;
			if (r == -EBADMSG)
				refused++;
			else if (r != 0 || output.len != wanted_len || memcmp(output.data, wanted, wanted_len) != 0)
				fail_msg("'%s' with byte %zu of %zu changed was unpacked: %d", packed[i], n, len, r);
			free(output.data);
		}
		assert_true(refused > tried * 8 / 10);
	}
}

static void test_compression_is_recognized(void **state)
{
	static const struct {
		const char *head;
		bool packed;
	} heads[] = {
		{ "\x1f\x8b\x08\0\0\0", true },	 { "\xfd\x37zXZ\0", true },  { "\x28\xb5\x2f\xfd\0\0", true },
		{ "\x7f\x45LF\2\1", false },	 { "BZh91A", false },	     { "\x5d\0\0\x80\0\xff", false },
		{ "\x1f\x9d\x90\0\0\0", false }, { "\xfd\x37zXY\0", false }, { "\0\0\0\0\0\0", false },
	};
	struct test_unpack_output output = { .fail_at = SIZE_MAX };

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		assert_int_equal(is_packed(heads[i].head, 6), heads[i].packed);
		if (!heads[i].packed)
			assert_int_equal(unpack(heads[i].head, 6, UINT64_MAX, &output), -EBADMSG);
	}
	assert_null(output.data);
}

/* A kernel image with the file "payload" in it, as arch/x86/boot/tools/build.c lays it out. */
static void make_image(bool sized, char **ret_data, size_t *ret_len)
{
	enum { SETUP_SECTORS = 3, CODE = 1000, TAIL = 5000 };
	size_t before = (SETUP_SECTORS + 1) * 512 + CODE, len;
	bid_auto_free char *payload = NULL;
	uint32_t offset = htole32(CODE), length;
	char *image;

	elf_fixture_read("payload", &payload, &len);
	length = htole32((uint32_t)(len + (sized ? 4 : 0)));
	image = calloc(1, before + len + 4 + TAIL);
	assert_non_null(image);
	memcpy(image, "MZ", 2);
	image[0x1f1] = SETUP_SECTORS;
	memcpy(image + 0x202, "HdrS\x0f\x02", 6);
	memcpy(image + 0x248, &offset, 4);
	memcpy(image + 0x24c, &length, 4);
	memcpy(image + before, payload, len);
	if (sized)
		memcpy(image + before + len, "\xab\xcd\xef\x01", 4);
	*ret_data = image;
	*ret_len = before + len + 4 + TAIL;
}

static void test_kernel_image_is_unpacked(void **state)
{
	static const struct {
		const char *command;
		bool sized;
	} packings[] = {
		{ "gzip -nc program >payload", false },
		{ "xz --check=crc32 --x86 --lzma2=dict=1MiB -c program >payload", true },
		{ "zstd -qc -22 --ultra program >payload", true },
		{ "lz4 -lqc program >payload", true },
		{ "bzip2 -c program >payload", true },
		{ "xz --format=lzma -c program >payload", true },
	};
	bid_auto_free char *wanted = NULL;
	size_t wanted_len;

	elf_fixture_read("program", &wanted, &wanted_len);
	for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++) {
		struct test_unpack_output output = { .fail_at = SIZE_MAX };
		bid_auto_free char *data = NULL;
		size_t len;

		RUN("sh", "-euc", packings[i].command);
		make_image(packings[i].sized, &data, &len);
		assert_true(is_packed(data, len));
		if (unpack(data, len, UINT64_MAX, &output) != 0 || output.len != wanted_len ||
		    memcmp(output.data, wanted, wanted_len) != 0)
			fail_msg("not the same: '%s'", packings[i].command);
		free(output.data);
		for (size_t n = 0; n < len; n += 499) {
			output = (struct test_unpack_output){ .fail_at = SIZE_MAX };
			if (unpack(data, n, UINT64_MAX, &output) != -EBADMSG && n < len - 5000)
				fail_msg("cut to %zu of %zu bytes it was unpacked: '%s'", n, len, packings[i].command);
			free(output.data);
		}
		/* before 2.08 nothing tells where the payload is; and one that ends outside the file is cut short */
		data[0x206] = 7;
		assert_false(is_packed(data, len));
		data[0x206] = 15;
		data[0x24b] = 0x7f;
		output = (struct test_unpack_output){ .fail_at = SIZE_MAX };
		assert_true(is_packed(data, len));
		assert_int_equal(unpack(data, len, UINT64_MAX, &output), -EBADMSG);
		free(output.data);
	}
}

static int count_bytes(void *user, const void *data, size_t len)
{
	*(uint64_t *)user += len;
	return 0;
}

/* A few KiB of packed zeros: the output is limited per byte of input. */
static void test_bomb_ends_at_what_its_size_explains(void **state)
{
	static const char *const packers[] = { "gzip -9", "xz -1 --check=crc32", "zstd -q --long" };

	for (size_t i = 0; i < sizeof(packers) / sizeof(packers[0]); i++) {
		bid_auto_fd int fd = -1;
		char command[96];
		uint64_t n = 0;

		snprintf(command, sizeof(command), "head -c 100M /dev/zero | %s > bomb", packers[i]);
		RUN("sh", "-c", command);
		/* the rest was not read */
		RUN("truncate", "-s", "1T", "bomb");
		fd = elf_fixture_open("bomb");
		assert_int_equal(bid_elf_unpack(fd, BID_ELF_UNPACKED_MAX, count_bytes, &n), -EFBIG);
		assert_true(n >= BID_LIMIT_UNPACKED && n < 2 * BID_LIMIT_UNPACKED);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_compression_is_unpacked), cmocka_unit_test(test_truncated_file_is_an_error),
		cmocka_unit_test(test_damaged_file_is_an_error),     cmocka_unit_test(test_compression_is_recognized),
		cmocka_unit_test(test_kernel_image_is_unpacked),     cmocka_unit_test(test_bomb_ends_at_what_its_size_explains),
	};

	return cmocka_run_group_tests(tests, elf_fixture_enter, elf_fixture_leave);
}
