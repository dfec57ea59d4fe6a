/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the programs here: a clock, and the report of rounds in which several candidates took turns. */
#ifndef BID_BENCH_ROUNDS_H
#define BID_BENCH_ROUNDS_H

#include <stddef.h>

#define ROUNDS_MAX 101

/* The middle one of some values, and the smallest and the largest. */
struct spread {
	double median, min, max;
};

/* Seconds by the wall clock. */
double now(void);

/* Seconds of processor time of this thread. */
double now_busy(void);

/* @n is 1 to ROUNDS_MAX. */
struct spread spread_of(const double *values, size_t n);

/* Median of the ratios of each round: the load of the machine changes from round to round, and is in both. */
struct spread spread_of_ratios(const double *over, const double *under, size_t n);

/* The line "what   median  (min to max)" of these ratios. */
void print_ratios(const char *what, const double *over, const double *under, size_t n);

/* The values of each round as a line of JSON: {"metric": …, "unit": …, "views": {NAME: [VALUE, …], …}}. */
void print_json(const char *metric, const char *unit, const char *const *names, double values[][ROUNDS_MAX], size_t n_names,
		size_t rounds);

/* Parse @text as a number of rounds. Returns 0 unless it is from 1 to ROUNDS_MAX. @text NULL is @otherwise. */
size_t parse_rounds(const char *text, size_t otherwise);

#endif
