/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_BASE_CONTROL_H
#define BID_BASE_CONTROL_H

#include <stddef.h>

/*
 * Does @text, which may come from anywhere, begin with what a terminal obeys instead of showing it? Returns how many bytes that is:
 * one of ASCII's control characters, two of the others in UTF-8 (U+0080 to U+009F, of which one begins sequences as ESC does), 0
 * for anything else.
 */
static inline size_t bid_control(const char *text)
{
	const unsigned char *bytes = (const unsigned char *)text;

	if (bytes[0] == 0xc2 && bytes[1] >= 0x80 && bytes[1] <= 0x9f)
		return 2;
	return (bytes[0] < ' ' && bytes[0] != '\0') || bytes[0] == '\177';
}

#endif
