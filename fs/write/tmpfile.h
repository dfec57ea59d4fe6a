/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Temporary files that programs write through the mount. Each has a name in a directory "<path>/ID" of the mount, and none in the
 * store before it is published (publish.h). It lives as long as it has its name, an open handle or another user. Pure C: knows no
 * FUSE.
 *
 * Locking: bid_tmpfiles has one lock, held for lists and counters alone. Any thread may call.
 */
#ifndef BID_FS_TMPFILE_H
#define BID_FS_TMPFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/write.h"
#include "vfs/node.h"

struct bid_tmpfiles;

/* One temporary file. The fields do not change. */
struct bid_tmpfile {
	uint32_t number; /* unique, from 1 on */
	struct bid_id id; /* of its directory */
	char *dir; /* relative to the store, "usr/bin/ls/ID"; owned */
	char *name; /* in dir; owned */
	struct bid_stage *stage; /* owned */
};

int bid_tmpfiles_new(struct bid_tmpfiles **ret_tmpfiles);
void bid_tmpfiles_free(struct bid_tmpfiles *tmpfiles);

/*
 * Begin the file @name in the directory @dir of @id. Returns 0, -EEXIST, -ENOMEM, or as bid_stage_new(). The caller gives
 * @ret_tmpfile back with bid_tmpfile_put(), as those of the next functions.
 */
int bid_tmpfiles_begin(struct bid_tmpfiles *tmpfiles, struct bid_store *store, const struct bid_id *id, const char *dir,
		       const char *name, struct bid_tmpfile **ret_tmpfile);

/* Find the file by its number, also without a name, or by its name. NULL if there is none. */
struct bid_tmpfile *bid_tmpfiles_get(struct bid_tmpfiles *tmpfiles, uint32_t number);
struct bid_tmpfile *bid_tmpfiles_find(struct bid_tmpfiles *tmpfiles, const char *dir, const char *name);

/* The name of @dir among the directories of written files; perhaps in @buf. */
enum { BID_TMPFILES_DIR = sizeof(".build-id/00") };
const char *bid_tmpfiles_dir(const struct bid_node *dir, char buf[static BID_TMPFILES_DIR]);

/* Find a file with a name that nobody has used for so many seconds, nor has open for writing. NULL if there is none. */
struct bid_tmpfile *bid_tmpfiles_idle(struct bid_tmpfiles *tmpfiles, unsigned seconds);

/* Find a file with a name, whoever uses it. NULL if there is none. */
struct bid_tmpfile *bid_tmpfiles_first(struct bid_tmpfiles *tmpfiles);

/* Another user of @tmpfile, which is returned. */
struct bid_tmpfile *bid_tmpfile_ref(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile);

/* The thread @tid opened @tmpfile for writing; a handle for writing was released: was it the last? */
void bid_tmpfile_open(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile, pid_t tid);
bool bid_tmpfile_close(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile);

/* Has @tid the only handle for writing? A process that inherited the descriptor is another. */
bool bid_tmpfile_is_writer(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile, pid_t tid);

/* Take away the name, if it still has it. */
void bid_tmpfile_unname(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile);

bool bid_tmpfile_has_name(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile);

/* Call @fn, with the lock held, for each named file in the directory @dir. A non-zero return ends it and is returned. */
int bid_tmpfiles_each_in(struct bid_tmpfiles *tmpfiles, const char *dir, int (*fn)(void *user, const struct bid_tmpfile *tmpfile),
			 void *user);

/* Has the directory @dir a named file, with @written one that somebody has open for writing? */
bool bid_tmpfiles_has_in(struct bid_tmpfiles *tmpfiles, const char *dir, bool written);

/* Take away the names of all files in the directory @dir. */
void bid_tmpfiles_unname_in(struct bid_tmpfiles *tmpfiles, const char *dir);

/* @tmpfile may be NULL. */
void bid_tmpfile_put(struct bid_tmpfiles *tmpfiles, struct bid_tmpfile *tmpfile);

#endif
