// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/probe_edit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "api/perf_write.h"
#include "base/cleanup.h"
#include "base/io.h"

enum {
	SIZE_LIMIT = 64 << 20, /* bytes */
	LEASE_ATTEMPTS = 100, /* about 2 s; perf keeps the file open for some milliseconds */
};

struct probe_text {
	char *data; /* owned; ends with a NUL */
	size_t len;
};

static void text_release(struct probe_text *text)
{
	free(text->data);
}

int ctl_probe_read(struct bid_store *store, const struct bid_id *id, struct ctl_probe_file *ret_file)
{
	struct bid_file file = BID_FILE_NONE;
	struct probe_text text;
	int r;

	r = bid_store_find(store, &(struct bid_artifact){ .id = *id, .kind = BID_KIND_PROBES }, BID_MAY_DERIVE, &file);
	if (r == 0)
		r = bid_read_file(file.fd, SIZE_LIMIT, &text.data, &text.len);
	bid_file_release(&file);
	return r < 0 ? r : ctl_probe_file_parse(text.data, text.len, ret_file);
}

/*
 * Open the definitions under a lease, or without one where leases are unsupported. Returns -EBUSY while others keep the file open,
 * also for reading: perf reopens it to write, which would go unnoticed. Each attempt reopens the file, so that two callers do not
 * block each other.
 */
static int open_leased(struct bid_store *store, const struct bid_id *id, int *ret_fd)
{
	for (unsigned attempts = 0; attempts < LEASE_ATTEMPTS; attempts++) {
		struct timespec pause = { .tv_nsec = 10000000 + (getpid() % 16) * 1000000L };
		struct bid_file found = BID_FILE_NONE;
		bid_auto_fd int fd = -1;
		int r;

		bid_store_find(store, &(struct bid_artifact){ .id = *id, .kind = BID_KIND_PROBES }, BID_MAY_DERIVE, &found);
		r = bid_store_open_probes(store, id, NULL, &found, &fd);
		bid_file_release(&found);
		if (r < 0)
			return r;
		/*
		 * the lease holder receives this signal at an open(2); unlike the default signal, SIGURG does not end the program
		 */
		if ((fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0) || errno != EAGAIN) {
			*ret_fd = bid_steal_fd(&fd);
			return 0;
		}
		bid_close(bid_steal_fd(&fd));
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return -EBUSY;
}

static int make_new(const struct probe_text *old, ctl_probe_edit_fn edit, void *user, struct probe_text *ret_new)
{
	bid_cleanup(ctl_probe_file_release) struct ctl_probe_file file = { 0 };
	bid_auto_free char *copy = malloc(old->len + 1);
	struct probe_text new = { 0 };
	FILE *out;
	int r;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, old->data, old->len + 1);
	r = ctl_probe_file_parse(bid_steal(copy), old->len, &file);
	if (r < 0)
		return r;
	out = open_memstream(&new.data, &new.len);
	if (!out)
		return -ENOMEM;
	r = edit(user, &file, out);
	if (fclose(out) != 0 && r == 0)
		r = -ENOMEM;
	if (r < 0) {
		text_release(&new);
		return r;
	}
	*ret_new = new;
	return 0;
}

/* Write the changed part. On a full disk restore the old text. */
static int replace_text(int fd, const struct probe_text *old, const struct probe_text *new)
{
	size_t same = 0;
	int r;

	while (same < old->len && same < new->len && old->data[same] == new->data[same])
		same++;
	r = bid_pwrite_full(fd, new->data + same, new->len - same, (off_t)same);
	if (r == 0 && ftruncate(fd, (off_t) new->len) < 0)
		r = -errno;
	if (r < 0) {
		bid_pwrite_full(fd, old->data + same, old->len - same, (off_t)same);
		(void)!ftruncate(fd, (off_t)old->len);
		return r;
	}
	return r;
}

/* Try one edit. Returns 1 after a change by another process. */
static int edit_open(int fd, ctl_probe_edit_fn edit, void *user)
{
	bid_cleanup(text_release) struct probe_text old = { 0 };
	bid_cleanup(text_release) struct probe_text new = { 0 };
	bid_cleanup(text_release) struct probe_text now = { 0 };
	int r = bid_read_file(fd, SIZE_LIMIT, &old.data, &old.len);

	if (r == 0)
		r = make_new(&old, edit, user, &new);
	if (r == 0)
		r = bid_read_file(fd, SIZE_LIMIT, &now.data, &now.len);
	if (r < 0)
		return r;
	if (now.len != old.len || memcmp(now.data, old.data, old.len) != 0)
		return 1;
	return replace_text(fd, &old, &new);
}

/* Call @edit for the definitions in @made, or none, without a change. */
static int preview_edit(const struct bid_file *made, ctl_probe_edit_fn edit, void *user)
{
	bid_cleanup(text_release) struct probe_text old = { 0 };
	bid_cleanup(text_release) struct probe_text new = { 0 };
	int r = 0;

	if (made->fd >= 0)
		r = bid_read_file(made->fd, SIZE_LIMIT, &old.data, &old.len);
	else if (!(old.data = strdup("")))
		r = -ENOMEM;
	return r == 0 ? make_new(&old, edit, user, &new) : r;
}

int ctl_probe_edit(struct bid_store *store, const struct bid_id *id, ctl_probe_edit_fn edit, void *user, bool dry_run)
{
	bid_cleanup(bid_file_release) struct bid_file made = BID_FILE_NONE;
	bid_auto_fd int fd = -1;
	int r;

	/* derives the definitions, if possible */
	r = bid_store_find(store, &(struct bid_artifact){ .id = *id, .kind = BID_KIND_PROBES }, BID_MAY_DERIVE, &made);
	if (r < 0 && r != -ENOENT)
		return r;
	if (dry_run)
		return r < 0 && bid_store_kinds(store, id) <= 0 ? -ENOENT : preview_edit(&made, edit, user);
	bid_file_release(&made);
	r = open_leased(store, id, &fd);
	if (r < 0)
		return r == -EPERM ? -ENOENT : r;
	/* excludes other bidctl processes, where leases are unsupported */
	if (flock(fd, LOCK_EX) < 0)
		return -errno;
	do
		r = edit_open(fd, edit, user);
	while (r > 0);
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return r == 0 && fsync(fd) < 0 ? -errno : r;
}
