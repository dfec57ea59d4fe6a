// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Verify sources and sections against their records. A repair removes a wrong piece with its record, because bidfs can get it
 * again.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bid/error.h>

#include "api/piece.h"
#include "base/cleanup.h"
#include "disk/beneath.h"
#include "disk/derive/section.h"
#include "disk/digest.h"
#include "disk/entries.h"
#include "disk/piece.h"
#include "disk/record.h"
#include "disk/store.h"
#include "disk/verify/verify.h"

/*
 * Report the piece of @finding and its record @record, which may be NULL. A repair removes both: eviction never finds a piece
 * without a record.
 */
static int report_piece(struct bid_verify *verify, struct bid_finding *finding, const char *record)
{
	if (verify->config->repair) {
		int r = bid_piece_remove(verify->store, &finding->request);

		finding->name_free = r == 0 || r == -ENOENT;
		finding->repaired = finding->name_free && (!record || bid_verify_drop(verify, record));
	}
	return bid_verify_found(verify, finding);
}

/* Compare the bytes at @fd with the recorded digest, or a section with the file it was cut out of. */
static int judge_deep(struct bid_verify *verify, int fd, const json_t *record, struct bid_finding *finding)
{
	const char *recorded = json_string_value(json_object_get(record, "digest")),
		   *how = json_string_value(json_object_get(record, "how"));
	char digest[BID_DIGEST_MAX];
	int r = 0;

	if (recorded) {
		r = bid_verify_digest(verify, fd, digest);
		verify->stats.digests += r == 0;
		if (r == 0 && strcmp(recorded, digest) != 0)
			finding->text = "has other bytes than were recorded";
	} else if (strcmp(how, BID_SLICED) == 0) {
		r = bid_section_compare(verify->store, &finding->request, fd);
		if (r == 0)
			finding->text = "has other bytes than the file that it was cut out of";
		/* without this file no comparison is possible */
		r = r == -ENOENT || r == -ENODATA || r > 0 ? 0 : r;
	}
	finding->kind = BID_FINDING_CORRUPT;
	return r;
}

/* Judge the piece of @finding and its record. Sets the kind and the text if either is wrong. */
static int check_piece(struct bid_verify *verify, struct bid_finding *finding)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	json_t *record = NULL;
	int r = bid_piece_open(verify->store, &finding->request, &file);

	if (r == -ENOENT) {
		finding->kind = BID_FINDING_STALE;
		finding->text = "is of what is not there";
		return 0;
	}
	if (r == 0)
		r = bid_record_read(verify->store, &finding->request, &record);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		finding->text = bid_verify_record_fault(record, &finding->request, file.st.st_size);
	if (r == 0 && !finding->text && verify->config->deep)
		r = judge_deep(verify, file.fd, record, finding);
	json_decref(record);
	if (r < 0 && r != -ENOMEM) {
		finding->kind = BID_FINDING_UNREADABLE;
		finding->text = bid_strerror(r);
		r = 0;
	}
	return r;
}

/* a search for the piece whose record is called name */
struct named {
	const char *name;
	const struct bid_detail *detail; /* counted; NULL before it is found */
};

static int match_name(void *user, const struct bid_request *piece)
{
	struct named *named = user;

	if (!bid_record_has_name(piece, named->name))
		return 0;
	named->detail = bid_detail_ref(piece->detail);
	return 1;
}

/* Find the piece of a damaged record by the name of the record, among the pieces of its id. */
static int find_named(struct bid_verify *verify, const struct bid_request *request, struct named *named)
{
	int r = bid_store_each_piece(verify->store, &request->id, request->kind, match_name, named);

	return r < 0 ? r : 0;
}

int bid_verify_piece_record(struct bid_verify *verify, const char *path, const char *first, const char *name,
			    const struct bid_request *request)
{
	struct bid_finding finding = { .kind = BID_FINDING_RECORD, .path = path, .request = *request };
	struct named named = { .name = name };
	struct bid_detail *detail = NULL;
	struct stat st;
	int r = bid_record_detail(verify->store, first, name, &detail);

	/* removed meanwhile, or a link at the path of the file */
	if (r == -ENOENT && bid_beneath_stat(bid_store_root(verify->store), path, &st) == 0)
		r = -EBADMSG;
	if (r == -ENOENT || r == -ENOMEM)
		return r == -ENOENT ? 0 : r;
	verify->stats.records++;
	finding.request.detail = detail;
	if (r == 0) {
		r = check_piece(verify, &finding);
	} else if (r == -EBADMSG) {
		finding.text = "is damaged";
		r = find_named(verify, request, &named);
		finding.request.detail = named.detail;
	} else {
		finding.kind = BID_FINDING_UNREADABLE;
		finding.text = bid_strerror(r);
		r = 0;
	}
	if (r == 0 && finding.text) {
		if (finding.kind == BID_FINDING_UNREADABLE) {
			r = bid_verify_found(verify, &finding);
		} else if (finding.request.detail && finding.kind != BID_FINDING_STALE) {
			r = report_piece(verify, &finding, path);
		} else {
			finding.repaired = verify->config->repair && bid_verify_drop(verify, path);
			r = bid_verify_found(verify, &finding);
		}
	}
	bid_detail_unref(detail);
	bid_detail_unref(named.detail);
	return r;
}

static int check_lone(void *user, const struct bid_request *piece)
{
	struct bid_verify *verify = user;
	struct bid_finding finding = { .kind = BID_FINDING_RECORD,
				       .request = *piece,
				       .text = "has no record, so nothing evicts it" };
	char path[PATH_MAX];
	struct stat st;

	if (bid_record_stat(verify->store, piece, &st) != -ENOENT)
		return bid_verify_progress(verify);
	finding.path = bid_piece_path(piece, path);
	return report_piece(verify, &finding, NULL);
}

/* Nothing of ours: none is written, and none is read. */
static int tell_deep(void *user, const char *path)
{
	struct bid_finding finding = { .kind = BID_FINDING_UNREADABLE,
				       .path = path,
				       .text = "is a directory deeper than any source; nothing below it is read" };

	return bid_verify_found(user, &finding);
}

int bid_verify_pieces(struct bid_verify *verify, const struct bid_request *of)
{
	return bid_pieces_walk(verify->store, &of->id, of->kind, check_lone, tell_deep, verify);
}
