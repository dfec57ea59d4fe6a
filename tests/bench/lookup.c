// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What it costs to look names up: bench_scale.py has it measure a store and a mount of it.
 *
 *	lookup TIMES <PATHS
 *
 * stat(2) of every path that is read from standard input, one a line, the whole list TIMES times; of which a part may not exist.
 * Prints how many exist, and the microseconds of a call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "rounds.h"

int main(int argc, char **argv)
{
	unsigned long times = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	bid_auto_free char *text = NULL;
	size_t len = 0, room = 0, n = 0, found = 0;
	double begun;
	ssize_t got;

	if (times == 0) {
		fprintf(stderr, "usage: lookup TIMES <PATHS\n");
		return 2;
	}
	/* all of it as one text of strings, so that nothing but the calls is between the clocks */
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
		for (size_t k = 0; k < n; k++, path += strlen(path) + 1) {
			struct stat st;

			found += stat(path, &st) == 0;
		}
	}
	printf("%zu %.6f\n", found, n ? (now() - begun) / (double)(n * times) * 1e6 : 0);
	return 0;
}
