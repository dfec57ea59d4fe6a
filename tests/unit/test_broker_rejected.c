// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rejected downloads, the negative cache entries of their servers, and bytes that differ from the first ones. */
#include "held_server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/evict.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "broker/broker_types.h"

/* Count the files of the quarantine. @ret_st: fstat(2) of the last file with the id @hex in its name, if any. */
static unsigned quarantined(struct fixture *fixture, const char *hex, struct stat *ret_st)
{
	char path[256];
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	unsigned n = 0;

	snprintf(path, sizeof(path), "%s/.bidfs/quarantine", fixture->directory);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		n++;
		if (strncmp(entry->d_name, hex, strlen(hex)) == 0)
			assert_int_equal(fstatat(dirfd(dir), entry->d_name, ret_st, AT_SYMLINK_NOFOLLOW), 0);
	}
	return n;
}

static void test_download_with_another_id_goes_to_the_quarantine(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct stat st = { 0 };
	struct call *call;
	size_t len;

	elf_bytes(0xb, &len);
	fixture_broker(fixture, &unhedged);
	put_elf(fixture_memory(fixture, "wrong"), 0xa, 0xb);
	assert_int_equal(fetch(fixture, &artifact, &call), -EBADMSG);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_REJECTED);
	assert_non_null(strstr(call->texts[0], "0b0b0b0b"));
	assert_int_equal(quarantined(fixture, "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a.elf.", &st), 1);
	/* refused early, with the bytes that had come */
	assert_in_range(st.st_size, 64 * 1024, len - 1);
	assert_int_equal(st.st_mode & 07777, 0400);
}

static void test_quarantine_takes_64_files_of_1_mib(void **state)
{
	struct fixture *fixture = *state;
	bid_auto_free char *page = calloc(1, 3 << 20);
	struct bid_artifact large = elf_of(0xc0);
	struct bid_forgotten left, gone;
	struct stat st = { 0 };
	struct bid_server *wrong;

	assert_non_null(page);
	fixture_broker(fixture, &unhedged);
	wrong = fixture_memory(fixture, "wrong");
	/* the first bytes are those of an ELF file */
	memcpy(page, elf_bytes(0xb, &(size_t){ 0 }), 64);
	assert_int_equal(memory_server_put(wrong, &large, page, 3 << 20), 0);
	assert_int_equal(fetch(fixture, &large, NULL), -EBADMSG);
	assert_int_equal(quarantined(fixture, "c0c0c0c0", &st), 1);
	assert_in_range(st.st_size, 1, 1 << 20);
	for (uint8_t byte = 0x10; byte < 0x10 + 80; byte++) {
		struct bid_artifact artifact = elf_of(byte);

		assert_int_equal(memory_server_put(wrong, &artifact, "<html>", 6), 0);
		assert_int_equal(fetch(fixture, &artifact, NULL), -EBADMSG);
	}
	assert_int_equal(quarantined(fixture, "c0c0c0c0", &st), 64);
	assert_int_equal(bid_store_forget(fixture->store, INT64_MAX, false, &left, &gone), 0);
	assert_int_equal(gone.quarantined, 64);
	assert_int_equal(quarantined(fixture, "c0c0c0c0", &st), 0);
}

/* A login page is detected in place of a program, and undetectable in place of a source file. */
static void test_server_gets_the_result_of_the_check(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact wrong = elf_of(1), right = elf_of(0xa), file = { .id = right.id, .kind = BID_KIND_SOURCE };
	struct held_server *held;
	struct bid_subpath *subpath;

	assert_int_equal(bid_subpath_source("/a.c", &subpath), 0);
	file.subpath = subpath;
	fixture_broker(fixture, &unhedged);
	held = fixture_held(fixture, "held");
	held_elf(held, 0xa);
	assert_int_equal(fetch(fixture, &wrong, NULL), -EBADMSG);
	assert_int_equal(held->wrong, 1);
	assert_int_equal(fetch(fixture, &file, NULL), 0);
	assert_int_equal(held->right, 0);
	assert_int_equal(fetch(fixture, &right, NULL), 0);
	assert_int_equal(held->right, 1);
	assert_int_equal(held->wrong, 1);
	bid_subpath_unref(subpath);
}

/* A server that sent a wrong file gets no request for it for a while. The artifact is not absent. */
static void test_wrong_file_is_cached_per_server(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *wrong;
	struct call *call;
	unsigned ttl;

	fixture_broker(fixture, &unhedged);
	wrong = fixture_memory(fixture, "wrong");
	put_elf(wrong, 0xa, 0xb);
	assert_int_equal(fetch(fixture, &artifact, NULL), -EBADMSG);
	sleep_ms(300); /* the result expires */
	assert_int_equal(fetch(fixture, &artifact, &call), -EBADMSG);
	assert_int_equal(call->outcomes[0], BID_OUTCOME_REJECTED);
	assert_non_null(strstr(call->texts[0], "wrong content earlier"));
	assert_int_equal(memory_server_requests(wrong), 1);
	assert_int_equal(find(fixture, &artifact, NULL), -EINPROGRESS);
	assert_int_equal(bid_negative_lookup(fixture->broker->negative, &artifact, "wrong", &ttl), BID_OUTCOME_REJECTED);
	assert_in_range(ttl, 30, 90);
	bid_negative_forget(fixture->broker->negative, &artifact, "wrong");
	put_elf(wrong, 0xa, 0xa);
	sleep_ms(300);
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
}

/* All sections are there, but fewer bytes than announced. */
static void test_body_shorter_than_announced_is_rejected(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct held_server *held;
	struct call *call;

	fixture_broker(fixture, &unhedged);
	held = fixture_held(fixture, "held");
	held_elf(held, 0xa);
	held->announce = held->body_len + 1;
	assert_int_equal(fetch(fixture, &artifact, &call), -EBADMSG);
	assert_non_null(strstr(call->texts[0], "announced"));
	sleep_ms(300); /* the result expires */
	bid_negative_forget(fixture->broker->negative, &artifact, "held");
	held->announce = held->body_len - 1;
	assert_int_equal(fetch(fixture, &artifact, &call), -EBADMSG);
	sleep_ms(300);
	bid_negative_forget(fixture->broker->negative, &artifact, "held");
	held->announce = BID_SIZE_UNKNOWN;
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
}

static void evict_all(struct fixture *fixture)
{
	struct bid_evict_config config = { .limits.cache_size = 1 };
	struct bid_evict_stats stats;

	/* open files are not evicted: the broker has closed this one */
	for (struct call *call = fixture->calls; call; call = call->next) {
		bid_close(call->fd);
		call->fd = -1;
	}
	assert_int_equal(bid_store_evict(fixture->store, &config, &stats), 0);
	assert_int_equal(stats.evicted, 1);
}

static void test_changed_bytes_are_refused_until_accepted(void **state)
{
	struct fixture *fixture = *state;
	struct bid_artifact artifact = elf_of(0xa);
	struct bid_server *first, *second;
	size_t len;
	const void *original = elf_bytes(0xa, &len);
	bid_auto_free char *changed = calloc(1, len + 16);
	struct call *call;

	assert_non_null(changed);
	memcpy(changed, original, len);
	fixture_broker(fixture, &unhedged);
	first = fixture_memory(fixture, "first");
	put_elf(first, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, NULL), 0);
	fixture_end_broker(fixture);
	evict_all(fixture);

	/* the same build by its id, and sound, but another file */
	fixture_broker(fixture, &unhedged);
	first = fixture_memory(fixture, "first");
	assert_int_equal(memory_server_put(first, &artifact, changed, len + 16), 0);
	assert_int_equal(fetch(fixture, &artifact, &call), -EBADMSG);
	assert_non_null(strstr(call->texts[0], "other bytes"));
	assert_int_equal(call->outcomes[0], BID_OUTCOME_REJECTED);
	fixture_end_broker(fixture);

	/* another server has the first bytes */
	fixture_broker(fixture, &unhedged);
	first = fixture_memory(fixture, "first");
	assert_int_equal(memory_server_put(first, &artifact, changed, len + 16), 0);
	second = fixture_memory(fixture, "second");
	put_elf(second, 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_content(call->fd, 0xa);
	fixture_end_broker(fixture);
	evict_all(fixture);

	/* the user accepts the new bytes, and from then on they are the expected ones */
	fixture_broker(fixture, &unhedged);
	first = fixture_memory(fixture, "first");
	assert_int_equal(bid_broker_refresh(fixture->broker, &artifact, true), 0);
	assert_int_equal(memory_server_put(first, &artifact, changed, len + 16), 0);
	assert_int_equal(fetch(fixture, &artifact, &call), 0);
	assert_int_equal(call->size, len + 16);
	fixture_end_broker(fixture);
	evict_all(fixture);
	fixture_broker(fixture, &unhedged);
	put_elf(fixture_memory(fixture, "first"), 0xa, 0xa);
	assert_int_equal(fetch(fixture, &artifact, NULL), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_download_with_another_id_goes_to_the_quarantine),
		fixture_test(test_quarantine_takes_64_files_of_1_mib),
		fixture_test(test_server_gets_the_result_of_the_check),
		fixture_test(test_wrong_file_is_cached_per_server),
		fixture_test(test_body_shorter_than_announced_is_rejected),
		fixture_test(test_changed_bytes_are_refused_until_accepted),
	};

	/* the tests provoke warnings */
	bid_log_init("test", BID_LOG_ERROR);
	return cmocka_run_group_tests(tests, fixture_compile, fixture_clean);
}
