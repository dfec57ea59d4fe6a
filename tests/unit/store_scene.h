/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of the store and of the tree share: a temporary directory, and stores filled as perf would. */
#ifndef BID_TEST_STORE_SCENE_H
#define BID_TEST_STORE_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/store.h"

#define ID_A	 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B	 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ID_LONG	 "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define ID_SHORT "dddddddddddd"

/* Bytes and calls are tried in steps of so many. It is odd, so that each of eight bits has its turn. */
#define STRIDE 7u

struct store_scene {
	char directory[64]; /* has store/, and the compiled a, b, a.debug, a.stripped, long, short */
	struct bid_store *store;
};

/* Group fixtures: compile the ELF files, and remove them. */
int store_scene_compile(void **state);
int store_scene_clean(void **state);

/* Per test: an empty store, open for writing. */
int store_scene_begin(void **state);
int store_scene_end(void **state);

/* Run a shell command in the scene's directory; the test fails if it does. */
void run(const struct store_scene *scene, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Put the compiled file @name into the store as perf would, as @path/@id/@artifact, with perf's link. */
void perf_adds(const struct store_scene *scene, const char *name, const char *path, const char *id, const char *artifact);

struct bid_id id_of(const char *hex);
struct bid_request request_for(const char *hex, enum bid_kind kind);

/* bid_store_find(), and the file closed again. */
int find(const struct store_scene *scene, const char *hex, enum bid_kind kind);

/* Is there a file of that name in the store? */
bool has_path(const struct store_scene *scene, const char *path);

/* bid_store_verify() of every byte must find nothing. */
void nothing_is_wrong(const struct store_scene *scene);

/*
 * Download @request into the scene's store: the bytes are those of the file @name of its directory. With @accept they may differ
 * from those of the first download. Returns what bid_txn_commit() returns.
 */
int store_scene_try_fetch(const struct store_scene *scene, struct bid_request request, const char *name, bool accept);

/* The same, which must not fail. */
void store_scene_fetch(const struct store_scene *scene, struct bid_request request, const char *name);

#endif
