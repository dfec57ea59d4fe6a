// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/size.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ctl_parse_size(const char *text, uint64_t *ret_size)
{
	static const char units[] = "KMGT";
	unsigned long long n;
	const char *unit;
	unsigned shift = 0;
	char *end;

	/* strtoull(3) takes blanks and signs, too */
	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	n = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
	}
	if (*end || errno || n == 0 || n > (uint64_t)INT64_MAX >> shift)
		return -EINVAL;
	*ret_size = n << shift;
	return 0;
}
