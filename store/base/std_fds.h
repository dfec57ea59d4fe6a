/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_BASE_STD_FDS_H
#define BID_BASE_STD_FDS_H

/*
 * Occupy those of the descriptors 0, 1 and 2 that the caller has closed, before anything else is opened: a file of the store that
 * got such a number would be taken for the terminal, and written to. Reads and writes there fail with EBADF, as before. Returns 0,
 * or as open(2).
 */
int bid_std_fds_occupy(void);

#endif
