// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/io.h"

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
	enum { ID = 0, DEVICE = 2, POINT = 4, OPTIONS = 5, FIRST_TAG = 6 };
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
	if (sscanf(fields[ID], "%" SCNu64, &ret_mount->id) != 1 || sscanf(fields[DEVICE], "%u:%u", &major, &minor) != 2)
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

/* In the child: copy the file into memory that the parent has too. Returns the errno to exit with. */
static int copy_file(const char *path, int to)
{
	bid_auto_free char *text = NULL;
	size_t len;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : bid_read_file(fd, STATUS_MAX, &text, &len);

	if (r == 0)
		r = bid_pwrite_full(to, text, len, 0);
	return -r;
}

/* Wait for the end of @child, which is killed if it takes too long. 0, or what it failed with. */
static int await(pid_t child, int timeout_ms)
{
	bid_auto_fd int ended = pidfd_open(child, 0);
	struct pollfd end = { .fd = ended, .events = POLLIN };
	int r = ended < 0 ? -1 : poll(&end, 1, timeout_ms);
	int status, error = -errno;

	if (r <= 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, WNOHANG); /* in the read it cannot even be killed, perhaps */
		return r < 0 ? error : -ETIMEDOUT;
	}
	if (waitpid(child, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

int ctl_mount_status(const struct ctl_mount *mount, int timeout_ms, char **ret_text)
{
	char path[PATH_MAX + sizeof("/.bidfs/status")];
	bid_auto_fd int text = memfd_create("status", MFD_CLOEXEC);
	size_t len;
	pid_t child;
	int r;

	if (text < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/.bidfs/status", mount->point);
	/* a read from a daemon that hangs has no time limit, but a process that reads can be ended */
	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0)
		_exit(copy_file(path, text));
	r = await(child, timeout_ms);
	return r < 0 ? r : bid_read_file(text, STATUS_MAX, ret_text, &len);
}

const char *ctl_mount_trouble(int error)
{
	switch (error) {
	case -ETIMEDOUT:
		return "its daemon does not answer";
	case -ENOTCONN:
	case -ECONNABORTED:
		return "its daemon is gone";
	case -EBADMSG:
		return "its daemon answers with something else than JSON";
	default:
		return strerror(-error);
	}
}
