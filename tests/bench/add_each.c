// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Add the files named on standard input, one a line, to a store. Each file is on disk before the next one.
 *
 *	add-each STORE <PATHS
 *
 * Prints the number of files and the seconds, as the program floor does for the bare system calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/store.h"
#include "base/cleanup.h"
#include "rounds.h"

enum { FILES_MAX = 200000 };

static size_t read_list(char **files)
{
	bid_auto_free char *line = NULL;
	size_t size = 0, n = 0;

	while (n < FILES_MAX && getline(&line, &size, stdin) > 0) {
		line[strcspn(line, "\n")] = '\0';
		files[n] = strdup(line);
		if (!files[n++])
			return n - 1;
	}
	return n;
}

int main(int argc, char **argv)
{
	bid_auto_free char **files = calloc(FILES_MAX, sizeof(*files));
	struct bid_store *store;
	struct bid_added added;
	size_t n = 0;
	double begun;
	int r = 0;

	if (argc != 2 || !files || bid_store_open(argv[1], BID_STORE_WRITE, &store) < 0) {
		fprintf(stderr, "usage: add-each STORE <PATHS\n");
		return 2;
	}
	n = read_list(files);
	begun = now();
	for (size_t i = 0; r == 0 && i < n; i++)
		r = bid_store_add(store, files[i], BID_LINK_AUTO, &added);
	begun = now() - begun;
	bid_store_free(store);
	for (size_t i = 0; i < n; i++)
		free(files[i]);
	if (r < 0) {
		fprintf(stderr, "add-each: %s\n", strerror(-r));
		return 1;
	}
	printf("%zu %.6f\n", n, begun);
	return 0;
}
