// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl add --files-from: a generated list, such as all files of a package. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/add_mapped_code.h"

/* Add a regular file, without following links: their targets belong to other packages, or are in the list. */
static int add_path(struct ctl_mapped_code *running, const char *path)
{
	bid_auto_fd int fd = -1;
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0) {
		running->stats->seen++;
		ctl_add_stats_refused(running->stats, path, -errno, strerror(errno), false);
		return 0;
	}
	return ctl_mapped_code_file(running, fd);
}

enum ctl_status ctl_add_listed(struct ctl_add_stats *stats, struct bid_store *store, const char *list)
{
	bid_auto_file FILE *opened = strcmp(list, "-") == 0 ? NULL : fopen(list, "re");
	FILE *file = strcmp(list, "-") == 0 ? stdin : opened;
	struct ctl_mapped_code running;
	bid_auto_free char *line = NULL;
	int r = 0, committed;
	size_t size = 0;
	bool unread;

	if (!file) {
		bid_error_about(list, -errno, "%s", errno == ENOENT ? "no such file" : strerror(errno));
		return CTL_REFUSED;
	}
	ctl_mapped_code_begin(&running, stats, store);
	while (r == 0 && getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		r = add_path(&running, line);
		ctl_add_stats_progress(stats, 0);
	}
	unread = r == 0 && ferror(file);
	if (unread)
		bid_error_about(list, -errno, "%s", strerror(errno));
	committed = ctl_mapped_code_commit(&running);
	ctl_mapped_code_release(&running);
	ctl_progress_clear(&stats->progress);
	if (r == 0)
		r = committed;
	if (r == 0)
		return unread ? CTL_TROUBLE : CTL_DONE;
	bid_error_about(list, r, "%s: cannot add the files of the list '%s' to '%s'", strerror(-r), list, bid_store_path(store));
	return CTL_TROUBLE;
}
