// SPDX-License-Identifier: LGPL-2.1-or-later
#include "perfdata/samples.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

/* linux/perf_event.h, enum perf_event_sample_format: the process, and the fields that may precede it */
enum { TYPE_IP = 1 << 0, TYPE_TID = 1 << 1, TYPE_IDENTIFIER = 1 << 16 };

enum {
	FIRST = 8,
	WORD = 8,
	PAGES_MORE = 1 << 15, /* least room for pages between two merges */
	PAGE_SHIFT = 12, /* smallest possible page; other sizes are multiples */
	GENERATIONS = 8, /* limit of forks without an exec */
};

/* an address space: of a process, of the kernel, or of all guests together */
typedef uint32_t bid_space;

static const bid_space kernel = UINT32_MAX, guests = UINT32_MAX - 1;

struct bid_page {
	uint64_t number;
	bid_space space;
	uint32_t samples; /* stays at its maximum */
};

struct bid_map {
	uint64_t start, end;
	struct bid_perfdata_dso *dso; /* borrowed; may be NULL */
	bid_space space;
};

struct bid_fork {
	bid_space space, parent;
	uint32_t when;
};

static bid_space space_of(enum bid_perfdata_mode mode, uint32_t pid)
{
	return mode == BID_PERFDATA_KERNEL ? kernel : mode == BID_PERFDATA_GUEST ? guests : pid;
}

void bid_samples_release(struct bid_samples *samples)
{
	free(samples->pages);
	free(samples->maps);
	free(samples->forks);
	*samples = (struct bid_samples){ 0 };
}

void bid_samples_type(struct bid_samples *samples, uint64_t type)
{
	size_t ip_at = type & TYPE_IDENTIFIER ? FIRST + WORD : FIRST;

	if (!(type & TYPE_IP) || !(type & TYPE_TID) || (samples->ip_at > 0 && samples->ip_at != ip_at))
		samples->mixed = true;
	samples->ip_at = samples->mixed ? 0 : ip_at;
	samples->pid_at = samples->mixed ? 0 : ip_at + WORD;
}

static int by_number(const void *a, const void *b)
{
	const struct bid_page *x = a, *y = b;

	if (x->space != y->space)
		return x->space < y->space ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* Sort the pages, and add up the samples of each. */
static void merge_pages(struct bid_samples *samples)
{
	struct bid_page *pages = samples->pages;
	size_t n = 0;

	/* qsort(3) needs an array, and an empty table has none */
	if (samples->n_pages > 0)
		qsort(pages, samples->n_pages, sizeof(*pages), by_number);
	for (size_t i = 0; i < samples->n_pages; i++) {
		if (n == 0 || by_number(&pages[n - 1], &pages[i]) != 0)
			pages[n++] = pages[i];
		else if (__builtin_add_overflow(pages[n - 1].samples, pages[i].samples, &pages[n - 1].samples))
			pages[n - 1].samples = UINT32_MAX;
	}
	samples->n_pages = n;
}

/* Merge the pages, and make room for half as many again at least. */
static int make_room(struct bid_samples *samples)
{
	merge_pages(samples);
	samples->full = samples->n_pages >= BID_PAGES_MAX;
	if (samples->full)
		return 0;
	return bid_array_reserve(samples->pages, samples->n_pages, samples->n_pages / 2 + PAGES_MORE, samples->room_pages);
}

int bid_samples_add(struct bid_samples *samples, enum bid_perfdata_mode mode, uint32_t pid, uint64_t ip)
{
	struct bid_page page = { .number = ip >> PAGE_SHIFT, .space = space_of(mode, pid), .samples = 1 };
	uint32_t *recent = &samples->recent[(page.number ^ page.space) % BID_PAGES_RECENT];
	struct bid_page *known = *recent < samples->n_pages ? &samples->pages[*recent] : NULL;
	int r = 0;

	samples->seen++;
	/* most samples are on few pages: without this, sorting takes most of the time */
	if (known && by_number(known, &page) == 0 && known->samples < UINT32_MAX) {
		known->samples++;
		return 0;
	}
	if (samples->n_pages == samples->room_pages && !samples->full)
		r = make_room(samples);
	if (r < 0 || samples->full)
		return r;
	*recent = (uint32_t)samples->n_pages;
	samples->pages[samples->n_pages++] = page;
	return 0;
}

int bid_samples_map(struct bid_samples *samples, enum bid_perfdata_mode mode, uint32_t pid, uint64_t start, uint64_t len,
		    struct bid_perfdata_dso *dso)
{
	if (samples->n_maps == BID_MAPS_MAX || len == 0)
		return 0;
	if (bid_array_grow(samples->maps, samples->n_maps, samples->room_maps) < 0)
		return -ENOMEM;
	samples->maps[samples->n_maps] = (struct bid_map){
		.start = start,
		.end = len > UINT64_MAX - start ? UINT64_MAX : start + len,
		.dso = dso,
		.space = space_of(mode, pid),
	};
	samples->n_maps++;
	return 0;
}

int bid_samples_fork(struct bid_samples *samples, uint32_t pid, uint32_t parent)
{
	/* a thread */
	if (pid == parent || samples->n_forks == BID_FORKS_MAX)
		return 0;
	if (bid_array_grow(samples->forks, samples->n_forks, samples->room_forks) < 0)
		return -ENOMEM;
	samples->forks[samples->n_forks] = (struct bid_fork){ pid, parent, (uint32_t)samples->n_forks };
	samples->n_forks++;
	return 0;
}

/*
 * The free pages: @next[i] is i while page i is free, and otherwise leads to a later page. Path halving keeps the ways short: for
 * any overlap of mappings the assignment takes no longer than the sorting.
 */
static size_t next_free(uint32_t *next, size_t at)
{
	while (next[at] != at)
		at = next[at] = next[next[at]];
	return at;
}

/* The index of the first page that is not before @wanted, in the sorted pages. */
static size_t find_page(const struct bid_samples *samples, const struct bid_page *wanted)
{
	size_t low = 0, high = samples->n_pages;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_number(&samples->pages[middle], wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Assign the free pages that @map has. */
static void take_pages(struct bid_samples *samples, const struct bid_map *map, uint32_t *next)
{
	const struct bid_page first = { .number = map->start >> PAGE_SHIFT, .space = map->space };

	for (size_t at = next_free(next, find_page(samples, &first)); at < samples->n_pages; at = next_free(next, at)) {
		const struct bid_page *page = &samples->pages[at];

		if (page->space != map->space || page->number << PAGE_SHIFT >= map->end)
			return;
		next[at] = (uint32_t)at + 1;
		if (!map->dso)
			continue;
		map->dso->samples += page->samples;
		samples->placed += page->samples;
	}
}

/* The last fork of each process first. */
static int by_child(const void *a, const void *b)
{
	const struct bid_fork *x = a, *y = b;

	if (x->space != y->space)
		return x->space < y->space ? -1 : 1;
	return x->when > y->when ? -1 : 1;
}

/* Leave the last fork of each process. */
static void sort_forks(struct bid_samples *samples)
{
	size_t n = 0;

	qsort(samples->forks, samples->n_forks, sizeof(samples->forks[0]), by_child);
	for (size_t i = 0; i < samples->n_forks; i++)
		if (n == 0 || samples->forks[n - 1].space != samples->forks[i].space)
			samples->forks[n++] = samples->forks[i];
	samples->n_forks = n;
}

static int by_space(const void *a, const void *b)
{
	const struct bid_fork *x = a, *y = b;

	return x->space < y->space ? -1 : x->space > y->space;
}

static const struct bid_fork *fork_of(const struct bid_samples *samples, bid_space space)
{
	const struct bid_fork key = { .space = space };

	return samples->n_forks > 0 ? bsearch(&key, samples->forks, samples->n_forks, sizeof(key), by_space) : NULL;
}

/* Assign the sorted pages, the last mappings first. Pages of processes without a mapping there remain, for their parents. */
static void place_pages(struct bid_samples *samples, uint32_t *next)
{
	size_t left = 0;

	for (uint32_t i = 0; i <= samples->n_pages; i++)
		next[i] = i;
	for (size_t i = samples->n_maps; i-- > 0;)
		take_pages(samples, &samples->maps[i], next);
	for (size_t i = 0; i < samples->n_pages; i++) {
		struct bid_page page = samples->pages[i];
		const struct bid_fork *fork = next[i] == i ? fork_of(samples, page.space) : NULL;

		if (!fork)
			continue;
		page.space = fork->parent;
		samples->pages[left++] = page;
	}
	samples->n_pages = left;
}

int bid_samples_place(struct bid_samples *samples)
{
	bid_auto_free uint32_t *next = NULL;

	if (samples->n_maps == 0 || samples->n_pages == 0)
		return 0;
	next = calloc(samples->n_pages + 1, sizeof(*next));
	if (!next)
		return -ENOMEM;
	if (samples->n_forks > 0)
		sort_forks(samples);
	for (int i = 0; i < GENERATIONS && samples->n_pages > 0; i++) {
		merge_pages(samples);
		place_pages(samples, next);
	}
	return 0;
}
