/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The state that a mount reports (docs/FORMAT.md, ".bidfs/status"), for people. */
#ifndef BID_CTL_MOUNT_STATE_H
#define BID_CTL_MOUNT_STATE_H

#include <jansson.h>

/* Print @state on standard output. Another program wrote it, perhaps of another version: absent values are left out. */
void ctl_print_mount_state(const json_t *state);

#endif
