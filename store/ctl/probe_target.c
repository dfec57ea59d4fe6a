// SPDX-License-Identifier: LGPL-2.1-or-later
/* The build in the operand of "bidctl probe". */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <bid/error.h>

#include "api/elf.h"
#include "api/remove.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "ctl/probe.h"
#include "ctl/probe_edit.h"

/*
 * Does a program run from the file @real? A packed file, and a copy in a store or in a mount, stand for a build that runs from
 * another path.
 */
static bool is_run(struct bid_store *store, const char *real)
{
	size_t len = store ? strlen(bid_store_path(store)) : 0;
	bid_auto_fd int fd = open(real, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (store && strncmp(real, bid_store_path(store), len) == 0 && real[len] == '/')
		return false;
	return fd >= 0 && bid_elf_is_packed(fd) <= 0 && fstat(fd, &st) == 0 && !bid_is_in_mount(fd, &st);
}

enum ctl_status ctl_probe_target_find(struct bid_store *store, const char *operand, struct ctl_probe_target *ret_target)
{
	bid_auto_free char *real = NULL;
	enum ctl_status status;

	*ret_target = (struct ctl_probe_target){ .kernel = strcmp(operand, "kernel") == 0 };
	status = ctl_which_build(store, operand, &ret_target->id, &real);
	if (status == CTL_DONE && real && is_run(store, real))
		snprintf(ret_target->path, sizeof(ret_target->path), "%s", real);
	return status;
}

/* Read the static probes of a file that the store lacks, or has under another path. */
static int read_file(const char *path, struct ctl_probe_file *ret_file)
{
	bid_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = NULL;
	size_t len;
	FILE *out = fd < 0 ? NULL : open_memstream(&text, &len);
	int r;

	if (!out)
		return -errno;
	r = bid_elf_probes(fd, path, out);
	if (fclose(out) != 0 && r == 0)
		r = -ENOMEM;
	if (r == 0)
		return ctl_probe_file_parse(text, len, ret_file);
	free(text);
	return r;
}

struct others {
	struct bid_store *store;
	const struct bid_id *id;
	char hex[BID_ID_HEX_MAX]; /* id of another build with definitions */
};

static int find_other(void *user, const struct bid_id *id)
{
	bid_cleanup(ctl_probe_file_release) struct ctl_probe_file file = { 0 };
	struct others *others = user;

	if (bid_id_equal(id, others->id) || ctl_probe_read(others->store, id, &file) < 0 || file.n == 0)
		return 0;
	bid_id_format(id, others->hex);
	return 1;
}

/* Report the absence of definitions, and name another build of the path that has some. */
static enum ctl_status report_absent(struct bid_store *store, const struct ctl_probe_target *target)
{
	struct others others = { .store = store, .id = &target->id };
	char hex[BID_ID_HEX_MAX], where[PATH_MAX];
	int kinds = store ? bid_store_kinds(store, &target->id) : 0;

	bid_id_format(&target->id, hex);
	if (kinds > 0 && kinds & 1 << BID_KIND_PROBES && bid_store_where(store, &target->id, where, sizeof(where)) == 0)
		bid_error_about(hex, -ENOENT,
				"no probe definitions of build '%s' in '%s/%s/%s', which perf emptied - remove that file, and "
				"bidctl makes them of static probes",
				hex, bid_store_path(store), where, bid_kind_store_name(BID_KIND_PROBES));
	else if (store && target->path[0] && bid_store_each_build(store, target->path, find_other, &others) > 0)
		bid_error_about(hex, -ENOENT, "no probe definitions of build '%s' of '%s': the store has those of build %s", hex,
				target->path, others.hex);
	else
		bid_error_about(hex, -ENOENT, "no probe definitions of build '%s', and no static probes to make them of", hex);
	return CTL_REFUSED;
}

enum ctl_status ctl_probe_target_read(struct bid_store *store, const struct ctl_probe_target *target,
				      struct ctl_probe_file *ret_file)
{
	int r = store ? ctl_probe_read(store, &target->id, ret_file) : -ENOENT;
	char hex[BID_ID_HEX_MAX];

	if ((r == -ENOENT || (r == 0 && ret_file->n == 0)) && target->path[0]) {
		ctl_probe_file_release(ret_file);
		r = read_file(target->path, ret_file);
	}
	if (r == -ENOENT || r == -ENODATA || (r == 0 && ret_file->n == 0))
		return report_absent(store, target);
	if (r < 0)
		bid_error_about(bid_id_format(&target->id, hex), r, "%s: the probe definitions of '%s'",
				r == -EBADMSG ? "not in perf's format" : bid_strerror(r), hex);
	return r < 0 ? CTL_TROUBLE : CTL_DONE;
}

bool ctl_probe_wanted(const struct ctl_probe *probe, char *const *patterns, int n)
{
	for (int i = 0; i < n; i++)
		if (ctl_probe_matches(probe, patterns[i]))
			return true;
	return n == 0;
}

const char *ctl_probe_unmatched(const struct ctl_probe_file *file, char *const *patterns, int n)
{
	for (int i = 0; i < n; i++) {
		bool found = false;

		for (size_t j = 0; j < file->n && !found; j++)
			found = ctl_probe_matches(&file->probes[j], patterns[i]);
		if (!found)
			return patterns[i];
	}
	return NULL;
}
