// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What it costs to learn the build-id of a file that is in the page cache: by bid_elf_identify(), by libelf (elf_begin(3) with
 * ELF_C_READ, the faster of its two ways, and the notes of its segments and sections), and what every reader pays, which is to
 * open the file and to read 4 KiB of it. Reads file names from standard input, one a line; those that are no ELF files are left
 * out.
 *
 *	find /usr/bin /usr/lib -type f | bench-identify [ROUNDS]
 *
 * The three take turns, and which comes first changes; a ratio is the median over the rounds, with the smallest and the largest.
 */
#include <bid/elf.h>

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "rounds.h"

#define ROUNDS 9

struct files {
	char **names;
	size_t n, room;
};

/* Returns whether there is an id, so that no reader's work can be left out by the compiler. */
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

	return bid_elf_identify(fd, &id) == 0;
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

static const struct {
	const char *name;
	reader_fn read;
} readers[] = {
	{ "open and read 4 KiB", read_floor },
	{ "bid_elf_identify()", read_identify },
	{ "libelf", read_libelf },
};

#define READERS (sizeof(readers) / sizeof(readers[0]))

/* Microseconds of processor time a file: nothing here waits, and what else the machine does is left out. */
static double measure(const struct files *files, reader_fn reader, size_t *ret_found)
{
	double begun = now_busy();
	size_t found = 0;

	for (size_t i = 0; i < files->n; i++) {
		bid_auto_fd int fd = open(files->names[i], O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			found += reader(fd);
	}
	*ret_found = found;
	return (now_busy() - begun) / (double)files->n * 1e6;
}

static bool is_elf(const char *name)
{
	bid_auto_fd int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct bid_id id;
	int r;

	r = fd < 0 ? -errno : bid_elf_identify(fd, &id);
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

int main(int argc, char **argv)
{
	bid_cleanup(free_names) struct files files = { 0 };
	size_t rounds = parse_rounds(argc > 1 ? argv[1] : NULL, ROUNDS);
	double times[READERS][ROUNDS_MAX];
	size_t found[READERS];

	if (argc > 2 || rounds == 0) {
		fprintf(stderr, "usage: bench-identify [ROUNDS] <NAMES, 1 to %d rounds\n", ROUNDS_MAX);
		return 2;
	}
	elf_version(EV_CURRENT);
	if (read_names(&files) < 0) {
		fprintf(stderr, "bench-identify: no ELF file among the names\n");
		return 1;
	}
	for (size_t i = 0; i < READERS; i++)
		measure(&files, readers[i].read, &found[i]);
	for (size_t round = 0; round < rounds; round++)
		for (size_t i = 0; i < READERS; i++) {
			size_t which = (i + round) % READERS;

			times[which][round] = measure(&files, readers[which].read, &found[which]);
		}

	printf("%zu ELF files, %zu ids (libelf: %zu), %zu rounds\n", files.n, found[1], found[2], rounds);
	for (size_t i = 0; i < READERS; i++)
		printf("%-44s %6.2f us a file in the last round\n", readers[i].name, times[i][rounds - 1]);
	print_ratios("bid_elf_identify() to the floor", times[1], times[0], rounds);
	print_ratios("libelf to bid_elf_identify()", times[2], times[1], rounds);
	return 0;
}
