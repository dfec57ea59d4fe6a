/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Requests and kinds, beyond <bid/artifact.h>. */
#ifndef BID_API_ARTIFACT_H
#define BID_API_ARTIFACT_H

#include <stdbool.h>

#include <bid/artifact.h>

#include "api/detail.h"

/* Has @request an id and a known kind, and a detail if and only if the kind needs one? */
bool bid_request_valid(const struct bid_request *request);

/* Copy @request with a reference to its detail. The caller gives the copy back with bid_request_release(). */
struct bid_request bid_request_keep(const struct bid_request *request);

void bid_request_release(struct bid_request *request);

/* The name of the artifact's file in perf's store: as bid_kind_name(), but "debug". Static. */
const char *bid_kind_store_name(enum bid_kind kind);

/* Can a source have artifacts of this kind, or only the local store? */
bool bid_kind_fetchable(enum bid_kind kind);

/* Is the artifact an ELF file? The store checks its id. */
bool bid_kind_is_elf(enum bid_kind kind);

/* Does a request for this kind need a detail? */
bool bid_kind_has_detail(enum bid_kind kind);

#endif
