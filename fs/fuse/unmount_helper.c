// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fuse/unmount_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U /* Linux 6.8 */
#endif

static const char ends[] = "ends\n"; /* line of the daemon before an orderly end */

struct bid_unmount_helper {
	struct fuse_session *session; /* borrowed, until the end */
	const char *path; /* borrowed */
	uint64_t mount; /* unique mount id; 0 on older kernels */
	int life; /* write end of a pipe; open as long as the daemon lives */
	pid_t pid;
};

/* The unique id of the mount of @path, relative to @fd; 0 on older kernels. Sends no request to a file system. */
static uint64_t number_of(int fd, const char *path)
{
	struct statx st;

	if (statx(fd, path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_MNT_ID_UNIQUE, &st) < 0 ||
	    !(st.stx_mask & STATX_MNT_ID_UNIQUE))
		return 0;
	return st.stx_mnt_id;
}

/* The descriptor keeps the mount, whatever is mounted at the path meanwhile. */
static void unmount_by_root(const struct bid_unmount_helper *helper)
{
	char path[BID_FD_PATH_MAX];
	bid_auto_fd int fd = open(helper->path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || number_of(fd, "") != helper->mount)
		return;
	if (umount2(bid_fd_path(fd, path), MNT_DETACH) < 0)
		bid_warning("%s: cannot unmount '%s'", strerror(errno), helper->path);
}

/*
 * A user has only fusermount3(1), which takes a path. A race needs somebody to remove the dead mount by force, and to mount
 * there.
 */
static void unmount_by_name(const struct bid_unmount_helper *helper)
{
	if (!helper->mount || number_of(AT_FDCWD, helper->path) == helper->mount)
		fuse_session_unmount(helper->session);
}

static void clear_signals(void)
{
	static const int ignored[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE };

	/* a signal for the daemon may reach its whole process group */
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
}

/* The main function of the process. @life brings the messages of the daemon, and ends with the daemon. */
_Noreturn static void wait_and_unmount(const struct bid_unmount_helper *helper, int life)
{
	pid_t daemon = getppid();
	bool ended = false;
	char *line = NULL;
	size_t size = 0;

	clear_signals();
	/* an open descriptor here would outlive the daemon: of its mount, its store, its caller's pipe */
	if (dup2(life, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 || chdir("/") < 0)
		bid_debug("%s: the unmount helper keeps descriptors open", strerror(errno));
	close_range(STDERR_FILENO + 1, ~0U, 0);
	while (getline(&line, &size, stdin) > 0) {
		ended = ended || strcmp(line, ends) == 0;
		bid_log_relay(daemon, line);
	}
	if (helper->mount && geteuid() == 0)
		unmount_by_root(helper);
	else if (helper->mount || ended)
		unmount_by_name(helper);
	_exit(0);
}

int bid_unmount_helper_new(struct fuse_session *session, const char *path, struct bid_unmount_helper **ret_helper)
{
	bid_auto_free struct bid_unmount_helper *helper = calloc(1, sizeof(*helper));
	char name[16];
	int life[2];

	if (!helper)
		return -ENOMEM;
	helper->session = session;
	helper->path = path;
	helper->mount = number_of(AT_FDCWD, path);
	if (pipe2(life, O_CLOEXEC) < 0)
		return -errno;
	/* a kill by the name of the daemon must never hit the helper */
	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, "bidfs-unmount");
	helper->pid = fork();
	if (helper->pid == 0)
		wait_and_unmount(helper, life[0]);
	prctl(PR_SET_NAME, name);
	bid_close(life[0]);
	helper->life = life[1];
	if (helper->pid < 0) {
		bid_close(life[1]);
		return -errno;
	}
	bid_log_to_relay(helper->life);
	*ret_helper = bid_steal(helper);
	return 0;
}

/* Is the mount still there? The device has POLLERR afterwards. */
static bool is_mounted(struct fuse_session *session)
{
	struct pollfd device = { .fd = fuse_session_fd(session) };

	return poll(&device, 1, 0) != 1 || !(device.revents & POLLERR);
}

void bid_unmount_helper_end(struct bid_unmount_helper *helper)
{
	bool mounted = is_mounted(helper->session);

	/* closing the device ends all pending requests, for which umount2(2) may wait */
	fuse_session_destroy(helper->session);
	if (mounted && write(helper->life, ends, strlen(ends)) < 0)
		bid_warning("%s: cannot unmount '%s'", strerror(errno), helper->path);
	bid_log_to_relay(-1);
	close(helper->life);
	while (waitpid(helper->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(helper);
}
