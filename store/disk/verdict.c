// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/verdict.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "api/elf.h"
#include "base/io.h"
#include "base/stamp.h"

enum {
	SETS = 4096, /* a power of two */
	WAYS = 4,
};

struct entry {
	struct bid_stamp stamp; /* ino 0: free */
	bool examined; /* has_dwarf and the like were looked for */
	bool reported; /* the log has the refusal */
	struct bid_verdict_on verdict;
};

struct bid_verdicts {
	pthread_mutex_t lock; /* protects all below; not held while a file is read */
	unsigned turn; /* way of a full set to evict next */
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

static struct entry *set_of(struct bid_verdicts *verdicts, ino_t ino, dev_t dev)
{
	uint64_t hash = ((uint64_t)ino ^ (uint64_t)dev << 32) * 0x9e3779b97f4a7c15U;

	return verdicts->entries[hash >> 32 & (SETS - 1)];
}

static bool recall(struct bid_verdicts *verdicts, const struct stat *st, bool want_dwarf, struct bid_verdict_on *ret_verdict)
{
	struct entry *set = set_of(verdicts, st->st_ino, st->st_dev);
	bool found = false;

	pthread_mutex_lock(&verdicts->lock);
	for (unsigned i = 0; i < WAYS && !found; i++) {
		found = bid_stamp_holds(&set[i].stamp, st) && (set[i].examined || !want_dwarf);
		if (found)
			*ret_verdict = set[i].verdict;
	}
	pthread_mutex_unlock(&verdicts->lock);
	return found;
}

/* Cache the check of the file with @st; @stamp was taken before the file was read. */
static void keep(struct bid_verdicts *verdicts, const struct stat *st, const struct bid_stamp *stamp, bool examined,
		 const struct bid_verdict_on *verdict)
{
	struct entry *set = set_of(verdicts, stamp->ino, stamp->dev);
	struct entry *place = NULL;

	pthread_mutex_lock(&verdicts->lock);
	for (unsigned i = 0; i < WAYS; i++)
		if (set[i].stamp.ino == 0 || (set[i].stamp.ino == stamp->ino && set[i].stamp.dev == stamp->dev))
			place = &set[i];
	if (!place)
		place = &set[verdicts->turn++ % WAYS];
	*place = (struct entry){
		.stamp = *stamp,
		.examined = examined,
		.reported = place->reported && bid_stamp_is_of(&place->stamp, st),
		.verdict = *verdict,
	};
	pthread_mutex_unlock(&verdicts->lock);
}

int bid_verdict(struct bid_verdicts *verdicts, int fd, const struct stat *st, bool want_dwarf, struct bid_verdict_on *ret_verdict)
{
	struct bid_stamp stamp = bid_stamp_take(st);
	struct bid_verdict_on verdict = { 0 };
	struct bid_elf_info info;
	int r;

	if (recall(verdicts, st, want_dwarf, ret_verdict))
		return 0;

	r = bid_elf_identify(fd, &verdict.id);
	if (r == -ENOEXEC) {
		r = bid_elf_is_packed(fd);
		if (r < 0)
			return r;
		verdict.packed = r;
	} else if (r < 0 && r != -ENODATA) {
		return r;
	} else if (want_dwarf) {
		r = bid_elf_examine(fd, &info);
		/* an unreadable file is not known to lack an id */
		if (r < 0 && r != -EBADMSG && r != -ENOEXEC)
			return r;
		verdict.has_dwarf = r == 0 && info.has_dwarf;
		verdict.has_symtab = r == 0 && info.has_symtab;
		verdict.is_skeleton = r == 0 && info.is_skeleton;
	}
	keep(verdicts, st, &stamp, want_dwarf, &verdict);
	*ret_verdict = verdict;
	return 0;
}

void bid_verdict_unpacked(struct bid_verdicts *verdicts, const struct stat *st, int fault, const struct bid_id *id)
{
	struct bid_stamp stamp = bid_stamp_take(st);
	struct bid_verdict_on verdict = { .packed = true, .unpacked = true, .fault = fault < 0 ? fault : 0 };

	if (fault == 0)
		verdict.id = *id;
	keep(verdicts, st, &stamp, true, &verdict);
}

bool bid_verdict_report(struct bid_verdicts *verdicts, const struct stat *st)
{
	struct entry *set = set_of(verdicts, st->st_ino, st->st_dev);
	bool reported = false;

	pthread_mutex_lock(&verdicts->lock);
	for (unsigned i = 0; i < WAYS; i++) {
		if (!bid_stamp_is_of(&set[i].stamp, st))
			continue;
		reported = set[i].reported;
		set[i].reported = true;
	}
	pthread_mutex_unlock(&verdicts->lock);
	return !reported;
}
