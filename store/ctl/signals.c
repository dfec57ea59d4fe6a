// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/signals.h"

#include <stddef.h>

void ctl_end_signals(sigset_t *ret_signals)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action;

	sigemptyset(ret_signals);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (sigaction(ends[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(ret_signals, ends[i]);
}
