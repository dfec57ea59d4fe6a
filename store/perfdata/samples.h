/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What was sampled, and what was mapped there.
 *
 * A recording has its records by the CPU that they are from, not by time: a sample may be in front of the mapping that it is in, by
 * as much as the whole recording. So both are gathered, samples by the page that they are in, and put together in the end: a page
 * is of what was mapped there last, by the process or, if nothing was, by the one that it was forked from. That is wrong for the
 * earlier ones of what was mapped at one address one after the other, by a process or by two with one number, and for a page that
 * two share; to ask for the hottest first it is near enough, and it needs no sorting by time.
 */
#ifndef BID_PERFDATA_SAMPLES_H
#define BID_PERFDATA_SAMPLES_H

#include "perfdata/dsos.h"

/* More than these are not looked at. They are 32, 64 and 24 MiB. */
#define BID_PAGES_MAX (1u << 20)
#define BID_MAPS_MAX  (2u << 20)
#define BID_FORKS_MAX (2u << 20)

struct bid_page;
struct bid_map;
struct bid_fork;

struct bid_samples {
	bool wanted; /* else nothing here is used */
	/* Where things are in a sample: 0 as long as that is not known, and for good if it is not the same in all. */
	size_t ip_at, pid_at;
	bool mixed;
	uint64_t seen; /* samples */
	uint64_t placed; /* those of something that has a name */
	uint64_t key[2]; /* of the hash */
	struct bid_page *pages; /* owned; open addressing; room is a power of two, or 0 */
	size_t n_pages, room_pages;
	struct bid_map *maps; /* owned, in the order of the recording */
	size_t n_maps, room_maps;
	struct bid_fork *forks; /* owned, likewise */
	size_t n_forks, room_forks;
};

/* Returns 0, or as getrandom(2). */
int bid_samples_init(struct bid_samples *samples);

void bid_samples_release(struct bid_samples *samples);

/* There are samples of this type: PERF_SAMPLE_* bits, linux/perf_event.h. */
void bid_samples_type(struct bid_samples *samples, uint64_t type);

/* A sample in that mode, by a process that is of no matter to the kernel's mode. Returns 0 or -ENOMEM. */
int bid_samples_add(struct bid_samples *samples, enum bid_perfdata_mode mode, uint32_t pid, uint64_t ip);

/* @dso is NULL if it is nothing that has a name, and lives longer than @samples. Returns 0 or -ENOMEM. */
int bid_samples_map(struct bid_samples *samples, enum bid_perfdata_mode mode, uint32_t pid, uint64_t start, uint64_t len,
		    struct bid_dso *dso);

/* Process @pid has what @parent has mapped. Returns 0 or -ENOMEM. */
int bid_samples_fork(struct bid_samples *samples, uint32_t pid, uint32_t parent);

/* place.c: put all of that together, once. Tells each dso of its samples. Returns 0 or -ENOMEM. */
int bid_samples_place(struct bid_samples *samples);

/* What both files know. */

/* An address space: a process's, the kernel's, or that of all guests together. */
typedef uint32_t bid_space;

struct bid_page {
	uint64_t number;
	bid_space space;
	uint32_t samples; /* 0: there is none in this slot; stays at its maximum */
};

struct bid_map {
	uint64_t start, end;
	struct bid_dso *dso; /* borrowed; may be NULL */
	bid_space space;
	uint32_t when; /* a later one has a larger number */
};

struct bid_fork {
	bid_space space, parent;
	uint32_t when;
};

#define BID_PAGE_SHIFT 12 /* of the smallest pages that there are; the others are multiples of them */

#endif
