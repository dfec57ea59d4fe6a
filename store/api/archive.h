/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Archives of builds, to move builds between machines, in the layout of perf-archive(1): docs/FORMAT.md, "Archives". The other side
 * may pack or unpack with perf's command, or with tar(1) in a build-id cache. May block on disk, and on the descriptor of the
 * archive.
 */
#ifndef BID_API_ARCHIVE_H
#define BID_API_ARCHIVE_H

#include "api/store.h"

/*
 * Return the compression of an archive with the file name @name, which ends in ".tar", ".tar.bz2", ".tar.gz", ".tar.xz" or
 * ".tar.zst": a number for bid_archive_pack(). -EINVAL for another name.
 */
int bid_packing_parse(const char *name);

/* One build to pack. */
struct bid_archive_build {
	struct bid_id id; /* as the other machine looks it up */
	const char *path; /* original path if the store knows none, "/usr/bin/ls"; or "[vdso]", or NULL */
	/* the results */
	int error; /* 0; -ENOENT if the store has no artifact of the build; or an error of bid_store_find() */
	unsigned kinds; /* kinds of the packed artifacts, as 1 << enum bid_kind */
	uint64_t size; /* their unpacked bytes */
	enum bid_kind left_out; /* a kind that failed although others were packed; else BID_KIND_NONE */
	int why; /* its error, as of bid_store_find() */
};

/* Report progress. A non-zero return ends the work and is returned. */
typedef int (*bid_archive_tick_fn)(void *user, uint64_t done, uint64_t total);

/*
 * Write an archive of the @n @builds to @fd, from its current offset. The archive has every artifact with its id in the store and
 * its lower stores. The same builds give the same bytes, in any order and with repetitions: all members have the same time. @tick
 * may be NULL; it gets numbers of builds. Returns 0 and the results in @builds, -EAGAIN if a file shrank meanwhile, -ENOTSUP if
 * libarchive lacks the packing, or as write(2).
 */
int bid_archive_pack(struct bid_store *store, struct bid_archive_build *builds, size_t n, int packing, int fd,
		     bid_archive_tick_fn tick, void *user);

/* the result of one member of an archive */
enum bid_member_state {
	BID_MEMBER_ADDED,
	BID_MEMBER_KNOWN, /* the store already had it */
	BID_MEMBER_REFUSED,
};

struct bid_archive_member {
	const char *name; /* in the archive: text from outside */
	enum bid_member_state state;
	struct bid_id id; /* len 0 for a refused member without an id in its name */
	enum bid_kind kind; /* BID_KIND_NONE of such a one */
	uint64_t size; /* unpacked */
	const char *why; /* refused: in words */
};

struct bid_archive_counts {
	uint64_t added, known, refused; /* members */
	uint64_t size; /* bytes of the added file */
};

struct bid_unpack_config {
	uint64_t max_size; /* limit for a member; 0 is 16 GiB */
	/* Report a member that is an artifact or was refused. A non-zero return ends the unpacking and is returned. May be NULL. */
	int (*member)(void *user, const struct bid_archive_member *member);
	bid_archive_tick_fn tick; /* progress in bytes of the archive; total is 0 if unknown. May be NULL */
	void *user;
};

/*
 * Add the contents of the archive at @fd to the store. The archive is not trusted: no path in it serves as a path. A name only says
 * the artifact and the id. An ELF file must carry this id; each one is a transaction of its own, and replaces nothing. A kernel's
 * symbol table and probe definitions carry no id: the reader checks their form, and trusts the name. It creates perf's links anew,
 * without a look at those in the archive. It refuses everything else: other links, devices, names outside the layout, members above
 * the limit. A refused member does not stop the rest.
 *
 * `perf archive --all` packs a recording beside "perf.symbols.tar.*". The reader skips the recording without a call of
 * config->member. It reports the members of the inner archive by their names there.
 *
 * The archive may be compressed once, in any of the ways above. An archive that unpacks to 250 times its size, after 256 MiB of
 * output, counts as a bomb. Sets @ret_counts in any case. Returns 0 at the end, with all added files on disk. Otherwise
 *   -EINVAL	no archive
 *   -EBADMSG	a damaged or truncated archive; the members before the damage are in the store
 *   -EFBIG	a bomb
 *   other	as read(2) and bid_txn_commit(), without its -EBADMSG
 */
int bid_archive_unpack(struct bid_store *store, int fd, const struct bid_unpack_config *config,
		       struct bid_archive_counts *ret_counts);

#endif
