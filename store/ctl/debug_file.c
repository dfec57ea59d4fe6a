// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/path.h"

#define DEBUG_DIRECTORY "/usr/lib/debug"

/* Search for one debug file. */
struct look {
	struct bid_store *store;
	const struct ctl_debug_of *of;
	char path[PATH_MAX];
	int fd; /* the debug file; owned */
	char other[PATH_MAX]; /* a mismatched file in one of the places; "" for none */
	const char *why;
};

void ctl_debug_files_release(struct ctl_debug_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		free(files->of[i].path);
	free(files->of);
	*files = (struct ctl_debug_files){ 0 };
}

int ctl_debug_files_want(struct ctl_debug_files *files, const char *path, const struct bid_id *id)
{
	char *copy;

	if (bid_array_grow(files->of, files->n, files->room) < 0)
		return -ENOMEM;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	files->of[files->n++] = (struct ctl_debug_of){ .id = *id, .path = copy };
	return 0;
}

/* Does the store have it already? Only called for existing files, because most programs have no debug file. */
static bool is_known(const struct look *look)
{
	int kinds = bid_store_kinds(look->store, &look->of->id);

	return kinds < 0 || kinds & 1 << BID_KIND_DEBUGINFO;
}

/* Is look->path the debug file? On success it is open in look->fd. A file from a @link also needs the checksum of the link. */
static bool is_it(struct look *look, const struct bid_elf_debuglink *link)
{
	bid_auto_fd int fd = open(look->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct bid_id found;
	struct stat st;
	uint32_t crc;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || is_known(look))
		return false;
	r = bid_elf_build_id(fd, &found);
	if (r < 0 && r != -ENODATA)
		return false;
	if (r < 0)
		look->why = "a debug file without a build-id";
	else if (!bid_id_equal(&found, &look->of->id))
		look->why = "a debug file of another build";
	else if (link && (bid_elf_checksum(fd, &crc) < 0 || crc != link->crc))
		look->why = "a debug file with another checksum than its program has";
	else
		look->fd = bid_steal_fd(&fd);
	if (look->fd >= 0)
		return true;
	memcpy(look->other, look->path, sizeof(look->other));
	return false;
}

static bool is_by_id(struct look *look)
{
	char hex[BID_ID_HEX_MAX];

	bid_id_format(&look->of->id, hex);
	snprintf(look->path, sizeof(look->path), "%s/.build-id/%.2s/%s.debug", DEBUG_DIRECTORY, hex, hex + 2);
	return is_it(look, NULL);
}

static bool is_linked(struct look *look)
{
	static const char *const places[][2] = { { "", "" }, { "", "/.debug" }, { DEBUG_DIRECTORY, "" } };
	bid_auto_fd int fd = open(look->of->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct bid_elf_debuglink link;
	char path[PATH_MAX], *base;

	/* the link names a file beside the program itself */
	if (fd < 0 || bid_path_of(fd, path, sizeof(path)) < 0 || bid_elf_debuglink(fd, &link) < 0)
		return false;
	base = strrchr(path, '/');
	if (!base)
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int len = snprintf(look->path, sizeof(look->path), "%s%.*s%s/%s", places[i][0], (int)(base - path), path,
				   places[i][1], link.name);

		if (len < (int)sizeof(look->path) && strcmp(look->path, path) != 0 && is_it(look, &link))
			return true;
	}
	return false;
}

static int add_debug_file(struct ctl_mapped_code *adding, const struct ctl_debug_of *of)
{
	struct look look = { .store = adding->store, .of = of, .fd = -1 };
	int r = 0;

	if (is_by_id(&look) || is_linked(&look)) {
		r = ctl_mapped_code_file(adding, look.fd);
	} else if (look.other[0]) {
		adding->stats->seen++;
		ctl_add_stats_refused(adding->stats, look.other, 0, look.why, false);
	}
	bid_close(look.fd);
	return r;
}

int ctl_debug_files_add(const struct ctl_debug_files *files, struct ctl_add_stats *stats, struct bid_store *store)
{
	struct ctl_mapped_code adding;
	int r = ctl_mapped_code_begin(&adding, stats, store);

	for (size_t i = 0; i < files->n && r == 0; i++) {
		r = add_debug_file(&adding, &files->of[i]);
		ctl_add_stats_progress(stats, 0);
	}
	return ctl_mapped_code_end(&adding, r);
}

int ctl_debug_files_add_quietly(const struct ctl_debug_files *files, const struct ctl *ctl, struct bid_store *store)
{
	struct ctl_add_stats stats;
	int r;

	ctl_add_stats_begin(&stats, ctl, CTL_ADD_SILENT);
	r = ctl_debug_files_add(files, &stats, store);
	ctl_add_stats_release(&stats);
	return r;
}
