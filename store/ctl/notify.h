/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_CTL_NOTIFY_H
#define BID_CTL_NOTIFY_H

/* Tell the service manager @state, such as "READY=1", if one has started this process and waits for it: sd_notify(3). */
void ctl_notify(const char *state);

#endif
