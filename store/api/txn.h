/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Transactions: a download gets into the store whole, or nothing of it. "api/written_file.h" is for a file that a program writes at
 * any offset. All functions may block on disk.
 */
#ifndef BID_API_TXN_H
#define BID_API_TXN_H

#include "api/signature.h"
#include "api/store.h"

/* The origin of an artifact. Strings may be NULL; strings from a server's headers are shown, never used as a path. */
struct bid_origin {
	const char *how; /* "fetched", or "sliced" for a section cut out of a file of the store */
	const char *server; /* the server's URL */
	const char *url; /* the URL of the file */
	const char *file; /* the file's name at the server */
	const char *archive; /* the package with the file, at the server */
	const char *ima_signature; /* signature of the file from the server, in hex */
	const struct bid_signers *signers; /* bid_txn_commit() requires a signature of one of these; NULL for none */
	char signer[BID_SIGNER_MAX]; /* signer of the file, set by bid_txn_commit(); "" without a check */
	int64_t modified; /* modification time of the file from the server, in seconds since the epoch; 0 if unknown */
};

struct bid_txn;

/*
 * A transaction that puts one artifact into the store:
 *
 *   bid_txn_begin()
 *     bid_txn_expect()		with an announced size
 *     bid_txn_write()		any number of times
 *     bid_txn_commit()
 *   bid_txn_free()		rolls back without a commit
 *
 * The artifact becomes visible with bid_txn_commit(); a crash before it leaves nothing behind. Returns -EROFS on a store opened
 * without BID_STORE_WRITE. Multithreading: one thread at a time.
 */
int bid_txn_begin(struct bid_store *store, const struct bid_artifact *artifact, struct bid_txn **ret_txn);

/*
 * Announce @size bytes. Returns 0 if they fit beside min_free ("api/evict.h"); -EAGAIN if they need an eviction, for
 * bid_txn_make_room(); or -ENOSPC with a bid_txn_reason(). Nothing is reserved: bid_txn_write() may still meet a full disk.
 */
int bid_txn_expect(struct bid_txn *txn, uint64_t size);

#define BID_TXN_UNANNOUNCED_MAX (1ULL << 30) /* bytes */

/*
 * As write(2). Bytes beyond the expected ones need free space every 64 MiB, with evictions for the first BID_TXN_UNANNOUNCED_MAX:
 * -ENOSPC may come before the disk is full, with a bid_txn_reason().
 */
int bid_txn_write(struct bid_txn *txn, const void *data, size_t len);

/*
 * As bid_txn_write(), but return -EAGAIN instead of evicting: the caller calls bid_txn_make_room(), from any thread, and then
 * writes the same bytes again. The transaction skips the bytes it already has.
 */
int bid_txn_try_write(struct bid_txn *txn, const void *data, size_t len);

/* Evict after -EAGAIN. Returns 0 or -ENOSPC, as the next write does. May block for long. */
int bid_txn_make_room(struct bid_txn *txn);

/* Use @path, absolute or a name of perf in brackets, for a build without an original path. -EINVAL for any other form. */
int bid_txn_set_path(struct bid_txn *txn, const char *path);

/* Drop all written bytes. */
int bid_txn_reset(struct bid_txn *txn);

/*
 * Check the written bytes and publish them: fsync, link without replacing, perf's link, record of @origin. With @origin NULL the
 * file belongs to the user and gets no record. If another process has published the artifact, its file is the result. Returns 0 and
 * the artifact, or
 *   -EBADMSG	not an ELF file, damaged, with another id, or debuginfo without debug sections or symbol table;
 *		or without the signature that @origin requires
 *   -ESTALE	carries the id, but the first download had other bytes (docs/FORMAT.md, "Facts")
 *   other	as write(2), fsync(2), mkdir(2), link(2)
 */
int bid_txn_commit(struct bid_txn *txn, struct bid_origin *origin, struct bid_file *ret_file);

/* The build-id of the dwz file (dwz(1)) in the .gnu_debugaltlink of the committed file; len 0 if there is none. */
struct bid_id bid_txn_alt(const struct bid_txn *txn);

/* The reason of the last -ENOSPC, -EBADMSG or -ESTALE of @txn, in words, or "". Lives as long as @txn. */
const char *bid_txn_reason(const struct bid_txn *txn);

/*
 * Move the first MiB of the bytes in @txn to the quarantine. Only bid_txn_free() may follow. Returns 0, -EDQUOT if the quarantine
 * is full, -EEXIST if it has a download of this second, or a negative errno.
 */
int bid_txn_quarantine(struct bid_txn *txn);

/* @txn may be NULL. */
void bid_txn_free(struct bid_txn *txn);

#endif
