/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_TESTS_SOURCE_MEMORY_H
#define BID_TESTS_SOURCE_MEMORY_H

#include "api/source.h"

/*
 * A source in memory. It answers from inside start(), with what was put into it.
 */
int source_memory_new(const char *name, struct bid_source **ret_source);

/* Let it deliver a copy of @len bytes at @data for @request. */
int source_memory_put(struct bid_source *source, const struct bid_request *request, const void *data, size_t len);

/* What it says of everything else; BID_OUTCOME_ABSENT at first. */
void source_memory_set_default(struct bid_source *source, enum bid_outcome outcome);

/* How many times start() was called. */
unsigned source_memory_asked(const struct bid_source *source);

#endif
