// SPDX-License-Identifier: LGPL-2.1-or-later
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

void scratch_run(const char *const argv[])
{
	int status;
	pid_t pid;

	/* posix_spawn(3) takes what it does not change as changeable */
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
