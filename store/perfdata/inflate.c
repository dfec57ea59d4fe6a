// SPDX-License-Identifier: LGPL-2.1-or-later
#include "perfdata/inflate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

/* Much larger than a record, to move few bytes; small enough for the second-level cache. */
#define ROOM (256u << 10)

/* Compressed recordings shrink 3 to 50 times; short and uniform ones may exceed that. */
#define GROWTH_MAX   1024u
#define GROWTH_START (256u << 20)

struct bid_inflate {
	bid_inflate_fn fn;
	void *user;
	ZSTD_DStream *zstd; /* owned */
	uint64_t in, out;
	size_t len; /* in the buffer */
	uint8_t buffer[ROOM];
};

int bid_inflate_new(bid_inflate_fn fn, void *user, struct bid_inflate **ret_inflate)
{
	struct bid_inflate *inflate = malloc(sizeof(*inflate));

	if (!inflate)
		return -ENOMEM;
	inflate->zstd = ZSTD_createDStream();
	if (!inflate->zstd) {
		free(inflate);
		return -ENOMEM;
	}
	inflate->fn = fn;
	inflate->user = user;
	inflate->in = inflate->out = 0;
	inflate->len = 0;
	*ret_inflate = inflate;
	return 0;
}

void bid_inflate_free(struct bid_inflate *inflate)
{
	if (!inflate)
		return;
	ZSTD_freeDStream(inflate->zstd);
	free(inflate);
}

static int error_of(size_t code)
{
	return ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation ? -ENOMEM : -EBADMSG;
}

/* Pass the buffer on, and keep the bytes not taken. */
static int hand_on(struct bid_inflate *inflate)
{
	ptrdiff_t taken = inflate->fn(inflate->user, inflate->buffer, inflate->len);

	if (taken < 0)
		return (int)taken;
	inflate->len -= (size_t)taken;
	memmove(inflate->buffer, inflate->buffer + taken, inflate->len);
	return 0;
}

int bid_inflate_feed(struct bid_inflate *inflate, const uint8_t *data, size_t len)
{
	ZSTD_inBuffer in = { .src = data, .size = len };
	ZSTD_outBuffer out;

	inflate->in += len;
	do {
		size_t code;
		int r;

		out = (ZSTD_outBuffer){ .dst = inflate->buffer, .size = ROOM, .pos = inflate->len };
		code = ZSTD_decompressStream(inflate->zstd, &out, &in);
		if (ZSTD_isError(code))
			return error_of(code);
		inflate->out += out.pos - inflate->len;
		if (inflate->out > GROWTH_START && inflate->out / GROWTH_MAX > inflate->in)
			return -EFBIG;
		inflate->len = out.pos;
		r = hand_on(inflate);
		if (r < 0)
			return r;
	} while (in.pos < in.size || out.pos == out.size);
	return 0;
}

size_t bid_inflate_left(const struct bid_inflate *inflate)
{
	return inflate ? inflate->len : 0;
}
