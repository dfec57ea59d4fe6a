// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"

enum { ATTEMPTS = 16 };

/* Create a file without a name in the directory of the output, or a named one where O_TMPFILE is unsupported. */
static int open_temp(struct ctl_outfile *file)
{
	bid_auto_free char *copy = strdup(file->path);
	mode_t mask = umask(0);

	umask(mask);
	if (!copy)
		return -ENOMEM;
	file->fd = open(dirname(copy), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	if (file->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR)
		return -errno;
	if (asprintf(&file->temp, "%s.XXXXXX", file->path) < 0) {
		file->temp = NULL;
		return -ENOMEM;
	}
	file->fd = mkostemp(file->temp, O_CLOEXEC);
	if (file->fd < 0) {
		int error = -errno;

		free(bid_steal(file->temp));
		return error;
	}
	return fchmod(file->fd, 0666 & ~mask) < 0 ? -errno : 0;
}

int ctl_outfile_open(struct ctl_outfile *file, const char *path)
{
	struct stat st;

	*file = CTL_OUTFILE_NONE;
	file->path = path;
	file->direct = true;
	if (strcmp(path, "-") == 0) {
		file->fd = STDOUT_FILENO;
		return 0;
	}
	if (stat(path, &st) < 0 || S_ISREG(st.st_mode)) {
		file->direct = false;
		return open_temp(file);
	}
	file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return file->fd < 0 ? -errno : 0;
}

/* Give the file a temporary name: linkat(2) never replaces a file. */
static int name_temp(struct ctl_outfile *file)
{
	int r;

	for (int i = 0; i < ATTEMPTS; i++) {
		if (asprintf(&file->temp, "%s.%d-%d", file->path, (int)getpid(), i) < 0) {
			file->temp = NULL;
			return -ENOMEM;
		}
		r = bid_fd_link(file->fd, AT_FDCWD, file->temp);
		if (r == 0)
			return 0;
		free(bid_steal(file->temp));
		if (r != -EEXIST)
			return r;
	}
	return -EEXIST;
}

int ctl_outfile_commit(struct ctl_outfile *file)
{
	int r = 0;

	if (file->direct)
		return 0;
	if (fsync(file->fd) < 0)
		return -errno;
	if (!file->temp)
		r = name_temp(file);
	if (r == 0 && rename(file->temp, file->path) < 0)
		r = -errno;
	if (r == 0)
		free(bid_steal(file->temp));
	return r;
}

void ctl_outfile_release(struct ctl_outfile *file)
{
	if (file->temp)
		unlink(file->temp);
	free(bid_steal(file->temp));
	if (file->fd != STDOUT_FILENO)
		bid_close(file->fd);
	file->fd = -1;
}
