/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_TESTS_SOURCE_MEMORY_H
#define BID_TESTS_SOURCE_MEMORY_H

#include "api/source.h"

/* Create a source in memory. It delivers its content from inside start(). */
int source_memory_new(const char *name, struct bid_source **ret_source);

/* Let the source deliver a copy of @len bytes at @data for @request. */
int source_memory_put(struct bid_source *source, const struct bid_request *request, const void *data, size_t len);

/* Set the outcome of all other requests; BID_OUTCOME_ABSENT at first. */
void source_memory_set_default(struct bid_source *source, enum bid_outcome outcome);

/* Return the number of calls of start(). */
unsigned source_memory_asked(const struct bid_source *source);

#endif
