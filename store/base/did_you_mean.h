/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* "Did you mean": the known name nearest to a mistyped word. */
#ifndef BID_BASE_DID_YOU_MEAN_H
#define BID_BASE_DID_YOU_MEAN_H

/*
 * Return the one of @names (NULL-terminated) that begins with @word, or differs from @word in a third of its letters at most, where
 * two swapped letters count as one. Returns NULL without such a name.
 */
const char *bid_did_you_mean(const char *word, const char *const *names);

#endif
