// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl mount and bidctl umount */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/child.h"
#include "ctl/ctl.h"
#include "ctl/mounts.h"
#include "ctl/output.h"

/* Run mount.bidfs from this program's directory, else from PATH. */
static void exec_mount(char **argv)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - sizeof("mount.bidfs"));

	while (len > 0 && path[len - 1] != '/')
		len--;
	if (len > 0) {
		memcpy(path + len, argv[0], strlen(argv[0]) + 1);
		execv(path, argv);
	}
	execvp(argv[0], argv);
}

enum ctl_status ctl_mount(const struct ctl *ctl, int argc, char **argv)
{
	bid_auto_free const char **arguments = calloc(4 + 2 * ctl->options.n, sizeof(*arguments));
	const char **at = arguments;

	if (ctl->store && argc > 1)
		return ctl_usage(argv[0], "the store is named twice");
	/* mount.bidfs takes the place of this process */
	if (ctl->json)
		return ctl_usage("mount", "no JSON of 'mount': 'bidctl --json status' shows the mount");
	if (!arguments)
		return CTL_TROUBLE;
	*at++ = "mount.bidfs";
	if (ctl->store)
		*at++ = ctl->store;
	for (int i = 0; i < argc; i++)
		*at++ = argv[i];
	for (size_t i = 0; i < ctl->options.n; i++) {
		*at++ = "-o";
		*at++ = ctl->options.at[i];
	}
	fflush(stdout);
	exec_mount((char **)arguments);
	bid_error_about("mount.bidfs", -errno, "cannot run 'mount.bidfs': %s - install bidfs with FUSE", strerror(errno));
	return CTL_TROUBLE;
}

/* Search for mounts of a store, or of any for NULL. */
struct mount_search {
	const char *store;
	char found[PATH_MAX];
	size_t n;
};

static int take_mount(void *user, const struct ctl_mount *mount)
{
	struct mount_search *search = user;

	if (search->store && strcmp(search->store, mount->source) != 0)
		return 0;
	memcpy(search->found, mount->point, strlen(mount->point) + 1);
	search->n++;
	return 0;
}

/* Run umount(8) as root, else fusermount3(1), which prints its own errors. */
static enum ctl_status unmount_point(const struct ctl *ctl, const char *point)
{
	const char *const as_root[] = { "umount", "--", point, NULL };
	const char *const as_user[] = { "fusermount3", "-u", "--", point, NULL };
	const char *const *argv = geteuid() == 0 ? as_root : as_user;
	int r = ctl_child_exec(argv, STDOUT_FILENO);

	if (r < 0)
		return ctl_trouble(argv[0], r, "run it");
	if (r > 0)
		bid_error_about(point, 0, "%s failed, see above", argv[0]);
	if (ctl->json)
		ctl_row(ctl, CTL_TEXT("mount", 0, point), CTL_TEXT("state", 0, r == 0 ? "unmounted" : "failed"));
	return r == 0 ? CTL_DONE : CTL_REFUSED;
}

/* Unmount the mount at @point, or for NULL that of @store. */
static enum ctl_status unmount_one(const struct ctl *ctl, const char *point, const char *store)
{
	bid_auto_free char *real = point ? NULL : realpath(store, NULL);
	struct mount_search search = { .store = real ? real : store };
	const char *name = point ? point : store;
	int r = point ? ctl_each_mount_at(point, take_mount, &search) : ctl_each_mount(take_mount, &search);

	if (r < 0 && r != -ENOENT)
		return ctl_trouble(CTL_MOUNTINFO, r, NULL);
	if (search.n == 0) {
		bid_error_about(name, -ENOENT, "no mount of bidfs: '%s' - 'bidctl status' lists them", name);
		return CTL_REFUSED;
	}
	if (search.n > 1 && !point) {
		bid_error_about(name, -EBUSY, "%zu mounts of the store '%s' - name one", search.n, name);
		return CTL_REFUSED;
	}
	return unmount_point(ctl, search.found);
}

enum ctl_status ctl_umount(const struct ctl *ctl, int argc, char **argv)
{
	enum ctl_status worst = CTL_DONE;
	char path[PATH_MAX];

	if (argc == 0) {
		worst = ctl_store_path(ctl, path, sizeof(path));
		return worst == CTL_DONE ? unmount_one(ctl, NULL, path) : worst;
	}
	for (int i = 0; i < argc; i++) {
		enum ctl_status status = unmount_one(ctl, argv[i], NULL);

		worst = status > worst ? status : worst;
	}
	return worst;
}
