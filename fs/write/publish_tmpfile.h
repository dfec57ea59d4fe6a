/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The one way from a temporary file (tmpfile.h) into the store. link(2) or rename(2) to a final name publishes; a file that was
 * created under its final name is published by its last writer's close(2). The store verifies the file first. After an error of
 * LINK, RENAME or FLUSH a file keeps its temporary name; RELEASE drops it.
 *
 *	bid_publish_flush()	FLUSH, for each close(2) of a descriptor; the caller sees the error
 *	bid_publish_release()	RELEASE, after the last close(2); only the log has the error
 *
 * FLUSH of the thread that opened the only handle publishes. RELEASE publishes a file that is still temporary: one that another
 * process inherited, or an empty one.
 *
 * Every function may block on disk.
 */
#ifndef BID_FS_PUBLISH_TMPFILE_H
#define BID_FS_PUBLISH_TMPFILE_H

#include "fs.h"

/*
 * Publish @tmpfile as @name in the directory @dir of @id, and log an error. Returns 0 and the artifact; -EXDEV if
 * @name is not final, so that a program copies; or as bid_txn_commit_as().
 */
int bid_publish_as(struct bid_fs *fs, struct bid_tmpfile *tmpfile, const struct bid_id *id, const char *dir, const char *name,
		   struct bid_request *ret_request);

/* Publish @tmpfile if the thread @tid is its only writer. Returns 0, or as bid_txn_commit_as(). */
int bid_publish_flush(struct bid_fs *fs, struct bid_tmpfile *tmpfile, pid_t tid);

/* Publish @tmpfile, which has no writer any more, or drop its name and log the error. */
void bid_publish_release(struct bid_fs *fs, struct bid_tmpfile *tmpfile);

/* Drop the name of @tmpfile, and publish it no more. -EEXIST if it was published under that name meanwhile. */
int bid_publish_unlink(struct bid_fs *fs, struct bid_tmpfile *tmpfile);

/* Drop temporary files without a writer and without use for an hour. */
void bid_publish_sweep(struct bid_fs *fs);

/* End the session. After an unmount, publish files without a RELEASE. After a signal, drop and log files with a writer. */
void bid_publish_end(struct bid_fs *fs, bool unmounted);

#endif
