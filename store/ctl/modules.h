/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where the files of kernel modules lie. */
#ifndef BID_CTL_MODULES_H
#define BID_CTL_MODULES_H

#include <stdbool.h>
#include <stddef.h>

#define CTL_MODULES "/lib/modules" /* a directory for each release of a kernel */

/* The index of the modules in @directory, "" if there is none, for the caller to free. 0 or -ENOMEM. */
int ctl_modules_index(const char *directory, char **ret_index);

/*
 * The file in @directory of the module that the kernel calls @name, by the index that depmod(8) has made: lines of
 * "FILE: WHAT IT NEEDS".
 */
bool ctl_module_find(const char *directory, const char *index, const char *name, char *ret_path, size_t size);

/* A return other than 0 ends it, and is returned. */
typedef int (*ctl_module_fn)(void *user, const char *path);

/* Call @fn for the file of the module that the kernel calls @name of each release that is installed. 0 or -ENOMEM. */
int ctl_module_each(const char *name, ctl_module_fn fn, void *user);

#endif
