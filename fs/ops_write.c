// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Changes of what has a name: writing, attributes, removal. All by inode number, because in no_open mode there are no handles; and
 * done when they are answered, so that nothing is left to do when a file is closed, of which that mode does not tell.
 */
#include "ops.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "belief.h"
#include "kcore.h"
#include "notify.h"
#include "reply.h"

enum {
	REST_MS = 1500, /* without a change: nobody writes any more */
	HOLES_MS = 30000, /* the same, where something may have been left out to be written later */
};

static int write_probes(struct bid_fs *fs, const struct bid_inode *inode, const char *data, size_t size, off_t offset)
{
	bid_auto_fd int fd = -1;
	struct stat st;
	int r = bid_store_open_probes(fs->store, &inode->node.id, NULL, true, &fd);

	if (r == 0)
		r = bid_pwrite_full(fd, data, size, offset);
	/* of several files it is the one that is read from now on */
	if (r == 0 && fstat(fd, &st) == 0)
		bid_fds_prefer(fs->fds, inode->number, &st, false);
	return r;
}

static int write_staged(struct bid_fs *fs, const struct bid_node *node, const char *data, size_t size, off_t offset)
{
	struct bid_staged *staged = bid_staging_get(fs->staging, node->serial);
	int r = staged ? bid_stage_write(staged->stage, data, size, offset) : -ESTALE;

	/* perf does not look for it again */
	if (r == 0 && fs->mode == BID_MODE_NO_OPEN && bid_kcore_is_copy(staged->dir))
		bid_settle_staged(fs, staged, BID_END_UNKNOWN);
	bid_staged_put(fs->staging, staged);
	return r;
}

static bool is_probes(const struct bid_node *node)
{
	return node->type == BID_NODE_FILE && node->kind == BID_KIND_PROBES;
}

void bid_op_write(fuse_req_t req, fuse_ino_t number, const char *data, size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *inode = bid_inodes_find(fs->inodes, number, &buffer);
	int r = -EPERM;

	if (!inode)
		r = -ESTALE;
	else if (inode->node.type == BID_NODE_STAGED)
		r = write_staged(fs, &inode->node, data, size, offset);
	else if (is_probes(&inode->node))
		r = write_probes(fs, inode, data, size, offset);
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_write(req, size);
}

mode_t bid_staged_mode(const struct bid_fs *fs)
{
	return fs->options->allow_other ? S_IRWXU : S_IRWXU | S_IRWXG | S_IRWXO;
}

/* Set the size and times of @fd, and of the mode the bits in @modes. The owner stays. */
static int set_file(int fd, const struct stat *wanted, int to_set, mode_t modes)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_OMIT } };

	if (to_set & FUSE_SET_ATTR_SIZE && ftruncate(fd, wanted->st_size) < 0)
		return -errno;
	if (modes && to_set & FUSE_SET_ATTR_MODE && fchmod(fd, wanted->st_mode & modes) < 0)
		return -errno;
	if (to_set & FUSE_SET_ATTR_ATIME)
		times[0] = wanted->st_atim;
	if (to_set & FUSE_SET_ATTR_MTIME)
		times[1] = wanted->st_mtim;
	if (to_set & FUSE_SET_ATTR_ATIME_NOW)
		times[0].tv_nsec = UTIME_NOW;
	if (to_set & FUSE_SET_ATTR_MTIME_NOW)
		times[1].tv_nsec = UTIME_NOW;
	return futimens(fd, times) < 0 ? -errno : 0;
}

/* Once it is published only its times are changed. */
static int set_staged(const struct bid_fs *fs, const struct bid_staged *staged, const struct stat *wanted, int to_set)
{
	int r;

	if (!(to_set & (FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MODE)))
		return set_file(bid_stage_fd(staged->stage), wanted, to_set, 0);
	r = bid_stage_lock(staged->stage);
	if (r < 0)
		return r;
	r = set_file(bid_stage_fd(staged->stage), wanted, to_set, bid_staged_mode(fs));
	bid_stage_unlock(staged->stage);
	return r;
}

void bid_op_setattr(fuse_req_t req, fuse_ino_t number, struct stat *wanted, int to_set, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *inode = bid_inodes_find(fs->inodes, number, &buffer);
	struct bid_staged *staged;
	bid_auto_fd int fd = -1;
	int r = 0;

	if (!inode) {
		r = -ESTALE;
	} else if (inode->node.type == BID_NODE_STAGED) {
		staged = bid_staging_get(fs->staging, inode->node.serial);
		r = staged ? set_staged(fs, staged, wanted, to_set) : -ESTALE;
		bid_staged_put(fs->staging, staged);
	} else if (is_probes(&inode->node)) {
		/* those that were made in memory are perf's to write anew */
		r = bid_store_open_probes(fs->store, &inode->node.id, NULL, to_set & FUSE_SET_ATTR_SIZE && wanted->st_size == 0,
					  &fd);
		if (r == 0)
			r = set_file(fd, wanted, to_set, 0);
	} else if (bid_node_format(&inode->node) == S_IFREG) {
		/* what carries an id does not change */
		r = -EPERM;
	} else if (to_set & FUSE_SET_ATTR_MODE && (wanted->st_mode & 07777) != bid_dir_mode(fs, &inode->node)) {
		r = -EPERM;
	}
	/* of directories and links nothing is kept; whoever unpacks an archive sets their times */
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		bid_op_getattr(req, number, NULL);
}

void bid_end_staged(struct bid_fs *fs, struct bid_staged *staged, uint64_t parent, const char *name)
{
	struct bid_node node = { .type = BID_NODE_STAGED, .id = staged->id, .serial = staged->serial };
	struct bid_inode buffer;

	/* what is still written of a copy of /proc/kcore goes into the file that has its place */
	if (bid_kcore_is_copy(staged->dir)) {
		bid_staging_drop(fs->staging, staged);
		return;
	}
	bid_staging_end(fs->staging, staged);
	/* the kernel may have forgotten it before; and if nobody has it open, it does when it is told of the name */
	if (!bid_inodes_find(fs->inodes, bid_inode_number(&node), &buffer))
		bid_staging_forget(fs->staging, staged->serial);
	else if (parent)
		bid_notify_name(fs->notifier, parent, name);
}

/* The kernel may open what it knows in the directory @path of @id, which nothing but that leads to any more. */
static void keep_in(struct bid_fs *fs, const struct bid_id *id, const char *path)
{
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		struct bid_node node = { .type = BID_NODE_FILE, .kind = (enum bid_kind)kind, .id = *id };
		struct bid_request request = bid_node_request(&node);
		struct bid_file file = BID_FILE_NONE;
		struct bid_fd *fd;

		if (bid_store_find_in(fs->store, path, &request, &file) < 0)
			continue;
		fd = bid_fds_keep(fs->fds, bid_inode_number(&node), &file);
		if (fd)
			bid_fds_put(fs->fds, fd);
		bid_file_release(&file);
	}
}

static int unlink_link(struct bid_fs *fs, const struct bid_node *link)
{
	char text[PATH_MAX], where[PATH_MAX];
	int r = bid_tree_readlink(&fs->tree, link, text, sizeof(text));

	if (r == 0)
		keep_in(fs, &link->id, text + strlen("../../"));
	if (r == 0)
		r = bid_store_unlink_link(fs->store, &link->id);
	if ((r == 0 || r == -ENOENT) && bid_store_where(fs->store, &link->id, where, sizeof(where)) == 0)
		r = -EROFS; /* a lower store has one */
	else if (r == 0 || r == -ENOENT)
		r = bid_unlinked_add(&fs->unlinked_links, &link->id);
	if (r == 0)
		bid_notify_build(fs->notifier, &link->id, NULL);
	return r;
}

/* The file of @node in the directory @path, or definitions that are derived, and so in no file. */
static int unlink_artifact(struct bid_fs *fs, const struct bid_node *node, const char *path)
{
	struct bid_request request = bid_node_request(node);
	struct bid_file file = BID_FILE_NONE;
	int r = bid_store_unlink(fs->store, &request, path);

	if (r == -ENOENT && node->kind == BID_KIND_PROBES)
		r = bid_store_find(fs->store, &request, &file);
	bid_file_release(&file);
	if (r == 0 && node->kind == BID_KIND_PROBES)
		r = bid_unlinked_add(&fs->unlinked_probes, &node->id);
	if (r == 0)
		bid_notify_build(fs->notifier, &node->id, path);
	return r;
}

static int unlink_copied(struct bid_fs *fs, const struct bid_staged *staged)
{
	bid_auto_free char *path = NULL;
	int r;

	if (asprintf(&path, "%s/%s", staged->dir, staged->name) < 0)
		return -ENOMEM;
	r = bid_store_unlink_kcore(fs->store, path);
	return r == -ENOENT ? 0 : r;
}

/* -EEXIST if it got its place meanwhile: then it is that file which is to go. */
static int unlink_staged(struct bid_fs *fs, struct bid_staged *staged)
{
	bool placed = false;
	int r = 0;

	if (bid_kcore_is_copy(staged->dir))
		r = unlink_copied(fs, staged);
	else
		placed = bid_stage_end(staged->stage) == -EPERM && bid_tree_kind(staged->name) != BID_KIND_NONE;
	bid_end_staged(fs, staged, 0, NULL);
	return placed ? -EEXIST : r;
}

void bid_op_unlink(fuse_req_t req, fuse_ino_t number, const char *name)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *parent = bid_inodes_find(fs->inodes, number, &buffer);
	struct bid_staged *staged;
	struct bid_node node = { 0 };
	int r;

	if (!parent) {
		fuse_reply_err(req, ESTALE);
		return;
	}
	staged = bid_find_staged(fs, &parent->node, name);
	if (staged) {
		r = unlink_staged(fs, staged);
		bid_staged_put(fs->staging, staged);
		/* a link may have come behind tar's placeholder for it */
		if (r != -EEXIST && parent->node.type != BID_NODE_LINKS_FAN) {
			fuse_reply_err(req, -r);
			return;
		}
	}
	r = bid_tree_lookup(&fs->tree, &parent->node, name, &node);
	if (r == 0 && node.type == BID_NODE_LINK)
		r = unlink_link(fs, &node);
	else if (r == 0 && node.type == BID_NODE_KCORE_FILE)
		r = bid_store_unlink_kcore(fs->store, node.path);
	else if (r == 0 && node.type == BID_NODE_FILE && parent->node.type == BID_NODE_PATH_ID)
		r = unlink_artifact(fs, &node, bid_node_path(&parent->node));
	else if (r == 0)
		r = -EPERM;
	bid_node_release(&node);
	fuse_reply_err(req, (r == -EINVAL || r == -ENOENT) ? (staged ? 0 : ENOENT) : -r);
}

void bid_op_rmdir(fuse_req_t req, fuse_ino_t number, const char *name)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *parent = bid_inodes_find(fs->inodes, number, &buffer);
	struct bid_node node = { 0 };
	char path[PATH_MAX];
	int r = parent ? bid_tree_lookup(&fs->tree, &parent->node, name, &node) : -ESTALE;

	path[0] = '\0';
	if (r == 0 && (node.type == BID_NODE_KCORE || node.type == BID_NODE_KCORE_COPY)) {
		r = bid_kcore_directory(&parent->node, name, path);
		if (r == 0)
			r = bid_store_rmdir_kcore(fs->store, path);
	} else if (r == 0 && node.type != BID_NODE_PATH && node.type != BID_NODE_PATH_ID) {
		r = -EPERM;
	} else if (r == 0) {
		snprintf(path, sizeof(path), "%s", bid_node_path(&node));
		r = bid_store_rmdir(fs->store, path);
	}
	/* temporary names are not listed, so that nobody could empty the directory of them */
	if (r == 0) {
		bid_staging_drop_in(fs->staging, path, fs->mode != BID_MODE_NO_OPEN);
		bid_inodes_remove(fs->inodes, &node);
	}
	bid_node_release(&node);
	fuse_reply_err(req, -r);
}

static int64_t ns_of(const struct timespec *ts)
{
	return ts->tv_sec * INT64_C(1000000000) + ts->tv_nsec;
}

/* Was a file with @st not changed for so long? */
static bool is_at_rest(const struct stat *st, int64_t ms)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return ns_of(&now) - ns_of(&st->st_ctim) > ms * 1000000;
}

static bool has_holes(int fd, const struct stat *st)
{
	off_t hole = lseek(fd, 0, SEEK_HOLE);

	return hole >= 0 && hole < st->st_size;
}

/* Text does not say whether it is whole. If nobody tells of its end, it is taken for that at the end of a line, after a while. */
static bool is_text_at_rest(int fd, const struct stat *st)
{
	char last;

	return st->st_size > 0 && is_at_rest(st, REST_MS) && pread(fd, &last, 1, st->st_size - 1) == 1 && last == '\n';
}

/*
 * An ELF file says where its sections end, which is its end, as a rule: something may follow. And what is in the middle may be
 * written last.
 */
static bool is_elf_at_rest(int fd, const struct stat *st, enum bid_end end)
{
	if (st->st_size == 0 || (end == BID_END_UNKNOWN && !is_at_rest(st, REST_MS)))
		return false;
	return !has_holes(fd, st) || (end == BID_END_UNKNOWN && is_at_rest(st, HOLES_MS));
}

/* The same for a copy of /proc/kcore. Where nobody tells of the end it keeps its number: there may be more to come for the file. */
static int settle_copied(struct bid_fs *fs, struct bid_staged *staged, enum bid_end end)
{
	bool closed = end == BID_END_CLOSED;
	int fd = bid_stage_fd(staged->stage), r;
	struct stat st;

	if (!bid_kcore_is_file(staged->name))
		return -EINPROGRESS;
	if (fstat(fd, &st) < 0)
		return -errno;
	/* a kcore that is cut short is seen to be */
	if (!closed && (strcmp(staged->name, "kcore") != 0 ? end == BID_END_FLUSHED || !is_text_at_rest(fd, &st) : st.st_size == 0))
		return -EINPROGRESS;
	r = bid_publish_copied(staged, staged->dir, staged->name, closed);
	if (r == 0 && closed)
		bid_staging_drop(fs->staging, staged);
	return r;
}

int bid_settle_staged(struct bid_fs *fs, struct bid_staged *staged, enum bid_end end)
{
	struct bid_request request = { .id = staged->id, .kind = bid_tree_kind(staged->name) };
	int fd = bid_stage_fd(staged->stage), r;
	struct stat st;

	if (staged->ended)
		return -EINPROGRESS;
	if (bid_kcore_is_copy(staged->dir))
		return settle_copied(fs, staged, end);
	if (request.kind == BID_KIND_NONE)
		return -EINPROGRESS;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (end == BID_END_UNKNOWN && staged->judged == ns_of(&st.st_ctim))
		return -EINPROGRESS;
	if (end != BID_END_CLOSED &&
	    !(bid_kind_is_elf(request.kind) ? is_elf_at_rest(fd, &st, end) : end == BID_END_UNKNOWN && is_text_at_rest(fd, &st)))
		return -EINPROGRESS;
	r = bid_publish_staged(fs, staged, &request, staged->dir, end == BID_END_CLOSED);
	if (r == 0)
		bid_end_staged(fs, staged, staged->parent, staged->name);
	/* removed meanwhile */
	else if (r == -ESTALE)
		r = -EINPROGRESS;
	/* as it is now: not again before it is another */
	else if (fstat(fd, &st) == 0)
		staged->judged = ns_of(&st.st_ctim);
	return r;
}

bool bid_settle_rested(struct bid_fs *fs)
{
	struct bid_staged *staged;
	uint32_t serial = 0;
	bool left = false;

	while ((staged = bid_staging_next(fs->staging, serial))) {
		serial = staged->serial;
		left |= bid_settle_staged(fs, staged, BID_END_UNKNOWN) < 0;
		bid_staged_put(fs->staging, staged);
	}
	return left;
}

void bid_settle_idle(struct bid_fs *fs, unsigned seconds)
{
	struct bid_staged *staged;

	/* where they are counted, an idle writer is one */
	while ((staged = bid_staging_idle(fs->staging, seconds, fs->mode != BID_MODE_NO_OPEN))) {
		if (bid_settle_staged(fs, staged, BID_END_CLOSED) < 0)
			bid_staging_drop(fs->staging, staged);
		bid_staged_put(fs->staging, staged);
	}
}

/* Has it its place, or another of its name? A part of a copy of /proc/kcore may be written on after that. */
static bool is_placed(struct bid_fs *fs, const struct bid_staged *staged)
{
	bid_auto_free char *path = NULL;
	struct stat st;

	return asprintf(&path, "%s/%s", staged->dir, staged->name) >= 0 && bid_store_stat(fs->store, path, &st) == 0;
}

void bid_settle_last(struct bid_fs *fs, bool closed)
{
	struct bid_staged *staged;
	struct stat st;

	while ((staged = bid_staging_idle(fs->staging, 0, false))) {
		int r = bid_settle_staged(fs, staged, closed ? BID_END_CLOSED : BID_END_UNKNOWN);

		if (r == -EINPROGRESS && !closed)
			r = bid_settle_staged(fs, staged, BID_END_FLUSHED);
		if (r < 0 && !closed && bid_tree_kind(staged->name) != BID_KIND_NONE &&
		    fstat(bid_stage_fd(staged->stage), &st) == 0 && st.st_size > 0 && !is_placed(fs, staged))
			bid_warning("not kept, because nothing tells that it was written to its end: '%s/%s'", staged->dir,
				    staged->name);
		bid_staging_drop(fs->staging, staged);
		bid_staged_put(fs->staging, staged);
	}
}

void bid_close_staged(struct bid_fs *fs, const struct bid_node *node)
{
	struct bid_staged *staged = bid_staging_get(fs->staging, node->serial);

	/* what was refused would be taken for the file of its name: perf adds no other as long as there is one */
	if (staged && bid_settle_staged(fs, staged, BID_END_CLOSED) == -EBADMSG) {
		bid_staging_drop(fs->staging, staged);
		bid_notify_build(fs->notifier, &staged->id, staged->dir);
	}
	bid_staged_put(fs->staging, staged);
}

/*
 * A descriptor was closed, of which there may be more, as of a shell's redirection: who wrote by it is told if it is refused. What
 * says itself that it is whole may be published; of text, and of a file that is empty, nothing is said. Who has inherited the
 * descriptor, and perhaps only closes it to start another program, is not who writes.
 */
static int flush_staged(struct bid_fs *fs, const struct bid_node *node, pid_t who)
{
	struct bid_staged *staged = bid_staging_get(fs->staging, node->serial);
	int r = 0;

	if (staged && bid_staging_is_writer(fs->staging, node->serial, who))
		r = bid_settle_staged(fs, staged, BID_END_FLUSHED);
	bid_staged_put(fs->staging, staged);
	return r == -EINPROGRESS ? 0 : r;
}

void bid_op_flush(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct bid_fs *fs = bid_fs_of(req);
	struct bid_inode buffer, *inode = bid_inodes_find(fs->inodes, number, &buffer);
	int r = 0;

	/* in no_open mode every close of every file would be asked about: never again */
	if (fs->mode == BID_MODE_NO_OPEN)
		r = -ENOSYS;
	else if (inode && inode->node.type == BID_NODE_STAGED)
		r = flush_staged(fs, &inode->node, fuse_req_ctx(req)->pid);
	fuse_reply_err(req, -r);
}
