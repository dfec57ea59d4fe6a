/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BID_ELF_SDT_ARGUMENT_H
#define BID_ELF_SDT_ARGUMENT_H

#include <stdint.h>
#include <stdio.h>

/*
 * Print @arguments of a static probe in the kernel's form for an event: "-4@%edi 8@(%rbx)" becomes " arg1=%di:s32
 * arg2=+0(%bx):u64". Each argument is an assembler operand for @machine (ELF gABI, e_machine). Prints only registers and memory
 * behind a register, on x86 and AArch64; skips any other operand together with its number (perf, arch_sdt_arg_parse_op() of each
 * architecture).
 */
void bid_sdt_arguments(FILE *out, uint16_t machine, const char *arguments);

#endif
