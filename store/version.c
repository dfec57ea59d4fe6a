// SPDX-License-Identifier: LGPL-2.1-or-later
#include <bid/version.h>

const char *bid_version(void)
{
	return BID_VERSION;
}
