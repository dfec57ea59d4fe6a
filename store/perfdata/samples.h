/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The samples and the mappings at their addresses. A recording has its records by CPU, not by time: a sample may precede its
 * mapping, by as much as the whole recording. The reader therefore collects both, samples by page, and joins them at the end. A
 * page belongs to its last mapping by the process or, without one, by the process it was forked from. This is wrong for earlier
 * mappings of an address by one process, or by two with one number, and for a page that two mappings share. It suffices to fetch
 * the hottest builds first, and needs no sorting by time.
 */
#ifndef BID_PERFDATA_SAMPLES_H
#define BID_PERFDATA_SAMPLES_H

#include "perfdata/dsos.h"

/* Limits; further ones are skipped. The tables take 32, 64 and 24 MiB. */
#define BID_PAGES_MAX (1u << 20)
#define BID_MAPS_MAX  (2u << 20)
#define BID_FORKS_MAX (2u << 20)

struct bid_page;
struct bid_map;
struct bid_fork;

struct bid_samples {
	bool wanted; /* all else is unused without it */
	/* Offsets in a sample: 0 while unknown, and for good if samples have different layouts. */
	size_t ip_at, pid_at;
	bool mixed;
	uint64_t seen; /* samples */
	uint64_t placed; /* samples of code with a name */
	uint64_t key[2]; /* key of the hash */
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

/* Count a sample in @mode by the process @pid, which does not matter in the kernel's mode. Returns 0 or -ENOMEM. */
int bid_samples_add(struct bid_samples *samples, enum bid_perfdata_mode mode, uint32_t pid, uint64_t ip);

/* Add a mapping. @dso is NULL for memory without a name, and lives longer than @samples. Returns 0 or -ENOMEM. */
int bid_samples_map(struct bid_samples *samples, enum bid_perfdata_mode mode, uint32_t pid, uint64_t start, uint64_t len,
		    struct bid_dso *dso);

/* Give the process @pid the mappings of @parent. Returns 0 or -ENOMEM. */
int bid_samples_fork(struct bid_samples *samples, uint32_t pid, uint32_t parent);

/* attribute_samples.c: join samples and mappings, once, and count the samples of each dso. Returns 0 or -ENOMEM. */
int bid_samples_place(struct bid_samples *samples);

/* shared by both files */

/* an address space: of a process, of the kernel, or of all guests together */
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

#define BID_PAGE_SHIFT 12 /* smallest possible page; other sizes are multiples */

#endif
