// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packs of records: what is in one is found, what is damaged counts as none, and who merges them loses nothing. */
#include "store_scene.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "disk/pack/packs.h"
#include "disk/record.h"
#include "disk/record_amend.h"
#include "disk/record_batch.h"

enum { MANY = 20000, FLIPPED = 5, BATCHES = 40, WRITERS = 3, EACH_WRITES = 25, CHANGES = 1000 };

static struct bid_request request_of(unsigned number)
{
	struct bid_request request = { .kind = number % 3 == 2 ? BID_KIND_DEBUGINFO : BID_KIND_ELF };
	unsigned char bytes[20] = { 0x17 };

	/* as good as the same for the eye: it is the keys that are spread */
	memcpy(bytes + 12, &number, sizeof(number));
	assert_int_equal(bid_id_from_bytes(bytes, sizeof(bytes), &request.id), 0);
	return request;
}

static struct bid_pack_key key_of(unsigned number)
{
	struct bid_request request = request_of(number);

	return bid_pack_key(&request.id, request.kind);
}

/* The caller frees it. */
static char *text_of(unsigned number, size_t *ret_len)
{
	char *text;
	int len = asprintf(&text, "{\"number\":%u,\"of\":\"%0*d\"}%32s", number, (int)(number % 300) + 1, 0, "");

	assert_true(len > 0);
	*ret_len = bid_pack_seal(text, (size_t)len - 32);
	return text;
}

/* A pack of the first @n numbers, in memory. */
static struct bid_pack pack_of(unsigned n)
{
	struct bid_pack_item *items = calloc(n + 1, sizeof(*items));
	struct bid_pack pack;
	int fd = memfd_create("pack", MFD_CLOEXEC);

	assert_true(fd >= 0);
	for (unsigned i = 0; i < n; i++) {
		size_t len;

		items[i].text = text_of(i, &len);
		items[i].len = (uint32_t)len;
		items[i].key = key_of(i);
	}
	assert_int_equal(bid_pack_write(fd, items, n, NULL), n);
	/* the order is another now */
	for (unsigned i = 0; i < n; i++)
		free(items[i].text);
	free(items);
	assert_int_equal(bid_pack_open(fd, &pack), 0);
	return pack;
}

/* 0 if it is there, and it must be right then; else what was said. */
static int look_up(const struct bid_pack *pack, unsigned number)
{
	struct bid_pack_key key = key_of(number);
	struct bid_pack_entry entry;
	char *text, *wanted;
	size_t len;
	int r = bid_pack_find(pack, &key, &entry);

	if (r == 0)
		r = bid_pack_read(pack, &entry, &text);
	if (r < 0)
		return r;
	wanted = text_of(number, &len);
	assert_int_equal(entry.len, len);
	assert_string_equal(text, wanted);
	free(wanted);
	free(text);
	return 0;
}

static int count_one(void *user, const struct bid_pack_entry *entry, char *text)
{
	unsigned *count = user;

	assert_non_null(text);
	++*count;
	return 0;
}

static void each_record_is_found_in_a_pack_of_any_size(void **state)
{
	static const unsigned sizes[] = { 0, 1, 2, 63, 64, 65, 129, 1023, 1024, 1025, MANY };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bid_pack pack = pack_of(sizes[i]);
		unsigned all = 0, parts = 0;

		assert_int_equal(pack.n, sizes[i]);
		for (unsigned number = 0; number < sizes[i]; number++)
			assert_int_equal(look_up(&pack, number), 0);
		for (unsigned number = sizes[i]; number < sizes[i] + 200; number++)
			assert_int_equal(look_up(&pack, number), -ENOENT);
		assert_int_equal(bid_pack_check(&pack), 0);
		assert_int_equal(bid_pack_each(&pack, BID_PACK_ALL, count_one, &all), 0);
		for (unsigned first = 0; first < 256; first++)
			assert_int_equal(bid_pack_each(&pack, first, count_one, &parts), 0);
		assert_int_equal(all, sizes[i]);
		assert_int_equal(parts, sizes[i]);
		bid_pack_release(&pack);
	}
}

/* Of several records with one key the one of the lowest rank counts, and what is damaged is not carried over. */
static void what_is_merged_is_the_first_and_the_sound(void **state)
{
	struct bid_pack pack = pack_of(3), merged;
	struct bid_pack_item items[5];
	struct bid_pack_key key = key_of(0);
	struct bid_pack_entry entry;
	char *found;
	size_t len;
	char *text = text_of(2, &len), *damaged = text_of(3, &len);
	int fd = memfd_create("merged", MFD_CLOEXEC);

	assert_int_equal(bid_pack_items(&pack, 1, items), 0);
	items[3] = (struct bid_pack_item){ .key = key_of(0), .text = text, .len = (uint32_t)strlen(text) };
	damaged[3] ^= 1;
	items[4] = (struct bid_pack_item){ .key = key_of(3), .text = damaged, .len = (uint32_t)len };
	assert_int_equal(bid_pack_write(fd, items, 5, NULL), 3);
	assert_int_equal(bid_pack_open(fd, &merged), 0);
	assert_int_equal(bid_pack_check(&merged), 0);
	assert_int_equal(look_up(&merged, 1), 0);
	assert_int_equal(look_up(&merged, 2), 0);
	assert_int_equal(look_up(&merged, 3), -ENOENT);
	/* number 0 has the text of 2 now: as told */
	assert_int_equal(bid_pack_find(&merged, &key, &entry), 0);
	assert_int_equal(bid_pack_read(&merged, &entry, &found), 0);
	assert_string_equal(found, text);
	free(found);
	free(text);
	free(damaged);
	bid_pack_release(&pack);
	bid_pack_release(&merged);
}

static int note_damage(void *user, const struct bid_pack_entry *entry, char *text)
{
	bool *damaged = user;

	*damaged = *damaged || !text;
	return 0;
}

/* Whatever is in the file: no crash, and no record but the right one. Returns whether it shows that something is wrong. */
static bool shows(int fd)
{
	bool damaged = false;
	struct bid_pack pack;

	if (bid_pack_open(fd, &pack) < 0)
		return true;
	for (unsigned number = 0; number < FLIPPED; number++)
		look_up(&pack, number);
	assert_int_not_equal(look_up(&pack, FLIPPED), 0);
	damaged = bid_pack_check(&pack) < 0;
	if (bid_pack_each(&pack, BID_PACK_ALL, note_damage, &damaged) < 0)
		damaged = true;
	return damaged;
}

static void every_flipped_bit_and_every_cut_shows(void **state)
{
	struct bid_pack pack = pack_of(FLIPPED);
	char *data;
	size_t len;

	assert_int_equal(bid_read_file(pack.fd, 1 << 20, &data, &len), 0);
	assert_false(shows(pack.fd));
	for (size_t at = 0; at < len; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			char byte = (char)(data[at] ^ 1 << bit);

			assert_int_equal(bid_pwrite_full(pack.fd, &byte, 1, (off_t)at), 0);
			if (!shows(pack.fd))
				fail_msg("bit %u of byte %zu of %zu", bit, at, len);
		}
		assert_int_equal(bid_pwrite_full(pack.fd, data + at, 1, (off_t)at), 0);
	}
	for (size_t cut = len; cut-- > 0;) {
		assert_int_equal(ftruncate(pack.fd, (off_t)cut), 0);
		assert_true(shows(pack.fd));
	}
	free(data);
	bid_pack_release(&pack);
}

static struct bid_record record_of(unsigned number)
{
	static const struct bid_origin origin = { .how = "added", .file = "/usr/bin/program" };

	return (struct bid_record){ .request = request_of(number), .origin = &origin, .size = number };
}

static void write_batch(struct bid_store *store, unsigned first, unsigned n)
{
	struct bid_record_batch *batch;

	assert_int_equal(bid_record_batch_new(store, &batch), 0);
	for (unsigned i = first; i < first + n; i++) {
		struct bid_record record = record_of(i);

		assert_int_equal(bid_record_batch_add(batch, &record), 0);
	}
	assert_int_equal(bid_record_batch_n(batch), n);
	assert_int_equal(bid_record_batch_write(batch), 0);
	assert_int_equal(bid_record_batch_n(batch), 0);
	bid_record_batch_free(batch);
}

/* The size that is recorded, or a negative errno. */
static json_int_t recorded(struct bid_store *store, unsigned number)
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

static unsigned count_files(const struct store_scene *scene, const char *path)
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

static struct bid_store *open_again(const struct store_scene *scene, unsigned flags)
{
	struct bid_store *store;
	char path[96];

	snprintf(path, sizeof(path), "%s/store", scene->directory);
	assert_int_equal(bid_store_open(path, flags, &store), 0);
	return store;
}

static void what_changes_gets_a_file_of_its_own(void **state)
{
	struct store_scene *scene = *state;
	struct bid_request request = request_of(7);
	struct bid_store *other = open_again(scene, 0);
	struct bid_record record = record_of(7);
	json_t *json;

	assert_int_equal(recorded(other, 7), -ENOENT);
	write_batch(scene->store, 0, 100);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 1);
	assert_int_equal(count_files(scene, ".bidfs/record"), 0);
	for (unsigned i = 0; i < 100; i++)
		assert_true(recorded(scene->store, i) == i && recorded(other, i) == i);
	assert_int_equal(recorded(other, 100), -ENOENT);

	/* dropped, and recorded again, by itself and in a batch */
	bid_record_drop(scene->store, &request);
	assert_int_equal(recorded(other, 7), -ENOENT);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 1);
	record.size = 777;
	assert_int_equal(bid_record_write(scene->store, &record), 0);
	assert_int_equal(recorded(other, 7), 777);
	bid_record_drop(scene->store, &request);
	assert_int_equal(recorded(other, 7), -ENOENT);
	write_batch(scene->store, 7, 2);
	assert_int_equal(recorded(other, 7), 7);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 1);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 2);

	/* one word of it changes, the others stay */
	request = request_of(9);
	assert_int_equal(bid_record_set(scene->store, &request, "digest", "xxh3-128:0"), 0);
	assert_int_equal(bid_record_read(other, &request, &json), 0);
	assert_string_equal(json_string_value(json_object_get(json, "digest")), "xxh3-128:0");
	assert_string_equal(json_string_value(json_object_get(json, "file")), "/usr/bin/program");
	json_decref(json);

	/* what has no pack leaves nothing behind */
	record = record_of(5000);
	assert_int_equal(bid_record_write(scene->store, &record), 0);
	bid_record_drop(scene->store, &record.request);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 3);
	bid_store_free(other);
}

/* What is said in a record of its digest; "" if nothing is. */
static void recorded_digest(struct bid_store *store, unsigned number, char ret_digest[static 64])
{
	struct bid_request request = request_of(number);
	const char *digest;
	json_t *json;

	assert_int_equal(bid_record_read(store, &request, &json), 0);
	digest = json_string_value(json_object_get(json, "digest"));
	snprintf(ret_digest, 64, "%s", digest ? digest : "");
	json_decref(json);
}

static struct bid_record_amends *amends_of(struct bid_store *store)
{
	struct bid_record_amends *amends;

	assert_int_equal(bid_record_amends_new(store, true, &amends), 0);
	return amends;
}

static void digests_are_amended_in_the_pack(void **state)
{
	struct store_scene *scene = *state;
	struct bid_store *other = open_again(scene, 0);
	struct bid_record_amends *amends = amends_of(scene->store);
	struct bid_record record = record_of(3);
	char digest[64], said[64];

	write_batch(scene->store, 0, 100);
	write_batch(scene->store, 100, 20);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 2);
	record.size = 333;
	assert_int_equal(bid_record_write(scene->store, &record), 0);
	for (unsigned i = 0; i < 120; i += 3) {
		struct bid_request request = request_of(i);

		snprintf(digest, sizeof(digest), "xxh3-128:%032x", i);
		assert_int_equal(bid_record_amends_digest(amends, &request, digest), 0);
	}
	/* one changes meanwhile, which the digest is not of, perhaps */
	record = record_of(6);
	record.size = 666;
	assert_int_equal(bid_record_write(scene->store, &record), 0);
	assert_int_equal(bid_record_amends_write(amends), 0);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 1);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 2);
	for (unsigned i = 0; i < 120; i++) {
		snprintf(digest, sizeof(digest), "xxh3-128:%032x", i);
		recorded_digest(other, i, said);
		assert_string_equal(said, i % 3 == 0 && i != 6 ? digest : "");
		assert_int_equal(recorded(other, i), i == 3 ? 333 : i == 6 ? 666 : i);
	}
	bid_record_amends_free(amends);
	bid_store_free(other);
}

/* Digests of a few records: to write all packs for them would be out of proportion. */
static void few_digests_leave_the_packs_alone(void **state)
{
	struct store_scene *scene = *state;
	struct bid_record_amends *amends = amends_of(scene->store);
	struct bid_request request = request_of(5), changed = request_of(6);
	char said[64];

	write_batch(scene->store, 0, 1000);
	write_batch(scene->store, 1000, 100);
	assert_int_equal(bid_record_amends_digest(amends, &request, "xxh3-128:5"), 0);
	assert_int_equal(bid_record_amends_digest(amends, &changed, "xxh3-128:6"), 0);
	assert_int_equal(bid_record_set(scene->store, &changed, "how", "fetched"), 0);
	assert_int_equal(bid_record_amends_write(amends), 0);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 2);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 2);
	recorded_digest(scene->store, 5, said);
	assert_string_equal(said, "xxh3-128:5");
	recorded_digest(scene->store, 6, said);
	assert_string_equal(said, "");
	bid_record_amends_free(amends);
}

/* Who was asked for some ids does not write what is of others. */
static void amends_of_some_ids_leave_the_packs_alone(void **state)
{
	struct store_scene *scene = *state;
	struct bid_request request = request_of(5), voided = request_of(6);
	struct bid_record_amends *amends;
	char said[64];

	write_batch(scene->store, 0, 10);
	write_batch(scene->store, 10, 2);
	assert_int_equal(bid_record_amends_new(scene->store, false, &amends), 0);
	assert_int_equal(bid_record_amends_digest(amends, &request, "xxh3-128:5"), 0);
	bid_record_drop(scene->store, &voided);
	assert_int_equal(bid_record_amends_void(amends, &voided), 0);
	assert_int_equal(bid_record_amends_write(amends), 0);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 2);
	recorded_digest(scene->store, 5, said);
	assert_string_equal(said, "xxh3-128:5");
	assert_true(bid_record_is_void(scene->store, &voided));
	bid_record_amends_free(amends);
}

/* What was written there meanwhile is no empty file any more. */
static void a_record_is_not_taken_for_a_void_one(void **state)
{
	struct store_scene *scene = *state;
	struct bid_request request = request_of(5);
	struct bid_record record = record_of(5);

	assert_int_equal(bid_record_write(scene->store, &record), 0);
	run(scene, "cd store/.bidfs/record/17 && ls -i > ../../../../before");
	assert_int_equal(bid_record_unvoid(scene->store, &request), -EBUSY);
	run(scene, "cd store/.bidfs/record/17 && ls -i | cmp - ../../../../before");
	assert_int_equal(recorded(scene->store, 5), 5);
}

static void drop(struct bid_store *store, struct bid_record_amends *amends, unsigned number)
{
	struct bid_request request = request_of(number);

	bid_record_drop(store, &request);
	assert_true(bid_record_is_void(store, &request));
	assert_int_equal(bid_record_amends_void(amends, &request), 0);
}

static void voided_records_leave_the_packs(void **state)
{
	struct store_scene *scene = *state;
	struct bid_store *other = open_again(scene, 0);
	struct bid_record_amends *amends = amends_of(scene->store);
	struct bid_record record = record_of(8);

	write_batch(scene->store, 0, 100);
	write_batch(scene->store, 100, 20);
	for (unsigned i = 5; i < 120; i += 50)
		drop(scene->store, amends, i);
	drop(scene->store, amends, 8);
	record.size = 888;
	assert_int_equal(bid_record_write(scene->store, &record), 0);
	assert_int_equal(bid_record_amends_write(amends), 0);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 1);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 1);
	for (unsigned i = 0; i < 120; i++)
		assert_int_equal(recorded(other, i), i % 50 == 5 ? -ENOENT : i == 8 ? 888 : (json_int_t)i);
	/* it comes again as any other */
	write_batch(scene->store, 5, 1);
	assert_int_equal(recorded(other, 5), 5);

	/* nothing is left of the last */
	for (unsigned i = 0; i < 120; i++)
		if (recorded(scene->store, i) >= 0 && i != 5 && i != 8)
			drop(scene->store, amends, i);
	drop(scene->store, amends, 8);
	assert_int_equal(bid_record_amends_write(amends), 0);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 1);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 0);
	bid_record_amends_free(amends);
	bid_store_free(other);
}

/* What cannot be read may say what is to be no more. */
static void beside_an_unknown_pack_voids_stay(void **state)
{
	struct store_scene *scene = *state;
	struct bid_record_amends *amends = amends_of(scene->store);

	write_batch(scene->store, 0, 10);
	run(scene, "cd store/.bidfs/pack && cp * 0123456789abcdef && printf '\\002' | "
		   "dd of=0123456789abcdef bs=1 seek=8 conv=notrunc status=none");
	drop(scene->store, amends, 3);
	assert_int_equal(bid_record_amends_write(amends), 0);
	assert_int_equal(recorded(scene->store, 3), -ENOENT);
	assert_int_equal(count_files(scene, ".bidfs/record/17"), 1);
	/* and it would have come again */
	run(scene, "printf '\\001' | dd of=store/.bidfs/pack/0123456789abcdef bs=1 seek=8 conv=notrunc status=none");
	assert_int_equal(recorded(scene->store, 3), -ENOENT);
	bid_record_amends_free(amends);
}

static void who_merges_does_so_alone(void **state)
{
	struct store_scene *scene = *state;
	int hold;

	write_batch(scene->store, 0, 10);
	assert_int_equal(bid_packs_hold(scene->store, 0, &hold), 0);
	write_batch(scene->store, 10, 10);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 2);
	close(hold);
	write_batch(scene->store, 20, 10);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 1);
	for (unsigned i = 0; i < 30; i++)
		assert_int_equal(recorded(scene->store, i), i);
}

/* Who may read the directory may lock it, and that is everybody. */
static void who_may_only_read_is_in_nobodys_way(void **state)
{
	struct store_scene *scene = *state;
	char path[128];
	struct stat st;
	int dir, hold, other;

	write_batch(scene->store, 0, 10);
	snprintf(path, sizeof(path), "%s/store/.bidfs/pack", scene->directory);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	assert_int_equal(flock(dir, LOCK_EX | LOCK_NB), 0);
	write_batch(scene->store, 10, 10);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 1);
	assert_int_equal(bid_packs_hold(scene->store, 0, &hold), 0);
	assert_int_equal(fstat(hold, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	/* and who may write waits for a while only */
	assert_int_equal(bid_packs_hold(scene->store, 50, &other), -EBUSY);
	close(hold);

	run(scene, "rm store/.bidfs/pack.lock && chmod 0775 store/.bidfs/pack");
	assert_int_equal(bid_packs_hold(scene->store, 0, &hold), 0);
	assert_int_equal(fstat(hold, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0660);
	close(hold);
	close(dir);
}

/* Packs stay as they are, and digests go to files. */
static void without_the_lock_nothing_is_merged_or_lost(void **state)
{
	struct store_scene *scene = *state;
	struct bid_record_amends *amends = amends_of(scene->store);
	struct bid_request request = request_of(5);
	char said[64];
	int hold;

	write_batch(scene->store, 0, 10);
	run(scene, "rm store/.bidfs/pack.lock && mkdir store/.bidfs/pack.lock");
	assert_int_equal(bid_packs_hold(scene->store, BID_PACKS_WAIT_MS, &hold), -EISDIR);
	write_batch(scene->store, 10, 10);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 2);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(recorded(scene->store, i), i);
	assert_int_equal(bid_record_amends_digest(amends, &request, "xxh3-128:5"), 0);
	assert_int_equal(bid_record_amends_write(amends), -EISDIR);
	assert_int_equal(count_files(scene, ".bidfs/pack"), 2);
	recorded_digest(scene->store, 5, said);
	assert_string_equal(said, "xxh3-128:5");
	bid_record_amends_free(amends);
}

static void packs_become_one_before_they_are_many(void **state)
{
	struct store_scene *scene = *state;
	struct bid_store *other = open_again(scene, 0);
	unsigned n = 0, most = 0;

	for (unsigned i = 1; i <= BATCHES; i++) {
		unsigned files;

		write_batch(scene->store, n, i % 7 + 2);
		n += i % 7 + 2;
		files = count_files(scene, ".bidfs/pack");
		most = files > most ? files : most;
		/* who had them open finds all, too */
		for (unsigned j = 0; j < n; j += 13)
			assert_int_equal(recorded(other, j), j);
	}
	for (unsigned j = 0; j < n; j++)
		assert_int_equal(recorded(other, j), j);
	assert_true(most <= 6);
	bid_store_free(other);
}

/* The times of the directory do not tell two changes apart between which its clock has not ticked. */
static void changes_in_quick_succession_are_seen(void **state)
{
	struct store_scene *scene = *state;
	char here[128], away[128];

	write_batch(scene->store, 0, 10);
	run(scene, "mv store/.bidfs/pack/* store/.bidfs/pack/0123456789abcdef");
	snprintf(here, sizeof(here), "%s/store/.bidfs/pack/0123456789abcdef", scene->directory);
	snprintf(away, sizeof(away), "%s/store/.bidfs/pack/away", scene->directory);
	for (unsigned i = 0; i < CHANGES; i++) {
		assert_int_equal(recorded(scene->store, 5), 5);
		assert_int_equal(rename(here, away), 0);
		assert_int_equal(recorded(scene->store, 5), -ENOENT);
		assert_int_equal(rename(away, here), 0);
	}
}

/* Its own numbers; exits. */
static void writer(const struct store_scene *scene, unsigned number)
{
	struct bid_store *store = open_again(scene, BID_STORE_WRITE);

	for (unsigned i = 0; i < EACH_WRITES; i++) {
		unsigned first = 10000 + (i * WRITERS + number) * 10;

		write_batch(store, first, 10);
		for (unsigned j = 0; j < 10; j++)
			if (recorded(store, first + j) != first + j)
				_exit(1);
	}
	_exit(0);
}

static void several_who_merge_at_once_lose_nothing(void **state)
{
	struct store_scene *scene = *state;
	pid_t writers[WRITERS];
	unsigned running = WRITERS;

	write_batch(scene->store, 0, 10);
	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i] = fork();
		assert_true(writers[i] >= 0);
		if (writers[i] == 0)
			writer(scene, i);
	}
	while (running > 0) {
		int status;

		for (unsigned i = 0; i < 10; i++)
			assert_int_equal(recorded(scene->store, i), i);
		if (waitpid(-1, &status, WNOHANG) > 0) {
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
			running--;
		}
	}
	for (unsigned i = 10000; i < 10000 + WRITERS * EACH_WRITES * 10; i++)
		assert_int_equal(recorded(scene->store, i), i);
}

/* Anything may lie in the place of packs. */
static void what_is_no_pack_is_passed_over(void **state)
{
	struct store_scene *scene = *state;

	write_batch(scene->store, 0, 10);
	run(scene, "cd store/.bidfs/pack && mkdir 0123456789abcdef && mkfifo 1123456789abcdef && touch 2123456789abcdef other && "
		   "ln -s /etc/passwd 3123456789abcdef && head -c 99999 /dev/urandom > 4123456789abcdef");
	assert_int_equal(recorded(scene->store, 9), 9);
	write_batch(scene->store, 10, 10);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(recorded(scene->store, i), i);
	run(scene, "rm -rf store/.bidfs/pack");
	assert_int_equal(recorded(scene->store, 9), -ENOENT);
	write_batch(scene->store, 0, 10);
	assert_int_equal(recorded(scene->store, 9), 9);
	run(scene, "rm -rf store/.bidfs/pack && touch store/.bidfs/pack");
	assert_int_equal(recorded(scene->store, 9), -ENOENT);
	bid_store_free(scene->store);
	scene->store = open_again(scene, BID_STORE_WRITE);
	write_batch(scene->store, 0, 10);
	assert_int_equal(recorded(scene->store, 9), 9);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, store_scene_begin, store_scene_end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_record_is_found_in_a_pack_of_any_size),
		cmocka_unit_test(what_is_merged_is_the_first_and_the_sound),
		cmocka_unit_test(every_flipped_bit_and_every_cut_shows),
		TEST(what_changes_gets_a_file_of_its_own),
		TEST(digests_are_amended_in_the_pack),
		TEST(voided_records_leave_the_packs),
		TEST(beside_an_unknown_pack_voids_stay),
		TEST(few_digests_leave_the_packs_alone),
		TEST(amends_of_some_ids_leave_the_packs_alone),
		TEST(a_record_is_not_taken_for_a_void_one),
		TEST(who_merges_does_so_alone),
		TEST(who_may_only_read_is_in_nobodys_way),
		TEST(without_the_lock_nothing_is_merged_or_lost),
		TEST(packs_become_one_before_they_are_many),
		TEST(changes_in_quick_succession_are_seen),
		TEST(several_who_merge_at_once_lose_nothing),
		TEST(what_is_no_pack_is_passed_over),
	};

	return cmocka_run_group_tests(tests, store_scene_compile, store_scene_clean);
}
