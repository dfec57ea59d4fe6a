// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/attr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/source_section.h"
#include "base/world_readable.h"
#include "synthetic.h"

enum {
	FILE_MODE = 0555, /* mode bits of a file of the store: never setuid, never writable */
	BLOCK = 1 << 17, /* bytes that a program is to write at a time: each write is a request; stdio(3) takes 8 KiB at most */
};

/* Is @node one of the directories that perf writes to? */
static bool is_perfs(const struct bid_node *node)
{
	return node->type == BID_NODE_PATH || node->type == BID_NODE_PATH_ID || node->type == BID_NODE_LINKS ||
	       node->type == BID_NODE_LINKS_FANOUT;
}

mode_t bid_dir_mode(const struct bid_fs *fs, const struct bid_node *node)
{
	/* the owner of the store sets attributes: ops_xattr.c */
	return fs->writable && (is_perfs(node) || node->type == BID_NODE_META) ? 0755 : 0555;
}

const char *bid_link_text(const struct bid_fs *fs, const struct bid_node *node, char buf[static PATH_MAX])
{
	if (bid_node_format(node) != S_IFLNK || bid_tree_readlink(&fs->tree, node, buf, PATH_MAX) < 0)
		*buf = '\0';
	return buf;
}

/*
 * The attributes of a node other than an artifact. @text is the text of a link. @found is the stat of a directory below an
 * original path, or NULL.
 */
static struct stat attr_of(struct bid_fs *fs, const struct bid_inode *inode, const char *text, const struct stat *found)
{
	const struct bid_node *node = &inode->node;
	struct stat st = { .st_nlink = 1, .st_uid = fs->uid, .st_gid = fs->gid, .st_blksize = 4096 };
	char buf[BID_TMPFILES_DIR];
	struct stat below;
	char *made;

	st.st_ino = inode->number;
	st.st_atim = st.st_mtim = st.st_ctim = fs->started;
	switch (bid_node_format(node)) {
	case S_IFDIR:
		st.st_mode = S_IFDIR | bid_dir_mode(fs, node);
		st.st_nlink = 2;
		if ((node->type == BID_NODE_PATH || node->type == BID_NODE_BY_PATH || node->type == BID_NODE_PATH_ID ||
		     node->type == BID_NODE_LINKS_FANOUT || (node->type == BID_NODE_KCORE_COPY && node->path)) &&
		    (found || bid_store_stat_path(fs->store, bid_tmpfiles_dir(node, buf), &below) == 0))
			st.st_mtim = found ? found->st_mtim : below.st_mtim;
		/* an NFS client keeps a listing while the time is the same */
		if (node->type == BID_NODE_IDS)
			clock_gettime(CLOCK_REALTIME, &st.st_mtim);
		break;
	case S_IFLNK:
		st.st_mode = S_IFLNK | 0777;
		st.st_size = (off_t)strlen(text);
		break;
	default:
		if (bid_synthetic_make(fs, node, &made, &st) == 0)
			free(made);
		break;
	}
	return st;
}

int bid_stat_unopened(struct bid_fs *fs, const struct bid_node *node, struct stat *ret_st)
{
	struct bid_artifact artifact = bid_node_artifact(node);
	struct bid_tmpfile *tmpfile;
	int r = -ENOENT;

	if (node->type == BID_NODE_TMPFILE) {
		tmpfile = bid_tmpfiles_find_number(fs->tmpfiles, node->tmpfile);
		if (tmpfile && fstat(bid_written_file_fd(tmpfile->file), ret_st) == 0)
			r = 0;
		bid_tmpfile_unref(fs->tmpfiles, tmpfile);
	} else if (node->type == BID_NODE_KCORE_FILE) {
		r = bid_store_stat_path(fs->store, node->path, ret_st);
	} else if (artifact.kind == BID_KIND_SECTION) {
		r = bid_store_section_stat(fs->store, &artifact, ret_st);
	}
	return r < 0 ? -ENOENT : 0;
}

/* The attributes of a regular file other than a synthetic one. @st is of its file in the store. */
static struct stat attr_of_file(const struct bid_fs *fs, const struct bid_inode *inode, const struct stat *st)
{
	mode_t writable = fs->writable && inode->node.kind == BID_KIND_PROBES ? S_IWUSR : 0;
	struct stat attr = *st;

	attr.st_ino = inode->number;
	if (inode->node.type == BID_NODE_TMPFILE) {
		attr.st_mode = S_IFREG | (st->st_mode & 0777);
		attr.st_blksize = BLOCK;
	} else {
		attr.st_mode = S_IFREG | (st->st_mode & (FILE_MODE | writable));
		bid_fs_narrow(fs, &attr);
	}
	attr.st_nlink = 1;
	return attr;
}

struct stat bid_attr_make(struct bid_fs *fs, const struct bid_inode *inode, const char *text, const struct stat *st)
{
	return st && S_ISREG(st->st_mode) ? attr_of_file(fs, inode, st) : attr_of(fs, inode, text, st);
}

double bid_entry_timeout(const struct bid_fs *fs, const struct bid_node *node)
{
	switch (node->type) {
	case BID_NODE_IDS:
	case BID_NODE_LINKS:
	case BID_NODE_LINKS_FANOUT:
	case BID_NODE_DEBUG:
	case BID_NODE_DEBUG_FANOUT:
	case BID_NODE_META:
	case BID_NODE_README:
		return BID_TTL_MOUNT;
	case BID_NODE_ALIAS:
		/* another id with these digits may be added */
		return node->id.len ? BID_TTL_STORE : BID_TTL_MOUNT;
	case BID_NODE_ID:
		return fs->tree.any_id && node->id.len >= BID_ID_WHOLE_MIN ? BID_TTL_MOUNT : BID_TTL_STORE;
	case BID_NODE_STATUS:
	case BID_NODE_METRICS:
	case BID_NODE_INFO:
		return 0; /* each LOOKUP makes a text */
	case BID_NODE_TMPFILE:
		return node->kind == BID_KIND_NONE ? BID_TTL_STORE : 0; /* the name means the published file after close(2) */
	default:
		return BID_TTL_STORE;
	}
}

double bid_negative_timeout(const struct bid_node *dir, int error)
{
	if (error == -EINVAL)
		return BID_TTL_MOUNT;
	/* a download may add a name there at any moment */
	return dir && strcmp(bid_node_path(dir), BID_STORE_UNNAMED) == 0 ? 0 : BID_TTL_STORE;
}

double bid_attr_timeout(const struct bid_fs *fs, const struct bid_node *node)
{
	double timeout = bid_entry_timeout(fs, node);

	/*
	 * only the kernel changes a temporary file; the size of info costs a look at all files of the id: once for the LOOKUP and
	 * the stat(2) or read(2) behind it
	 */
	if (node->type == BID_NODE_TMPFILE || node->type == BID_NODE_INFO)
		return BID_TTL_STORE;
	/* the time of BID_NODE_IDS changes with the ids */
	if (timeout == BID_TTL_MOUNT && node->type != BID_NODE_IDS && node->type != BID_NODE_ID)
		return BID_TTL_MOUNT;
	return timeout < BID_TTL_STORE ? timeout : BID_TTL_STORE;
}

uint32_t bid_version_of(const struct bid_fs *fs, const struct bid_node *node, const struct stat *st)
{
	uint64_t file = (uint64_t)st->st_size;

	if (node->kind == BID_KIND_PROBES || bid_kind_has_subpath(node->kind))
		return 0;
	if (fs->mode != BID_MODE_NO_OPEN && st->st_nlink > 0)
		file = ((uint64_t)st->st_ino + st->st_dev * 0x9e3779b97f4a7c15U) * 0x9e3779b97f4a7c15U >> 32;
	return (uint32_t)file ? (uint32_t)file : 1;
}

bool bid_is_other_version(const struct bid_fs *fs, const struct bid_inode *inode, const struct stat *st)
{
	return inode->node.version && inode->node.version != bid_version_of(fs, &inode->node, st);
}

bool bid_set_version(struct bid_fs *fs, const struct bid_inode *inode, const struct stat *st)
{
	if (!bid_is_other_version(fs, inode, st))
		return false;
	bid_inodes_set_version(fs->inodes, inode->number, bid_version_of(fs, &inode->node, st));
	return true;
}
