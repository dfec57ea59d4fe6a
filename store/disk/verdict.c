// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/verdict.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <bid/elf.h>

#include "base/io.h"

enum {
	SETS = 4096, /* a power of two */
	WAYS = 4,
	RACY_NS = 20 * 1000 * 1000, /* a change within one tick of the clock does not show in the times */
};

struct entry {
	dev_t dev;
	ino_t ino; /* 0: free */
	off_t size;
	struct timespec mtime, ctime;
	bool examined; /* has_dwarf was looked for */
	struct bid_verdict_on verdict;
};

struct bid_verdicts {
	pthread_mutex_t lock; /* protects all below; not held while a file is read */
	unsigned turn; /* which way of a full set is given up next */
	struct entry entries[SETS][WAYS];
};

int bid_verdicts_new(struct bid_verdicts **ret_verdicts)
{
	/* calloc: pages of entries never used are never touched */
	struct bid_verdicts *verdicts = calloc(1, sizeof(*verdicts));

	if (!verdicts)
		return -ENOMEM;
	pthread_mutex_init(&verdicts->lock, NULL);
	*ret_verdicts = verdicts;
	return 0;
}

void bid_verdicts_free(struct bid_verdicts *verdicts)
{
	if (!verdicts)
		return;
	pthread_mutex_destroy(&verdicts->lock);
	free(verdicts);
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool stands_for(const struct entry *entry, const struct stat *st)
{
	return entry->ino == st->st_ino && entry->dev == st->st_dev && entry->size == st->st_size &&
	       same_time(entry->mtime, st->st_mtim) && same_time(entry->ctime, st->st_ctim);
}

static struct entry *set_of(struct bid_verdicts *verdicts, const struct stat *st)
{
	uint64_t hash = ((uint64_t)st->st_ino ^ (uint64_t)st->st_dev << 32) * 0x9e3779b97f4a7c15U;

	return verdicts->entries[hash >> 32 & (SETS - 1)];
}

static bool recall(struct bid_verdicts *verdicts, const struct stat *st, bool want_dwarf, struct bid_verdict_on *ret_verdict)
{
	struct entry *set = set_of(verdicts, st);
	bool found = false;

	pthread_mutex_lock(&verdicts->lock);
	for (unsigned i = 0; i < WAYS && !found; i++) {
		found = stands_for(&set[i], st) && (set[i].examined || !want_dwarf);
		if (found) {
			*ret_verdict = set[i].verdict;
			ret_verdict->fresh = false;
		}
	}
	pthread_mutex_unlock(&verdicts->lock);
	return found;
}

/*
 * Was the file changed so lately that another change could leave the same times? Such a verdict is not kept (git calls this
 * racy).
 */
static bool is_racy(const struct stat *st)
{
	struct timespec now;
	int64_t age;

	clock_gettime(CLOCK_REALTIME, &now);
	age = (int64_t)(now.tv_sec - st->st_ctim.tv_sec) * 1000000000 + (now.tv_nsec - st->st_ctim.tv_nsec);
	return age < RACY_NS;
}

static void keep(struct bid_verdicts *verdicts, const struct stat *st, bool examined, const struct bid_verdict_on *verdict)
{
	struct entry *set = set_of(verdicts, st);
	struct entry *place = NULL;

	pthread_mutex_lock(&verdicts->lock);
	for (unsigned i = 0; i < WAYS; i++)
		if (set[i].ino == 0 || (set[i].ino == st->st_ino && set[i].dev == st->st_dev))
			place = &set[i];
	if (!place)
		place = &set[verdicts->turn++ % WAYS];
	*place = (struct entry){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = st->st_size,
		.mtime = st->st_mtim,
		.ctime = st->st_ctim,
		.examined = examined,
		.verdict = *verdict,
	};
	pthread_mutex_unlock(&verdicts->lock);
}

int bid_verdict(struct bid_verdicts *verdicts, int fd, const struct stat *st, bool want_dwarf, struct bid_verdict_on *ret_verdict)
{
	struct bid_verdict_on verdict = { .fresh = true };
	struct bid_elf_info info;
	char head[8];
	ssize_t n;
	int r;

	if (recall(verdicts, st, want_dwarf, ret_verdict))
		return 0;

	r = bid_elf_identify(fd, &verdict.id);
	if (r == -ENOEXEC) {
		n = bid_pread_full(fd, head, sizeof(head), 0);
		if (n < 0)
			return (int)n;
		verdict.packed = n == sizeof(head) && bid_elf_is_packed(head, sizeof(head));
	} else if (r < 0 && r != -ENODATA) {
		return r;
	} else if (want_dwarf && bid_elf_examine(fd, &info) == 0) {
		verdict.has_dwarf = info.has_dwarf;
	}

	if (!is_racy(st))
		keep(verdicts, st, want_dwarf, &verdict);
	*ret_verdict = verdict;
	return 0;
}
