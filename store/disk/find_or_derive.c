// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lookup, else derivation. */
#include <errno.h>

#include "disk/derive/derive.h"
#include "disk/record.h"
#include "disk/source_section.h"
#include "disk/store.h"

int bid_store_find(struct bid_store *store, const struct bid_artifact *artifact, enum bid_derive derive, struct bid_file *ret_file)
{
	int r;

	if (!bid_artifact_valid(artifact))
		return -EINVAL;
	if (artifact->kind == BID_KIND_SECTION)
		return bid_find_section(store, artifact, derive, ret_file);
	if (artifact->kind == BID_KIND_SOURCE && bid_store_requires_signed(store) && bid_record_lacks_signer(store, artifact))
		return -ENOENT;
	if (artifact->kind == BID_KIND_SOURCE)
		return bid_source_section_open(store, artifact, ret_file);
	if (artifact->kind == BID_KIND_UNSTRIPPED)
		return bid_find_unstripped(store, artifact, derive, ret_file);
	r = bid_find_unpacked(store, artifact, derive, ret_file);
	/* a symbol table without addresses is useless; a table derived from the kernel has them */
	return r == -ENOENT || (r == -EBADMSG && artifact->kind == BID_KIND_KALLSYMS)
		       ? bid_find_derived(store, artifact, derive, ret_file)
		       : r;
}
