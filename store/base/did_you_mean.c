// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/did_you_mean.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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
