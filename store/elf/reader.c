// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reader.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/limits.h"

/* Steps: a few for each of as many headers, or for its notes. */
#define MAX_CALLS (4 * BID_LIMIT_SECTIONS)

void bid_elf_reader_init(struct bid_elf_reader *bytes, const void *head, size_t head_len, int fd)
{
	/* by field: the window is not worth clearing */
	bytes->head = head;
	bytes->head_len = head_len;
	bytes->fd = fd;
	bytes->calls = MAX_CALLS;
	bytes->budget = BID_LIMIT_HEADERS;
	bytes->window_offset = 0;
	bytes->window_len = 0;
}

void bid_elf_reader_allow_table(struct bid_elf_reader *bytes, uint64_t n, size_t size)
{
	bytes->calls += (unsigned)n;
	bytes->budget += n * size;
}

int bid_elf_reader_open(struct bid_elf_reader *bytes, uint8_t head[static BID_ELF_READER_HEAD], int fd)
{
	ssize_t n = bid_pread_least(fd, head, sizeof(Elf64_Ehdr), BID_ELF_READER_HEAD, 0);

	if (n < 0)
		return (int)n;
	bid_elf_reader_init(bytes, head, (size_t)n, fd);
	return 0;
}

static int move_window(struct bid_elf_reader *bytes, uint64_t offset, size_t len)
{
	uint64_t end = bytes->window_offset + bytes->window_len;
	size_t room = len > BID_ELF_READER_HEAD ? len : BID_ELF_READER_HEAD;
	ssize_t n;

	/* a table is read in order: fill the whole window */
	if (offset >= bytes->window_offset && offset <= end)
		room = sizeof(bytes->window);
	if (room > bytes->budget)
		return -E2BIG;
	bytes->budget -= room;
	bytes->window_len = 0;
	n = bid_pread_least(bytes->fd, bytes->window, len, room, (off_t)offset);
	if (n < 0)
		return (int)n;
	bytes->window_len = (size_t)n;
	bytes->window_offset = offset;
	return bytes->window_len < len ? -ENODATA : 0;
}

int bid_elf_reader_at(struct bid_elf_reader *bytes, uint64_t offset, size_t len, const uint8_t **ret_data)
{
	int r;

	if (bytes->calls == 0)
		return -E2BIG;
	bytes->calls--;

	/* no file is longer than off_t can say */
	if (offset > (uint64_t)INT64_MAX - BID_ELF_READER_WINDOW)
		return -ENODATA;
	if (offset + len <= bytes->head_len) {
		*ret_data = bytes->head + offset;
		return 0;
	}
	if (bytes->fd < 0)
		return -EAGAIN;

	if (offset < bytes->window_offset || offset + len > bytes->window_offset + bytes->window_len) {
		r = move_window(bytes, offset, len);
		if (r < 0)
			return r;
	}
	*ret_data = bytes->window + (offset - bytes->window_offset);
	return 0;
}

int bid_elf_reader_check(struct bid_elf_reader *bytes, uint64_t offset, uint64_t len)
{
	const uint8_t *data;
	uint64_t last;

	/* read a range that fits as a whole: the caller reads it next */
	if (len <= BID_ELF_READER_WINDOW)
		return bid_elf_reader_at(bytes, offset, (size_t)len, &data);
	if (__builtin_add_overflow(offset, len - 1, &last))
		return -ENODATA;
	return bid_elf_reader_at(bytes, last, 1, &data);
}

static bool is_zeros(const char *data, size_t len)
{
	return data[0] == 0 && memcmp(data, data + 1, len - 1) == 0;
}

int bid_elf_reader_table(int fd, uint64_t offset, uint64_t size, size_t max, char **ret_table)
{
	bid_auto_free char *table = NULL;
	size_t done = 0, room = 0;

	if (size > max)
		return -E2BIG;
	if (offset > (uint64_t)INT64_MAX - max)
		return -ENODATA;
	do {
		size_t piece = size - done < BID_LIMIT_ZEROS ? (size_t)size - done : BID_LIMIT_ZEROS;
		char *larger = table;
		ssize_t n;

		if (done + piece + 1 > room) {
			room = 2 * (done + piece) < size ? 2 * (done + piece) + 1 : (size_t)size + 1;
			larger = realloc(table, room);
		}
		if (!larger)
			return -ENOMEM;
		table = larger;
		n = bid_pread_full(fd, table + done, piece, (off_t)(offset + done));
		if (n < 0)
			return (int)n;
		if ((size_t)n < piece)
			return -ENODATA;
		if (piece == BID_LIMIT_ZEROS && is_zeros(table + done, piece))
			return -E2BIG;
		done += piece;
	} while (done < size);
	table[size] = '\0';
	*ret_table = bid_steal(table);
	return 0;
}
