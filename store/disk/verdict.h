/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whose bytes are these? A file's id is read before it is served, and the verdict kept in memory for as long as the file's
 * device, inode, size and times stay what they were: a file that was changed in place is read again.
 */
#ifndef BID_DISK_VERDICT_H
#define BID_DISK_VERDICT_H

#include <stdbool.h>
#include <sys/stat.h>

#include <bid/id.h>

struct bid_verdicts;

struct bid_verdict_on {
	struct bid_id id; /* what the file carries; len 0 if nothing. Of a packed file: what was in it */
	bool packed; /* a compressed file, which may hold an ELF file */
	bool unpacked; /* it was unpacked: id is known, unless it has a fault */
	int fault; /* why it cannot be unpacked: 0, -EFBIG or -EOPNOTSUPP */
	bool has_dwarf;
	bool has_symtab;
	bool is_skeleton;
};

/* The cache. Bounded (2 MiB), may be used by any thread. */
int bid_verdicts_new(struct bid_verdicts **ret_verdicts);
void bid_verdicts_free(struct bid_verdicts *verdicts);

/*
 * The verdict on the file open at @fd, of which @st is the stat. Only with @want_dwarf are has_dwarf, has_symtab and is_skeleton
 * right, which costs more the first time. May block on disk. Returns 0 (a file that is no ELF file has no id), or a negative errno
 * if the file cannot be read.
 */
int bid_verdict(struct bid_verdicts *verdicts, int fd, const struct stat *st, bool want_dwarf, struct bid_verdict_on *ret_verdict);

/* Is it to be reported that the file of @st is not served? Once, until the file changes or the cache has no place for it. */
bool bid_verdict_report(struct bid_verdicts *verdicts, const struct stat *st);

/* What unpacking the packed file of @st showed: @id, or the fault @fault if that is negative. */
void bid_verdict_unpacked(struct bid_verdicts *verdicts, const struct stat *st, int fault, const struct bid_id *id);

#endif
