// SPDX-License-Identifier: LGPL-2.1-or-later
#include "perfdata/dsos.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "perfdata/sip.h"

struct bid_dso {
	uint64_t hash;
	uint64_t samples;
	uint64_t mapped;
	struct bid_perf_id {
		uint8_t len;
		uint8_t bytes[BID_ID_PERF_MAX]; /* the rest is zero */
	} id;
	uint8_t mode;
	bool sized;
	uint16_t path_len;
	char path[]; /* NUL-terminated */
};

enum { ROOM_MIN = 256 };

int bid_dsos_init(struct bid_dsos *dsos)
{
	*dsos = (struct bid_dsos){ 0 };
	/* never blocks for so few bytes, once the machine is up */
	return getrandom(dsos->key, sizeof(dsos->key), 0) < 0 ? -errno : 0;
}

void bid_dsos_release(struct bid_dsos *dsos)
{
	for (size_t i = 0; i < dsos->room; i++)
		free(dsos->slots[i]);
	free(dsos->slots);
	dsos->slots = NULL;
	dsos->n = dsos->room = dsos->names = 0;
}

static uint64_t hash_of(const struct bid_dsos *dsos, const struct bid_perf_id *id, uint8_t mode, const char *path, size_t len)
{
	struct bid_sip sip = bid_sip_begin(dsos->key);

	bid_sip_word(&sip, (uint64_t)len << 8 | mode);
	bid_sip_bytes(&sip, id, sizeof(*id));
	bid_sip_bytes(&sip, path, len);
	return bid_sip_end(&sip);
}

static struct bid_dso **free_slot(struct bid_dso **slots, size_t room, uint64_t hash)
{
	size_t at = hash & (room - 1);

	while (slots[at])
		at = (at + 1) & (room - 1);
	return &slots[at];
}

static int grow(struct bid_dsos *dsos)
{
	size_t room = dsos->room ? 2 * dsos->room : ROOM_MIN;
	struct bid_dso **slots = calloc(room, sizeof(struct bid_dso *));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < dsos->room; i++)
		if (dsos->slots[i])
			*free_slot(slots, room, dsos->slots[i]->hash) = dsos->slots[i];
	free(dsos->slots);
	dsos->slots = slots;
	dsos->room = room;
	return 0;
}

static struct bid_dso *look_up(const struct bid_dsos *dsos, uint64_t hash, const struct bid_perf_id *id, uint8_t mode,
			       const char *path, size_t len)
{
	if (dsos->room == 0)
		return NULL;
	for (size_t at = hash & (dsos->room - 1); dsos->slots[at]; at = (at + 1) & (dsos->room - 1)) {
		struct bid_dso *dso = dsos->slots[at];

		if (dso->hash == hash && dso->mode == mode && dso->path_len == len && memcmp(&dso->id, id, sizeof(*id)) == 0 &&
		    memcmp(dso->path, path, len) == 0)
			return dso;
	}
	return NULL;
}

int bid_dsos_add(struct bid_dsos *dsos, const struct bid_id *id, bool sized, enum bid_perfdata_mode mode, const char *path,
		 size_t len, struct bid_dso **ret_dso)
{
	struct bid_perf_id key = { .len = id->len };
	struct bid_dso *dso;
	uint64_t hash;
	int r;

	if (id->len > BID_ID_PERF_MAX || len > UINT16_MAX)
		return -EINVAL;
	memcpy(key.bytes, id->bytes, sizeof(key.bytes));
	hash = hash_of(dsos, &key, (uint8_t)mode, path, len);
	dso = look_up(dsos, hash, &key, (uint8_t)mode, path, len);
	if (dso) {
		dso->sized |= sized;
		*ret_dso = dso;
		return 0;
	}

	if (dsos->n == BID_DSOS_MAX || len > BID_DSOS_NAMES_MAX - dsos->names)
		return -E2BIG;
	if (2 * dsos->n >= dsos->room) {
		r = grow(dsos);
		if (r < 0)
			return r;
	}
	dso = malloc(sizeof(*dso) + len + 1);
	if (!dso)
		return -ENOMEM;
	*dso = (struct bid_dso){ .hash = hash, .id = key, .mode = (uint8_t)mode, .sized = sized, .path_len = (uint16_t)len };
	memcpy(dso->path, path, len);
	dso->path[len] = '\0';
	*free_slot(dsos->slots, dsos->room, hash) = dso;
	dsos->n++;
	dsos->names += len;
	*ret_dso = dso;
	return 0;
}

void bid_dso_map(struct bid_dso *dso, uint64_t end)
{
	if (end > dso->mapped)
		dso->mapped = end;
}

void bid_dso_count(struct bid_dso *dso, uint64_t samples)
{
	dso->samples += samples;
}

/* By path, mode and id: one without an id comes last of its path and mode, one with a padded id behind the id that was padded. */
static int by_path(const void *a, const void *b)
{
	const struct bid_dso *x = *(const struct bid_dso *const *)a, *y = *(const struct bid_dso *const *)b;
	int order = strcmp(x->path, y->path);

	if (order == 0)
		order = (int)x->mode - (int)y->mode;
	if (order == 0)
		order = (x->id.len == 0) - (y->id.len == 0);
	if (order == 0)
		order = memcmp(x->id.bytes, y->id.bytes, sizeof(x->id.bytes));
	return order ? order : (int)x->id.len - (int)y->id.len;
}

/* Compare for the order by samples, most first. */
static int by_samples(const void *a, const void *b)
{
	const struct bid_dso *x = *(const struct bid_dso *const *)a, *y = *(const struct bid_dso *const *)b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return by_path(a, b);
}

static struct bid_perfdata_dso shown(const struct bid_dso *dso)
{
	struct bid_perfdata_dso shown = {
		.sized = dso->sized, .mode = dso->mode, .path = dso->path, .samples = dso->samples, .mapped = dso->mapped
	};

	shown.id.len = dso->id.len;
	memcpy(shown.id.bytes, dso->id.bytes, sizeof(dso->id.bytes));
	return shown;
}

static bool same_path(const struct bid_dso *a, const struct bid_dso *b)
{
	return a->mode == b->mode && strcmp(a->path, b->path) == 0;
}

/* Does @before, the predecessor of @dso, include all of @dso? */
static bool is_said(const struct bid_dso *before, const struct bid_dso *dso)
{
	struct bid_perfdata_dso a = shown(before), b = shown(dso);

	if (a.id.len == 0 || !same_path(before, dso))
		return false;
	return b.id.len == 0 || (!b.sized && a.sized && bid_id_answers(&a.id, &b.id));
}

/* Drop each dso that another one includes, and add its samples to all dsos they may belong to. Returns the remaining number. */
static size_t merge(struct bid_dso **sorted, size_t n)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++) {
		struct bid_dso *dso = sorted[i];

		if (left == 0 || !is_said(sorted[left - 1], dso)) {
			sorted[left++] = dso;
			continue;
		}
		/* mapped by a name alone: it may be any build of this name */
		for (size_t at = left; at > 0 && same_path(sorted[at - 1], dso); at--) {
			sorted[at - 1]->samples += dso->samples;
			if (dso->id.len > 0)
				break;
		}
	}
	return left;
}

int bid_dsos_each(const struct bid_dsos *dsos, bid_perfdata_fn fn, void *user, uint64_t *count)
{
	bid_auto_free struct bid_dso **sorted = calloc(dsos->n + 1, sizeof(struct bid_dso *));
	size_t n = 0;
	int r = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < dsos->room; i++)
		if (dsos->slots[i])
			sorted[n++] = dsos->slots[i];
	qsort(sorted, n, sizeof(sorted[0]), by_path);
	n = merge(sorted, n);
	/* the same order, if nothing was counted */
	qsort(sorted, n, sizeof(sorted[0]), by_samples);
	for (size_t i = 0; i < n && r == 0; i++) {
		struct bid_perfdata_dso dso = shown(sorted[i]);

		r = fn(user, &dso);
		++*count;
	}
	return r;
}
