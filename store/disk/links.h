/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* perf's link of an id, ".build-id/xx/rest": where it leads, and how it is changed while others read it. */
#ifndef BID_DISK_LINKS_H
#define BID_DISK_LINKS_H

#include <limits.h>
#include <stdbool.h>

#include "api/store.h"

/* What is in the place of perf's link for an id. */
enum bid_link_state {
	BID_LINK_NONE = 0, /* nothing */
	BID_LINK_GOOD, /* a link to "<path>/<the id>", which is there, or of which nobody can tell */
	BID_LINK_DANGLING, /* a link of that form to what is not there */
	BID_LINK_ASTRAY, /* a link to what is there, but is another id's, or no id's */
	BID_LINK_FOREIGN, /* a link of another form, which nobody follows */
	BID_LINK_FILE, /* perf's old layout: the file itself */
	BID_LINK_ODD, /* something else: a directory, a socket */
};

/* Is @path relative, without a component that is empty or leads up? */
bool bid_link_stays_inside(const char *path);

/* Look at the link of the id filed as @filed. @ret_target is set with GOOD, DANGLING and ASTRAY. */
enum bid_link_state bid_link_look(struct bid_store *store, const struct bid_id *filed, char ret_target[static PATH_MAX]);

/* The same with the link's directory, open at @fan. */
enum bid_link_state bid_link_look_in(struct bid_store *store, int fan, const struct bid_id *filed,
				     char ret_target[static PATH_MAX]);

/* Does the link of @filed, in its directory open at @fan, have the text that leads to @path? */
bool bid_link_leads(int fan, const struct bid_id *filed, const char *path);

/* Make the link of @filed lead to @target, in one step if it leads elsewhere now. */
int bid_link_point(struct bid_store *store, const struct bid_id *filed, const char *target);

/* Remove the link of @filed if it is a link with the text that leads to @target. 0 if it was, -ENOENT if not. */
int bid_link_drop(struct bid_store *store, const struct bid_id *filed, const char *target);

/*
 * The directory @path lost its last artifact: its link goes. If somebody filled it again meanwhile, and took the link for his, it
 * stays.
 */
void bid_link_leave(struct bid_store *store, const struct bid_id *filed, const char *path);

#endif
