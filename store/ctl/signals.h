/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The signals that end what takes long, where it has something to say before it ends. */
#ifndef BID_CTL_SIGNALS_H
#define BID_CTL_SIGNALS_H

#include <signal.h>

/* SIGINT, SIGTERM and SIGHUP, but what is ignored, as by nohup(1): once it is blocked, it would come all the same. */
void ctl_end_signals(sigset_t *ret_signals);

#endif
