/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pseudo-random numbers, the same everywhere and each time. */
#ifndef BID_TESTS_RANDOM_H
#define BID_TESTS_RANDOM_H

#include <stdint.h>

/* splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators"). No two states give one number. */
static inline uint64_t next_random(uint64_t *state)
{
	uint64_t number = *state += 0x9e3779b97f4a7c15U;

	number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9U;
	number = (number ^ number >> 27) * 0x94d049bb133111ebU;
	return number ^ number >> 31;
}

#endif
