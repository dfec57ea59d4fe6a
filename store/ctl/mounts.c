// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "ctl/clock.h"

enum { STATUS_MAX = 4 << 20 }; /* bytes */

/* Copy @text, in which the kernel writes blank, tab, newline and backslash as "\ooo". */
static int unescape(const char *text, char *ret_path, size_t size)
{
	size_t len = 0;

	while (*text) {
		char c = *text++;

		if (c == '\\' && strspn(text, "01234567") >= 3) {
			c = (char)((text[0] - '0') << 6 | (text[1] - '0') << 3 | (text[2] - '0'));
			text += 3;
		}
		if (len + 1 >= size)
			return -ENAMETOOLONG;
		ret_path[len++] = c;
	}
	ret_path[len] = '\0';
	return 0;
}

static bool has_option(const char *options, const char *wanted)
{
	size_t len = strlen(wanted);

	for (;; options++) {
		if (strncmp(options, wanted, len) == 0 && (options[len] == ',' || options[len] == '\0'))
			return true;
		options = strchr(options, ',');
		if (!options)
			return false;
	}
}

/* Is @line a mount of bidfs? It is taken apart in place. */
static bool parse_line(char *line, struct ctl_mount *ret_mount)
{
	enum { DEVICE = 2, POINT = 4, OPTIONS = 5, FIRST_TAG = 6 };
	char *fields[FIRST_TAG], *field, *type, *source, *super;
	unsigned major, minor;

	for (size_t i = 0; i < FIRST_TAG; i++)
		if (!(fields[i] = strsep(&line, " ")))
			return false;
	/* any number of tags, then a dash */
	while ((field = strsep(&line, " ")) && strcmp(field, "-") != 0)
		;
	type = strsep(&line, " ");
	source = strsep(&line, " ");
	super = strsep(&line, " \n");
	if (!type || strcmp(type, "fuse.bidfs") != 0 || !source || !super)
		return false;
	if (sscanf(fields[DEVICE], "%u:%u", &major, &minor) != 2)
		return false;
	ret_mount->dev = makedev(major, minor);
	ret_mount->read_only = has_option(fields[OPTIONS], "ro") || has_option(super, "ro");
	return unescape(fields[POINT], ret_mount->point, sizeof(ret_mount->point)) == 0 &&
	       unescape(source, ret_mount->source, sizeof(ret_mount->source)) == 0;
}

int ctl_each_mount(const char *path, int (*fn)(void *user, const struct ctl_mount *mount), void *user)
{
	bid_auto_file FILE *file = fopen(path, "re");
	bid_auto_free char *line = NULL;
	struct ctl_mount mount;
	size_t room = 0;
	int r = 0;

	if (!file)
		return -errno;
	while (r == 0 && getline(&line, &room, file) > 0)
		if (parse_line(line, &mount))
			r = fn(user, &mount);
	if (r == 0 && ferror(file))
		r = -EIO;
	return r;
}

/* In the child: copy the file into the pipe. Returns the errno to exit with. */
static int copy_file(const char *path, int to)
{
	bid_auto_free char *text = NULL;
	size_t len, done = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : bid_read_file(fd, STATUS_MAX, &text, &len);

	if (r < 0)
		return -r;
	while (done < len) {
		ssize_t n = write(to, text + done, len - done);

		if (n < 0)
			return errno;
		done += (size_t)n;
	}
	return 0;
}

/* Read all that comes out of @fd until @deadline. */
static int drain(int fd, int64_t deadline, char **ret_text)
{
	bid_auto_free char *text = malloc(STATUS_MAX + 1);
	size_t len = 0;

	if (!text)
		return -ENOMEM;
	for (;;) {
		struct pollfd readable = { .fd = fd, .events = POLLIN };
		int64_t left = deadline - ctl_clock_ms();
		ssize_t n;

		if (left <= 0 || poll(&readable, 1, (int)left) == 0)
			return -ETIMEDOUT;
		n = read(fd, text + len, STATUS_MAX - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	*ret_text = bid_steal(text);
	return 0;
}

int ctl_mount_status(const struct ctl_mount *mount, int timeout_ms, char **ret_text)
{
	char path[PATH_MAX + sizeof("/.bidfs/status")];
	bid_auto_free char *text = NULL;
	int ends[2], status, r;
	pid_t child;

	snprintf(path, sizeof(path), "%s/.bidfs/status", mount->point);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	/* a read from a daemon that hangs has no time limit, but a process that reads can be ended */
	child = fork();
	r = child < 0 ? -errno : 0;
	if (child == 0)
		_exit(copy_file(path, ends[1]));
	bid_close(ends[1]);
	if (r == 0)
		r = drain(ends[0], ctl_clock_ms() + timeout_ms, &text);
	bid_close(ends[0]);
	if (child < 0)
		return r;
	if (r < 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, WNOHANG);
		return r;
	}
	if (waitpid(child, &status, 0) < 0)
		return -errno;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
	*ret_text = bid_steal(text);
	return 0;
}
