/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the files of records are called: "xx/REST.SUFFIX", by the id and what of it they are (docs/FORMAT.md). */
#ifndef BID_DISK_RECORD_NAME_H
#define BID_DISK_RECORD_NAME_H

#include <bid/store.h>

enum { BID_RECORD_SUFFIX_MAX = 32 }; /* bytes, with the end */

/* "elf", "source-0123456789abcdef": by the hash of its detail, which may be longer than a name can be. Returns @buf. */
const char *bid_record_suffix(const struct bid_request *request, char buf[static BID_RECORD_SUFFIX_MAX]);

/* What the record "xx/NAME" is of, by its name alone: of a piece all but the detail, which only the record itself tells. */
bool bid_record_parse_name(const char *first, const char *name, struct bid_request *ret_request);

/* Is "xx/NAME" the name of the record of @request, of whose id it is? */
bool bid_record_has_name(const struct bid_request *request, const char *name);

#endif
