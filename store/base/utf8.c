// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

size_t bid_utf8_length(const char *text)
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
		size_t len = bid_utf8_length(bytes);

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
