/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the symbol table that was read last says of modules: perf asks for it several times for one profile, and to read a table of
 * some megabytes takes milliseconds.
 */
#ifndef BID_DISK_DERIVE_MODULES_H
#define BID_DISK_DERIVE_MODULES_H

struct bid_modules;

/* May be used by any thread. */
int bid_modules_new(struct bid_modules **ret_modules);
void bid_modules_free(struct bid_modules *modules);

#endif
