// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

int bid_thread_start(pthread_t *ret_thread, const char *name, void *(*body)(void *), void *argument)
{
	sigset_t all, before;
	pthread_t thread;
	char own[16];
	int r;

	sigfillset(&all);
	r = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (r)
		return -r;
	/* it inherits the name, too: to give another thread one is to write to /proc, which a sandboxed program cannot do */
	prctl(PR_GET_NAME, own);
	prctl(PR_SET_NAME, name);
	r = pthread_create(&thread, NULL, body, argument);
	prctl(PR_SET_NAME, own);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r)
		return -r;
	*ret_thread = thread;
	return 0;
}

void bid_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

unsigned bid_cpus(void)
{
	cpu_set_t cpus;

	/* more than 1024 CPUs do not fit, and are more than anything here can use */
	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return 4;
	return (unsigned)CPU_COUNT(&cpus);
}

int bid_std_fds_occupy(void)
{
	/* in this order, because open(2) takes the lowest number; what is opened is always there, and cannot be read or written */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/", O_PATH) < 0)
			return -errno;
	return 0;
}

/* The protocol of sd_notify(3) is one datagram: no reason for a library. */
int bid_notify_open(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *name = getenv("NOTIFY_SOCKET");
	size_t len = name ? strlen(name) : 0;
	bid_auto_fd int fd = -1;

	if (len == 0)
		return -1;
	if ((name[0] != '/' && name[0] != '@') || len >= sizeof(address.sun_path)) {
		bid_warning("NOTIFY_SOCKET '%s' is not the name of a socket", name);
		return -1;
	}
	memcpy(address.sun_path, name, len);
	/* the name of an abstract socket begins with a zero */
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    connect(fd, (const struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0) {
		bid_warning("%s: cannot reach the service manager at '%s'", strerror(errno), name);
		return -1;
	}
	return bid_steal_fd(&fd);
}

void bid_notify(int fd, const char *state)
{
	if (fd >= 0 && write(fd, state, strlen(state)) < 0)
		bid_warning("%s: cannot send '%s' to the service manager", strerror(errno), state);
}
