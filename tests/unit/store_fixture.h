/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fixture of the tests of the store and of the tree: a temporary directory, and stores filled in perf's way. */
#ifndef BID_TEST_STORE_FIXTURE_H
#define BID_TEST_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/txn.h"

#define ID_A	 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B	 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ID_LONG	 "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define ID_SHORT "dddddddddddd"

/* Step between tried bytes, or calls. An odd step gives each of eight bits its turn. */
#define STRIDE 7u

struct store_fixture {
	char directory[64]; /* has store/, and the compiled a, b, a.debug, a.stripped, long, short */
	struct bid_store *store;
};

/* Group fixtures: compile the ELF files, and remove them. */
int store_fixture_compile(void **state);
int store_fixture_clean(void **state);

/* Fixtures of each test: an empty store, open for writing. */
int store_fixture_begin(void **state);
int store_fixture_end(void **state);

/* Run a shell command in the fixture's directory; its failure fails the test. */
void run(const struct store_fixture *fixture, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Put the compiled file @name into the store in perf's way, as @path/@id/@artifact, with perf's link. */
void perf_adds(const struct store_fixture *fixture, const char *name, const char *path, const char *id, const char *artifact);

struct bid_id id_of(const char *hex);
struct bid_artifact request_for(const char *hex, enum bid_kind kind);

/* Call bid_store_find(), and close the file. */
int find(const struct store_fixture *fixture, const char *hex, enum bid_kind kind);

/* Does the store have a file of that name? */
bool has_path(const struct store_fixture *fixture, const char *path);

/* Check that bid_store_verify() of every byte finds nothing. */
void nothing_is_wrong(const struct store_fixture *fixture);

/*
 * Download @artifact into the fixture's store, with the bytes of the file @name in its directory. With @accept they may differ from
 * the first download. Returns the result of bid_txn_commit().
 */
int store_fixture_try_fetch(const struct store_fixture *fixture, struct bid_artifact artifact, const char *name, bool accept);

/* As store_fixture_try_fetch(), and check for success. */
void store_fixture_fetch(const struct store_fixture *fixture, struct bid_artifact artifact, const char *name);

#endif
