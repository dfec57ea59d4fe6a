// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/io.h"

enum { PIECE = 1 << 20 };

bool bid_digest_valid(const char *text)
{
	size_t prefix = strlen(BID_DIGEST_PREFIX);

	return text && strncmp(text, BID_DIGEST_PREFIX, prefix) == 0 && strlen(text) == prefix + 32 &&
	       strspn(text + prefix, "0123456789abcdef") == 32;
}

int bid_digest_file(int fd, int (*tick)(void *user, uint64_t bytes), void *user, char ret_text[static BID_DIGEST_MAX])
{
	bid_auto_free char *piece = malloc(PIECE);
	XXH3_state_t *state = XXH3_createState();
	XXH128_hash_t hash;
	off_t at = 0;
	ssize_t n = PIECE;
	int r = piece && state ? 0 : -ENOMEM;

	if (r == 0)
		XXH3_128bits_reset(state);
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	/* a piece that is not full is the last */
	while (r == 0 && n == PIECE && (n = bid_pread_full(fd, piece, PIECE, at)) > 0) {
		XXH3_128bits_update(state, piece, (size_t)n);
		at += n;
		if (tick)
			r = tick(user, (uint64_t)n);
	}
	if (r == 0 && n < 0)
		r = (int)n;
	if (r == 0) {
		hash = XXH3_128bits_digest(state);
		snprintf(ret_text, BID_DIGEST_MAX, BID_DIGEST_PREFIX "%016llx%016llx", (unsigned long long)hash.high64,
			 (unsigned long long)hash.low64);
	}
	XXH3_freeState(state);
	return r;
}
