// SPDX-License-Identifier: LGPL-2.1-or-later
#include <bid/elf.h>

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"

struct input {
	int fd;
	off_t offset;
	int error;	/* of pread(2), 0 or negative */
	uint8_t buffer[64 << 10];
};

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
		{ "\xfd" "7zXZ", 6, ARCHIVE_FILTER_XZ },	/* The .xz File Format, 2.1.1.1; the sixth byte is the NUL */
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

int bid_elf_unpack(int fd, uint64_t max, int (*write)(void *user, const void *data, size_t len), void *user)
{
	bid_cleanup(cleanup_archive) struct archive *archive = NULL;
	bid_auto_free struct input *input = NULL;
	uint64_t total = 0;
	char head[6];
	ssize_t n;
	int filter, r;

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

	for (;;) {
		const void *data;
		la_int64_t offset;
		size_t len;

		r = archive_read_data_block(archive, &data, &len, &offset);
		if (r == ARCHIVE_EOF)
			return 0;
		if (r != ARCHIVE_OK)
			return archive_error(archive, input);
		if (len > max - total)
			return -EFBIG;
		total += len;
		r = write(user, data, len);
		if (r < 0)
			return r;
	}
}
