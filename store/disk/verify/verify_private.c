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

#include "api/content_key.h"
#include "api/elf.h"
#include "api/source_section.h"
#include "base/cleanup.h"
#include "base/kallsyms.h"
#include "base/local_error.h"
#include "disk/beneath.h"
#include "disk/derive/derive.h"
#include "disk/digest.h"
#include "disk/id_dirs.h"
#include "disk/layout.h"
#include "disk/lock_file.h"
#include "disk/other_paths.h"
#include "disk/publish/temp.h"
#include "disk/quarantine.h"
#include "disk/record.h"
#include "disk/source_section.h"
#include "disk/store.h"
#include "disk/verify/verify.h"

/* Compare a source or section, open at @fd, with the recorded digest, or with the file it was cut out of. */
static int compare_bytes(struct bid_verify *verify, int fd, const json_t *record, struct bid_finding *finding)
{
	const char *recorded = bid_json_string(record, "digest");
	char digest[BID_DIGEST_MAX];
	int r = 0;

	if (*recorded) {
		r = bid_verify_digest(verify, fd, digest);
		verify->stats.digests += r == 0;
		if (r == 0 && strcmp(recorded, digest) != 0)
			finding->text = "has other bytes than were recorded";
	} else if (strcmp(bid_json_string(record, "how"), BID_SLICED) == 0) {
		r = bid_section_compare(verify->store, &finding->artifact, fd);
		if (r == 0)
			finding->text = "has other bytes than the file that it was cut out of";
		/* without this file no comparison is possible */
		r = r == -ENOENT || r == -ENODATA || r > 0 ? 0 : r;
	}
	finding->kind = finding->text ? BID_FINDING_CORRUPT : finding->kind;
	return r;
}

/* Open the file of @artifact in the store as it is. Returns 0, -ENOENT, or the error that leaves its existence unknown. */
static int open_file(struct bid_store *store, const struct bid_artifact *artifact, struct bid_file *ret_file)
{
	struct bid_id_dirs dirs = { 0 };
	char path[BID_LAYOUT_FILE_MAX];
	int result = -ENOENT;

	if (artifact->subpath)
		return bid_source_section_open(store, artifact, ret_file);
	while (result != 0 && bid_id_dirs_next(&dirs, store, &artifact->id, artifact->kind)) {
		int r = bid_store_open_file(store, bid_layout_file(dirs.path, artifact->kind, path), false, ret_file);

		result = r != -ENOENT ? r : result;
	}
	return result;
}

/*
 * Is the file of the record at @finding->path absent? Looks under the lock, because a writer publishes or evicts a file and its
 * record one after the other. Removes a stale record in a repair.
 */
static bool is_stale(struct bid_verify *verify, struct bid_finding *finding)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	bid_auto_fd int lock = bid_store_lock(verify->store, true);
	struct stat st;

	if (open_file(verify->store, &finding->artifact, &file) != -ENOENT ||
	    bid_beneath_stat(verify->store->root, finding->path, &st) < 0)
		return false;
	finding->repaired = verify->config->repair && bid_verify_remove(verify, finding->path);
	return true;
}

/* Remove the source or section of @finding with its record: bidfs can get both again. */
static bool remove_source_section(struct bid_verify *verify, struct bid_finding *finding)
{
	int r = bid_source_section_remove(verify->store, &finding->artifact);

	bid_record_remove(verify->store, &finding->artifact);
	return finding->name_free = r == 0 || r == -ENOENT;
}

/* Repair the fault of the record at @finding->path, whose file has @size bytes. */
static bool repair_record(struct bid_verify *verify, struct bid_finding *finding, off_t size)
{
	struct bid_record pinned = { .artifact = finding->artifact,
				     .origin = &(struct bid_origin){ .how = BID_PINNED },
				     .size = (uint64_t)size };

	if (finding->kind == BID_FINDING_UNREADABLE || finding->kind == BID_FINDING_STALE)
		return finding->repaired;
	if (finding->artifact.subpath)
		return remove_source_section(verify, finding);
	/* without a sound record nothing may evict an object, and nothing vouches for it */
	return bid_verify_remove(verify, finding->path) &&
	       (bid_kind_has_subpath(finding->artifact.kind) || bid_record_write(verify->store, &pinned) == 0);
}

/* Return the fault of @record, whose name is that of @artifact and whose file has @size bytes; NULL without a fault. */
static const char *record_fault(const json_t *record, const struct bid_artifact *artifact, off_t size)
{
	const char *id = bid_json_string(record, "id"), *kind = bid_json_string(record, "kind");
	const json_t *digest = json_object_get(record, "digest");
	struct bid_id named, disk_id;

	if (bid_id_parse_str(id, &named) < 0)
		return "has no id";
	disk_id = bid_layout_disk_id(&named);
	if (!bid_id_equal(&disk_id, &artifact->id) || strcmp(kind, bid_kind_name(artifact->kind)) != 0)
		return "does not match its name";
	if (digest && (!json_is_string(digest) || !bid_digest_valid(json_string_value(digest))))
		return "has no digest of the known form";
	if (!json_is_string(json_object_get(record, "how")) || !json_is_integer(json_object_get(record, "time")) ||
	    !json_is_integer(json_object_get(record, "size")))
		return "lacks fields of a record";
	/* replaced by another file of the same build; but probe definitions are written on, by perf and by others */
	if (artifact->kind != BID_KIND_PROBES && bid_json_number(record, "size") != (json_int_t)size)
		return "is of a file of another size";
	return NULL;
}

/*
 * Compare @record, NULL for a damaged one, with its file, and a source or section with the record. Sets the kind and the text of
 * @finding for a fault. Returns 0, a negative errno, or the result of a callback.
 */
static int find_fault(struct bid_verify *verify, struct bid_finding *finding, const json_t *record, struct bid_file *ret_file)
{
	bool source_section = bid_kind_has_subpath(finding->artifact.kind);
	int r;

	finding->text = record ? NULL : "is damaged";
	/* a damaged record does not name its source or section */
	if (source_section && !record)
		return 0;
	r = open_file(verify->store, &finding->artifact, ret_file);
	if (r == -ENOENT) {
		finding->kind = BID_FINDING_STALE;
		finding->text = !verify->shared->blind && is_stale(verify, finding) ? "belongs to an absent file" : NULL;
		return 0;
	}
	if (r < 0) {
		/* the check of an object has reported this error */
		finding->text = NULL;
		return source_section ? r : 0;
	}
	if (record)
		finding->text = record_fault(record, &finding->artifact, ret_file->st.st_size);
	if (!finding->text && source_section && verify->config->deep)
		r = compare_bytes(verify, ret_file->fd, record, finding);
	return r;
}

static int visit_record(struct bid_verify *verify, const struct bid_verify_folder *folder, const char *path,
			const struct bid_id *id)
{
	const char *name = strrchr(path, '/') + 1, *first = name - strlen("xx/");
	struct bid_finding finding = { .kind = BID_FINDING_RECORD, .path = path };
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	char stored[PATH_MAX];
	json_t *record = NULL;
	struct stat st;
	int r;

	if (!bid_record_parse_name(first, name, &finding.artifact)) {
		verify->stats.foreign++;
		return 0;
	}
	if (!bid_verify_wants(verify, &finding.artifact.id))
		return 0;
	verify->stats.records++;
	r = bid_record_read_named(verify->store, first, name, &finding.artifact, &record);
	/* removed meanwhile, or a link at the path of the record */
	if (r == -ENOENT && bid_beneath_stat(verify->store->root, path, &st) < 0)
		return 0;
	if (r == 0 || r == -EBADMSG || r == -ENOENT)
		r = find_fault(verify, &finding, record, &file);
	if (r != 0) {
		finding.kind = BID_FINDING_UNREADABLE;
		finding.text = bid_strerror(r);
	}
	if (finding.artifact.subpath && (finding.kind == BID_FINDING_UNREADABLE || finding.kind == BID_FINDING_CORRUPT))
		finding.path = bid_source_section_path(&finding.artifact, stored);
	if (finding.text && verify->config->repair)
		finding.repaired = repair_record(verify, &finding, file.st.st_size);
	if (finding.text && r != -ENOMEM)
		r = bid_verify_found(verify, &finding);
	json_decref(record);
	bid_artifact_release(&finding.artifact);
	return r;
}

/* Report a source or section without a record: nothing would evict it. */
static int check_recorded(void *user, const struct bid_artifact *artifact)
{
	struct bid_verify *verify = user;
	char path[PATH_MAX];
	struct bid_finding finding = { .kind = BID_FINDING_RECORD,
				       .artifact = *artifact,
				       .path = bid_source_section_path(artifact, path),
				       .text = "has no sound record, so nothing evicts it" };
	json_t *record = NULL;
	int r = bid_record_read(verify->store, artifact, &record);

	json_decref(record);
	if (r != -ENOENT && r != -EBADMSG)
		return bid_verify_progress(verify);
	finding.repaired = verify->config->repair && remove_source_section(verify, &finding);
	return bid_verify_found(verify, &finding);
}

static int visit_source_sections(struct bid_verify *verify, const struct bid_verify_folder *folder, const char *path,
				 const struct bid_id *id)
{
	return bid_store_each_source_section(verify->store, id, folder->kind, check_recorded, verify);
}

/* Is the file at @fd a derived artifact @artifact? Returns 0, an error of reading, or another error if it is not. */
static int check_derived_content(int fd, const struct bid_artifact *artifact)
{
	struct bid_elf_info info;
	struct bid_id id;
	int r;

	if (artifact->kind == BID_KIND_KALLSYMS)
		return bid_kallsyms_check_file(fd);
	if (artifact->kind == BID_KIND_ELF)
		r = bid_elf_build_id(fd, &id);
	else
		r = bid_elf_examine(fd, &info);
	if (r < 0)
		return r;
	return bid_id_answers(artifact->kind == BID_KIND_ELF ? &id : &info.id, &artifact->id) ? 0 : -EBADMSG;
}

/* Check the file @path, which was derived from files of the kinds in the mask folder->sources. */
static int visit_derived(struct bid_verify *verify, const struct bid_verify_folder *folder, const char *path,
			 const struct bid_id *id)
{
	struct bid_finding finding = { .kind = BID_FINDING_RECORD,
				       .path = path,
				       .artifact = { .id = *id, .kind = folder->kind },
				       .text = "has other bytes than were derived" };
	bid_auto_fd int fd = -1;
	int r = bid_beneath_open(verify->store->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);

	if (r == 0)
		r = check_derived_content(fd, &finding.artifact);
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
	finding.repaired = verify->config->repair && bid_verify_remove(verify, path);
	return bid_verify_found(verify, &finding);
}

/* Remove recorded names that a user removed. This is no finding: such a name may come again. */
static int visit_names(struct bid_verify *verify, const struct bid_verify_folder *folder, const char *path, const struct bid_id *id)
{
	return verify->config->repair && !verify->shared->blind ? bid_other_paths_forget(verify->store, id, false) : 0;
}

/* Call @fn for each name in the folder @path. */
static int each_name(struct bid_verify *verify, const char *path, int (*fn)(struct bid_verify *verify, int dir, const char *name))
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r = bid_beneath_opendir(verify->store->root, path, &dir);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = fn(verify, dirfd(dir), entry->d_name);
	return r != 0 ? r : -errno;
}

static int check_temp(struct bid_verify *verify, int dir, const char *name)
{
	char path[64 + NAME_MAX];
	struct bid_finding finding = { .kind = BID_FINDING_TEMP, .path = path, .text = "has not changed for a day" };

	verify->stats.foreign += !bid_temp_is_named(name);
	if (!bid_temp_is_named(name) || !bid_temp_is_abandoned(dir, name, verify->config->repair))
		return 0;
	snprintf(path, sizeof(path), "%s/%s", BID_LAYOUT_TEMP, name);
	finding.repaired = verify->config->repair;
	return bid_verify_found(verify, &finding);
}

/* Count an entry of the private folder that is not part of its layout. */
static int count_foreign(struct bid_verify *verify, int dir, const char *name)
{
	verify->stats.foreign += !bid_layout_is_private_dir(name) && !bid_layout_is_private_file(name);
	return 0;
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
	if (r == 0 && verify->config->repair &&
	    bid_quarantine_move_as(verify->store, key->stored, fd, key->name, "content-key", moved) == 0) {
		bid_beneath_prune_above(verify->store->root, key->stored);
		snprintf(text, sizeof(text), "%s; quarantined as '%.150s'", finding.text, moved);
		finding.text = text;
		finding.repaired = true;
	}
	return bid_verify_found(verify, &finding);
}

int bid_verify_private(struct bid_verify *verify)
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

int bid_verify_private_rest(struct bid_verify *verify)
{
	int r;

	if (verify->config->ids)
		return 0;
	r = each_name(verify, BID_LAYOUT_TEMP, check_temp);
	if (r == 0 && verify->config->deep)
		r = bid_store_each_content_key(verify->store, check_content_key, verify);
	return r == 0 ? each_name(verify, BID_LAYOUT_PRIVATE, count_foreign) : r;
}
