// SPDX-License-Identifier: LGPL-2.1-or-later
/* The files of perf's copy of /proc/kcore: "[kernel.kcore]/ID/TIMESTAMP/{kcore,kallsyms,modules}". */
#include <errno.h>
#include <string.h>

#include "api/elf.h"
#include "disk/store.h"

/*
 * Is the file at @fd complete, as the file @name of a copy? perf writes kcore in place and its headers first, which contain its
 * length. The other files are text, and do not show truncation. Returns 0, -ENOENT, or as bid_elf_examine().
 */
static int check_whole(int fd, const char *name)
{
	struct bid_elf_info info;
	int r = strcmp(name, "kcore") == 0 ? bid_elf_examine(fd, &info) : 0;

	return r == -ENOEXEC || r == -EBADMSG ? -ENOENT : r;
}

int bid_store_open_kcore(struct bid_store *store, const char *path, struct bid_file *ret_file)
{
	const char *slash = strrchr(path, '/');
	struct bid_file file = BID_FILE_NONE;
	int r = -ENOENT;

	for (; store; store = store->lower) {
		if (bid_store_has_paths(store))
			r = bid_store_open_file(store, path, false, &file);
		if (r != -ENOENT)
			break;
	}
	if (r < 0)
		return r;
	r = check_whole(file.fd, slash ? slash + 1 : path);
	if (r < 0)
		bid_file_release(&file);
	else
		*ret_file = file;
	return r;
}
