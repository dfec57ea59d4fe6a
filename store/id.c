// SPDX-License-Identifier: LGPL-2.1-or-later
/* Build-ids: parse, format, compare with aliases. */
#include <bid/id.h>

#include <errno.h>
#include <string.h>

enum { HEX = 0x10 };

/* The value of a character as a digit, and HEX. The digits of an id are random: branches on them would be mispredicted. */
static const uint8_t digit_values[256] = {
	['0'] = HEX,	  ['1'] = HEX | 1,  ['2'] = HEX | 2,  ['3'] = HEX | 3,	['4'] = HEX | 4,  ['5'] = HEX | 5,
	['6'] = HEX | 6,  ['7'] = HEX | 7,  ['8'] = HEX | 8,  ['9'] = HEX | 9,	['a'] = HEX | 10, ['b'] = HEX | 11,
	['c'] = HEX | 12, ['d'] = HEX | 13, ['e'] = HEX | 14, ['f'] = HEX | 15,
};

int bid_id_parse(const char *hex, size_t n, struct bid_id *ret_id)
{
	struct bid_id id = { 0 };
	unsigned all = HEX;

	if (n < 2 || n % 2 || n > 2 * BID_ID_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i += 2) {
		unsigned high = digit_values[(uint8_t)hex[i]], low = digit_values[(uint8_t)hex[i + 1]];

		all &= high & low;
		id.bytes[i / 2] = (uint8_t)(high << 4 | (low & 15));
	}
	if (!all)
		return -EINVAL;
	id.len = (uint8_t)(n / 2);
	*ret_id = id;
	return 0;
}

int bid_id_parse_str(const char *hex, struct bid_id *ret_id)
{
	return bid_id_parse(hex, strnlen(hex, BID_ID_HEX_MAX), ret_id);
}

const char *bid_id_lower(const char *text, char buf[static BID_ID_HEX_MAX + 1])
{
	size_t n = strnlen(text, BID_ID_HEX_MAX);

	for (size_t i = 0; i < n; i++)
		buf[i] = (char)(text[i] >= 'A' && text[i] <= 'F' ? text[i] - 'A' + 'a' : text[i]);
	buf[n] = '\0';
	return buf;
}

int bid_id_from_bytes(const void *bytes, size_t n, struct bid_id *ret_id)
{
	struct bid_id id = { 0 };

	if (n == 0 || n > BID_ID_MAX)
		return -EINVAL;
	id.len = (uint8_t)n;
	memcpy(id.bytes, bytes, n);
	*ret_id = id;
	return 0;
}

const char *bid_id_format(const struct bid_id *id, char buf[static BID_ID_HEX_MAX])
{
	static const char digits[] = "0123456789abcdef";
	char *out = buf;

	for (size_t i = 0; i < id->len; i++) {
		*out++ = digits[id->bytes[i] >> 4];
		*out++ = digits[id->bytes[i] & 15];
	}
	*out = '\0';
	return buf;
}

bool bid_id_equal(const struct bid_id *a, const struct bid_id *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

bool bid_id_answers(const struct bid_id *carried, const struct bid_id *requested)
{
	if (carried->len == 0 || requested->len == 0)
		return false;
	if (carried->len == requested->len)
		return bid_id_equal(carried, requested);
	if (carried->len > requested->len)
		return requested->len == BID_ID_PERF_MAX && memcmp(carried->bytes, requested->bytes, requested->len) == 0;

	if (requested->len > BID_ID_PERF_MAX || memcmp(carried->bytes, requested->bytes, carried->len) != 0)
		return false;
	for (size_t i = carried->len; i < requested->len; i++)
		if (requested->bytes[i] != 0)
			return false;
	return true;
}
