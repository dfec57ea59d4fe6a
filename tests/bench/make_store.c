// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes a store of any size in perf's layout, to measure with.
 *
 *	make-store STORE IDS [BUILDS_OF_A_PATH]
 *
 * Every id has its own small ELF file, with a note and nothing else, and perf's link to it; a hundred paths lie in one directory,
 * and ten builds (or BUILDS_OF_A_PATH) under one path. The ids follow from their numbers, so two stores of one size are equal, and
 * a smaller one is a part of a larger one. Prints the numbers and the seconds. A million ids are three million inodes: a file
 * system made with "mkfs.ext4 -I 512 -O inline_data,^has_journal" keeps them, with all that is in them, in 2 GB. Nearly all the
 * time is the kernel's, so each processor makes a share of the paths.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../random.h"
#include "../small_elf.h"
#include "base/cleanup.h"
#include "base/process.h"
#include "rounds.h"

enum { ID_LEN = SMALL_ELF_ID_LEN, PATHS_OF_A_DIR = 100, FANOUT = 256, MAKERS_MAX = 8 };

/*
 * With one of at most 12 letters a link to its builds is shorter than 60 bytes, and so a part of its inode. A longer one takes a
 * block of the file system, four times as much as all else of an id.
 */
#define PATH_FORMAT "lib/%04lu/%02lu"

struct store_maker {
	pthread_t thread;
	int root, links; /* the store, and ".build-id"; of all makers */
	unsigned long first, last, builds; /* ids, from the first to before the last; so many of a path */
	int fanouts[FANOUT]; /* -1 until needed */
	int path; /* of PATH_FORMAT */
	char path_name[64];
};

static void die(const char *what)
{
	fprintf(stderr, "make-store: %s: '%s'\n", strerror(errno), what);
	exit(1);
}

/* Neighbours have nothing in common. */
static void fill_id(unsigned long number, uint8_t id[static ID_LEN])
{
	uint64_t state = number, other = ~(uint64_t)number, first = next_random(&state), more = next_random(&other);

	memcpy(id, &first, 8);
	memcpy(id + 8, &more, 8);
	memcpy(id + 16, &first, 4);
}

static int make_dir(int parent, const char *name)
{
	int fd;

	if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
		die(name);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		die(name);
	return fd;
}

static void begin_path(struct store_maker *maker, unsigned long number)
{
	char *name = maker->path_name;

	snprintf(name, sizeof(maker->path_name), PATH_FORMAT, number / PATHS_OF_A_DIR, number % PATHS_OF_A_DIR);
	bid_close(maker->path);
	for (char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdirat(maker->root, name, 0755) < 0 && errno != EEXIST)
			die(name);
		*slash = '/';
	}
	maker->path = make_dir(maker->root, name);
}

static void make_id(struct store_maker *maker, unsigned long number)
{
	uint8_t id[ID_LEN];
	struct small_elf elf;
	char hex[2 * ID_LEN + 1], target[256], fanout[3];
	bid_auto_fd int dir = -1;
	bid_auto_fd int file = -1;

	fill_id(number, id);
	elf = small_elf(id);
	for (size_t i = 0; i < ID_LEN; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	dir = make_dir(maker->path, hex);
	file = openat(dir, "elf", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	if (file < 0 || write(file, &elf, sizeof(elf)) != sizeof(elf))
		die(hex);
	snprintf(fanout, sizeof(fanout), "%.2s", hex);
	if (maker->fanouts[id[0]] < 0)
		maker->fanouts[id[0]] = make_dir(maker->links, fanout);
	snprintf(target, sizeof(target), "../../%s/%s", maker->path_name, hex);
	if (symlinkat(target, maker->fanouts[id[0]], hex + 2) < 0 && errno != EEXIST)
		die(hex);
}

static void *make_share(void *user)
{
	struct store_maker *maker = user;

	for (unsigned long i = maker->first; i < maker->last; i++) {
		if (i % maker->builds == 0)
			begin_path(maker, i / maker->builds);
		make_id(maker, i);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long ids = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, builds = argc > 3 ? strtoul(argv[3], NULL, 10) : 10;
	unsigned long paths, shares = bid_cpus();
	struct store_maker makers[MAKERS_MAX];
	double begun = now();
	int root, links;

	if (ids == 0 || builds == 0) {
		fprintf(stderr, "usage: make-store STORE IDS [BUILDS_OF_A_PATH]\n");
		return 2;
	}
	root = make_dir(AT_FDCWD, argv[1]);
	links = make_dir(root, ".build-id");
	paths = (ids + builds - 1) / builds;
	shares = shares < MAKERS_MAX ? shares : MAKERS_MAX;
	for (unsigned long i = 0; i < shares; i++) {
		struct store_maker *maker = &makers[i];
		unsigned long last = paths * (i + 1) / shares * builds;

		*maker = (struct store_maker){ .root = root, .links = links, .builds = builds, .path = -1 };
		maker->first = paths * i / shares * builds;
		maker->last = last < ids ? last : ids;
		memset(maker->fanouts, -1, sizeof(maker->fanouts));
		errno = pthread_create(&maker->thread, NULL, make_share, maker);
		if (errno != 0)
			die("a thread");
	}
	for (unsigned long i = 0; i < shares; i++)
		pthread_join(makers[i].thread, NULL);
	printf("%lu ids, %lu paths in %lu directories, %zu bytes a file, %.1f s\n", ids, paths,
	       (paths + PATHS_OF_A_DIR - 1) / PATHS_OF_A_DIR, sizeof(struct small_elf), now() - begun);
	return 0;
}
