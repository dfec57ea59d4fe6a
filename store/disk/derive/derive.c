// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/derive/derive.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/path.h"
#include "disk/check_cache.h"
#include "disk/derived.h"
#include "disk/lookup.h"
#include "disk/store.h"

struct derived_text {
	char *data; /* owned */
	size_t len;
};

static void text_release(struct derived_text *text)
{
	free(text->data);
}

void bid_note_failure(struct bid_store *store, const struct stat *st, enum bid_kind kind, int r)
{
	if (bid_derived_fault(r))
		bid_check_cache_set_underivable(store->check_cache, st, kind);
}

/* Shall @kind be derived from the file with the attributes @st? Returns 0, -ENODATA, or -EAGAIN with BID_NEVER_DERIVE. */
static int check_source(struct bid_store *store, const struct stat *st, enum bid_kind kind, enum bid_derive derive)
{
	if (bid_check_cache_is_underivable(store->check_cache, st, kind))
		return -ENODATA;
	return derive == BID_NEVER_DERIVE ? -EAGAIN : 0;
}

static int read_symbols(struct bid_store *store, const struct bid_id *id, enum bid_derive derive, FILE *out, struct stat *ret_st)
{
	static const enum bid_kind kinds[] = { BID_KIND_DEBUGINFO, BID_KIND_ELF };
	int r = -ENODATA;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && bid_derived_fault(r); i++) {
		struct bid_file file = BID_FILE_NONE;
		int found = bid_find_unpacked(store, &(struct bid_artifact){ .id = *id, .kind = kinds[i] }, derive, &file);

		if (found == -EAGAIN)
			return found;
		if (found < 0)
			continue;
		rewind(out);
		r = check_source(store, &file.st, BID_KIND_KALLSYMS, derive);
		if (r == 0)
			r = bid_elf_kallsyms(file.fd, out);
		bid_note_failure(store, &file.st, BID_KIND_KALLSYMS, r);
		*ret_st = file.st;
		bid_file_release(&file);
	}
	return r;
}

/* Return the original path of the program @id, if known. -ENODATA if not. */
static int original_path(struct bid_store *store, const struct bid_id *id, char ret_path[static PATH_MAX + 1])
{
	char *slash;
	int r;

	ret_path[0] = '/';
	r = bid_store_perf_link(store, id, ret_path + 1, PATH_MAX);
	slash = r == 0 && ret_path[1] != '[' ? strrchr(ret_path + 1, '/') : NULL;
	if (!slash)
		return -ENODATA;
	*slash = '\0';
	return 0;
}

/* Return the path of the file open at @fd. -ENODATA for a file in memory. */
static int own_path(int fd, char ret_path[static PATH_MAX + 1])
{
	int r = bid_path_of(fd, ret_path, PATH_MAX + 1);

	if (r < 0)
		return r;
	return strncmp(ret_path, "/memfd:", strlen("/memfd:")) == 0 ? -ENODATA : 0;
}

/*
 * Read probe definitions for a file. Without a known original path they name the file in the store. The caller does not keep those,
 * because they change with the path.
 */
static int read_probes(struct bid_store *store, const struct bid_id *id, enum bid_derive derive, FILE *out, struct stat *ret_st,
		       bool *ret_keep)
{
	struct bid_file file = BID_FILE_NONE;
	char path[PATH_MAX + 1];
	int r;

	*ret_keep = original_path(store, id, path) == 0;
	r = bid_find_unpacked(store, &(struct bid_artifact){ .id = *id, .kind = BID_KIND_ELF }, derive, &file);
	if (r == 0 && !*ret_keep)
		r = own_path(file.fd, path);
	if (r == 0)
		r = check_source(store, &file.st, BID_KIND_PROBES, derive);
	if (r == 0)
		r = bid_elf_probes(file.fd, path, out);
	if (file.fd >= 0)
		bid_note_failure(store, &file.st, BID_KIND_PROBES, r);
	*ret_st = file.st;
	bid_file_release(&file);
	return r;
}

/* Return the second of @source with a fraction hashed from the text. Nothing else distinguishes two texts of the same length. */
static struct timespec time_of(const struct derived_text *text, const struct stat *source)
{
	uint64_t hash = XXH3_64bits(text->data, text->len);

	return (struct timespec){ .tv_sec = source->st_mtim.tv_sec, .tv_nsec = (long)(hash % 1000000000) };
}

static int write_text(void *user, int fd, uint64_t max)
{
	const struct derived_text *text = user;

	return text->len > max ? -EFBIG : bid_pwrite_full(fd, text->data, text->len, 0);
}

int bid_open_kept(struct bid_store *store, const struct bid_artifact *artifact, struct bid_file *ret_file)
{
	char path[BID_LAYOUT_MAX];

	return bid_open_checked(store, bid_derived_path(artifact, path), artifact, ret_file);
}

static int keep_probes(struct bid_store *store, const struct bid_artifact *artifact, const struct derived_text *text,
		       struct bid_file *ret_file)
{
	struct bid_added added;
	int r = bid_store_add_data(store, artifact, 0444, text->data, text->len, &added);

	return r < 0 ? r : bid_find_unpacked(store, artifact, BID_MAY_DERIVE, ret_file);
}

int bid_find_derived(struct bid_store *store, const struct bid_artifact *artifact, enum bid_derive derive,
		     struct bid_file *ret_file)
{
	bid_cleanup(text_release) struct derived_text text = { 0 };
	/* no record has the signer of the file that a table was derived from: derive it again */
	bool keep = !bid_store_requires_signed(store), named = true, table = artifact->kind == BID_KIND_KALLSYMS;
	struct stat source;
	FILE *out;
	int r = -ENOENT;

	/* a derived file belongs to a file of the store */
	if (table && bid_lookup_has_image(store, &artifact->id) == 0)
		return -ENOENT;
	if (table && keep && bid_open_kept(store, artifact, ret_file) == 0)
		return 0;
	out = open_memstream(&text.data, &text.len);
	if (!out)
		return -ENOMEM;
	if (table)
		r = read_symbols(store, &artifact->id, derive, out, &source);
	else if (artifact->kind == BID_KIND_PROBES)
		r = read_probes(store, &artifact->id, derive, out, &source, &named);
	if (fclose(out) != 0 && r == 0)
		r = -ENOMEM;
	if (r < 0)
		return r == -ENOMEM || r == -EAGAIN ? r : -ENOENT;
	keep = keep && named && source.st_mode & S_IROTH;
	if (!table && keep && bid_store_writable(store) && keep_probes(store, artifact, &text, ret_file) == 0)
		return 0;
	source.st_mode &= S_IFMT | 0444;
	source.st_mtim = time_of(&text, &source);
	return bid_derived_make(store, artifact,
				&(struct bid_derivation){ .fill = write_text, .user = &text, .source = source, .size = text.len },
				table && keep, ret_file);
}
