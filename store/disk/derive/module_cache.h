/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cache of the modules in the last read symbol table: perf requests them several times for one profile, and reading a table of some
 * megabytes takes milliseconds.
 */
#ifndef BID_DISK_DERIVE_MODULE_CACHE_H
#define BID_DISK_DERIVE_MODULE_CACHE_H

struct bid_modules;

/* May be used by any thread. */
int bid_modules_new(struct bid_modules **ret_modules);
void bid_modules_free(struct bid_modules *modules);

#endif
