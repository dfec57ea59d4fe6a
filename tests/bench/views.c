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
	if (views->json)
		printf("{\"metric\": \"%s\", \"unit\": \"%s\", \"views\": {", metric, unit);
	else
		printf("%-24s", metric);
	for (unsigned i = 0; i < views->n; i++) {
		struct spread value = spread_of(values[i], views->rounds);
		struct spread ratio = spread_of_ratios(values[i], values[0], views->rounds);

		if (views->json)
			printf("%s\"%s\": {\"value\": %.4g, \"ratio\": %.4g, \"min\": %.4g, \"max\": %.4g}", i ? ", " : "",
			       views->view[i]->name, value.median, ratio.median, ratio.min, ratio.max);
		else if (i == 0)
			printf(" %s %.2f %s", views->view[i]->name, value.median, unit);
		else
			printf("   %s %.2f, ratio %.2f (%.2f .. %.2f)", views->view[i]->name, value.median, ratio.median, ratio.min,
			       ratio.max);
	}
	printf(views->json ? "}}\n" : "\n");
	fflush(stdout);
}

void take_turns(const struct views *views, const char *metric, const char *unit, measure_fn measure, const void *what)
{
	static double values[VIEWS_MAX][ROUNDS_MAX];

	for (unsigned round = 0; round < views->rounds; round++)
		for (unsigned turn = 0; turn < views->n; turn++) {
			unsigned i = (turn + round) % views->n;

			values[i][round] = measure(views->view[i], views->n_files, round, what);
		}
	print(views, metric, unit, values);
}
