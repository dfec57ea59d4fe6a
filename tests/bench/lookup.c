// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Cost of name lookups: bench_scale.py runs it on a store and on a mount.
 *
 *	lookup TIMES [read] <PATHS
 *
 * stat(2) of every path that is read from standard input, one a line, the whole list TIMES times; Paths may be missing. With "read"
 * open(2), read(2) of a byte and close(2) instead. Prints how many exist, and the microseconds of a call.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "rounds.h"

static bool see(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

static bool read_first(const char *path)
{
	bid_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char byte;

	return fd >= 0 && read(fd, &byte, 1) == 1;
}

int main(int argc, char **argv)
{
	unsigned long times = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	bid_auto_free char *text = NULL;
	bool (*touch)(const char *path) = argc == 3 ? read_first : see;
	size_t len = 0, room = 0, n = 0, found = 0;
	double begun;
	ssize_t got;

	if (times == 0 || argc > 3 || (argc == 3 && strcmp(argv[2], "read") != 0)) {
		fprintf(stderr, "usage: lookup TIMES [read] <PATHS\n");
		return 2;
	}
	/* all paths in one buffer, so that only the calls are between the clocks */
	got = getdelim(&text, &room, '\0', stdin);
	len = got > 0 ? (size_t)got : 0;
	for (size_t at = 0; at < len; at++) {
		if (text[at] != '\n')
			continue;
		text[at] = '\0';
		n++;
	}
	begun = now();
	for (unsigned long i = 0; i < times; i++) {
		const char *path = text;

		found = 0;
		for (size_t k = 0; k < n; k++, path += strlen(path) + 1)
			found += touch(path);
	}
	printf("%zu %.6f\n", found, n ? (now() - begun) / (double)(n * times) * 1e6 : 0);
	return 0;
}
