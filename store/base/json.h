/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helper for jansson, for files that use jansson anyway. */
#ifndef BID_BASE_JSON_H
#define BID_BASE_JSON_H

#include <jansson.h>

#include "base/cleanup.h"
#include "base/text.h"

/* Paths and messages may be of any bytes; JSON is not: invalid UTF-8 becomes U+FFFD. NULL is null. NULL for want of memory. */
static inline json_t *bid_json_text(const char *bytes)
{
	bid_auto_free char *text = bytes ? bid_utf8(bytes) : NULL;

	if (!bytes)
		return json_null();
	return text ? json_string(text) : NULL;
}

/* The text of @json for people and programs, for free(3): in any terminal it stays the text that it is. NULL for want of memory. */
static inline char *bid_json_dump(const json_t *json, size_t flags)
{
	bid_auto_free char *text = json_dumps(json, flags);

	return text ? bid_escape(text, BID_ESCAPE_JSON) : NULL;
}

/* The text of @key in @object; "" without one. */
static inline const char *bid_json_string(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* The number of @key in @object; 0 without one. */
static inline json_int_t bid_json_number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

#endif
