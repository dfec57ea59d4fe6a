// SPDX-License-Identifier: LGPL-2.1-or-later
#include <bid/elf.h>

#include <archive.h>
#include <archive_entry.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"

struct input {
	int fd;
	off_t offset;
	int error;	/* of pread(2), 0 or negative */
	uint8_t buffer[64 << 10];
};

/* libarchive skips the check sum of gzip files (RFC 1952, 2.3.1 and 8), though it verifies those of the others. */
struct checksum {
	uint32_t table[256];
	uint32_t crc;
};

static void checksum_init(struct checksum *checksum)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t value = i;

		for (int bit = 0; bit < 8; bit++)
			value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
		checksum->table[i] = value;
	}
	checksum->crc = ~0u;
}

static void checksum_add(struct checksum *checksum, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		checksum->crc = checksum->table[(checksum->crc ^ data[i]) & 0xff] ^ checksum->crc >> 8;
}

/* Does the file end as a gzip file of one member with these contents does? 0, -EBADMSG or as pread(2). */
static int checksum_verify(const struct checksum *checksum, uint64_t total, int fd)
{
	uint32_t trailer[2];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < (off_t)sizeof(trailer))
		return -EBADMSG;
	n = bid_pread_full(fd, trailer, sizeof(trailer), st.st_size - (off_t)sizeof(trailer));
	if (n < 0)
		return (int)n;
	if (n != sizeof(trailer) || le32toh(trailer[0]) != ~checksum->crc || le32toh(trailer[1]) != (uint32_t)total)
		return -EBADMSG;
	return 0;
}

static void cleanup_archive(struct archive **archive)
{
	if (*archive)
		archive_read_free(*archive);
}

/* libarchive's code of the one filter that undoes the packing, or -1 */
static int filter_of(const void *head, size_t len)
{
	static const struct {
		const char *magic;
		size_t len;
		int filter;
	} packings[] = {
		{ "\x1f\x8b", 2, ARCHIVE_FILTER_GZIP },		/* RFC 1952, 2.3.1 */
		{ "\xfd\x37zXZ", 6, ARCHIVE_FILTER_XZ },	/* The .xz File Format, 2.1.1.1; the sixth byte is the NUL */
		{ "\x28\xb5\x2f\xfd", 4, ARCHIVE_FILTER_ZSTD },	/* RFC 8878, 3.1.1 */
	};

	for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++)
		if (len >= packings[i].len && memcmp(head, packings[i].magic, packings[i].len) == 0)
			return packings[i].filter;
	return -1;
}

bool bid_elf_is_packed(const void *head, size_t len)
{
	return filter_of(head, len) >= 0;
}

static la_ssize_t read_input(struct archive *archive, void *user, const void **ret_buffer)
{
	struct input *input = user;
	ssize_t n = bid_pread_full(input->fd, input->buffer, sizeof(input->buffer), input->offset);

	if (n < 0) {
		input->error = (int)n;
		archive_set_error(archive, (int)-n, "cannot read");
		return -1;
	}
	input->offset += n;
	*ret_buffer = input->buffer;
	return n;
}

static int archive_error(struct archive *archive, const struct input *input)
{
	if (input->error < 0)
		return input->error;
	return archive_errno(archive) == ENOMEM ? -ENOMEM : -EBADMSG;
}

static int begin(struct archive *archive, int filter, struct input *input)
{
	struct archive_entry *entry;

	/* exactly this filter, once: what is packed several times over is no module */
	if (archive_read_append_filter(archive, filter) != ARCHIVE_OK || archive_read_support_format_raw(archive) != ARCHIVE_OK)
		return archive_error(archive, input);
	if (archive_read_open(archive, input, NULL, read_input, NULL) != ARCHIVE_OK)
		return archive_error(archive, input);
	if (archive_read_next_header(archive, &entry) != ARCHIVE_OK)
		return archive_error(archive, input);
	return 0;
}

static int copy(struct archive *archive, struct input *input, struct checksum *checksum, uint64_t max,
		int (*write)(void *user, const void *data, size_t len), void *user)
{
	uint64_t total = 0;

	for (;;) {
		const void *data;
		la_int64_t offset;
		size_t len;
		int r;

		r = archive_read_data_block(archive, &data, &len, &offset);
		if (r == ARCHIVE_EOF)
			return checksum ? checksum_verify(checksum, total, input->fd) : 0;
		if (r != ARCHIVE_OK)
			return archive_error(archive, input);
		if (len > max - total)
			return -EFBIG;
		total += len;
		if (checksum)
			checksum_add(checksum, data, len);
		r = write(user, data, len);
		if (r < 0)
			return r;
	}
}

int bid_elf_unpack(int fd, uint64_t max, int (*write)(void *user, const void *data, size_t len), void *user)
{
	bid_cleanup(cleanup_archive) struct archive *archive = NULL;
	bid_auto_free struct input *input = NULL;
	struct checksum checksum;
	char head[6];
	int filter, r;
	ssize_t n;

	n = bid_pread_full(fd, head, sizeof(head), 0);
	if (n < 0)
		return (int)n;
	filter = filter_of(head, (size_t)n);
	if (filter < 0)
		return -EBADMSG;

	input = calloc(1, sizeof(*input));
	archive = archive_read_new();
	if (!input || !archive)
		return -ENOMEM;
	input->fd = fd;
	r = begin(archive, filter, input);
	if (r < 0)
		return r;
	if (filter == ARCHIVE_FILTER_GZIP)
		checksum_init(&checksum);
	return copy(archive, input, filter == ARCHIVE_FILTER_GZIP ? &checksum : NULL, max, write, user);
}
