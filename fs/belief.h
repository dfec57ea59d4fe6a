/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the kernel may believe, and for how long. A name or an attribute that depends on the store holds for BID_STALE, because
 * perf writes there at any time. Of ids that are watched, <bid/watch.h>, it holds for long: what the kernel was told of one is
 * noted, and taken back when the store changes, or when others are watched instead.
 */
#ifndef BID_FS_BELIEF_H
#define BID_FS_BELIEF_H

#include "fs.h"

struct bid_told_name;

/* What the kernel is told of, and may believe for long. */
struct bid_told {
	struct bid_id id; /* that it depends on */
	struct bid_told_name *name; /* owned; NULL if there is nothing to believe */
};

/* A question of the kernel. What it is told counts from the moment that was taken before the store was looked at. */
struct bid_asked {
	uint64_t mark; /* bid_watch_mark() */
	enum bid_node_type dir; /* in which the name was looked up; none if the question is not about a name */
	uint64_t dir_number;
	const char *name; /* borrowed; NULL if it is not about one, or the request's handler has returned */
};

/* Watch the store, with the session's notifier there. Without success everything is as if nothing ever was watched. */
void bid_beliefs_begin(struct bid_fs *fs);

/* Before the notifier goes. */
void bid_beliefs_end(struct bid_fs *fs);

/* Why nothing is watched, or not more; "" if there is no reason. @ret_watched ids are. */
const char *bid_beliefs_reason(const struct bid_fs *fs, unsigned *ret_watched);

/*
 * Watch the id of @request, for which @file was found. If it was not yet, @file is what is found now, and @asked is as of now. May
 * block on disk.
 */
void bid_belief_seek(struct bid_fs *fs, const struct bid_request *request, struct bid_asked *asked, struct bid_file *file);

/*
 * perf's link @name is about to be looked up in @dir, a directory of links: watch its id, if there is room, for who lists a cache
 * looks at every link and at what it leads to, and lists it again. Before anything is asked of the store. May block on disk.
 */
void bid_belief_look(struct bid_fs *fs, const struct bid_node *dir, const char *name);

/*
 * The file with the attributes @st, open at @fd, is read as @id's: watch that. May block on disk, so it is for after the reply;
 * what is told in that holds for no longer.
 */
void bid_belief_read(struct bid_fs *fs, const struct bid_id *id, enum bid_kind kind, int fd, const struct stat *st);

/*
 * Is the file with the attributes @st, found for @id before, what would be found now, whatever was changed up to this call? True
 * only of ids that are watched.
 */
bool bid_belief_holds(struct bid_fs *fs, const struct bid_id *id, const struct stat *st);

/*
 * @entry is what the kernel is about to be told of @node, with the times that anything may be believed; the entry's time is of no
 * matter if @asked is about no name. @st is that of an artifact's file, else NULL. If it may be believed for longer, the times are
 * longer. The result is for bid_belief_check(), after the kernel has been told.
 */
struct bid_told bid_believe(struct bid_fs *fs, const struct bid_asked *asked, const struct bid_node *node, const struct stat *st,
			    struct fuse_entry_param *entry);

/*
 * The kernel has been told of @told, which is taken over. If that does not hold any more, which may have been noticed before it was
 * told, it is taken back.
 */
void bid_belief_check(struct bid_fs *fs, const struct bid_asked *asked, struct bid_told *told);

#endif
