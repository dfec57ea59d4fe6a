// SPDX-License-Identifier: LGPL-2.1-or-later
#include "perfdata/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/array.h"
#include "perfdata/sip.h"

/* linux/perf_event.h, enum perf_event_sample_format: the process, and the fields that may precede it */
enum { TYPE_IP = 1 << 0, TYPE_TID = 1 << 1, TYPE_IDENTIFIER = 1 << 16 };

enum { FIRST = 8, WORD = 8 };

enum { ROOM_MIN = 4096 };

static const bid_space kernel = UINT32_MAX, guests = UINT32_MAX - 1;

static bid_space space_of(enum bid_perfdata_mode mode, uint32_t pid)
{
	return mode == BID_PERFDATA_KERNEL ? kernel : mode == BID_PERFDATA_GUEST ? guests : pid;
}

int bid_samples_init(struct bid_samples *samples)
{
	*samples = (struct bid_samples){ .wanted = true };
	return getrandom(samples->key, sizeof(samples->key), 0) < 0 ? -errno : 0;
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

static struct bid_page *slot_of(const struct bid_samples *samples, struct bid_page *pages, size_t room, bid_space space,
				uint64_t number)
{
	struct bid_sip sip = bid_sip_begin(samples->key);
	size_t at;

	bid_sip_word(&sip, number);
	bid_sip_word(&sip, space);
	at = bid_sip_end(&sip) & (room - 1);
	while (pages[at].samples > 0 && (pages[at].number != number || pages[at].space != space))
		at = (at + 1) & (room - 1);
	return &pages[at];
}

static int grow(struct bid_samples *samples)
{
	size_t room = samples->room_pages ? 2 * samples->room_pages : ROOM_MIN;
	struct bid_page *pages = calloc(room, sizeof(*pages));

	if (!pages)
		return -ENOMEM;
	for (size_t i = 0; i < samples->room_pages; i++) {
		const struct bid_page *page = &samples->pages[i];

		if (page->samples > 0)
			*slot_of(samples, pages, room, page->space, page->number) = *page;
	}
	free(samples->pages);
	samples->pages = pages;
	samples->room_pages = room;
	return 0;
}

int bid_samples_add(struct bid_samples *samples, enum bid_perfdata_mode mode, uint32_t pid, uint64_t ip)
{
	struct bid_page *page;

	samples->seen++;
	if (2 * samples->n_pages >= samples->room_pages && samples->n_pages < BID_PAGES_MAX) {
		int r = grow(samples);

		if (r < 0)
			return r;
	}
	page = slot_of(samples, samples->pages, samples->room_pages, space_of(mode, pid), ip >> BID_PAGE_SHIFT);
	if (page->samples == 0) {
		if (samples->n_pages == BID_PAGES_MAX)
			return 0;
		samples->n_pages++;
		*page = (struct bid_page){ .number = ip >> BID_PAGE_SHIFT, .space = space_of(mode, pid) };
	}
	page->samples += page->samples < UINT32_MAX;
	return 0;
}

int bid_samples_map(struct bid_samples *samples, enum bid_perfdata_mode mode, uint32_t pid, uint64_t start, uint64_t len,
		    struct bid_dso *dso)
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
		.when = (uint32_t)samples->n_maps,
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
