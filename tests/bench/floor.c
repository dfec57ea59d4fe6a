// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The bare system calls of a job, in one thread: the floor of bench_scan.py.
 *
 *	floor walk TREE		open every regular file of a tree and read 4 bytes of it
 *	floor hash TREE		read every regular file of a tree, but for those in ".bidfs", and hash it
 *	floor names DIRECTORY...	read the names in directories
 *	floor link STORE	files that standard input names, "ID PATH" a line, into perf's layout: mkdir(2), link(2), symlink(2)
 *	floor batch STORE	the same and syncfs(2)
 *	floor each STORE	link, with fsync(2) of the file, and of each directory with a new name, deepest first: also of
 *				the parents of new directories
 *	floor late STORE	the same, but first all names, then all the fsync(2)
 *
 * Prints the number of files and the seconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "rounds.h"

enum { FILES_MAX = 200000, PIECE = 1 << 20 };

struct floor_file {
	char *id, *path; /* both in one block */
	int made, made_links; /* new directories above its names */
};

static int read_all(int fd, XXH3_state_t *hash)
{
	static char piece[PIECE];
	ssize_t n;

	XXH3_128bits_reset(hash);
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		XXH3_128bits_update(hash, piece, (size_t)n);
	/* keeps the compiler from dropping the reads */
	return n < 0 || XXH3_128bits_digest(hash).low64 == 0 ? -1 : 0;
}

/* By openat(2) from the directory itself, so that long paths cost nothing. */
static int walk(int parent, const char *name, XXH3_state_t *hash, size_t *n)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bid_auto_dir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (entry->d_type == DT_DIR) {
			if (!hash || strcmp(entry->d_name, ".bidfs") != 0)
				walk(fd, entry->d_name, hash, n);
		} else if (entry->d_type == DT_REG) {
			bid_auto_fd int file = openat(fd, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
			char head[4];

			if (hash)
				*n += file >= 0 && read_all(file, hash) == 0;
			else
				*n += file >= 0 && pread(file, head, sizeof(head), 0) >= 0;
		}
	}
	return 0;
}

static int names(char **dirs, size_t *n)
{
	for (; *dirs; dirs++) {
		bid_auto_dir DIR *dir = opendir(*dirs);
		struct dirent *entry;

		if (!dir)
			return -errno;
		while ((entry = readdir(dir)))
			*n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	}
	return 0;
}

/* mkdir(2) of every missing component of @path, below the deepest existing one. Returns how many were not. */
static int make_dirs(char *path)
{
	char *slash;
	int above;

	if (mkdir(path, 0755) == 0)
		return 1;
	if (errno == EEXIST)
		return 0;
	slash = strrchr(path, '/');
	if (errno != ENOENT || !slash || slash == path)
		return -errno;
	*slash = '\0';
	above = make_dirs(path);
	*slash = '/';
	if (above < 0)
		return above;
	return mkdir(path, 0755) == 0 ? above + 1 : errno == EEXIST ? above : -errno;
}

static int sync_path(const char *path)
{
	bid_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* The directory @path and those above it, @levels altogether. */
static int sync_dirs(char *path, int levels)
{
	int r = 0;

	for (int i = 0; r == 0 && i < levels; i++) {
		r = sync_path(path);
		*strrchr(path, '/') = '\0';
	}
	return r;
}

/* Bring the names of the file to disk: its directory and that of its link, and the parents of new directories. */
static int sync_names(const char *store, const struct floor_file *file)
{
	char dir[PATH_MAX], links[PATH_MAX];

	if (snprintf(dir, sizeof(dir), "%s%s/%s", store, file->path, file->id) >= (int)sizeof(dir) ||
	    snprintf(links, sizeof(links), "%s/.build-id/%.2s", store, file->id) >= (int)sizeof(links))
		return -ENAMETOOLONG;
	return sync_dirs(dir, file->made + 1) < 0 || sync_dirs(links, file->made_links + 1) < 0 ? -errno : 0;
}

static int put(const char *store, struct floor_file *file, bool sync)
{
	char dir[PATH_MAX], link_path[2 * PATH_MAX], target[2 * PATH_MAX], links[PATH_MAX];

	if (snprintf(dir, sizeof(dir), "%s%s/%s", store, file->path, file->id) >= (int)sizeof(dir) ||
	    snprintf(links, sizeof(links), "%s/.build-id/%.2s", store, file->id) >= (int)sizeof(links))
		return -ENAMETOOLONG;
	snprintf(link_path, sizeof(link_path), "%s/elf", dir);
	snprintf(target, sizeof(target), "../..%s/%s", file->path, file->id);
	if (sync && sync_path(file->path) < 0)
		return -errno;
	file->made = make_dirs(dir);
	if (file->made < 0 || (link(file->path, link_path) < 0 && errno != EEXIST))
		return -errno;
	file->made_links = make_dirs(links);
	if (file->made_links < 0)
		return -errno;
	snprintf(link_path, sizeof(link_path), "%s/%s", links, file->id + 2);
	if (symlink(target, link_path) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

static size_t read_list(struct floor_file *files)
{
	bid_auto_free char *line = NULL;
	size_t size = 0, n = 0;

	while (n < FILES_MAX && getline(&line, &size, stdin) > 0) {
		char *blank;

		line[strcspn(line, "\n")] = '\0';
		files[n].id = strdup(line);
		blank = files[n].id ? strchr(files[n].id, ' ') : NULL;
		if (!blank)
			return n;
		*blank = '\0';
		files[n++].path = blank + 1;
	}
	return n;
}

int main(int argc, char **argv)
{
	bid_auto_free struct floor_file *files = calloc(FILES_MAX, sizeof(*files));
	size_t n = 0;
	double begun;
	int r = 0;

	if (argc < 3 || (argc > 3 && strcmp(argv[1], "names") != 0) || !files)
		return 2;
	if (strcmp(argv[1], "walk") == 0 || strcmp(argv[1], "hash") == 0) {
		XXH3_state_t *hash = strcmp(argv[1], "hash") == 0 ? XXH3_createState() : NULL;

		begun = now();
		r = walk(AT_FDCWD, argv[2], hash, &n);
		XXH3_freeState(hash);
	} else if (strcmp(argv[1], "names") == 0) {
		begun = now();
		r = names(argv + 2, &n);
	} else {
		bid_auto_fd int root = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		bool each = strcmp(argv[1], "each") == 0, late = strcmp(argv[1], "late") == 0;

		n = read_list(files);
		begun = now();
		for (size_t i = 0; r == 0 && i < n; i++) {
			r = put(argv[2], &files[i], each || late);
			if (r == 0 && each)
				r = sync_names(argv[2], &files[i]);
		}
		for (size_t i = 0; r == 0 && late && i < n; i++)
			r = sync_names(argv[2], &files[i]);
		if (r == 0 && strcmp(argv[1], "batch") == 0 && (root < 0 || syncfs(root) < 0))
			r = -errno;
	}
	if (r < 0) {
		fprintf(stderr, "floor: %s\n", strerror(-r));
		return 1;
	}
	printf("%zu %.6f\n", n, now() - begun);
	return 0;
}
