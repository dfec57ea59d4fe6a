/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The position of the kernel in a kernel image: a compressed ELF file behind the code for decompression at boot. */
#ifndef BID_ELF_KERNEL_H
#define BID_ELF_KERNEL_H

#include <sys/types.h>

/* A range of a file. */
struct bid_packed {
	off_t offset, end;
};

/*
 * Find the compressed kernel in the bzImage (x86) open at @fd: Documentation/arch/x86/boot.rst, boot protocol 2.08 or later.
 * Returns 1 for a bzImage. Returns 0 for another file; the range is then the whole file. Returns -EBADMSG for a truncated bzImage,
 * or an error of pread(2).
 */
int bid_kernel_payload(int fd, struct bid_packed *ret_packed);

#endif
