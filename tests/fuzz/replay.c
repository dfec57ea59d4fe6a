// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Drives a fuzz target without a fuzzer: over every file named, and over every file directly in a directory named, in the order of
 * their names. With -m COUNT also over that many mutants of each: the same ones every time, others with -s SEED, and new ones each
 * time with -s time. With -o FILE each input is written to FILE before it runs, and is there after a crash. Fails only as the
 * target does, by abort or crash; or with 2 if it cannot run, or has no input.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../random.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "target.h"

#define INPUT_MAX (64u << 20)

struct replay {
	unsigned long mutants; /* of each input */
	uint64_t seed;
	int keep; /* the file of -o, or -1 */
	char *before; /* the previous input, a source of pieces; owned */
	size_t before_size;
	unsigned long inputs, runs;
};

enum { HEAD = 256 }; /* where headers are: more often changed than the rest */

/* A place in @size bytes. */
static size_t place(size_t size, uint64_t *random)
{
	size_t within = next_random(random) % 4 || size < HEAD ? size : HEAD;

	return next_random(random) % within;
}

/* Replace the bytes at @at by a piece of another input: some bytes, or all that follow. */
static void take_piece(const struct replay *replay, uint8_t *data, size_t size, size_t at, uint64_t *random)
{
	size_t other, n;

	if (replay->before_size == 0)
		return;
	/* as far from the beginning there as here, more often than not, as the records are aligned */
	other = next_random(random) % replay->before_size;
	if (next_random(random) % 4)
		other -= (other - at) % 8 <= other ? (other - at) % 8 : 0;
	n = next_random(random) % 2 ? next_random(random) % HEAD : size;
	n = n < size - at ? n : size - at;
	n = n < replay->before_size - other ? n : replay->before_size - other;
	memcpy(data + at, replay->before + other, n);
}

/* Mutations for parsers of headers: bits, bytes, lengths and offsets at their limits, moved blocks, missing ends. */
static size_t mutate(const struct replay *replay, uint8_t *data, size_t size, uint64_t *random)
{
	static const uint64_t limits[] = { 0, 1, 8, 0xff, 0xffff, 0x7fffffff, 0xfffffff0, 0xffffffff, INT64_MAX, UINT64_MAX };
	size_t at = place(size, random), other = place(size, random), n;
	uint64_t limit = limits[next_random(random) % (sizeof(limits) / sizeof(limits[0]))];

	switch (next_random(random) % 7) {
	case 0:
		data[at] ^= (uint8_t)(1u << next_random(random) % 8);
		return size;
	case 1:
		data[at] = (uint8_t)next_random(random);
		return size;
	case 2:
		data[at] = (uint8_t)(data[at] + (next_random(random) % 2 ? 1 : -1));
		return size;
	case 3:
		/* a number where one may be, at its limits: headers are aligned */
		n = (size_t)2 << next_random(random) % 3;
		at -= at % n;
		memcpy(data + at, &limit, n <= size - at ? n : size - at);
		return size;
	case 4:
		n = next_random(random) % 32;
		n = n < size - at ? n : size - at;
		n = n < size - other ? n : size - other;
		memmove(data + at, data + other, n);
		return size;
	case 5:
		take_piece(replay, data, size, at, random);
		return size;
	default:
		return next_random(random) % 4 ? size : at;
	}
}

static int run(struct replay *replay, const uint8_t *data, size_t size)
{
	if (replay->keep >= 0) {
		int r = ftruncate(replay->keep, 0) < 0 ? -errno : bid_pwrite_full(replay->keep, data, size, 0);

		if (r < 0)
			return r;
	}
	LLVMFuzzerTestOneInput(data, size);
	replay->runs++;
	return 0;
}

static int run_mutants(struct replay *replay, const char *data, size_t size)
{
	uint64_t random = size + replay->seed;
	int r = 0;

	for (size_t i = 0; i < size; i++)
		random = random * 31 + (uint8_t)data[i];
	for (unsigned long i = 0; i < replay->mutants && size > 0 && r == 0; i++) {
		/* exactly as large as the input, so that a read of one byte too many fails */
		bid_auto_free uint8_t *copy = malloc(size);
		size_t left = size;

		if (!copy)
			return -ENOMEM;
		memcpy(copy, data, size);
		for (uint64_t times = 1 + next_random(&random) % 4; times > 0 && left > 0; times--)
			left = mutate(replay, copy, left, &random);
		r = run(replay, copy, left);
	}
	return r;
}

static int run_file(struct replay *replay, int fd)
{
	bid_auto_free char *data = NULL;
	size_t size;
	int r;

	r = bid_read_file(fd, INPUT_MAX, &data, &size);
	if (r < 0)
		return r;
	r = run(replay, (const uint8_t *)data, size);
	if (r < 0)
		return r;
	replay->inputs++;
	r = run_mutants(replay, data, size);
	free(replay->before);
	replay->before = bid_steal(data);
	replay->before_size = size;
	return r;
}

static int run_path(struct replay *replay, int parent, const char *path);

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int run_directory(struct replay *replay, int fd)
{
	struct dirent **entries;
	int n, r = 0;

	n = scandirat(fd, ".", &entries, is_visible, alphasort);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = run_path(replay, fd, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return r;
}

static int run_path(struct replay *replay, int parent, const char *path)
{
	bid_auto_fd int fd = openat(parent, path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int r;

	r = fd < 0 || fstat(fd, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? run_directory(replay, fd) : run_file(replay, fd);
	if (r < 0)
		fprintf(stderr, "replay: %s: '%s'\n", strerror(-r), path);
	return r;
}

int main(int argc, char **argv)
{
	bid_auto_fd int keep = -1;
	struct replay replay = { 0 };
	int option, status = 0;

	while ((option = getopt(argc, argv, "m:o:s:")) != -1) {
		if (option == 'm')
			replay.mutants = strtoul(optarg, NULL, 10);
		else if (option == 's')
			replay.seed = strcmp(optarg, "time") == 0 ? (uint64_t)time(NULL) : strtoull(optarg, NULL, 10);
		else if (option == 'o')
			keep = open(optarg, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (option == '?' || (option == 'o' && keep < 0))
			return 2;
	}
	replay.keep = keep;
	if (replay.seed)
		printf("seed %llu\n", (unsigned long long)replay.seed);
	for (int i = optind; i < argc && status == 0; i++)
		status = run_path(&replay, AT_FDCWD, argv[i]) < 0 ? 2 : 0;
	free(replay.before);
	if (status == 0)
		printf("%lu inputs, %lu runs\n", replay.inputs, replay.runs);
	return status || replay.inputs > 0 ? status : 2;
}
