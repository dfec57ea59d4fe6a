// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The reader of store/perfdata against its contract:
 *   - it fails only for files without the head of a recording;
 *   - the builds are in order, unique, and made of bytes of the file, if nothing in it is compressed;
 *   - an undamaged recording reads the same from a file and from a pipe, unless the table lies behind the pipe's position;
 *   - with samples counted the builds are the same in another order, the most first.
 *
 * An input that begins with DIRECTORY stands for the directory that perf record --threads makes: "data", "data.0" and so on, each
 * as its length in 4 bytes, little-endian, and its bytes. The last one has the rest.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/perfdata.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "target.h"

/* capacity of a pipe */
#define INPUT_MAX (1u << 20)

#define DIRECTORY     "directory of perf.data\n"
#define DIRECTORY_LEN (sizeof(DIRECTORY) - 1)

enum { MEMBERS_MAX = 8 };

/* The dsos of one reading, with their paths. */
struct dso_reading {
	struct bid_perfdata_dso *dsos; /* owned, and their paths */
	size_t n;
	int r;
	struct bid_perfdata_summary summary;
};

static void reading_release(struct dso_reading *reading)
{
	for (size_t i = 0; i < reading->n; i++)
		free((char *)reading->dsos[i].path);
	free(reading->dsos);
}

static int order(const struct bid_perfdata_dso *a, const struct bid_perfdata_dso *b)
{
	int paths = strcmp(a->path, b->path);

	if (paths != 0 || a->mode != b->mode)
		return paths ? paths : (int)a->mode - (int)b->mode;
	/* where there is an id, the path is not named without one */
	require(a->id.len > 0 && b->id.len > 0);
	paths = memcmp(a->id.bytes, b->id.bytes, BID_ID_PERF_MAX);
	return paths ? paths : a->id.len - b->id.len;
}

static int take(void *user, const struct bid_perfdata_dso *dso)
{
	struct dso_reading *reading = user;
	struct bid_perfdata_dso *larger = reallocarray(reading->dsos, reading->n + 1, sizeof(*larger));

	require(larger);
	reading->dsos = larger;
	require(dso->path[0] != '\0' && strlen(dso->path) <= UINT16_MAX);
	require(dso->id.len <= BID_ID_PERF_MAX && dso->mode <= BID_PERFDATA_GUEST);
	require(dso->sized || dso->id.len == BID_ID_PERF_MAX);
	for (size_t i = dso->id.len; i < BID_ID_MAX; i++)
		require(dso->id.bytes[i] == 0);
	if (reading->n > 0) {
		const struct bid_perfdata_dso *before = &reading->dsos[reading->n - 1];

		require(before->samples > dso->samples || (before->samples == dso->samples && order(before, dso) < 0));
	}
	reading->dsos[reading->n] = *dso;
	reading->dsos[reading->n].path = strdup(dso->path);
	require(reading->dsos[reading->n].path);
	reading->n++;
	return 0;
}

static void read_file(struct dso_reading *reading, unsigned flags, const uint8_t *data, size_t size)
{
	bid_auto_fd int fd = memfd_create("fuzz_perfdata", MFD_CLOEXEC);

	require(fd >= 0 && bid_pwrite_full(fd, data, size, 0) == 0);
	reading->r = bid_perfdata_read_fd(fd, flags, take, reading, &reading->summary);
	require(lseek(fd, 0, SEEK_CUR) == 0);
}

static void read_pipe(struct dso_reading *reading, unsigned flags, const uint8_t *data, size_t size)
{
	bid_auto_fd int in = -1;
	int fds[2];

	require(pipe2(fds, O_CLOEXEC) == 0);
	in = fds[0];
	require(size <= 60u << 10 || fcntl(in, F_SETPIPE_SZ, INPUT_MAX) >= 0);
	require(write(fds[1], data, size) == (ssize_t)size);
	close(fds[1]);
	reading->r = bid_perfdata_read_fd(in, flags, take, reading, &reading->summary);
}

static void check_bytes(const struct dso_reading *reading, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < reading->n; i++) {
		const struct bid_perfdata_dso *dso = &reading->dsos[i];

		/* its name may be that of perf's copy */
		require(memmem(data, size, dso->path, strlen(dso->path)) || strncmp(dso->path, "[vdso", 5) == 0);
		require(dso->id.len == 0 || memmem(data, size, dso->id.bytes, dso->id.len));
	}
}

static void check_same(const struct dso_reading *a, const struct dso_reading *b)
{
	require(a->r == b->r && a->n == b->n);
	require(a->summary.damaged == b->summary.damaged && a->summary.cut == b->summary.cut);
	require(a->summary.records == b->summary.records);
	for (size_t i = 0; i < a->n; i++) {
		require(strcmp(a->dsos[i].path, b->dsos[i].path) == 0 && a->dsos[i].mode == b->dsos[i].mode);
		require(bid_id_equal(&a->dsos[i].id, &b->dsos[i].id) && a->dsos[i].sized == b->dsos[i].sized);
	}
}

static int by_path(const void *a, const void *b)
{
	return order(a, b);
}

/* Do its samples add up? Leaves the list in the order of one without samples. */
static void check_counts(struct dso_reading *reading)
{
	const struct bid_perfdata_summary *summary = &reading->summary;
	uint64_t sum = 0;

	require(summary->placed <= summary->samples && summary->samples <= summary->records);
	for (size_t i = 0; i < reading->n; i++) {
		/* samples of one name, which several builds may have */
		require(reading->dsos[i].samples <= summary->placed);
		sum += reading->dsos[i].samples;
	}
	require(sum >= summary->placed);
	if (reading->n > 0)
		qsort(reading->dsos, reading->n, sizeof(reading->dsos[0]), by_path);
}

/* Write the files of a directory, and return how many. */
static unsigned write_members(int dir, const uint8_t *data, size_t size)
{
	unsigned n = 0;

	for (; size > 4 && n < MEMBERS_MAX; n++) {
		size_t len = data[0] | data[1] << 8 | data[2] << 16 | (size_t)data[3] << 24;
		bid_auto_fd int fd = -1;
		char name[32];

		snprintf(name, sizeof(name), n ? "data.%u" : "data", n - 1);
		data += 4;
		size -= 4;
		len = len < size && n + 1 < MEMBERS_MAX ? len : size;
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		require(fd >= 0 && bid_pwrite_full(fd, data, len, 0) == 0);
		data += len;
		size -= len;
	}
	return n;
}

static void remove_members(int dir, unsigned n)
{
	char name[32];

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), i ? "data.%u" : "data", i - 1);
		require(unlinkat(dir, name, 0) == 0);
	}
}

static void read_directory(struct dso_reading *reading, const uint8_t *data, size_t size)
{
	const char *top = getenv("TMPDIR");
	bid_auto_fd int dir = -1;
	char path[PATH_MAX];
	unsigned n;

	snprintf(path, sizeof(path), "%s/fuzz_perfdata.XXXXXX", top ? top : "/tmp");
	require(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	require(dir >= 0);
	n = write_members(dir, data, size);
	reading->r = bid_perfdata_read(path, BID_PERFDATA_SAMPLES, take, reading, &reading->summary);
	remove_members(dir, n);
	require(rmdir(path) == 0);
}

static void check_directory(const uint8_t *data, size_t size)
{
	bid_cleanup(reading_release) struct dso_reading reading = { 0 };

	read_directory(&reading, data, size);
	require(reading.r == 0 || reading.r == -EINVAL);
	require(reading.r == 0 ? reading.summary.dsos == reading.n : reading.n == 0);
	require((reading.summary.damaged > 0) == (reading.summary.damage != NULL));
	require(reading.summary.bytes <= size);
	check_counts(&reading);
	if (reading.r == 0 && !reading.summary.compressed)
		check_bytes(&reading, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bid_cleanup(reading_release) struct dso_reading file = { 0 };
	bid_cleanup(reading_release) struct dso_reading piped = { 0 };
	bid_cleanup(reading_release) struct dso_reading counted = { 0 };

	if (size > INPUT_MAX)
		return 0;
	if (size >= DIRECTORY_LEN && memcmp(data, DIRECTORY, DIRECTORY_LEN) == 0) {
		check_directory(data + DIRECTORY_LEN, size - DIRECTORY_LEN);
		return 0;
	}
	read_file(&file, 0, data, size);
	require(file.summary.samples == 0 && file.summary.placed == 0);
	require(file.r == 0 || file.r == -EINVAL);
	if (file.r < 0) {
		require(file.n == 0);
		return 0;
	}
	require(file.summary.dsos == file.n && file.summary.bytes == size);
	require((file.summary.damaged > 0) == (file.summary.damage != NULL));
	require(file.summary.damage_offset <= size);
	if (!file.summary.compressed)
		check_bytes(&file, data, size);

	read_pipe(&piped, BID_PERFDATA_SAMPLES, data, size);
	check_counts(&piped);
	if (file.summary.damaged == 0 && piped.summary.damaged == 0)
		check_same(&file, &piped);
	else if (file.summary.damaged == 0)
		require(strcmp(piped.summary.damage, "the place of the table of build-ids") == 0);
	if (piped.summary.samples == 0)
		return 0;
	read_file(&counted, BID_PERFDATA_SAMPLES, data, size);
	check_counts(&counted);
	check_same(&counted, &file);
	return 0;
}
