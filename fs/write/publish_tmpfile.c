// SPDX-License-Identifier: LGPL-2.1-or-later
#include "write/publish_tmpfile.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"

enum { ABANDONED_S = 3600 };

/* Replace the probe definitions, as perf does: text without an id. */
static int publish_probes(struct bid_fs *fs, struct bid_tmpfile *tmpfile, const struct bid_id *id, const char *dir)
{
	int from = bid_txn_fd(tmpfile->txn), r;
	bid_auto_fd int fd = -1;
	struct stat st;

	if (fstat(from, &st) < 0)
		return -errno;
	r = bid_store_open_probes(fs->store, id, dir, true, &fd);
	if (r == 0 && ftruncate(fd, 0) < 0)
		r = -errno;
	if (r == 0)
		r = lseek(from, 0, SEEK_SET) < 0 ? -errno : bid_copy_file(from, fd);
	if (r == 0 && futimens(fd, (struct timespec[]){ st.st_atim, st.st_mtim }) < 0)
		r = -errno;
	if (r == 0)
		bid_whiteouts_drop(&fs->probe_whiteouts, id);
	return r;
}

static int publish_file(struct bid_fs *fs, struct bid_tmpfile *tmpfile, const struct bid_request *request, const char *dir)
{
	if (request->kind == BID_KIND_PROBES)
		return publish_probes(fs, tmpfile, &request->id, dir);
	return bid_txn_commit_as(tmpfile->txn, request, dir);
}

static void log_error(const struct bid_tmpfile *tmpfile, const char *dir, const char *name, int r)
{
	bid_warning("%s: cannot publish '%s/%s'", r == -EBADMSG ? bid_txn_reason(tmpfile->txn) : strerror(-r), dir, name);
}

int bid_publish_as(struct bid_fs *fs, struct bid_tmpfile *tmpfile, const struct bid_id *id, const char *dir, const char *name,
		   struct bid_request *ret_request)
{
	struct bid_request request = { .id = *id, .kind = bid_tree_kind(name) };
	int r;

	if (bid_tree_is_temporary(dir) || request.kind == BID_KIND_NONE)
		return -EXDEV;
	r = publish_file(fs, tmpfile, &request, dir);
	if (r < 0 && r != -ESTALE)
		log_error(tmpfile, dir, name, r);
	if (r == 0)
		*ret_request = request;
	return r;
}

/* Publish @tmpfile under its own name. -ESTALE without one. */
static int publish_own(struct bid_fs *fs, struct bid_tmpfile *tmpfile)
{
	struct bid_request request = { .id = tmpfile->id, .kind = tmpfile->kind };
	int r = -ESTALE;

	if (bid_tmpfile_has_name(fs->tmpfiles, tmpfile))
		r = publish_file(fs, tmpfile, &request, tmpfile->dir);
	if (r == 0)
		bid_tmpfile_unname(fs->tmpfiles, tmpfile);
	return r;
}

int bid_publish_flush(struct bid_fs *fs, struct bid_tmpfile *tmpfile, pid_t tid)
{
	struct stat st;
	int r;

	if (tmpfile->kind == BID_KIND_NONE || !bid_tmpfile_is_writer(fs->tmpfiles, tmpfile, tid))
		return 0;
	/* a shell closes the first descriptor of a redirection before anything is written */
	if (fstat(bid_txn_fd(tmpfile->txn), &st) < 0 || st.st_size == 0)
		return 0;
	r = publish_own(fs, tmpfile);
	return r == -ESTALE ? 0 : r;
}

void bid_publish_release(struct bid_fs *fs, struct bid_tmpfile *tmpfile)
{
	int r;

	if (tmpfile->kind == BID_KIND_NONE)
		return;
	r = publish_own(fs, tmpfile);
	if (r < 0 && r != -ESTALE)
		log_error(tmpfile, tmpfile->dir, tmpfile->name, r);
	bid_tmpfile_unname(fs->tmpfiles, tmpfile);
}

int bid_publish_unlink(struct bid_fs *fs, struct bid_tmpfile *tmpfile)
{
	bool published = bid_txn_abandon(tmpfile->txn) == -EPERM && tmpfile->kind != BID_KIND_NONE;

	bid_tmpfile_unname(fs->tmpfiles, tmpfile);
	return published ? -EEXIST : 0;
}

void bid_publish_sweep(struct bid_fs *fs)
{
	struct bid_tmpfile *tmpfile;

	while ((tmpfile = bid_tmpfiles_idle(fs->tmpfiles, ABANDONED_S))) {
		bid_tmpfile_unname(fs->tmpfiles, tmpfile);
		bid_tmpfile_put(fs->tmpfiles, tmpfile);
	}
}

void bid_publish_end(struct bid_fs *fs, bool unmounted)
{
	struct bid_tmpfile *tmpfile;
	struct stat st;

	while ((tmpfile = bid_tmpfiles_first(fs->tmpfiles))) {
		if (unmounted)
			bid_publish_release(fs, tmpfile);
		else if (tmpfile->kind != BID_KIND_NONE && fstat(bid_txn_fd(tmpfile->txn), &st) == 0 && st.st_size > 0)
			bid_warning("the daemon ended before a program had closed '%s/%s': bidfs drops the file", tmpfile->dir,
				    tmpfile->name);
		bid_tmpfile_unname(fs->tmpfiles, tmpfile);
		bid_tmpfile_put(fs->tmpfiles, tmpfile);
	}
}
