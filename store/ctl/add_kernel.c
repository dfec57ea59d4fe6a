// SPDX-License-Identifier: LGPL-2.1-or-later
/* The running kernel: its symbol table, the vDSO in this process, its loaded modules, and its files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kallsyms.h"
#include "base/local_error.h"
#include "base/log.h"
#include "ctl/add.h"
#include "ctl/running_kernel.h"

#define MODULES "/lib/modules" /* a directory for each release of a kernel */

enum {
	TABLE_MAX = 256 << 20, /* bytes */
	MODULES_DEP_MAX = 1 << 26,
};

/* Read the index of the modules in @directory, "" without one, for the caller to free. Returns 0 or -ENOMEM. */
static int read_index(const char *directory, char **ret_index)
{
	char path[PATH_MAX], *index;
	size_t len;

	snprintf(path, sizeof(path), "%s/modules.dep", directory);
	if (ctl_running_read(path, MODULES_DEP_MAX, &index, &len) < 0)
		index = strdup("");
	if (!index)
		return -ENOMEM;
	*ret_index = index;
	return 0;
}

/* Is @path, "kernel/fs/a-b.ko.xz", the file of the module with the kernel's name @name, "a_b"? */
static bool is_module_file(const char *path, size_t len, const char *name)
{
	const char *base = memrchr(path, '/', len);

	base = base ? base + 1 : path;
	for (; *name; name++, base++)
		if (base >= path + len || (*base == '-' ? '_' : *base) != *name)
			return false;
	return path + len - base >= 3 && memcmp(base, ".ko", 3) == 0 && (base + 3 == path + len || base[3] == '.');
}

/*
 * Find the file in @directory of the module with the kernel's name @name. @index comes from depmod(8), in lines of "FILE:
 * DEPENDENCIES".
 */
static bool find_module(const char *directory, const char *index, const char *name, char *ret_path, size_t size)
{
	for (const char *line = index; *line; line += *line == '\n') {
		size_t len = strcspn(line, ":\n");

		if (line[len] == ':' && is_module_file(line, len, name))
			return (size_t)snprintf(ret_path, size, "%s/%.*s", line[0] == '/' ? "" : directory, (int)len, line) < size;
		line += strcspn(line, "\n");
	}
	return false;
}

int ctl_module_each(const char *name, ctl_module_fn fn, void *user)
{
	bid_auto_dir DIR *releases = opendir(MODULES);
	struct dirent *release;
	int r = 0;

	while (r == 0 && releases && (release = readdir(releases))) {
		bid_auto_free char *index = NULL;
		char directory[sizeof(MODULES) + NAME_MAX + 1], path[PATH_MAX];

		if (release->d_name[0] == '.')
			continue;
		snprintf(directory, sizeof(directory), "%s/%s", MODULES, release->d_name);
		r = read_index(directory, &index);
		if (r == 0 && find_module(directory, index, name, path, sizeof(path)))
			r = fn(user, path);
	}
	return r;
}

/* Add @here. Returns 0, also for a refusal, or a negative errno of the store. */
static int add_data(struct ctl_add_stats *stats, struct bid_store *store, const struct ctl_running_data *here)
{
	struct bid_added added;
	int r = bid_store_add_data(store, &here->artifact, here->mode, here->data, here->len, &added);

	stats->seen++;
	if (r == 0)
		ctl_add_stats_taken(stats, here->name, &added);
	else
		ctl_add_stats_refused(stats, here->name, r, ctl_add_reason(r, BID_LINK_AUTO), false);
	return bid_is_local_error(r) ? r : 0;
}

static int refuse_file(struct ctl_add_stats *stats, const char *path, int error, const char *why)
{
	stats->seen++;
	ctl_add_stats_refused(stats, path, error, why, false);
	return 0;
}

/*
 * Warn if the stored symbol table is from another boot. The first table stays: perf relocates it to the recorded address,
 * and recordings of that boot need its modules.
 */
static void compare_boots(struct bid_store *store, const struct ctl_running_data *here)
{
	struct bid_file file = BID_FILE_NONE;
	bid_auto_free char *text = NULL;
	uint64_t begin;
	size_t len;

	if (bid_store_find(store, &here->artifact, BID_MAY_DERIVE, &file) == 0 &&
	    bid_read_file(file.fd, TABLE_MAX, &text, &len) == 0) {
		begin = bid_kallsyms_begin(text, len);
		if (begin && begin != bid_kallsyms_begin(here->data, here->len))
			bid_warning("the symbol table of this kernel in '%s' is of another boot, and perf relocates it - 'perf "
				    "buildid-cache -k /proc/kcore' adds that of this boot",
				    bid_store_path(store));
	}
	bid_file_release(&file);
}

static int add_kallsyms(struct ctl_add_stats *stats, struct bid_store *store)
{
	bid_cleanup(ctl_running_data_release) struct ctl_running_data here = { 0 };
	int r = ctl_running_kallsyms(&here);

	if (r == 0) {
		r = add_data(stats, store, &here);
		if (r == 0 && stats->ctl->kernel)
			compare_boots(store, &here);
		return r;
	}
	stats->seen++;
	stats->without_table = true;
	/* --kernel names the table; for --running it is one of many files */
	ctl_add_stats_refused(stats, "/proc/kallsyms", r, ctl_running_why(r), stats->ctl->kernel);
	return 0;
}

static int add_vdso(struct ctl_add_stats *stats, struct bid_store *store)
{
	bid_cleanup(ctl_running_data_release) struct ctl_running_data here = { 0 };
	int r = ctl_running_vdso(&here);

	/* an architecture or an emulator without a vDSO */
	if (r == -ENOENT)
		return 0;
	return r == 0 ? add_data(stats, store, &here) : refuse_file(stats, "[vdso]", r, strerror(-r));
}

/* Returns 1 and @ret_added; 0 after a reported refusal; or a negative errno of the store. */
static int add_file(struct ctl_add_stats *stats, struct bid_store *store, const char *path, struct bid_added *ret_added)
{
	int r = bid_store_add(store, path, stats->ctl->link, ret_added);

	stats->seen++;
	if (r < 0) {
		ctl_add_stats_refused(stats, path, r, ctl_add_reason(r, stats->ctl->link), false);
		return bid_is_local_error(r) ? r : 0;
	}
	ctl_add_stats_taken(stats, path, ret_added);
	return 1;
}

static int add_module(struct ctl_add_stats *stats, struct bid_store *store, const char *directory, const char *index,
		      const char *name, const struct bid_id *id)
{
	struct bid_added added;
	char path[PATH_MAX], own[NAME_MAX + 8];
	int r;

	snprintf(own, sizeof(own), "[%s]", name);
	if (!find_module(directory, index, name, path, sizeof(path))) {
		if (bid_store_kinds(store, id) > 0 && bid_store_kinds(store, id) & 1 << BID_KIND_ELF) {
			r = bid_store_sync(store);
			if (r < 0)
				return r;
			stats->seen++;
			ctl_add_stats_taken(stats, own, &(struct bid_added){ .id = *id, .kind = BID_KIND_ELF, .known = true });
			return 0;
		}
		return refuse_file(stats, own, 0, "the module's file is not in its place in '/lib/modules'");
	}
	r = add_file(stats, store, path, &added);
	if (r <= 0)
		return r;
	return bid_id_equal(&added.id, id) ? 0
					   : refuse_file(stats, own, 0, "the module's file is another build than the loaded one");
}

static int add_modules(struct ctl_add_stats *stats, struct bid_store *store)
{
	bid_auto_dir DIR *modules = opendir("/sys/module");
	bid_auto_free char *index = NULL;
	struct utsname system;
	char directory[sizeof(system.release) + 16], path[PATH_MAX];
	struct dirent *entry;
	int r = 0;

	if (!modules || uname(&system) < 0)
		return 0;
	snprintf(directory, sizeof(directory), MODULES "/%s", system.release);
	if (read_index(directory, &index) < 0)
		return -ENOMEM;
	while (r == 0 && (entry = readdir(modules))) {
		struct bid_id id;

		/* built-in modules have no notes */
		snprintf(path, sizeof(path), "/sys/module/%s/notes/.note.gnu.build-id", entry->d_name);
		if (entry->d_name[0] != '.' && ctl_running_notes(path, &id) == 0)
			r = add_module(stats, store, directory, index, entry->d_name, &id);
	}
	return r;
}

int ctl_add_kernel(struct ctl_add_stats *stats, struct bid_store *store)
{
	int r = add_kallsyms(stats, store);

	if (r == 0)
		r = add_vdso(stats, store);
	return r < 0 ? r : add_modules(stats, store);
}

/* Add one file at a usual path of the running kernel's image. */
static int add_kernel_file(struct ctl_add_stats *stats, struct bid_store *store, const char *path)
{
	struct bid_added added;
	struct bid_id id;
	int r;

	if (access(path, F_OK) < 0)
		return 0;
	r = add_file(stats, store, path, &added);
	if (r <= 0)
		return r;
	if (ctl_running_kernel(&id) < 0 || bid_id_equal(&added.id, &id))
		return 0;
	return refuse_file(stats, path, 0,
			   "the file is another build than the running kernel: bidctl added it under its own build-id");
}

/* Add the vDSO images for other kinds of programs, such as 32-bit ones; this process has its own image alone. */
static int add_vdso_files(struct ctl_add_stats *stats, struct bid_store *store, const char *release)
{
	char pattern[sizeof(MODULES "//vdso/vdso*.so") + sizeof(((struct utsname *)0)->release)];
	struct bid_added added;
	glob_t files;
	int r = 0;

	snprintf(pattern, sizeof(pattern), MODULES "/%s/vdso/vdso*.so", release);
	if (glob(pattern, GLOB_NOSORT, NULL, &files) != 0)
		return 0;
	for (size_t i = 0; i < files.gl_pathc && r >= 0; i++)
		r = add_file(stats, store, files.gl_pathv[i], &added);
	globfree(&files);
	return r < 0 ? r : 0;
}

int ctl_add_kernel_files(struct ctl_add_stats *stats, struct bid_store *store)
{
	/* paths of distributions, perf and the kernel's own build; %s is the release */
	static const char *const places[] = {
		"/boot/vmlinuz-%s",
		"/boot/vmlinux-%s",
		"/lib/modules/%s/vmlinuz",
		"/lib/modules/%s/vmlinux",
		"/lib/modules/%s/build/vmlinux",
		"/usr/lib/debug/boot/vmlinux-%s",
		"/usr/lib/debug/boot/vmlinux-%s.debug",
		"/usr/lib/debug/lib/modules/%s/vmlinux",
	};
	struct utsname system;
	int r = 0;

	if (uname(&system) < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && r == 0; i++) {
		const char *mark = strstr(places[i], "%s");
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%.*s%s%s", (int)(mark - places[i]), places[i], system.release, mark + 2);
		r = add_kernel_file(stats, store, path);
	}
	return r < 0 ? r : add_vdso_files(stats, store, system.release);
}
