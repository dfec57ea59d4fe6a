// SPDX-License-Identifier: LGPL-2.1-or-later
/* A file hard-linked into the store is edited in place, again and again: no id ever has another's file. */
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"

enum { EDITS = 1000, ID_LEN = 20 };

struct file_content {
	char *data; /* owned */
	size_t len;
	size_t id_at; /* where its build-id is */
};

static struct file_content read_fd(int fd)
{
	struct file_content content = { 0 };

	assert_int_equal(bid_read_file(fd, 1 << 20, &content.data, &content.len), 0);
	return content;
}

static struct file_content read_content(const struct store_fixture *fixture, const char *name, const char *hex)
{
	struct bid_id id = id_of(hex);
	struct file_content content;
	char path[96];
	char *at;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	content = read_fd(fd);
	close(fd);
	at = memmem(content.data, content.len, id.bytes, id.len);
	assert_non_null(at);
	content.id_at = (size_t)(at - content.data);
	return content;
}

static void put(int fd, const void *data, size_t len, size_t at)
{
	assert_int_equal(bid_pwrite_full(fd, data, len, (off_t)at), 0);
}

static void put_all(int fd, const struct file_content *content)
{
	put(fd, content->data, content->len, 0);
	assert_int_equal(ftruncate(fd, (off_t)content->len), 0);
}

/* Edit the file, with the content @own before; @other is the content of another build. */
static void edit(int fd, const struct file_content *own, const struct file_content *other)
{
	char bytes[64];
	size_t at = (size_t)rand() % own->len;

	switch (rand() % 6) {
	case 0:
		put_all(fd, own);
		break;
	case 1:
		put_all(fd, other);
		break;
	case 2:
		assert_int_equal(ftruncate(fd, (off_t)at), 0);
		break;
	case 3:
		/* the size stays */
		put(fd, rand() % 2 ? own->data + own->id_at : other->data + other->id_at, ID_LEN, own->id_at);
		break;
	case 4:
		put(fd, &(char){ (char)rand() }, 1, own->id_at + (size_t)rand() % ID_LEN);
		break;
	default:
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (char)rand();
		put(fd, bytes, sizeof(bytes), at);
	}
}

/* The file served as @hex carries the id at @id_at, or a copy of the whole build is there. Is it served? */
static bool is_right(const struct store_fixture *fixture, const char *hex, const struct file_content *own,
		     const struct file_content *other)
{
	struct bid_artifact artifact = request_for(hex, BID_KIND_ELF);
	struct bid_file file = BID_FILE_NONE;
	struct file_content content;
	int r = bid_store_find(fixture->store, &artifact, BID_MAY_DERIVE, &file);

	if (r < 0) {
		assert_true(r == -EBADMSG || r == -ENOENT);
		return false;
	}
	content = read_fd(file.fd);
	bid_file_release(&file);
	assert_true(content.len >= own->id_at + ID_LEN);
	assert_memory_equal(content.data + own->id_at, artifact.id.bytes, ID_LEN);
	assert_false(content.len == other->len && memcmp(content.data, other->data, other->len) == 0);
	free(content.data);
	return true;
}

static void test_edited_file_never_serves_another_id(void **state)
{
	struct store_fixture *fixture = *state;
	struct file_content a = read_content(fixture, "a", ID_A), b = read_content(fixture, "b", ID_B);
	unsigned served = 0;
	struct bid_added added;
	char path[96];
	int fd;

	/* a note that is elsewhere after an edit would be another test */
	assert_int_equal(a.id_at, b.id_at);
	snprintf(path, sizeof(path), "%s/plain", fixture->directory);
	run(fixture, "cp a plain && chmod 755 plain");
	assert_int_equal(bid_store_add(fixture->store, path, BID_LINK_HARD, &added), 0);
	assert_int_equal(added.link, BID_LINK_HARD);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	bid_log_init("test", BID_LOG_ERROR);
	srand(17);
	for (unsigned i = 0; i < EDITS; i++) {
		edit(fd, &a, &b);
		served += is_right(fixture, ID_A, &a, &b);
		is_right(fixture, ID_B, &b, &a);
	}
	assert_true(served > EDITS / 20 && served < EDITS - EDITS / 20);
	/* a repaired file is served again */
	put_all(fd, &a);
	assert_true(is_right(fixture, ID_A, &a, &b));
	close(fd);
	free(a.data);
	free(b.data);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_fixture_begin, store_fixture_end)
	const struct CMUnitTest tests[] = {
		TEST(test_edited_file_never_serves_another_id),
	};

	return cmocka_run_group_tests(tests, store_fixture_compile, store_fixture_clean);
}
