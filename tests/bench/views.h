/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One set of files, seen in several ways: natively, through a mount of bidfs, through other file systems. They take turns. */
#ifndef BID_BENCH_VIEWS_H
#define BID_BENCH_VIEWS_H

#include <stdbool.h>
#include <stddef.h>

enum { VIEWS_MAX = 10, FILES_MAX = 16384 };

struct view {
	const char *name;
	char *paths[FILES_MAX];
};

struct views {
	struct view *view[VIEWS_MAX]; /* the first is the reference */
	unsigned n;
	unsigned n_files;
	size_t rounds;
	bool json; /* a line of JSON for each metric */
};

/* Return one metric, a time for example, of one turn of @view in round @round. */
typedef double (*measure_fn)(const struct view *view, unsigned n_files, unsigned round, const void *what);

/* Give each view its turn in each round, beginning with another one each time, and print a line. @unit is for people. */
void take_turns(const struct views *views, const char *metric, const char *unit, measure_fn measure, const void *what);

/* A view of that name without files. Exits if there are too many. */
struct view *new_view(struct views *views, const char *name);

/* Say why and exit. */
void die(const char *what);

#endif
