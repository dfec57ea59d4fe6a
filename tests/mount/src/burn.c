// SPDX-License-Identifier: LGPL-2.1-or-later
/* Spends its time in the function HOT, and some of it in the kernel, for samples there. Another SEED is another build. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

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

static void visit_kernel(void)
{
	static char buffer[1 << 20];
	int fd = open("/dev/zero", O_RDONLY);

	for (int i = 0; i < 1000 && read(fd, buffer, sizeof(buffer)) > 0; i++)
		;
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		visit_kernel();
	return HOT(argc > 1 ? strtoul(argv[1], NULL, 10) : 1000) == 1;
}
