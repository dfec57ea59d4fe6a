/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file or a pipe, read forwards once, in large reads. In a file, jumps cost nothing. */
#ifndef BID_PERFDATA_INPUT_H
#define BID_PERFDATA_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifndef BID_INPUT_ROOM
/* Small enough for a second-level cache, so that copied bytes are still there when they are read; at least two records. */
#define BID_INPUT_ROOM (512u << 10)
#endif

struct bid_input {
	int fd; /* borrowed */
	bool seekable;
	bool ended; /* nothing is behind the buffer */
	uint64_t offset; /* offset in the file of the first byte not taken */
	uint64_t size; /* initial size of a seekable input; it may shrink */
	size_t begin, end; /* bytes in the buffer not yet taken */
	uint8_t *buffer; /* owned; BID_INPUT_ROOM bytes */
};

#define BID_INPUT_NONE ((struct bid_input){ .fd = -1 })

/* Read from @fd: a regular file by offset from 0 on, anything else from its current offset. Returns 0, -ENOMEM, or as fstat(2). */
int bid_input_init(struct bid_input *input, int fd);

void bid_input_release(struct bid_input *input);

/*
 * Have at least @least bytes (BID_INPUT_ROOM / 2 at most) in front of us, fewer only if the file ends there. Returns how many
 * there are and where, which stays valid until the next call.
 */
ssize_t bid_input_look(struct bid_input *input, size_t least, const uint8_t **ret_data);

/* Take @len bytes after bid_input_look(). */
void bid_input_take(struct bid_input *input, size_t len);

/* Go to @offset in the file. Returns 0, -ENODATA behind the end, -ESPIPE for an earlier offset of a pipe, or as read(2). */
int bid_input_go(struct bid_input *input, uint64_t offset);

#endif
