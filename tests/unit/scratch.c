// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

void scratch_run(const char *const argv[])
{
	int status;
	pid_t pid;

	/* posix_spawn(3) takes constant arguments as non-const */
	assert_int_equal(posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		fail_msg("'%s' failed with status %#x", argv[0], (unsigned)status);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *place)
{
	return remove(path);
}

int scratch_remove(const char *path)
{
	return nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Files with several names that were copied; for nftw(3), which has no user data. */
static struct tree_copy {
	size_t from_len;
	const char *to;
	struct linked {
		dev_t dev;
		ino_t ino;
		char path[PATH_MAX];
	} * linked; /* owned */
	size_t n_linked;
} copying;

static int copy_file(const char *path, const char *to, const struct stat *st)
{
	struct timespec times[] = { st->st_atim, st->st_mtim };
	bid_auto_fd int in = -1, out = -1;
	struct linked *linked;

	for (size_t i = 0; st->st_nlink > 1 && i < copying.n_linked; i++)
		if (copying.linked[i].ino == st->st_ino && copying.linked[i].dev == st->st_dev)
			return link(copying.linked[i].path, to);
	in = open(path, O_RDONLY | O_CLOEXEC);
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (in < 0 || out < 0 || bid_copy_file(in, out) < 0 || fchmod(out, st->st_mode & 07777) < 0 || futimens(out, times) < 0)
		return -1;
	if (st->st_nlink == 1)
		return 0;
	linked = reallocarray(copying.linked, copying.n_linked + 1, sizeof(*linked));
	if (!linked)
		return -1;
	copying.linked = linked;
	linked[copying.n_linked] = (struct linked){ .dev = st->st_dev, .ino = st->st_ino };
	snprintf(linked[copying.n_linked++].path, PATH_MAX, "%s", to);
	return 0;
}

static int copy_entry(const char *path, const struct stat *st, int type, struct FTW *place)
{
	char to[PATH_MAX], text[PATH_MAX];
	ssize_t len;

	snprintf(to, sizeof(to), "%.2048s%.2046s", copying.to, path + copying.from_len);
	if (type == FTW_D)
		return mkdir(to, st->st_mode & 07777);
	if (type == FTW_F)
		return copy_file(path, to, st);
	len = type == FTW_SL ? readlink(path, text, sizeof(text) - 1) : -1;
	if (len < 0)
		return -1;
	text[len] = '\0';
	return symlink(text, to);
}

int scratch_copy(const char *from, const char *to)
{
	int r;

	copying = (struct tree_copy){ .from_len = strlen(from), .to = to };
	r = nftw(from, copy_entry, 16, FTW_PHYS);
	free(copying.linked);
	return r;
}
