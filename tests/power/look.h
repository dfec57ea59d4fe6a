/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The store after a power cut. */
#ifndef BID_POWER_LOOK_H
#define BID_POWER_LOOK_H

#include "worker.h"

struct totals {
	unsigned acknowledged, together, lost, torn, findings, present;
};

/* Add to @totals the state of the @n objects of @acks, and of the store. Returns 0 or a negative errno. */
int look(const struct power_trial *trial, const struct acknowledgement *acks, size_t n, struct totals *totals);

#endif
