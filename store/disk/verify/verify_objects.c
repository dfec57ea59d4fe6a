// SPDX-License-Identifier: LGPL-2.1-or-later
/* Verify the names of a store, the objects under them, and the links to them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bid/error.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kallsyms.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/lock_file.h"
#include "disk/objdir.h"
#include "disk/publish/relink.h"
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

/* As check_content(), for a symbol table. A table does not name its kernel; the check is whether it is a symbol table. */
static bool judge_table(int fd, enum bid_finding_kind *ret_kind, char text[static TEXT_MAX])
{
	int r = bid_kallsyms_check_file(fd);

	*ret_kind = r == -EBADMSG || r == -EPERM ? BID_FINDING_WRONG : BID_FINDING_UNREADABLE;
	if (r == -EBADMSG || r == -EPERM)
		snprintf(text, TEXT_MAX, "%s", bid_kallsyms_why(r));
	else if (r < 0)
		snprintf(text, TEXT_MAX, "%s", bid_strerror(r));
	return r == 0;
}

/*
 * Check the file at @fd; verify->buffer has its first @len bytes. Returns true for a correct file. Otherwise sets *@ret_kind, and
 * @text has the reason.
 */
static bool check_content(struct bid_verify *verify, int fd, size_t len, const struct bid_request *request, struct bid_id *ret_id,
			  enum bid_finding_kind *ret_kind, char text[static TEXT_MAX])
{
	char hex[BID_ID_HEX_MAX];
	int r = len > 0 ? bid_elf_build_id_in(verify->buffer, len, ret_id) : -EAGAIN;

	if (r < 0)
		r = bid_elf_build_id_any(fd, ret_id);
	*ret_kind = BID_FINDING_WRONG;
	if (r == -ENOEXEC)
		snprintf(text, TEXT_MAX, "is not an ELF file");
	else if (r == -ENODATA)
		snprintf(text, TEXT_MAX, "has no build-id");
	else if (r == -EBADMSG)
		snprintf(text, TEXT_MAX, "is damaged, or no ELF file with a build-id is packed in it");
	else if (r == -EFBIG || r == -EOPNOTSUPP)
		snprintf(text, TEXT_MAX, "cannot be unpacked: %s", r == -EFBIG ? "larger than 512 MiB" : "no codec for it");
	else if (r < 0)
		snprintf(text, TEXT_MAX, "%s", bid_strerror(r));
	else if (!bid_id_answers(ret_id, &request->id))
		snprintf(text, TEXT_MAX, "carries the build-id '%s'", bid_id_format(ret_id, hex));
	else
		return true;
	if (r < 0 && r != -ENOEXEC && r != -ENODATA)
		*ret_kind = BID_FINDING_UNREADABLE;
	return false;
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

static int digest_failed(int r, enum bid_finding_kind *ret_kind, char text[static TEXT_MAX])
{
	/* results of the callback and a lack of memory end the whole check; errors of the disk concern this object */
	if (r > 0 || r == -ENOMEM || r == -ECANCELED)
		return r;
	*ret_kind = BID_FINDING_UNREADABLE;
	snprintf(text, TEXT_MAX, "%s", bid_strerror(r));
	return 0;
}

/* an object during its check */
struct object {
	int fd;
	struct stat st;
	uint64_t size;
	size_t len; /* bytes of its beginning in verify->buffer; 0 if not read */
	struct bid_request request; /* with the id in the file, once known */
};

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
 * Read all bytes: compare with the recorded digest; without a digest parse the ELF file. Sets *@ret_right, and if it is false the
 * kind and the text. Returns 0 or the result that ends the check.
 */
static int judge_deep(struct bid_verify *verify, struct object *object, bool *ret_right, enum bid_finding_kind *ret_kind,
		      char text[static TEXT_MAX])
{
	char digest[BID_DIGEST_MAX];
	struct bid_elf_info info;
	json_t *record = NULL;
	const char *recorded;
	bool same_size, comparable;
	int r, examined;

	*ret_right = false;
	if (verify->shared->recorded && bid_record_read(verify->store, &object->request, &record) < 0)
		record = NULL;
	recorded = json_string_value(json_object_get(record, "digest"));
	same_size = json_integer_value(json_object_get(record, "size")) == (json_int_t)object->size;
	comparable = recorded && bid_digest_valid(recorded) && same_size;
	r = comparable ? bid_digest_rest(object->fd, verify->buffer, object->len, count_bytes, verify, digest)
		       : read_rest(verify, object);
	if (r != 0) {
		json_decref(record);
		return digest_failed(r, ret_kind, text);
	}

	*ret_kind = BID_FINDING_CORRUPT;
	if (comparable) {
		verify->stats.digests++;
		*ret_right = strcmp(recorded, digest) == 0;
		snprintf(text, TEXT_MAX, "has other bytes than were recorded");
	} else {
		/* a packed file was read to its end already */
		examined = bid_elf_examine(object->fd, &info);
		*ret_right = examined == 0 || examined == -ENOEXEC;
		/* the file may still be correct, unless its recorded size was another one */
		if (examined != -EBADMSG || !record || same_size)
			*ret_kind = BID_FINDING_UNREADABLE;
		snprintf(text, TEXT_MAX, "%s", examined == -EBADMSG ? "is damaged or cut short" : bid_strerror(examined));
	}
	json_decref(record);
	return 0;
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

/* Move the wrong file open at @fd to the quarantine, and append its new name to @text. */
static void quarantine_object(struct bid_verify *verify, int fd, struct bid_finding *finding, char text[static TEXT_MAX])
{
	char moved[PATH_MAX];

	if (bid_quarantine_move(verify->store, finding->path, fd, &finding->request, moved) < 0)
		return;
	snprintf(text + strlen(text), TEXT_MAX - strlen(text), "; quarantined as '%.150s'", moved);
	finding->repaired = true;
	finding->name_free = true;
}

/* Check whether a correct file may keep its privileges in the store. */
static int check_rights(struct bid_verify *verify, const struct object *object, const char *path, const struct bid_request *request)
{
	struct bid_finding finding = {
		.kind = BID_FINDING_RIGHTS, .path = path, .request = *request, .text = "is setuid or setgid, or has capabilities"
	};

	/* most libraries lack execute permission; a look for capabilities costs a system call */
	if (!(object->st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) || !bid_rights_given(object->fd, &object->st))
		return 0;
	finding.repaired = verify->config->repair &&
			   bid_rights_take(verify->store, request, object->fd, path, object->st.st_mode) == 0;
	return bid_verify_found(verify, &finding);
}

/* Let the caller compare a file without a fault. Returns 0, or the result that ends the check. */
static int compare_object(struct bid_verify *verify, const struct object *object, const char *path,
			  const struct bid_request *request)
{
	const struct bid_verify_config *config = verify->config;
	char text[TEXT_MAX];
	struct bid_finding finding = { .kind = BID_FINDING_ALTERED, .path = path, .request = *request, .text = text };
	int r;

	if (!config->compare || (request->kind != BID_KIND_ELF && request->kind != BID_KIND_DEBUGINFO))
		return 0;
	r = config->compare(config->user, request, path, object->fd, text);
	verify->stats.bytes += object->size;
	if (r == 0)
		return 0;
	if (r != -EBADMSG)
		r = digest_failed(r, &finding.kind, text);
	return r == 0 || r == -EBADMSG ? bid_verify_found(verify, &finding) : r;
}

/*
 * Check the object @path under the id of @request; it is @name in the open directory @dir. A repair moves a wrong one to the
 * quarantine. Returns 0 and whether it is correct; else the result of the callback, or -ENOMEM.
 */
static int check_object(struct bid_verify *verify, int dir, const char *name, const char *path, const struct bid_request *request,
			bool *ret_right)
{
	char text[TEXT_MAX];
	struct bid_finding finding = { .path = path, .request = *request, .text = text };
	struct object object = { .request = *request };
	bid_auto_fd int fd = -1;
	bool right = false;
	int r;

	*ret_right = false;
	r = bid_beneath_open(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);
	object.fd = fd;
	if (r == 0)
		r = stat_object(verify, &object);
	if (r == -ENOENT || r == -ENOMEM)
		return r == -ENOENT ? 0 : r;
	if (r < 0) {
		finding.kind = BID_FINDING_UNREADABLE;
		snprintf(text, sizeof(text), "%s", bid_strerror(r));
		return bid_verify_found(verify, &finding);
	}
	verify->stats.objects++;
	if (request->kind == BID_KIND_KALLSYMS)
		right = judge_table(fd, &finding.kind, text);
	else
		right = check_content(verify, fd, object.len, request, &object.request.id, &finding.kind, text);
	if (right && verify->config->deep)
		r = judge_deep(verify, &object, &right, &finding.kind, text);
	if (r == 0)
		r = bid_verify_progress(verify);
	*ret_right = right;
	if (r == 0 && right)
		r = compare_object(verify, &object, path, request);
	if (r != 0 || right)
		return r != 0 ? r : check_rights(verify, &object, path, request);
	if (verify->config->repair && finding.kind != BID_FINDING_UNREADABLE)
		quarantine_object(verify, fd, &finding, text);
	return bid_verify_found(verify, &finding);
}

/* Is @entry in a well-known directory? Readers look there without a link. */
static bool is_known_objdir(const struct bid_objdir *entry)
{
	char path[BID_LAYOUT_MAX];

	for (unsigned i = 0; i < BID_OBJDIR_KNOWN_MAX; i++)
		if (strcmp(bid_layout_under(bid_objdir_known(i), &entry->id, path), entry->path) == 0)
			return true;
	return false;
}

/* Point the link of the id at the entry, unless the link leads to another name by now. */
static bool link_orphan(struct bid_store *store, const struct bid_objdir *entry)
{
	bid_auto_fd int lock = bid_store_lock(store, true);
	char target[PATH_MAX];

	return bid_link_look(store, &entry->id, target) == BID_LINK_GOOD || bid_link_point(store, &entry->id, entry->path) == 0;
}

/* Adopt an orphan. Sets *@ret_linked if the link of the id leads to the entry. */
static int adopt_orphan(struct bid_verify *verify, const struct bid_objdir *entry, bool *ret_linked)
{
	struct bid_finding finding = { .kind = BID_FINDING_ORPHAN, .path = entry->path, .request = { .id = entry->id } };
	bool repair = verify->config->repair;
	char target[PATH_MAX];
	unsigned missing;
	int fanout;

	if (!bid_verify_wants(verify, &entry->id) || entry->kinds == 0)
		return 0;
	fanout = bid_verify_fanout(verify, &entry->id);
	/* true for most entries, and one system call shows it */
	if (fanout >= 0 && bid_link_leads(fanout, &entry->id, entry->path)) {
		*ret_linked = bid_layout_is_named_after(entry->path, &entry->id);
		return 0;
	}
	switch (bid_link_look(verify->store, &entry->id, target)) {
	case BID_LINK_GOOD:
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
			bid_names_note(verify->store, &entry->id, entry->path);
		if (missing == 0)
			return 0;
		finding.text = "has files that the name lacks to which the link of its id leads";
		break;
	case BID_LINK_NONE:
	case BID_LINK_DANGLING:
	case BID_LINK_MISMATCHED:
		finding.text = "no link leads to it";
		finding.repaired = repair && link_orphan(verify->store, entry);
		break;
	case BID_LINK_FOREIGN:
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
		.kind = BID_FINDING_EMPTY, .path = entry->path, .request = { .id = entry->id }, .text = "is empty"
	};
	struct stat st;

	if (fstat(entry->fd, &st) < 0 || st.st_ctim.tv_sec + FRESH_S > time(NULL))
		return 0;
	if (verify->config->repair) {
		bid_auto_fd int lock = bid_store_lock(verify->store, true);

		/* the directory first: if a writer is filling it, both it and its link stay */
		bid_beneath_prune(verify->store->root, entry->path);
		finding.repaired = bid_beneath_stat(verify->store->root, entry->path, &st) == -ENOENT;
		if (finding.repaired && bid_link_drop(verify->store, &entry->id, entry->path) == 0)
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
		struct bid_request request = { .id = entry->id, .kind = (enum bid_kind)kind };
		const char *name = bid_kind_store_name(request.kind);
		bool right;

		if (!(entry->kinds & 1U << kind) || request.kind == BID_KIND_PROBES)
			continue;
		snprintf(path, sizeof(path), "%s/%s", entry->path, name);
		r = check_object(verify, entry->fd, name, path, &request, &right);
		if (r != 0)
			return r;
		if (!right)
			left.kinds &= ~(1U << kind);
	}
	if (left.kinds != entry->kinds && verify->config->repair) {
		bid_auto_fd int lock = bid_store_lock(verify->store, true);

		r = bid_objdir_take(verify->store, entry->path, 0);
		if (r <= 0)
			bid_link_leave(verify->store, &entry->id, entry->path);
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
	enum bid_link_state state = bid_link_look(verify->store, disk_id, now);

	if ((state != BID_LINK_DANGLING && state != BID_LINK_MISMATCHED) || bid_link_drop(verify->store, disk_id, target) < 0)
		return state == BID_LINK_GOOD;
	verify->unlinked = true;
	return true;
}

/* Check the link of @disk_id in the directory open at @fanout. */
static int check_link(struct bid_verify *verify, int fanout, const struct bid_id *disk_id)
{
	char link[BID_LAYOUT_MAX], target[PATH_MAX], text[PATH_MAX + 64];
	struct bid_finding finding = { .path = bid_layout_link(disk_id, link), .request = { .id = *disk_id }, .text = text };

	switch (bid_link_look_in(verify->store, fanout, disk_id, target)) {
	case BID_LINK_NONE:
		return 0;
	case BID_LINK_GOOD:
		verify->stats.links++;
		return 0;
	case BID_LINK_DANGLING:
		finding.kind = BID_FINDING_DANGLING;
		snprintf(text, sizeof(text), "leads to '%s', which is not there", target);
		break;
	case BID_LINK_MISMATCHED:
		finding.kind = BID_FINDING_MISMATCHED;
		snprintf(text, sizeof(text), "leads to '%s', which is not of this id", target);
		break;
	case BID_LINK_FOREIGN:
		finding.kind = BID_FINDING_FOREIGN_LINK;
		snprintf(text, sizeof(text), "does not have the form '../../PATH/ID'");
		break;
	case BID_LINK_ODD:
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
