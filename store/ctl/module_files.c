// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/module_files.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/running_kernel.h"

enum { MODULES_DEP_MAX = 1 << 26 }; /* bytes */

int ctl_modules_index(const char *directory, char **ret_index)
{
	char path[PATH_MAX], *index;
	size_t len;

	snprintf(path, sizeof(path), "%s/modules.dep", directory);
	if (ctl_running_read(path, MODULES_DEP_MAX, &index, &len) < 0)
		index = strdup("");
	if (!index)
		return -ENOMEM;
	*ret_index = index;
	return 0;
}

/* Is @path, "kernel/fs/a-b.ko.xz", the file of the module with the kernel's name @name, "a_b"? */
static bool is_module_file(const char *path, size_t len, const char *name)
{
	const char *base = memrchr(path, '/', len);

	base = base ? base + 1 : path;
	for (; *name; name++, base++)
		if (base >= path + len || (*base == '-' ? '_' : *base) != *name)
			return false;
	return path + len - base >= 3 && memcmp(base, ".ko", 3) == 0 && (base + 3 == path + len || base[3] == '.');
}

bool ctl_module_find(const char *directory, const char *index, const char *name, char *ret_path, size_t size)
{
	for (const char *line = index; *line; line += *line == '\n') {
		size_t len = strcspn(line, ":\n");

		if (line[len] == ':' && is_module_file(line, len, name))
			return (size_t)snprintf(ret_path, size, "%s/%.*s", line[0] == '/' ? "" : directory, (int)len, line) < size;
		line += strcspn(line, "\n");
	}
	return false;
}

int ctl_module_each(const char *name, ctl_module_fn fn, void *user)
{
	bid_auto_dir DIR *releases = opendir(CTL_MODULES);
	struct dirent *release;
	int r = 0;

	while (r == 0 && releases && (release = readdir(releases))) {
		bid_auto_free char *index = NULL;
		char directory[sizeof(CTL_MODULES) + NAME_MAX + 1], path[PATH_MAX];

		if (release->d_name[0] == '.')
			continue;
		snprintf(directory, sizeof(directory), "%s/%s", CTL_MODULES, release->d_name);
		r = ctl_modules_index(directory, &index);
		if (r == 0 && ctl_module_find(directory, index, name, path, sizeof(path)))
			r = fn(user, path);
	}
	return r;
}
