// SPDX-License-Identifier: LGPL-2.1-or-later
/* syscalls.c for a build without libseccomp. */
#include "sandbox/syscalls.h"

#include <errno.h>

const char *bid_syscalls_obstacle(void)
{
	return "built without libseccomp";
}

int bid_syscalls_restrict(const struct bid_syscalls_allowed *allowed)
{
	return -EOPNOTSUPP;
}
