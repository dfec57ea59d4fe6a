// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Verify the private folder: temporary files, records, unpacked copies, and sources and sections against their records. bidfs can
 * create all of them again, or get them: a repair removes a wrong one with its record.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <bid/error.h>

#include "api/elf.h"
#include "api/source_section.h"
#include "base/cleanup.h"
#include "base/kallsyms.h"
#include "base/local_error.h"
#include "disk/beneath.h"
#include "disk/derive/derive.h"
#include "disk/digest.h"
#include "disk/layout.h"
#include "disk/lock_file.h"
#include "disk/objdir.h"
#include "disk/publish/content_key.h"
#include "disk/publish/temp.h"
#include "disk/record.h"
#include "disk/source_section.h"
#include "disk/store.h"
#include "disk/verify/verify.h"

/* Report the source or section of @finding. A repair removes it with its record, without which eviction never finds it. */
static int report_source_section(struct bid_verify *verify, struct bid_finding *finding)
{
	if (verify->config->repair) {
		int r = bid_source_section_remove(verify->store, &finding->request);

		finding->repaired = finding->name_free = r == 0 || r == -ENOENT;
		bid_record_drop(verify->store, &finding->request);
	}
	return bid_verify_found(verify, finding);
}

/* Compare the bytes at @fd with the recorded digest, or a section with the file it was cut out of. */
static int compare_bytes(struct bid_verify *verify, int fd, const json_t *record, struct bid_finding *finding)
{
	const char *recorded = json_string_value(json_object_get(record, "digest"));
	char digest[BID_DIGEST_MAX];
	int r = 0;

	if (recorded) {
		r = bid_verify_digest(verify, fd, digest);
		verify->stats.digests += r == 0;
		if (r == 0 && strcmp(recorded, digest) != 0)
			finding->text = "has other bytes than were recorded";
	} else if (strcmp(bid_record_how(record), BID_SLICED) == 0) {
		r = bid_section_compare(verify->store, &finding->request, fd);
		if (r == 0)
			finding->text = "has other bytes than the file that it was cut out of";
		/* without this file no comparison is possible */
		r = r == -ENOENT || r == -ENODATA || r > 0 ? 0 : r;
	}
	finding->kind = BID_FINDING_CORRUPT;
	return r;
}

/* Check the source or section of @finding against its record. Sets the kind and the text if it is wrong. */
static int check_against_record(struct bid_verify *verify, struct bid_finding *finding)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	json_t *record = NULL;
	int r = bid_record_read(verify->store, &finding->request, &record);

	if (r == -ENOENT || r == -EBADMSG) {
		finding->text = "has no sound record, so nothing evicts it";
		return 0;
	}
	if (r == 0)
		r = bid_source_section_open(verify->store, &finding->request, &file);
	if (r == 0)
		finding->text = bid_verify_record_fault(record, &finding->request, file.st.st_size);
	if (r == 0 && !finding->text && verify->config->deep)
		r = compare_bytes(verify, file.fd, record, finding);
	json_decref(record);
	if (r < 0 && r != -ENOENT && r != -ENOMEM) {
		finding->kind = BID_FINDING_UNREADABLE;
		finding->text = bid_strerror(r);
	}
	return r == -ENOMEM ? r : 0;
}

static int check_source_section(void *user, const struct bid_request *artifact)
{
	struct bid_verify *verify = user;
	char path[PATH_MAX];
	struct bid_finding finding = { .kind = BID_FINDING_RECORD,
				       .request = *artifact,
				       .path = bid_source_section_path(artifact, path) };
	int r = check_against_record(verify, &finding);

	if (r < 0 || !finding.text)
		return r < 0 ? r : bid_verify_progress(verify);
	return finding.kind == BID_FINDING_UNREADABLE ? bid_verify_found(verify, &finding)
						      : report_source_section(verify, &finding);
}

/*
 * Check whether the record @path, ".../xx/NAME", belongs to a source or section. @request has the fields of the name, without the
 * subpath.
 */
static int check_source_section_record(struct bid_verify *verify, const char *path, const struct bid_request *request)
{
	const char *name = strrchr(path, '/') + 1, *first = name - strlen("xx/");
	struct bid_finding finding = { .kind = BID_FINDING_RECORD, .path = path, .request = *request };
	struct bid_subpath *subpath = NULL;
	char file[PATH_MAX];
	struct stat st;
	int r = bid_record_subpath(verify->store, first, name, &subpath);

	/* removed meanwhile, or a link at the path of the file */
	if (r == -ENOENT && bid_beneath_stat(verify->store->root, path, &st) == 0)
		r = -EBADMSG;
	if (r == -ENOENT || r == -ENOMEM)
		return r == -ENOENT ? 0 : r;
	verify->stats.records++;
	finding.request.subpath = subpath;
	if (r == -EBADMSG) {
		finding.text = "is damaged";
	} else if (r < 0) {
		finding.kind = BID_FINDING_UNREADABLE;
		finding.text = bid_strerror(r);
	} else if (bid_beneath_stat(verify->store->root, bid_source_section_path(&finding.request, file), &st) == -ENOENT) {
		finding.kind = BID_FINDING_STALE;
		finding.text = "belongs to an absent file";
	}
	finding.repaired = finding.text && finding.kind != BID_FINDING_UNREADABLE && verify->config->repair &&
			   bid_verify_drop(verify, path);
	r = finding.text ? bid_verify_found(verify, &finding) : 0;
	bid_subpath_unref(subpath);
	return r;
}

/* Report a directory that bidfs neither writes nor reads. */
static int report_deep(void *user, const char *path)
{
	struct bid_finding finding = { .kind = BID_FINDING_UNREADABLE,
				       .path = path,
				       .text = "is a directory deeper than any source; nothing below it is read" };

	return bid_verify_found(user, &finding);
}

static int visit_source_sections(struct bid_verify *verify, const struct bid_verify_folder *folder, const char *path,
				 const struct bid_id *id)
{
	return bid_source_sections_walk(verify->store, id, folder->kind, check_source_section, report_deep, verify);
}

/* Open the file of @request in the store as it is. Returns 0, -ENOENT, or the error that leaves its existence unknown. */
static int open_artifact(struct bid_verify *verify, const struct bid_request *request, int *ret_fd, struct stat *ret_st)
{
	struct bid_objdir_iter objdir = { 0 };
	int r, result = -ENOENT;

	while (bid_objdir_next(&objdir, verify->store, &request->id, request->kind)) {
		char path[BID_LAYOUT_FILE_MAX];
		bid_auto_fd int fd = -1;

		bid_layout_file(objdir.path, request->kind, path);
		r = bid_beneath_open(verify->store->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);
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

/* Check the record of a file of @size bytes. Sets the kind and the text of @finding if the record is wrong. */
static void judge_record(struct bid_verify *verify, struct bid_finding *finding, off_t size)
{
	json_t *record = NULL;
	struct stat st;
	int r = bid_record_read(verify->store, &finding->request, &record);

	/* a link at the path of the file; or removed meanwhile */
	if (r == -ENOENT && bid_beneath_stat(verify->store->root, finding->path, &st) == 0)
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

/*
 * Replace the record @path of the file of @request, of @size bytes, by one of a pinned download: without a sound record nothing may
 * evict the artifact, and nothing vouches for it.
 */
static bool repair_record(struct bid_verify *verify, const char *path, const struct bid_request *request, off_t size)
{
	return bid_verify_drop(verify, path) &&
	       bid_record_write(verify->store, &(struct bid_record){
						       .request = *request,
						       .origin = &(struct bid_origin){ .how = BID_PINNED },
						       .size = (uint64_t)size,
					       }) == 0;
}

/* Check the record @path of @request, neither source nor section. */
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
		if (verify->shared->blind)
			return 0;
		finding.kind = BID_FINDING_STALE;
		finding.text = "belongs to an absent file";
		finding.repaired = repair && drop_stale(verify, path, request);
		return bid_verify_found(verify, &finding);
	}
	judge_record(verify, &finding, st.st_size);
	if (!finding.text)
		return 0;
	finding.repaired = repair && finding.kind == BID_FINDING_RECORD && repair_record(verify, path, request, st.st_size);
	return bid_verify_found(verify, &finding);
}

/* Is the file at @fd a derived artifact @request? Returns 0, an error of reading, or another error if it is not. */
static int check_derived_content(int fd, const struct bid_request *request)
{
	struct bid_elf_info info;
	struct bid_id id;
	int r;

	if (request->kind == BID_KIND_KALLSYMS)
		return bid_kallsyms_check_file(fd);
	if (request->kind == BID_KIND_ELF)
		r = bid_elf_build_id(fd, &id);
	else
		r = bid_elf_examine(fd, &info);
	if (r < 0)
		return r;
	return bid_id_answers(request->kind == BID_KIND_ELF ? &id : &info.id, &request->id) ? 0 : -EBADMSG;
}

/* Check the file @path, which was derived from files of the kinds in the mask folder->sources. */
static int visit_derived(struct bid_verify *verify, const struct bid_verify_folder *folder, const char *path,
			 const struct bid_id *id)
{
	struct bid_finding finding = { .kind = BID_FINDING_RECORD,
				       .path = path,
				       .request = { .id = *id, .kind = folder->kind },
				       .text = "is not what was derived" };
	bid_auto_fd int fd = -1;
	int r = bid_beneath_open(verify->store->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);

	if (r == 0)
		r = check_derived_content(fd, &finding.request);
	if (r == 0 && (verify->shared->blind || bid_store_kinds(verify->store, id) & folder->sources))
		return 0;
	if (r == 0) {
		finding.kind = BID_FINDING_STALE;
		finding.text = "was derived from an absent file";
	} else if (r == -EACCES || bid_is_local_error(r)) {
		/* an error of the disk or of permissions proves nothing about the file */
		finding.kind = BID_FINDING_UNREADABLE;
		finding.text = bid_strerror(r);
		return bid_verify_found(verify, &finding);
	}
	finding.repaired = verify->config->repair && bid_verify_drop(verify, path);
	return bid_verify_found(verify, &finding);
}

static int visit_record(struct bid_verify *verify, const struct bid_verify_folder *folder, const char *path,
			const struct bid_id *id)
{
	const char *name = strrchr(path, '/') + 1;
	struct bid_request request;

	if (!bid_record_parse_name(name - strlen("xx/"), name, &request)) {
		verify->stats.foreign++;
		return 0;
	}
	if (!bid_verify_wants(verify, &request.id))
		return 0;
	return bid_kind_has_subpath(request.kind) ? check_source_section_record(verify, path, &request)
						  : check_record(verify, path, &request);
}

static int tidy_name(void *user, const char *note, const char *path, bool there)
{
	const struct bid_store *store = user;

	if (!there)
		bid_beneath_unlink(store->root, note);
	return 0;
}

/* Remove recorded names that a user removed. This is no finding: such a name may come again. */
static int visit_names(struct bid_verify *verify, const struct bid_verify_folder *folder, const char *path, const struct bid_id *id)
{
	int r;

	if (!verify->config->repair || verify->shared->blind)
		return 0;
	r = bid_names_each(verify->store, id, tidy_name, verify->store);
	/* only an empty one goes */
	bid_beneath_rmdir(verify->store->root, path);
	return r;
}

static int check_temps(struct bid_verify *verify)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r;

	r = bid_beneath_opendir(verify->store->root, BID_LAYOUT_TEMP, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		char path[64 + NAME_MAX];
		struct bid_finding finding = { .kind = BID_FINDING_TEMP, .path = path, .text = "has not changed for a day" };

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

static int check_content_key(void *user, const struct bid_content_key *key)
{
	struct bid_verify *verify = user;
	struct bid_finding finding = { .path = key->stored };
	const char *digest = strrchr(key->name, '-') + 1;
	char found[BID_DIGEST_MAX], moved[PATH_MAX], text[256];
	bid_auto_fd int fd = -1;
	int r = bid_beneath_open(verify->store->root, key->stored, O_RDONLY, &fd);

	if (r == 0)
		r = bid_digest_file(fd, found);
	if (r == -ENOENT || (r == 0 && strcmp(found + strlen(BID_DIGEST_PREFIX), digest) == 0))
		return bid_verify_progress(verify);
	finding.kind = r < 0 ? BID_FINDING_UNREADABLE : BID_FINDING_CORRUPT;
	finding.text = r < 0 ? strerror(-r) : "has other bytes than its content key says";
	if (r == 0 && verify->config->repair && bid_content_key_quarantine(verify->store, key, fd, moved, sizeof(moved)) == 0) {
		snprintf(text, sizeof(text), "%s; quarantined as '%.150s'", finding.text, moved);
		finding.text = text;
		finding.repaired = true;
	}
	return bid_verify_found(verify, &finding);
}

/* Count the entries of the private folder that are not part of its layout. */
static int check_foreign(struct bid_verify *verify)
{
	static const char *const known[] = { ".",	"..",	      "tmp",	  "record", "unpacked",	 "source",
					     "section", "quarantine", "name",	  "scan",   "absent",	 "content-key",
					     "first",	"kallsyms",   "fetching", "lock",   "unstripped" };
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r;

	r = bid_beneath_opendir(verify->store->root, BID_LAYOUT_PRIVATE, &dir);
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
	enum { ELF = 1 << BID_KIND_ELF, EITHER = ELF | 1 << BID_KIND_DEBUGINFO };
	static const struct bid_verify_folder folders[] = {
		{ BID_LAYOUT_RECORDS, visit_record, .has_suffix = true },
		{ BID_LAYOUT_UNPACKED, visit_derived, BID_KIND_ELF, .sources = ELF },
		{ BID_LAYOUT_TABLES, visit_derived, BID_KIND_KALLSYMS, .sources = EITHER },
		{ BID_LAYOUT_UNSTRIPPED, visit_derived, BID_KIND_UNSTRIPPED, .sources = EITHER },
		{ BID_LAYOUT_SOURCES, visit_source_sections, BID_KIND_SOURCE },
		{ BID_LAYOUT_SECTIONS, visit_source_sections, BID_KIND_SECTION },
		{ BID_LAYOUT_NAMES, visit_names },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(folders) / sizeof(folders[0]); i++)
		r = bid_verify_fanouts(verify, &folders[i]);
	return r;
}

int bid_verify_own_rest(struct bid_verify *verify)
{
	int r;

	if (verify->config->ids)
		return 0;
	r = check_temps(verify);
	if (r == 0 && verify->config->deep)
		r = bid_store_each_content_key(verify->store, check_content_key, verify);
	return r == 0 ? check_foreign(verify) : r;
}
