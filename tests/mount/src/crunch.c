// SPDX-License-Identifier: LGPL-2.1-or-later
/* The program of the sessions in README.md and docs/TOOLS.md. It spends its time in mix(), on one line. */
#include <stdio.h>
#include <stdlib.h>

struct job {
	unsigned long rounds;
	volatile unsigned long sum;
};

void mix(struct job *work);

static struct job job = { .rounds = 100000000 };

__attribute__((noipa)) void mix(struct job *work)
{
	for (unsigned long i = 0; i < work->rounds; work->sum += i * i, i++)
		;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		job.rounds = strtoul(argv[1], NULL, 10);
	mix(&job);
	if (job.rounds == 0)
		abort();
	return printf("%lu\n", job.sum) < 0;
}
