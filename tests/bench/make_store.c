// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes a store of any size in perf's layout, to measure with.
 *
 *	make-store STORE IDS [BUILDS_OF_A_PATH]
 *
 * Every id has its own small ELF file, with a note and nothing else, and perf's link to it; a hundred paths lie in one directory,
 * and ten builds (or BUILDS_OF_A_PATH) under one path. The ids follow from their numbers, so two stores of one size are equal, and
 * a smaller one is a part of a larger one. Prints how much there is, and how long it took. A million ids are three million
 * inodes: a file system made with "mkfs.ext4 -I 512 -O inline_data" keeps them, with all that is in them, in 2 GB.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "rounds.h"

enum { ID_LEN = 20, PATHS_OF_A_DIR = 100, FANS = 256 };

struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Nhdr note;
	char name[4];
	uint8_t id[ID_LEN];
};

struct maker {
	int root, links; /* the store, and ".build-id" */
	int fans[FANS]; /* -1 until needed */
	int path; /* "usr/lib/app-N/libN.so" */
	char path_name[128];
	unsigned long dirs, paths, ids;
};

static void die(const char *what)
{
	fprintf(stderr, "make-store: %s: '%s'\n", strerror(errno), what);
	exit(1);
}

/* splitmix64: no two numbers give one result, and neighbours have nothing in common. */
static uint64_t scramble(uint64_t number)
{
	number += 0x9e3779b97f4a7c15U;
	number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9U;
	number = (number ^ number >> 27) * 0x94d049bb133111ebU;
	return number ^ number >> 31;
}

static void fill_id(unsigned long number, uint8_t id[static ID_LEN])
{
	uint64_t first = scramble(number), more = scramble(~number);

	memcpy(id, &first, 8);
	memcpy(id + 8, &more, 8);
	memcpy(id + 16, &first, 4);
}

static int make_dir(int parent, const char *name)
{
	int fd;

	if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
		die(name);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		die(name);
	return fd;
}

static void begin_path(struct maker *maker, unsigned long number)
{
	bid_auto_fd int usr = make_dir(maker->root, "usr"), lib = make_dir(usr, "lib");
	bid_auto_fd int dir = -1;
	char name[32];

	snprintf(name, sizeof(name), "app-%04lu", number / PATHS_OF_A_DIR);
	dir = make_dir(lib, name);
	snprintf(maker->path_name, sizeof(maker->path_name), "usr/lib/%s/lib%lu.so", name, number);
	if (maker->path >= 0)
		close(maker->path);
	maker->path = make_dir(dir, strrchr(maker->path_name, '/') + 1);
	maker->paths++;
	maker->dirs += number % PATHS_OF_A_DIR == 0;
}

static void make_id(struct maker *maker, struct image *image, unsigned long number)
{
	char hex[2 * ID_LEN + 1], target[256], fan[3];
	bid_auto_fd int dir = -1;
	bid_auto_fd int file = -1;

	fill_id(number, image->id);
	for (size_t i = 0; i < ID_LEN; i++)
		snprintf(hex + 2 * i, 3, "%02x", image->id[i]);
	dir = make_dir(maker->path, hex);
	file = openat(dir, "elf", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	if (file < 0 || write(file, image, sizeof(*image)) != sizeof(*image))
		die(hex);
	snprintf(fan, sizeof(fan), "%.2s", hex);
	if (maker->fans[image->id[0]] < 0)
		maker->fans[image->id[0]] = make_dir(maker->links, fan);
	snprintf(target, sizeof(target), "../../%s/%s", maker->path_name, hex);
	if (symlinkat(target, maker->fans[image->id[0]], hex + 2) < 0 && errno != EEXIST)
		die(hex);
	maker->ids++;
}

int main(int argc, char **argv)
{
	struct image image = {
		.header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_phoff = offsetof(struct image, segment),
			    .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 1 },
		.segment = { .p_type = PT_NOTE,
			     .p_flags = PF_R,
			     .p_offset = offsetof(struct image, note),
			     .p_filesz = sizeof(image) - offsetof(struct image, note),
			     .p_memsz = sizeof(image) - offsetof(struct image, note),
			     .p_align = 4 },
		.note = { .n_namesz = 4, .n_descsz = ID_LEN, .n_type = NT_GNU_BUILD_ID },
		.name = "GNU",
	};
	unsigned long ids = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, builds = argc > 3 ? strtoul(argv[3], NULL, 10) : 10;
	struct maker maker = { .path = -1 };
	double begun = now();

	if (ids == 0 || builds == 0) {
		fprintf(stderr, "usage: make-store STORE IDS [BUILDS_OF_A_PATH]\n");
		return 2;
	}
	maker.root = make_dir(AT_FDCWD, argv[1]);
	maker.links = make_dir(maker.root, ".build-id");
	memset(maker.fans, -1, sizeof(maker.fans));
	for (unsigned long i = 0; i < ids; i++) {
		if (i % builds == 0)
			begin_path(&maker, i / builds);
		make_id(&maker, &image, i);
	}
	printf("%lu ids, %lu paths in %lu directories, %zu bytes a file, %.1f s\n", maker.ids, maker.paths, maker.dirs,
	       sizeof(image), now() - begun);
	return 0;
}
