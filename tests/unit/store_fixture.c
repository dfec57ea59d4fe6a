// SPDX-License-Identifier: LGPL-2.1-or-later
#include "store_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/verify.h"

static char directory[64]; /* directory of the group: tests run one after another */

static void shell(const char *command)
{
	if (system(command) != 0)
		fail_msg("this failed: %s", command);
}

int store_fixture_compile(void **state)
{
	const char *parent = getenv("TMPDIR");
	char *command;

	snprintf(directory, sizeof(directory), "%s/bid-store-XXXXXX", parent ? parent : "/tmp");
	if (!mkdtemp(directory))
		return -1;
	if (asprintf(&command,
		     "cd %s && printf 'int main(void) { return 0; }\\n' > a.c && "
		     "gcc -g -Wl,--build-id=0x" ID_A " -o a a.c && gcc -g -Wl,--build-id=0x" ID_B " -o b a.c && "
		     "gcc -Wl,--build-id=0x" ID_LONG " -o long a.c && gcc -Wl,--build-id=0x" ID_SHORT " -o short a.c && "
		     "gcc -Wl,--build-id=none -o none a.c && "
		     "objcopy --only-keep-debug a a.debug && strip -o a.stripped a",
		     directory) < 0)
		return -1;
	shell(command);
	free(command);
	return 0;
}

int store_fixture_clean(void **state)
{
	char *command;

	if (asprintf(&command, "rm -rf %s", directory) < 0)
		return -1;
	shell(command);
	free(command);
	return 0;
}

void run(const struct store_fixture *fixture, const char *format, ...)
{
	char *command, *whole;
	va_list arguments;

	va_start(arguments, format);
	assert_true(vasprintf(&command, format, arguments) >= 0);
	va_end(arguments);
	assert_true(asprintf(&whole, "cd %s && %s", fixture->directory, command) >= 0);
	shell(whole);
	free(whole);
	free(command);
}

int store_fixture_begin(void **state)
{
	struct store_fixture *fixture = calloc(1, sizeof(*fixture));
	char path[96];

	snprintf(fixture->directory, sizeof(fixture->directory), "%s", directory);
	run(fixture, "rm -rf store && mkdir store");
	snprintf(path, sizeof(path), "%s/store", directory);
	*state = fixture;
	return bid_store_open(path, BID_STORE_WRITE, &fixture->store);
}

int store_fixture_end(void **state)
{
	struct store_fixture *fixture = *state;

	bid_store_free(fixture->store);
	free(fixture);
	return 0;
}

void perf_adds(const struct store_fixture *fixture, const char *name, const char *path, const char *id, const char *artifact)
{
	run(fixture,
	    "mkdir -p store/%s/%s store/.build-id/%.2s && cp %s store/%s/%s/%s && "
	    "(test -L store/.build-id/%.2s/%s || ln -s ../../%s/%s store/.build-id/%.2s/%s)",
	    path, id, id, name, path, id, artifact, id, id + 2, path, id, id, id + 2);
}

struct bid_id id_of(const char *hex)
{
	struct bid_id id = { 0 };

	assert_int_equal(bid_id_parse_str(hex, &id), 0);
	return id;
}

struct bid_artifact request_for(const char *hex, enum bid_kind kind)
{
	return (struct bid_artifact){ .id = id_of(hex), .kind = kind };
}

int find(const struct store_fixture *fixture, const char *hex, enum bid_kind kind)
{
	struct bid_artifact artifact = request_for(hex, kind);
	struct bid_file file = BID_FILE_NONE;
	int r = bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file);

	bid_file_release(&file);
	return r;
}

bool has_path(const struct store_fixture *fixture, const char *path)
{
	char *whole;
	bool there;

	assert_true(asprintf(&whole, "%s/store/%s", fixture->directory, path) >= 0);
	there = access(whole, F_OK) == 0;
	free(whole);
	return there;
}

void nothing_is_wrong(const struct store_fixture *fixture)
{
	struct bid_verify_config config = { .deep = true };
	struct bid_verify_stats stats;

	assert_int_equal(bid_store_verify(fixture->store, &config, &stats), 0);
	for (int kind = 0; kind < BID_FINDING_COUNT; kind++)
		if (stats.found[kind])
			fail_msg("found: %s", bid_finding_name((enum bid_finding_kind)kind));
}

int store_fixture_try_fetch(const struct store_fixture *fixture, struct bid_artifact artifact, const char *name, bool accept)
{
	struct bid_file file = BID_FILE_NONE;
	char path[96], buffer[65536];
	struct bid_txn *txn;
	ssize_t n;
	int fd, r;

	snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(bid_txn_begin(fixture->store, &artifact, &txn), 0);
	if (accept)
		bid_store_forget_digest(fixture->store, &artifact);
	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		assert_int_equal(bid_txn_write(txn, buffer, (size_t)n), 0);
	close(fd);
	r = bid_txn_commit(txn, &(struct bid_origin){ .how = "fetched", .url = "http://example.org/x" }, &file);
	bid_file_release(&file);
	bid_txn_free(txn);
	return r;
}

void store_fixture_fetch(const struct store_fixture *fixture, struct bid_artifact artifact, const char *name)
{
	assert_int_equal(store_fixture_try_fetch(fixture, artifact, name, false), 0);
}
