/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A loop: a server requests from this broker the artifact that the broker requests from it. Examples are two mounts that name each
 * other, or a mount and a debuginfod. Then each waits for the other's response.
 * A request does not show its origin, and the kernel holds back a second request for a name. Therefore the broker sends a probe to
 * a server without a response for hedge_ms: a request for an id made for this server. The arrival of that id here proves that the
 * server leads back. Its attempts without a header then end as unreachable at once, and those of the next LOOP_KNOWN_MS after
 * hedge_ms.
 *
 * bid_loop_init()
 * bid_loop_look()		at each hedge; sends the probe
 * bid_loop_recognise()	at each lookup
 */
#ifndef BID_BROKER_REQUEST_LOOP_H
#define BID_BROKER_REQUEST_LOOP_H

#include "broker/broker_types.h"

/* Make the id of @loop. Returns 0 or a negative errno. */
int bid_loop_init(struct bid_loop *loop, size_t server);

/* Send the probes that are due. Returns the bits of the candidates without a response because of a loop. Under the lock. */
uint64_t bid_loop_look(struct bid_download *download);

/* Returns whether @id is the id of a server, which therefore leads back. From any thread, without the lock. */
bool bid_loop_recognise(struct bid_broker *broker, const struct bid_id *id);

#endif
