// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Cost of a cache hit: calls on small files read before, on a mount against the same files in its store, and against other file
 * systems over the store.
 *
 *	bench-hot [-j] [-r ROUNDS] [-n CALLS] [-f FILES] [-c CLIENTS,...] [-t MS] STORE MOUNT [NAME=DIRECTORY...]
 *
 * Takes the ELF file of every id that the mount lists, or of the first FILES, in random order. A DIRECTORY shows the store through
 * another file system. With -c that many processes at once open, read and close as fast as possible, for MS milliseconds; a rate,
 * so more is better. -j prints JSON.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rounds.h"
#include "views.h"

enum { CALLS = 20000, ROUNDS = 9, CLIENTS_MAX = 256, CLIENT_MS = 300 };

static void touch_stat(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		die(path);
}

static void touch_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die(path);
	close(fd);
}

static void touch_read(const char *path)
{
	char buffer[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, buffer, sizeof(buffer)) <= 0)
		die(path);
	close(fd);
}

/* As a library that reads ELF files does: the header, then pages here and there. */
static void touch_elf(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	volatile const char *map;
	char header[64];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || pread(fd, header, sizeof(header), 0) != sizeof(header))
		die(path);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		die(path);
	(void)map[0];
	(void)map[st.st_size / 2];
	(void)map[st.st_size - 1];
	munmap((void *)map, (size_t)st.st_size);
	close(fd);
}

struct touch {
	const char *metric;
	void (*touch)(const char *path);
	unsigned calls; /* a round */
	bool floor; /* the ping-pong takes its turn, too */
};

static const char ping_pong[] = "ping-pong";

/*
 * Lower bound of a round trip to another process: a byte there and back through two pipes. Microseconds. Each round has a new
 * process, because its CPU is part of the result.
 */
static double measure_ping_pong(unsigned calls)
{
	int there[2], back[2];
	char byte = 0;
	double begun;
	pid_t pid;

	if (pipe(there) < 0 || pipe(back) < 0)
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		close(there[1]);
		while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	begun = now();
	for (unsigned i = 0; i < calls; i++)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			die("pipe");
	begun = (now() - begun) / calls * 1e6;
	close(there[0]);
	close(there[1]);
	close(back[0]);
	close(back[1]);
	waitpid(pid, NULL, 0);
	return begun;
}

/* Microseconds a call. */
static double measure_calls(const struct view *view, unsigned n_files, unsigned round, const void *what)
{
	const struct touch *touch = what;
	unsigned seed = round;
	double begun;

	if (view->name == ping_pong)
		return measure_ping_pong(touch->calls);
	/* look the names up first: the benchmark measures hits */
	for (unsigned i = 0; i < n_files; i++)
		touch->touch(view->paths[i]);
	begun = now();
	for (unsigned i = 0; i < touch->calls; i++)
		touch->touch(view->paths[rand_r(&seed) % n_files]);
	return (now() - begun) / touch->calls * 1e6;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* 99th percentile in microseconds, with the reading of a clock. */
static double measure_slow(const struct view *view, unsigned n_files, unsigned round, const void *what)
{
	const struct touch *touch = what;
	double *took = calloc(touch->calls, sizeof(*took)), slow;
	unsigned seed = round;

	if (!took)
		die("memory");
	for (unsigned i = 0; i < n_files; i++)
		touch->touch(view->paths[i]);
	for (unsigned i = 0; i < touch->calls; i++) {
		double begun = now();

		touch->touch(view->paths[rand_r(&seed) % n_files]);
		took[i] = now() - begun;
	}
	qsort(took, touch->calls, sizeof(*took), compare);
	slow = took[touch->calls / 100 * 99];
	free(took);
	return slow * 1e6;
}

struct clients {
	unsigned n, ms;
};

static void run_client(const struct view *view, unsigned n_files, unsigned seed, unsigned ms, volatile unsigned long *ret_calls)
{
	double end = now() + ms / 1e3;

	while (now() < end) {
		touch_read(view->paths[rand_r(&seed) % n_files]);
		++*ret_calls;
	}
	_exit(0);
}

/* Thousands of calls a second, of all clients together. */
static double measure_clients(const struct view *view, unsigned n_files, unsigned round, const void *what)
{
	static unsigned long *calls;
	const struct clients *clients = what;
	unsigned long sum = 0;
	int status;

	if (!calls)
		calls = mmap(NULL, CLIENTS_MAX * sizeof(*calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (calls == MAP_FAILED)
		die("memory");
	memset(calls, 0, CLIENTS_MAX * sizeof(*calls));
	/* the benchmark measures hits, and the kernel caches a name for a second */
	for (unsigned i = 0; i < n_files; i++)
		touch_read(view->paths[i]);
	for (unsigned i = 0; i < clients->n; i++)
		switch (fork()) {
		case -1:
			die("fork");
			break;
		case 0:
			run_client(view, n_files, round * CLIENTS_MAX + i, clients->ms, &calls[i]);
		}
	for (unsigned i = 0; i < clients->n; i++)
		if (wait(&status) < 0 || status != 0)
			die("client");
	for (unsigned i = 0; i < clients->n; i++)
		sum += calls[i];
	return (double)sum / clients->ms;
}

static void gather(const char *store, const char *mount, unsigned most, struct views *views, char **others)
{
	struct view *native = new_view(views, "native"), *bidfs = new_view(views, "bidfs");
	char path[4096], real[4096], top[4096];
	struct dirent *entry;
	DIR *dir;

	for (char **other = others; *other; other++)
		if (!strchr(*other, '='))
			errno = EINVAL, die(*other);
		else
			new_view(views, strsep(other, "="));
	snprintf(path, sizeof(path), "%s/buildid", mount);
	dir = opendir(path);
	if (!dir || !realpath(store, top))
		die(dir ? store : path);
	while ((entry = readdir(dir)) && views->n_files < most) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s/elf", store, entry->d_name, entry->d_name + 2);
		if (!realpath(path, real))
			continue;
		native->paths[views->n_files] = strdup(real);
		if (asprintf(&bidfs->paths[views->n_files], "%s/buildid/%s/elf", mount, entry->d_name) < 0)
			die("memory");
		for (unsigned i = 2; i < views->n; i++)
			if (asprintf(&views->view[i]->paths[views->n_files], "%s%s", others[i - 2], real + strlen(top)) < 0)
				die("memory");
		views->n_files++;
	}
	closedir(dir);
	if (!views->n_files) {
		errno = ENOENT;
		die("no ELF file in the store");
	}
}

static int usage(void)
{
	fprintf(stderr, "usage: bench-hot [-j] [-r ROUNDS] [-n CALLS] [-f FILES] [-c CLIENTS,...] [-t MS] STORE MOUNT "
			"[NAME=DIRECTORY...]\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct touch touches[] = {
		{ .metric = "stat", .touch = touch_stat },
		{ .metric = "open+close", .touch = touch_open },
		{ .metric = "open+read 4K+close", .touch = touch_read, .floor = true },
		{ .metric = "ELF touch", .touch = touch_elf },
	};
	unsigned calls = CALLS, files = FILES_MAX, client_ms = CLIENT_MS;
	static struct views views = { .rounds = ROUNDS };
	char *clients = NULL, *part;
	int option;

	while ((option = getopt(argc, argv, "jr:n:f:c:t:")) != -1)
		switch (option) {
		case 'j':
			views.json = true;
			break;
		case 'r':
			views.rounds = parse_rounds(optarg, ROUNDS);
			break;
		case 'n':
			calls = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'f':
			files = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'c':
			clients = optarg;
			break;
		case 't':
			client_ms = (unsigned)strtoul(optarg, NULL, 10);
			break;
		default:
			return usage();
		}
	if (argc - optind < 2 || views.rounds == 0 || calls == 0 || files == 0 || files > FILES_MAX || client_ms == 0)
		return usage();
	gather(argv[optind], argv[optind + 1], files, &views, argv + optind + 2);
	if (!views.json)
		printf("%u files, %u calls a round, %zu rounds\n", views.n_files, calls, views.rounds);
	for (size_t i = 0; i < sizeof(touches) / sizeof(touches[0]); i++) {
		touches[i].calls = calls;
		if (touches[i].floor)
			new_view(&views, ping_pong);
		take_turns(&views, touches[i].metric, "us", measure_calls, &touches[i]);
		views.n -= touches[i].floor;
	}
	take_turns(&views, "stat, 99th percentile", "us", measure_slow, &touches[0]);
	while (clients && (part = strsep(&clients, ","))) {
		struct clients at_once = { .n = (unsigned)strtoul(part, NULL, 10), .ms = client_ms };
		char metric[32];

		if (at_once.n == 0 || at_once.n > CLIENTS_MAX)
			return usage();
		snprintf(metric, sizeof(metric), "%u clients", at_once.n);
		take_turns(&views, metric, "k/s", measure_clients, &at_once);
	}
	return 0;
}
