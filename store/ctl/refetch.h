/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_CTL_REFETCH_H
#define BID_CTL_REFETCH_H

#include "api/broker.h"

/*
 * Download the artifact of @request through @broker, and wait for the result. For a command without other work in the meantime.
 * Returns 0, or as bid_broker_fetch().
 */
int ctl_refetch(struct bid_broker *broker, const struct bid_request *request);

#endif
