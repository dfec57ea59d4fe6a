/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_DISK_REMOVE_DOWNLOAD_H
#define BID_DISK_REMOVE_DOWNLOAD_H

#include "api/store.h"

/*
 * Remove the download @artifact under all its names, its record, and all that was derived from it: a file of the user or of a
 * signer takes its place. Does nothing without a download. An open reader keeps the file. Returns false if a name has other
 * bytes than the recorded ones: that file and the record stay. The caller holds the lock of the store.
 */
bool bid_remove_download(struct bid_store *store, const struct bid_artifact *artifact);

/* As bid_remove_download(), before the publication of an added file. The record goes in any case. Takes the lock. */
void bid_remove_download_before_add(struct bid_store *store, const struct bid_artifact *artifact);

#endif
