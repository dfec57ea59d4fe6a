/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The store, beyond <bid/store.h>. docs/FORMAT.md describes its layout:
 *
 *   .build-id/xx/rest		symlink to ../../<path>/<id>
 *   <path>/<id>/{elf,debug,kallsyms,probes,vdso}
 *   [debuginfod]/<id>/…	what was fetched before anybody named a path for it
 *
 * Any number of threads may use a struct bid_store. All functions may block on disk.
 */
#ifndef BID_API_STORE_H
#define BID_API_STORE_H

#include <sys/statvfs.h>

#include <bid/store.h>

#include "api/artifact.h"

/* One more of enum bid_store_flags: write without O_TMPFILE, as on file systems that lack it. */
#define BID_STORE_NAMED_TEMP (1 << 1)

/* The directory of fetched artifacts without a path, and of ids without a name in the mount. */
#define BID_STORE_NAMELESS "[debuginfod]"

/* Log as an error that bid_store_open() returned @error for @path, with the remedy. */
void bid_store_refused(int error, const char *path);

/*
 * Follow links in lower stores of @store that lead into one of @dirs, such as "/nix/store": absolute real paths in an array that
 * ends with NULL and outlives @store. Only before the store is used by other threads.
 */
void bid_store_allow_links(struct bid_store *store, const char *const *dirs);

bool bid_store_writable(const struct bid_store *store);

int bid_store_statfs(struct bid_store *store, struct statvfs *ret_statvfs);

/* Reading */

/*
 * As bid_store_find(), but look into the directory @dir alone, relative to the store or a lower one: "usr/bin/ls/ID". perf's link
 * need not lead there.
 */
int bid_store_find_in(struct bid_store *store, const char *dir, const struct bid_request *request, struct bid_file *ret_file);

/*
 * Check @file, which bid_store_find() found for @request, once more, as it is open: it may have been changed, or lost its name.
 * Its stat was taken just now. Returns 0, -EBADMSG if it is not the artifact any more, or as pread(2).
 */
int bid_store_recheck(struct bid_store *store, const struct bid_request *request, const struct bid_file *file);

/* Does the store have anything under @id, by any spelling of bid_id_answers()? 1, 0 or a negative errno. */
int bid_store_has(struct bid_store *store, const struct bid_id *id);

/* A callback of bid_store_each_path(); @path is relative to its store. A non-zero return ends the enumeration, and is returned. */
typedef int (*bid_store_path_fn)(void *user, const char *path);

/* The directories of @id, "usr/bin/ls/15df…": where perf's link leads, and the others that were noted. One may come twice. */
int bid_store_each_path(struct bid_store *store, const struct bid_id *id, bid_store_path_fn fn, void *user);

/* What a name in the tree of original paths, or of sources, is. */
enum bid_entry {
	BID_ENTRY_NONE = 0,
	BID_ENTRY_DIR, /* a part of an original path */
	BID_ENTRY_ID, /* an id below an original path: holds artifacts */
	BID_ENTRY_FILE, /* a source file, "api/piece.h" */
};

/*
 * What is at @path, relative to the store ("" is its root)? ".build-id" and ".bidfs" are not part of this tree. @ret_stat, which
 * may be NULL, is its stat(2), unless it is BID_ENTRY_NONE.
 */
enum bid_entry bid_store_classify(struct bid_store *store, const char *path, struct stat *ret_stat);

/* stat(2) of what is at @path, relative to the store. */
int bid_store_stat(struct bid_store *store, const char *path, struct stat *ret_stat);

/* A callback of the enumerations below; a non-zero return ends the enumeration, which then returns that value. */
typedef int (*bid_store_entry_fn)(void *user, const char *name, enum bid_entry entry);

/* As bid_store_each_id(), for the ids that begin with the byte @first. */
int bid_store_each_id_in(struct bid_store *store, uint8_t first, bid_store_id_fn fn, void *user);

#define BID_ID_WHOLE_MIN 8 /* bytes; a shorter id that is not stored is an abbreviation or a slip */

/*
 * A mark of the ids that are enumerated: as long as two marks are equal, so are all enumerations between them. Looks at the 257
 * directories of links, and at those of lower stores. -EAGAIN if one of them was changed so lately that a further change could
 * leave the same mark. Never 0.
 */
int bid_store_ids_mark(struct bid_store *store, uint64_t *ret_mark);

/* The same for the ids that begin with the byte @first. */
int bid_store_ids_mark_in(struct bid_store *store, uint8_t first, uint64_t *ret_mark);

/* Every entry of the tree of original paths directly below @path. -ENOENT if there is no such directory. */
int bid_store_each_entry(struct bid_store *store, const char *path, bid_store_entry_fn fn, void *user);

/* Is the ELF file of @id a relocatable one, as kernel modules are? May block on disk. */
bool bid_store_is_module(struct bid_store *store, const struct bid_id *id);

/*
 * The modules whose symbols are in the symbol table of the kernel @id, in the format of /proc/modules: names, addresses and sizes
 * are as far as symbols tell. Returns 0, a string for the caller to free and the attributes of the table, whose readers may read
 * this; -ENOENT if there is no symbol table, -ENOMEM, or as pread(2).
 */
int bid_store_modules(struct bid_store *store, const struct bid_id *id, char **ret_text, struct stat *ret_table);

/*
 * Open a file of a copy that perf made of /proc/kcore, "[kernel.kcore]/ID/STAMP/NAME". What is in it carries no id: that of the
 * directory is perf's word. One that is cut short, because perf is writing it or did not come to its end, is not there. Errors as
 * of bid_store_find().
 */
int bid_store_open_kcore(struct bid_store *store, const char *path, struct bid_file *ret_file);

/* @value is text, of any bytes; both die when the callback returns. A non-zero return ends it, and is returned. */
typedef int (*bid_store_fact_fn)(void *user, const char *name, const char *value);

/*
 * Call @fn for each thing that is recorded of an artifact: docs/FORMAT.md, "record", such as "how", "time" and "digest"; of one
 * without a record, "how" is "added". It does not say that the artifact is right. -ENOENT if it is not there, -EBADMSG if its
 * record is damaged.
 */
int bid_store_each_fact(struct bid_store *store, const struct bid_request *request, bid_store_fact_fn fn, void *user);

/* Writing; all of these return -EROFS on a store opened without BID_STORE_WRITE. */

/* Where an artifact came from. Strings may be NULL; from a server's headers they are shown, never used as a path. */
struct bid_origin {
	const char *how; /* "fetched", or "sliced" of a section that was cut out of a file of the store */
	const char *server; /* the server's URL */
	const char *url; /* the URL of the file */
	const char *file; /* the file's name at the server */
	const char *archive; /* the package it was in, at the server */
	const char *ima_signature; /* of the file, as the server said, in hex; not checked */
	int64_t modified; /* when the file was modified, as the server said, in seconds since the epoch; 0 if it did not */
};

struct bid_txn;

/*
 * A transaction that puts one artifact into the store:
 *
 *   bid_txn_begin()
 *     bid_txn_expect()		with an announced size
 *     bid_txn_write()		any number of times
 *     bid_txn_commit()
 *   bid_txn_free()		rolls back without a commit
 *
 * The artifact becomes visible with bid_txn_commit(); a crash before it leaves nothing behind. Multithreading: one thread at a
 * time.
 */
int bid_txn_begin(struct bid_store *store, const struct bid_request *request, struct bid_txn **ret_txn);

/*
 * Reserve space for @size bytes, beside other reservations and min_free ("api/evict.h"). If that takes an eviction, @evict does it
 * and may block for long; without @evict return -EAGAIN, for bid_txn_make_room(). Returns 0, or -ENOSPC with a bid_txn_reason().
 * The reservation ends with bid_txn_reset() or as many written bytes. A transaction without it meets a full disk in
 * bid_txn_write().
 */
int bid_txn_expect(struct bid_txn *txn, uint64_t size, bool evict);

#define BID_TXN_UNSAID_MAX (1ULL << 30) /* bytes */

/*
 * As write(2). Bytes beyond the expected ones reserve space every 64 MiB, with evictions for the first BID_TXN_UNSAID_MAX: -ENOSPC
 * may come before the disk is full, with a bid_txn_reason().
 */
int bid_txn_write(struct bid_txn *txn, const void *data, size_t len);

/*
 * As bid_txn_write(), but return -EAGAIN instead of evicting: the caller calls bid_txn_make_room(), from any thread, and then
 * writes the same bytes again. The transaction knows which of them it has already.
 */
int bid_txn_try_write(struct bid_txn *txn, const void *data, size_t len);

/* Evict after -EAGAIN. Returns 0 or -ENOSPC, as the next write does. May block for long. */
int bid_txn_make_room(struct bid_txn *txn);

/* Use @path, absolute or a name of perf in brackets, for a build without an original path. -EINVAL for any other form. */
int bid_txn_set_path(struct bid_txn *txn, const char *path);

/* Drop all written bytes. */
int bid_txn_reset(struct bid_txn *txn);

/*
 * Check the written bytes and publish them: fsync, link without replacing, perf's link, record of @origin. With @origin NULL the
 * file is the user's and gets no record. If another process has published the artifact, its file is the result. Returns 0 and the
 * artifact, or
 *   -EBADMSG	not an ELF file, damaged, with another id, or debuginfo without debug sections or symbol table
 *   -ESTALE	it carries the id, but the first download had other bytes (docs/FORMAT.md, "Facts")
 *   other	as write(2), fsync(2), mkdir(2), link(2)
 */
int bid_txn_commit(struct bid_txn *txn, const struct bid_origin *origin, struct bid_file *ret_file);

/* The build-id of the dwz file (dwz(1)) in the .gnu_debugaltlink of the committed file; len 0 if there is none. */
struct bid_id bid_txn_alt(const struct bid_txn *txn);

/* Accept other bytes than those of the first download; their digest replaces the first one. */
void bid_txn_accept(struct bid_txn *txn);

/* The reason of the last -ENOSPC, -EBADMSG or -ESTALE of @txn, in words, or "". Lives as long as @txn. */
const char *bid_txn_reason(const struct bid_txn *txn);

/* @txn may be NULL. */
void bid_txn_free(struct bid_txn *txn);

/* A file to add, where a path does not say all of it. */
struct bid_add {
	const char *path; /* to open; with a descriptor only the absolute path to file it under, which need not exist */
	int fd; /* the file, open for reading, which stays the caller's; -1 to open @path */
	enum bid_link link;
	bool batch; /* on disk not on return, but after the next bid_store_sync() */
	struct timespec clean_before; /* a file that was not changed since then is on disk; zero if nothing is known */
};

/*
 * bid_store_add() of that. A file that has no name any more, or has it in another mount namespace, is added by its descriptor. The
 * additions of a batch are each whole or absent after a crash, too.
 */
int bid_store_add_file(struct bid_store *store, const struct bid_add *add, struct bid_added *ret_added);

/* Everything that was added to the store in a batch is on disk on return of 0. Errors as of syncfs(2). */
int bid_store_sync(struct bid_store *store);

/*
 * Somebody is to be told that @file, which was found in the store, is there: on return of 0 it is on disk, too, whoever put it
 * there. Syncs only what was changed within the last minute. Errors as of syncfs(2).
 */
int bid_store_settle(struct bid_store *store, const struct bid_file *file);

/*
 * Add @len bytes of memory, which are no file, where perf files them: BID_KIND_KALLSYMS under "[kernel.kallsyms]", BID_KIND_VDSO
 * under "[vdso]", BID_KIND_PROBES where the build has its path. On return of 0 they are on disk. Returns additionally -EINVAL for
 * any other kind, for a vDSO -ENOEXEC and -EBADMSG if it is none or has another id, for symbols -EBADMSG if they are none or have
 * no addresses, and for probes -ENOENT without such a build.
 *
 * @mode is who may read it, of whom there are more than the owner only if nothing in it is a secret: the symbols of a kernel that
 * runs say where its code is. What root adds is the store's owner's.
 */
int bid_store_add_data(struct bid_store *store, const struct bid_request *request, mode_t mode, const void *data, size_t len,
		       struct bid_added *ret_added);

/* Scanning */

/* One ELF file that a scan came upon, or something that it could not look into. */
struct bid_scan_file {
	const char *path; /* absolute; lives until the callback returns */
	int error; /* 0, or why it was not taken: as of bid_store_add() and open(2) */
	struct bid_added added; /* with error 0 */
};

struct bid_scan_counts {
	uint64_t seen; /* regular files, of any content */
	uint64_t added;
	uint64_t known;
	uint64_t refused; /* files and directories with an error; what is no ELF file is seen, and not refused */
	uint64_t recalled; /* not opened, because an earlier scan had */
};

struct bid_scan_config {
	unsigned jobs; /* threads; 0 is one per CPU that this process may use */
	bool cross; /* go into other file systems, but for those without files of anybody, such as proc */
	bool forget; /* do as if there had not been an earlier scan */
	enum bid_link link;
	/* Called for each file, from the thread that scans. A non-zero return ends the scan. May be NULL. */
	int (*file)(void *user, const struct bid_scan_file *file);
	/*
	 * Called now and then, from the same thread. A non-zero return ends the walk: what it has come upon until then is added,
	 * and reported. May be NULL.
	 */
	int (*progress)(void *user, const struct bid_scan_counts *counts);
	void *user;
};

/*
 * Add every file with a build-id below the directory @path: ELF files, and kernel modules by their names (.ko, .ko.gz, .ko.xz,
 * .ko.zst). Symbolic links are not followed; the store itself and mounts of bidfs are left out. A file is reported as added once it
 * is on disk, which is achieved for many at a time.
 *
 * What a file was found to be is kept in the store (docs/FORMAT.md, "What was scanned"): as long as name, inode, size and times
 * are the same, and its id is in the store, a later scan of @path does not open it.
 *
 * Returns 0 if it came to the end, whatever it had to refuse; what a callback returned; or a negative errno: @path could not be
 * opened (-ENOTDIR if it is no directory, -ELOOP for the store itself and mounts of bidfs), or the store not written, or not all
 * of the tree could be seen, for lack of memory or descriptors. @ret_counts is set in any case.
 */
int bid_store_scan(struct bid_store *store, const char *path, const struct bid_scan_config *config,
		   struct bid_scan_counts *ret_counts);

#endif
