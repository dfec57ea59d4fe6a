/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * In no_open mode nobody says when a file is closed. What was written gets its place when it has been at rest for a while, by a
 * thread of its own, whether anybody looks for it or not.
 */
#ifndef BID_FS_SETTLER_H
#define BID_FS_SETTLER_H

struct bid_fs;
struct bid_settler;

/* Starts the thread: only after daemonising. @fs is borrowed. */
int bid_settler_new(struct bid_fs *fs, struct bid_settler **ret_settler);

/* A file was begun. Does not block. */
void bid_settler_wake(struct bid_settler *settler);

/* Nothing is settled any more. @settler may be NULL. */
void bid_settler_free(struct bid_settler *settler);

#endif
