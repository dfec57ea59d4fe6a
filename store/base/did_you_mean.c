// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/did_you_mean.h"

#include <stddef.h>
#include <string.h>

enum { NAME_MAX_LEN = 32 };

static unsigned min_of(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Compute the edit distance of two words of NAME_MAX_LEN letters at most: letters replaced, added, left out, or swapped. */
static unsigned distance(const char *one, const char *other)
{
	unsigned rows[NAME_MAX_LEN + 1][NAME_MAX_LEN + 1], len = (unsigned)strlen(other), i;

	for (unsigned j = 0; j <= len; j++)
		rows[0][j] = j;
	for (i = 1; one[i - 1]; i++) {
		rows[i][0] = i;
		for (unsigned j = 1; j <= len; j++) {
			unsigned least = rows[i - 1][j - 1] + (one[i - 1] != other[j - 1]);

			least = min_of(least, min_of(rows[i - 1][j], rows[i][j - 1]) + 1);
			if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1])
				least = min_of(least, rows[i - 2][j - 2] + 1);
			rows[i][j] = least;
		}
	}
	return rows[i - 1][len];
}

const char *bid_did_you_mean(const char *word, const char *const *names)
{
	size_t len = strlen(word);
	const char *closest = NULL;
	unsigned least = 0;

	if (len == 0 || len > NAME_MAX_LEN)
		return NULL;
	for (; *names; names++) {
		unsigned far = strlen(*names) > NAME_MAX_LEN	 ? NAME_MAX_LEN
			       : strncmp(*names, word, len) == 0 ? 0
								 : distance(word, *names);

		if (far <= (len + 2) / 3 && (!closest || far < least)) {
			closest = *names;
			least = far;
		}
	}
	return closest;
}
