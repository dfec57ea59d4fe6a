// SPDX-License-Identifier: LGPL-2.1-or-later
#include "pack_scene.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk/record_batch.h"

struct bid_request request_of(unsigned number)
{
	struct bid_request request = { .kind = number % 3 == 2 ? BID_KIND_DEBUGINFO : BID_KIND_ELF };
	unsigned char bytes[20] = { 0x17 };

	/* as good as the same for the eye: it is the keys that are spread */
	memcpy(bytes + 12, &number, sizeof(number));
	assert_int_equal(bid_id_from_bytes(bytes, sizeof(bytes), &request.id), 0);
	return request;
}

struct bid_record record_of(unsigned number)
{
	static const struct bid_origin origin = { .how = "added", .file = "/usr/bin/program" };

	return (struct bid_record){ .request = request_of(number), .origin = &origin, .size = number };
}

void write_batch(struct bid_store *store, unsigned first, unsigned n)
{
	struct bid_record_batch *batch;

	assert_int_equal(bid_record_batch_new(store, &batch), 0);
	for (unsigned i = first; i < first + n; i++) {
		struct bid_record record = record_of(i);

		assert_int_equal(bid_record_batch_add(batch, &record, false), 0);
	}
	assert_int_equal(bid_record_batch_n(batch), n);
	assert_int_equal(bid_record_batch_write(batch), 0);
	assert_int_equal(bid_record_batch_n(batch), 0);
	bid_record_batch_free(batch);
}

json_int_t recorded(struct bid_store *store, unsigned number)
{
	struct bid_request request = request_of(number);
	json_int_t size;
	json_t *json;
	int r = bid_record_read(store, &request, &json);

	if (r < 0)
		return r;
	size = json_integer_value(json_object_get(json, "size"));
	json_decref(json);
	return size;
}

unsigned count_files(const struct store_scene *scene, const char *path)
{
	char *whole;
	unsigned n = 0;
	DIR *dir;

	assert_true(asprintf(&whole, "%s/store/%s", scene->directory, path) >= 0);
	dir = opendir(whole);
	free(whole);
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

struct bid_store *open_again(const struct store_scene *scene, unsigned flags)
{
	struct bid_store *store;
	char path[96];

	snprintf(path, sizeof(path), "%s/store", scene->directory);
	assert_int_equal(bid_store_open(path, flags, &store), 0);
	return store;
}
