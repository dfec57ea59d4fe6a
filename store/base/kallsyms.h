/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Symbol tables of kernels in the format of /proc/kallsyms (proc(5)). They carry no build-id. The kernel shows zeros instead of
 * addresses to unprivileged users (kernel.kptr_restrict), and perf stores such a table too.
 */
#ifndef BID_BASE_KALLSYMS_H
#define BID_BASE_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "ffffffff81000000 T _stext", perhaps with a tab and "[module]" behind it. */
bool bid_kallsyms_is_line(const char *line, size_t len);

/*
 * Check that the @len bytes of @text are a usable table. The beginning decides, because symbols without an address are few and come
 * first. Returns 0, or
 *   -EBADMSG	not of this form
 *   -EPERM	it has no addresses
 */
int bid_kallsyms_check(const char *text, size_t len);

/* The same of the file open at @fd, of which most often one page is read; or as pread(2), or -ENOMEM. */
int bid_kallsyms_check_file(int fd);

/*
 * Where the kernel of the @len bytes of @text begins: the address of _text, or else of _stext, which are another after each boot
 * (KASLR), by which perf tells where everything else was moved (perf, util/event.h: ref_reloc_sym_names). 0 if none is there.
 */
uint64_t bid_kallsyms_begin(const char *text, size_t len);

/* Return the message for -EBADMSG and -EPERM of these functions. */
const char *bid_kallsyms_why(int error);

#endif
