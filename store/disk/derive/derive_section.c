// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sections. A reader wants a file with exactly the bytes of a section. The store cuts one out on demand and keeps it like a
 * download, with a record for eviction. In a store that cannot be written, a section stays in memory until a minute after its last
 * reader.
 */
#include "disk/derive/derive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/elf.h"
#include "api/source_section.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/limits.h"
#include "disk/derived.h"
#include "disk/record.h"
#include "disk/source_section.h"
#include "disk/store.h"

enum bid_kind bid_section_whole_file(size_t index)
{
	static const enum bid_kind kinds[] = { BID_KIND_DEBUGINFO, BID_KIND_ELF };

	return index < sizeof(kinds) / sizeof(kinds[0]) ? kinds[index] : BID_KIND_NONE;
}

/* a section to cut out; see struct bid_derivation */
struct cut {
	struct bid_file whole; /* owned */
	struct bid_elf_section section;
};

static int cut_into(void *user, int fd, uint64_t max)
{
	const struct cut *cut = user;

	if (cut->section.size > max)
		return -EFBIG;
	if (ftruncate(fd, (off_t)cut->section.size) < 0)
		return -errno;
	return bid_copy_range(cut->whole.fd, (off_t)cut->section.offset, cut->section.size, fd, 0);
}

/*
 * Locate the section in a file of the store. Returns -ENOENT if no file has it. Returns -ENODATA if the store has all files that
 * could have it, with unstripped debuginfo. The caller releases @ret_whole.
 */
static int locate_section(struct bid_store *store, const struct bid_artifact *artifact, enum bid_derive derive,
			  struct bid_file *ret_whole, struct bid_elf_section *ret_section)
{
	struct bid_artifact containing = { .id = artifact->id };
	bool complete = true;

	for (size_t i = 0; (containing.kind = bid_section_whole_file(i)) != BID_KIND_NONE; i++) {
		bid_cleanup(bid_file_release) struct bid_file whole = BID_FILE_NONE;
		int r = bid_find_unpacked(store, &containing, derive, &whole);

		if (r == -EAGAIN)
			return r;
		if (r < 0) {
			complete = false;
			continue;
		}
		complete &= !whole.stripped;
		r = bid_elf_find_section(whole.fd, bid_subpath_text(artifact->subpath), ret_section);
		if (r == 0) {
			*ret_whole = whole;
			whole.fd = -1;
		}
		if (r != -ENOENT)
			return r;
		/* an unstripped ELF file is its debuginfo, too */
		if (whole.kind == BID_KIND_ELF)
			break;
	}
	return complete ? -ENODATA : -ENOENT;
}

static int derive_section(struct bid_store *store, const struct bid_artifact *artifact, enum bid_derive derive,
			  struct bid_file *ret_file)
{
	struct cut cut = { .whole = BID_FILE_NONE };
	int r = locate_section(store, artifact, derive, &cut.whole, &cut.section);

	if (r == 0 && derive == BID_NEVER_DERIVE)
		r = -EAGAIN;
	if (r == 0) {
		cut.whole.st.st_mode &= S_IFMT | 0444;
		r = bid_derived_make(store, artifact,
				     &(struct bid_derivation){
					     .fill = cut_into, .user = &cut, .source = cut.whole.st, .size = cut.section.size },
				     !bid_store_requires_signed(store), ret_file);
	}
	bid_file_release(&cut.whole);
	return r;
}

int bid_store_section_stat(struct bid_store *store, const struct bid_artifact *artifact, struct stat *ret_stat)
{
	bid_cleanup(bid_file_release) struct bid_file whole = BID_FILE_NONE;
	struct bid_elf_section section;
	int r;

	if (!bid_artifact_valid(artifact) || artifact->kind != BID_KIND_SECTION)
		return -EINVAL;
	r = locate_section(store, artifact, BID_NEVER_DERIVE, &whole, &section);
	if (r < 0)
		return r;
	*ret_stat = whole.st;
	ret_stat->st_mode = S_IFREG | (whole.st.st_mode & 0444);
	ret_stat->st_size = (off_t)section.size;
	ret_stat->st_blocks = (blkcnt_t)((section.size + 511) / 512);
	return 0;
}

/* Was the stored @artifact cut out of a file with the id? */
static bool is_sliced(struct bid_store *store, const struct bid_artifact *artifact)
{
	json_t *record;
	bool sliced;

	if (bid_record_read(store, artifact, &record) < 0)
		return false;
	sliced = strcmp(bid_json_string(record, "how"), BID_SLICED) == 0;
	json_decref(record);
	return sliced;
}

int bid_find_section(struct bid_store *store, const struct bid_artifact *artifact, enum bid_derive derive,
		     struct bid_file *ret_file)
{
	bid_cleanup(bid_file_release) struct bid_file kept = BID_FILE_NONE;
	int r, sliced = -ENOENT;

	/* no record has the signer of the file that a section was cut from: cut it again */
	if (bid_store_requires_signed(store))
		return derive_section(store, artifact, derive, ret_file);
	r = bid_source_section_open(store, artifact, &kept);
	/* a file with the id is more reliable than a server */
	if (r < 0 || !is_sliced(store, artifact))
		sliced = derive_section(store, artifact, derive, ret_file);
	if (sliced != -ENOENT || r < 0)
		return sliced == 0 || r == -ENOENT || r == 0 ? sliced : r;
	*ret_file = kept;
	kept.fd = -1;
	return 0;
}

int bid_section_compare(struct bid_store *store, const struct bid_artifact *artifact, int fd)
{
	bid_cleanup(bid_file_release) struct bid_file whole = BID_FILE_NONE;
	struct bid_elf_section section;
	char one[16 * 1024], other[16 * 1024];
	struct stat st;
	int r = locate_section(store, artifact, BID_MAY_DERIVE, &whole, &section);

	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r < 0 || (uint64_t)st.st_size != section.size)
		return r < 0 ? r : 0;
	for (uint64_t at = 0, len; at < section.size; at += len) {
		ssize_t n, m;

		len = section.size - at < sizeof(one) ? section.size - at : sizeof(one);
		n = bid_pread_full(fd, one, len, (off_t)at);
		m = bid_pread_full(whole.fd, other, len, (off_t)(section.offset + at));
		if (n < 0 || m < 0)
			return (int)(n < 0 ? n : m);
		if ((uint64_t)n != len || (uint64_t)m != len || memcmp(one, other, len) != 0)
			return 0;
	}
	return 1;
}

/* Names to be sorted: a build with a section for each function has many. */
struct section_names {
	char **names;
	size_t n, room;
};

static void section_names_release(struct section_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->names[i]);
	free(names->names);
}

/* Returns 1 when the listing is full. */
static int add_name(void *user, const char *name)
{
	struct section_names *names = user;

	if (names->n == BID_LIMIT_LISTED_SECTIONS)
		return 1;
	if (bid_array_grow(names->names, names->n, names->room) < 0)
		return -ENOMEM;
	names->names[names->n] = strdup(name);
	return names->names[names->n] ? (names->n++, 0) : -ENOMEM;
}

static int add_stored(void *user, const struct bid_artifact *section)
{
	return add_name(user, bid_subpath_text(section->subpath));
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int bid_store_each_section(struct bid_store *store, const struct bid_id *id, int (*fn)(void *user, const char *name), void *user)
{
	bid_cleanup(section_names_release) struct section_names names = { 0 };
	int r = bid_store_each_source_section(store, id, BID_KIND_SECTION, add_stored, &names);
	struct bid_artifact containing = { .id = *id };

	for (size_t i = 0; r == 0 && (containing.kind = bid_section_whole_file(i)) != BID_KIND_NONE; i++) {
		bid_cleanup(bid_file_release) struct bid_file whole = BID_FILE_NONE;

		if (bid_find_unpacked(store, &containing, BID_NEVER_DERIVE, &whole) == 0)
			r = bid_elf_each_section(whole.fd, add_name, &names);
		if (whole.kind == BID_KIND_ELF)
			break;
	}
	/* the first ones of a full listing */
	r = r > 0 ? 0 : r;
	if (r == 0 && names.n > 0)
		qsort(names.names, names.n, sizeof(*names.names), by_name);
	for (size_t i = 0; i < names.n && r == 0; i++)
		if (i == 0 || strcmp(names.names[i], names.names[i - 1]) != 0)
			r = fn(user, names.names[i]);
	return r;
}
