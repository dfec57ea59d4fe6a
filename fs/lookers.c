// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lookers.h"

bool bid_lookers_has(struct bid_lookers *lookers, pid_t pid)
{
	if (pid == 0)
		return false;
	for (unsigned i = 0; i < BID_LOOKERS_MAX; i++)
		if (atomic_load_explicit(&lookers->pids[i], memory_order_relaxed) == pid)
			return true;
	return false;
}

void bid_lookers_add(struct bid_lookers *lookers, pid_t pid)
{
	if (pid != 0 && !bid_lookers_has(lookers, pid))
		atomic_store(&lookers->pids[atomic_fetch_add(&lookers->next, 1) % BID_LOOKERS_MAX], pid);
}
