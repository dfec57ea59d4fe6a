// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Cost of reading the build-id of a file in the page cache: by bid_elf_build_id(), by libelf (elf_begin(3) with ELF_C_READ, the
 * faster of its two ways, and the notes of its segments and sections), by readelf(1) -n with as many files at once as fit, and the
 * floor of every reader: open the file and read 4 KiB. Reads file names from standard input, one a line, and skips files that are
 * not ELF.
 *
 *	find /usr/bin /usr/lib -type f | bench-identify [-j] [-c] [ROUNDS]
 *
 * They take turns, and which comes first changes; a ratio is the median over the rounds, with the smallest and the largest. The
 * time is processor time. With -c, as root, it is wall time, and each turn first empties the page cache of the whole machine. -j
 * prints JSON.
 */

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "rounds.h"

#define ROUNDS		 9
#define FILES_OF_READELF 500

extern char **environ;

struct files {
	char **names;
	size_t n, room;
};

/* Returns whether there is an id, so that the compiler keeps the work of every reader. */
typedef bool (*reader_fn)(int fd);

static bool read_floor(int fd)
{
	char head[4096];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	return n > 0 && head[0] != 0;
}

static bool read_identify(int fd)
{
	struct bid_id id;

	return bid_elf_build_id(fd, &id) == 0;
}

static bool has_id(Elf_Data *data)
{
	size_t at = 0, next, name, desc;
	GElf_Nhdr note;

	while (data && (next = gelf_getnote(data, at, &note, &name, &desc)) > 0) {
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp((char *)data->d_buf + name, "GNU", 4) == 0)
			return true;
		at = next;
	}
	return false;
}

static bool read_libelf(int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	size_t segments = 0;
	bool found = false;

	if (!elf)
		return false;
	elf_getphdrnum(elf, &segments);
	for (size_t i = 0; i < segments && !found; i++) {
		GElf_Phdr phdr;

		if (gelf_getphdr(elf, (int)i, &phdr) && phdr.p_type == PT_NOTE)
			found = has_id(elf_getdata_rawchunk(elf, (int64_t)phdr.p_offset, phdr.p_filesz,
							    phdr.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR));
	}
	for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn && !found; scn = elf_nextscn(elf, scn)) {
		GElf_Shdr shdr;

		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_NOTE)
			found = has_id(elf_getdata(scn, NULL));
	}
	elf_end(elf);
	return found;
}

/* The last one is another program, and there is no reader. */
static const struct {
	const char *name;
	reader_fn read;
} readers[] = {
	{ "floor", read_floor },
	{ "bid_elf_build_id()", read_identify },
	{ "libelf", read_libelf },
	{ "readelf -n", NULL },
};

enum { READERS = sizeof(readers) / sizeof(readers[0]), READELF = READERS - 1 };

/* Returns false if readelf did not run. Files with a warning count, too. */
static bool run_readelf(char **names, size_t n)
{
	const char *arguments[FILES_OF_READELF + 3] = { "readelf", "-n" };
	posix_spawn_file_actions_t actions;
	pid_t child;
	int r, status;

	memcpy(arguments + 2, names, n * sizeof(*names));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	r = posix_spawnp(&child, "readelf", &actions, NULL, (char **)arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	return r == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
}

static double busy_of_children(void)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Microseconds of processor time a file, 0 without a readelf. */
static double measure_readelf(const struct files *files)
{
	double begun = busy_of_children();

	for (size_t i = 0; i < files->n; i += FILES_OF_READELF) {
		size_t n = files->n - i < FILES_OF_READELF ? files->n - i : FILES_OF_READELF;

		if (!run_readelf(files->names + i, n))
			return 0;
	}
	return (busy_of_children() - begun) / (double)files->n * 1e6;
}

static bool drop_caches(void)
{
	bid_auto_fd int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	sync();
	/* with the inodes, so that reads of inodes reach the disk, too */
	return fd >= 0 && write(fd, "3", 1) == 1;
}

/* Microseconds a file, of processor time: cached reads do not wait, and other processes do not count. */
static double measure(const struct files *files, reader_fn reader, bool cold, size_t *ret_found)
{
	double begun = cold ? now() : now_busy();
	size_t found = 0;

	for (size_t i = 0; i < files->n; i++) {
		bid_auto_fd int fd = open(files->names[i], O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			found += reader(fd);
	}
	*ret_found = found;
	return ((cold ? now() : now_busy()) - begun) / (double)files->n * 1e6;
}

static bool is_elf(const char *name)
{
	bid_auto_fd int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct bid_id id;
	int r;

	r = fd < 0 ? -errno : bid_elf_build_id(fd, &id);
	return r == 0 || r == -ENODATA;
}

static int read_names(struct files *files)
{
	bid_auto_free char *line = NULL;
	size_t room = 0;
	ssize_t len;

	while ((len = getline(&line, &room, stdin)) > 0) {
		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		if (!is_elf(line))
			continue;
		if (files->n == files->room) {
			char **larger = reallocarray(files->names, 2 * files->room + 16, sizeof(*larger));

			if (!larger)
				return -ENOMEM;
			files->names = larger;
			files->room = 2 * files->room + 16;
		}
		files->names[files->n++] = bid_steal(line);
		room = 0;
	}
	return files->n > 0 ? 0 : -ENODATA;
}

static void free_names(struct files *files)
{
	for (size_t i = 0; i < files->n; i++)
		free(files->names[i]);
	free(files->names);
}

static double take_turn(const struct files *files, size_t which, bool cold, size_t *ret_found)
{
	if (cold && !drop_caches()) {
		fprintf(stderr, "bench-identify: the page cache cannot be emptied: run as root, or without -c\n");
		exit(1);
	}
	return which == READELF ? measure_readelf(files) : measure(files, readers[which].read, cold, ret_found);
}

static void show(double times[][ROUNDS_MAX], size_t n_readers, size_t rounds)
{
	for (size_t i = 0; i < n_readers; i++)
		printf("%-44s %6.2f us a file\n", i == 0 ? "open and read 4 KiB" : readers[i].name,
		       spread_of(times[i], rounds).median);
	print_ratios("bid_elf_build_id() to the floor", times[1], times[0], rounds);
	print_ratios("libelf to bid_elf_build_id()", times[2], times[1], rounds);
	if (n_readers == READERS)
		print_ratios("readelf -n to bid_elf_build_id()", times[READELF], times[1], rounds);
}

int main(int argc, char **argv)
{
	bid_cleanup(free_names) struct files files = { 0 };
	size_t rounds, found[READERS] = { 0 }, n_readers = READERS;
	bool json = false, cold = false;
	double times[READERS][ROUNDS_MAX];
	const char *names[READERS];
	int option;

	while ((option = getopt(argc, argv, "jc")) != -1)
		switch (option) {
		case 'j':
			json = true;
			break;
		case 'c':
			cold = true;
			break;
		default:
			argc = 0;
		}
	rounds = parse_rounds(optind < argc ? argv[optind] : NULL, ROUNDS);
	if (argc - optind > 1 || argc == 0 || rounds == 0) {
		fprintf(stderr, "usage: bench-identify [-j] [-c] [ROUNDS] <NAMES, 1 to %d rounds\n", ROUNDS_MAX);
		return 2;
	}
	elf_version(EV_CURRENT);
	if (read_names(&files) < 0) {
		fprintf(stderr, "bench-identify: no ELF file among the names\n");
		return 1;
	}
	for (size_t i = 0; i < READELF; i++)
		measure(&files, readers[i].read, false, &found[i]);
	/* leave readelf out of cold runs: their wall time would include its start */
	if (cold || measure_readelf(&files) == 0)
		n_readers = READELF;
	for (size_t round = 0; round < rounds; round++)
		for (size_t i = 0; i < n_readers; i++) {
			size_t which = (i + round) % n_readers;

			times[which][round] = take_turn(&files, which, cold, &found[which]);
		}

	for (size_t i = 0; i < n_readers; i++)
		names[i] = readers[i].name;
	if (json) {
		print_json(cold ? "id of a file, cold" : "id of a file", "us", names, times, n_readers, rounds);
		return 0;
	}
	printf("%zu ELF files, %zu ids (libelf: %zu), %zu rounds\n", files.n, found[1], found[2], rounds);
	if (n_readers == READELF)
		fprintf(stderr, "without readelf: %s\n", cold ? "it is not measured cold" : "it could not be run");
	show(times, n_readers, rounds);
	return 0;
}
