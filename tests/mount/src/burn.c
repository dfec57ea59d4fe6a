// SPDX-License-Identifier: LGPL-2.1-or-later
/* Spends its time in the function HOT. Another SEED is another build. */
#include <stdlib.h>

unsigned long HOT(unsigned long rounds);

volatile unsigned long sink;

__attribute__((noinline)) unsigned long HOT(unsigned long rounds)
{
	unsigned long local_sum = SEED;

	for (unsigned long i = 0; i < rounds; i++) {
		local_sum += i;
		sink = local_sum;
	}
	return local_sum;
}

int main(int argc, char **argv)
{
	return HOT(argc > 1 ? strtoul(argv[1], NULL, 10) : 1000) == 1;
}
