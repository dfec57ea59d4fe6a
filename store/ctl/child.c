// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Wait for the end of @child, and kill it after @timeout_ms or on @interrupt. */
static int wait_for_child(pid_t child, int timeout_ms, int interrupt)
{
	bid_auto_fd int ended = pidfd_open(child, 0);
	struct pollfd fds[] = { { .fd = ended, .events = POLLIN }, { .fd = interrupt, .events = POLLIN } };
	int r = ended < 0 ? -1 : poll(fds, 2, timeout_ms);
	int status, error = -errno;

	if (r <= 0 || !fds[0].revents) {
		kill(child, SIGKILL);
		return r < 0 ? error : r == 0 ? -ETIMEDOUT : -EINTR;
	}
	if (waitpid(child, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

/* Redirect the child's standard streams to /dev/null, so that a stuck child keeps no pipe of this process open. */
static void leave_output(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
}

int ctl_child_run(int (*body)(void *user), void *user, int timeout_ms, int interrupt)
{
	pid_t parent = getpid(), child;

	/* reap earlier children that were stuck */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	child = fork();
	if (child < 0)
		return -errno;
	if (child > 0)
		return wait_for_child(child, timeout_ms, interrupt);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	leave_output();
	_exit(getppid() == parent ? -body(user) : ESRCH);
}

int ctl_child_exec(const char *const *argv, int output)
{
	posix_spawn_file_actions_t actions;
	pid_t child;
	int r = -posix_spawn_file_actions_init(&actions), status;

	if (r < 0)
		return r;
	r = -posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (r == 0)
		r = -posix_spawnp(&child, argv[0], &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r < 0)
		return r;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EIO;
}

void ctl_end_signals(sigset_t *ret_signals)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action;

	sigemptyset(ret_signals);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (sigaction(ends[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(ret_signals, ends[i]);
}
