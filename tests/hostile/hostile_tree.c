// SPDX-License-Identifier: LGPL-2.1-or-later
#include "hostile_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../random.h"
#include "../small_elf.h"
#include "base/cleanup.h"

enum {
	ID_LEN = SMALL_ELF_ID_LEN,
	HEX_LEN = 2 * ID_LEN,
	SPOTS_MIN = 20,
	SPOTS_MAX = 60,
	DEEP = 150, /* directories in each other */
	LONG_TEXT = 4000, /* bytes of a link's */
};

struct tree_maker {
	int store, outside; /* directories */
	char outside_path[PATH_MAX]; /* absolute */
	uint64_t state;
	struct hostile_counts counts;
};

/* One build: its directory, and the links to it. */
struct spot {
	uint8_t id[ID_LEN];
	char hex[HEX_LEN + 1];
	char path[256]; /* "usr/lib/x7" */
	char dir[320]; /* "usr/lib/x7/ID" */
	char link[128]; /* ".build-id/xx/rest" */
};

static unsigned below(struct tree_maker *maker, unsigned n)
{
	return (unsigned)(next_random(&maker->state) % n);
}

static void die(const char *what)
{
	fprintf(stderr, "hostile-trees: %s: '%s'\n", strerror(errno), what);
	exit(1);
}

/* mkdir(2) with parents; existing files stay. */
static void make_dirs(int at, const char *path)
{
	char copy[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *slash = copy; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdirat(at, copy, 0755);
		*slash = '/';
	}
	mkdirat(at, copy, 0755);
}

/* Attributes of the file of the path. */
static void make_parents(int at, const char *path)
{
	char copy[PATH_MAX];
	char *slash;

	snprintf(copy, sizeof(copy), "%s", path);
	slash = strrchr(copy, '/');
	if (!slash)
		return;
	*slash = '\0';
	make_dirs(at, copy);
}

static bool put_bytes(int at, const char *path, const void *data, size_t len)
{
	bid_auto_fd int fd = openat(at, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	return fd >= 0 && write(fd, data, len) == (ssize_t)len;
}

static bool put_elf(int at, const char *path, const uint8_t id[static ID_LEN])
{
	struct small_elf elf = small_elf(id);

	return put_bytes(at, path, &elf, sizeof(elf));
}

static void fill_hex(const uint8_t id[static ID_LEN], char hex[static HEX_LEN + 1])
{
	for (size_t i = 0; i < ID_LEN; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
}

static void fill_id(struct tree_maker *maker, uint8_t id[static ID_LEN])
{
	for (size_t i = 0; i < ID_LEN; i++)
		id[i] = (uint8_t)next_random(&maker->state);
}

static struct spot make_spot(struct tree_maker *maker)
{
	static const char *const tops[] = {
		"usr/bin", "usr/lib", "opt/a b/c", "[debuginfod]", "[kernel.kallsyms]", "[vdso]", "lib"
	};
	unsigned top = below(maker, sizeof(tops) / sizeof(tops[0]));
	struct spot spot;

	fill_id(maker, spot.id);
	fill_hex(spot.id, spot.hex);
	if (tops[top][0] == '[')
		snprintf(spot.path, sizeof(spot.path), "%s", tops[top]);
	else
		snprintf(spot.path, sizeof(spot.path), "%s/x%u", tops[top], maker->counts.spots);
	snprintf(spot.dir, sizeof(spot.dir), "%s/%s", spot.path, spot.hex);
	snprintf(spot.link, sizeof(spot.link), ".build-id/%.2s/%.38s", spot.hex, spot.hex + 2);
	return spot;
}

static void put_link(struct tree_maker *maker, const char *path, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void put_link(struct tree_maker *maker, const char *path, const char *format, ...)
{
	char text[PATH_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	make_parents(maker->store, path);
	symlinkat(text, maker->store, path);
}

/* A link out of the store, in one of several forms. */
static void put_link_outside(struct tree_maker *maker, const char *path, const char *what)
{
	char up[3 * 64 + 1] = "";
	unsigned levels = 1 + below(maker, 8);

	for (unsigned i = 0; i < levels; i++)
		memcpy(up + 3 * i, "../", 4);
	switch (below(maker, 4)) {
	case 0:
		put_link(maker, path, "%s/%s", maker->outside_path, what);
		break;
	case 1:
		put_link(maker, path, "%soutside/%s", up, what);
		break;
	case 2:
		put_link(maker, path, "../../usr/%soutside/%s", up, what);
		break;
	default:
		put_link(maker, path, "/proc/self/root/%s/%s", maker->outside_path, what);
		break;
	}
}

/* Make a special or empty file at @path; one in seven is a regular file with another id. Returns true for the regular file. */
static bool put_odd(struct tree_maker *maker, const char *path)
{
	uint8_t other[ID_LEN];

	make_parents(maker->store, path);
	switch (below(maker, 14)) {
	case 0:
		put_link_outside(maker, path, "elf");
		return false;
	case 1:
		put_link(maker, path, "%s", strrchr(path, '/') ? strrchr(path, '/') + 1 : path); /* to itself */
		return false;
	case 2:
		put_link(maker, path, "..");
		return false;
	case 3:
		mkfifoat(maker->store, path, 0644);
		return false;
	case 4:
		mknodat(maker->store, path, S_IFSOCK | 0644, 0);
		return false;
	case 5:
		/* /dev/zero and a disk, where mknod(2) is allowed */
		mknodat(maker->store, path, S_IFCHR | 0644, makedev(1, 5));
		return false;
	case 6:
		mknodat(maker->store, path, S_IFBLK | 0644, makedev(7, 0));
		return false;
	case 7:
		make_dirs(maker->store, path);
		return false;
	case 8:
		put_link_outside(maker, path, "");
		return false;
	case 9:
		return put_bytes(maker->store, path, "", 0);
	case 10: {
		bid_auto_fd int fd = openat(maker->store, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		off_t size = INT64_C(1) << 62;

		/* as large as the file system takes */
		while (fd >= 0 && size > 0 && ftruncate(fd, size) < 0)
			size >>= 1;
		return fd >= 0;
	}
	case 11:
		return put_bytes(maker->store, path, ELFMAG "\2\1\1", 7);
	case 12:
		return put_bytes(maker->store, path, "no ELF file, but text\n", 22);
	default:
		fill_id(maker, other);
		return put_elf(maker->store, path, other);
	}
}

/* A valid build. */
static void put_good(struct tree_maker *maker, const struct spot *spot)
{
	char elf[512];

	make_dirs(maker->store, spot->dir);
	snprintf(elf, sizeof(elf), "%s/elf", spot->dir);
	if (!put_elf(maker->store, elf, spot->id))
		return;
	put_link(maker, spot->link, "../../%s", spot->dir);
	maker->counts.good++;
}

/* A valid link to a wrong file. */
static void put_wrong(struct tree_maker *maker, const struct spot *spot)
{
	static const char *const names[] = { "elf", "debug", "kallsyms", "probes", "vdso" };
	unsigned name = below(maker, sizeof(names) / sizeof(names[0]));
	char path[512];

	make_dirs(maker->store, spot->dir);
	put_link(maker, spot->link, "../../%s", spot->dir);
	snprintf(path, sizeof(path), "%s/%s", spot->dir, names[name]);
	if (put_odd(maker, path) && name != 2 && name != 3)
		maker->counts.wrong++;
}

static void put_dirs_that_are_none(struct tree_maker *maker, const struct spot *spot)
{
	/* in a shared directory only the files of this build */
	switch (below(maker, spot->path[0] == '[' ? 2 : 4)) {
	case 0:
		put_link_outside(maker, spot->dir, spot->hex);
		break;
	case 1:
		put_odd(maker, spot->dir);
		break;
	case 2:
		put_link_outside(maker, spot->path, "");
		break;
	default:
		put_odd(maker, spot->path);
		break;
	}
	put_link(maker, spot->link, "../../%s", spot->dir);
}

static void put_bad_link(struct tree_maker *maker, const struct spot *spot)
{
	char text[LONG_TEXT + 1];

	switch (below(maker, 8)) {
	case 0:
		put_link_outside(maker, spot->link, spot->hex);
		break;
	case 1:
		put_link(maker, spot->link, "../../%s", spot->dir);
		maker->counts.dangling += spot->path[0] != '[';
		break;
	case 2:
		put_link(maker, spot->link, "../../%.2s/%s", spot->hex, spot->hex + 2);
		break;
	case 3:
		put_link(maker, spot->link, "%s", spot->hex + 2); /* to itself */
		break;
	case 4:
		memset(text, 'a', LONG_TEXT);
		text[LONG_TEXT] = '\0';
		put_link(maker, spot->link, "../../%s", text);
		break;
	case 5:
		put_link(maker, spot->link, "../../.bidfs/../../outside/%s", spot->hex);
		break;
	case 6:
		put_link(maker, spot->link, "../..");
		break;
	default:
		put_odd(maker, spot->link);
		break;
	}
}

/* Names that are no ids, in directories of ids. */
static void put_bad_name(struct tree_maker *maker, const struct spot *spot)
{
	static const char *const names[] = { "new\nline", "\xff\xfe", "\xc3\x28", "0",	 "zz", " ",
					     "-",	  "\033[31m", "%s%n",	  "elf", "~" };
	char name[NAME_MAX + 1], path[PATH_MAX];
	unsigned which = below(maker, 16);

	if (which < sizeof(names) / sizeof(names[0])) {
		snprintf(name, sizeof(name), "%s", names[which]);
	} else if (which == 11) {
		memset(name, 'a', NAME_MAX);
		name[NAME_MAX] = '\0';
	} else {
		/* too short by a digit, or with a capital, or too long to be one */
		snprintf(name, sizeof(name), "%s%s%s%s", spot->hex, spot->hex, spot->hex, spot->hex);
		if (which == 12)
			name[HEX_LEN - 1] = '\0';
		else if (which == 13)
			name[0] = 'A', name[HEX_LEN] = '\0';
	}
	switch (below(maker, 5)) {
	case 0:
		snprintf(path, sizeof(path), ".build-id/%s/%s", name, spot->hex + 2);
		break;
	case 1:
		snprintf(path, sizeof(path), ".build-id/%.2s/%s", spot->hex, name);
		break;
	case 2:
		snprintf(path, sizeof(path), "%s/%s/elf", spot->path, name);
		break;
	case 3:
		snprintf(path, sizeof(path), "%s", name);
		break;
	default:
		snprintf(path, sizeof(path), "%s/%s", spot->dir, name);
		break;
	}
	switch (below(maker, 4)) {
	case 0:
		make_dirs(maker->store, path);
		break;
	case 1:
		put_link(maker, path, "../../%s", spot->dir);
		break;
	case 2:
		make_parents(maker->store, path);
		put_elf(maker->store, path, spot->id);
		break;
	default:
		put_bad_link(maker, spot);
		break;
	}
}

/* In the private folder, which only bidfs should write. */
static void put_own(struct tree_maker *maker, const struct spot *spot)
{
	static const char *const names[] = {
		"",
		"/record",
		"/source",
		"/section",
		"/unpacked",
		"/scan",
		"/absent",
		"/first",
		"/content key",
		"/name",
		"/tmp",
		"/quarantine",
		"/tmp/temp-0123456789abcdef",
	};
	static const char *const folders[] = { "record", "source", "section", "unpacked", "name", "kallsyms" };
	unsigned which = below(maker, 24);
	char path[512];

	if (which < sizeof(names) / sizeof(names[0])) {
		/* ".bidfs" as a whole now and then only: nothing else of ours could be in the tree */
		if (which == 0 && below(maker, 8) != 0)
			return;
		snprintf(path, sizeof(path), ".bidfs%s", names[which]);
		put_odd(maker, path);
		return;
	}
	which = below(maker, sizeof(folders) / sizeof(folders[0]));
	switch (below(maker, 4)) {
	case 0:
		snprintf(path, sizeof(path), ".bidfs/%s/%.2s", folders[which], spot->hex);
		break;
	case 1:
		snprintf(path, sizeof(path), ".bidfs/%s/%.2s/%s", folders[which], spot->hex, spot->hex + 2);
		break;
	case 2:
		snprintf(path, sizeof(path), ".bidfs/%s/%.2s/%s/usr/a.c", folders[which], spot->hex, spot->hex + 2);
		break;
	default:
		snprintf(path, sizeof(path), ".bidfs/%s/%.2s/%s.%s", folders[which], spot->hex, spot->hex + 2,
			 below(maker, 2) ? "elf" : "source-0123456789abcdef");
		break;
	}
	put_odd(maker, path);
}

static void put_deep(struct tree_maker *maker, const struct spot *spot)
{
	char path[PATH_MAX];
	size_t len = (size_t)snprintf(path, sizeof(path), "%s", spot->path);

	for (unsigned i = 0; i < DEEP; i++)
		len += (size_t)snprintf(path + len, sizeof(path) - len, "/%u", i % 10);
	make_dirs(maker->store, path);
	snprintf(path + len, sizeof(path) - len, "/%s", spot->hex);
	put_link_outside(maker, path, spot->hex);
}

static void put_crowd(struct tree_maker *maker, unsigned crowd)
{
	char path[64];

	make_dirs(maker->store, ".build-id/cc");
	make_dirs(maker->store, "usr/crowd");
	for (unsigned i = 0; i < crowd; i++) {
		snprintf(path, sizeof(path), "%s/junk-%u", i % 2 ? ".build-id/cc" : "usr/crowd", i);
		put_bytes(maker->store, path, "", 0);
	}
}

static void put_spot(struct tree_maker *maker)
{
	struct spot spot = make_spot(maker);
	char elf[HEX_LEN + 8];

	maker->counts.spots++;
	/* a reader that follows a link finds its target */
	mkdirat(maker->outside, spot.hex, 0755);
	snprintf(elf, sizeof(elf), "%s/elf", spot.hex);
	put_elf(maker->outside, elf, spot.id);
	switch (below(maker, 16)) {
	case 0:
	case 1:
	case 2:
		put_good(maker, &spot);
		break;
	case 3:
	case 4:
	case 5:
	case 6:
		put_wrong(maker, &spot);
		break;
	case 7:
	case 8:
		put_dirs_that_are_none(maker, &spot);
		break;
	case 9:
	case 10:
		put_bad_link(maker, &spot);
		break;
	case 11:
	case 12:
		put_bad_name(maker, &spot);
		break;
	case 13:
		put_deep(maker, &spot);
		break;
	default:
		put_own(maker, &spot);
		break;
	}
}

static int make_top(const char *directory, const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (mkdir(path, 0755) < 0)
		die(path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		die(path);
	return fd;
}

struct hostile_counts hostile_tree_make(const char *directory, uint64_t seed, unsigned crowd)
{
	bid_auto_fd int store = make_top(directory, "store"), outside = make_top(directory, "outside");
	struct tree_maker maker = { .store = store, .outside = outside, .state = seed };
	uint8_t id[ID_LEN];
	unsigned spots;

	snprintf(maker.outside_path, sizeof(maker.outside_path), "%s/outside", directory);
	fill_id(&maker, id);
	put_elf(outside, "elf", id);
	spots = SPOTS_MIN + below(&maker, SPOTS_MAX - SPOTS_MIN);
	while (maker.counts.spots < spots)
		put_spot(&maker);
	/* where other builds would lie, if none does */
	put_link_outside(&maker, below(&maker, 2) ? "[vdso]" : "[debuginfod]", "");
	put_link_outside(&maker, "usr/lib/debug", "");
	if (crowd > 0)
		put_crowd(&maker, crowd);
	return maker.counts;
}
