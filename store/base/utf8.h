/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_BASE_UTF8_H
#define BID_BASE_UTF8_H

/*
 * A copy of @bytes as UTF-8, for formats that want text: what is none is replaced by U+FFFD. The caller frees it; NULL for want of
 * memory.
 */
char *bid_utf8(const char *bytes);

#endif
