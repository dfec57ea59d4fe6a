/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_ELF_SDT_ARGUMENT_H
#define BID_ELF_SDT_ARGUMENT_H

#include <stdint.h>
#include <stdio.h>

/*
 * Print @arguments, those of a static probe, as the kernel wants them of an event: "-4@%edi 8@(%rbx)" are " arg1=%di:s32
 * arg2=+0(%bx):u64". They are operands of assembly for @machine (ELF gABI, e_machine); of those for others than x86 and AArch64,
 * and those that are no register or memory behind one, nothing is printed, and their number is left out (perf,
 * arch_sdt_arg_parse_op() of each architecture).
 */
void bid_sdt_arguments(FILE *out, uint16_t machine, const char *arguments);

#endif
