// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Hostile stores: no file outside of the store is opened or changed, every listing is well-formed, a scan and a check
 * end, faults are counted and never served, and correct files are served.
 *
 *	hostile-trees [--trees=N] [--seed=N] [--make=DIRECTORY]
 *
 * 100 trees without --trees, fewer in the build's tests, 5000 by hand. The seed of the N-th tree is the seed plus N. --make leaves
 * the first trees in DIRECTORY. Trees are in TMPDIR, else in /dev/shm, else in /tmp. inotify(7) reports opened files outside. Exits
 * 0, 1, or 77 without the means to run.
 */
#include "hostile_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "api/build_stat.h"
#include "api/elf.h"
#include "api/evict.h"
#include "api/negative.h"
#include "api/source_section.h"
#include "api/store.h"
#include "api/verify.h"
#include "base/cleanup.h"
#include "base/log.h"

enum {
	SKIPPED = 77,
	TREE_S = 60, /* seconds until a tree counts as hung */
	LISTED_DEPTH = 400,
	CROWD = 100000,
	CROWD_EVERY = 500, /* trees */
	CROWD_FIRST = 4000, /* seed of the first tree, which is in every run */
};

struct hostile_trial {
	char directory[64];
	uint64_t seed;
	int watch; /* inotify */
	struct hostile_counts made;
	unsigned ids, served;
	struct bid_store *store;
	struct bid_build_stats *stats; /* while the ids are listed */
};

static uint64_t running; /* current seed, for the message of a timeout */

static void fail(const struct hostile_trial *trial, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

static void fail(const struct hostile_trial *trial, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "seed %llu: ", (unsigned long long)trial->seed);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "; the tree is '%s'\n", trial->directory);
	exit(1);
}

static void hangs(int signal)
{
	fprintf(stderr, "seed %llu: hangs\n", (unsigned long long)running);
	_exit(1);
}

static int watching = -1; /* nftw(3) has no user data */

/* Watch the directory @path outside: events of the directory and its files. */
static int watch_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	return type == FTW_D && inotify_add_watch(watching, path, IN_ALL_EVENTS) < 0 ? -1 : 0;
}

static void watch_outside(struct hostile_trial *trial)
{
	char path[PATH_MAX], events[4096];

	watching = trial->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	snprintf(path, sizeof(path), "%s/outside", trial->directory);
	if (trial->watch < 0 || nftw(path, watch_one, 16, FTW_PHYS) != 0) {
		printf("skipped: no inotify: %s\n", strerror(errno));
		exit(SKIPPED);
	}
	/* drop the events of the walk itself */
	while (read(trial->watch, events, sizeof(events)) > 0)
		continue;
}

static void nothing_outside(const struct hostile_trial *trial, const char *step)
{
	_Alignas(struct inotify_event) char buffer[4096];
	const struct inotify_event *event = (const void *)buffer;

	if (read(trial->watch, buffer, sizeof(buffer)) > 0)
		fail(trial, "%s: outside of the store: '%s', event %#x", step, event->len ? event->name : ".", event->mask);
}

static void check_file(const struct hostile_trial *trial, const struct bid_artifact *artifact, const struct bid_file *file)
{
	struct bid_id carried;
	struct stat st;

	if (fstat(file->fd, &st) < 0 || !S_ISREG(st.st_mode))
		fail(trial, "served what is no file");
	if (bid_kind_is_elf(artifact->kind) &&
	    (bid_elf_build_id(file->fd, &carried) != 0 || !bid_id_answers(&carried, &artifact->id)))
		fail(trial, "served what does not carry the id");
}

static int check_artifact(void *user, const struct bid_artifact *artifact)
{
	struct hostile_trial *trial = user;
	struct bid_file file = BID_FILE_NONE;

	if (bid_store_find(trial->store, artifact, BID_MAY_DERIVE, &file) == 0)
		check_file(trial, artifact, &file);
	bid_file_release(&file);
	return 0;
}

static int check_id(void *user, const struct bid_id *id)
{
	struct hostile_trial *trial = user;
	bid_auto_free char *text = NULL;
	struct bid_build_stat build_stat;
	struct timespec changed;
	char where[PATH_MAX];
	json_t *json;

	trial->ids++;
	bid_store_perf_link(trial->store, id, where, sizeof(where));
	bid_build_stat_of(trial->stats, id, &build_stat);
	/* a writable store makes directories during the lookup; the build stat may lack them */
	if (!bid_store_writable(trial->store) && build_stat.kinds != (unsigned)bid_store_kinds(trial->store, id))
		fail(trial, "a build stat with other kinds");
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		struct bid_artifact artifact = { .id = *id, .kind = (enum bid_kind)kind };
		struct bid_file file = BID_FILE_NONE;

		if (bid_store_find(trial->store, &artifact, BID_MAY_DERIVE, &file) == 0) {
			check_file(trial, &artifact, &file);
			trial->served += artifact.kind == BID_KIND_ELF;
		}
		bid_file_release(&file);
	}
	bid_store_each_source_section(trial->store, id, BID_KIND_SOURCE, check_artifact, trial);
	bid_store_each_source_section(trial->store, id, BID_KIND_SECTION, check_artifact, trial);
	if (bid_store_info(trial->store, id, &text, &changed) == 0) {
		json = json_loads(text, 0, NULL);
		if (!json)
			fail(trial, "info is no JSON");
		json_decref(json);
	}
	return 0;
}

struct hostile_listing {
	struct hostile_trial *trial;
	const char *path;
	unsigned depth;
};

static int check_entry(void *user, const char *name, enum bid_entry entry)
{
	struct hostile_listing *listing = user;
	char path[PATH_MAX];
	struct hostile_listing lower = { .trial = listing->trial, .path = path, .depth = listing->depth + 1 };

	if (!*name || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || entry == BID_ENTRY_NONE)
		fail(listing->trial, "listed '%s' in '%s'", name, listing->path);
	if (lower.depth > LISTED_DEPTH)
		fail(listing->trial, "a listing without end");
	if (snprintf(path, sizeof(path), "%s%s%s", listing->path, *listing->path ? "/" : "", name) >= (int)sizeof(path))
		return 0;
	if (entry == BID_ENTRY_DIR)
		bid_store_each_entry(listing->trial->store, path, check_entry, &lower);
	return 0;
}

static void look(struct hostile_trial *trial)
{
	struct hostile_listing top = { .trial = trial, .path = "" };

	trial->ids = trial->served = 0;
	if (bid_build_stats_new(trial->store, &trial->stats) < 0 || bid_store_each_id(trial->store, check_id, trial) < 0)
		fail(trial, "the ids cannot be listed");
	bid_build_stats_free(trial->stats);
	if (bid_store_each_entry(trial->store, "", check_entry, &top) < 0)
		fail(trial, "the paths cannot be listed");
	if (trial->served < trial->made.good)
		fail(trial, "of %u good builds %u were served", trial->made.good, trial->served);
}

static struct bid_verify_stats verify(struct hostile_trial *trial, bool deep, bool repair)
{
	struct bid_verify_config config = { .deep = deep, .repair = repair };
	struct bid_verify_stats stats;
	int r = bid_store_verify(trial->store, &config, &stats);

	if (r < 0)
		fail(trial, "checking did not come to an end: %s", strerror(-r));
	return stats;
}

static void check(struct hostile_trial *trial)
{
	struct bid_verify_stats light = verify(trial, false, false), deep = verify(trial, true, false);

	for (int kind = 0; kind < BID_FINDING_COUNT; kind++)
		if (deep.found[kind] < light.found[kind])
			fail(trial, "a deep check found fewer of the kind '%s'", bid_finding_name((enum bid_finding_kind)kind));
	if (light.found[BID_FINDING_WRONG] < trial->made.wrong)
		fail(trial, "of %u wrong files %u were found", trial->made.wrong, (unsigned)light.found[BID_FINDING_WRONG]);
	if (light.found[BID_FINDING_DANGLING] < trial->made.dangling)
		fail(trial, "of %u links to nothing %u were found", trial->made.dangling,
		     (unsigned)light.found[BID_FINDING_DANGLING]);
}

static void scan_it(struct hostile_trial *trial, const char *store)
{
	struct bid_scan_config config = { .link = BID_LINK_COPY };
	struct bid_scan_counts counts;
	struct bid_store *into;
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/into", trial->directory);
	if (mkdir(path, 0755) < 0 || bid_store_open(path, BID_STORE_WRITE, &into) < 0)
		fail(trial, "no store to scan into");
	r = bid_store_scan(into, store, &config, &counts);
	if (r < 0)
		fail(trial, "scanning did not come to an end: %s", strerror(-r));
	if (counts.added + counts.known < trial->made.good)
		fail(trial, "of %u good files %u were added", trial->made.good, (unsigned)(counts.added + counts.known));
	trial->store = into;
	if (verify(trial, true, false).left != 0)
		fail(trial, "what was added is not right");
	bid_store_free(into);
}

/* Call all functions that write: a read-only store stays unchanged. */
static void mend(struct hostile_trial *trial, const char *store)
{
	struct bid_verify_stats left;
	struct bid_evict_config evict = { .limits.cache_size = 1 };
	struct bid_evict_stats evicted;
	struct bid_negative *negative;
	struct bid_artifact artifact = { .kind = BID_KIND_ELF };

	if (bid_store_open(store, BID_STORE_WRITE, &trial->store) < 0)
		return;
	nothing_outside(trial, "opening for writing");
	look(trial);
	nothing_outside(trial, "looking as a writer");
	bid_id_parse_str("00112233445566778899aabbccddeeff00112233", &artifact.id);
	if (bid_negative_new(trial->store, &negative) == 0) {
		bid_negative_add(negative, &artifact, "server", BID_OUTCOME_ABSENT);
		bid_negative_free(negative);
	}
	bid_store_evict(trial->store, &evict, &evicted);
	nothing_outside(trial, "evicting");
	verify(trial, true, true);
	nothing_outside(trial, "repairing");
	left = verify(trial, true, false);
	if (left.found[BID_FINDING_WRONG] || left.found[BID_FINDING_CORRUPT])
		fail(trial, "%u wrong files are left after repairing", (unsigned)left.found[BID_FINDING_WRONG]);
	look(trial);
	nothing_outside(trial, "looking at what was repaired");
	bid_store_free(trial->store);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	return remove(path);
}

static void run(struct hostile_trial *trial, unsigned crowd)
{
	char store[PATH_MAX];

	running = trial->seed;
	alarm(TREE_S);
	trial->made = hostile_tree_make(trial->directory, trial->seed, crowd);
	snprintf(store, sizeof(store), "%s/store", trial->directory);
	watch_outside(trial);
	if (bid_store_open(store, 0, &trial->store) < 0)
		fail(trial, "cannot be opened");
	look(trial);
	nothing_outside(trial, "looking");
	check(trial);
	nothing_outside(trial, "checking");
	bid_store_free(trial->store);
	scan_it(trial, store);
	nothing_outside(trial, "scanning");
	mend(trial, store);
	close(trial->watch);
	alarm(0);
}

/* Is the harness awake? */
static void sabotage(struct hostile_trial *trial)
{
	char path[PATH_MAX];
	_Alignas(struct inotify_event) char buffer[4096];

	snprintf(path, sizeof(path), "%s/outside", trial->directory);
	mkdir(path, 0755);
	watch_outside(trial);
	close(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (read(trial->watch, buffer, sizeof(buffer)) <= 0)
		fail(trial, "an open outside of the store is not noticed");
	close(trial->watch);
	rmdir(path);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "trees", required_argument, NULL, 't' },
						 { "seed", required_argument, NULL, 's' },
						 { "make", required_argument, NULL, 'm' },
						 { 0 } };
	unsigned long trees = 100, seed = 1, spots = 0, wrong = 0, good = 0;
	/* in memory if possible: on a busy disk each sync of a tree also waits for the writes of others */
	const char *make = NULL, *parent = getenv("TMPDIR")		   ? getenv("TMPDIR")
					   : access("/dev/shm", W_OK) == 0 ? "/dev/shm"
									   : "/tmp";
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 't')
			trees = strtoul(optarg, NULL, 10);
		else if (option == 's')
			seed = strtoul(optarg, NULL, 10);
		else if (option == 'm')
			make = optarg;
		else
			return 2;
	}
	if (make) {
		struct hostile_counts made = hostile_tree_make(make, seed, 0);

		printf("%u spots, %u good, %u wrong, %u dangling\n", made.spots, made.good, made.wrong, made.dangling);
		return 0;
	}
	bid_log_init("hostile-trees", BID_LOG_ERROR);
	signal(SIGALRM, hangs);
	for (unsigned long i = 0; i < trees; i++) {
		struct hostile_trial trial = { .seed = seed + i };

		snprintf(trial.directory, sizeof(trial.directory), "%.40s/bid-hostile-XXXXXX", parent);
		if (!mkdtemp(trial.directory)) {
			perror(trial.directory);
			return 1;
		}
		if (i == 0)
			sabotage(&trial);
		run(&trial, i == 0 ? CROWD_FIRST : i % CROWD_EVERY == CROWD_EVERY - 1 ? CROWD : 0);
		spots += trial.made.spots;
		wrong += trial.made.wrong;
		good += trial.made.good;
		nftw(trial.directory, remove_one, 64, FTW_DEPTH | FTW_PHYS);
	}
	printf("%lu trees from seed %lu: %lu spots, %lu good builds, %lu wrong files; nothing outside was opened\n", trees, seed,
	       spots, good, wrong);
	return 0;
}
