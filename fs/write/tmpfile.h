/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Temporary files that programs write through the mount, and their one way into the store. Each has a name in a directory
 * "<path>/ID" of the mount, and none in the store before it is published. The store verifies a file first. Pure C: knows no FUSE.
 *
 *	bid_tmpfiles_begin()	CREATE: the name has a reference, the caller another
 *	bid_tmpfile_ref()	a handle has a reference, too
 *	bid_tmpfile_open()	a handle for writing
 *	bid_tmpfile_publish()	LINK, RENAME: to a final name
 *	bid_tmpfile_flush()	FLUSH, for each close(2) of a descriptor; the caller sees the error
 *	bid_tmpfile_close()	RELEASE of a handle for writing
 *	bid_tmpfile_last_close()	the same, of the last one; only the log has the error
 *	bid_tmpfile_remove_name()	the name is unlinked, renamed, published, or closed after a refusal
 *	bid_tmpfile_unref()	the last reference frees the file
 *
 * A file that was created under its final name is published by its last writer's close(2): by FLUSH of the thread that opened the
 * only handle, else by RELEASE, as of a process that inherited the descriptor, or of an empty file. After an error of LINK
 * or RENAME a file keeps its temporary name; after one of FLUSH, RELEASE drops its final name.
 *
 * Locking: bid_tmpfiles has one lock, for lists and counters. Any thread may call.
 */
#ifndef BID_FS_TMPFILE_H
#define BID_FS_TMPFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/perf_write.h"
#include "api/written_file.h"
#include "vfs/node.h"

struct bid_tmpfiles;
struct bid_whiteouts;

/* One temporary file. Its fields never change. */
struct bid_tmpfile {
	uint32_t number; /* unique, from 1 on */
	struct bid_id id; /* id of its directory */
	char *dir; /* relative to the store, "usr/bin/ls/ID"; owned */
	char *name; /* in dir; owned */
	enum bid_kind kind; /* the last close(2) publishes a file with this final name; BID_KIND_NONE with a temporary name */
	struct bid_written_file *file; /* owned */
};

/* Borrows @store, and @probe_whiteouts, which loses the ids of published definitions. -ENOMEM. */
int bid_tmpfiles_new(struct bid_store *store, struct bid_whiteouts *probe_whiteouts, struct bid_tmpfiles **ret_tmpfiles);
void bid_tmpfiles_free(struct bid_tmpfiles *tmpfiles);

/*
 * Begin the file @name in the directory @dir of @id. Returns 0, -EEXIST, -ENOMEM, or as bid_written_file_new(). As of the next
 * functions, the caller has a reference.
 */
int bid_tmpfiles_begin(struct bid_tmpfiles *tmpfiles, const struct bid_id *id, const char *dir, const char *name,
		       struct bid_tmpfile **ret_tmpfile);

/* Find a file by number, with or without a name, or by name. NULL if there is none. */
struct bid_tmpfile *bid_tmpfiles_find_number(struct bid_tmpfiles *tmpfiles, uint32_t number);
struct bid_tmpfile *bid_tmpfiles_find(struct bid_tmpfiles *tmpfiles, const char *dir, const char *name);

/* The node of @tmpfile, which owns nothing. */
struct bid_node bid_tmpfile_node(const struct bid_tmpfile *tmpfile);

/* The name of the directory @dir for this module, perhaps in @buf. */
enum { BID_TMPFILES_DIR = sizeof(".build-id/00") };
const char *bid_tmpfiles_dir(const struct bid_node *dir, char buf[static BID_TMPFILES_DIR]);

/* Add a reference. Returns @tmpfile. */
struct bid_tmpfile *bid_tmpfile_ref(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile);

/* Count a writer: the thread @tid opened @tmpfile. bid_tmpfile_close() returns whether it was the last writer. */
void bid_tmpfile_open(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile, pid_t tid);
bool bid_tmpfile_close(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile);

/* @tmpfile may be NULL. */
void bid_tmpfile_unref(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile);

/* Drop the name, if there is one. */
void bid_tmpfile_remove_name(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile);

/* Call @fn, with the lock held, for each file with a name in @dir. Returns the first result other than 0, or 0. */
int bid_tmpfiles_each_in(struct bid_tmpfiles *tmpfiles, const char *dir, int (*fn)(void *user, const struct bid_tmpfile *tmpfile),
			 void *user);

/* Has @dir a file with a name, or with @written one with a writer? */
bool bid_tmpfiles_has_in(struct bid_tmpfiles *tmpfiles, const char *dir, bool written);

/* Drop the names of all files in @dir. */
void bid_tmpfiles_unname_in(struct bid_tmpfiles *tmpfiles, const char *dir);

/* All functions below may block on disk. */

/*
 * Publish @tmpfile as @name in the directory @dir of @id, and log an error. Returns 0 and the artifact; -EXDEV if
 * @name is not final, so that a program copies; or as bid_written_file_publish().
 */
int bid_tmpfile_publish(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile, const struct bid_id *id, const char *dir,
			const char *name, struct bid_artifact *ret_artifact);

/* Publish @tmpfile if the thread @tid is its only writer. Returns 0, or as bid_written_file_publish(). */
int bid_tmpfile_flush(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile, pid_t tid);

/* Publish @tmpfile after its last writer; after an error, log it and remove the name of @tmpfile. */
void bid_tmpfile_last_close(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile);

/* Drop the name of @tmpfile, and publish it no more. -EEXIST if it was published under that name meanwhile. */
int bid_tmpfile_unlink(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile);

/* Drop temporary files without a writer and without use for an hour. */
void bid_tmpfiles_sweep(struct bid_tmpfiles *tmpfiles);

/* End the session. After an unmount, publish files without a RELEASE. After a signal, drop and log files with a writer. */
void bid_tmpfiles_end(struct bid_tmpfiles *tmpfiles, bool unmounted);

#endif
