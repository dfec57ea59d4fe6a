// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/watch/parts.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { FIRST_BUCKETS = 1024 }; /* a power of two */

static struct bid_part **next_in(const struct bid_parts *parts, const struct bid_parts_table *table, struct bid_part *part)
{
	return table == &parts->names ? &part->next_by_name : &part->next_by_wd;
}

static uint64_t hash_name(const struct bid_part *parent, const char *name)
{
	return XXH3_64bits_withSeed(name, strlen(name), (uintptr_t)parent);
}

static uint64_t hash_wd(int wd)
{
	return (uint64_t)wd * 0x9e3779b97f4a7c15U >> 32;
}

static struct bid_part **bucket(const struct bid_parts_table *table, uint64_t hash)
{
	return &table->buckets[hash & (table->n_buckets - 1)];
}

static uint64_t hash_in(const struct bid_parts *parts, const struct bid_parts_table *table, const struct bid_part *part)
{
	return table == &parts->names ? hash_name(part->parent, part->name) : hash_wd(part->wd);
}

static void grow(struct bid_parts *parts, struct bid_parts_table *table)
{
	struct bid_parts_table larger = { .n_buckets = table->n_buckets * 2, .n = table->n };

	larger.buckets = calloc(larger.n_buckets, sizeof(*larger.buckets));
	if (!larger.buckets)
		return; /* slower, not wrong */
	for (size_t i = 0; i < table->n_buckets; i++) {
		struct bid_part *part, *next;

		for (part = table->buckets[i]; part; part = next) {
			struct bid_part **at = bucket(&larger, hash_in(parts, table, part));

			next = *next_in(parts, table, part);
			*next_in(parts, table, part) = *at;
			*at = part;
		}
	}
	free(table->buckets);
	*table = larger;
}

static void enter(struct bid_parts *parts, struct bid_parts_table *table, struct bid_part *part)
{
	struct bid_part **at;

	if (table->n >= table->n_buckets)
		grow(parts, table);
	at = bucket(table, hash_in(parts, table, part));
	*next_in(parts, table, part) = *at;
	*at = part;
	table->n++;
}

static void take_out(struct bid_parts *parts, struct bid_parts_table *table, struct bid_part *part)
{
	struct bid_part **at = bucket(table, hash_in(parts, table, part));

	while (*at != part)
		at = next_in(parts, table, *at);
	*at = *next_in(parts, table, part);
	table->n--;
}

struct bid_part *bid_part_below(const struct bid_parts *parts, const struct bid_part *parent, const char *name)
{
	struct bid_part *part = *bucket(&parts->names, hash_name(parent, name));

	while (part && (part->parent != parent || strcmp(part->name, name) != 0))
		part = part->next_by_name;
	return part;
}

struct bid_part *bid_part_of_watch(const struct bid_parts *parts, int wd)
{
	struct bid_part *part = *bucket(&parts->wds, hash_wd(wd));

	while (part && part->wd != wd)
		part = part->next_by_wd;
	return part;
}

struct bid_part *bid_part_new(struct bid_parts *parts, struct bid_part *parent, const char *name)
{
	size_t len = strlen(name);
	struct bid_part *part = calloc(1, sizeof(*part) + len + 1);

	if (!part)
		return NULL;
	memcpy(part->name, name, len + 1);
	part->wd = -1;
	part->parent = parent;
	if (!parent)
		return part;
	part->sibling = parent->children;
	if (part->sibling)
		part->sibling->at = &part->sibling;
	part->at = &parent->children;
	parent->children = part;
	enter(parts, &parts->names, part);
	return part;
}

void bid_part_unwatched(struct bid_parts *parts, struct bid_part *part)
{
	if (part->wd < 0)
		return;
	take_out(parts, &parts->wds, part);
	part->wd = -1;
}

void bid_part_watched(struct bid_parts *parts, struct bid_part *part, int wd)
{
	part->wd = wd;
	enter(parts, &parts->wds, part);
}

void bid_part_free(struct bid_parts *parts, struct bid_part *part)
{
	bid_part_unwatched(parts, part);
	if (part->parent) {
		take_out(parts, &parts->names, part);
		*part->at = part->sibling;
		if (part->sibling)
			part->sibling->at = part->at;
	}
	free(part);
}

int bid_parts_init(struct bid_parts *parts)
{
	parts->names = parts->wds = (struct bid_parts_table){ .n_buckets = FIRST_BUCKETS };
	parts->names.buckets = calloc(FIRST_BUCKETS, sizeof(*parts->names.buckets));
	parts->wds.buckets = calloc(FIRST_BUCKETS, sizeof(*parts->wds.buckets));
	return parts->names.buckets && parts->wds.buckets ? 0 : -ENOMEM;
}

void bid_parts_release(struct bid_parts *parts)
{
	free(parts->names.buckets);
	free(parts->wds.buckets);
}
