// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker/handle.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define FIRST_SLOTS 64
#define MAX_SLOTS   (1u << 24)

struct bid_ticket_slot {
	struct bid_waiter *waiter; /* NULL if free */
	uint32_t generation;
	uint32_t next_free;
};

/* Returns the slot: the lower half is the index plus one, so no handle is zero. */
static uint32_t slot_of(uint64_t ticket)
{
	return (uint32_t)ticket - 1;
}

static int grow(struct bid_tickets *tickets)
{
	uint32_t n_slots = tickets->n_slots ? tickets->n_slots * 2 : FIRST_SLOTS;
	struct bid_ticket_slot *slots;

	if (n_slots > MAX_SLOTS)
		return -EMFILE;
	slots = reallocarray(tickets->slots, n_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (uint32_t i = tickets->n_slots; i < n_slots; i++)
		slots[i] = (struct bid_ticket_slot){ .next_free = i + 1 };
	tickets->slots = slots;
	tickets->n_slots = n_slots;
	return 0;
}

int bid_tickets_add(struct bid_tickets *tickets, struct bid_waiter *waiter)
{
	struct bid_ticket_slot *slot;

	if (tickets->first_free == tickets->n_slots) {
		int r = grow(tickets);

		if (r < 0)
			return r;
	}
	slot = &tickets->slots[tickets->first_free];
	waiter->ticket = (uint64_t)slot->generation << 32 | (tickets->first_free + 1);
	tickets->first_free = slot->next_free;
	slot->waiter = waiter;
	return 0;
}

struct bid_waiter *bid_tickets_get(const struct bid_tickets *tickets, uint64_t ticket)
{
	uint32_t index = slot_of(ticket);

	if (index >= tickets->n_slots || tickets->slots[index].generation != ticket >> 32)
		return NULL;
	return tickets->slots[index].waiter;
}

struct bid_waiter *bid_tickets_next(const struct bid_tickets *tickets, uint32_t *cursor)
{
	while (*cursor < tickets->n_slots) {
		struct bid_waiter *waiter = tickets->slots[(*cursor)++].waiter;

		if (waiter)
			return waiter;
	}
	return NULL;
}

void bid_tickets_take(struct bid_tickets *tickets, struct bid_waiter *waiter)
{
	uint32_t index = slot_of(waiter->ticket);
	struct bid_ticket_slot *slot = &tickets->slots[index];

	assert(slot->waiter == waiter);
	slot->waiter = NULL;
	slot->generation++;
	slot->next_free = tickets->first_free;
	tickets->first_free = index;
}

void bid_tickets_release(struct bid_tickets *tickets)
{
	free(tickets->slots);
	*tickets = (struct bid_tickets){ 0 };
}
