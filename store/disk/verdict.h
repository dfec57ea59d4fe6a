/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The cached ELF check of a file: its build-id and contents, in memory, valid while device, inode, size and times of the file stay
 * the same. A file that was changed in place is read again.
 */
#ifndef BID_DISK_VERDICT_H
#define BID_DISK_VERDICT_H

#include <stdbool.h>
#include <sys/stat.h>

#include <bid/id.h>

struct bid_verdicts;

struct bid_verdict_on {
	struct bid_id id; /* of the file, or of the ELF file in a packed one; len 0 without an id */
	bool packed; /* a compressed file, which may hold an ELF file */
	bool unpacked; /* @id or @fault is known of a packed file */
	int fault; /* error of unpacking: 0, -EFBIG or -EOPNOTSUPP */
	bool has_dwarf;
	bool has_symtab;
	bool is_skeleton;
};

/* The cache: at most 2 MiB, for any number of threads. */
int bid_verdicts_new(struct bid_verdicts **ret_verdicts);
void bid_verdicts_free(struct bid_verdicts *verdicts);

/*
 * Check the file open at @fd with the attributes @st. has_dwarf, has_symtab and is_skeleton are set only with @want_dwarf, which
 * costs more the first time. May block on disk. Returns 0 (other files than ELF files have no id), or a negative errno for an
 * unreadable file.
 */
int bid_verdict(struct bid_verdicts *verdicts, int fd, const struct stat *st, bool want_dwarf, struct bid_verdict_on *ret_verdict);

/* True on the first call for the file with the attributes @st, until the file changes or the cache drops it: for one log line. */
bool bid_verdict_report(struct bid_verdicts *verdicts, const struct stat *st);

/* Store the result of unpacking the file with the attributes @st: @id, or @fault if that is negative. */
void bid_verdict_unpacked(struct bid_verdicts *verdicts, const struct stat *st, int fault, const struct bid_id *id);

#endif
