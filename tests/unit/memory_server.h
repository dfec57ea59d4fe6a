/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_TESTS_MEMORY_SERVER_H
#define BID_TESTS_MEMORY_SERVER_H

#include "api/server.h"

/* Create a server in memory. It delivers its content from inside start(). */
int memory_server_new(const char *name, struct bid_server **ret_server);

/* Let the server deliver a copy of @len bytes at @data for @artifact. */
int memory_server_put(struct bid_server *server, const struct bid_artifact *artifact, const void *data, size_t len);

/* Set the outcome of all other requests; BID_OUTCOME_ABSENT at first. */
void memory_server_set_default(struct bid_server *server, enum bid_outcome outcome);

/* Return the number of calls of start(). */
unsigned memory_server_requests(const struct bid_server *server);

#endif
