/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fixture of the tests of store/elf: a scratch directory with files built by the system's tools from two small sources, and ways to
 * run those tools. Every failure here fails the test.
 */
#ifndef BID_TEST_ELF_FIXTURE_H
#define BID_TEST_ELF_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "scratch.h"

/* Id given to the linker. */
#define ELF_FIXTURE_ID "4bad1deacafe00112233445566778899aabbccdd"

/*
 * Group set-up: create a directory and change into it. It has "program.c", "program" (linked, with debug information), "module.c",
 * "module.o", "module.ko" (relocatable) and "module.ko.gz", ".xz" and ".zst".
 */
int elf_fixture_enter(void **state);

int elf_fixture_leave(void **state);

/* Run a program, found in PATH. */
#define RUN(...) scratch_run((const char *const[]){ __VA_ARGS__, NULL })

/* Open a file for reading. */
int elf_fixture_open(const char *name);

/* Read a file. The caller frees @ret_data. */
void elf_fixture_read(const char *name, char **ret_data, size_t *ret_len);

void elf_fixture_write(const char *name, const void *data, size_t len);

/* Create a file in memory, open for reading and writing at offset 0. */
int elf_fixture_memory(const void *data, size_t len);

#endif
