/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A record as it is written down: a JSON object with its own sum, by which one that rotted is told from one that says something. */
#ifndef BID_DISK_RECORD_TEXT_H
#define BID_DISK_RECORD_TEXT_H

#include "disk/record.h"

/* What @record says, as an object without a sum. The caller decrefs it. NULL without memory. */
json_t *bid_record_json(const struct bid_record *record);

/* Set the string @key. One from a server that is not UTF-8 is left out, rather than the whole record; so is a NULL. */
void bid_record_set_string(json_t *object, const char *key, const char *value);

/* The text of @json with its sum, in lines for people. Takes @json over; the caller frees @ret_text. */
int bid_record_print(json_t *json, char **ret_text);

/* The same as it is in a pack. */
int bid_record_print_packed(json_t *json, char **ret_text, size_t *ret_len);

/* The object that @text is. The caller decrefs @ret_json. -EBADMSG if it is none, or is not what was written. */
int bid_record_parse(const char *text, size_t len, json_t **ret_json);

/* The same of a text out of a pack, whose sum was looked at, as the record of @request: -EBADMSG if it is of something else. */
int bid_record_parse_packed(const char *text, size_t len, const struct bid_request *request, json_t **ret_json);

/* What the object is the record of, which is no piece, by what it says itself: the id as it is filed. */
bool bid_record_says(const json_t *json, struct bid_request *ret_request);

#endif
