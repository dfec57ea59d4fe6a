/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* "Did you mean": the known name of a mistyped word. */
#ifndef BID_BASE_DID_YOU_MEAN_H
#define BID_BASE_DID_YOU_MEAN_H

/*
 * Return the first of @names (NULL-terminated) that begins with @word; else the first that differs from it in one letter, or in the
 * order of two neighbours. Returns NULL without such a name.
 */
const char *bid_did_you_mean(const char *word, const char *const *names);

#endif
