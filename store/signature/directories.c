// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/signature.h"
#include "base/cleanup.h"

int bid_signers_each_directory(int (*fn)(void *user, const char *path), void *user)
{
	const char *variable = getenv("DEBUGINFOD_IMA_CERT_PATH");
	bid_auto_free char *paths = strdup(variable && *variable ? variable : "/etc/keys/ima");
	char *next = paths;
	int r = paths ? 0 : -ENOMEM;

	for (const char *path; r == 0 && (path = strsep(&next, ":"));)
		r = *path ? fn(user, path) : 0;
	return r;
}
