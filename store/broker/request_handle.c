// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/request_handle.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define FIRST_SLOTS 64
#define MAX_SLOTS   (1u << 24)

struct bid_handle_slot {
	struct bid_waiter *waiter; /* NULL if free */
	uint32_t generation;
	uint32_t next_free;
};

/* Returns the slot: the lower half is the index plus one, so no handle is zero. */
static uint32_t slot_of(uint64_t handle)
{
	return (uint32_t)handle - 1;
}

static int grow(struct bid_handles *handles)
{
	uint32_t n_slots = handles->n_slots ? handles->n_slots * 2 : FIRST_SLOTS;
	struct bid_handle_slot *slots;

	if (n_slots > MAX_SLOTS)
		return -EMFILE;
	slots = reallocarray(handles->slots, n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t i = handles->n_slots; i < n_slots; i++)
		slots[i] = (struct bid_handle_slot){ .next_free = i + 1 };
	handles->slots = slots;
	handles->n_slots = n_slots;
	return 0;
}

int bid_handles_add(struct bid_handles *handles, struct bid_waiter *waiter)
{
	struct bid_handle_slot *slot;

	if (handles->first_free == handles->n_slots) {
		int r = grow(handles);

		if (r < 0)
			return r;
	}
	slot = &handles->slots[handles->first_free];
	waiter->handle = (uint64_t)slot->generation << 32 | (handles->first_free + 1);
	handles->first_free = slot->next_free;
	slot->waiter = waiter;
	return 0;
}

struct bid_waiter *bid_handles_get(const struct bid_handles *handles, uint64_t handle)
{
	uint32_t index = slot_of(handle);

	if (index >= handles->n_slots || handles->slots[index].generation != handle >> 32)
		return NULL;
	return handles->slots[index].waiter;
}

struct bid_waiter *bid_handles_next(const struct bid_handles *handles, uint32_t *cursor)
{
	while (*cursor < handles->n_slots) {
		struct bid_waiter *waiter = handles->slots[(*cursor)++].waiter;

		if (waiter)
			return waiter;
	}
	return NULL;
}

void bid_handles_take(struct bid_handles *handles, struct bid_waiter *waiter)
{
	uint32_t index = slot_of(waiter->handle);
	struct bid_handle_slot *slot = &handles->slots[index];

	assert(slot->waiter == waiter);
	slot->waiter = NULL;
	slot->generation++;
	slot->next_free = handles->first_free;
	handles->first_free = index;
}

void bid_handles_release(struct bid_handles *handles)
{
	free(handles->slots);
	*handles = (struct bid_handles){ 0 };
}
