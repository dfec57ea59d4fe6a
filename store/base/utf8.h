/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_BASE_UTF8_H
#define BID_BASE_UTF8_H

#include <stddef.h>

/* The length of the well-formed sequence that begins at @text (Unicode, table 3-7), or 0. */
size_t bid_utf8_length(const char *text);

/* Copy @bytes as UTF-8, with U+FFFD for invalid sequences. The caller frees it; NULL for want of memory. */
char *bid_utf8(const char *bytes);

#endif
