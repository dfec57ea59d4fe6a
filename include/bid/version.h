/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_VERSION_H
#define BID_VERSION_H

/* The version of libbid and its programs, "0.1.0". Static. */
const char *bid_version(void);

#endif
