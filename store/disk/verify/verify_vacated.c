// SPDX-License-Identifier: LGPL-2.1-or-later
/* What was set aside, once all names were looked at: it may still be where it was added from. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bid/elf.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "disk/digest.h"
#include "disk/find.h"
#include "disk/links.h"
#include "disk/lock_file.h"
#include "disk/names.h"
#include "disk/publish/join.h"
#include "disk/record.h"
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

/* Is the file @path what was set aside, as it was? */
static bool is_it(const char *path, const struct bid_id *id, const json_t *record)
{
	bid_auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct bid_id carried;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	return bid_elf_identify_any(fd, &carried) == 0 && bid_id_answers(&carried, id) &&
	       (bid_elf_is_packed(fd) > 0 || bid_verify_has_digest(fd, record));
}

/* Add it, if it is that. */
static bool add(struct bid_verify *verify, const char *path, const struct bid_request *request, const json_t *record)
{
	const char *digest = json_string_value(json_object_get(record, "digest"));
	struct bid_added added;

	if (path[0] != '/' || !is_it(path, &request->id, record) || bid_store_add(verify->store, path, BID_LINK_AUTO, &added) < 0 ||
	    added.kind != request->kind || !bid_id_answers(&added.id, &request->id))
		return false;
	/* other names may have rotten with it, which only this tells */
	if (digest)
		bid_record_set(verify->store, request, "digest", digest);
	return true;
}

static bool again(struct bid_verify *verify, const char *path, const struct bid_request *request, const json_t *record)
{
	const char *file = json_string_value(json_object_get(record, "file")), *id;
	const char *how = json_string_value(json_object_get(record, "how"));
	char original[PATH_MAX], hex[BID_ID_HEX_MAX];
	bool fetched = how && strcmp(how, "fetched") == 0, added = false;

	if (request->kind != BID_KIND_ELF && request->kind != BID_KIND_DEBUGINFO)
		return false;
	/* its own name is "<original path>/<id>/elf"; a debug file lies beside its ELF file, whose name that is */
	bid_id_format(&request->id, hex);
	id = strstr(path, hex);
	if (request->kind == BID_KIND_ELF && id && id > path && id[-1] == '/') {
		snprintf(original, sizeof(original), "/%.*s", (int)(id - path - 1), path);
		added = add(verify, original, request, record);
	}
	/* the name that a server gives it says nothing of this machine */
	return added || (file && !fetched && add(verify, file, request, record));
}

static void try_again(struct bid_verify *verify, struct bid_finding *finding)
{
	json_t *record = NULL;

	if (bid_record_read(verify->store, &finding->request, &record) < 0)
		record = NULL;
	finding->vacated = !again(verify, finding->path, &finding->request, record);
	json_decref(record);
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
	    bid_join_file(verify->store, fd, dir, slash + 1) < 0)
		return false;
	bid_names_note(verify->store, &finding->request.id, directory);
	return true;
}

/* The store may have the build's file again, or has it under another name, which was right: then that is one of its names, too. */
static void settle(struct bid_verify *verify, struct bid_finding *finding)
{
	struct bid_file file = BID_FILE_NONE;
	bool added = !finding->vacated, named;
	char *text;

	if (!bid_kind_is_elf(finding->request.kind) || bid_find_stored(verify->store, &finding->request, &file) < 0)
		return;
	if (file.kind == finding->request.kind) {
		named = give_name(verify, finding, file.fd);
		finding->vacated = false;
		if (asprintf(&text, "%s; %s%s", finding->text, added ? "added again" : "the build has the file",
			     named && added ? ""
			     : named	    ? " under this name, too"
					    : " under another name") >= 0) {
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
		try_again(verify, &verify->vacated[i]);
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
