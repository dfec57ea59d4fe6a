// SPDX-License-Identifier: LGPL-2.1-or-later
/* The listings of the namespace. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/source_section.h"
#include "vfs/kcore.h"
#include "vfs/mount_names.h"
#include "vfs/tree.h"
#include "write/tmpfile.h"

struct tree_listing {
	const struct bid_tree *tree;
	const struct bid_node *dir;
	bid_tree_fn fn;
	void *user;
};

/* Does the result @r of a lookup tell of a compressed module that no reader has opened yet? */
static bool is_compressed(int r, enum bid_kind kind)
{
	return r == -EAGAIN && kind == BID_KIND_ELF;
}

/* Emit the artifact as the kind of its file, if the store has it: an unstripped file is one file with two names. */
static int emit_artifact(const struct tree_listing *listing, const char *name, const struct bid_id *id, enum bid_kind kind)
{
	struct bid_node node = { .type = BID_NODE_FILE, .id = *id };
	struct bid_file file = BID_FILE_NONE;
	int r = bid_store_find(listing->tree->store, &(struct bid_artifact){ .id = *id, .kind = kind }, BID_NEVER_DERIVE, &file);

	if (r < 0 && !is_compressed(r, kind))
		return 0;
	node.kind = r == 0 ? file.kind : kind;
	bid_file_release(&file);
	return listing->fn(listing->user, name, &node);
}

/* Emit @name as LOOKUP sees it, so that a listing agrees with LOOKUP. A listed source or section exists. */
static int emit_name(const struct tree_listing *listing, const char *name)
{
	struct bid_node node;
	int r = bid_tree_lookup(listing->tree, listing->dir, name, &node, NULL);

	if (r < 0)
		return r == -ENOMEM ? r : 0; /* removed meanwhile */
	if (node.type == BID_NODE_FILE && !node.subpath)
		r = emit_artifact(listing, name, &node.id, node.kind);
	else
		r = listing->fn(listing->user, name, &node);
	bid_node_release(&node);
	return r;
}

static bool is_fixed(const struct tree_listing *listing, const char *name)
{
	for (size_t i = 0; i < BID_COUNT(bid_names_fixed); i++)
		if (bid_names_is_in(i, bid_node_path(listing->dir), listing->tree->debug_view) &&
		    strcmp(bid_names_fixed[i].name, name) == 0)
			return true;
	return false;
}

static int emit_entry(void *user, const char *name, enum bid_entry entry)
{
	const struct tree_listing *listing = user;

	if (listing->dir->type == BID_NODE_PATH && is_fixed(listing, name))
		return 0;
	return emit_name(listing, name);
}

static int emit_tmpfile(void *user, const struct bid_tmpfile *tmpfile)
{
	const struct tree_listing *listing = user;
	struct bid_node node = bid_tmpfile_node(tmpfile);

	return listing->fn(listing->user, tmpfile->name, &node);
}

static int list_path(const struct tree_listing *listing)
{
	const char *path = bid_node_path(listing->dir);
	int r = 0;

	if (listing->dir->type == BID_NODE_PATH)
		for (size_t i = 0; i < BID_COUNT(bid_names_fixed) && r == 0; i++)
			if (bid_names_is_in(i, path, listing->tree->debug_view))
				r = emit_name(listing, bid_names_fixed[i].name);
	if (r == 0)
		r = bid_store_each_entry(listing->tree->store, path, emit_entry, (void *)listing);
	if (r == 0 && listing->tree->tmpfiles && bid_tree_is_temporary(path))
		r = bid_tmpfiles_each_in(listing->tree->tmpfiles, path, emit_tmpfile, (void *)listing);
	return r == -ENOENT ? 0 : r;
}

/* List the fan-out directories with ids. */
static int list_fanouts(const struct tree_listing *listing)
{
	bool has[256];
	int r = 0;

	bid_store_first_bytes(listing->tree->store, has);
	for (unsigned fanout = 0; fanout < 256 && r == 0; fanout++) {
		char name[3];

		snprintf(name, sizeof(name), "%02x", fanout);
		r = has[fanout] ? emit_name(listing, name) : 0;
	}
	return r;
}

/* Emit an id of the store. It needs no LOOKUP. */
static int emit_id(void *user, const struct bid_id *id)
{
	const struct tree_listing *listing = user;
	bool link = listing->dir->type == BID_NODE_LINKS_FANOUT;
	struct bid_node node = { .type = link ? BID_NODE_LINK : BID_NODE_ID, .id = *id };
	char hex[BID_ID_HEX_MAX];

	if (link && !bid_tree_lists_link(listing->tree, id))
		return 0;
	bid_id_format(id, hex);
	return listing->fn(listing->user, link ? hex + 2 : hex, &node);
}

static int emit_debug(void *user, const struct bid_id *id)
{
	const struct tree_listing *listing = user;
	char name[BID_ID_HEX_MAX + sizeof(".debug")], hex[BID_ID_HEX_MAX];
	int r;

	r = emit_artifact(listing, bid_id_format(id, hex) + 2, id, BID_KIND_ELF);
	if (r != 0)
		return r;
	snprintf(name, sizeof(name), "%s.debug", hex + 2);
	return emit_artifact(listing, name, id, BID_KIND_DEBUGINFO);
}

/* May an id with @kinds have @kind? An unstripped ELF file is its own debuginfo. */
static bool may_have(int kinds, enum bid_kind kind)
{
	return kinds & 1 << kind || (kind == BID_KIND_DEBUGINFO && kinds & 1 << BID_KIND_ELF);
}

/* List the directories of sections and sources that are not empty. */
static int list_source_sections(const struct tree_listing *listing, int kinds)
{
	struct bid_store *store = listing->tree->store;
	const struct bid_id *id = &listing->dir->id;
	int r = 0;

	if (kinds > 0 && kinds & (1 << BID_KIND_ELF | 1 << BID_KIND_DEBUGINFO))
		r = emit_name(listing, bid_kind_name(BID_KIND_SECTION));
	if (r == 0 && bid_store_source_entry(store, id, "") == BID_ENTRY_DIR)
		r = emit_name(listing, bid_kind_name(BID_KIND_SOURCE));
	return r;
}

static int list_artifacts(const struct tree_listing *listing)
{
	const struct bid_id *id = &listing->dir->id;
	int kinds = bid_store_kinds(listing->tree->store, id), r = 0;

	for (int i = BID_KIND_NONE + 1; kinds > 0 && i < BID_KIND_COUNT && r == 0; i++) {
		enum bid_kind kind = (enum bid_kind)i;

		if (!may_have(kinds, kind))
			continue;
		r = emit_artifact(listing, bid_kind_name(kind), id, kind);
		if (r == 0 && kind == BID_KIND_ELF)
			r = emit_artifact(listing, "executable", id, kind);
	}
	if (r == 0 && kinds > 0)
		r = emit_artifact(listing, bid_kind_name(BID_KIND_UNSTRIPPED), id, BID_KIND_UNSTRIPPED);
	if (r == 0)
		r = list_source_sections(listing, kinds);
	return r == 0 ? emit_name(listing, "info") : r;
}

/* List the artifacts in "<path>/ID", the target of perf's link or not. */
static int list_in_path_id(const struct tree_listing *listing)
{
	struct bid_node node = { .type = BID_NODE_FILE, .id = listing->dir->id };
	int r = 0;

	for (int i = BID_KIND_NONE + 1; i < BID_KIND_COUNT && r == 0; i++) {
		struct bid_file file = BID_FILE_NONE;
		int found;

		node.kind = (enum bid_kind)i;
		found = bid_store_lookup_in(listing->tree->store, bid_node_path(listing->dir),
					    &(struct bid_artifact){ .id = node.id, .kind = node.kind }, &file);
		if (found < 0 && !is_compressed(found, node.kind))
			continue;
		node.kind = found == 0 ? file.kind : node.kind;
		bid_file_release(&file);
		r = listing->fn(listing->user, bid_kind_store_name((enum bid_kind)i), &node);
	}
	return r;
}

/* List the subdirectories of a directory that was taken for an empty one of a build. */
static int list_part(const struct tree_listing *listing)
{
	struct bid_node dir = *listing->dir;
	struct tree_listing part = *listing;

	dir.type = BID_NODE_PATH;
	part.dir = &dir;
	return list_path(&part);
}

static int emit_section(void *user, const char *name)
{
	return emit_name(user, name);
}

unsigned bid_tree_parts(const struct bid_node *node)
{
	return node->type == BID_NODE_IDS ? 256 : 1;
}

int bid_tree_list(const struct bid_tree *tree, const struct bid_node *node, unsigned part, bid_tree_fn fn, void *user)
{
	struct tree_listing listing = { .tree = tree, .dir = node, .fn = fn, .user = user };
	int r = 0;

	switch (node->type) {
	case BID_NODE_PATH:
	case BID_NODE_BY_PATH:
		return list_path(&listing);
	case BID_NODE_IDS:
		return bid_store_each_id_in(tree->store, (uint8_t)part, emit_id, &listing);
	case BID_NODE_LINKS:
	case BID_NODE_DEBUG:
		return list_fanouts(&listing);
	case BID_NODE_LINKS_FANOUT:
		return bid_store_each_id_in(tree->store, node->fanout, emit_id, &listing);
	case BID_NODE_DEBUG_FANOUT:
		return bid_store_each_id_in(tree->store, node->fanout, emit_debug, &listing);
	case BID_NODE_ID:
		return list_artifacts(&listing);
	case BID_NODE_PATH_ID:
		r = list_in_path_id(&listing);
		return r == 0 ? list_part(&listing) : r;
	case BID_NODE_SECTIONS:
		return bid_store_each_section(tree->store, &node->id, emit_section, &listing);
	case BID_NODE_SOURCES:
		return bid_store_each_source_in(tree->store, &node->id, bid_node_path(node), emit_entry, &listing);
	case BID_NODE_META:
		for (size_t i = 0; i < BID_COUNT(bid_names_meta) && r == 0; i++)
			r = emit_name(&listing, bid_names_meta[i].name);
		return r;
	case BID_NODE_KCORE:
	case BID_NODE_KCORE_COPY:
		return bid_kcore_list(tree, node, emit_entry, &listing);
	default:
		return -ENOTDIR;
	}
}
