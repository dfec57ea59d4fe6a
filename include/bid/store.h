/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The store: a directory in the layout of perf's build-id cache (perf, util/build-id.c), plus one private folder ".bidfs".
 *
 *   bid_store_open()
 *     bid_store_add_lower()	any number of times, before other threads use the store
 *     bid_store_find()		and the other functions below, from any number of threads
 *       bid_file_release()
 *   bid_store_free()
 *
 * perf and others read and write the store at any time, without a lock. Only <bid/fetch.h> uses the network. No name inside the
 * store leads out of it (openat2(2), RESOLVE_BENEATH). All functions may block on disk; errors are as in <bid/error.h>.
 */
#ifndef BID_STORE_H
#define BID_STORE_H

#include <stddef.h>
#include <sys/stat.h>

#include <bid/artifact.h>

struct bid_store;

enum bid_store_flags {
	BID_STORE_WRITE = 1 << 0, /* open for adding; makes ".bidfs", and removes the temporary files of dead writers */
	BID_STORE_CREATE = 1 << 2, /* make the directory of the store, but none above: for the default store */
};

/*
 * Find the store that perf would use (perf-config(1), "buildid.dir"): from $PERF_CONFIG alone if that is set, else from
 * ~/.perfconfig, else from /etc/perfconfig; without any, or with an empty one, ~/.debug. "~/" at its beginning is the home
 * directory: $HOME, or for a process without one the user's from passwd(5). As perf does, it warns of a file of another user but
 * root, and does not read it. The store need not exist. Returns 0 and a path of less than @size bytes, or
 *   -EINVAL		a value with a backslash or an open quote, or a path that is not absolute; logged
 *   -ENAMETOOLONG	@size does not do
 *   -ENOENT		no home directory
 *   other		a configuration file could not be read; logged
 */
int bid_store_default_path(char *ret_path, size_t size);

/*
 * Open the store at @path, which must exist. Returns 0, or -ENOENT, -ENOTDIR, -EACCES, or with BID_STORE_WRITE -EROFS or -EACCES
 * for a store that cannot be written; -ENOSYS where there is no openat2(2), because Linux is older than 5.6 or a filter of system
 * calls refuses it. The caller frees @ret_store with bid_store_free().
 */
int bid_store_open(const char *path, unsigned flags, struct bid_store **ret_store);

/* @store may be NULL. */
void bid_store_free(struct bid_store *store);

/*
 * Look into the directory @path too, after the store itself and the lower stores named before: another build-id cache of perf, a
 * tree of debug files such as /usr/lib/debug, or a cache of libdebuginfod. A lower store's files are checked in the same way;
 * nothing is ever written there. All functions that look for something see it, and a file of an earlier store hides one of the
 * same name in a later one. Only before other threads use @store. Errors as of bid_store_open().
 */
int bid_store_add_lower(struct bid_store *store, const char *path);

/* The path that opened it, made absolute. Lives as long as the store. */
const char *bid_store_path(const struct bid_store *store);

/* An artifact, open and checked. Its owner declares it as BID_FILE_NONE and releases it with bid_file_release(). */
struct bid_file {
	int fd; /* O_RDONLY; -1 in a released one */
	struct stat st; /* fstat(2) of fd, when it was opened */
	enum bid_kind kind; /* BID_KIND_ELF if a request for debuginfo found a file that was not stripped */
	bool stripped; /* debuginfo with neither DWARF nor a symbol table: there is no better one */
	bool packed; /* false; true only within the library, of a compressed module */
};

#define BID_FILE_NONE ((struct bid_file){ .fd = -1 })

/* Close @file and set it to BID_FILE_NONE. */
void bid_file_release(struct bid_file *file);

/* May a lookup make an artifact from other files of the build? */
enum bid_derive {
	BID_NEVER_DERIVE, /* no: -EAGAIN in its place. For threads that answer readers of other files */
	BID_MAY_DERIVE, /* yes, which may take seconds */
};

/*
 * Open the artifact that @artifact names. The store serves an ELF file only if the id in the file answers the requested one; the
 * result is cached until the inode, size or times of the file change. With BID_MAY_DERIVE, a compressed kernel module is unpacked;
 * a section is cut out of the debuginfo or the ELF file if it is in one of them, and kept beside them; an unstripped file is put
 * together of both. In a store that cannot be written, such a file is in memory. Returns 0, or
 *   -ENOENT	the store has no such artifact
 *   -EBADMSG	it has a file under that name, but with another id or none; it is logged, not served, and stays where it is; or it
 *		has both parts of an unstripped file, which do not belong together
 *   -EFBIG	it has one that unpacks to more than 512 MiB; likewise
 *   -EOPNOTSUPP	it has one that cannot be unpacked; likewise; or both parts, which are relocatable or lack section headers
 *   -ENODATA	a section that this build does not have: both its files are here, and say so
 *   -EAGAIN	only a derivation, which BID_NEVER_DERIVE excludes, can tell
 *   -EACCES	it has one that this process may not read
 *   other	as open(2)
 */
int bid_store_find(struct bid_store *store, const struct bid_artifact *artifact, enum bid_derive derive, struct bid_file *ret_file);

/* The kinds of artifacts that lie under @id, unchecked, as a mask of 1 << enum bid_kind. Zero if none; or a negative errno. */
int bid_store_kinds(struct bid_store *store, const struct bid_id *id);

/*
 * Write the directory of @id relative to its store, "usr/bin/ls/15df…", from perf's link. Returns 0, -ENOENT if there is no such
 * link, -EINVAL if the link has another form than perf's, -ENAMETOOLONG if @size does not do.
 */
int bid_store_perf_link(struct bid_store *store, const struct bid_id *id, char *ret_path, size_t size);

/*
 * Write the records of @id as JSON text: docs/FORMAT.md, "info". Returns 0, a string for the caller to free, and the time of the
 * last change; -ENOENT if nothing is known, or -ENOMEM.
 */
int bid_store_info(struct bid_store *store, const struct bid_id *id, char **ret_json, struct timespec *ret_changed);

/* A callback of an enumeration. A non-zero return ends the enumeration, which then returns that value. */
typedef int (*bid_store_id_fn)(void *user, const struct bid_id *id);

/* Every id that perf's links name, in no order, without holding them in memory. An id without its files is named too. */
int bid_store_each_id(struct bid_store *store, bid_store_id_fn fn, void *user);

/* The builds that the store has of the original path @path, "/usr/bin/ls". -ENOENT if the store knows no such path. */
int bid_store_each_build(struct bid_store *store, const char *path, bid_store_id_fn fn, void *user);

#define BID_ID_DIGITS_MIN 7 /* shortest abbreviation, as in git */

/*
 * Find the id in @store, NULL for an empty one, that begins with @digits, BID_ID_DIGITS_MIN or more in lower case. Calls @fn,
 * which may be NULL, for each such id.
 * Returns 0, or
 *   -EINVAL	@digits are no abbreviation
 *   -ENOENT	no stored id begins like that
 *   -ENOTUNIQ	several do, and none of them is @digits
 *   other	as bid_store_each_id()
 */
int bid_store_expand_id(struct bid_store *store, const char *digits, bid_store_id_fn fn, void *user, struct bid_id *ret_id);

/* How the bytes of an added file get into the store. */
enum bid_link {
	BID_LINK_AUTO = 0, /* reflink, else hard link where that is safe, else copy */
	BID_LINK_REFLINK,
	BID_LINK_HARD,
	BID_LINK_COPY,
};

struct bid_added {
	struct bid_id id;
	enum bid_kind kind; /* BID_KIND_ELF, or BID_KIND_DEBUGINFO for a separate debug file */
	bool known; /* was there already */
	enum bid_link link; /* how it was put there; BID_LINK_AUTO if it was known */
};

/*
 * Add the file at @path under its build-id. A file that is setuid or setgid, has capabilities, or that not all can read where it
 * is, is copied, never linked, and loses these bits. On return of 0 it is on disk. Returns additionally -EROFS without
 * BID_STORE_WRITE, -ENOEXEC, -ENODATA, -EBADMSG for a packed file that is damaged or cut short, -EAGAIN for one to be copied that
 * somebody is writing, -ENOTUNIQ, and -EINVAL for something that is not a regular file.
 */
int bid_store_add(struct bid_store *store, const char *path, enum bid_link link, struct bid_added *ret_added);

#endif
