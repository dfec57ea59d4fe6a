// SPDX-License-Identifier: LGPL-2.1-or-later
/* What was set aside, once all names were looked at: the build may have the file under another name. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "disk/digest.h"
#include "disk/find.h"
#include "disk/lock_file.h"
#include "disk/names.h"
#include "disk/publish/merge.h"
#include "disk/record.h"
#include "disk/remove.h"
#include "disk/root.h"
#include "disk/store.h"
#include "disk/verify/verify.h"

bool bid_verify_has_digest(int fd, const json_t *record)
{
	const char *recorded = json_string_value(json_object_get(record, "digest"));
	char digest[BID_DIGEST_MAX];

	return !recorded || !bid_digest_valid(recorded) ||
	       (bid_digest_file(fd, NULL, NULL, digest) == 0 && strcmp(recorded, digest) == 0);
}

static int is_same(void *user, const char *note, const char *path, bool there)
{
	return strcmp(path, user) == 0;
}

/* Did a file of the build ever lie in @directory? What carries another id does not say so, but what was noted does. */
static bool was_name(struct bid_verify *verify, const struct bid_finding *finding, char *directory)
{
	return finding->kind != BID_FINDING_WRONG || bid_names_each(verify->store, &finding->request.id, is_same, directory) > 0;
}

/* Let the file open at @fd lie where what was set aside did, too, if nothing does. Returns whether it has that name. */
static bool give_name(struct bid_verify *verify, const struct bid_finding *finding, int fd)
{
	const char *slash = strrchr(finding->path, '/');
	char directory[PATH_MAX];
	bid_auto_fd int dir = -1;
	struct stat st, there;

	if (fstat(fd, &st) < 0 || !slash ||
	    snprintf(directory, sizeof(directory), "%.*s", (int)(slash - finding->path), finding->path) >= (int)sizeof(directory))
		return false;
	if (bid_root_stat(bid_store_root(verify->store), finding->path, &there) == 0)
		return there.st_ino == st.st_ino && there.st_dev == st.st_dev;
	/* what has no original path has no name to lose */
	if (finding->path[0] == '[' || !was_name(verify, finding, directory) ||
	    bid_root_mkdirs(bid_store_root(verify->store), directory, false, &dir) < 0 ||
	    bid_merge_file(verify->store, fd, dir, slash + 1) < 0)
		return false;
	bid_names_note(verify->store, &finding->request.id, directory);
	return true;
}

/* The store may have the build's file under another name, which was right: then this is one of its names, too. */
static void settle(struct bid_verify *verify, struct bid_finding *finding)
{
	struct bid_file file = BID_FILE_NONE;
	bool named;
	char *text;

	if (!bid_kind_is_elf(finding->request.kind) || bid_find_stored(verify->store, &finding->request, &file) < 0)
		return;
	if (file.kind == finding->request.kind) {
		named = give_name(verify, finding, file.fd);
		finding->vacated = false;
		if (asprintf(&text, "%s; the build has the file under %s", finding->text,
			     named ? "this name, too" : "another name") >= 0) {
			free((char *)finding->text);
			finding->text = text;
		}
	}
	bid_file_release(&file);
}

int bid_verify_settle_vacated(struct bid_verify *verify)
{
	int r = 0;

	for (size_t i = 0; i < verify->n_vacated; i++)
		settle(verify, &verify->vacated[i]);
	for (size_t i = 0; i < verify->n_vacated; i++) {
		bid_auto_fd int lock = bid_store_lock(verify->store, true);
		const struct bid_request *request = &verify->vacated[i].request;
		struct stat st;

		if (bid_find_stat(verify->store, request, &st) < 0)
			bid_records_drop(verify->store, &request->id, 1U << request->kind, request->kind == BID_KIND_ELF);
	}
	for (size_t i = 0; r == 0 && i < verify->n_vacated; i++)
		r = bid_verify_found(verify, &verify->vacated[i]);
	bid_verify_free_vacated(verify);
	return r;
}

void bid_verify_free_vacated(struct bid_verify *verify)
{
	for (size_t i = 0; i < verify->n_vacated; i++) {
		free((char *)verify->vacated[i].path);
		free((char *)verify->vacated[i].text);
	}
	verify->n_vacated = 0;
}
