// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a hit costs: stat(2), and open(2) + read of 4 KiB + close(2), of files that were read before, on a mount against the same
 * files in its store.
 *
 *	bench-hot STORE MOUNT [ROUNDS]
 *
 * Takes the ELF file of every id that the mount lists, in random order. Native and mount take turns, and which comes first
 * changes; the times are medians over the rounds, the ratio is the median of the ratios of each round, with the smallest and the
 * largest.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rounds.h"

enum { FILES_MAX = 4096, CALLS = 20000, ROUNDS = 9 };

struct set {
	char *paths[FILES_MAX];
	unsigned n;
};

static void die(const char *what)
{
	fprintf(stderr, "bench-hot: %s: '%s'\n", strerror(errno), what);
	exit(1);
}

static void gather(const char *store, const char *mount, struct set *native, struct set *mounted)
{
	char path[4096], real[4096];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/buildid", mount);
	dir = opendir(path);
	if (!dir)
		die(path);
	while ((entry = readdir(dir)) && native->n < FILES_MAX) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s/elf", store, entry->d_name, entry->d_name + 2);
		if (!realpath(path, real))
			continue;
		snprintf(path, sizeof(path), "%s/buildid/%s/elf", mount, entry->d_name);
		native->paths[native->n++] = strdup(real);
		mounted->paths[mounted->n++] = strdup(path);
	}
	closedir(dir);
	if (!native->n) {
		errno = ENOENT;
		die("no ELF file in the store");
	}
}

static void touch_stat(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		die(path);
}

static void touch_read(const char *path)
{
	char buffer[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, buffer, sizeof(buffer)) <= 0)
		die(path);
	close(fd);
}

/* Microseconds a call. */
static double measure(const struct set *set, void (*touch)(const char *path), unsigned seed)
{
	double begun;

	/* the names are looked up before: what is measured is a hit */
	for (unsigned i = 0; i < set->n; i++)
		touch(set->paths[i]);
	begun = now();
	for (unsigned i = 0; i < CALLS; i++)
		touch(set->paths[rand_r(&seed) % set->n]);
	return (now() - begun) / CALLS * 1e6;
}

static void compare_sets(const char *name, const struct set *native, const struct set *mounted, void (*touch)(const char *path),
			 size_t rounds)
{
	double natives[ROUNDS_MAX], mounteds[ROUNDS_MAX];
	struct spread ratio;

	for (unsigned i = 0; i < rounds; i++) {
		if (i % 2)
			mounteds[i] = measure(mounted, touch, i);
		natives[i] = measure(native, touch, i);
		if (i % 2 == 0)
			mounteds[i] = measure(mounted, touch, i);
	}
	ratio = spread_of_ratios(mounteds, natives, rounds);
	printf("%-20s native %7.2f us   mount %7.2f us   ratio %5.2f (%.2f .. %.2f)\n", name, spread_of(natives, rounds).median,
	       spread_of(mounteds, rounds).median, ratio.median, ratio.min, ratio.max);
}

int main(int argc, char **argv)
{
	static struct set native, mounted;
	size_t rounds = parse_rounds(argc > 3 ? argv[3] : NULL, ROUNDS);

	if (argc < 3 || rounds == 0) {
		fprintf(stderr, "usage: bench-hot STORE MOUNT [ROUNDS]\n");
		return 2;
	}
	gather(argv[1], argv[2], &native, &mounted);
	printf("%u files, %d calls a round, %zu rounds\n", native.n, CALLS, rounds);
	compare_sets("stat", &native, &mounted, touch_stat, rounds);
	compare_sets("open+read 4K+close", &native, &mounted, touch_read, rounds);
	return 0;
}
