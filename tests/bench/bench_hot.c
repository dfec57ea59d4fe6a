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
#include <time.h>
#include <unistd.h>

enum { FILES_MAX = 4096, CALLS = 20000, ROUNDS = 9, ROUNDS_MAX = 101 };

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
	struct timespec begin, end;

	/* the names are looked up before: what is measured is a hit */
	for (unsigned i = 0; i < set->n; i++)
		touch(set->paths[i]);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (unsigned i = 0; i < CALLS; i++)
		touch(set->paths[rand_r(&seed) % set->n]);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / CALLS / 1e3;
}

static int compare(const void *a, const void *b)
{
	double difference = *(const double *)a - *(const double *)b;

	return difference < 0 ? -1 : difference > 0;
}

static void compare_sets(const char *name, const struct set *native, const struct set *mounted, void (*touch)(const char *path),
			 unsigned rounds)
{
	double natives[ROUNDS_MAX], mounteds[ROUNDS_MAX], ratios[ROUNDS_MAX];

	for (unsigned i = 0; i < rounds; i++) {
		if (i % 2)
			mounteds[i] = measure(mounted, touch, i);
		natives[i] = measure(native, touch, i);
		if (i % 2 == 0)
			mounteds[i] = measure(mounted, touch, i);
		ratios[i] = mounteds[i] / natives[i];
	}
	qsort(natives, rounds, sizeof(double), compare);
	qsort(mounteds, rounds, sizeof(double), compare);
	qsort(ratios, rounds, sizeof(double), compare);
	printf("%-20s native %7.2f us   mount %7.2f us   ratio %5.2f (%.2f .. %.2f)\n", name, natives[rounds / 2],
	       mounteds[rounds / 2], ratios[rounds / 2], ratios[0], ratios[rounds - 1]);
}

int main(int argc, char **argv)
{
	static struct set native, mounted;
	unsigned rounds = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : ROUNDS;

	if (argc < 3 || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench-hot STORE MOUNT [ROUNDS]\n");
		return 2;
	}
	gather(argv[1], argv[2], &native, &mounted);
	printf("%u files, %d calls a round, %u rounds\n", native.n, CALLS, rounds);
	compare_sets("stat", &native, &mounted, touch_stat, rounds);
	compare_sets("open+read 4K+close", &native, &mounted, touch_read, rounds);
	return 0;
}
