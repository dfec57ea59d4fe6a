/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SipHash-1-3 (Aumasson, Bernstein: "SipHash: a fast short-input PRF"), with words as input: the author of a recording must not
 * choose collisions in a table.
 */
#ifndef BID_PERFDATA_SIP_H
#define BID_PERFDATA_SIP_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bid_sip {
	uint64_t v[4];
};

static inline struct bid_sip bid_sip_begin(const uint64_t key[static 2])
{
	return (struct bid_sip){ {
		key[0] ^ 0x736f6d6570736575,
		key[1] ^ 0x646f72616e646f6d,
		key[0] ^ 0x6c7967656e657261,
		key[1] ^ 0x7465646279746573,
	} };
}

static inline uint64_t bid_sip_rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void bid_sip_round(struct bid_sip *sip)
{
	uint64_t *v = sip->v;

	v[0] += v[1];
	v[2] += v[3];
	v[1] = bid_sip_rotate(v[1], 13) ^ v[0];
	v[3] = bid_sip_rotate(v[3], 16) ^ v[2];
	v[0] = bid_sip_rotate(v[0], 32) + v[3];
	v[2] += v[1];
	v[3] = bid_sip_rotate(v[3], 21) ^ v[0];
	v[1] = bid_sip_rotate(v[1], 17) ^ v[2];
	v[2] = bid_sip_rotate(v[2], 32);
}

static inline void bid_sip_word(struct bid_sip *sip, uint64_t word)
{
	sip->v[3] ^= word;
	bid_sip_round(sip);
	sip->v[0] ^= word;
}

static inline void bid_sip_bytes(struct bid_sip *sip, const void *data, size_t len)
{
	const char *bytes = data;
	uint64_t word;

	for (; len >= sizeof(word); len -= sizeof(word), bytes += sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		bid_sip_word(sip, word);
	}
	word = 0;
	memcpy(&word, bytes, len);
	bid_sip_word(sip, word);
}

static inline uint64_t bid_sip_end(struct bid_sip *sip)
{
	sip->v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		bid_sip_round(sip);
	return sip->v[0] ^ sip->v[1] ^ sip->v[2] ^ sip->v[3];
}

#endif
