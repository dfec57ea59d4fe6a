/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_CTL_GET_MANY_H
#define BID_CTL_GET_MANY_H

#include "ctl/needs.h"

/*
 * Bring into @store all that is named in @from: of the given @kind, or debuginfo and ELF files if that is BID_KIND_NONE. What is at
 * hand is added, the rest is fetched, several at a time. Reports what came of it, and returns what to exit with.
 */
enum ctl_status ctl_get_many(const struct ctl *ctl, struct bid_store *store, enum ctl_needs_from from, enum bid_kind kind);

#endif
