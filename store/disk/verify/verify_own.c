// SPDX-License-Identifier: LGPL-2.1-or-later
/* Verify the private folder: temporary files, records, unpacked copies. bidfs can create all of them again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include <bid/error.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/kallsyms.h"
#include "base/trouble.h"
#include "disk/beneath.h"
#include "disk/digest.h"
#include "disk/layout.h"
#include "disk/lock_file.h"
#include "disk/names.h"
#include "disk/objdir.h"
#include "disk/publish/cookie.h"
#include "disk/publish/temp.h"
#include "disk/record.h"
#include "disk/store.h"
#include "disk/verify/verify.h"

/* Open the file of @request in the store as it is. Returns 0, -ENOENT, or the error that leaves its existence unknown. */
static int open_artifact(struct bid_verify *verify, const struct bid_request *request, int *ret_fd, struct stat *ret_st)
{
	struct bid_place place = { 0 };
	int r, result = -ENOENT;

	while (bid_place_next(&place, verify->store, &request->id, request->kind)) {
		char path[PATH_MAX + 16];
		bid_auto_fd int fd = -1;

		snprintf(path, sizeof(path), "%s/%s", place.path, bid_kind_store_name(request->kind));
		r = bid_beneath_open(bid_store_root(verify->store), path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);
		if (r == -ENOENT && (request->kind == BID_KIND_ELF || request->kind == BID_KIND_KALLSYMS))
			r = bid_beneath_open(bid_store_root(verify->store), place.path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);
		if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -ELOOP)
			result = r;
		if (r < 0 || fstat(fd, ret_st) < 0 || !S_ISREG(ret_st->st_mode))
			continue;
		*ret_fd = bid_steal_fd(&fd);
		return 0;
	}
	return result;
}

/* Remove the record of an absent file, unless a writer is publishing the file just now. */
static bool drop_stale(struct bid_verify *verify, const char *path, const struct bid_request *request)
{
	bid_auto_fd int lock = bid_store_lock(verify->store, true), fd = -1;
	struct stat st;

	return open_artifact(verify, request, &fd, &st) != -ENOENT || bid_verify_drop(verify, path);
}

/* Judge the record of a file of @size bytes. Sets the kind and the text of @finding if the record is wrong. */
static void judge_record(struct bid_verify *verify, struct bid_finding *finding, off_t size)
{
	json_t *record = NULL;
	struct stat st;
	int r = bid_record_read(verify->store, &finding->request, &record);

	/* a link at the path of the file; or removed meanwhile */
	if (r == -ENOENT && bid_beneath_stat(bid_store_root(verify->store), finding->path, &st) == 0)
		r = -EBADMSG;
	if (r == 0)
		finding->text = bid_verify_record_fault(record, &finding->request, size);
	else if (r == -EBADMSG)
		finding->text = "is damaged";
	json_decref(record);
	if (r == 0 || r == -EBADMSG || r == -ENOENT)
		return;
	finding->kind = BID_FINDING_UNREADABLE;
	finding->text = strerror(-r);
}

/* Check the record @path of @request, no piece. Without a sound record the artifact belongs to the user. */
static int check_record(struct bid_verify *verify, const char *path, const struct bid_request *request)
{
	struct bid_finding finding = { .kind = BID_FINDING_RECORD, .path = path, .request = *request };
	bool repair = verify->config->repair;
	bid_auto_fd int fd = -1;
	struct stat st;
	int r = open_artifact(verify, request, &fd, &st);

	verify->stats.records++;
	/* the check of the file itself has reported this error */
	if (r < 0 && r != -ENOENT)
		return 0;
	if (r == -ENOENT) {
		if (verify->shared->blind || bid_idset_find(verify->orphaned, &request->id))
			return 0;
		finding.kind = BID_FINDING_STALE;
		finding.text = "is of what is not there";
		finding.repaired = repair && drop_stale(verify, path, request);
		return bid_verify_found(verify, &finding);
	}
	judge_record(verify, &finding, st.st_size);
	if (!finding.text)
		return 0;
	finding.repaired = repair && finding.kind == BID_FINDING_RECORD && bid_verify_drop(verify, path);
	return bid_verify_found(verify, &finding);
}

/* Does the error come from the disk or from permissions? It then proves nothing about the file. */
static bool is_unread(int r)
{
	return r == -EACCES || bid_is_trouble(r);
}

/* Report an unreadable derived file. */
static int tell_unread(struct bid_verify *verify, struct bid_finding *finding, int r)
{
	finding->kind = BID_FINDING_UNREADABLE;
	finding->text = bid_strerror(r);
	return bid_verify_found(verify, finding);
}

static int check_unpacked(struct bid_verify *verify, const char *path, const struct bid_id *id)
{
	struct bid_finding finding = { .path = path, .request = { .id = *id, .kind = BID_KIND_ELF } };
	bid_auto_fd int fd = -1;
	struct bid_id inside;
	struct stat st;
	int r;

	r = bid_beneath_open(bid_store_root(verify->store), path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);
	if (r == 0)
		r = bid_elf_identify(fd, &inside);
	if (is_unread(r))
		return tell_unread(verify, &finding, r);
	finding.kind = BID_FINDING_RECORD;
	finding.text = "is not what was unpacked";
	if (r == 0 && bid_id_answers(&inside, id)) {
		bid_close(bid_steal_fd(&fd));
		finding.kind = BID_FINDING_STALE;
		finding.text = "was unpacked from what is not there";
		if (verify->shared->blind || bid_store_kinds(verify->store, id) & 1 << BID_KIND_ELF ||
		    open_artifact(verify, &finding.request, &fd, &st) == 0)
			return 0;
	}
	finding.repaired = verify->config->repair && bid_entry_unlink(verify->store, path) == 0;
	return bid_verify_found(verify, &finding);
}

/* Check a symbol table derived from a kernel. */
static int check_table(struct bid_verify *verify, const char *path, const struct bid_id *id)
{
	struct bid_finding finding = {
		.kind = BID_FINDING_RECORD,
		.path = path,
		.request = { .id = *id, .kind = BID_KIND_KALLSYMS },
		.text = "is no symbol table",
	};
	bid_auto_fd int fd = -1;
	int r;

	r = bid_beneath_open(bid_store_root(verify->store), path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);
	if (r == 0)
		r = bid_kallsyms_check_file(fd);
	if (is_unread(r))
		return tell_unread(verify, &finding, r);
	if (r == 0 && (verify->shared->blind || bid_store_kinds(verify->store, id) & (1 << BID_KIND_ELF | 1 << BID_KIND_DEBUGINFO)))
		return 0;
	if (r == 0) {
		finding.kind = BID_FINDING_STALE;
		finding.text = "was made of what is not there";
	}
	finding.repaired = verify->config->repair && bid_entry_unlink(verify->store, path) == 0;
	return bid_verify_found(verify, &finding);
}

/* Visits an entry "xx/NAME" of a private folder DIR; @path is DIR/xx/NAME. */
typedef int (*own_fn)(struct bid_verify *verify, const char *path, const char *first, const struct dirent *entry);

static int count_foreign(struct bid_verify *verify)
{
	verify->stats.foreign++;
	return 0;
}

static int visit_record(struct bid_verify *verify, const char *path, const char *first, const struct dirent *entry)
{
	struct bid_request request;

	if (!bid_record_parse_name(first, entry->d_name, &request))
		return count_foreign(verify);
	if (!bid_verify_wants(verify, &request.id))
		return 0;
	return bid_kind_has_detail(request.kind) ? bid_verify_piece_record(verify, path, first, entry->d_name, &request)
						 : check_record(verify, path, &request);
}

/* Parse "xx/rest", an on-disk id. */
static bool parse_rest(const char *first, const char *name, struct bid_id *ret_id)
{
	char hex[2 + NAME_MAX + 1];

	snprintf(hex, sizeof(hex), "%.2s%s", first, name);
	return bid_entry_name(hex, ret_id);
}

static int visit_unpacked(struct bid_verify *verify, const char *path, const char *first, const struct dirent *entry)
{
	struct bid_id id;

	if (!parse_rest(first, entry->d_name, &id) || entry->d_type == DT_DIR)
		return count_foreign(verify);
	return bid_verify_wants(verify, &id) ? check_unpacked(verify, path, &id) : 0;
}

static int visit_table(struct bid_verify *verify, const char *path, const char *first, const struct dirent *entry)
{
	struct bid_id id;

	if (!parse_rest(first, entry->d_name, &id) || entry->d_type == DT_DIR)
		return count_foreign(verify);
	return bid_verify_wants(verify, &id) ? check_table(verify, path, &id) : 0;
}

static int visit_pieces(struct bid_verify *verify, const char *first, const struct dirent *entry, enum bid_kind kind)
{
	struct bid_request all = { .kind = kind };

	if (!parse_rest(first, entry->d_name, &all.id))
		return count_foreign(verify);
	return bid_verify_wants(verify, &all.id) ? bid_verify_pieces(verify, &all) : 0;
}

static int visit_sources(struct bid_verify *verify, const char *path, const char *first, const struct dirent *entry)
{
	return visit_pieces(verify, first, entry, BID_KIND_SOURCE);
}

static int visit_sections(struct bid_verify *verify, const char *path, const char *first, const struct dirent *entry)
{
	return visit_pieces(verify, first, entry, BID_KIND_SECTION);
}

/* Report an entry among the 256 folders "xx" that is no folder, and blocks writes there. */
static int no_folder(struct bid_verify *verify, const char *path)
{
	struct bid_finding finding = { .kind = BID_FINDING_RECORD, .path = path, .text = "is no folder" };

	if (verify->config->ids)
		return 0;
	finding.repaired = verify->config->repair && bid_verify_drop(verify, path);
	return bid_verify_found(verify, &finding);
}

static int tidy_name(void *user, const char *note, const char *path, bool there)
{
	if (!there)
		bid_entry_unlink(user, note);
	return 0;
}

/* Remove recorded names that a user removed. This is no finding: such a name may come again. */
static int visit_names(struct bid_verify *verify, const char *path, const char *first, const struct dirent *entry)
{
	struct bid_id id;
	int r;

	if (!parse_rest(first, entry->d_name, &id))
		return count_foreign(verify);
	if (!verify->config->repair || verify->shared->blind || !bid_verify_wants(verify, &id))
		return 0;
	r = bid_names_each(verify->store, &id, tidy_name, verify->store);
	/* only an empty one goes */
	bid_entry_rmdir(verify->store, path);
	return r;
}

static int check_fan(struct bid_verify *verify, const char *base, const char *first, own_fn visit)
{
	char path[64 + 2 * NAME_MAX];
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r;

	snprintf(path, sizeof(path), "%s/%s", base, first);
	r = bid_beneath_opendir(bid_store_root(verify->store), path, &dir);
	if (r < 0)
		return r == -ENOENT ? no_folder(verify, path) : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/%s", base, first, entry->d_name);
		r = visit(verify, path, first, entry);
		if (r == 0)
			r = bid_verify_progress(verify);
	}
	return r != 0 ? r : -errno;
}

static int check_fans(struct bid_verify *verify, enum bid_verify_part part, const char *base, own_fn visit)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r;

	r = bid_beneath_opendir(bid_store_root(verify->store), base, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		struct bid_id first;

		if (entry->d_name[0] == '.')
			continue;
		if (!bid_entry_name(entry->d_name, &first) || first.len != 1)
			verify->stats.foreign += verify->worker == 0;
		else if (bid_verify_claim(verify, part, first.bytes[0]))
			r = check_fan(verify, base, entry->d_name, visit);
	}
	return r != 0 ? r : -errno;
}

static int check_temps(struct bid_verify *verify)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r;

	r = bid_beneath_opendir(bid_store_root(verify->store), BID_LAYOUT_TEMP, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		char path[64 + NAME_MAX];
		struct bid_finding finding = { .kind = BID_FINDING_TEMP, .path = path, .text = "nobody writes it" };

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (!bid_temp_is_named(entry->d_name)) {
			verify->stats.foreign++;
			continue;
		}
		if (!bid_temp_is_abandoned(dirfd(dir), entry->d_name, verify->config->repair))
			continue;
		snprintf(path, sizeof(path), "%s/%s", BID_LAYOUT_TEMP, entry->d_name);
		finding.repaired = verify->config->repair;
		r = bid_verify_found(verify, &finding);
	}
	return r != 0 ? r : -errno;
}

static int check_cookie(void *user, const struct bid_cookie *cookie)
{
	struct bid_verify *verify = user;
	struct bid_finding finding = { .path = cookie->stored };
	const char *digest = strrchr(cookie->name, '-') + 1;
	char found[BID_DIGEST_MAX], aside[PATH_MAX], text[256];
	bid_auto_fd int fd = -1;
	int r = bid_beneath_open(bid_store_root(verify->store), cookie->stored, O_RDONLY, &fd);

	if (r == 0)
		r = bid_digest_file(fd, NULL, NULL, found);
	if (r == -ENOENT || (r == 0 && strcmp(found + strlen(BID_DIGEST_PREFIX), digest) == 0))
		return bid_verify_progress(verify);
	finding.kind = r < 0 ? BID_FINDING_UNREADABLE : BID_FINDING_CORRUPT;
	finding.text = r < 0 ? strerror(-r) : "has other bytes than its cookie says";
	if (r == 0 && verify->config->repair && bid_cookie_quarantine(verify->store, cookie, fd, aside, sizeof(aside)) == 0) {
		snprintf(text, sizeof(text), "%s; set aside as '%.150s'", finding.text, aside);
		finding.text = text;
		finding.repaired = true;
	}
	return bid_verify_found(verify, &finding);
}

/* Count the entries of the private folder that are not part of its layout. */
static int check_foreign(struct bid_verify *verify)
{
	static const char *const known[] = { ".",    "..",   "tmp",    "record", "unpacked", "source",	 "section",  "quarantine",
					     "name", "scan", "absent", "cookie", "first",    "kallsyms", "fetching", "lock" };
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r;

	r = bid_beneath_opendir(bid_store_root(verify->store), BID_LAYOUT_PRIVATE, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		bool found = false;

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			found = found || strcmp(entry->d_name, known[i]) == 0;
		verify->stats.foreign += !found;
	}
	return -errno;
}

int bid_verify_own(struct bid_verify *verify)
{
	static const struct {
		enum bid_verify_part part;
		const char *base;
		own_fn visit;
	} folders[] = {
		{ BID_VERIFY_RECORDS, BID_LAYOUT_RECORDS, visit_record },
		{ BID_VERIFY_UNPACKED, BID_LAYOUT_UNPACKED, visit_unpacked },
		{ BID_VERIFY_TABLES, BID_LAYOUT_TABLES, visit_table },
		{ BID_VERIFY_SOURCES, BID_LAYOUT_SOURCES, visit_sources },
		{ BID_VERIFY_SECTIONS, BID_LAYOUT_SECTIONS, visit_sections },
		{ BID_VERIFY_NAMES, BID_LAYOUT_NAMES, visit_names },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(folders) / sizeof(folders[0]); i++)
		r = check_fans(verify, folders[i].part, folders[i].base, folders[i].visit);
	return r;
}

int bid_verify_own_rest(struct bid_verify *verify)
{
	int r;

	if (verify->config->ids)
		return 0;
	r = check_temps(verify);
	if (r == 0 && verify->config->deep)
		r = bid_store_each_cookie(verify->store, check_cookie, verify);
	return r == 0 ? check_foreign(verify) : r;
}
