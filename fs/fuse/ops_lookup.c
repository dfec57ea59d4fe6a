// SPDX-License-Identifier: LGPL-2.1-or-later
/* LOOKUP, FORGET, READLINK. */
#include "fuse/ops.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuse/attr.h"
#include "fuse/find_or_fetch.h"
#include "fuse/reply.h"
#include "synthetic.h"
#include "vfs/export.h"

/*
 * Keep the descriptor of @file for the OPEN that follows; without OPEN (no_open mode), for the first READ: the store may evict the
 * file in between. A file in memory is made again by the OPEN, and shared from then on.
 */
static void keep_for_open(struct bid_fs *fs, uint64_t number, struct bid_file *file)
{
	struct bid_cached_fd *cached;

	if (file->st.st_nlink == 0)
		bid_fd_cache_drop_other(fs->fd_cache, number, &file->st);
	else if (bid_fd_cache_insert(fs->fd_cache, number, file, &cached) == 0)
		bid_fd_cache_unref(fs->fd_cache, cached);
}

/* The node of @file. An unstripped file is one file with one inode under both names. */
static struct bid_node node_of(const struct bid_wanted *wanted, const struct bid_file *file)
{
	return (struct bid_node){
		.type = BID_NODE_FILE, .kind = file->kind, .id = wanted->artifact.id, .subpath = wanted->artifact.subpath
	};
}

/* No server has the source file @artifact: its name is that of a directory. */
static void reply_sources(fuse_req_t req, const struct bid_artifact *artifact)
{
	char *path = strdup(bid_subpath_text(artifact->subpath));

	if (!path) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	bid_reply_node(req, &(struct bid_node){ .type = BID_NODE_SOURCES, .id = artifact->id, .path = path }, NULL);
	free(path);
}

static void finish_lookup(fuse_req_t req, struct bid_wanted *wanted, int error, struct bid_file *file)
{
	struct bid_fs *fs = bid_fs_of(req);

	if (wanted->artifact.kind == BID_KIND_SOURCE && error < 0 && bid_visible_error(fs, error) == ENOENT && fs->tree.any_id) {
		reply_sources(req, &wanted->artifact);
	} else if (error == -ENOENT) {
		bid_reply_negative(req, NULL, error);
	} else if (error < 0) {
		fuse_reply_err(req, bid_visible_error(fs, error));
	} else {
		struct bid_node node = node_of(wanted, file);
		struct fuse_entry_param entry;

		if (bid_entry_make(fs, &node, &(struct bid_found){ .st = file->st }, &entry) < 0) {
			fuse_reply_err(req, ENOMEM);
			return;
		}
		keep_for_open(fs, entry.ino, file);
		bid_reply_entry(req, &entry);
	}
}

/*
 * Find the node of "." or "..". The kernel sends these for a file handle of NFS: "." with a number that it does not hold, which
 * an earlier daemon may have given out.
 */
static int lookup_handle(struct bid_fs *fs, uint64_t number, const struct bid_inode *inode, bool up, struct bid_node *ret_node)
{
	if (up)
		return inode ? bid_export_parent(&inode->node, ret_node) : -ESTALE;
	return inode ? bid_node_copy(&inode->node, ret_node) : bid_export_find(&fs->tree, number, ret_node);
}

/* Answer with the temporary file @name of @dir, if there is one. */
static bool lookup_tmpfile(fuse_req_t req, const struct bid_node *dir, const char *name)
{
	struct bid_fs *fs = bid_fs_of(req);
	char buf[BID_TMPFILES_DIR];
	struct bid_tmpfile *tmpfile = fs->writable ? bid_tmpfiles_find(fs->tmpfiles, bid_tmpfiles_dir(dir, buf), name) : NULL;
	struct bid_node node;
	struct stat st;

	if (!tmpfile)
		return false;
	node = bid_tmpfile_node(tmpfile);
	if (bid_stat_unopened(fs, &node, &st) < 0)
		fuse_reply_err(req, ESTALE);
	else
		bid_reply_node(req, &node, &(struct bid_found){ .st = st });
	bid_tmpfile_unref(fs->tmpfiles, tmpfile);
	return true;
}

/*
 * Answer with @file of the directory @dir, "<path>/ID". Returns false without a file; also for stripped debuginfo or empty probe
 * definitions in the directory of perf's link, because another directory of the id, or a server, may have a better file.
 */
static bool reply_at_once(fuse_req_t req, struct bid_wanted *wanted, const struct bid_inode *dir, struct bid_file *file)
{
	bool poor = file->stripped || (file->kind == BID_KIND_PROBES && file->st.st_size == 0);
	char where[PATH_MAX];

	if (file->fd < 0 || (poor && bid_store_perf_link(bid_fs_of(req)->store, &wanted->artifact.id, where, sizeof(where)) == 0 &&
			     strcmp(where, bid_node_path(&dir->node)) == 0))
		return false;
	finish_lookup(req, wanted, 0, file);
	return true;
}

/* The symbol table of a kernel, perhaps just derived, or none: answer with its modules. */
static void finish_modules(fuse_req_t req, struct bid_wanted *wanted, int error, struct bid_file *file)
{
	struct bid_node node = { .type = BID_NODE_MODULES, .id = wanted->artifact.id };
	bid_auto_free char *text = NULL;
	struct stat st;

	if (error == 0)
		error = bid_synthetic_make(bid_fs_of(req), &node, &text, &st);
	if (error == 0)
		bid_reply_node(req, &node, NULL);
	else
		finish_lookup(req, wanted, error, file);
}

/* @dir is the directory of the name @child; NULL for "." and "..". */
static void reply_child(fuse_req_t req, const struct bid_inode *dir, const struct bid_node *child, struct bid_found *found)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_wanted wanted = { .artifact = bid_node_artifact(child) };
	struct bid_wanted modules = { .artifact = { .id = child->id, .kind = BID_KIND_KALLSYMS } };
	struct stat st;

	if (bid_stat_unopened(fs, child, &st) == 0)
		bid_reply_node(req, child, &(struct bid_found){ .st = st });
	else if (child->type == BID_NODE_FILE && reply_at_once(req, &wanted, dir, &found->file))
		return;
	else if (child->type == BID_NODE_FILE)
		bid_find_or_fetch(req, &wanted, finish_lookup);
	else if (child->type == BID_NODE_MODULES)
		bid_find_or_fetch(req, &modules, finish_modules);
	else if (child->type == BID_NODE_KCORE_FILE)
		bid_reply_negative(req, NULL, -ENOENT);
	else
		bid_reply_node(req, child, found);
}

/* A link of perf's exists only with a file behind it: otherwise perf takes the build for cached, and does not add it. */
static void finish_link(fuse_req_t req, struct bid_wanted *wanted, int error, struct bid_file *file)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_node link = { .type = BID_NODE_LINK, .id = wanted->artifact.id };
	char where[PATH_MAX];

	/* a link of the store may lead nowhere */
	if (error == 0 || bid_tree_find_link(&fs->tree, &link.id, where) >= 0)
		bid_reply_node(req, &link, NULL);
	else
		fuse_reply_err(req, bid_visible_error(fs, error));
}

static void fetch_link(fuse_req_t req, const struct bid_node *dir, const char *name)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_wanted wanted = { .artifact = { .kind = BID_KIND_ELF } };
	struct bid_node link;

	if (!fs->tree.any_id || bid_tree_parse_link(dir, name, &link) < 0 || bid_tree_is_unlinked(&fs->tree, &link.id)) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	wanted.artifact.id = link.id;
	bid_find_or_fetch(req, &wanted, finish_link);
}

void bid_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *inode = bid_inodes_find(fs->inodes, parent, &buffer);
	bool up = strcmp(name, "..") == 0, by_handle = up || strcmp(name, ".") == 0;
	struct bid_found found = BID_FOUND_NONE;
	struct bid_node child;
	int r;

	if (strlen(name) > NAME_MAX) {
		fuse_reply_err(req, ENAMETOOLONG);
		return;
	}
	if (inode && lookup_tmpfile(req, &inode->node, name))
		return;
	if (by_handle)
		r = lookup_handle(fs, parent, inode, up, &child);
	else
		r = inode ? bid_tree_lookup(&fs->tree, &inode->node, name, &child, &found) : -ESTALE;
	if (r == -ENOENT && inode && inode->node.type == BID_NODE_LINKS_FANOUT) {
		fetch_link(req, &inode->node, name);
	} else if (r == -EINVAL || r == -ENOENT) {
		bid_reply_negative(req, inode ? &inode->node : NULL, r);
	} else if (r < 0) {
		fuse_reply_err(req, -r);
	} else {
		reply_child(req, by_handle ? NULL : inode, &child, &found);
		bid_node_release(&child);
	}
	bid_found_release(&found);
}

void bid_op_forget(fuse_req_t req, fuse_ino_t number, uint64_t count)
{
	bid_forget(bid_fs_of(req), number, count);
	fuse_reply_none(req);
}

void bid_op_forget_multi(fuse_req_t req, size_t n, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < n; i++)
		bid_forget(bid_fs_of(req), forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

void bid_op_readlink(fuse_req_t req, fuse_ino_t number)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *inode = bid_inodes_find(fs->inodes, number, &buffer);
	char target[PATH_MAX];
	int r = inode ? bid_tree_readlink(&fs->tree, &inode->node, target, sizeof(target)) : -ESTALE;

	/* the kernel repeats LOOKUP and READLINK */
	if (r == 0 && inode->node.version && inode->node.version != bid_inode_text_version(target))
		r = -ESTALE;
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_readlink(req, target);
}
