// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Power cuts in the middle of additions (single, in batches, by scans, and of perf's unsynced files), downloads, removals and
 * evictions: the file system on a loop image is shut down (ioctl, nothing flushed), unmounted, and mounted again as after
 * a crash.
 *
 *	power-cut FSTYPE [--cuts=N] [--seed=N] [--without-fsync | --without-syncfs | --without-known | --without-write-back]
 *
 * After each cut, no file under a final name may have other bytes than it should, and everything whose addition was acknowledged
 * before the cut must be there. --without-... are the saboteurs: the run ends with the first file that is torn or lost, and fails
 * without one. The second spares single additions, the third all but perf's files, the fourth all but files written as through a
 * mount. Exits 0, 1, or 77 where it cannot run.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../random.h"
#include "base/cleanup.h"
#include "look.h"

/* The same number for ext4 (EXT4_IOC_SHUTDOWN) and xfs (XFS_IOC_GOINGDOWN), and the same flag: do not flush the log. */
#define SHUTDOWN _IOR('X', 125, uint32_t)
enum { NO_LOG_FLUSH = 2 };

enum {
	SKIPPED = 77,
	ACKNOWLEDGED_MAX = 16, /* additions before the cut */
	MIDDLE_MAX_NS = 20000000,
	IMAGE_MIB = 400,
};

/* Let the worker work, cut the power, and return its acknowledgements. */
static int live_and_die(const struct power_trial *trial, uint64_t *state, struct acknowledgement *ret_acks, size_t *ret_n)
{
	uint32_t flags = NO_LOG_FLUSH;
	bid_auto_fd int root = open(trial->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t wanted = 1 + next_random(state) % ACKNOWLEDGED_MAX;
	long middle_ns = (long)(next_random(state) % MIDDLE_MAX_NS);
	int ends[2];
	size_t n = 0;
	pid_t worker;
	int r;

	if (root < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	worker = fork();
	if (worker == 0)
		worker_run(trial, ends[1]);
	close(ends[1]);
	/* the worker may end by itself */
	while (n < wanted && read(ends[0], &ret_acks[n], sizeof(*ret_acks)) == sizeof(*ret_acks))
		n++;
	/* the cut falls into the middle of the next step */
	nanosleep(&(struct timespec){ .tv_nsec = middle_ns }, NULL);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	while (n < OBJECTS_MAX && read(ends[0], &ret_acks[n], sizeof(*ret_acks)) == sizeof(*ret_acks))
		n++;
	r = ioctl(root, SHUTDOWN, &flags) < 0 ? -errno : 0;
	kill(worker, SIGKILL);
	waitpid(worker, NULL, 0);
	close(ends[0]);
	*ret_n = n;
	return r;
}

static int shell(const char *format, ...)
{
	bid_auto_free char *command = NULL;
	va_list arguments;
	int r;

	va_start(arguments, format);
	r = vasprintf(&command, format, arguments);
	va_end(arguments);
	return r < 0 ? -1 : system(command);
}

static int attach(const char *directory, const char *mountpoint)
{
	return shell("mount -o loop '%s/image' '%s' >'%s/log' 2>&1", directory, mountpoint, directory);
}

static int one_cut(struct power_trial *trial, const char *directory, struct acknowledgement *acks, uint64_t *state,
		   struct totals *totals)
{
	size_t n = 0;
	int r;

	trial->seed = next_random(state);
	if (mkdir(trial->store, 0755) < 0)
		return -errno;
	sync();
	r = live_and_die(trial, state, acks, &n);
	if (r < 0)
		return r;
	if (umount(trial->mountpoint) < 0)
		return -errno;
	if (attach(directory, trial->mountpoint) != 0)
		return -EIO;
	r = look(trial, acks, n, totals);
	if (shell("rm -rf '%s' '%s'/source-* '%s'/source-*", trial->store, trial->mountpoint, trial->scratch) != 0)
		return -EIO;
	return r;
}

static bool is_sabotaged(void)
{
	return without_fsync || without_syncfs || without_known || without_write_back;
}

static bool is_damaged(const struct totals *totals)
{
	return totals->lost > 0 || totals->torn > 0;
}

static int run_cuts(struct power_trial *trial, const char *directory, unsigned cuts, uint64_t seed, struct totals *totals)
{
	bid_auto_free struct acknowledgement *acks = calloc(OBJECTS_MAX, sizeof(*acks));
	uint64_t state = seed;
	int r = acks ? 0 : -ENOMEM;

	for (unsigned i = 0; r == 0 && i < cuts && !(is_sabotaged() && is_damaged(totals)); i++) {
		r = one_cut(trial, directory, acks, &state, totals);
		if (r < 0)
			printf("%s: cut %u of %u\n", strerror(-r), i + 1, cuts);
	}
	return r;
}

/* The run between making and removing the image. */
static int run(const char *type, unsigned cuts, uint64_t seed, const struct template *template)
{
	char directory[] = "/tmp/bid-power-XXXXXX", mountpoint[64];
	struct power_trial trial = { .template = template, .mountpoint = mountpoint };
	struct totals totals = { 0 };
	int status = 1;

	if (!mkdtemp(directory))
		return 1;
	snprintf(mountpoint, sizeof(mountpoint), "%s/mnt", directory);
	snprintf(trial.scratch, sizeof(trial.scratch), "%s/scratch", directory);
	snprintf(trial.store, sizeof(trial.store), "%s/store", mountpoint);
	if (mkdir(mountpoint, 0755) < 0 || mkdir(trial.scratch, 0755) < 0 ||
	    shell("truncate -s %dM '%s/image' && mkfs.%s -q '%s/image' >'%s/log' 2>&1", IMAGE_MIB, directory, type, directory,
		  directory) != 0) {
		printf("skipped: mkfs.%s did not make a file system\n", type);
		status = SKIPPED;
	} else if (attach(directory, mountpoint) != 0) {
		printf("skipped: '%s' on a loop device cannot be mounted here\n", type);
		status = SKIPPED;
	} else {
		int r = run_cuts(&trial, directory, cuts, seed, &totals);

		umount2(mountpoint, MNT_DETACH);
		printf("%s: up to %u cuts, seed %llu: %u additions acknowledged, %u of them together with others, %u lost, "
		       "%u torn; %u objects found, %u findings to repair\n",
		       type, cuts, (unsigned long long)seed, totals.acknowledged, totals.together, totals.lost, totals.torn,
		       totals.present, totals.findings);
		/* an empty run proves nothing */
		if (!is_sabotaged() && (totals.acknowledged <= totals.together || totals.together == 0))
			r = -ENODATA;
		status = r == 0 && is_damaged(&totals) == is_sabotaged() ? 0 : 1;
	}
	shell("rm -rf --one-file-system '%s'", directory);
	return status;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "cuts", required_argument, NULL, 'c' },
		{ "seed", required_argument, NULL, 's' },
		{ "without-fsync", no_argument, NULL, 'w' },
		{ "without-syncfs", no_argument, NULL, 'y' },
		{ "without-known", no_argument, NULL, 'k' },
		{ "without-write-back", no_argument, NULL, 'b' },
		{ 0 },
	};
	uint64_t seed = (uint64_t)time(NULL);
	struct template template;
	unsigned cuts = 20;
	int key, status;

	while ((key = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
		if (key == 'c')
			cuts = (unsigned)strtoul(optarg, NULL, 10);
		else if (key == 's')
			seed = strtoull(optarg, NULL, 10);
		else if (key == 'w')
			without_fsync = true;
		else if (key == 'y')
			without_syncfs = true;
		else if (key == 'k')
			without_known = true;
		else if (key == 'b')
			without_write_back = true;
		else
			return 2;
	}
	if (optind + 1 != argc || cuts == 0) {
		fprintf(stderr,
			"usage: %s FSTYPE [--cuts=N] [--seed=N] [--without-fsync | --without-syncfs | --without-known | "
			"--without-write-back]\n",
			argv[0]);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (geteuid() != 0) {
		puts("skipped: only root may mount a file system and shut it down");
		return SKIPPED;
	}
	if (object_template(&template) < 0) {
		puts("skipped: this program was linked without a build-id");
		return SKIPPED;
	}
	/* private mounts: they end with this process */
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		printf("skipped: no mount namespace of its own: %s\n", strerror(errno));
		return SKIPPED;
	}
	status = run(argv[optind], cuts, seed, &template);
	free(template.data);
	return status;
}
