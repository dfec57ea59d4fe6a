/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file of small records of one size that any number of processes append to and read, without a lock: docs/FORMAT.md, "Journals".
 * What is lost of it by a crash must be worth no more than asking again. A damaged record is passed over; a damaged file, or one
 * that grew too long, is written anew from what its writer knows.
 */
#ifndef BID_DISK_JOURNAL_H
#define BID_DISK_JOURNAL_H

#include <stdint.h>

#include <bid/store.h>

#define BID_JOURNAL_PAYLOAD_MAX 56

typedef int (*bid_journal_emit_fn)(void *emitter, const void *payload);

struct bid_journal_ops {
	const char *path; /* below the store */
	char magic[8];
	size_t payload; /* bytes of a record, without its sum; a multiple of 4 */
	/* A record of the file, one's own too. */
	void (*take)(void *user, const void *payload);
	/* It is another file now, or gone: forget what was taken. */
	void (*restart)(void *user);
	/* Emit all that is worth keeping. A negative return of @emit is to be returned. */
	int (*each)(void *user, bid_journal_emit_fn emit, void *emitter);
	/* How many records each() would emit. */
	size_t (*count)(void *user);
};

/* Not to be used by two threads at once. */
struct bid_journal {
	struct bid_store *store; /* borrowed; NULL, or one that cannot be written, for none */
	const struct bid_journal_ops *ops;
	void *user;
	int fd; /* -1 if there is no file */
	uint64_t seed; /* of the file's sums; random, so it serves as one for keys too */
	uint64_t at; /* where to read on */
};

void bid_journal_init(struct bid_journal *journal, struct bid_store *store, const struct bid_journal_ops *ops, void *user);

void bid_journal_release(struct bid_journal *journal);

/*
 * Take what was appended since. Costs one fstat(2) if nothing was. Returns 0, also without a file or if that is damaged, or why it
 * cannot be read: then records are missing.
 */
int bid_journal_catch_up(struct bid_journal *journal);

/* Read it from the beginning, next time. */
void bid_journal_restart(struct bid_journal *journal);

/*
 * Append, and take it. Returns 0, or a negative errno: then it was not taken. Locking: takes the store's lock exclusively if the
 * file is to be written anew.
 */
int bid_journal_append(struct bid_journal *journal, const void *payload);

#endif
