/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arrays that grow at their end. */
#ifndef BID_BASE_ARRAY_H
#define BID_BASE_ARRAY_H

#include <errno.h>
#include <stddef.h>

/*
 * Body of bid_array_reserve(), for elements of @size bytes. Returns the array, which may have moved; or NULL, and it is as it was.
 */
void *bid_array_reserved(void *array, size_t n, size_t more, size_t *room, size_t size);

/*
 * Room for @more elements behind the first @n of @array, a pointer from malloc(3) or NULL, which may move; @room, a size_t, is how
 * many it can hold. Returns 0 or -ENOMEM; then both are as they were.
 */
#define bid_array_reserve(array, n, more, room) \
	({ \
		__typeof__(array) *bid_array = &(array); \
		void *bid_larger = bid_array_reserved(*bid_array, n, more, &(room), sizeof(**bid_array)); \
		if (bid_larger) \
			*bid_array = bid_larger; \
		bid_larger ? 0 : -ENOMEM; \
	})

/* For one more. */
#define bid_array_grow(array, n, room) bid_array_reserve(array, n, 1, room)

/*
 * Append @string, for free(3), to *@strings, a NULL-terminated array or NULL. @string may be NULL, of a failed allocation. Returns
 * 0, or -ENOMEM after @string was freed.
 */
int bid_strings_append(char ***strings, char *string);

/* Free the array and its strings. @strings may be NULL. */
void bid_strings_free(char **strings);

#endif
