// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/closest.h"

#include <stddef.h>
#include <string.h>

enum { NAME_MAX_LEN = 32 };

static unsigned min_of(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Compute the edit distance (Levenshtein) of two words of NAME_MAX_LEN letters at most. */
static unsigned distance(const char *one, const char *other)
{
	unsigned row[NAME_MAX_LEN + 1], len = (unsigned)strlen(other);

	for (unsigned j = 0; j <= len; j++)
		row[j] = j;
	for (unsigned i = 0; one[i]; i++) {
		unsigned corner = row[0];

		row[0] = i + 1;
		for (unsigned j = 0; j < len; j++) {
			unsigned replaced = corner + (one[i] != other[j]);

			corner = row[j + 1];
			row[j + 1] = min_of(replaced, min_of(row[j], corner) + 1);
		}
	}
	return row[len];
}

const char *ctl_closest(const char *word, const char *const *names)
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
