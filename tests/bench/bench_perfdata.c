// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Time to list the builds of a recording: by bid_perfdata_read(), without and with their samples, by perf, which goes through the
 * events (perf buildid-list -H), and the floor of every reader: read the file. The recording is in the page cache.
 *
 *	perf record -a -F 20000 -o perf.data -- sleep 60
 *	bench-perfdata [-j] perf.data [ROUNDS]
 *
 * The four take turns, and which comes first changes; a ratio is the median over the rounds, with the smallest and the largest. -j
 * prints JSON, of seconds.
 */

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

#include "api/perfdata.h"
#include "base/cleanup.h"
#include "rounds.h"

#define ROUNDS 5
#define CHUNK  (512u << 10)

extern char **environ;

/* Reads the recording at @path, and returns 0 or a negative errno. */
typedef int (*reader_fn)(const char *path, struct bid_perfdata_summary *summary);

static int read_floor(const char *path, struct bid_perfdata_summary *summary)
{
	bid_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	bid_auto_free char *buffer = malloc(CHUNK);
	ssize_t n;

	if (fd < 0 || !buffer)
		return fd < 0 ? -errno : -ENOMEM;
	while ((n = read(fd, buffer, CHUNK)) > 0)
		;
	return n < 0 ? -errno : 0;
}

static int count(void *user, const struct bid_perfdata_dso *dso)
{
	return 0;
}

static int read_ours(const char *path, struct bid_perfdata_summary *summary)
{
	return bid_perfdata_read(path, 0, count, NULL, summary);
}

static int read_counted(const char *path, struct bid_perfdata_summary *summary)
{
	return bid_perfdata_read(path, BID_PERFDATA_SAMPLES, count, NULL, summary);
}

static int read_perf(const char *path, struct bid_perfdata_summary *summary)
{
	const char *arguments[] = { "perf", "buildid-list", "-i", path, "-H", NULL };
	posix_spawn_file_actions_t actions;
	pid_t child;
	int r, status;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	r = posix_spawnp(&child, "perf", &actions, NULL, (char **)arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		return -r;
	if (waitpid(child, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

static const struct {
	const char *name;
	reader_fn read;
} readers[] = {
	{ "read(2)", read_floor },
	{ "bid_perfdata_read()", read_ours },
	{ "with samples counted", read_counted },
	{ "perf buildid-list -H", read_perf },
};

#define READERS (sizeof(readers) / sizeof(readers[0]))

/* Seconds, or less than 0 after a message. By the wall clock: perf is another process. */
static double measure(size_t which, const char *path, struct bid_perfdata_summary *summary)
{
	double begun = now(), took;
	int r = readers[which].read(path, summary);

	took = now() - begun;
	if (r < 0) {
		fprintf(stderr, "bench-perfdata: %s: %s of '%s'\n", strerror(-r), readers[which].name, path);
		return -1;
	}
	return took;
}

int main(int argc, char **argv)
{
	bool json = argc > 1 && strcmp(argv[1], "-j") == 0;
	size_t rounds, n_readers = READERS;
	struct bid_perfdata_summary summary = { 0 };
	double times[READERS][ROUNDS_MAX];

	argc -= json;
	argv += json;
	rounds = parse_rounds(argc > 2 ? argv[2] : NULL, ROUNDS);
	if (argc < 2 || argc > 3 || rounds == 0) {
		fprintf(stderr, "usage: bench-perfdata [-j] FILE [ROUNDS], 1 to %d rounds\n", ROUNDS_MAX);
		return 2;
	}
	if (measure(0, argv[1], &summary) < 0)
		return 1;
	/* without perf there is no peer, as reported above */
	if (measure(READERS - 1, argv[1], &summary) < 0)
		n_readers--;
	for (size_t round = 0; round < rounds; round++) {
		for (size_t i = 0; i < n_readers; i++) {
			size_t which = (i + round) % n_readers;

			times[which][round] = measure(which, argv[1], &summary);
			if (times[which][round] < 0)
				return 1;
		}
	}

	if (json) {
		const char *names[READERS];

		for (size_t i = 0; i < n_readers; i++)
			names[i] = readers[i].name;
		print_json("builds of a recording", "s", names, times, n_readers, rounds);
		return 0;
	}
	printf("%.1f MB%s, %llu records, %llu names, %zu rounds\n", (double)summary.bytes / 1e6,
	       summary.compressed ? ", compressed" : "", (unsigned long long)summary.records, (unsigned long long)summary.dsos,
	       rounds);
	for (size_t i = 0; i < n_readers; i++)
		printf("%-44s %6.2f GB/s\n", readers[i].name, (double)summary.bytes / spread_of(times[i], rounds).median / 1e9);
	print_ratios("bid_perfdata_read() to the floor", times[1], times[0], rounds);
	print_ratios("the same with samples counted to the floor", times[2], times[0], rounds);
	if (n_readers == READERS) {
		print_ratios("perf to bid_perfdata_read()", times[READERS - 1], times[1], rounds);
		print_ratios("perf to the one with samples counted", times[READERS - 1], times[2], rounds);
	}
	return 0;
}
