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
#include "ctl/mounts.h"
#include "ctl/probe.h"
#include "ctl/probe_edit.h"

static int is_in_mount(void *user, const struct ctl_mount *mount)
{
	const struct stat *st = user;

	return mount->dev == st->st_dev;
}

/* Is the file open at @fd, with the path @real, a copy in a store or in a mount? Programs do not run from there. */
static bool is_kept(struct bid_store *store, int fd, const char *real)
{
	size_t len = store ? strlen(bid_store_path(store)) : 0;
	struct stat st;

	if (store && strncmp(real, bid_store_path(store), len) == 0 && real[len] == '/')
		return true;
	return fstat(fd, &st) == 0 && ctl_each_mount(CTL_MOUNTINFO, is_in_mount, &st) > 0;
}

/* Identify the file @name. A stored or packed file stands for its build, which runs from another path. */
static enum ctl_status find_file(struct bid_store *store, const char *name, struct ctl_probed *probed)
{
	bid_auto_free char *real = NULL;
	bid_auto_fd int fd = -1;
	int r = ctl_open_real(name, &fd, &real);

	if (r == 0)
		r = ctl_identify(fd, &probed->id);
	if (r == -ENOENT)
		bid_error_about(name, r, "neither a build-id in the store, nor a file, nor 'kernel'");
	else if (r < 0)
		bid_error_about(name, r, "%s", bid_strerror(r));
	else if (bid_elf_is_packed(fd) <= 0 && !is_kept(store, fd, real))
		snprintf(probed->path, sizeof(probed->path), "%s", real);
	return r < 0 ? CTL_REFUSED : CTL_DONE;
}

enum ctl_status ctl_probed_find(struct bid_store *store, const char *operand, struct ctl_probed *ret_probed)
{
	int r;

	*ret_probed = (struct ctl_probed){ 0 };
	ret_probed->kernel = strcmp(operand, "kernel") == 0;
	if (ret_probed->kernel)
		return ctl_which_build(store, operand, &ret_probed->id);
	r = ctl_which(store, operand, &ret_probed->id);
	if (r == -EINVAL || (r == -ENOENT && access(operand, F_OK) == 0))
		return find_file(store, operand, ret_probed);
	return r < 0 ? ctl_which_failed(operand, r) : CTL_DONE;
}

static int write_text(void *user, const void *data, size_t len)
{
	return fwrite(data, 1, len, user) == len ? 0 : -ENOMEM;
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
	r = bid_elf_probes(fd, path, write_text, out);
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
static enum ctl_status none(struct bid_store *store, const struct ctl_probed *probed)
{
	struct others others = { .store = store, .id = &probed->id };
	char hex[BID_ID_HEX_MAX], where[PATH_MAX];
	int kinds = store ? bid_store_kinds(store, &probed->id) : 0;

	bid_id_format(&probed->id, hex);
	if (kinds > 0 && kinds & 1 << BID_KIND_PROBES && bid_store_where(store, &probed->id, where, sizeof(where)) == 0)
		bid_error_about(
			hex, -ENOENT,
			"no probe definitions of build '%s' in '%s/%s/%s', which perf leaves so when it lists; without that file "
			"they are made of static probes",
			hex, bid_store_path(store), where, bid_kind_store_name(BID_KIND_PROBES));
	else if (store && probed->path[0] && bid_store_each_build(store, probed->path, find_other, &others) > 0)
		bid_error_about(hex, -ENOENT,
				"no probe definitions of build '%s', which '%s' is; those in the store are of its build %s", hex,
				probed->path, others.hex);
	else
		bid_error_about(hex, -ENOENT, "no probe definitions of build '%s', and no static probes to make them of", hex);
	return CTL_REFUSED;
}

enum ctl_status ctl_probed_read(struct bid_store *store, const struct ctl_probed *probed, struct ctl_probe_file *ret_file)
{
	int r = store ? ctl_probe_read(store, &probed->id, ret_file) : -ENOENT;
	char hex[BID_ID_HEX_MAX];

	if ((r == -ENOENT || (r == 0 && ret_file->n == 0)) && probed->path[0]) {
		ctl_probe_file_release(ret_file);
		r = read_file(probed->path, ret_file);
	}
	if (r == -ENOENT || r == -ENODATA || (r == 0 && ret_file->n == 0))
		return none(store, probed);
	if (r < 0)
		bid_error_about(bid_id_format(&probed->id, hex), r, "%s: the probe definitions of '%s'",
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
