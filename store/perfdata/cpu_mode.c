// SPDX-License-Identifier: LGPL-2.1-or-later
#include "perfdata/perf.h"

/* the values of PERF_RECORD_MISC_CPUMODE_MASK */
enum { CPUMODE_MASK = 7, CPUMODE_KERNEL = 1, CPUMODE_HYPERVISOR = 3, CPUMODE_GUEST_KERNEL = 4, CPUMODE_GUEST_USER = 5 };

enum bid_perfdata_mode bid_perf_mode(uint16_t misc)
{
	switch (misc & CPUMODE_MASK) {
	case CPUMODE_KERNEL:
	case CPUMODE_HYPERVISOR:
		return BID_PERFDATA_KERNEL;
	case CPUMODE_GUEST_KERNEL:
	case CPUMODE_GUEST_USER:
		return BID_PERFDATA_GUEST;
	default:
		return BID_PERFDATA_USER;
	}
}

const char *bid_perfdata_mode_name(enum bid_perfdata_mode mode)
{
	static const char *const names[] = {
		[BID_PERFDATA_USER] = "user",
		[BID_PERFDATA_KERNEL] = "kernel",
		[BID_PERFDATA_GUEST] = "guest",
	};

	return names[mode];
}
