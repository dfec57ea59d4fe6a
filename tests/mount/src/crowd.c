// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * crowd N PATH EXPECTED: N processes open and read PATH at the same time. Prints "go" when all set out, and at the end "N right",
 * "N wrong", "N errno E", as far as there were any.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRONG = 255 };	/* exit status; below it is an errno */

/* Is the next of both files the same, up to the end of both? Zero, WRONG or an errno. */
static int compare(int fd, int expected)
{
	static char a[1 << 16], b[1 << 16];

	for (;;) {
		ssize_t n = read(fd, a, sizeof(a));

		if (n < 0)
			return errno;
		if (read(expected, b, n ? (size_t)n : 1) != n || memcmp(a, b, (size_t)n) != 0)
			return WRONG;
		if (n == 0)
			return 0;
	}
}

static int go(int barrier, const char *path, const char *reference)
{
	int expected = open(reference, O_RDONLY);
	char byte;
	int fd;

	/* the parent closes its end: all go */
	if (expected < 0 || read(barrier, &byte, 1) != 0)
		return WRONG;
	fd = open(path, O_RDONLY);
	return fd < 0 ? errno : compare(fd, expected);
}

int main(int argc, char **argv)
{
	int counts[WRONG + 1] = { 0 };
	int barrier[2], n, status;

	if (argc != 4 || pipe(barrier) < 0)
		return 2;
	n = (int)strtol(argv[1], NULL, 10);
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 2;
		if (pid == 0) {
			close(barrier[1]);
			_exit(go(barrier[0], argv[2], argv[3]));
		}
	}
	close(barrier[1]);
	puts("go");
	fflush(stdout);
	while (wait(&status) > 0)
		counts[WIFEXITED(status) ? WEXITSTATUS(status) : WRONG]++;
	if (counts[0])
		printf("%d right\n", counts[0]);
	for (int i = 1; i < WRONG; i++)
		if (counts[i])
			printf("%d errno %d\n", counts[i], i);
	if (counts[WRONG])
		printf("%d wrong\n", counts[WRONG]);
	return 0;
}
