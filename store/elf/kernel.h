/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a kernel image keeps the kernel: an ELF file, packed, behind code that unpacks it at boot. */
#ifndef BID_ELF_KERNEL_H
#define BID_ELF_KERNEL_H

#include <sys/types.h>

/* A range of a file. */
struct bid_packed {
	off_t offset, end;
};

/*
 * The packed kernel in the file open at @fd, if that is a bzImage of x86: Documentation/arch/x86/boot.rst, boot protocol 2.08 or
 * later. Returns 1 if it is one; 0 if not, and then the range is the whole file; -EBADMSG for one that is cut short, or as
 * pread(2).
 */
int bid_kernel_payload(int fd, struct bid_packed *ret_packed);

#endif
