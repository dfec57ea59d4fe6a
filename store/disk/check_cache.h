/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The check cache, in memory. It has for a file of the store:
 *
 *   - its build-id and contents, as the ELF check found them
 *   - whether the log says that the store does not serve it
 *   - the kinds of artifacts that cannot be derived from it
 *
 * An entry is valid while device, inode, size and times of the file stay the same. A file that was changed in place is read again.
 */
#ifndef BID_DISK_CHECK_CACHE_H
#define BID_DISK_CHECK_CACHE_H

#include <stdbool.h>
#include <sys/stat.h>

#include <bid/artifact.h>

struct bid_check_cache;

struct bid_check {
	struct bid_id id; /* id of the file, or of the ELF file in a packed one; len 0 without an id */
	bool packed; /* a compressed file, which may hold an ELF file */
	bool unpacked; /* @id or @fault is valid for a packed file */
	int fault; /* error of unpacking: 0, -EFBIG or -EOPNOTSUPP */
	bool has_dwarf;
	bool has_symtab;
};

/* The cache: at most 2 MiB, for any number of threads. */
int bid_check_cache_new(struct bid_check_cache **ret_cache);
void bid_check_cache_free(struct bid_check_cache *check_cache);

/*
 * Check the file open at @fd with the attributes @st. has_dwarf and has_symtab are set only with @want_dwarf, which
 * costs more the first time. May block on disk. Returns 0 (other files than ELF files have no id), or a negative errno for an
 * unreadable file.
 */
int bid_check_cache_get(struct bid_check_cache *check_cache, int fd, const struct stat *st, bool want_dwarf,
			struct bid_check *ret_check);

/*
 * True on the first call for the file with the attributes @st, until the file changes or the cache drops it: for one log line.
 * False for a file that the cache does not have.
 */
bool bid_check_cache_log_once(struct bid_check_cache *check_cache, const struct stat *st);

/* Store the result of unpacking the file with the attributes @st: @id, or @fault if that is negative. */
void bid_check_cache_unpacked(struct bid_check_cache *check_cache, const struct stat *st, int fault, const struct bid_id *id);

/* Remember that no artifact of @kind can be derived from the file with the attributes @st, whose check the cache has. */
void bid_check_cache_set_underivable(struct bid_check_cache *check_cache, const struct stat *st, enum bid_kind kind);
bool bid_check_cache_is_underivable(struct bid_check_cache *check_cache, const struct stat *st, enum bid_kind kind);

#endif
