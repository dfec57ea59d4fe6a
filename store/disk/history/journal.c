// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/history/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "disk/layout.h"
#include "disk/lock_file.h"
#include "disk/publish/temp.h"
#include "disk/root.h"
#include "disk/store.h"

#define VERSION	 1
#define ORDER	 UINT32_C(0x01020304)
#define TRIES	 8 /* to append, while others write the file anew */
#define MIN_KEEP 1024 /* records: a file with fewer is not worth writing anew */

struct header {
	char magic[8];
	uint32_t version;
	uint32_t order;
	uint64_t seed;
	uint64_t sum;
};

struct record {
	char payload[BID_JOURNAL_PAYLOAD_MAX];
	uint32_t sum; /* behind the payload, which may be shorter */
};

static uint64_t header_sum(const struct header *header)
{
	return XXH3_64bits(header, offsetof(struct header, sum));
}

static size_t record_size(const struct bid_journal *journal)
{
	return journal->ops->payload + sizeof(uint32_t);
}

static uint32_t record_sum(const struct bid_journal *journal, uint64_t seed, const void *payload)
{
	return (uint32_t)XXH3_64bits_withSeed(payload, journal->ops->payload, seed);
}

static void make_record(const struct bid_journal *journal, uint64_t seed, const void *payload, struct record *ret_record)
{
	uint32_t sum = record_sum(journal, seed, payload);

	memcpy(ret_record->payload, payload, journal->ops->payload);
	memcpy(ret_record->payload + journal->ops->payload, &sum, sizeof(sum));
}

static bool writable(const struct bid_journal *journal)
{
	return journal->store && bid_store_writable(journal->store);
}

void bid_journal_init(struct bid_journal *journal, struct bid_store *store, const struct bid_journal_ops *ops, void *user)
{
	*journal = (struct bid_journal){ .store = store, .ops = ops, .user = user, .fd = -1 };
	if (getrandom(&journal->seed, sizeof(journal->seed), GRND_NONBLOCK) != sizeof(journal->seed))
		journal->seed = (uint64_t)time(NULL);
}

void bid_journal_release(struct bid_journal *journal)
{
	bid_close(journal->fd);
	journal->fd = -1;
}

/* Open the file, if there is a sound one, to read it from the beginning. */
static int open_file(struct bid_journal *journal)
{
	const struct bid_journal_ops *ops = journal->ops;
	bid_auto_fd int fd = -1;
	struct header header;
	struct stat st;
	ssize_t n;
	int r;

	r = bid_root_open(bid_store_root(journal->store), ops->path, O_RDWR | O_APPEND | O_NONBLOCK | O_NOCTTY, &fd);
	/* another user's, who may write the store as well: it is read, and written anew */
	if (r == -EACCES)
		r = bid_root_open(bid_store_root(journal->store), ops->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	n = S_ISREG(st.st_mode) ? bid_pread_full(fd, &header, sizeof(header), 0) : 0;
	if (n < 0)
		return (int)n;
	if (n != sizeof(header) || memcmp(header.magic, ops->magic, sizeof(header.magic)) != 0 || header.version != VERSION ||
	    header.order != ORDER || header.sum != header_sum(&header))
		return -EBADMSG;
	/* written anew by somebody who did not know ours: what was taken with another seed means nothing now */
	if (header.seed != journal->seed)
		journal->ops->restart(journal->user);
	journal->fd = bid_steal_fd(&fd);
	journal->seed = header.seed;
	journal->at = sizeof(header);
	return 0;
}

/* Returns how many bytes of it were taken: whole records only. */
static size_t take_piece(struct bid_journal *journal, const char *piece, size_t len)
{
	size_t size = record_size(journal), payload = journal->ops->payload, at = 0;

	for (; at + size <= len; at += size) {
		uint32_t sum;

		memcpy(&sum, piece + at + payload, sizeof(sum));
		if (sum == record_sum(journal, journal->seed, piece + at))
			journal->ops->take(journal->user, piece + at);
	}
	return at;
}

void bid_journal_restart(struct bid_journal *journal)
{
	bid_journal_release(journal);
	journal->ops->restart(journal->user);
}

/* Is this what opening comes to if there is no journal, or something else in its place? */
static bool is_none(int r)
{
	return r == -ENOENT || r == -EBADMSG || r == -EISDIR || r == -ELOOP || r == -ENOTDIR || r == -ENXIO;
}

int bid_journal_catch_up(struct bid_journal *journal)
{
	char piece[16 * 1024];
	struct stat st;
	ssize_t n;
	int r;

	if (!writable(journal))
		return 0;
	/* replaced or removed: what was in the old one counts no more */
	if (journal->fd >= 0 && (fstat(journal->fd, &st) < 0 || st.st_nlink == 0 || (uint64_t)st.st_size < journal->at)) {
		bid_journal_restart(journal);
	}
	if (journal->fd < 0) {
		r = open_file(journal);
		if (r < 0)
			return is_none(r) ? 0 : r;
		if (fstat(journal->fd, &st) < 0)
			return -errno;
	}
	while ((uint64_t)st.st_size >= journal->at + record_size(journal)) {
		uint64_t rest = (uint64_t)st.st_size - journal->at;
		size_t taken;

		n = bid_pread_full(journal->fd, piece, rest < sizeof(piece) ? rest : sizeof(piece), (off_t)journal->at);
		if (n < 0)
			return (int)n;
		taken = take_piece(journal, piece, (size_t)n);
		journal->at += taken;
		if (taken == 0)
			break;
	}
	return 0;
}

/* A file that is being written anew. */
struct rewrite {
	struct bid_journal *journal;
	int fd;
	uint64_t seed;
	char piece[16 * 1024];
	size_t len;
	off_t at;
};

static int flush(struct rewrite *rewrite)
{
	int r = bid_pwrite_full(rewrite->fd, rewrite->piece, rewrite->len, rewrite->at);

	rewrite->at += (off_t)rewrite->len;
	rewrite->len = 0;
	return r;
}

static int emit(void *user, const void *payload)
{
	struct rewrite *rewrite = user;
	struct record record;
	size_t size = record_size(rewrite->journal);
	int r = rewrite->len + size > sizeof(rewrite->piece) ? flush(rewrite) : 0;

	make_record(rewrite->journal, rewrite->seed, payload, &record);
	memcpy(rewrite->piece + rewrite->len, &record, size);
	rewrite->len += size;
	return r;
}

/* Append to the new file what came to @old behind @at before that lost its name: who comes later sees that, and retries. */
static int copy_tail(struct bid_journal *journal, int old, uint64_t at)
{
	char piece[16 * 1024];
	size_t size = record_size(journal);

	for (;;) {
		ssize_t n = bid_pread_full(old, piece, sizeof(piece) / size * size, (off_t)at);
		size_t whole = n > 0 ? (size_t)n / size * size : 0;

		if (whole == 0)
			return n < 0 ? (int)n : 0;
		n = write(journal->fd, piece, whole);
		if (n < 0 || (size_t)n != whole)
			return n < 0 ? -errno : -ENOSPC;
		at += whole;
	}
}

static int rewrite_file(struct bid_journal *journal)
{
	struct rewrite rewrite = { .journal = journal, .seed = journal->seed, .len = sizeof(struct header) };
	struct header header = { .version = VERSION, .order = ORDER, .seed = journal->seed };
	const char *name = strrchr(journal->ops->path, '/') + 1;
	struct bid_temp temp = BID_TEMP_NONE;
	bid_auto_fd int dir = -1, old = -1;
	uint64_t at;
	int r;

	memcpy(header.magic, journal->ops->magic, sizeof(header.magic));
	header.sum = header_sum(&header);
	memcpy(rewrite.piece, &header, sizeof(header));
	r = bid_root_mkdirs(bid_store_root(journal->store), BID_LAYOUT_PRIVATE, false, &dir);
	if (r == 0)
		r = bid_temp_new(journal->store, true, &temp);
	rewrite.fd = temp.fd;
	if (r == 0)
		r = journal->ops->each(journal->user, emit, &rewrite);
	if (r == 0)
		r = flush(&rewrite);
	if (r == 0 && fchmod(temp.fd, 0644) < 0)
		r = -errno;
	if (r == 0)
		r = bid_temp_replace(journal->store, &temp, dir, name);
	bid_temp_release(&temp);
	if (r < 0)
		return r;
	old = bid_steal_fd(&journal->fd);
	at = journal->at;
	/* from now on what the file has counts, which may be less */
	journal->ops->restart(journal->user);
	r = open_file(journal);
	return r == 0 && old >= 0 ? copy_tail(journal, old, at) : r;
}

/* Is the file one that can be appended to? */
static bool is_sound(const struct bid_journal *journal)
{
	uint64_t keep = journal->ops->count(journal->user);
	struct stat st;

	if (journal->fd < 0 || fstat(journal->fd, &st) < 0 || (fcntl(journal->fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
		return false;
	/* what a crash cut short would shift all that follows */
	if (((uint64_t)st.st_size - sizeof(struct header)) % record_size(journal) != 0)
		return false;
	return (uint64_t)st.st_size / record_size(journal) <= 2 * (keep > MIN_KEEP ? keep : MIN_KEEP);
}

/* Write the file anew if that is to be done. Others who do wait meanwhile, and then find it done. */
static int make_sound(struct bid_journal *journal)
{
	bid_auto_fd int lock = -1;
	int r = bid_journal_catch_up(journal);

	if (r < 0 || is_sound(journal))
		return r;
	lock = bid_store_lock(journal->store, true);
	r = bid_journal_catch_up(journal);
	return r < 0 || is_sound(journal) ? r : rewrite_file(journal);
}

int bid_journal_append(struct bid_journal *journal, const void *payload)
{
	struct record record;
	struct stat st;
	ssize_t n;

	if (!writable(journal))
		return -EROFS;
	for (int tries = 0; tries < TRIES; tries++) {
		int r = make_sound(journal);

		if (r < 0)
			return r;
		make_record(journal, journal->seed, payload, &record);
		n = write(journal->fd, &record, record_size(journal));
		if (n < 0)
			return -errno;
		if ((size_t)n != record_size(journal))
			return -ENOSPC;
		/* if another is in the place of the file, nobody reads what was written */
		if (fstat(journal->fd, &st) == 0 && st.st_nlink > 0) {
			bid_journal_catch_up(journal);
			return 0;
		}
	}
	return -EAGAIN;
}
