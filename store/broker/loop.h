/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loops: a source may ask this broker for the artifact that the broker asks it for, as two mounts do that name each other, or a
 * mount and a debuginfod. Then neither answers before the other. A request does not tell where it comes from, and the kernel
 * keeps a second request for a name to itself. Therefore the broker also asks a source that says nothing for LOOP_HEDGES times
 * hedge_ms for an id that it made for that source. If a request for the id arrives here, the source leads back. For LOOP_KNOWN_MS,
 * each attempt of the source that has no header by then ends as unreachable. A source that leads back still delivers its artifacts.
 */
#ifndef BID_BROKER_LOOP_H
#define BID_BROKER_LOOP_H

#include "broker/broker.h"

#define BID_LOOP_NONE SIZE_MAX

/* Make the id of @loop. Returns 0 or a negative errno. */
int bid_loop_init(struct bid_loop *loop, size_t source);

/*
 * Set in @ret_looped the bits of the candidates that a loop keeps from a response. Returns the index of a source for
 * bid_loop_probe(), or BID_LOOP_NONE. Under the lock.
 */
size_t bid_loop_look(struct bid_download *download, uint64_t *ret_looped);

/* Request the id of the source @source. Without the lock. */
void bid_loop_probe(struct bid_broker *broker, size_t source);

/* Return whether @id is the id of a source, which leads back then. From any thread. */
bool bid_loop_recognise(struct bid_broker *broker, const struct bid_id *id);

#endif
