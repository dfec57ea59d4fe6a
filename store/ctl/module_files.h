/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of kernel modules. */
#ifndef BID_CTL_MODULE_FILES_H
#define BID_CTL_MODULE_FILES_H

#include <stdbool.h>
#include <stddef.h>

#define CTL_MODULES "/lib/modules" /* a directory for each release of a kernel */

/* Read the index of the modules in @directory, "" without one, for the caller to free. Returns 0 or -ENOMEM. */
int ctl_modules_index(const char *directory, char **ret_index);

/*
 * Find the file in @directory of the module with the kernel's name @name. @index comes from depmod(8), in lines of "FILE:
 * DEPENDENCIES".
 */
bool ctl_module_find(const char *directory, const char *index, const char *name, char *ret_path, size_t size);

/* A non-zero return ends the loop, and is returned. */
typedef int (*ctl_module_fn)(void *user, const char *path);

/* Call @fn for the file of the module @name (the kernel's name) in each installed release. Returns 0 or -ENOMEM. */
int ctl_module_each(const char *name, ctl_module_fn fn, void *user);

#endif
