// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Two hash tables. A found file moves to the young one. A full young table becomes the old one; the previous old one is dropped,
 * with the files unused since.
 */
#include "ctl/seen_files.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_SIZE = 1024 };

void ctl_seen_release(struct ctl_seen *seen)
{
	free(seen->young.slots);
	free(seen->old.slots);
	*seen = (struct ctl_seen){ 0 };
}

static struct ctl_seen_file *slot_of(const struct ctl_seen_table *table, dev_t dev, ino_t ino)
{
	size_t at = (size_t)((ino ^ dev << 40) * 0x9e3779b97f4a7c15U >> 20) & (table->size - 1);

	while (table->slots[at].ino && (table->slots[at].ino != ino || table->slots[at].dev != dev))
		at = (at + 1) & (table->size - 1);
	return &table->slots[at];
}

static struct ctl_seen_file *find(const struct ctl_seen_table *table, dev_t dev, ino_t ino)
{
	struct ctl_seen_file *slot = table->size ? slot_of(table, dev, ino) : NULL;

	return slot && slot->ino ? slot : NULL;
}

static int grow(struct ctl_seen_table *table)
{
	size_t size = table->size ? 2 * table->size : FIRST_SIZE;
	struct ctl_seen_table larger = { .slots = calloc(size, sizeof(*larger.slots)), .n = table->n, .size = size };

	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < table->size; i++)
		if (table->slots[i].ino)
			*slot_of(&larger, table->slots[i].dev, table->slots[i].ino) = table->slots[i];
	free(table->slots);
	*table = larger;
	return 0;
}

int ctl_seen_put(struct ctl_seen *seen, const struct ctl_seen_file *file)
{
	struct ctl_seen_table *young = &seen->young;
	struct ctl_seen_file *slot = find(young, file->dev, file->ino);

	if (!slot) {
		if (young->n >= CTL_SEEN_MAX) {
			free(seen->old.slots);
			seen->old = *young;
			*young = (struct ctl_seen_table){ 0 };
		}
		if (2 * young->n >= young->size && grow(young) < 0)
			return -ENOMEM;
		slot = slot_of(young, file->dev, file->ino);
		young->n++;
	}
	*slot = *file;
	return 0;
}

struct ctl_seen_file *ctl_seen_find(struct ctl_seen *seen, dev_t dev, ino_t ino)
{
	struct ctl_seen_file *file = find(&seen->young, dev, ino), copy;

	if (file)
		return file;
	file = find(&seen->old, dev, ino);
	if (!file)
		return NULL;
	/* a copy, because ctl_seen_put() may free the old table */
	copy = *file;
	return ctl_seen_put(seen, &copy) < 0 ? NULL : find(&seen->young, dev, ino);
}
