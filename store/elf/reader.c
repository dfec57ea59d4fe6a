// SPDX-License-Identifier: LGPL-2.1-or-later
#include "reader.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/limits.h"

/* Steps: a few for each of as many headers, or for its notes. */
#define MAX_CALLS (4 * BID_LIMIT_SECTIONS)

void bid_elf_reader_init(struct bid_elf_reader *reader, const void *head, size_t head_len, int fd)
{
	/* by field: the window is not worth clearing */
	reader->head = head;
	reader->head_len = head_len;
	reader->fd = fd;
	reader->calls = MAX_CALLS;
	reader->budget = BID_LIMIT_HEADERS;
	reader->window_offset = 0;
	reader->window_len = 0;
}

void bid_elf_reader_allow_table(struct bid_elf_reader *reader, uint64_t n, size_t size)
{
	reader->calls += (unsigned)n;
	reader->budget += n * size;
}

int bid_elf_reader_open(struct bid_elf_reader *reader, uint8_t head[static BID_ELF_READER_HEAD], int fd)
{
	ssize_t n = bid_pread_least(fd, head, sizeof(Elf64_Ehdr), BID_ELF_READER_HEAD, 0);

	if (n < 0)
		return (int)n;
	bid_elf_reader_init(reader, head, (size_t)n, fd);
	return 0;
}

static int move_window(struct bid_elf_reader *reader, uint64_t offset, size_t len)
{
	uint64_t end = reader->window_offset + reader->window_len;
	size_t room = len > BID_ELF_READER_HEAD ? len : BID_ELF_READER_HEAD;
	ssize_t n;

	/* a table is read in order: fill the whole window */
	if (offset >= reader->window_offset && offset <= end)
		room = sizeof(reader->window);
	if (room > reader->budget)
		return -E2BIG;
	reader->budget -= room;
	reader->window_len = 0;
	n = bid_pread_least(reader->fd, reader->window, len, room, (off_t)offset);
	if (n < 0)
		return (int)n;
	reader->window_len = (size_t)n;
	reader->window_offset = offset;
	return reader->window_len < len ? -ENODATA : 0;
}

int bid_elf_reader_at(struct bid_elf_reader *reader, uint64_t offset, size_t len, const uint8_t **ret_data)
{
	int r;

	if (reader->calls == 0)
		return -E2BIG;
	reader->calls--;

	/* no file is longer than off_t can say */
	if (offset > (uint64_t)INT64_MAX - BID_ELF_READER_WINDOW)
		return -ENODATA;
	if (offset + len <= reader->head_len) {
		*ret_data = reader->head + offset;
		return 0;
	}
	if (reader->fd < 0)
		return -EAGAIN;

	if (offset < reader->window_offset || offset + len > reader->window_offset + reader->window_len) {
		r = move_window(reader, offset, len);
		if (r < 0)
			return r;
	}
	*ret_data = reader->window + (offset - reader->window_offset);
	return 0;
}

int bid_elf_reader_check(struct bid_elf_reader *reader, uint64_t offset, uint64_t len)
{
	const uint8_t *data;
	uint64_t last;

	/* read a range that fits as a whole: the caller reads it next */
	if (len <= BID_ELF_READER_WINDOW)
		return bid_elf_reader_at(reader, offset, (size_t)len, &data);
	if (__builtin_add_overflow(offset, len - 1, &last))
		return -ENODATA;
	return bid_elf_reader_at(reader, last, 1, &data);
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
