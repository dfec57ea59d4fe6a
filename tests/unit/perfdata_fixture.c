// SPDX-License-Identifier: LGPL-2.1-or-later
#include "perfdata_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "base/io.h"

void recording_release(struct recording *recording)
{
	free(recording->data);
	recording->data = NULL;
}

void put(struct recording *recording, const void *data, size_t len)
{
	if (recording->len + len > recording->room) {
		recording->room = 2 * (recording->len + len);
		recording->data = realloc(recording->data, recording->room);
		assert_non_null(recording->data);
	}
	if (data)
		memcpy(recording->data + recording->len, data, len);
	else
		memset(recording->data + recording->len, 0, len);
	recording->len += len;
}

static void store(const struct recording *recording, uint8_t *to, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[recording->big ? size - 1 - i : i] = (uint8_t)(value >> 8 * i);
}

void put_number(struct recording *recording, uint64_t value, size_t size)
{
	uint8_t bytes[8];

	store(recording, bytes, value, size);
	put(recording, bytes, size);
}

void set64(struct recording *recording, size_t at, uint64_t value)
{
	store(recording, recording->data + at, value, 8);
}

void begin(struct recording *recording, uint32_t type, uint16_t misc)
{
	recording->record = recording->len;
	put_number(recording, type, 4);
	put_number(recording, misc, 2);
	put_number(recording, 0, 2);
}

void end(struct recording *recording)
{
	store(recording, recording->data + recording->record + 6, recording->len - recording->record, 2);
}

void put_sample(struct recording *recording, size_t n)
{
	begin(recording, SAMPLE, USER);
	for (size_t i = 0; i < n; i++)
		put_number(recording, 0x0068000a0000000a + i, 8);
	end(recording);
}

static void put_name(struct recording *recording, const char *name)
{
	put(recording, name, strlen(name) + 1);
	put(recording, NULL, -recording->len % 8);
}

void put_mmap(struct recording *recording, uint16_t misc, const char *name)
{
	begin(recording, MMAP, misc);
	put(recording, NULL, 32);
	put_name(recording, name);
	end(recording);
}

/* The bytes of an id, padded; and how many there are. */
static size_t put_id(struct recording *recording, const char *id, size_t padded)
{
	struct bid_id parsed;

	assert_int_equal(bid_id_parse_str(id, &parsed), 0);
	assert_true(parsed.len <= padded);
	put(recording, parsed.bytes, padded);
	return parsed.len;
}

void put_mmap2(struct recording *recording, uint16_t misc, const char *id, const char *name)
{
	put_mmap2_at(recording, misc, id, name, &(struct place){ 0 });
}

void put_mmap2_at(struct recording *recording, uint16_t misc, const char *id, const char *name, const struct place *place)
{
	begin(recording, MMAP2, id ? misc | WITH_ID : misc);
	put_number(recording, place->pid, 4);
	put_number(recording, place->pid, 4);
	put_number(recording, place->start, 8);
	put_number(recording, place->len, 8);
	put(recording, NULL, 8);
	if (id) {
		put_number(recording, strlen(id) / 2, 1);
		put(recording, NULL, 3);
		put_id(recording, id, 20);
	} else {
		put(recording, "\375\0\0\0\0\0\0\0\21\42\0\0\0\0\0\0\1\2\3\4\5\6\7\10", 24);
	}
	put_number(recording, 5, 4);
	put_number(recording, 2, 4);
	put_name(recording, name);
	put(recording, "sampleid", 8);
	end(recording);
}

void put_build_id(struct recording *recording, uint32_t type, uint16_t misc, const char *id, const char *name)
{
	size_t len;

	begin(recording, type, misc);
	put_number(recording, UINT32_MAX, 4);
	len = put_id(recording, id, 20);
	put_number(recording, misc & SIZED ? len : 0, 1);
	put(recording, NULL, 3);
	put_name(recording, name);
	end(recording);
}

void put_compressed(struct recording *recording, uint32_t type, const struct recording *content, size_t parts)
{
	size_t bound = ZSTD_compressBound(content->len), size;
	bid_auto_free uint8_t *data = malloc(bound);

	assert_non_null(data);
	size = ZSTD_compress(data, bound, content->data, content->len, 3);
	assert_false(ZSTD_isError(size));
	for (size_t i = 0; i < parts; i++) {
		size_t from = size * i / parts, len = size * (i + 1) / parts - from;

		begin(recording, type, 0);
		if (type == COMPRESSED2)
			put_number(recording, len, 8);
		put(recording, data + from, len);
		if (type == COMPRESSED2)
			put(recording, "\1\1\1\1\1\1\1", -recording->len % 8);
		end(recording);
	}
}

void put_header(struct recording *recording, size_t size)
{
	const uint64_t words[] = { size, 144, size, ATTRS, size + ATTRS };

	put(recording, recording->big ? "2ELIFREP" : "PERFILE2", 8);
	for (size_t i = 0; i < 5; i++)
		put_number(recording, words[i], 8);
	put(recording, NULL, size - recording->len + ATTRS);
}

void put_pipe_header(struct recording *recording)
{
	put(recording, recording->big ? "2ELIFREP" : "PERFILE2", 8);
	put_number(recording, 16, 8);
}

void finish(struct recording *recording, const struct recording *table)
{
	size_t header = (size_t)(recording->data[recording->big ? 15 : 8]), list = recording->len;

	set64(recording, 48, list - (header + ATTRS));
	if (!table)
		return;
	/* tracing data, build-ids, the host's name */
	set64(recording, 72, 1 << 1 | 1 << 2 | 1 << 3);
	put_number(recording, list + 48, 8);
	put_number(recording, 8, 8);
	put_number(recording, list + 56, 8);
	put_number(recording, table->len, 8);
	put_number(recording, list + 48, 8);
	put_number(recording, 8, 8);
	put(recording, "tracing!", 8);
	put(recording, table->data, table->len);
}

void reading_release(struct perfdata_reading *reading)
{
	free(reading->text);
	reading->text = NULL;
}

static int print_dso(void *user, const struct bid_perfdata_dso *dso)
{
	char hex[BID_ID_HEX_MAX];

	bid_id_format(&dso->id, hex);
	if (dso->samples > 0)
		fprintf(user, "%" PRIu64 " ", dso->samples);
	fprintf(user, "%s %s%s %s\n", bid_perfdata_mode_name(dso->mode), dso->id.len ? hex : "-", dso->sized ? "" : "?", dso->path);
	return 0;
}

static struct perfdata_reading read_any(const char *path, int fd, unsigned flags)
{
	struct perfdata_reading reading = { 0 };
	size_t len;
	FILE *file = open_memstream(&reading.text, &len);

	assert_non_null(file);
	reading.r = path ? bid_perfdata_read(path, flags, print_dso, file, &reading.summary)
			 : bid_perfdata_read_fd(fd, flags, print_dso, file, &reading.summary);
	assert_int_equal(fclose(file), 0);
	return reading;
}

struct perfdata_reading read_path(const char *path)
{
	return read_any(path, -1, 0);
}

struct perfdata_reading read_recording(const struct recording *recording)
{
	return read_with(recording, 0);
}

struct perfdata_reading read_with(const struct recording *recording, unsigned flags)
{
	bid_auto_fd int fd = memfd_create("recording", MFD_CLOEXEC);

	assert_true(fd >= 0 && bid_pwrite_full(fd, recording->data, recording->len, 0) == 0);
	return read_any(NULL, fd, flags);
}

struct perfdata_reading read_through_pipe(const struct recording *recording)
{
	return read_through_pipe_with(recording, 0);
}

struct perfdata_reading read_through_pipe_with(const struct recording *recording, unsigned flags)
{
	bid_auto_fd int out = -1;
	struct perfdata_reading reading;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	out = fds[0];
	assert_true(fcntl(fds[1], F_SETPIPE_SZ, 1 << 20) >= (int)recording->len);
	assert_int_equal(write(fds[1], recording->data, recording->len), (ssize_t)recording->len);
	close(fds[1]);
	reading = read_any(NULL, out, flags);
	return reading;
}

bool is_big(void **state)
{
	return *(bool *)*state;
}

void assert_read(const struct perfdata_reading *reading, const char *text)
{
	assert_int_equal(reading->r, 0);
	assert_string_equal(reading->text, text);
	assert_null(reading->summary.damage);
	assert_int_equal(reading->summary.damaged, 0);
	assert_false(reading->summary.cut);
}

void assert_reads(const struct recording *recording, const char *text)
{
	auto_reading file = read_recording(recording), piped = read_through_pipe(recording);

	assert_read(&file, text);
	assert_read(&piped, text);
	assert_true(file.summary.modified > 0);
	assert_int_equal(piped.summary.modified, 0);
	assert_int_equal(file.summary.records, piped.summary.records);
	assert_int_equal(file.summary.bytes, recording->len);
}

void put_table(struct recording *table)
{
	put_build_id(table, 0, KERNEL | SIZED, ID_A, "[kernel.kallsyms]");
	put_build_id(table, 0, USER | SIZED, ID_8, "/bin/short");
	put_build_id(table, 0, USER | SIZED, ID_B, "[vdso]");
	put_build_id(table, 0, USER, ID_C, "/bin/unsized");
}

void put_content(struct recording *content, size_t n)
{
	char name[64];

	for (size_t i = 0; i < n; i++) {
		put_sample(content, i % 50);
		snprintf(name, sizeof(name), "/bin/%05zu", i % 300);
		put_mmap2(content, USER, i % 2 ? ID_A : ID_B, name);
		if (i % 100 == 0) {
			begin(content, AUXTRACE, 0);
			put_number(content, 99, 8);
			end(content);
			put(content, NULL, 99);
		}
	}
}
