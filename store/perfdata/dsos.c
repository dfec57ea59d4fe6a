// SPDX-License-Identifier: LGPL-2.1-or-later
#include "perfdata/dsos.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct dso {
	struct bid_perfdata_dso dso; /* first: a node of the tree points to it */
	char path[];
};

/* By path, mode and id: one without an id comes last of its path and mode, one with a padded id behind the id that was padded. */
static int by_path(const void *a, const void *b)
{
	const struct bid_perfdata_dso *x = a, *y = b;
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
	const struct bid_perfdata_dso *x = *(struct bid_perfdata_dso *const *)a, *y = *(struct bid_perfdata_dso *const *)b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return by_path(x, y);
}

void bid_dsos_release(struct bid_dsos *dsos)
{
	tdestroy(dsos->tree, free);
	*dsos = (struct bid_dsos){ 0 };
}

int bid_dsos_add(struct bid_dsos *dsos, const struct bid_id *id, bool sized, enum bid_perfdata_mode mode, const char *path,
		 size_t len, struct bid_perfdata_dso **ret_dso)
{
	bid_auto_free struct dso *added = malloc(sizeof(*added) + len + 1);
	struct bid_perfdata_dso **found;

	if (!added)
		return -ENOMEM;
	added->dso = (struct bid_perfdata_dso){ .id = *id, .mode = mode, .path = added->path };
	memcpy(added->path, path, len);
	added->path[len] = '\0';
	found = tsearch(added, &dsos->tree, by_path);
	if (!found)
		return -ENOMEM;
	*ret_dso = *found;
	(*found)->sized |= sized;
	if (*found != &added->dso)
		return 0;
	bid_steal(added);
	dsos->n++;
	dsos->names += len;
	return dsos->n > BID_DSOS_MAX || dsos->names > BID_DSOS_NAMES_MAX ? -E2BIG : 0;
}

/* Does @before, the predecessor of @dso, include all of @dso? */
static bool includes_dso(const struct bid_perfdata_dso *before, const struct bid_perfdata_dso *dso)
{
	if (before->id.len == 0 || before->mode != dso->mode || strcmp(before->path, dso->path) != 0)
		return false;
	return dso->id.len == 0 || (!dso->sized && before->sized && bid_id_answers(&before->id, &dso->id));
}

/* the dsos in the order of by_path() */
struct sorted_dsos {
	struct bid_perfdata_dso **dsos;
	size_t n;
};

/*
 * Append the dso of a node. One that the last dso includes gives its samples to it instead; without an id, to all dsos of its path:
 * it may be any of these builds.
 */
static void append_dso(const void *node, VISIT visit, void *user)
{
	struct bid_perfdata_dso *dso = *(struct bid_perfdata_dso *const *)node;
	struct sorted_dsos *sorted = user;

	if (visit != postorder && visit != leaf)
		return;
	if (sorted->n == 0 || !includes_dso(sorted->dsos[sorted->n - 1], dso)) {
		sorted->dsos[sorted->n++] = dso;
		return;
	}
	for (size_t at = sorted->n; at > 0; at--) {
		struct bid_perfdata_dso *other = sorted->dsos[at - 1];

		if (other->mode != dso->mode || strcmp(other->path, dso->path) != 0)
			break;
		other->samples += dso->samples;
		if (dso->id.len > 0)
			break;
	}
}

int bid_dsos_each(const struct bid_dsos *dsos, bid_perfdata_fn fn, void *user, uint64_t *count)
{
	bid_auto_free struct bid_perfdata_dso **all = calloc(dsos->n + 1, sizeof(struct bid_perfdata_dso *));
	struct sorted_dsos sorted = { .dsos = all };
	int r = 0;

	if (!all)
		return -ENOMEM;
	twalk_r(dsos->tree, append_dso, &sorted);
	/* the same order, if nothing was counted */
	qsort(all, sorted.n, sizeof(all[0]), by_samples);
	for (size_t i = 0; i < sorted.n && r == 0; i++) {
		r = fn(user, all[i]);
		++*count;
	}
	return r;
}
