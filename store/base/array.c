// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>

enum { FIRST = 16 };

void *bid_array_reserved(void *array, size_t n, size_t more, size_t *room, size_t size)
{
	size_t wanted = *room ? *room : FIRST;
	void *larger;

	if (array && more <= *room - n)
		return array;
	while (wanted - n < more) {
		if (wanted > SIZE_MAX / 2)
			return NULL;
		wanted *= 2;
	}
	larger = reallocarray(array, wanted, size);
	if (larger)
		*room = wanted;
	return larger;
}

int bid_strings_append(char ***strings, char *string)
{
	char **longer = NULL;
	size_t n = 0;

	while (*strings && (*strings)[n])
		n++;
	if (string)
		longer = reallocarray(*strings, n + 2, sizeof(*longer));
	if (!longer) {
		free(string);
		return -ENOMEM;
	}
	longer[n] = string;
	longer[n + 1] = NULL;
	*strings = longer;
	return 0;
}

void bid_strings_free(char **strings)
{
	for (char **string = strings; string && *string; string++)
		free(*string);
	free(strings);
}
