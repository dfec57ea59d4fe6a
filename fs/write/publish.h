/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The one way from a temporary file (tmpfile.h) into the store. A file gets its place when link(2) or rename(2) gives it its final
 * name, or, if it was made under that, when the last writer closes it. The store verifies it first. A file that cannot be published
 * has no name afterwards.
 *
 *	close(2) of each descriptor sends FLUSH, and the caller sees its error. The last one sends RELEASE, too, without an error.
 *	FLUSH of the thread that opened the only handle publishes. RELEASE publishes a file that is still temporary: one that
 *	another process inherited, or an empty one.
 *
 * Every function may block on disk.
 */
#ifndef BID_FS_PUBLISH_H
#define BID_FS_PUBLISH_H

#include "fs.h"

/*
 * The permission bits that a file may have which is written through the mount. With allow_other its owner alone reads it, whatever
 * the writer asks for: perf makes its copies of files that few may read 0755 before it fills them.
 */
mode_t bid_tmpfile_mode(const struct bid_fs *fs);

/*
 * Publish @tmpfile as the file @name of the directory @dir of @id, and log an error. Returns 0 and the artifact that it is now, of
 * no kind if it is a file of a copy of /proc/kcore; -EXDEV if @name is no final name, so that a program copies; or as
 * bid_stage_publish().
 */
int bid_publish_as(struct bid_fs *fs, struct bid_tmpfile *tmpfile, const struct bid_id *id, const char *dir, const char *name,
		   struct bid_request *ret_request);

/* The thread @tid closes a descriptor of @tmpfile. Returns 0, or as bid_stage_publish(). */
int bid_publish_flush(struct bid_fs *fs, struct bid_tmpfile *tmpfile, pid_t tid);

/* No handle for writing @tmpfile is left. */
void bid_publish_release(struct bid_fs *fs, struct bid_tmpfile *tmpfile);

/* Take away the name of @tmpfile, which is not published any more. -EEXIST if it was published under that name meanwhile. */
int bid_publish_unlink(struct bid_fs *fs, struct bid_tmpfile *tmpfile);

/* Drop temporary files that nobody has used for an hour, nor has open for writing. */
void bid_publish_sweep(struct bid_fs *fs);

/*
 * The session is over. After an unmount every file was closed: publish what RELEASE did not come for. After a signal a file that is
 * open for writing is lost, and logged.
 */
void bid_publish_end(struct bid_fs *fs, bool unmounted);

#endif
