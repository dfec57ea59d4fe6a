// SPDX-License-Identifier: LGPL-2.1-or-later
/* Verify the names of a store, the objects under them, and the links to them. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bid/error.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kallsyms.h"
#include "disk/beneath.h"
#include "disk/id_dirs.h"
#include "disk/layout.h"
#include "disk/lock_file.h"
#include "disk/objdir.h"
#include "disk/other_paths.h"
#include "disk/perf_link.h"
#include "disk/publish/merge.h"
#include "disk/publish/rights.h"
#include "disk/quarantine.h"
#include "disk/record.h"
#include "disk/store.h"
#include "disk/verify/verify.h"

enum {
	TEXT_MAX = BID_VERIFY_TEXT_MAX,
	FRESH_S = 60, /* a younger directory may wait for its files */
};

/* The beginning of the file open at @fd, of @size bytes, into verify->buffer. Returns its length there, or a negative errno. */
static ssize_t read_beginning(struct bid_verify *verify, int fd, uint64_t size)
{
	if (!verify->buffer)
		verify->buffer = malloc(BID_DIGEST_BUFFER);
	if (!verify->buffer)
		return -ENOMEM;
	/* stop at the known size, to save the call that reads the end */
	return bid_pread_full(fd, verify->buffer, size < BID_DIGEST_BUFFER ? (size_t)size : BID_DIGEST_BUFFER, 0);
}

/* an object during its check */
struct object {
	int fd;
	struct stat st;
	uint64_t size;
	size_t len; /* bytes of its beginning in verify->buffer; 0 if not read */
	struct bid_id id; /* the id in the file, once known */
	struct bid_finding finding; /* path, artifact, and the fault */
	char text[TEXT_MAX]; /* of finding */
};

static bool set_fault(struct object *object, enum bid_finding_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Set the fault of @object. Returns false. */
static bool set_fault(struct object *object, enum bid_finding_kind kind, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(object->text, sizeof(object->text), format, arguments);
	va_end(arguments);
	object->finding.kind = kind;
	return false;
}

/* As check_content(), for a symbol table. A table does not name its kernel; the check is whether it is a symbol table. */
static bool check_table(struct object *object)
{
	int r = bid_kallsyms_check_file(object->fd);

	if (r == -EBADMSG || r == -EPERM)
		return set_fault(object, BID_FINDING_WRONG, "%s", bid_kallsyms_why(r));
	return r == 0 || set_fault(object, BID_FINDING_UNREADABLE, "%s", bid_strerror(r));
}

/* Check the id of @object; verify->buffer has its first bytes. Returns false, and the fault, for a wrong or unreadable one. */
static bool check_content(struct bid_verify *verify, struct object *object)
{
	char hex[BID_ID_HEX_MAX];
	int r = object->len > 0 ? bid_elf_build_id_in(verify->buffer, object->len, &object->id) : -EAGAIN;

	if (r < 0)
		r = bid_elf_build_id_any(object->fd, &object->id);
	switch (r) {
	case 0:
		return bid_id_answers(&object->id, &object->finding.artifact.id) ||
		       set_fault(object, BID_FINDING_WRONG, "carries the build-id '%s'", bid_id_format(&object->id, hex));
	case -ENOEXEC:
		return set_fault(object, BID_FINDING_WRONG, "is not an ELF file");
	case -ENODATA:
		return set_fault(object, BID_FINDING_WRONG, "has no build-id");
	case -EBADMSG:
		return set_fault(object, BID_FINDING_UNREADABLE, "is damaged, or no ELF file with a build-id is packed in it");
	case -EFBIG:
		return set_fault(object, BID_FINDING_UNREADABLE, "cannot be unpacked: larger than 512 MiB");
	case -EOPNOTSUPP:
		return set_fault(object, BID_FINDING_UNREADABLE, "cannot be unpacked: no codec for it");
	default:
		return set_fault(object, BID_FINDING_UNREADABLE, "%s", bid_strerror(r));
	}
}

static int count_bytes(void *user, uint64_t bytes)
{
	struct bid_verify *verify = user;

	verify->stats.bytes += bytes;
	return bid_verify_progress(verify);
}

int bid_verify_digest(struct bid_verify *verify, int fd, char ret_digest[static BID_DIGEST_MAX])
{
	ssize_t n = read_beginning(verify, fd, BID_DIGEST_BUFFER);

	return n < 0 ? (int)n : bid_digest_rest(fd, verify->buffer, (size_t)n, count_bytes, verify, ret_digest);
}

/* Take an error of reading as a fault. Results of the callback and a lack of memory end the whole check, and are returned. */
static int read_failed(struct object *object, int r)
{
	if (r > 0 || r == -ENOMEM || r == -ECANCELED)
		return r;
	set_fault(object, BID_FINDING_UNREADABLE, "%s", bid_strerror(r));
	return 0;
}

/* Read all bytes, except holes, for errors of the disk. verify->buffer has the first. As bid_digest_rest(). */
static int read_rest(struct bid_verify *verify, const struct object *object)
{
	ssize_t n = (ssize_t)object->len;
	off_t at = 0;
	int r = 0;

	while (r == 0 && n > 0) {
		r = count_bytes(verify, (uint64_t)n);
		at = bid_next_data(object->fd, at + n, (off_t)object->size);
		n = r == 0 ? bid_pread_full(object->fd, verify->buffer, BID_DIGEST_BUFFER, at) : 0;
	}
	return r == 0 && n < 0 ? (int)n : r;
}

/*
 * Read all bytes: compare with the recorded digest; without a digest parse the ELF file. Returns 0, and false with the fault in
 * @ret_right; or the result that ends the check.
 */
static int check_deep(struct bid_verify *verify, struct object *object, bool *ret_right)
{
	struct bid_artifact carried = { .id = object->id, .kind = object->finding.artifact.kind };
	char digest[BID_DIGEST_MAX];
	struct bid_elf_info info;
	json_t *record = NULL;
	const char *recorded;
	bool same_size, comparable;
	int r;

	*ret_right = false;
	if (verify->shared->recorded && bid_record_read(verify->store, &carried, &record) < 0)
		record = NULL;
	recorded = bid_json_string(record, "digest");
	same_size = bid_json_number(record, "size") == (json_int_t)object->size;
	comparable = bid_digest_valid(recorded) && same_size;
	r = comparable ? bid_digest_rest(object->fd, verify->buffer, object->len, count_bytes, verify, digest)
		       : read_rest(verify, object);
	if (r != 0) {
		r = read_failed(object, r);
	} else if (comparable) {
		verify->stats.digests++;
		*ret_right = strcmp(recorded, digest) == 0 ||
			     set_fault(object, BID_FINDING_CORRUPT, "has other bytes than were recorded");
	} else {
		/* a packed file was read to its end already */
		int examined = bid_elf_examine(object->fd, &info);

		if (examined == 0 || examined == -ENOEXEC)
			*ret_right = true;
		else if (examined == -EBADMSG)
			/* the file may still be correct, unless its recorded size was another one */
			set_fault(object, record && !same_size ? BID_FINDING_CORRUPT : BID_FINDING_UNREADABLE,
				  "is damaged or cut short");
		else
			set_fault(object, BID_FINDING_UNREADABLE, "%s", bid_strerror(examined));
	}
	json_decref(record);
	return r;
}

/* Its size and mode, and to be read as a whole its beginning. */
static int stat_object(struct bid_verify *verify, struct object *object)
{
	ssize_t n;

	if (fstat(object->fd, &object->st) < 0)
		return -errno;
	object->size = (uint64_t)object->st.st_size;
	if (!verify->config->deep)
		return 0;
	n = read_beginning(verify, object->fd, object->size);
	if (n < 0)
		return (int)n;
	object->len = (size_t)n;
	return 0;
}

/* Move the wrong file to the quarantine, and append its new name to the text. */
static void quarantine_object(struct bid_verify *verify, struct object *object)
{
	struct bid_finding *finding = &object->finding;
	size_t len = strlen(object->text);
	char moved[PATH_MAX];

	if (bid_quarantine_move(verify->store, finding->path, object->fd, &finding->artifact, moved) < 0)
		return;
	snprintf(object->text + len, sizeof(object->text) - len, "; quarantined as '%.150s'", moved);
	finding->repaired = finding->name_free = true;
}

/* Check whether a correct file may keep its privileges in the store. */
static int check_rights(struct bid_verify *verify, struct object *object)
{
	struct bid_finding *finding = &object->finding;

	/* most libraries lack execute permission; a look for capabilities costs a system call */
	if (!(object->st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) || !bid_rights_given(object->fd, &object->st))
		return 0;
	set_fault(object, BID_FINDING_RIGHTS, "is setuid or setgid, or has capabilities");
	finding->repaired = verify->config->repair &&
			    bid_rights_strip(verify->store, &finding->artifact, object->fd, finding->path, object->st.st_mode) == 0;
	return bid_verify_found(verify, finding);
}

/* Let the caller compare a file without a fault. Returns 0, or the result that ends the check. */
static int compare_object(struct bid_verify *verify, struct object *object)
{
	const struct bid_verify_config *config = verify->config;
	struct bid_finding *finding = &object->finding;
	int r;

	if (!config->compare || (finding->artifact.kind != BID_KIND_ELF && finding->artifact.kind != BID_KIND_DEBUGINFO))
		return 0;
	r = config->compare(config->user, &finding->artifact, finding->path, object->fd, object->text);
	verify->stats.bytes += object->size;
	if (r == 0)
		return 0;
	finding->kind = BID_FINDING_ALTERED;
	if (r != -EBADMSG)
		r = read_failed(object, r);
	return r == 0 || r == -EBADMSG ? bid_verify_found(verify, finding) : r;
}

/*
 * Check the object @path under the id of @artifact; it is @name in the open directory @dir. A repair moves a wrong one to the
 * quarantine. Returns 0 and whether it is correct; else the result of the callback, or -ENOMEM.
 */
static int check_object(struct bid_verify *verify, int dir, const char *name, const char *path, const struct bid_artifact *artifact,
			bool *ret_right)
{
	struct object object = { .id = artifact->id };
	bid_auto_fd int fd = -1;
	bool right = false;
	int r;

	*ret_right = false;
	object.finding = (struct bid_finding){ .path = path, .artifact = *artifact, .text = object.text };
	r = bid_beneath_open(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);
	object.fd = fd;
	if (r == 0)
		r = stat_object(verify, &object);
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		r = read_failed(&object, r);
		return r < 0 ? r : bid_verify_found(verify, &object.finding);
	}
	verify->stats.objects++;
	right = artifact->kind == BID_KIND_KALLSYMS ? check_table(&object) : check_content(verify, &object);
	if (right && verify->config->deep)
		r = check_deep(verify, &object, &right);
	if (r == 0)
		r = bid_verify_progress(verify);
	*ret_right = right;
	if (r == 0 && right)
		r = compare_object(verify, &object);
	if (r != 0 || right)
		return r != 0 ? r : check_rights(verify, &object);
	if (verify->config->repair && object.finding.kind != BID_FINDING_UNREADABLE)
		quarantine_object(verify, &object);
	return bid_verify_found(verify, &object.finding);
}

/* Is @entry in a well-known directory? Readers look there without a link. */
static bool is_known_objdir(const struct bid_objdir *entry)
{
	char path[BID_LAYOUT_MAX];

	for (unsigned i = 0; i < BID_ID_DIRS_KNOWN_MAX; i++)
		if (strcmp(bid_layout_under(bid_id_dirs_known(i), &entry->id, path), entry->path) == 0)
			return true;
	return false;
}

/* Point the link of the id at the entry, unless the link leads to another name by now. */
static bool link_orphan(struct bid_store *store, const struct bid_objdir *entry)
{
	bid_auto_fd int lock = bid_store_lock(store, true);
	char target[PATH_MAX];

	return bid_perf_link_look(store, &entry->id, target) == BID_PERF_LINK_GOOD ||
	       bid_perf_link_point(store, &entry->id, entry->path) == 0;
}

/* Adopt an orphan. Sets *@ret_linked if the link of the id leads to the entry. */
static int adopt_orphan(struct bid_verify *verify, const struct bid_objdir *entry, bool *ret_linked)
{
	struct bid_finding finding = { .kind = BID_FINDING_ORPHAN, .path = entry->path, .artifact = { .id = entry->id } };
	bool repair = verify->config->repair;
	char target[PATH_MAX];
	unsigned missing;
	int fanout;

	if (!bid_verify_wants(verify, &entry->id) || entry->kinds == 0)
		return 0;
	fanout = bid_verify_fanout(verify, &entry->id);
	/* true for most entries, and one system call shows it */
	if (fanout >= 0 && bid_perf_link_points_to(fanout, &entry->id, entry->path)) {
		*ret_linked = bid_layout_is_named_after(entry->path, &entry->id);
		return 0;
	}
	switch (bid_perf_link_look(verify->store, &entry->id, target)) {
	case BID_PERF_LINK_GOOD:
		if (strcmp(target, entry->path) == 0 || is_known_objdir(entry))
			return 0;
		/* each name has probe definitions of its own */
		missing = entry->kinds & ~(1U << BID_KIND_PROBES) & ~(unsigned)bid_objdir_kinds(verify->store, target);
		/* perf added the build natively after a download */
		if (repair && missing && bid_is_unnamed(target))
			finding.repaired = bid_merge_unnamed(verify->store, &entry->id, entry->path, false) == 0;
		if (repair && !finding.repaired)
			finding.repaired = bid_merge(verify->store, entry->path, target, missing) == 0;
		if (finding.repaired)
			bid_other_paths_note(verify->store, &entry->id, entry->path);
		if (missing == 0)
			return 0;
		finding.text = "has files that the linked name of its build lacks";
		break;
	case BID_PERF_LINK_NONE:
	case BID_PERF_LINK_DANGLING:
	case BID_PERF_LINK_MISMATCHED:
		finding.text = "no link leads to it";
		finding.repaired = repair && link_orphan(verify->store, entry);
		break;
	case BID_PERF_LINK_FOREIGN:
		finding.text = "the link of its id does not have the form '../../PATH/ID'";
		break;
	default:
		finding.text = "no symbolic link has its id";
	}
	if (verify->again && !finding.repaired)
		return 0;
	/* a lookup by the id fails, and proves nothing */
	if (!finding.repaired)
		atomic_store(&verify->shared->blind, true);
	return bid_verify_found(verify, &finding);
}

int bid_verify_adopt(void *user, const struct bid_objdir *entry)
{
	bool linked;

	return adopt_orphan(user, entry, &linked);
}

/* Report an object directory that has been empty for a while. */
static int check_empty(struct bid_verify *verify, const struct bid_objdir *entry)
{
	struct bid_finding finding = {
		.kind = BID_FINDING_EMPTY, .path = entry->path, .artifact = { .id = entry->id }, .text = "is empty"
	};
	struct stat st;

	if (fstat(entry->fd, &st) < 0 || st.st_ctim.tv_sec + FRESH_S > time(NULL))
		return 0;
	if (verify->config->repair) {
		bid_auto_fd int lock = bid_store_lock(verify->store, true);

		/* the directory first: if a writer adds to it, both it and its link stay */
		bid_beneath_prune(verify->store->root, entry->path);
		finding.repaired = bid_beneath_stat(verify->store->root, entry->path, &st) == -ENOENT;
		if (finding.repaired && bid_perf_link_remove(verify->store, &entry->id, entry->path) == 0)
			verify->unlinked = true;
	}
	return bid_verify_found(verify, &finding);
}

int bid_verify_entry(void *user, const struct bid_objdir *entry)
{
	struct bid_verify *verify = user;
	struct bid_objdir left = *entry;
	char path[BID_LAYOUT_FILE_MAX];
	bool linked = false;
	int r;

	if (!bid_verify_wants(verify, &entry->id))
		return 0;
	verify->stats.names++;
	if (entry->kinds == 0)
		return check_empty(verify, entry);
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		struct bid_artifact artifact = { .id = entry->id, .kind = (enum bid_kind)kind };
		const char *name = bid_kind_store_name(artifact.kind);
		bool right;

		if (!(entry->kinds & 1U << kind) || artifact.kind == BID_KIND_PROBES)
			continue;
		snprintf(path, sizeof(path), "%s/%s", entry->path, name);
		r = check_object(verify, entry->fd, name, path, &artifact, &right);
		if (r != 0)
			return r;
		if (!right)
			left.kinds &= ~(1U << kind);
	}
	if (left.kinds != entry->kinds && verify->config->repair) {
		bid_auto_fd int lock = bid_store_lock(verify->store, true);

		r = bid_objdir_remove(verify->store, entry->path, 0);
		if (r <= 0)
			bid_objdir_remove_link(verify->store, &entry->id, entry->path);
		verify->unlinked = true;
		left.kinds = r > 0 ? (unsigned)r : 0;
	}
	if (left.kinds == 0)
		return 0;
	r = adopt_orphan(verify, &left, &linked);
	/* a repair changes links afterwards */
	if (r == 0 && linked && !verify->config->repair)
		atomic_fetch_add(&verify->shared->linked[left.id.bytes[0]], 1);
	return r;
}

/* Remove a link that leads nowhere or to another id, unless it was repaired meanwhile. */
static bool remove_link(struct bid_verify *verify, const struct bid_id *disk_id, const char *target)
{
	bid_auto_fd int lock = bid_store_lock(verify->store, true);
	char now[PATH_MAX];
	enum bid_perf_link_state state = bid_perf_link_look(verify->store, disk_id, now);

	if ((state != BID_PERF_LINK_DANGLING && state != BID_PERF_LINK_MISMATCHED) ||
	    bid_perf_link_remove(verify->store, disk_id, target) < 0)
		return state == BID_PERF_LINK_GOOD;
	verify->unlinked = true;
	return true;
}

/* Check the link of @disk_id in the directory open at @fanout. */
static int check_link(struct bid_verify *verify, int fanout, const struct bid_id *disk_id)
{
	char link[BID_LAYOUT_MAX], target[PATH_MAX], text[PATH_MAX + 64];
	struct bid_finding finding = { .path = bid_layout_link(disk_id, link), .artifact = { .id = *disk_id }, .text = text };

	switch (bid_perf_link_look_in(verify->store, fanout, disk_id, target)) {
	case BID_PERF_LINK_NONE:
		return 0;
	case BID_PERF_LINK_GOOD:
		verify->stats.links++;
		return 0;
	case BID_PERF_LINK_DANGLING:
		finding.kind = BID_FINDING_DANGLING;
		snprintf(text, sizeof(text), "leads to '%s', which is not there", target);
		break;
	case BID_PERF_LINK_MISMATCHED:
		finding.kind = BID_FINDING_MISMATCHED;
		snprintf(text, sizeof(text), "leads to '%s', which is not of this id", target);
		break;
	case BID_PERF_LINK_FOREIGN:
		finding.kind = BID_FINDING_FOREIGN_LINK;
		snprintf(text, sizeof(text), "does not have the form '../../PATH/ID'");
		break;
	case BID_PERF_LINK_ODD:
		finding.kind = BID_FINDING_FOREIGN_LINK;
		snprintf(text, sizeof(text), "is no symbolic link");
		break;
	}
	verify->stats.links++;
	if (verify->config->repair && (finding.kind == BID_FINDING_DANGLING || finding.kind == BID_FINDING_MISMATCHED))
		finding.repaired = remove_link(verify, disk_id, target);
	return bid_verify_found(verify, &finding);
}

static int visit_link(struct bid_verify *verify, const struct bid_verify_folder *folder, const char *path, const struct bid_id *id)
{
	int fanout = bid_verify_fanout(verify, id);

	return fanout < 0 ? 0 : check_link(verify, fanout, id);
}

/*
 * A link leads to one name. If the fan-out directory has as many entries as names were found that its links lead to, it has no
 * other link. Every store in order is checked so, without a look at a link.
 */
static bool are_linked(struct bid_verify *verify, const char *first, DIR *dir)
{
	unsigned byte = (unsigned)strtoul(first, NULL, 16), n = 0;
	struct dirent *entry;

	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	rewinddir(dir);
	if (n != atomic_load(&verify->shared->linked[byte]))
		return false;
	verify->stats.links += n;
	return true;
}

int bid_verify_links(struct bid_verify *verify)
{
	static const struct bid_verify_folder links = { .base = BID_LAYOUT_LINKS, .visit = visit_link, .is_checked = are_linked };
	int r = 0;

	if (!verify->config->ids)
		return bid_verify_fanouts(verify, &links);
	for (size_t i = 0; r == 0 && verify->worker == 0 && i < verify->wanted->n; i++)
		r = visit_link(verify, &links, NULL, &verify->wanted->members[i].disk_id);
	return r;
}
