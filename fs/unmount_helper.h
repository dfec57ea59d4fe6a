/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A process that unmounts for a daemon which may not do so itself: landlock(7) forbids that, and no_new_privs keeps fusermount3(1)
 * from being setuid. It is started before the daemon confines itself, does nothing while that lives, and unmounts when it is gone,
 * however it ended: so a daemon that was killed leaves no dead mount behind. Messages of a daemon in the background go to syslog(3)
 * by it: the daemon has no socket.
 *
 * Only the very mount that it was started for is unmounted, which the kernel (6.8) has a number for that is never used again. Where
 * it has none, only a daemon that ends as it should has its mount removed.
 */
#ifndef BID_FS_UNMOUNT_HELPER_H
#define BID_FS_UNMOUNT_HELPER_H

#include <fuse_lowlevel.h>

struct bid_unmount_helper;

/*
 * Start it for the mount of @session at @path, both borrowed. From a process without other threads. 0 or a negative errno. Nobody
 * need be answering for the mount.
 */
int bid_unmount_helper_new(struct fuse_session *session, const char *path, struct bid_unmount_helper **ret_helper);

/*
 * Unmount, unless somebody did: this destroys the session, which must be done by then, waits for the process, and frees @helper.
 */
void bid_unmount_helper_end(struct bid_unmount_helper *helper);

#endif
