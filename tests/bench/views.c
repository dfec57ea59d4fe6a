// SPDX-License-Identifier: LGPL-2.1-or-later
#include "views.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rounds.h"

void die(const char *what)
{
	fprintf(stderr, "%s: %s: '%s'\n", program_invocation_short_name, strerror(errno), what);
	exit(1);
}

struct view *new_view(struct views *views, const char *name)
{
	struct view *view = calloc(1, sizeof(*view));

	if (!view || views->n == VIEWS_MAX) {
		errno = view ? E2BIG : ENOMEM;
		die(name);
	}
	view->name = name;
	views->view[views->n++] = view;
	return view;
}

static void print(const struct views *views, const char *metric, const char *unit, double values[][ROUNDS_MAX])
{
	const char *names[VIEWS_MAX];

	for (unsigned i = 0; i < views->n; i++)
		names[i] = views->view[i]->name;
	if (views->json) {
		print_json(metric, unit, names, values, views->n, views->rounds);
		return;
	}
	printf("%-24s %s %.2f %s", metric, names[0], spread_of(values[0], views->rounds).median, unit);
	for (unsigned i = 1; i < views->n; i++) {
		struct spread ratio = spread_of_ratios(values[i], values[0], views->rounds);

		printf("   %s %.2f, ratio %.2f (%.2f .. %.2f)", names[i], spread_of(values[i], views->rounds).median, ratio.median,
		       ratio.min, ratio.max);
	}
	printf("\n");
	fflush(stdout);
}

void take_turns(const struct views *views, const char *metric, const char *unit, measure_fn measure, const void *what)
{
	static double values[VIEWS_MAX][ROUNDS_MAX];
	unsigned order[VIEWS_MAX], seed = 1;

	for (unsigned i = 0; i < views->n; i++)
		order[i] = i;
	for (unsigned round = 0; round < views->rounds; round++) {
		/* in changing order: the daemon of the view before may still be busy */
		for (unsigned left = views->n; left > 1; left--) {
			unsigned other = (unsigned)rand_r(&seed) % left, i = order[left - 1];

			order[left - 1] = order[other];
			order[other] = i;
		}
		for (unsigned turn = 0; turn < views->n; turn++)
			values[order[turn]][round] = measure(views->view[order[turn]], views->n_files, round, what);
	}
	print(views, metric, unit, values);
}
