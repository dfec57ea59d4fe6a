// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The length of the well-formed sequence that begins at @text (Unicode, table 3-7), or 0. */
static size_t utf8_length(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned char low = 0x80, high = 0xbf;
	size_t len;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	return len;
}

char *bid_utf8(const char *bytes)
{
	static const char replacement[] = "\xef\xbf\xbd";
	char *text = malloc(strlen(bytes) * (sizeof(replacement) - 1) + 1);
	char *out = text;

	if (!text)
		return NULL;
	while (*bytes) {
		size_t len = utf8_length(bytes);

		if (len) {
			memcpy(out, bytes, len);
			out += len;
			bytes += len;
		} else {
			memcpy(out, replacement, sizeof(replacement) - 1);
			out += sizeof(replacement) - 1;
			bytes++;
		}
	}
	*out = '\0';
	return text;
}

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
		size_t len = utf8_length(text);
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

/* Is one letter replaced, added or left out, or are two neighbours swapped? */
static bool differs_once(const char *one, const char *other)
{
	while (*one && *one == *other) {
		one++;
		other++;
	}
	if ((*one && strcmp(one + 1, other) == 0) || (*other && strcmp(one, other + 1) == 0))
		return true;
	if (!*one || !*other)
		return false;
	return strcmp(one + 1, other + 1) == 0 || (one[0] == other[1] && one[1] == other[0] && strcmp(one + 2, other + 2) == 0);
}

const char *bid_did_you_mean(const char *word, const char *const *names)
{
	const char *close = NULL;

	for (; *word && *names; names++) {
		if (strncmp(*names, word, strlen(word)) == 0)
			return *names;
		if (!close && differs_once(word, *names))
			close = *names;
	}
	return close;
}
