/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_BASE_SD_NOTIFY_H
#define BID_BASE_SD_NOTIFY_H

/*
 * Connect to the service manager that started this process and waits for it: sd_notify(3). Returns a descriptor of the caller's, or
 * -1 if there is none, or after a warning. It is written by a process that may open no socket any more.
 */
int bid_notify_open(void);

/* Send @state, such as "READY=1"; without effect if @fd is -1. */
void bid_notify(int fd, const char *state);

#endif
