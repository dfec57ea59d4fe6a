// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/history/absence_table.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 256

void bid_absence_table_init(struct bid_absence_table *table, uint32_t max)
{
	*table = (struct bid_absence_table){ .max = max };
}

void bid_absence_table_release(struct bid_absence_table *table)
{
	free(table->entries);
	free(table->buckets);
	bid_absence_table_init(table, table->max);
}

static uint32_t *bucket(const struct bid_absence_table *table, const uint8_t *key)
{
	uint32_t bits;

	memcpy(&bits, key, sizeof(bits));
	return &table->buckets[bits & (table->n_room - 1)];
}

/* Where the index of the entry of @key is, or would be. */
static uint32_t *place(const struct bid_absence_table *table, const uint8_t *key)
{
	uint32_t *at = bucket(table, key);

	while (*at && memcmp(table->entries[*at - 1].key, key, BID_ABSENCE_KEY) != 0)
		at = &table->entries[*at - 1].next;
	return at;
}

static void unlink_use(struct bid_absence_table *table, const struct bid_absence *entry)
{
	*(entry->newer ? &table->entries[entry->newer - 1].older : &table->newest) = entry->older;
	*(entry->older ? &table->entries[entry->older - 1].newer : &table->oldest) = entry->newer;
}

static void link_use(struct bid_absence_table *table, struct bid_absence *entry)
{
	uint32_t index = (uint32_t)(entry - table->entries) + 1;

	entry->newer = 0;
	entry->older = table->newest;
	*(table->newest ? &table->entries[table->newest - 1].newer : &table->oldest) = index;
	table->newest = index;
}

struct bid_absence *bid_absence_table_find(struct bid_absence_table *table, const uint8_t key[static BID_ABSENCE_KEY])
{
	uint32_t index = table->n_room ? *place(table, key) : 0;

	if (index == 0)
		return NULL;
	unlink_use(table, &table->entries[index - 1]);
	link_use(table, &table->entries[index - 1]);
	return &table->entries[index - 1];
}

void bid_absence_table_drop(struct bid_absence_table *table, const uint8_t key[static BID_ABSENCE_KEY])
{
	uint32_t *at = table->n_room ? place(table, key) : NULL, index;

	if (!at || !*at)
		return;
	index = *at;
	*at = table->entries[index - 1].next;
	unlink_use(table, &table->entries[index - 1]);
	table->entries[index - 1].next = table->unused;
	table->unused = index;
	table->n--;
}

static int grow(struct bid_absence_table *table)
{
	uint32_t room = table->n_room ? 2 * table->n_room : FIRST_ROOM;
	struct bid_absence *entries = reallocarray(table->entries, room, sizeof(*entries));
	uint32_t *buckets = NULL;

	if (entries) {
		table->entries = entries;
		buckets = calloc(room, sizeof(*buckets));
	}
	if (!buckets)
		return -1;
	free(table->buckets);
	table->buckets = buckets;
	table->n_room = room;
	for (uint32_t index = table->newest; index; index = entries[index - 1].older) {
		uint32_t *at = bucket(table, entries[index - 1].key);

		entries[index - 1].next = *at;
		*at = index;
	}
	return 0;
}

struct bid_absence *bid_absence_table_add(struct bid_absence_table *table, const uint8_t key[static BID_ABSENCE_KEY])
{
	struct bid_absence *entry = bid_absence_table_find(table, key);
	uint32_t index, *at;

	if (entry)
		return entry;
	if (table->n >= table->max && table->oldest)
		bid_absence_table_drop(table, table->entries[table->oldest - 1].key);
	/* it grows only while no place was given up, or all of those were taken again */
	if (!table->unused && table->n == table->n_room && grow(table) < 0)
		return NULL;
	index = table->unused ? table->unused : table->n + 1;
	entry = &table->entries[index - 1];
	if (table->unused)
		table->unused = entry->next;
	*entry = (struct bid_absence){ 0 };
	memcpy(entry->key, key, BID_ABSENCE_KEY);
	at = bucket(table, key);
	entry->next = *at;
	*at = index;
	link_use(table, entry);
	table->n++;
	return entry;
}

const struct bid_absence *bid_absence_table_next(const struct bid_absence_table *table, const struct bid_absence *after)
{
	uint32_t index = after ? after->newer : table->oldest;

	return index ? &table->entries[index - 1] : NULL;
}
