/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The store, beyond <bid/store.h>. docs/FORMAT.md describes its layout. Any number of threads may use a struct bid_store. All
 * functions may block on disk.
 */
#ifndef BID_API_STORE_H
#define BID_API_STORE_H

#include <sys/statvfs.h>

#include <bid/store.h>

#include "api/artifact.h"

/* A further flag of enum bid_store_flags: write without O_TMPFILE, as on file systems that lack it. */
#define BID_STORE_NAMED_TEMP (1 << 1)

/* The directory of fetched artifacts without a path, and of ids without a name in the mount. */
#define BID_STORE_UNNAMED "[debuginfod]"

/* Log an error: bid_store_open() returned @error for @path. Adds the remedy. */
void bid_store_refused(int error, const char *path);

/*
 * Follow links in the lower stores of @store that lead into one of @dirs, such as "/nix/store": absolute real paths in a
 * NULL-terminated array that outlives @store. Only before other threads use the store.
 */
void bid_store_allow_links(struct bid_store *store, const char *const *dirs);

/*
 * Let @store and its lower stores serve no download without a signer in its record. Files without a record are served: they were
 * added. Only before other threads use the store.
 */
void bid_store_require_signed(struct bid_store *store);

/* Was @store opened with BID_STORE_WRITE? */
bool bid_store_writable(const struct bid_store *store);

/* statvfs(3) of the file system of @store. Returns 0 or a negative errno. */
int bid_store_statfs(struct bid_store *store, struct statvfs *ret_statvfs);

/* Reading */

/*
 * As bid_store_find() with BID_NEVER_DERIVE, but look into the directory @dir alone, relative to the store or a lower one:
 * "usr/bin/ls/ID". perf's link need not lead there.
 */
int bid_store_lookup_in(struct bid_store *store, const char *dir, const struct bid_artifact *artifact, struct bid_file *ret_file);

/*
 * Check @file, found by bid_store_find() for @artifact, once more: it may have been changed, or lost its name. Its stat is recent.
 * Returns 0, -EBADMSG if it is no longer the artifact, or as pread(2).
 */
int bid_store_recheck(struct bid_store *store, const struct bid_artifact *artifact, const struct bid_file *file);

/* Does the store have anything under @id, by any id alias of bid_id_answers()? Returns 1, 0 or a negative errno. */
int bid_store_has(struct bid_store *store, const struct bid_id *id);

/* type of a name in the tree of original paths, or of sources */
enum bid_entry {
	BID_ENTRY_NONE = 0,
	BID_ENTRY_DIR, /* a part of an original path */
	BID_ENTRY_ID, /* an id below an original path: holds artifacts */
	BID_ENTRY_FILE, /* a source file, "api/source_section.h" */
};

/*
 * Classify @path, relative to the store ("" is its root). ".build-id" and ".bidfs" are not part of this tree. Sets @ret_stat, which
 * may be NULL, unless the result is BID_ENTRY_NONE.
 */
enum bid_entry bid_store_entry_at(struct bid_store *store, const char *path, struct stat *ret_stat);

/* stat(2) of @path, relative to the store; a symbolic link counts as absent. Returns 0, -ENOENT, or as openat2(2). */
int bid_store_stat_path(struct bid_store *store, const char *path, struct stat *ret_stat);

/* Takes an entry of the enumerations below; a non-zero return ends the enumeration, which then returns this value. */
typedef int (*bid_store_entry_fn)(void *user, const char *name, enum bid_entry entry);

/* As bid_store_each_id(), for ids with the first byte @first. */
int bid_store_each_id_in(struct bid_store *store, uint8_t first, bid_store_id_fn fn, void *user);

/* Which first bytes do the ids have? An unreadable fan-out directory counts. Reads one name of each, and each cache once. */
void bid_store_first_bytes(struct bid_store *store, bool ret_has[static 256]);

#define BID_ID_WHOLE_MIN 8 /* bytes; a shorter id outside the store is an abbreviation or a slip */

/* Call @fn for every entry of the tree of original paths directly below @path. -ENOENT if there is no such directory. */
int bid_store_each_entry(struct bid_store *store, const char *path, bid_store_entry_fn fn, void *user);

/* Is the ELF file of @id a relocatable one, as kernel modules are, or a compressed one that no reader has opened yet? */
bool bid_store_is_module(struct bid_store *store, const struct bid_id *id);

/*
 * List the modules in the symbol table of the kernel @id in the format of /proc/modules; names, addresses and sizes come from
 * symbols. Returns 0, a string for the caller to free and the stat of the table, whose readers may read the list; -ENOENT without a
 * symbol table, -ENOMEM, or as pread(2).
 */
int bid_store_modules(struct bid_store *store, const struct bid_id *id, char **ret_text, struct stat *ret_table);

/*
 * Open a file of perf's copy of /proc/kcore, "[kernel.kcore]/ID/TIMESTAMP/NAME". It carries no id: perf vouches for the id of the
 * directory. A truncated file, still being written or abandoned by perf, counts as absent. Errors as bid_store_find().
 */
int bid_store_open_kcore(struct bid_store *store, const char *path, struct bid_file *ret_file);

/*
 * Takes a field; @value is text of any bytes. Both strings die when the callback returns. A non-zero return ends the enumeration,
 * and is returned.
 */
typedef int (*bid_store_field_fn)(void *user, const char *name, const char *value);

/*
 * Call @fn for each field of the record of an artifact: docs/FORMAT.md, "A record", such as "how", "time" and "digest". Without a
 * record, "how" is "added". A record does not prove that the artifact is correct. Returns -ENOENT for an absent artifact, -EBADMSG
 * for a damaged record.
 */
int bid_store_each_field(struct bid_store *store, const struct bid_artifact *artifact, bid_store_field_fn fn, void *user);

/* Writing; all of these return -EROFS on a store opened without BID_STORE_WRITE. */

/* Forget the first-seen digest of @artifact: the next download is the first again. */
void bid_store_forget_digest(struct bid_store *store, const struct bid_artifact *artifact);

/* a file to add, if a path alone does not describe it */
struct bid_add {
	const char *path; /* path to open; with a descriptor, only the absolute original path, which need not exist */
	int fd; /* the file, open for reading, owned by the caller; -1 to open @path */
	enum bid_link link;
	bool batch; /* on disk not on return, but after the next bid_store_sync() */
};

/*
 * Add a file as bid_store_add() does. Adds a file without a name, or with a name in another mount namespace, by its descriptor.
 * After a crash each addition of a batch is whole or absent, too.
 */
int bid_store_add_file(struct bid_store *store, const struct bid_add *add, struct bid_added *ret_added);

/* Sync the store: all additions of a batch are on disk on return of 0. Errors as syncfs(2). */
int bid_store_sync(struct bid_store *store);

/*
 * Make @file, found in the store, durable before a caller reports it: it is on disk on return of 0, from any writer. Syncs only for
 * a change within the last minute. Errors as syncfs(2).
 */
int bid_store_sync_file(struct bid_store *store, const struct bid_file *file);

/*
 * Add @len bytes of memory under perf's names: BID_KIND_KALLSYMS under "[kernel.kallsyms]", BID_KIND_VDSO under "[vdso]",
 * BID_KIND_PROBES in the object directory of the build. They are on disk on return of 0. Returns additionally -EINVAL for any other
 * kind; for a vDSO -ENOEXEC for no ELF file and -EBADMSG for another id; for symbols -EBADMSG if malformed or without addresses;
 * for probes -ENOENT without such a build. @mode selects the readers. It permits others than the owner only for public data: the
 * symbols of a running kernel reveal the addresses of its code. Additions by root belong to the owner of the store.
 */
int bid_store_add_data(struct bid_store *store, const struct bid_artifact *artifact, mode_t mode, const void *data, size_t len,
		       struct bid_added *ret_added);

/* Scanning */

/* one ELF file found by a scan, or a path that the scan could not read */
struct bid_scan_file {
	const char *path; /* absolute; lives until the callback returns */
	int error; /* 0, or the error that refused it: as bid_store_add() and open(2) */
	struct bid_added added; /* with error 0 */
};

struct bid_scan_counts {
	uint64_t seen; /* regular files, of any content */
	uint64_t added;
	uint64_t known;
	uint64_t refused; /* files and directories with an error; a file that is no ELF file counts as seen, not as refused */
	uint64_t recalled; /* skipped, because an earlier scan had examined them */
};

struct bid_scan_config {
	unsigned jobs; /* threads; 0 is one per CPU available to this process */
	bool cross; /* cross into other file systems, except those without users' files, such as proc */
	enum bid_link link;
	/* Report a file, in any thread of the scan, one at a time. A non-zero return ends the scan. May be NULL. */
	int (*file)(void *user, const struct bid_scan_file *file);
	/*
	 * Report progress from time to time, in the calling thread, never during a report. A non-zero return ends the dirwalk: the
	 * scan still adds and reports the files found before. May be NULL.
	 */
	int (*progress)(void *user, const struct bid_scan_counts *counts);
	void *user;
};

/*
 * Add every file with a build-id below the directory @path: ELF files, and kernel modules by their names (.ko, .ko.gz, .ko.xz,
 * .ko.zst). Does not follow symbolic links; skips the store itself and mounts of bidfs. Reports a file as added once it is on disk;
 * one sync serves many files. The store keeps the result for each file (docs/FORMAT.md, "What was scanned"). A later scan of @path
 * does not open a file with the same name, inode, size and times while its id is in the store. Sets @ret_counts in any case.
 * Returns 0 at the end, also after refusals; the result of a callback; or a negative errno. An errno means that @path could not be
 * opened (-ENOTDIR for no directory, -ELOOP for the store itself and mounts of bidfs), that the store could not be written, or that
 * memory or descriptors did not suffice for the whole tree.
 */
int bid_store_scan(struct bid_store *store, const char *path, const struct bid_scan_config *config,
		   struct bid_scan_counts *ret_counts);

#endif
