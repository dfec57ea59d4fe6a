// SPDX-License-Identifier: LGPL-2.1-or-later
/* CREATE, WRITE, FLUSH, FSYNC, MKDIR, SYMLINK, LINK, RENAME, as perf fills its cache. */
#include "fuse/ops.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "fuse/reply.h"
#include "vfs/kcore.h"

static void reply_made(fuse_req_t req, const struct bid_inode *parent, const char *name)
{
	struct bid_node node;
	int r = bid_tree_lookup(&bid_fs_of(req)->tree, &parent->node, name, &node, NULL);

	if (r < 0) {
		fuse_reply_err(req, EIO);
		return;
	}
	bid_reply_node(req, &node, NULL);
	bid_node_release(&node);
}

/* "<@dir>/<@name>" as a path in the store; -EPERM where perf makes no directories. */
static int path_in(const struct bid_node *dir, const char *name, char ret_path[static PATH_MAX])
{
	const char *path = bid_node_path(dir);

	/* copies of /proc/kcore are not written through the mount */
	if (dir->type != BID_NODE_PATH || strcmp(path, BID_KCORE_PATH) == 0)
		return -EPERM;
	return snprintf(ret_path, PATH_MAX, "%s%s%s", path, *path ? "/" : "", name) >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* Is @dir named by an id, and without a file of a build? */
static bool is_empty_id_dir(struct bid_fs *fs, const struct bid_node *dir)
{
	return dir->type == BID_NODE_PATH_ID && bid_store_entry_at(fs->store, bid_node_path(dir), NULL) != BID_ENTRY_ID;
}

void bid_op_mkdir(fuse_req_t req, fuse_ino_t number, const char *name, mode_t mode)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *parent = bid_inodes_find(fs->inodes, number, &buffer);
	char path[PATH_MAX];
	int r = parent ? 0 : -ESTALE;

	/* a directory with subdirectories is a part of original paths; rsync(1) makes its temporary directory in any */
	if (r == 0 && (is_empty_id_dir(fs, &parent->node) || (parent->node.type == BID_NODE_PATH_ID && name[0] == '.')))
		parent->node.type = BID_NODE_PATH;
	/* directories of links always exist */
	if (r == 0 && parent->node.type == BID_NODE_LINKS) {
		struct bid_node node;

		r = bid_tree_lookup(&fs->tree, &parent->node, name, &node, NULL) == 0 ? -EEXIST : -EPERM;
	} else if (r == 0) {
		r = path_in(&parent->node, name, path);
	}
	if (r == 0)
		r = bid_store_mkdir(fs->store, path);
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		reply_made(req, parent, name);
}

void bid_op_mknod(fuse_req_t req, fuse_ino_t number, const char *name, mode_t mode, dev_t device)
{
	fuse_reply_err(req, EPERM);
}

void bid_op_symlink(fuse_req_t req, const char *text, fuse_ino_t number, const char *name)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *parent = bid_inodes_find(fs->inodes, number, &buffer);
	struct bid_node node = { 0 };
	char there[PATH_MAX];
	int r = parent ? 0 : -ESTALE;

	if (r == 0 && parent->node.type != BID_NODE_LINKS_FANOUT)
		r = -EPERM;
	if (r == 0)
		r = bid_tree_parse_link(&parent->node, name, &node);
	if (r == 0)
		r = bid_store_symlink(fs->store, &node.id, text);
	if (r == 0)
		bid_whiteouts_remove(&fs->link_whiteouts, &node.id);
	/* the first file of a build brings the link, and the kernel has not seen it yet */
	if (r == -EEXIST && bid_tree_readlink(&fs->tree, &node, there, sizeof(there)) == 0 && strcmp(there, text) == 0)
		r = 0;
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		bid_reply_node(req, &node, NULL);
}

/* Definitions may be the first file of their build, as in an archive. Their writer finds them by the link. */
static int create_probes(struct bid_fs *fs, const struct bid_id *id, const char *path, int *ret_fd)
{
	struct bid_file lower = BID_FILE_NONE;
	char text[PATH_MAX];
	int r;

	/* without derived ones: a derivation takes too long for a FUSE thread, and perf writes them itself */
	bid_store_find(fs->store, &(struct bid_artifact){ .id = *id, .kind = BID_KIND_PROBES }, BID_NEVER_DERIVE, &lower);
	r = bid_store_open_probes(fs->store, id, path, &lower, ret_fd);
	bid_file_release(&lower);
	/* a LOOKUP by another name may have derived them again */
	if (bid_whiteouts_remove(&fs->probe_whiteouts, id) && r == 0 && ftruncate(*ret_fd, 0) < 0)
		r = -errno;
	if (r == 0 && snprintf(text, sizeof(text), "../../%s", path) < (int)sizeof(text))
		bid_store_symlink(fs->store, id, text);
	return r;
}

/* Is this tar's placeholder for a link that leads upwards: an empty file that nobody may read, until all else is unpacked? */
static bool is_placeholder(const struct bid_node *dir, const char *name, mode_t mode, struct bid_id *ret_id)
{
	struct bid_node link;

	if (dir->type != BID_NODE_LINKS_FANOUT || mode & 0777 || bid_tree_parse_link(dir, name, &link) < 0)
		return false;
	*ret_id = link.id;
	return true;
}

void bid_op_create(fuse_req_t req, fuse_ino_t number, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *parent = bid_inodes_find(fs->inodes, number, &buffer);
	struct bid_tmpfile *tmpfile = NULL;
	struct bid_id id;
	bool placeholder = parent && is_placeholder(&parent->node, name, mode, &id);
	char buf[BID_TMPFILES_DIR];
	struct bid_node node;
	bid_auto_fd int fd = -1;
	int r = placeholder ? 0 : parent ? bid_tree_dir_id(&parent->node, &id) : -ESTALE;

	if (r < 0) {
		fuse_reply_err(req, -r);
		return;
	}
	if (!bid_tree_is_temporary(bid_node_path(&parent->node)) && strcmp(name, bid_kind_store_name(BID_KIND_PROBES)) == 0) {
		node = (struct bid_node){ .type = BID_NODE_FILE, .kind = BID_KIND_PROBES, .id = id };
		r = create_probes(fs, &id, bid_node_path(&parent->node), &fd);
		if (r < 0)
			fuse_reply_err(req, -r);
		else
			bid_open_created(req, &node, NULL, fd, fi);
		return;
	}
	/* temporary names begin with a dot: perf's ".elf.XXXXXX", rsync's */
	if (!placeholder && name[0] != '.' && bid_kind_parse_store_name(name) == BID_KIND_NONE)
		r = -EPERM;
	if (r == 0) {
		bid_tmpfiles_sweep(fs->tmpfiles);
		r = bid_tmpfiles_begin(fs->tmpfiles, &id, bid_tmpfiles_dir(&parent->node, buf), name, &tmpfile);
	}
	if (r == 0 && fchmod(bid_written_file_fd(tmpfile->file), mode & bid_fs_file_mode(fs)) < 0)
		r = -errno;
	if (r < 0) {
		fuse_reply_err(req, -r);
	} else {
		node = bid_tmpfile_node(tmpfile);
		r = bid_open_created(req, &node, tmpfile, bid_written_file_fd(tmpfile->file), fi);
	}
	if (r < 0 && tmpfile)
		bid_tmpfile_remove_name(fs->tmpfiles, tmpfile);
	bid_tmpfile_unref(fs->tmpfiles, tmpfile);
}

static int write_probes(struct bid_fs *fs, fuse_ino_t number, int fd, const char *data, size_t size, off_t offset)
{
	struct stat st;
	int r = bid_pwrite_full(fd, data, size, offset);

	/* readers get this one of several files from now on */
	if (r == 0 && fstat(fd, &st) == 0)
		bid_fd_cache_drop_other(fs->fd_cache, number, &st);
	/* OPEN could not copy them into the store */
	return r == -EBADF ? -EPERM : r;
}

void bid_op_write(fuse_req_t req, fuse_ino_t number, const char *data, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct bid_file_handle *handle = bid_file_handle_of(fi);
	int r = -EPERM;

	if (handle && handle->tmpfile)
		r = bid_written_file_write(handle->tmpfile->file, data, size, offset);
	else if (handle && handle->probes_fd >= 0)
		r = write_probes(bid_fs_of(req), number, handle->probes_fd, data, size, offset);
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_write(req, size);
}

void bid_op_flush(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct bid_file_handle *handle = bid_file_handle_of(fi);
	int r = 0;

	/* the kernel sends no FLUSH any more */
	if (bid_fs_of(req)->mode == BID_MODE_NO_OPEN)
		r = -ENOSYS;
	else if (handle && handle->tmpfile)
		r = bid_tmpfile_flush(bid_fs_of(req)->tmpfiles, handle->tmpfile, fuse_req_ctx(req)->pid);
	fuse_reply_err(req, -r);
}

void bid_op_fsync(fuse_req_t req, fuse_ino_t number, int only_data, struct fuse_file_info *fi)
{
	struct bid_file_handle *handle = bid_file_handle_of(fi);
	struct bid_fs *fs = bid_fs_of(req);
	int r = 0;

	if (handle && handle->tmpfile)
		r = fsync(bid_written_file_fd(handle->tmpfile->file)) < 0 ? -errno : 0;
	else if (fs->writable)
		r = bid_store_sync(fs->store); /* the kernel may read the file by itself */
	fuse_reply_err(req, -r);
}

/* Find the published file by id. The store keeps a separate debug file as debuginfo, whatever its name. */
static int find_published(struct bid_fs *fs, struct bid_artifact artifact, struct bid_file *ret_file)
{
	int r = bid_store_find(fs->store, &artifact, BID_MAY_DERIVE, ret_file);

	if (r != -ENOENT || artifact.kind != BID_KIND_ELF)
		return r;
	artifact.kind = BID_KIND_DEBUGINFO;
	return bid_store_find(fs->store, &artifact, BID_MAY_DERIVE, ret_file);
}

/*
 * Answer with the published file. It may be elsewhere than in @to, as of a short id that perf pads with zeros: after perf removes
 * the build it looks at the name in @to again, and takes a cached entry for its copy.
 */
static void reply_published(fuse_req_t req, fuse_ino_t to, const struct bid_artifact *artifact)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *parent = bid_inodes_find(fs->inodes, to, &buffer);
	struct fuse_entry_param entry;
	struct bid_node node = { .type = BID_NODE_FILE, .id = artifact->id };
	struct bid_file file = BID_FILE_NONE;
	bool here = parent && bid_store_lookup_in(fs->store, bid_node_path(&parent->node), artifact, &file) == 0 && !file.stripped;
	int r = 0;

	if (!here) {
		bid_file_release(&file);
		r = find_published(fs, *artifact, &file);
	}
	if (r < 0) {
		fuse_reply_err(req, -r);
		return;
	}
	node.kind = file.kind;
	if (bid_entry_make(fs, &node, &(struct bid_found){ .st = file.st }, &entry) < 0) {
		fuse_reply_err(req, ENOMEM);
	} else {
		if (!here && parent && !bid_tree_is_target(&fs->tree, &parent->node))
			entry.entry_timeout = 0;
		bid_reply_entry(req, &entry);
	}
	bid_file_release(&file);
}

/* Publish @tmpfile as @name in the directory @to. As bid_tmpfile_publish(). */
static int publish_in(struct bid_fs *fs, fuse_ino_t to, const char *name, struct bid_tmpfile *tmpfile,
		      struct bid_artifact *ret_artifact)
{
	struct bid_inode buffer, *parent = bid_inodes_find(fs->inodes, to, &buffer);
	struct bid_id id;
	int r = parent ? bid_tree_dir_id(&parent->node, &id) : -ESTALE;

	return r < 0 ? r : bid_tmpfile_publish(fs->tmpfiles, tmpfile, &id, bid_node_path(&parent->node), name, ret_artifact);
}

void bid_op_link(fuse_req_t req, fuse_ino_t number, fuse_ino_t to, const char *name)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *inode = bid_inodes_find(fs->inodes, number, &buffer);
	struct bid_tmpfile *tmpfile = NULL;
	struct bid_artifact artifact;
	int r = -ESTALE;

	if (inode && inode->node.type == BID_NODE_TMPFILE)
		tmpfile = bid_tmpfiles_find_number(fs->tmpfiles, inode->node.tmpfile);
	else if (inode)
		r = -EXDEV; /* a program copies, as from another file system */
	if (tmpfile)
		r = publish_in(fs, to, name, tmpfile, &artifact);
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		reply_published(req, to, &artifact);
	bid_tmpfile_unref(fs->tmpfiles, tmpfile);
}

/* Publish a temporary file. Any other file is for the program to copy. */
void bid_op_rename(fuse_req_t req, fuse_ino_t number, const char *name, fuse_ino_t to, const char *new_name, unsigned flags)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *from = bid_inodes_find(fs->inodes, number, &buffer);
	char buf[BID_TMPFILES_DIR];
	struct bid_tmpfile *tmpfile = from ? bid_tmpfiles_find(fs->tmpfiles, bid_tmpfiles_dir(&from->node, buf), name) : NULL;
	/* the kernel has looked for the new name */
	bool known = !(flags & ~RENAME_NOREPLACE);
	struct bid_artifact artifact;
	int r = !from ? -ESTALE : known ? -EXDEV : -EINVAL;

	if (tmpfile && known)
		r = publish_in(fs, to, new_name, tmpfile, &artifact);
	if (r == 0)
		bid_tmpfile_remove_name(fs->tmpfiles, tmpfile);
	bid_tmpfile_unref(fs->tmpfiles, tmpfile);
	fuse_reply_err(req, -r);
}
