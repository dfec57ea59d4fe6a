// SPDX-License-Identifier: LGPL-2.1-or-later
/* libfuse 3.17 and later: it says what it was told. */
#include "fuse/greeting.h"

void bid_greeting_mend(struct fuse_session *session)
{
}
