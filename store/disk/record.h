/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Records: ".bidfs/record/xx/rest.KIND", one file for each artifact that was downloaded, and for each section that was cut out of
 * a file of the store (docs/FORMAT.md, "A record"). A file without a record is the user's, and nothing evicts it.
 *
 * bid_record_write() puts a record into its place at once, and nothing changes it afterwards: the modification time of its file,
 * which is that of the last use, is all that moves. No function needs a lock. Each makes a few system calls, and blocks for the
 * disk alone. A record that is missing, damaged, or cannot be written costs nothing but its contents.
 */
#ifndef BID_DISK_RECORD_H
#define BID_DISK_RECORD_H

#include <jansson.h>

#include "api/store.h"

struct bid_record {
	struct bid_request request;
	const struct bid_origin *origin;
	const char *digest; /* "xxh3-128:HEX", or NULL if none was computed */
	uint64_t size;
};

/* Write @record in the place of an earlier one. */
int bid_record_write(struct bid_store *store, const struct bid_record *record);

/* Read the record of @request. The caller decrefs @ret_json, an object. -ENOENT if there is none, -EBADMSG if it is damaged. */
int bid_record_read(struct bid_store *store, const struct bid_request *request, json_t **ret_json);

/* lstat(2) of the record's file. -ENOENT if there is none. */
int bid_record_stat(struct bid_store *store, const struct bid_request *request, struct stat *ret_stat);

/* Remove the record of @request. 0, -ENOENT if there is none, or as unlinkat(2). */
int bid_record_drop(struct bid_store *store, const struct bid_request *request);

/* Note that the artifact is used now, if its last use was before @if_before. -ENOENT if it has no record. */
int bid_record_used(struct bid_store *store, const struct bid_request *request, time_t if_before);

/*
 * Call @fn for every record, unread but for that of a piece, with the lstat(2) of its file; a piece whose record is damaged is left
 * out. A non-zero return ends it and is returned. @fn may remove the record.
 */
int bid_record_each(struct bid_store *store, int (*fn)(void *user, const struct bid_request *request, const struct stat *st),
		    void *user);

/* What the record "xx/NAME" is of, but for the detail, of which the name has a hash alone. False if it is no such name. */
bool bid_record_parse_name(const char *first, const char *name, struct bid_request *ret_request);

/* Is @name that of the record of @request, as far as kind and detail go? */
bool bid_record_has_name(const struct bid_request *request, const char *name);

/*
 * The detail of the piece whose record "xx/NAME" is. The caller gives it back with bid_detail_unref(). -EBADMSG if the record is
 * damaged or of something else.
 */
int bid_record_detail(struct bid_store *store, const char *first, const char *name, struct bid_detail **ret_detail);

#endif
