/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_CTL_REFETCH_H
#define BID_CTL_REFETCH_H

#include "api/broker.h"

/*
 * Bring the artifact of @request here through @broker, and wait until that is done or cannot be. For a command that has nothing
 * else to do meanwhile. Returns 0 or as bid_broker_fetch() answers.
 */
int ctl_refetch(struct bid_broker *broker, const struct bid_request *request);

#endif
