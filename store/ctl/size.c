// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/size.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Return the exponent of 1024 for @unit: 0 for "" and "B", 1 for "K" and "KiB". Returns -1 for other text. */
static int exponent_of(const char *unit)
{
	static const char letters[] = "BKMGT";
	const char *letter = *unit ? strchr(letters, *unit) : letters;

	if (!letter || (*unit && unit[1] && (letter == letters || strcmp(unit + 1, "iB") != 0)))
		return -1;
	return (int)(letter - letters);
}

int ctl_parse_size(const char *text, struct ctl_size *ret_size)
{
	size_t digits = strspn(text, "0123456789"), len = digits;
	double n = strtod(text, NULL);
	int exponent;

	if (text[len] == '.')
		len += 1 + strspn(text + len + 1, "0123456789");
	/* a fraction of a byte, or a number that strtod(3) parses in another way */
	if (digits == 0 || digits > 20 || text[len - 1] == '.')
		return -EINVAL;
	if (strcmp(text + len, "%") == 0) {
		*ret_size = (struct ctl_size){ .percent = n };
		return n > 0 && n <= 100 ? 0 : -EINVAL;
	}
	exponent = exponent_of(text + len);
	for (int i = 0; i < exponent; i++)
		n *= 1024;
	if (exponent < 0 || n < 1 || n >= (double)INT64_MAX)
		return -EINVAL;
	*ret_size = (struct ctl_size){ .bytes = (uint64_t)n };
	return 0;
}

uint64_t ctl_size_of(const struct ctl_size *size, uint64_t total)
{
	return size->percent > 0 ? (uint64_t)((double)total / 100 * size->percent) : size->bytes;
}
