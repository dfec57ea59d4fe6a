// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double read_clock(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

double now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

double now_busy(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct spread spread_of(const double *values, size_t n)
{
	double sorted[ROUNDS_MAX];

	memcpy(sorted, values, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);
	return (struct spread){ .median = sorted[n / 2], .min = sorted[0], .max = sorted[n - 1] };
}

struct spread spread_of_ratios(const double *over, const double *under, size_t n)
{
	double ratios[ROUNDS_MAX];

	for (size_t i = 0; i < n; i++)
		ratios[i] = over[i] / under[i];
	return spread_of(ratios, n);
}

void print_ratios(const char *what, const double *over, const double *under, size_t n)
{
	struct spread ratio = spread_of_ratios(over, under, n);

	printf("%-44s %6.2f  (%.2f to %.2f)\n", what, ratio.median, ratio.min, ratio.max);
}

void print_json(const char *metric, const char *unit, const char *const *names, double values[][ROUNDS_MAX], size_t n_names,
		size_t rounds)
{
	printf("{\"metric\": \"%s\", \"unit\": \"%s\", \"views\": {", metric, unit);
	for (size_t i = 0; i < n_names; i++) {
		printf("%s\"%s\": [", i ? ", " : "", names[i]);
		for (size_t round = 0; round < rounds; round++)
			printf("%s%.6g", round ? ", " : "", values[i][round]);
		printf("]");
	}
	printf("}}\n");
	fflush(stdout);
}

size_t parse_rounds(const char *text, size_t otherwise)
{
	size_t rounds = text ? strtoul(text, NULL, 10) : otherwise;

	return rounds <= ROUNDS_MAX ? rounds : 0;
}
