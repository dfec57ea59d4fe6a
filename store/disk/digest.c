// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/io.h"

bool bid_digest_valid(const char *text)
{
	size_t prefix = strlen(BID_DIGEST_PREFIX);

	return text && strncmp(text, BID_DIGEST_PREFIX, prefix) == 0 && strlen(text) == prefix + 32 &&
	       strspn(text + prefix, "0123456789abcdef") == 32;
}

void bid_digest_format(XXH128_hash_t hash, char ret_text[static BID_DIGEST_MAX])
{
	snprintf(ret_text, BID_DIGEST_MAX, BID_DIGEST_PREFIX "%016llx%016llx", (unsigned long long)hash.high64,
		 (unsigned long long)hash.low64);
}

int bid_digest_rest(int fd, char *buffer, size_t len, int (*tick)(void *user, uint64_t bytes), void *user,
		    char ret_text[static BID_DIGEST_MAX])
{
	XXH3_state_t *state = NULL;
	off_t at = 0;
	ssize_t n = (ssize_t)len;
	int r = 0;

	/* most files are small */
	if (len < BID_DIGEST_BUFFER) {
		bid_digest_format(XXH3_128bits(buffer, len), ret_text);
		return tick && len > 0 ? tick(user, len) : 0;
	}
	state = XXH3_createState();
	if (!state)
		return -ENOMEM;
	XXH3_128bits_reset(state);
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	/* a short read is the last one */
	while (r == 0 && n > 0) {
		XXH3_128bits_update(state, buffer, (size_t)n);
		at += n;
		if (tick)
			r = tick(user, (uint64_t)n);
		n = r == 0 && n == BID_DIGEST_BUFFER ? bid_pread_full(fd, buffer, BID_DIGEST_BUFFER, at) : 0;
	}
	if (r == 0 && n < 0)
		r = (int)n;
	if (r == 0)
		bid_digest_format(XXH3_128bits_digest(state), ret_text);
	XXH3_freeState(state);
	return r;
}

int bid_digest_file(int fd, char ret_text[static BID_DIGEST_MAX])
{
	bid_auto_free char *buffer = malloc(BID_DIGEST_BUFFER);
	ssize_t n = buffer ? bid_pread_full(fd, buffer, BID_DIGEST_BUFFER, 0) : -ENOMEM;

	return n < 0 ? (int)n : bid_digest_rest(fd, buffer, (size_t)n, NULL, NULL, ret_text);
}
