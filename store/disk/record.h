/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Records: ".bidfs/record/xx/rest.KIND", a file for each download, and for each section cut out of a file of the store
 * (docs/FORMAT.md, "A record"). A file without a record, or with one that says BID_ADDED, belongs to the user. Eviction spares it,
 * and a pinned one. A record is written atomically, as a whole. The modification time of its file is the last use. Each function
 * makes a few system calls, and blocks only for the disk. The loss of a record costs nothing but its contents.
 */
#ifndef BID_DISK_RECORD_H
#define BID_DISK_RECORD_H

#include "api/txn.h"
#include "base/json.h"
#include "disk/layout.h"

struct bid_record {
	struct bid_artifact artifact;
	const struct bid_origin *origin;
	const char *digest; /* "xxh3-128:HEX", or NULL if none was computed */
	uint64_t size;
};

/* Write @record in the place of an earlier one. */
int bid_record_write(struct bid_store *store, const struct bid_record *record);

/* Read the record of @artifact. The caller decrefs @ret_json, an object. -ENOENT if there is none, -EBADMSG if it is damaged. */
int bid_record_read(struct bid_store *store, const struct bid_artifact *artifact, json_t **ret_json);

/* values of "how" */
#define BID_FETCHED "fetched"
#define BID_ADDED   "added" /* fetched, and added by the user since */
#define BID_PINNED  "pinned" /* fetched, and kept from eviction */
#define BID_SLICED  "sliced" /* a section cut out of a file of the store */

/* Set "how" of the record to @to if it is @from, or anything for NULL. -ENOENT without a record. Locking: the store's lock. */
int bid_record_set_how(struct bid_store *store, const struct bid_artifact *artifact, const char *from, const char *to);

/* Does the record of @artifact lack a signer? No for a file of the user; yes if it cannot be read. */
bool bid_record_lacks_signer(struct bid_store *store, const struct bid_artifact *artifact);

/* lstat(2) of the record's file. -ENOENT if there is none. */
int bid_record_stat(struct bid_store *store, const struct bid_artifact *artifact, struct stat *ret_stat);

/* Remove the record of @artifact. 0, -ENOENT if there is none, or as unlinkat(2). */
int bid_record_remove(struct bid_store *store, const struct bid_artifact *artifact);

/* Note that the artifact is used now, if its last use was before @if_before. -ENOENT if it has no record. */
int bid_record_used(struct bid_store *store, const struct bid_artifact *artifact, time_t if_before);

/*
 * Call @fn for every sound record, with the lstat(2) of its file. @artifact and @record die when the callback returns. A non-zero
 * return ends the enumeration and is returned. @fn may remove the record.
 */
typedef int (*bid_record_fn)(void *user, const struct bid_artifact *artifact, const json_t *record, const struct stat *st);
int bid_record_each(struct bid_store *store, bid_record_fn fn, void *user);

/* Parse the record name "xx/NAME". The name contains only a hash of the subpath. Returns false for another name. */
bool bid_record_parse_name(const char *first, const char *name, struct bid_artifact *ret_artifact);

/*
 * Read the record "xx/NAME", with xx at @first. @ret_artifact has the subpath of a source or section from the record.
 * The caller calls bid_artifact_release(), and decrefs @ret_json. Returns -EBADMSG for another name, and for a damaged record.
 */
int bid_record_read_named(struct bid_store *store, const char *first, const char *name, struct bid_artifact *ret_artifact,
			  json_t **ret_json);

#endif
