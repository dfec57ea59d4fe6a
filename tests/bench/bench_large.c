// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Cost of reading one large file, on a mount against the file in its store, and against other file systems.
 *
 *	bench-large [-j] [-s] [-w] [-r ROUNDS] NAME=FILE...
 *
 * All files have the same content; the first is the reference. Everything is in the page cache of the first, so the result is the
 * cost that a file system adds. A first reading drops the file system's own pages. As root also from the disk, after emptying the
 * page cache of the whole machine, unless -w is given. With -s sequential readings alone, cached. -j prints JSON.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rounds.h"
#include "views.h"

enum { ROUNDS = 7, CHUNK = 1 << 20, PREADS = 50000, PAGE = 4096, STRIDE = 64, COLD_ROUNDS = 3 };

#define DROP_CACHES "/proc/sys/vm/drop_caches"

static int open_file(const struct view *view, size_t *ret_size)
{
	int fd = open(view->paths[0], O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		die(view->paths[0]);
	*ret_size = (size_t)st.st_size;
	return fd;
}

/* How a reading from the beginning to the end is prepared. */
struct read_setup {
	const struct view *kept; /* unless NULL, drop the pages of all others: a first reading with the file cached below */
	bool cold; /* nobody has any */
};

static void forget(const struct view *view)
{
	size_t size;
	int fd = open_file(view, &size);

	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
}

static void forget_all(void)
{
	int fd = open(DROP_CACHES, O_WRONLY | O_CLOEXEC);

	sync();
	if (fd < 0 || write(fd, "1", 1) != 1)
		die(DROP_CACHES);
	close(fd);
}

/* MiB/s from the beginning to the end, with the open. */
static double read_all(const struct view *view, unsigned n_files, unsigned round, const void *what)
{
	static char chunk[CHUNK];
	const struct read_setup *reading = what;
	size_t size, done = 0;
	ssize_t n;
	double begun;
	int fd;

	if (reading->kept && view != reading->kept)
		forget(view);
	if (reading->cold)
		forget_all();
	begun = now();
	fd = open_file(view, &size);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		done += (size_t)n;
	begun = now() - begun;
	if (n < 0 || done != size)
		die(view->paths[0]);
	close(fd);
	return (double)size / (1 << 20) / begun;
}

/* Microseconds for the first read of a page, in the page cache of the first view. */
static double touch_first(const struct view *view, unsigned n_files, unsigned round, const void *what)
{
	size_t size, touched = 0, step;
	volatile const char *map;
	double begun;
	int fd;

	if (view != what)
		forget(view);
	fd = open_file(view, &size);
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED || madvise((void *)map, size, MADV_RANDOM) < 0)
		die(view->paths[0]);
	/* a prime number of strides at a time: every page once, in an order without pattern */
	step = size / ((size_t)STRIDE * PAGE) + (size < (size_t)STRIDE * PAGE);
	begun = now();
	for (size_t i = 0; i < step; i++, touched++)
		(void)map[i * 7919 % step * STRIDE * PAGE];
	begun = (now() - begun) / (double)touched * 1e6;
	munmap((void *)map, size);
	close(fd);
	return begun;
}

/* Microseconds for a page somewhere. */
static double read_anywhere(const struct view *view, unsigned n_files, unsigned round, const void *what)
{
	char page[PAGE];
	unsigned seed = round;
	size_t size;
	int fd = open_file(view, &size);
	double begun = now();

	for (unsigned i = 0; i < PREADS; i++) {
		size_t at = ((size_t)rand_r(&seed) << 16 ^ (size_t)rand_r(&seed)) % (size / PAGE);

		if (pread(fd, page, sizeof(page), (off_t)(at * PAGE)) <= 0)
			die(view->paths[0]);
	}
	begun = (now() - begun) / PREADS * 1e6;
	close(fd);
	return begun;
}

/* MiB/s of a walk through a new mapping, a byte of each page. */
static double walk_mapping(const struct view *view, unsigned n_files, unsigned round, const void *what)
{
	size_t size;
	int fd = open_file(view, &size);
	volatile const char *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	double begun = now();

	if (map == MAP_FAILED)
		die(view->paths[0]);
	for (size_t at = 0; at < size; at += PAGE)
		(void)map[at];
	begun = now() - begun;
	munmap((void *)map, size);
	close(fd);
	return (double)size / (1 << 20) / begun;
}

int main(int argc, char **argv)
{
	static struct views views = { .rounds = ROUNDS, .n_files = 1 };
	bool sequential = false, warm = false;
	int option;

	while ((option = getopt(argc, argv, "jswr:")) != -1)
		if (option == 'j')
			views.json = true;
		else if (option == 's')
			sequential = true;
		else if (option == 'w')
			warm = true;
		else
			views.rounds = option == 'r' ? parse_rounds(optarg, ROUNDS) : 0;
	if (optind == argc || views.rounds == 0) {
		fprintf(stderr, "usage: bench-large [-j] [-s] [-w] [-r ROUNDS] NAME=FILE...\n");
		return 2;
	}
	for (; optind < argc; optind++) {
		char *path = argv[optind];
		char *name = strsep(&path, "=");

		if (!path)
			errno = EINVAL, die(name);
		new_view(&views, name)->paths[0] = path;
	}
	for (unsigned i = 0; i < views.n; i++)
		read_all(views.view[i], 1, 0, &(struct read_setup){ 0 });
	take_turns(&views, "sequential read", "MiB/s", read_all, &(struct read_setup){ 0 });
	if (sequential)
		return 0;
	take_turns(&views, "sequential read, first", "MiB/s", read_all, &(struct read_setup){ .kept = views.view[0] });
	take_turns(&views, "random 4K pread", "us", read_anywhere, NULL);
	take_turns(&views, "walk of a mapping", "MiB/s", walk_mapping, NULL);
	take_turns(&views, "first touch, MADV_RANDOM", "us", touch_first, views.view[0]);
	if (!warm && access(DROP_CACHES, W_OK) == 0) {
		views.rounds = views.rounds < COLD_ROUNDS ? views.rounds : COLD_ROUNDS;
		take_turns(&views, "sequential read, cold", "MiB/s", read_all, &(struct read_setup){ .cold = true });
	}
	return 0;
}
