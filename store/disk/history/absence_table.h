/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is absent where, in memory: a hash table of bounded size, from which the least recently wanted one falls out. An entry takes
 * 44 bytes, its share of the buckets included. Has no lock.
 */
#ifndef BID_DISK_ABSENCE_TABLE_H
#define BID_DISK_ABSENCE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define BID_ABSENCE_KEY 16

struct bid_absence {
	uint8_t key[BID_ABSENCE_KEY]; /* random bits, all of them */
	int64_t until; /* seconds since the epoch */
	uint32_t step; /* how often it was said; from 1 on */
	uint32_t next; /* in its bucket; these three are indices plus one */
	uint32_t newer, older;
};

struct bid_absence_table {
	struct bid_absence *entries; /* owned */
	uint32_t *buckets; /* owned; n_room of them, a power of two */
	uint32_t n, n_room;
	uint32_t max;
	uint32_t newest, oldest;
	uint32_t unused; /* a list by next */
};

void bid_absence_table_init(struct bid_absence_table *table, uint32_t max);

void bid_absence_table_release(struct bid_absence_table *table);

/* The entry of @key, from now on the most recently wanted, or NULL. Lives until the table is changed. */
struct bid_absence *bid_absence_table_find(struct bid_absence_table *table, const uint8_t key[static BID_ABSENCE_KEY]);

/* Find it, or make a zeroed one. NULL without memory. */
struct bid_absence *bid_absence_table_add(struct bid_absence_table *table, const uint8_t key[static BID_ABSENCE_KEY]);

void bid_absence_table_drop(struct bid_absence_table *table, const uint8_t key[static BID_ABSENCE_KEY]);

/* From the least recently wanted one (@after NULL) to the most. */
const struct bid_absence *bid_absence_table_next(const struct bid_absence_table *table, const struct bid_absence *after);

#endif
