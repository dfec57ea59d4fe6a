/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signals that end a long command, for commands that report before they end. */
#ifndef BID_CTL_SIGNALS_H
#define BID_CTL_SIGNALS_H

#include <signal.h>

/*
 * Fill @ret_signals with SIGINT, SIGTERM and SIGHUP, except ignored ones (nohup(1)): a blocked signal arrives even if it is
 * ignored.
 */
void ctl_end_signals(sigset_t *ret_signals);

#endif
