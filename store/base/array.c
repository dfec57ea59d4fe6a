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
