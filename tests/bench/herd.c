// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Open one file from many threads at once: bench_miss.py runs it on a cache miss of a mount.
 *
 *	herd N PATH
 *
 * N threads wait for each other, then each opens PATH and reads its first byte. Prints the seconds from the first one's start to
 * the last one's end.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "rounds.h"

enum { STACK = 64 * 1024, MANY = 10000 };

static struct {
	pthread_barrier_t ready;
	const char *path;
} herd;

struct opener {
	pthread_t thread;
	double begun, ended;
	bool failed;
};

static void *open_it(void *user)
{
	struct opener *opener = user;
	bid_auto_fd int fd = -1;
	char byte;

	pthread_barrier_wait(&herd.ready);
	opener->begun = now();
	fd = open(herd.path, O_RDONLY | O_CLOEXEC);
	opener->failed = fd < 0 || pread(fd, &byte, 1, 0) != 1;
	opener->ended = now();
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned long n = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	bid_auto_free struct opener *openers = n > 0 && n <= MANY ? calloc(n, sizeof(*openers)) : NULL;
	double begun = 0, ended = 0;
	pthread_attr_t small;

	if (!openers) {
		fprintf(stderr, "usage: herd N PATH, with N up to %d\n", MANY);
		return 2;
	}
	herd.path = argv[2];
	pthread_barrier_init(&herd.ready, NULL, (unsigned)n);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK);
	for (unsigned long i = 0; i < n; i++)
		if (pthread_create(&openers[i].thread, &small, open_it, &openers[i]) != 0) {
			fprintf(stderr, "herd: no more than %lu threads\n", i);
			return 3;
		}
	for (unsigned long i = 0; i < n; i++) {
		pthread_join(openers[i].thread, NULL);
		if (openers[i].failed) {
			fprintf(stderr, "herd: cannot read '%s'\n", herd.path);
			return 1;
		}
		if (i == 0 || openers[i].begun < begun)
			begun = openers[i].begun;
		if (openers[i].ended > ended)
			ended = openers[i].ended;
	}
	printf("%.6f\n", ended - begun);
	return 0;
}
