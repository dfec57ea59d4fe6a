/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is remembered of an artifact besides its bytes: ".bidfs/record/xx/rest.KIND", a JSON object (docs/FORMAT.md, "record"). A
 * record that is missing or damaged costs nothing but what it says: nothing is served because of a record.
 */
#ifndef BID_DISK_RECORD_H
#define BID_DISK_RECORD_H

#include <jansson.h>

#include <bid/store.h>

struct bid_record {
	struct bid_request request;
	const struct bid_origin *origin;
	enum bid_link link; /* how it was put there */
	const struct stat *source; /* of the file it was added from, or NULL */
	const char *digest; /* "xxh3-128:HEX", or NULL if none was computed */
	uint64_t size;
};

/* Write it, in the place of an earlier one. */
int bid_record_write(struct bid_store *store, const struct bid_record *record);

/*
 * Set the string @key of the record of @request, and leave the rest of it, and the time of its last use, as it is. -ENOENT and
 * -EBADMSG as bid_record_read().
 */
int bid_record_set(struct bid_store *store, const struct bid_request *request, const char *key, const char *value);

/*
 * The artifact was used now. That is the modification time of its record, which is set if it is before @if_before. -ENOENT if there
 * is no record.
 */
int bid_record_used(struct bid_store *store, const struct bid_request *request, time_t if_before);

/* lstat(2) of the record of @request. */
int bid_record_stat(struct bid_store *store, const struct bid_request *request, struct stat *ret_stat);

/* Remove the record of @request. */
void bid_record_drop(struct bid_store *store, const struct bid_request *request);

/* What the record "xx/NAME" is of, by its name alone: of a piece all but the detail, which only the record itself tells. */
bool bid_record_parse_name(const char *first, const char *name, struct bid_request *ret_request);

/* Is "xx/NAME" the name of the record of @request, of whose id it is? */
bool bid_record_has_name(const struct bid_request *request, const char *name);

/*
 * The detail of the piece whose record "xx/NAME" is. The caller gives it back with bid_detail_unref(). -EBADMSG if the record
 * is damaged or of something else.
 */
int bid_record_detail(struct bid_store *store, const char *first, const char *name, struct bid_detail **ret_detail);

/*
 * Call @fn for every record, unread but for that of a piece, with the lstat(2) of it; a piece whose record is damaged is left out.
 * A non-zero return ends it and is returned. What is called for may be removed.
 */
int bid_record_each(struct bid_store *store, int (*fn)(void *user, const struct bid_request *request, const struct stat *st),
		    void *user);

/* Read the record of @request. The caller decrefs @ret_json, an object. -ENOENT if there is none, -EBADMSG if it is damaged. */
int bid_record_read(struct bid_store *store, const struct bid_request *request, json_t **ret_json);

#endif
