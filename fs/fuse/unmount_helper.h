/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A process that unmounts for the daemon. The confined daemon cannot: landlock(7) forbids umount(2), and no_new_privs stops the
 * setuid fusermount3(1). The helper starts before the daemon confines itself, waits for the end of the daemon, and unmounts,
 * also after SIGKILL. It passes messages of the daemon to syslog(3), because the daemon has no socket.
 *
 *	bid_unmount_helper_new()	before the first thread
 *	bid_unmount_helper_end()	instead of fuse_session_destroy()
 *
 * The helper unmounts only its own mount, by the unique mount id of Linux 6.8. On older kernels it unmounts only after an
 * orderly end.
 */
#ifndef BID_FS_UNMOUNT_HELPER_H
#define BID_FS_UNMOUNT_HELPER_H

#include <fuse_lowlevel.h>

struct bid_unmount_helper;

/* Start the helper for the mount of @session at @path; both are borrowed. The mount need not answer yet. 0 or a negative errno. */
int bid_unmount_helper_new(struct fuse_session *session, const char *path, struct bid_unmount_helper **ret_helper);

/* Destroy the session, unmount if the mount is still there, wait for the helper, and free it. */
void bid_unmount_helper_end(struct bid_unmount_helper *helper);

#endif
