/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Attributes of nodes, their version, and the times for which the kernel caches names and attributes. */
#ifndef BID_FS_ATTR_H
#define BID_FS_ATTR_H

#include <limits.h>

#include "fuse/ops.h"

/* The text of the link @node in @buf; "" of a node that is no link. Returns @buf. */
const char *bid_link_text(const struct bid_fs *fs, const struct bid_node *node, char buf[static PATH_MAX]);

/*
 * The attributes of @inode. @st is the stat of the file of an artifact, or of a directory below an original path, to spare a second
 * look; NULL for neither. @text is the text of a link.
 */
struct stat bid_attr_make(struct bid_fs *fs, const struct bid_inode *inode, const char *text, const struct stat *st);

/*
 * stat(2) the file of @node, if it need not be opened: a temporary file, a copy of /proc/kcore, or a section that READ will
 * cut out. Returns 0, or -ENOENT for other nodes and files that are gone.
 */
int bid_stat_unopened(struct bid_fs *fs, const struct bid_node *node, struct stat *ret_st);

/* The permissions of the directory @node. They never change. */
mode_t bid_dir_mode(const struct bid_fs *fs, const struct bid_node *node);

/* Seconds for which the kernel caches the name of @node. */
double bid_entry_timeout(const struct bid_fs *fs, const struct bid_node *node);

/*
 * Seconds for which the kernel caches that the directory @dir lacks a name: -EINVAL as @error means that the name has no meaning
 * there, -ENOENT that it has no file now. @dir is NULL for the directory of an artifact.
 */
double bid_negative_timeout(const struct bid_node *dir, int error);

/* Seconds for which the kernel caches the attributes of @node, other than an artifact. */
double bid_attr_timeout(const struct bid_fs *fs, const struct bid_node *node);

/*
 * The version of the artifact @node whose file has the attributes @st. Another file is another version, and so another inode,
 * because all handles of an inode share one file or its pages. 0 for probe definitions, which change in place, and for sources and
 * sections.
 *
 * In no_open mode there are no handles, and a reader keeps the inode. The version is then the size: another file of the same id
 * and size has the same bytes. Files in memory, which are made again and again, count the same way.
 */
uint32_t bid_version_of(const struct bid_fs *fs, const struct bid_node *node, const struct stat *st);

/* Is @st of another file than the inode @inode, an artifact's? */
bool bid_is_other_version(const struct bid_fs *fs, const struct bid_inode *inode, const struct stat *st);

/* Make @inode one of the file with the attributes @st. Returns whether it was one of another file. */
bool bid_set_version(struct bid_fs *fs, const struct bid_inode *inode, const struct stat *st);

#endif
