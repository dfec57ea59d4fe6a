// SPDX-License-Identifier: LGPL-2.1-or-later
#include "broker_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "broker/broker_types.h"
#include "held_server.h"
#include "scratch.h"

const struct bid_broker_config unhedged = { .hedge_ms = HEDGE_NEVER };

/* directory of fixture_compile(), for the time of the process */
static struct {
	char *data;
	size_t len;
} elfs[16];

static void compile_one(const char *directory, uint8_t byte)
{
	char source[128], output[128], id[128] = "-Wl,--build-id=0x", define[64];
	bid_auto_fd int fd = -1;
	FILE *file;

	snprintf(source, sizeof(source), "%s/x.c", directory);
	snprintf(output, sizeof(output), "%s/x-%02x", directory, byte);
	snprintf(define, sizeof(define), "-DSIZE=%d", LARGE);
	for (int i = 0; i < 20; i++)
		snprintf(id + strlen(id), sizeof(id) - strlen(id), "%02x", byte);
	file = fopen(source, "w");
	assert_non_null(file);
	fputs("const char filler[SIZE] = { 1 };\nint answer(void) { return filler[0]; }\n", file);
	assert_int_equal(fclose(file), 0);
	scratch_run((const char *[]){ "cc", "-g", "-shared", "-fPIC", "-nostdlib", id, define, source, "-o", output, NULL });

	fd = open(output, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(bid_read_file(fd, 16 << 20, &elfs[byte].data, &elfs[byte].len), 0);
	assert_true(elfs[byte].len > LARGE);
}

int fixture_compile(void **state)
{
	char directory[] = "/tmp/bid-test-XXXXXX";

	assert_non_null(mkdtemp(directory));
	compile_one(directory, 0xa);
	compile_one(directory, 0xb);
	assert_int_equal(scratch_remove(directory), 0);
	return 0;
}

int fixture_clean(void **state)
{
	free(elfs[0xa].data);
	free(elfs[0xb].data);
	return 0;
}

int fixture_begin(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/bid-test-XXXXXX");
	assert_non_null(mkdtemp(fixture->directory));
	assert_int_equal(bid_store_open(fixture->directory, BID_STORE_WRITE, &fixture->store), 0);
	*state = fixture;
	return 0;
}

void fixture_end_broker(struct fixture *fixture)
{
	bid_broker_free(fixture->broker);
	fixture->broker = NULL;
}

/* Returns true if the result is as expected. */
static bool end_call(struct call *call)
{
	bool once = call->times == 1;

	bid_close(call->fd);
	pthread_mutex_destroy(&call->lock);
	pthread_cond_destroy(&call->called);
	free(call);
	return once;
}

int fixture_end(void **state)
{
	struct fixture *fixture = *state;
	bool once = true;

	fixture_end_broker(fixture);
	bid_store_free(fixture->store);
	while (fixture->calls) {
		struct call *call = fixture->calls;

		fixture->calls = call->next;
		once &= end_call(call);
	}
	while (fixture->held) {
		struct held_server *held = fixture->held;

		fixture->held = held->next;
		free(held);
	}
	if (access(fixture->directory, F_OK) == 0)
		assert_int_equal(scratch_remove(fixture->directory), 0);
	free(fixture);
	assert_true(once);
	return 0;
}

void fixture_broker(struct fixture *fixture, const struct bid_broker_config *config)
{
	assert_int_equal(bid_broker_new(fixture->store, config, &fixture->broker), 0);
}

void fixture_wait_ms(struct fixture *fixture, unsigned wait_ms)
{
	pthread_mutex_lock(&fixture->broker->lock);
	fixture->broker->config.wait_ms = wait_ms;
	pthread_mutex_unlock(&fixture->broker->lock);
}

void fixture_hedge_ms(struct fixture *fixture, unsigned hedge_ms)
{
	pthread_mutex_lock(&fixture->broker->lock);
	fixture->broker->config.hedge_ms = hedge_ms;
	pthread_mutex_unlock(&fixture->broker->lock);
}

struct bid_server *fixture_memory(struct fixture *fixture, const char *name)
{
	struct bid_server *server;

	assert_int_equal(memory_server_new(name, &server), 0);
	assert_int_equal(bid_broker_add_server(fixture->broker, server), 0);
	return server;
}

struct bid_artifact request_of(uint8_t byte, enum bid_kind kind)
{
	struct bid_artifact artifact = { .kind = kind, .id.len = 20 };

	memset(artifact.id.bytes, byte, artifact.id.len);
	return artifact;
}

struct bid_artifact elf_of(uint8_t byte)
{
	return request_of(byte, BID_KIND_ELF);
}

const void *elf_bytes(uint8_t byte, size_t *ret_len)
{
	*ret_len = elfs[byte].len;
	return elfs[byte].data;
}

void put_elf(struct bid_server *server, uint8_t requested, uint8_t carried)
{
	struct bid_artifact artifact = elf_of(requested);

	assert_int_equal(memory_server_put(server, &artifact, elfs[carried].data, elfs[carried].len), 0);
}

int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void sleep_ms(unsigned ms)
{
	struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	while (nanosleep(&time, &time) < 0)
		assert_int_equal(errno, EINTR);
}

void wait_changed(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	struct timespec deadline;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += PATIENCE_MS / 1000;
	assert_int_equal(pthread_cond_timedwait(condition, lock, &deadline), 0);
}

static void answered(void *user, const struct bid_result *result)
{
	struct call *call = user;

	pthread_mutex_lock(&call->lock);
	call->times++;
	call->error = result->error;
	call->answered_ms = now_ms();
	if (result->error == 0) {
		call->fd = bid_steal_fd(&result->file->fd);
		call->size = result->file->st.st_size;
	}
	call->n_reports = result->n_reports;
	for (size_t i = 0; i < result->n_reports && i < 8; i++) {
		call->outcomes[i] = result->reports[i]->outcome;
		snprintf(call->servers[i], sizeof(call->servers[i]), "%s", result->reports[i]->server);
		snprintf(call->texts[i], sizeof(call->texts[i]), "%s", result->reports[i]->text);
		call->bytes[i] = result->reports[i]->bytes;
	}
	pthread_cond_broadcast(&call->called);
	pthread_mutex_unlock(&call->lock);
}

struct call *call_begin(struct fixture *fixture)
{
	struct call *call = calloc(1, sizeof(*call));

	assert_non_null(call);
	call->fd = -1;
	pthread_mutex_init(&call->lock, NULL);
	pthread_cond_init(&call->called, NULL);
	assert_int_equal(bid_broker_new_waiter(fixture->broker, answered, call, &call->waiter_id), 0);
	assert_true(call->waiter_id != 0);
	call->next = fixture->calls;
	fixture->calls = call;
	return call;
}

bool call_over(struct call *call)
{
	bool over;

	pthread_mutex_lock(&call->lock);
	over = call->times > 0;
	pthread_mutex_unlock(&call->lock);
	return over;
}

int call_wait(struct call *call)
{
	int error;

	pthread_mutex_lock(&call->lock);
	while (call->times == 0)
		wait_changed(&call->called, &call->lock);
	error = call->error;
	pthread_mutex_unlock(&call->lock);
	return error;
}

struct call *call_for(struct fixture *fixture, const struct bid_artifact *artifact)
{
	struct call *call = call_begin(fixture);

	bid_broker_fetch(fixture->broker, call->waiter_id, artifact);
	return call;
}

int fetch(struct fixture *fixture, const struct bid_artifact *artifact, struct call **ret_call)
{
	struct call *call = call_for(fixture, artifact);

	if (ret_call)
		*ret_call = call;
	return call_wait(call);
}

int find(struct fixture *fixture, const struct bid_artifact *artifact, unsigned *ret_ttl)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;

	return bid_broker_look_up(fixture->broker, artifact, &file, ret_ttl);
}

void assert_content(int fd, uint8_t byte)
{
	bid_auto_free char *data = NULL;
	size_t len, wanted_len;
	const void *wanted = elf_bytes(byte, &wanted_len);

	assert_int_equal(bid_read_file(fd, 16 << 20, &data, &len), 0);
	assert_int_equal(len, wanted_len);
	assert_memory_equal(data, wanted, len);
}

struct bid_broker_stats stats_of(struct fixture *fixture)
{
	struct bid_broker_stats stats;

	bid_broker_stats(fixture->broker, &stats);
	return stats;
}

static void *caller_main(void *user)
{
	struct caller *caller = user;

	bid_broker_fetch(caller->fixture->broker, caller->call->waiter_id, &caller->artifact);
	return NULL;
}

void caller_start(struct caller *caller, struct fixture *fixture, uint8_t byte)
{
	caller->fixture = fixture;
	caller->artifact = elf_of(byte);
	caller->call = call_begin(fixture);
	assert_int_equal(pthread_create(&caller->thread, NULL, caller_main, caller), 0);
}

void wait_for_no_downloads(struct fixture *fixture)
{
	int64_t begun = now_ms();

	while (stats_of(fixture).downloads > 0) {
		assert_true(now_ms() - begun < PATIENCE_MS);
		sleep_ms(1);
	}
}

void wait_for_waiters(struct fixture *fixture, uint64_t count)
{
	int64_t begun = now_ms();

	while (stats_of(fixture).waiters != count) {
		assert_true(now_ms() - begun < PATIENCE_MS);
		sleep_ms(1);
	}
}
