/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* "Did you mean": the known name that a mistyped word is nearest to. */
#ifndef BID_CTL_CLOSEST_H
#define BID_CTL_CLOSEST_H

/*
 * Return the one of @names (NULL-terminated) that begins with @word, or differs from it by a third of its letters at most. NULL if
 * there is none.
 */
const char *ctl_closest(const char *word, const char *const *names);

#endif
