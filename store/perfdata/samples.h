/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The samples and the mappings at their addresses. A recording has its records by CPU, not by time: a sample may precede its
 * mapping, by as much as the whole recording. The reader therefore collects both, samples by page, and joins them at the end. A
 * page belongs to its last mapping by the process or, without one, by the process it was forked from. This is wrong for earlier
 * mappings of an address by one process, or by two with one number, and for a page that two mappings share. It suffices to fetch
 * the hottest builds first, and needs no sorting by time.
 *
 * Calling sequence: bid_samples_type(), bid_samples_add(), bid_samples_map() and bid_samples_fork() in any order, then
 * bid_samples_place() once. bid_samples_release() in any case.
 */
#ifndef BID_PERFDATA_SAMPLES_H
#define BID_PERFDATA_SAMPLES_H

#include "perfdata/dsos.h"

/* Limits. Further mappings and forks are skipped, and samples after so many pages. The tables take 32, 64 and 24 MiB. */
#define BID_PAGES_MAX (1u << 20)
#define BID_MAPS_MAX  (2u << 20)
#define BID_FORKS_MAX (2u << 20)

#define BID_PAGES_RECENT 1024

struct bid_page;
struct bid_map;
struct bid_fork;

/* All zero, except @wanted, is empty. */
struct bid_samples {
	bool wanted; /* all else is unused without it */
	/* Offsets in a sample: 0 while unknown, and for good if samples have different layouts. */
	size_t ip_at, pid_at;
	bool mixed;
	bool full; /* there are BID_PAGES_MAX pages */
	uint64_t seen; /* samples */
	uint64_t placed; /* samples of code with a name */
	struct bid_page *pages; /* owned; with repetitions until they are merged */
	size_t n_pages, room_pages;
	uint32_t recent[BID_PAGES_RECENT]; /* index of a recent page, by its number; checked before use */
	struct bid_map *maps; /* owned, in the order of the recording */
	size_t n_maps, room_maps;
	struct bid_fork *forks; /* owned, likewise */
	size_t n_forks, room_forks;
};

void bid_samples_release(struct bid_samples *samples);

/* There are samples of this type: PERF_SAMPLE_* bits, linux/perf_event.h. */
void bid_samples_type(struct bid_samples *samples, uint64_t type);

/* Count a sample in @mode by the process @pid, which does not matter in the kernel's mode. Returns 0 or -ENOMEM. */
int bid_samples_add(struct bid_samples *samples, enum bid_perfdata_mode mode, uint32_t pid, uint64_t ip);

/* Add a mapping. @dso is NULL for memory without a name, and lives longer than @samples. Returns 0 or -ENOMEM. */
int bid_samples_map(struct bid_samples *samples, enum bid_perfdata_mode mode, uint32_t pid, uint64_t start, uint64_t len,
		    struct bid_perfdata_dso *dso);

/* Give the process @pid the mappings of @parent. Returns 0 or -ENOMEM. */
int bid_samples_fork(struct bid_samples *samples, uint32_t pid, uint32_t parent);

/* Join samples and mappings, and count the samples of each dso. Returns 0 or -ENOMEM. */
int bid_samples_place(struct bid_samples *samples);

#endif
