// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/escape.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { LONGEST = 6 }; /* characters for one byte: "\u007F" */

static unsigned code_point(const unsigned char *bytes, size_t len)
{
	unsigned code = len == 1 ? bytes[0] : bytes[0] & (0xffu >> (len + 1));

	for (size_t i = 1; i < len; i++)
		code = code << 6 | (bytes[i] & 0x3f);
	return code;
}

static bool is_obeyed(unsigned code, enum bid_escape_form form)
{
	if (code < ' ')
		return form == BID_ESCAPE_TEXT;
	return (code >= 0x7f && code <= 0x9f) || code == 0x61c || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

char *bid_escape(const char *text, enum bid_escape_form form)
{
	char *copy = malloc(strlen(text) * LONGEST + 1), *out = copy;

	while (copy && *text) {
		const unsigned char *bytes = (const unsigned char *)text;
		size_t len = bid_utf8_length(text);
		/* a byte that is no UTF-8 is a control character to a terminal of 8 bits, perhaps */
		unsigned code = len > 0 ? code_point(bytes, len) : bytes[0];

		len = len > 0 ? len : 1;
		if (!is_obeyed(code, form)) {
			memcpy(out, text, len);
			out += len;
		} else if (form == BID_ESCAPE_JSON) {
			out += snprintf(out, LONGEST + 1, "\\u%04X", code);
		} else {
			for (size_t i = 0; i < len; i++)
				out += snprintf(out, LONGEST + 1, "\\x%02x", bytes[i]);
		}
		text += len;
	}
	if (copy)
		*out = '\0';
	return copy;
}
