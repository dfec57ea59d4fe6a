// SPDX-License-Identifier: LGPL-2.1-or-later
/* The default store and the default lower stores, from the environment and perf's configuration. */
#include "api/default_stores.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <bid/store.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"

#define SYSTEM_CONFIG "/etc/perfconfig"
#define CONFIG_MAX    (1 << 20)
#define KEY_CHARS     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
#define BLANKS	      " \t\v\f\r"

static int copy_path(char *buffer, size_t size, const char *path)
{
	if (strlen(path) >= size)
		return -ENAMETOOLONG;
	memcpy(buffer, path, strlen(path) + 1);
	return 0;
}

static int join_path(char *buffer, size_t size, const char *dir, const char *rest)
{
	return (size_t)snprintf(buffer, size, "%s/%s", dir, rest) >= size ? -ENAMETOOLONG : 0;
}

static int home_directory(char *buffer, size_t size)
{
	const char *home = getenv("HOME");
	struct passwd entry, *found = NULL;
	char text[4096];

	if (!home || home[0] != '/') {
		if (getpwuid_r(geteuid(), &entry, text, sizeof(text), &found) != 0 || !found || found->pw_dir[0] != '/')
			return -ENOENT;
		home = found->pw_dir;
	}
	return copy_path(buffer, size, home);
}

/* perf's reading of a truth value in the environment (perf, util/config.c) */
static bool is_true(const char *variable)
{
	const char *text = getenv(variable);

	if (!text)
		return false;
	return strcasecmp(text, "true") == 0 || strcasecmp(text, "yes") == 0 || strcasecmp(text, "on") == 0 ||
	       strtol(text, NULL, 0) != 0;
}

/* Is @path trusted to name directories? False if a third user owns the file. */
static bool is_trusted(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	if (st.st_uid == 0 || st.st_uid == geteuid())
		return true;
	bid_warning("another user owns '%s': bidfs ignores it", path);
	return false;
}

static bool is_name(const char *text, size_t len, const char *name)
{
	return len == strlen(name) && strncasecmp(text, name, len) == 0;
}

/*
 * Read a value up to a comment, in place: unquoted blanks count as one blank between words, and as none around them. Returns NULL
 * for an open quote or a backslash: an escape, or a value of several lines.
 */
static const char *read_value(char *value)
{
	bool quoted = false, blank = false;
	char *to = value;

	for (const char *at = value; *at && (quoted || !strchr(";#", *at)); at++) {
		if (!quoted && strchr(BLANKS, *at)) {
			blank = to > value;
			continue;
		}
		if (*at == '\\')
			return NULL;
		if (blank)
			*to++ = ' ';
		blank = false;
		if (*at == '"')
			quoted = !quoted;
		else
			*to++ = *at;
	}
	*to = '\0';
	return quoted ? NULL : value;
}

/*
 * Look up "buildid.dir" in @text, in git's syntax (perf, util/config.c). The last value counts. Returns 1 and the value, which lies
 * in @text; 0 without one; or -EINVAL and the number of the line. Changes @text, and ignores all other lines.
 */
static int parse_config(char *text, const char **ret_dir, unsigned *ret_line)
{
	static const char utf8_mark[] = "\357\273\277"; /* which some editors write */
	const char *dir = NULL;
	bool buildid = false;
	char *line;

	if (strncmp(text, utf8_mark, strlen(utf8_mark)) == 0)
		text += strlen(utf8_mark);
	for (unsigned number = 1; (line = strsep(&text, "\n")); number++) {
		size_t len;

		line += strspn(line, BLANKS);
		while (*line == '[') {
			len = strcspn(line, "]");
			buildid = line[len] && is_name(line + 1, len - 1, "buildid");
			line += len + (line[len] != '\0');
			line += strspn(line, BLANKS);
		}
		len = strspn(line, KEY_CHARS);
		if (!buildid || !is_name(line, len, "dir"))
			continue;
		line += len;
		line += strspn(line, BLANKS);
		dir = *line == '=' ? read_value(line + 1) : NULL;
		if (!dir) {
			*ret_line = number;
			return -EINVAL;
		}
	}
	if (dir)
		*ret_dir = dir;
	return dir != NULL;
}

/* Read the directory from the configuration @path. Returns 1 and the directory, 0 without one. */
static int read_config(const char *path, char *ret_dir, size_t size)
{
	bid_auto_free char *text = NULL;
	bid_auto_fd int fd = -1;
	const char *dir;
	unsigned line;
	size_t len;
	int r;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	r = fd < 0 ? -errno : 0;
	if (r == 0 && !is_trusted(fd, path))
		return 0;
	if (r == 0)
		r = bid_read_file(fd, CONFIG_MAX, &text, &len);
	if (r < 0) {
		bid_error_about(path, r, "%s: '%s'", strerror(-r), path);
		return r;
	}

	r = parse_config(text, &dir, &line);
	if (r < 0)
		bid_error_about(path, r, "bad line %u in '%s'", line, path);
	if (r <= 0)
		return r;
	r = copy_path(ret_dir, size, dir);
	if (r < 0)
		bid_error_about(path, r, "%s: buildid.dir in '%s'", strerror(-r), path);
	return r < 0 ? r : 1;
}

/* Read the directory from perf's configuration. Returns 1 and the directory, 0 without one. @ret_file is the file with it. */
static int configured(const char *home, char *ret_dir, char *ret_file, size_t size)
{
	const char *alone = getenv("PERF_CONFIG");
	char path[PATH_MAX];
	int r, found = 0;

	if (alone) {
		snprintf(ret_file, size, "%s", alone);
		return read_config(alone, ret_dir, size);
	}
	if (home && !is_true("PERF_CONFIG_NOGLOBAL")) {
		r = join_path(path, sizeof(path), home, ".perfconfig");
		if (r == 0)
			r = found = read_config(path, ret_dir, size);
		if (r < 0)
			return r;
	}
	if (!found && !is_true("PERF_CONFIG_NOSYSTEM") && access(SYSTEM_CONFIG, R_OK) == 0) {
		snprintf(path, sizeof(path), "%s", SYSTEM_CONFIG);
		found = read_config(path, ret_dir, size);
	}
	if (found > 0)
		snprintf(ret_file, size, "%s", path);
	return found;
}

int bid_store_default_path(char *ret_path, size_t size)
{
	char home[PATH_MAX], dir[PATH_MAX], file[PATH_MAX], path[PATH_MAX];
	int has_home, r;

	has_home = home_directory(home, sizeof(home));
	r = configured(has_home == 0 ? home : NULL, dir, file, sizeof(dir));
	if (r < 0)
		return r;
	if (r == 0 || dir[0] == '\0') {
		r = has_home < 0 ? has_home : join_path(path, sizeof(path), home, ".debug");
	} else if (dir[0] == '~' && dir[1] == '/') {
		r = has_home < 0 ? has_home : join_path(path, sizeof(path), home, dir + 2);
	} else if (dir[0] == '/') {
		r = copy_path(path, sizeof(path), dir);
	} else {
		bid_error_about(file, -EINVAL, "not an absolute path: buildid.dir '%s' in '%s'", dir, file);
		r = -EINVAL;
	}
	return r < 0 ? r : copy_path(ret_path, size, path);
}

/* $NAME is set to something. */
static bool is_set(const char *name, const char **ret_value)
{
	*ret_value = getenv(name);
	return *ret_value && **ret_value;
}

static int debuginfod_cache(char *path, size_t size)
{
	char home[PATH_MAX];
	const char *value;
	int has_home = home_directory(home, sizeof(home));

	if (is_set("DEBUGINFOD_CACHE_PATH", &value))
		return copy_path(path, size, value);
	if (has_home == 0 && join_path(path, size, home, ".debuginfod_client_cache") == 0 && access(path, F_OK) == 0)
		return 0;
	if (is_set("XDG_CACHE_HOME", &value))
		return join_path(path, size, value, "debuginfod_client");
	return has_home < 0 ? has_home : join_path(path, size, home, ".cache/debuginfod_client");
}

static bool has_links(const char *dir, const char *below)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s%s/.build-id", dir, below) < (int)sizeof(path) && access(path, F_OK) == 0;
}

/* Replace the directory @path by its tree: the tree of a root or of a profile, or the parent of ".build-id". */
static int find_tree(char *path, size_t size)
{
	static const char *const below[] = { "/usr/lib/debug", "/lib/debug" };
	size_t len = strlen(path);
	char *slash;

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
	slash = strrchr(path, '/');
	if (has_links(path, ""))
		return 0;
	if (slash && slash > path && strcmp(slash, "/.build-id") == 0) {
		*slash = '\0';
		return 0;
	}
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		char tree[PATH_MAX];

		if (!has_links(path, below[i]))
			continue;
		snprintf(tree, sizeof(tree), "%s%s", len > 1 ? path : "", below[i]);
		return copy_path(path, size, tree);
	}
	return 0;
}

int bid_store_lower_path(const char *name, char *ret_path, size_t size)
{
	char path[PATH_MAX];
	int r;

	if (strcmp(name, BID_LOWER_NONE) == 0)
		return 0;
	if (strcmp(name, BID_LOWER_DEBUGINFOD) == 0) {
		r = debuginfod_cache(path, sizeof(path));
		if (r < 0 || (access(path, F_OK) < 0 && errno == ENOENT))
			return r == -ENOENT ? 0 : r;
		name = path;
	}
	r = copy_path(ret_path, size, name);
	if (r == 0)
		r = find_tree(ret_path, size);
	return r < 0 ? r : 1;
}

bool bid_store_implies_cache(const char *const *names, size_t n)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], BID_LOWER_NONE) == 0 || strcmp(names[i], BID_LOWER_DEBUGINFOD) == 0)
			return false;
	return debuginfod_cache(path, sizeof(path)) == 0 && access(path, R_OK | X_OK) == 0;
}
