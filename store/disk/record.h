/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is remembered of an artifact besides its bytes: ".bidfs/record/xx/rest.KIND", a JSON object (docs/FORMAT.md, "record"), or
 * the same in a pack of many, which the file, if there is one, goes before. A record that is missing or damaged costs nothing but
 * what it says: nothing is served because of a record. What can be evicted has a file, never a pack.
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

/* The same with its text. @request has no detail. */
int bid_record_write_text(struct bid_store *store, const struct bid_request *request, const char *text);

/*
 * Set the string @key of the record of @request, and leave the rest of it, and the time of its last use, as it is. -ENOENT and
 * -EBADMSG as bid_record_read(). Locking: takes the store's lock exclusively.
 */
int bid_record_set(struct bid_store *store, const struct bid_request *request, const char *key, const char *value);

/*
 * Let the record of @request say that the artifact was added, if it says that it was fetched, with the time of now; where that
 * cannot be written, the record goes. Returns 0, -ENOENT if there is none, or why neither can be. Locking: the caller holds the
 * store's lock exclusively.
 */
int bid_record_claim(struct bid_store *store, const struct bid_request *request);

/* Does it say that the artifact was fetched? 0, 1 or as bid_record_read(). */
int bid_record_is_fetched(struct bid_store *store, const struct bid_request *request);

/*
 * The artifact was used now. That is the modification time of its record, which is set if it is before @if_before. -ENOENT if there
 * is no record with a file of its own.
 */
int bid_record_used(struct bid_store *store, const struct bid_request *request, time_t if_before);

/* lstat(2) of the file that the record of @request has for itself. */
int bid_record_stat(struct bid_store *store, const struct bid_request *request, struct stat *ret_stat);

/* Has the record of @request an empty file: is what packs say of it to be no more? */
bool bid_record_is_void(struct bid_store *store, const struct bid_request *request);

/*
 * Remove that file, once no pack says anything. -EBUSY if a record is there by now, -EAGAIN if somebody is about to write one. The
 * lock is not seen by other machines (bid_temp_is_shared()).
 */
int bid_record_unvoid(struct bid_store *store, const struct bid_request *request);

/* By the first byte of an id: may there be records with a file of their own? For those who ask of many. */
struct bid_record_fans {
	bool any[256];
};
void bid_record_fans(struct bid_store *store, struct bid_record_fans *ret_fans);

/* Has the record of @request a file of its own, whatever is in it? */
bool bid_record_has_own(struct bid_store *store, const struct bid_record_fans *fans, const struct bid_request *request);

/* Is there a record of @request, whatever is in it? */
bool bid_record_exists(struct bid_store *store, const struct bid_request *request);

/* Remove the record of @request. In the place of one that is in a pack is an empty file then. */
void bid_record_drop(struct bid_store *store, const struct bid_request *request);

/*
 * The detail of the piece whose record "xx/NAME" is. The caller gives it back with bid_detail_unref(). -EBADMSG if the record
 * is damaged or of something else.
 */
int bid_record_detail(struct bid_store *store, const char *first, const char *name, struct bid_detail **ret_detail);

/*
 * Call @fn for every record that has a file of its own, unread but for that of a piece, with the lstat(2) of it; a piece whose
 * record is damaged is left out. A non-zero return ends it and is returned. What is called for may be removed.
 */
int bid_record_each(struct bid_store *store, int (*fn)(void *user, const struct bid_request *request, const struct stat *st),
		    void *user);

/* Read the record of @request. The caller decrefs @ret_json, an object. -ENOENT if there is none, -EBADMSG if it is damaged. */
int bid_record_read(struct bid_store *store, const struct bid_request *request, json_t **ret_json);

#endif
