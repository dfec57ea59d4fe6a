// SPDX-License-Identifier: LGPL-2.1-or-later
#include "perfdata/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int bid_input_init(struct bid_input *input, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*input = (struct bid_input){ .fd = fd, .seekable = S_ISREG(st.st_mode), .buffer = malloc(BID_INPUT_ROOM) };
	if (!input->buffer)
		return -ENOMEM;
	if (input->seekable)
		input->size = (uint64_t)st.st_size;
	return 0;
}

void bid_input_release(struct bid_input *input)
{
	free(input->buffer);
	*input = BID_INPUT_NONE;
}

static ssize_t read_some(struct bid_input *input)
{
	uint8_t *to = input->buffer + input->end;
	size_t room = BID_INPUT_ROOM - input->end;
	uint64_t at = input->offset + (input->end - input->begin);
	ssize_t n;

	do {
		n = input->seekable ? pread(input->fd, to, room, (off_t)at) : read(input->fd, to, room);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t bid_input_look(struct bid_input *input, size_t least, const uint8_t **ret_data)
{
	if (input->end - input->begin < least && !input->ended && input->begin > 0) {
		memmove(input->buffer, input->buffer + input->begin, input->end - input->begin);
		input->end -= input->begin;
		input->begin = 0;
	}
	while (input->end - input->begin < least && !input->ended) {
		ssize_t n = read_some(input);

		if (n < 0)
			return n;
		input->ended = n == 0;
		input->end += (size_t)n;
	}
	*ret_data = input->buffer + input->begin;
	return (ssize_t)(input->end - input->begin);
}

void bid_input_take(struct bid_input *input, size_t len)
{
	input->begin += len;
	input->offset += len;
}

int bid_input_go(struct bid_input *input, uint64_t offset)
{
	const uint8_t *data;

	if (offset >= input->offset && offset - input->offset <= input->end - input->begin) {
		bid_input_take(input, (size_t)(offset - input->offset));
		return 0;
	}
	if (input->seekable) {
		if (offset > input->size)
			return -ENODATA;
		input->begin = input->end = 0;
		input->offset = offset;
		input->ended = false;
		return 0;
	}
	if (offset < input->offset)
		return -ESPIPE;
	while (offset > input->offset) {
		ssize_t n = bid_input_look(input, 1, &data);

		if (n <= 0)
			return n < 0 ? (int)n : -ENODATA;
		bid_input_take(input, offset - input->offset < (size_t)n ? (size_t)(offset - input->offset) : (size_t)n);
	}
	return 0;
}
