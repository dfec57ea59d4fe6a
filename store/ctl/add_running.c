// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl add --running: what runs at this moment, and the kernel. */

#include "ctl/add_mapped_code.h"

enum ctl_status ctl_add_running(struct ctl_add_stats *stats, struct bid_store *store)
{
	struct ctl_mapped_code running;
	int r, committed;

	r = ctl_mapped_code_begin(&running, stats, store);
	if (r == 0)
		r = ctl_mapped_code_all(&running);
	committed = ctl_mapped_code_commit(&running);
	ctl_mapped_code_warn_hidden(&running);
	ctl_mapped_code_release(&running);
	if (r == 0)
		r = committed;
	if (r < 0)
		return ctl_trouble(bid_store_path(store), r, "add the running programs to the store");
	r = ctl_add_kernel(stats, store);
	if (r == 0)
		return running.passed_over > 0 ? CTL_REFUSED : CTL_DONE;
	return ctl_trouble(bid_store_path(store), r, "add the kernel to the store");
}
