/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Carrying builds from one machine to another: an archive in the layout of perf-archive(1), which either side may make or take in
 * with perf's command, or with tar(1) in a build-id cache, as well:
 *
 *   .build-id/xx/rest				symlink to ../../<path>/<id>
 *   <path>/<id>/{debug,elf,kallsyms,probes,vdso}
 *
 * May block on disk, and on the descriptor of the archive.
 */
#ifndef BID_API_ARCHIVE_H
#define BID_API_ARCHIVE_H

#include "api/store.h"

/* How an archive is compressed. */
enum bid_packing {
	BID_PACKING_NONE = 0,
	BID_PACKING_BZIP2, /* perf's own */
	BID_PACKING_GZIP,
	BID_PACKING_XZ,
	BID_PACKING_ZSTD,
	BID_PACKING_COUNT
};

/* What the end of the file name @name says: ".tar", ".tar.bz2", ".tar.gz", ".tar.xz", ".tar.zst". Returns 0, or -EINVAL. */
int bid_packing_parse(const char *name, enum bid_packing *ret_packing);

/* One build to pack. */
struct bid_archive_build {
	struct bid_id id; /* as the other machine will look for it */
	const char *path; /* the original path to give it if the store knows none, "/usr/bin/ls"; or "[vdso]", or NULL */
	/* what came of it */
	int error; /* 0; -ENOENT if the store has nothing of it; or why it could not be had, as of bid_store_find() */
	unsigned kinds; /* of the artifacts that were packed, as 1 << enum bid_kind */
	uint64_t size; /* of them, unpacked */
	enum bid_kind left_out; /* one that may be there, and could not be had, though others were packed; else BID_KIND_NONE */
	int why; /* that could not be, as of bid_store_find() */
};

/* How far it is. A non-zero return ends it and is returned. */
typedef int (*bid_archive_tick_fn)(void *user, uint64_t done, uint64_t total);

/*
 * Write an archive of the @n @builds to @fd, from where it is: every artifact that the store, or a lower one, has of them and that
 * carries its id. The same builds give the same bytes, in whatever order and as often as they are named: every member has the same
 * time. @tick may be NULL; it gets numbers of builds. Returns 0 and what came of each in it, -EAGAIN if a file became shorter
 * meanwhile, -ENOTSUP for a packing that libarchive was built without, or as write(2).
 */
int bid_archive_pack(struct bid_store *store, struct bid_archive_build *builds, size_t n, enum bid_packing packing, int fd,
		     bid_archive_tick_fn tick, void *user);

/* What became of one member of an archive. */
enum bid_member_state {
	BID_MEMBER_ADDED,
	BID_MEMBER_KNOWN, /* the store had it */
	BID_MEMBER_REFUSED,
};

struct bid_archive_member {
	const char *name; /* in the archive: text from outside */
	enum bid_member_state state;
	struct bid_id id; /* len 0 of a refused one whose name says nothing */
	enum bid_kind kind; /* BID_KIND_NONE of such a one */
	uint64_t size; /* unpacked */
	const char *why; /* refused: in words */
};

struct bid_archive_counts {
	uint64_t added, known, refused; /* members */
	uint64_t size; /* of what was added */
};

struct bid_unpack_config {
	const char *name; /* of the archive, to be recorded; or NULL */
	uint64_t max_size; /* of a member; 0 is 16 GiB */
	/* Called for each member that is an artifact or was refused. A non-zero return ends it and is returned. May be NULL. */
	int (*member)(void *user, const struct bid_archive_member *member);
	bid_archive_tick_fn tick; /* bytes of the archive; the total is 0 if it is not known. May be NULL */
	void *user;
};

/*
 * Put what is in the archive at @fd into the store. It comes from anywhere and is not trusted: no path in it is ever used as one.
 * A name only says which artifact of which id this is to be; ELF files have to carry that id, each is a transaction of its own,
 * and nothing is replaced. A kernel's symbol table and probe definitions carry none: their form is checked, and the name is
 * believed. perf's links are made anew. Everything else is refused: links that are not perf's, devices, names that are not in the
 * layout, what is larger than the limit. What was refused does not keep the rest from being taken.
 *
 * A recording beside "perf.symbols.tar.*", as `perf archive --all` packs them, is passed over without a call of config->member; the
 * members of that archive are called by their names in it.
 *
 * Compressed in any of the ways above, once. What unpacks to 250 times its size or more, after 256 MiB of it, is taken for a bomb,
 * and ends it. Returns 0 after the end, with everything that was added on disk. @ret_counts is set in any case. Otherwise
 *   -EINVAL	this is no archive
 *   -EBADMSG	the archive is damaged or cut short; what was before that is in the store
 *   -EFBIG	a bomb
 *   other	as read(2) and bid_txn_commit(), but for -EBADMSG
 */
int bid_archive_unpack(struct bid_store *store, int fd, const struct bid_unpack_config *config,
		       struct bid_archive_counts *ret_counts);

#endif
