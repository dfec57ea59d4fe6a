// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/publish/filling.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

enum {
	PIECE = 64 << 10, /* bytes to write at a time */
	PUSH = 1 << 20, /* bytes to tell the kernel to bring to the disk at a time; what is smaller waits for the end */
};

int bid_filling_init(struct bid_filling *filling, int fd)
{
	*filling = (struct bid_filling){ .fd = fd, .digest = XXH3_createState() };
	if (!filling->digest)
		return -ENOMEM;
	XXH3_128bits_reset(filling->digest);
	return 0;
}

void bid_filling_release(struct bid_filling *filling)
{
	XXH3_freeState(filling->digest);
	free(filling->buffer);
	*filling = (struct bid_filling){ .fd = -1 };
}

void bid_filling_push(struct bid_filling *filling)
{
	/* a file system that does not know this loses nothing; what goes wrong on the way fsync tells */
	sync_file_range(filling->fd, (off_t)filling->pushed, (off_t)(filling->written - filling->pushed), SYNC_FILE_RANGE_WRITE);
	filling->pushed = filling->written;
}

static int put(struct bid_filling *filling, const void *data, size_t len)
{
	int r = bid_pwrite_full(filling->fd, data, len, (off_t)filling->written);

	if (r < 0)
		return r;
	XXH3_128bits_update(filling->digest, data, len);
	filling->written += len;
	if (filling->written - filling->pushed >= PUSH)
		bid_filling_push(filling);
	return 0;
}

int bid_filling_flush(struct bid_filling *filling)
{
	int r = filling->held > 0 ? put(filling, filling->buffer, filling->held) : 0;

	if (r == 0)
		filling->held = 0;
	return r;
}

int bid_filling_take(struct bid_filling *filling, const void *data, size_t len, size_t *ret_taken)
{
	int r = filling->held == PIECE ? bid_filling_flush(filling) : 0;

	if (r == 0 && filling->held == 0 && len >= PIECE) {
		len = PIECE;
		r = put(filling, data, len);
	} else if (r == 0) {
		if (!filling->buffer)
			filling->buffer = malloc(PIECE);
		if (!filling->buffer)
			return -ENOMEM;
		if (len > PIECE - filling->held)
			len = PIECE - filling->held;
		memcpy(filling->buffer + filling->held, data, len);
		filling->held += len;
	}
	if (r == 0)
		*ret_taken = len;
	return r;
}

int bid_filling_reset(struct bid_filling *filling)
{
	if (ftruncate(filling->fd, 0) < 0)
		return -errno;
	filling->held = 0;
	filling->written = filling->pushed = 0;
	XXH3_128bits_reset(filling->digest);
	return 0;
}

uint64_t bid_filling_size(const struct bid_filling *filling)
{
	return filling->written + filling->held;
}
