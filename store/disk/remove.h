/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_DISK_REMOVE_H
#define BID_DISK_REMOVE_H

#include <stdbool.h>

#include "api/store.h"

/* Remove the records of @disk_id for @kinds; with @last, also its other files in our folder. */
void bid_remove_records(struct bid_store *store, const struct bid_id *disk_id, unsigned kinds, bool last);

#endif
