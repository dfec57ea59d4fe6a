/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Derived artifacts, from other artifacts of the same id. derived.h has their files. A derivation may take seconds:
 * BID_NEVER_DERIVE has -EAGAIN in its place.
 *
 *   bid_store_find()		by the kind of the artifact (find_or_derive.c):
 *     bid_find_section()	a section
 *     bid_find_unstripped()	an unstripped file
 *     bid_find_unpacked()	any other kind: the stored file
 *     bid_find_derived()	without one
 */
#ifndef BID_DISK_DERIVE_H
#define BID_DISK_DERIVE_H

#include "api/store.h"

/*
 * Derive an artifact that the store lacks: the symbol table of a kernel, from the symbols of its vmlinux or debug file; the probe
 * definitions of a program, from its static probes. Keeps probes where perf finds them too. Keeps a table in the private folder:
 * with a table in its own place, perf would not save the table of the running kernel, with its addresses and modules. Derives into
 * memory if @store is not writable. Errors as bid_store_find(); -ENOENT without a file to derive from.
 */
int bid_find_derived(struct bid_store *store, const struct bid_artifact *artifact, enum bid_derive derive,
		     struct bid_file *ret_file);

/* Open the kept file of a derived artifact. Errors as bid_store_find(). */
int bid_open_kept(struct bid_store *store, const struct bid_artifact *artifact, struct bid_file *ret_file);

/* Derive nothing a second time from a file that has nothing. */
void bid_note_failure(struct bid_store *store, const struct stat *st, enum bid_kind kind, int r);

/* As bid_lookup_file(), which leaves compressed modules as they are; but unpack such a module, once, and check its id. */
int bid_find_unpacked(struct bid_store *store, const struct bid_artifact *artifact, enum bid_derive derive,
		      struct bid_file *ret_file);

/*
 * bid_store_find() of BID_KIND_UNSTRIPPED: the kept file, or a stored file that is not stripped, or the ELF file and its debuginfo
 * put together.
 */
int bid_find_unstripped(struct bid_store *store, const struct bid_artifact *artifact, enum bid_derive derive,
			struct bid_file *ret_file);

/* bid_store_find() of a section. */
int bid_find_section(struct bid_store *store, const struct bid_artifact *artifact, enum bid_derive derive,
		     struct bid_file *ret_file);

/*
 * Does the file @fd have the bytes of the section of @artifact in the stored file with the id? Returns 1, 0, or -ENOENT or -ENODATA
 * if no such file has the section.
 */
int bid_section_compare(struct bid_store *store, const struct bid_artifact *artifact, int fd);

#endif
