// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Assignment of samples to mappings. Both are sorted by address, and read in parallel. A heap has the mappings at the current
 * address, the latest on top. For any overlap of mappings this takes no longer than the sorting.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "perfdata/samples.h"

/* limit of forks without an exec */
enum { GENERATIONS = 8 };

struct heap {
	const struct bid_map **maps; /* owned; maps[0] is the latest */
	size_t n;
};

static void heap_release(struct heap *heap)
{
	free(heap->maps);
}

static void swap(struct heap *heap, size_t a, size_t b)
{
	const struct bid_map *map = heap->maps[a];

	heap->maps[a] = heap->maps[b];
	heap->maps[b] = map;
}

static void push(struct heap *heap, const struct bid_map *map)
{
	size_t at = heap->n++;

	heap->maps[at] = map;
	for (; at > 0 && heap->maps[(at - 1) / 2]->when < heap->maps[at]->when; at = (at - 1) / 2)
		swap(heap, at, (at - 1) / 2);
}

static void pop(struct heap *heap)
{
	size_t at = 0, child;

	heap->maps[0] = heap->maps[--heap->n];
	while ((child = 2 * at + 1) < heap->n) {
		if (child + 1 < heap->n && heap->maps[child + 1]->when > heap->maps[child]->when)
			child++;
		if (heap->maps[at]->when > heap->maps[child]->when)
			break;
		swap(heap, at, child);
		at = child;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct bid_map *x = a, *y = b;

	if (x->space != y->space)
		return x->space < y->space ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int by_number(const void *a, const void *b)
{
	const struct bid_page *x = a, *y = b;

	if (x->space != y->space)
		return x->space < y->space ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
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

static const struct bid_fork *fork_of(const struct bid_samples *samples, bid_space space)
{
	size_t low = 0, high = samples->n_forks;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (samples->forks[middle].space < space)
			low = middle + 1;
		else
			high = middle;
	}
	return low < samples->n_forks && samples->forks[low].space == space ? &samples->forks[low] : NULL;
}

/* Move the used pages to the front. */
static void gather_pages(struct bid_samples *samples)
{
	size_t n = 0;

	for (size_t i = 0; i < samples->room_pages; i++)
		if (samples->pages[i].samples > 0)
			samples->pages[n++] = samples->pages[i];
}

/* Assign the sorted pages. Pages of processes without a mapping there remain, for their parents. */
static void place(struct bid_samples *samples, struct heap *heap)
{
	size_t left = 0, next = 0;

	heap->n = 0;
	for (size_t i = 0; i < samples->n_pages; i++) {
		struct bid_page page = samples->pages[i];
		uint64_t first = page.number << BID_PAGE_SHIFT, last = first | ((1u << BID_PAGE_SHIFT) - 1);
		const struct bid_fork *fork;

		if (i == 0 || heap->n == 0 || heap->maps[0]->space != page.space) {
			heap->n = 0;
			while (next < samples->n_maps && samples->maps[next].space < page.space)
				next++;
		}
		for (; next < samples->n_maps && samples->maps[next].space == page.space && samples->maps[next].start <= last;
		     next++)
			push(heap, &samples->maps[next]);
		while (heap->n > 0 && heap->maps[0]->end <= first)
			pop(heap);
		if (heap->n == 0) {
			fork = fork_of(samples, page.space);
			if (fork) {
				page.space = fork->parent;
				samples->pages[left++] = page;
			}
		} else if (heap->maps[0]->dso) {
			bid_dso_count(heap->maps[0]->dso, page.samples);
			samples->placed += page.samples;
		}
	}
	samples->n_pages = left;
}

int bid_samples_place(struct bid_samples *samples)
{
	bid_cleanup(heap_release) struct heap heap = { .maps = calloc(samples->n_maps + 1, sizeof(heap.maps[0])) };

	if (!heap.maps)
		return -ENOMEM;
	/* qsort(3) needs an array, and empty tables have none */
	if (samples->n_maps == 0 || samples->n_pages == 0)
		return 0;
	qsort(samples->maps, samples->n_maps, sizeof(samples->maps[0]), by_start);
	if (samples->n_forks > 0)
		sort_forks(samples);
	gather_pages(samples);
	for (int i = 0; i < GENERATIONS && samples->n_pages > 0; i++) {
		qsort(samples->pages, samples->n_pages, sizeof(samples->pages[0]), by_number);
		place(samples, &heap);
	}
	return 0;
}
