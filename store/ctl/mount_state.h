/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a mount says of itself (docs/FORMAT.md, ".bidfs/status"), for people. */
#ifndef BID_CTL_MOUNT_STATE_H
#define BID_CTL_MOUNT_STATE_H

#include <jansson.h>

/* Print @state on standard output. It comes from another program, perhaps of another version: what is missing is left out. */
void ctl_print_mount_state(const json_t *state);

#endif
