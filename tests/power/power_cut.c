// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Power cuts in the middle of adding, alone, in batches and by scanning, of adding what perf has put there, which syncs nothing, of
 * fetching, removing and evicting (row R25): the file system on a loop image is shut down (ioctl, nothing flushed), unmounted, and
 * mounted again as after a crash.
 *
 *	power-cut FSTYPE [--cuts=N] [--seed=N] [--without-fsync | --without-syncfs | --without-known]
 *
 * After each cut, no file under a final name may have other bytes than it should, and everything whose addition was acknowledged
 * before the cut must be there, with what is recorded of it if it was added together with others. --without-fsync,
 * --without-syncfs and --without-known are the saboteurs: with one of them, the second of which spares what is added alone, and the
 * third all but what perf has put there, this must fail. Exits 0, 1, or 77 where it cannot run.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bid/elf.h>
#include <bid/evict.h>
#include <bid/remove.h>
#include <bid/store.h>
#include <bid/verify.h>

#include "../random.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "ctl/batch.h"

/* The same number for ext4 (EXT4_IOC_SHUTDOWN) and xfs (XFS_IOC_GOINGDOWN), and the same flag: do not flush the log. */
#define SHUTDOWN _IOR('X', 125, uint32_t)
enum { NO_LOG_FLUSH = 2 };

enum {
	SKIPPED = 77,
	OBJECTS_MAX = 20000, /* in one trial */
	TOGETHER_MAX = 12, /* that are added by one command */
	EXTRA_MAX = 64 * 1024, /* bytes behind the template */
	ALIVE_MIN_US = 10000,
	ALIVE_MAX_US = 400000,
	IMAGE_MIB = 400,
};

/* A program with a build-id: this one. Objects are copies of it with other ids and lengths. */
struct template
{
	char *data;
	size_t len;
	size_t id_at;
	struct bid_id id;
};

struct trial {
	const struct template *template;
	const char *mountpoint;
	char scratch[PATH_MAX]; /* outside of what is cut off */
	char store[PATH_MAX];
	uint64_t seed;
};

/* What the worker says on its pipe once an addition has returned. */
struct acknowledgement {
	uint32_t number;
	bool together; /* with others */
};

/* The process that adds. */
struct worker {
	const struct trial *trial;
	struct bid_store *store;
	int pipe;
	uint64_t state; /* of the random numbers */
	uint32_t number; /* of the next object */
};

struct totals {
	unsigned acknowledged, together, lost, torn, findings, present;
};

/* In the place of the C library's, so that a saboteur can take them out. */
static bool without_fsync, without_syncfs, without_known;
static bool adds_known; /* at the moment */

int fsync(int fd)
{
	return without_fsync ? 0 : (int)syscall(SYS_fsync, fd);
}

int syncfs(int fd)
{
	return without_fsync || without_syncfs || (without_known && adds_known) ? 0 : (int)syscall(SYS_syncfs, fd);
}

static int load_template(struct template *ret_template)
{
	bid_auto_fd int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const char *at;

	if (fd < 0 || bid_read_file(fd, 64 << 20, &ret_template->data, &ret_template->len) < 0 ||
	    bid_elf_identify(fd, &ret_template->id) < 0)
		return -1;
	at = memmem(ret_template->data, ret_template->len, ret_template->id.bytes, ret_template->id.len);
	if (!at)
		return -1;
	ret_template->id_at = (size_t)(at - ret_template->data);
	return 0;
}

/* The @number-th object of a trial: its id and all its bytes follow from the number. The caller frees it. */
static char *make_object(const struct trial *trial, uint32_t number, struct bid_id *ret_id, size_t *ret_len)
{
	const struct template *template = trial->template;
	uint64_t state = trial->seed ^ (uint64_t)number << 32;
	size_t extra = next_random(&state) % EXTRA_MAX;
	char *data = malloc(template->len + extra);

	if (!data)
		exit(1);
	memcpy(data, template->data, template->len);
	*ret_id = template->id;
	for (size_t i = 0; i < ret_id->len; i++)
		ret_id->bytes[i] = (uint8_t)next_random(&state);
	memcpy(ret_id->bytes, &number, sizeof(number));
	memcpy(data + template->id_at, ret_id->bytes, ret_id->len);
	for (size_t i = 0; i < extra; i++)
		data[template->len + i] = (char)(i * 7 + number);
	*ret_len = template->len + extra;
	return data;
}

static int write_source(const char *path, const char *data, size_t len)
{
	bid_auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	return fd < 0 ? -errno : bid_pwrite_full(fd, data, len, 0);
}

/* The next object, as a file that is not synced: "DIRECTORY/NUMBER". */
static int make_source(struct worker *worker, const char *directory, char *ret_path, size_t size)
{
	struct bid_id id;
	size_t len;
	bid_auto_free char *data = make_object(worker->trial, worker->number, &id, &len);

	snprintf(ret_path, size, "%s/source-%u", directory, worker->number++);
	return write_source(ret_path, data, len);
}

/* The number of the object that was made as the file @path. */
static uint32_t number_of(const char *path)
{
	return (uint32_t)strtoul(strrchr(path, '-') + 1, NULL, 10);
}

static int acknowledge(const struct worker *worker, const char *path, bool together)
{
	struct acknowledgement acknowledgement = { .number = number_of(path), .together = together };

	return write(worker->pipe, &acknowledgement, sizeof(acknowledgement)) < 0 ? -errno : 0;
}

/* Add the next object alone: from the file system of the store, or from another one. */
static int add(struct worker *worker, bool near)
{
	const struct trial *trial = worker->trial;
	struct bid_added added;
	char path[PATH_MAX + 32];
	int r = make_source(worker, near ? trial->mountpoint : trial->scratch, path, sizeof(path));

	if (r == 0)
		r = bid_store_add(worker->store, path, BID_LINK_AUTO, &added);
	if (!near || number_of(path) % 3 == 0)
		unlink(path);
	return r < 0 ? r : acknowledge(worker, path, false);
}

/* What the worker's batch is settled with, in the place of bidctl's, which would print it. */
struct reporting {
	struct ctl_tally tally; /* the first, by which the rest is found */
	const struct worker *worker;
};

void ctl_tally_taken(struct ctl_tally *tally, const char *path, const struct bid_added *added)
{
	const struct reporting *reporting = (const struct reporting *)tally;

	if (acknowledge(reporting->worker, path, true) < 0)
		_exit(1);
}

/* Several, as "bidctl add FILE..." does. */
static int add_batch(struct worker *worker, bool near, unsigned n)
{
	const struct trial *trial = worker->trial;
	struct reporting reporting = { .worker = worker };
	struct ctl_batch batch;
	int r = 0;

	ctl_batch_begin(&batch, &reporting.tally, worker->store);
	for (unsigned i = 0; r == 0 && i < n; i++) {
		struct bid_added added;
		char path[PATH_MAX + 32];
		struct bid_add file = { .path = path, .fd = -1, .batch = true };

		r = make_source(worker, near ? trial->mountpoint : trial->scratch, path, sizeof(path));
		if (r == 0 && batch.n_new > 0)
			r = ctl_batch_clean(&batch);
		file.clean_before = batch.clean_before;
		if (r == 0)
			r = bid_store_add_file(worker->store, &file, &added);
		if (r == 0)
			r = ctl_batch_put(&batch, path, &added);
	}
	if (r == 0)
		r = ctl_batch_settle(&batch);
	ctl_batch_release(&batch);
	return r;
}

/* The trees of what perf adds, too. A cut may tear that as long as nobody else says that it is there. */
#define OF_PERF "source-perf-"

/* Put the file @path into the store as perf does: without a sync. */
static int perf_adds(const struct worker *worker, const char *path)
{
	const char *store = worker->trial->store;
	char hex[BID_ID_HEX_MAX], directory[2 * PATH_MAX + 2 * BID_ID_HEX_MAX], file[sizeof(directory) + 8];
	char link[PATH_MAX + 2 * BID_ID_HEX_MAX], target[PATH_MAX + 2 * BID_ID_HEX_MAX];
	bid_auto_free char *data = NULL;
	struct bid_id id;
	size_t len;

	data = make_object(worker->trial, number_of(path), &id, &len);
	bid_id_format(&id, hex);
	snprintf(directory, sizeof(directory), "%s%s/%s", store, path, hex);
	for (char *slash = directory + strlen(store); (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		mkdir(directory, 0755);
		*slash = '/';
	}
	mkdir(directory, 0755);
	snprintf(file, sizeof(file), "%s/elf", directory);
	snprintf(link, sizeof(link), "%s/.build-id", store);
	mkdir(link, 0755);
	snprintf(link, sizeof(link), "%s/.build-id/%.2s", store, hex);
	mkdir(link, 0755);
	snprintf(link, sizeof(link), "%s/.build-id/%.2s/%s", store, hex, hex + 2);
	snprintf(target, sizeof(target), "../..%s/%s", path, hex);
	if (write_source(file, data, len) < 0 || symlink(target, link) < 0)
		return -errno;
	return 0;
}

static int scanned_known(void *user, const struct bid_scan_file *file)
{
	return file->error < 0 ? file->error : !file->added.known ? -EINVAL : acknowledge(user, file->path, false);
}

/* @n of what perf has added: alone, or by a scan. */
static int add_known(struct worker *worker, bool near, unsigned n)
{
	const struct trial *trial = worker->trial;
	struct bid_scan_config config = { .jobs = 2, .cross = true, .file = scanned_known, .user = worker };
	struct bid_scan_counts counts;
	struct bid_added added;
	char tree[PATH_MAX], path[PATH_MAX + 32];
	int r;

	snprintf(tree, sizeof(tree), "%.1024s/" OF_PERF "%u", near ? trial->mountpoint : trial->scratch, worker->number);
	r = mkdir(tree, 0755) < 0 ? -errno : 0;
	for (unsigned i = 0; r == 0 && i < n; i++) {
		r = make_source(worker, tree, path, sizeof(path));
		if (r == 0)
			r = perf_adds(worker, path);
	}
	adds_known = true;
	if (r == 0 && n % 2)
		r = bid_store_scan(worker->store, tree, &config, &counts);
	else if (r == 0)
		r = bid_store_add(worker->store, path, BID_LINK_AUTO, &added);
	adds_known = false;
	return r < 0 || n % 2 ? r : !added.known ? -EINVAL : acknowledge(worker, path, false);
}

static int scanned(void *user, const struct bid_scan_file *file)
{
	return file->error < 0 ? file->error : acknowledge(user, file->path, true);
}

/* A tree of several, whose records go into a pack. */
static int scan(struct worker *worker, bool near, unsigned n)
{
	const struct trial *trial = worker->trial;
	struct bid_scan_config config = { .jobs = 2, .cross = true, .file = scanned, .user = worker };
	struct bid_scan_counts counts;
	char tree[PATH_MAX], path[PATH_MAX + 32];
	int r;

	snprintf(tree, sizeof(tree), "%.1024s/source-tree-%u", near ? trial->mountpoint : trial->scratch, worker->number);
	r = mkdir(tree, 0755) < 0 ? -errno : 0;
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = make_source(worker, tree, path, sizeof(path));
	return r < 0 ? r : bid_store_scan(worker->store, tree, &config, &counts);
}

static int fetch(struct worker *worker, struct bid_id *ret_id)
{
	struct bid_origin origin = { .how = "fetched", .server = "memory" };
	struct bid_request request = { .kind = BID_KIND_ELF };
	struct bid_file file = BID_FILE_NONE;
	struct bid_txn *txn = NULL;
	size_t len;
	bid_auto_free char *data = make_object(worker->trial, worker->number++, &request.id, &len);
	int r = bid_txn_begin(worker->store, &request, &txn);

	for (size_t at = 0; r == 0 && at < len; at += 16384)
		r = bid_txn_write(txn, data + at, len - at < 16384 ? len - at : 16384);
	if (r == 0)
		r = bid_txn_commit(txn, &origin, &file);
	bid_file_release(&file);
	bid_txn_free(txn);
	*ret_id = request.id;
	return r;
}

/* One thing that somebody does to a store. */
static int step(struct worker *worker)
{
	struct bid_evict_config all = { .limits = { .cache_size = 1 } };
	struct bid_evict_stats evicted;
	struct bid_removal removal = { .id = { 0 } };
	unsigned what = next_random(&worker->state) % 12;
	bool near = next_random(&worker->state) % 5 < 3;
	unsigned n = 2 + next_random(&worker->state) % (TOGETHER_MAX - 1);
	int r;

	if (what < 5)
		return add(worker, near);
	if (what == 5)
		return add_batch(worker, near, n);
	if (what == 6)
		return scan(worker, near, n);
	if (what == 11)
		return add_known(worker, near, n);
	r = fetch(worker, &removal.id);
	if (r == 0 && what == 9)
		r = bid_store_evict(worker->store, &all, &evicted);
	else if (r == 0 && what == 10)
		r = bid_store_remove(worker->store, &removal, 1);
	return r;
}

/* Until the disk is gone. */
static void work(const struct trial *trial, int pipe)
{
	struct worker worker = { .trial = trial, .pipe = pipe, .state = trial->seed };
	int r;

	bid_log_init("power-cut", BID_LOG_ERROR);
	r = bid_store_open(trial->store, BID_STORE_WRITE | (next_random(&worker.state) % 2 ? BID_STORE_NAMED_TEMP : 0),
			   &worker.store);
	while (r == 0 && worker.number + TOGETHER_MAX < OBJECTS_MAX)
		r = step(&worker);
	_exit(0);
}

/* Let the worker work, cut the power, and say what it had acknowledged before. */
static int live_and_die(const struct trial *trial, uint64_t *state, struct acknowledgement *ret_acks, size_t *ret_n)
{
	uint32_t flags = NO_LOG_FLUSH;
	bid_auto_fd int root = open(trial->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct timespec end, now;
	int ends[2];
	size_t n = 0;
	pid_t worker;
	int r;

	if (root < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += (long)(ALIVE_MIN_US + next_random(state) % (ALIVE_MAX_US - ALIVE_MIN_US)) * 1000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	worker = fork();
	if (worker == 0)
		work(trial, ends[1]);
	close(ends[1]);
	for (;;) {
		struct pollfd fd = { .fd = ends[0], .events = POLLIN };
		int64_t left;

		clock_gettime(CLOCK_MONOTONIC, &now);
		left = (int64_t)(end.tv_sec - now.tv_sec) * 1000000000 + (end.tv_nsec - now.tv_nsec);
		if (left <= 0 || n == OBJECTS_MAX)
			break;
		if (ppoll(&fd, 1, &(struct timespec){ .tv_nsec = (long)(left % 1000000000) }, NULL) <= 0)
			continue;
		if (read(ends[0], &ret_acks[n], sizeof(*ret_acks)) != sizeof(*ret_acks))
			break; /* it ended before its time */
		n++;
	}
	r = ioctl(root, SHUTDOWN, &flags) < 0 ? -errno : 0;
	kill(worker, SIGKILL);
	waitpid(worker, NULL, 0);
	close(ends[0]);
	*ret_n = n;
	return r;
}

static bool is_whole(const struct trial *trial, struct bid_store *store, uint32_t number)
{
	struct bid_request request = { .kind = BID_KIND_ELF };
	struct bid_file file = BID_FILE_NONE;
	size_t len, stored_len = 0;
	bid_auto_free char *data = make_object(trial, number, &request.id, &len), *stored = NULL;
	bool whole;

	whole = bid_store_find(store, &request, &file) == 0 && bid_read_file(file.fd, len + 1, &stored, &stored_len) == 0 &&
		stored_len == len && memcmp(stored, data, len) == 0;
	bid_file_release(&file);
	return whole;
}

static int note_fact(void *user, const char *name, const char *value)
{
	bool *added = user;

	*added = *added || (strcmp(name, "how") == 0 && strcmp(value, "added") == 0);
	return 0;
}

static bool is_recorded(const struct trial *trial, struct bid_store *store, uint32_t number)
{
	struct bid_request request = { .kind = BID_KIND_ELF };
	bool added = false;
	size_t len;

	free(make_object(trial, number, &request.id, &len));
	return bid_store_each_fact(store, &request, note_fact, &added) == 0 && added;
}

static int note_finding(void *user, const struct bid_finding *finding)
{
	struct totals *totals = user;

	totals->findings++;
	if (strstr(finding->path, "/" OF_PERF))
		return 0;
	if (finding->kind != BID_FINDING_WRONG && finding->kind != BID_FINDING_CORRUPT && finding->kind != BID_FINDING_UNREADABLE)
		return 0;
	printf("torn: %s: '%s' %s\n", bid_finding_name(finding->kind), finding->path, finding->text);
	totals->torn++;
	return 0;
}

/* What is there after the power came back. */
static int look(const struct trial *trial, const struct acknowledgement *acks, size_t n, struct totals *totals)
{
	struct bid_verify_config config = { .deep = true, .found = note_finding, .user = totals };
	struct bid_verify_stats stats;
	struct bid_store *store;
	bid_auto_free char *command = NULL;
	int r = bid_store_open(trial->store, BID_STORE_WRITE, &store);

	/* the cut came before there was a store */
	if (r == -ENOENT && n == 0)
		return 0;
	if (r < 0)
		return r;
	if (asprintf(&command, "test -z \"$(ls -A '%s/.bidfs/tmp')\"", trial->store) < 0 || system(command) != 0) {
		printf("a temporary file is left behind\n");
		totals->torn++;
	}
	for (size_t i = 0; i < n; i++) {
		const char *lost = !is_whole(trial, store, acks[i].number)			    ? "object"
				   : acks[i].together && !is_recorded(trial, store, acks[i].number) ? "record"
												    : NULL;

		totals->acknowledged++;
		totals->together += acks[i].together;
		if (lost) {
			printf("lost: the %s of number %u, whose addition%s was acknowledged\n", lost, acks[i].number,
			       acks[i].together ? " together with others" : "");
			totals->lost++;
		}
	}
	r = bid_store_verify(store, &config, &stats);
	totals->present += (unsigned)stats.objects;
	/* what a cut leaves behind can be put right, and then nothing is left to find */
	config.repair = true;
	config.found = NULL;
	if (r == 0)
		r = bid_store_verify(store, &config, &stats);
	if (r == 0 && stats.left > 0)
		totals->torn++;
	config.repair = false;
	if (r == 0)
		r = bid_store_verify(store, &config, &stats);
	if (r == 0 && stats.left > 0) {
		printf("repaired, and not clean: %llu findings\n", (unsigned long long)stats.left);
		totals->torn++;
	}
	bid_store_free(store);
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

static int one_cut(struct trial *trial, const char *directory, struct acknowledgement *acks, uint64_t *state, struct totals *totals)
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

static int run_cuts(struct trial *trial, const char *directory, unsigned cuts, uint64_t seed, struct totals *totals)
{
	bid_auto_free struct acknowledgement *acks = calloc(OBJECTS_MAX, sizeof(*acks));
	uint64_t state = seed;
	int r = acks ? 0 : -ENOMEM;

	for (unsigned i = 0; r == 0 && i < cuts; i++) {
		r = one_cut(trial, directory, acks, &state, totals);
		if (r < 0)
			printf("%s: cut %u of %u\n", strerror(-r), i + 1, cuts);
	}
	return r;
}

/* Everything between making the image and taking it away. */
static int run(const char *type, unsigned cuts, uint64_t seed, const struct template *template)
{
	char directory[] = "/tmp/bid-power-XXXXXX", mountpoint[64];
	struct trial trial = { .template = template, .mountpoint = mountpoint };
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
		printf("%s: %u cuts, seed %llu: %u additions acknowledged, %u of them together with others, %u lost, %u torn; "
		       "%u objects found, %u findings to repair\n",
		       type, cuts, (unsigned long long)seed, totals.acknowledged, totals.together, totals.lost, totals.torn,
		       totals.present, totals.findings);
		/* a run in which nothing happened says nothing */
		status = r == 0 && totals.lost == 0 && totals.torn == 0 && totals.acknowledged > totals.together &&
					 totals.together > 0
				 ? 0
				 : 1;
	}
	shell("rm -rf --one-file-system '%s'", directory);
	return status;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "cuts", required_argument, NULL, 'c' },    { "seed", required_argument, NULL, 's' },
		{ "without-fsync", no_argument, NULL, 'w' }, { "without-syncfs", no_argument, NULL, 'y' },
		{ "without-known", no_argument, NULL, 'k' }, { 0 },
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
		else
			return 2;
	}
	if (optind + 1 != argc || cuts == 0) {
		fprintf(stderr, "usage: %s FSTYPE [--cuts=N] [--seed=N] [--without-fsync | --without-syncfs | --without-known]\n",
			argv[0]);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (geteuid() != 0) {
		puts("skipped: only root may mount a file system and shut it down");
		return SKIPPED;
	}
	if (load_template(&template) < 0) {
		puts("skipped: this program was linked without a build-id");
		return SKIPPED;
	}
	/* nobody else sees the mounts, and they end with us */
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		printf("skipped: no mount namespace of its own: %s\n", strerror(errno));
		return SKIPPED;
	}
	status = run(argv[optind], cuts, seed, &template);
	free(template.data);
	return status;
}
