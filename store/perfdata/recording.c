// SPDX-License-Identifier: LGPL-2.1-or-later
/* Recordings as found on disk: a file, a pipe, a directory of files. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "perfdata/recording.h"

const char *bid_perfdata_mode_name(enum bid_perfdata_mode mode)
{
	static const char *const names[] = {
		[BID_PERFDATA_USER] = "user",
		[BID_PERFDATA_KERNEL] = "kernel",
		[BID_PERFDATA_GUEST] = "guest",
	};

	return names[mode];
}

static void close_perf(struct bid_perf *perf)
{
	bid_samples_release(&perf->samples);
	bid_dsos_release(&perf->dsos);
}

/* Read the file at @fd: with perf's header, or, if @headless, with records only. */
static int read_file(struct bid_perf *perf, int fd, bool headless)
{
	bid_cleanup(bid_input_release) struct bid_input input = BID_INPUT_NONE;
	int r = bid_input_init(&input, fd);

	if (r < 0)
		return r;
	r = headless ? bid_stream_read(perf, &input, UINT64_MAX) : bid_features_read(perf, &input);
	perf->summary.bytes += input.seekable ? input.size : input.offset;
	return r;
}

static int finish_reading(struct bid_perf *perf, int fd, bid_perfdata_fn fn, void *user, struct bid_perfdata_summary *ret_summary)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		perf->summary.modified = st.st_mtime;
	r = bid_samples_place(&perf->samples);
	if (r < 0)
		return r;
	perf->summary.samples = perf->samples.seen;
	perf->summary.placed = perf->samples.placed;
	r = bid_dsos_each(&perf->dsos, fn, user, &perf->summary.dsos);
	if (r == 0)
		*ret_summary = perf->summary;
	return r;
}

int bid_perfdata_read_fd(int fd, unsigned flags, bid_perfdata_fn fn, void *user, struct bid_perfdata_summary *ret_summary)
{
	bid_cleanup(close_perf) struct bid_perf perf = { .samples.wanted = flags & BID_PERFDATA_SAMPLES };
	int r = read_file(&perf, fd, false);

	return r < 0 ? r : finish_reading(&perf, fd, fn, user, ret_summary);
}

/* "data.7": the part of one thread of perf record --threads */
static bool is_part(const char *name)
{
	const char *digits = name + strlen("data.");

	return strncmp(name, "data.", strlen("data.")) == 0 && *digits && strspn(digits, "0123456789") == strlen(digits);
}

/* Open a member of a directory; a FIFO must not block. Returns the descriptor of a regular file, -EINVAL for anything else. */
static int open_member(int dir, const char *name)
{
	bid_auto_fd int fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? bid_steal_fd(&fd) : -EINVAL;
}

static int read_parts(struct bid_perf *perf, DIR *dir)
{
	struct dirent *entry;
	int r = 0;

	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		bid_auto_fd int fd = -1;

		if (!is_part(entry->d_name))
			continue;
		fd = open_member(dirfd(dir), entry->d_name);
		if (fd == -EINVAL)
			bid_perf_damage(perf, "a part of the directory that is no regular file", 0);
		else
			r = fd < 0 ? fd : read_file(perf, fd, true);
	}
	return r < 0 ? r : -errno;
}

/* Takes over @fd. */
static int read_directory(int fd, unsigned flags, bid_perfdata_fn fn, void *user, struct bid_perfdata_summary *ret_summary)
{
	bid_cleanup(close_perf) struct bid_perf perf = { .samples.wanted = flags & BID_PERFDATA_SAMPLES };
	bid_auto_dir DIR *dir = fdopendir(fd);
	bid_auto_fd int main = -1;
	int r;

	if (!dir) {
		bid_close(fd);
		return -errno;
	}
	main = open_member(dirfd(dir), "data");
	if (main < 0)
		return main == -ENOENT ? -EINVAL : main;
	r = read_file(&perf, main, false);
	if (r == 0)
		r = read_parts(&perf, dir);
	return r < 0 ? r : finish_reading(&perf, main, fn, user, ret_summary);
}

int bid_perfdata_read(const char *path, unsigned flags, bid_perfdata_fn fn, void *user, struct bid_perfdata_summary *ret_summary)
{
	bid_auto_fd int fd = -1;
	struct stat st;

	if (strcmp(path, "-") == 0)
		return bid_perfdata_read_fd(STDIN_FILENO, flags, fn, user, ret_summary);
	fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return read_directory(bid_steal_fd(&fd), flags, fn, user, ret_summary);
	return bid_perfdata_read_fd(fd, flags, fn, user, ret_summary);
}
