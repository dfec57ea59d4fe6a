// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/needed_builds.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/local_error.h"
#include "base/log.h"
#include "ctl/add.h"
#include "ctl/proc_maps.h"

static enum ctl_status read_perf_data(const struct ctl *ctl, struct ctl_perf_data *needs)
{
	enum ctl_status status;

	needs->path = ctl->perf_data;
	status = ctl_perf_data_read(needs, true);
	if (status == CTL_DONE)
		ctl_perf_data_warn(needs);
	return status;
}

static int add_needed(struct ctl_perf_data *needs, const struct bid_id *id, const char *path)
{
	return ctl_perf_data_add(needs, &(struct bid_perfdata_dso){ .id = *id, .sized = true, .path = path });
}

/* Is @path the name of memory: a compiler's output, shared memory? The kernel shows it as a file. */
static bool is_memory(const char *path)
{
	return strncmp(path, "/memfd:", 7) == 0 || strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/SYSV", 5) == 0;
}

/* bid_elf_core_fn. Every file with an id is downloadable, because a core file does not list the vDSO. */
static int take_core_file(void *user, const struct bid_elf_core_file *file)
{
	struct ctl_perf_data *needs = user;

	if (file->id.len == 0 && (!file->code || is_memory(file->path)))
		return 0;
	/* the code of a file whose beginning or other code was added */
	if (file->id.len == 0 && needs->n > 0 && strcmp(needs->builds[needs->n - 1].path, file->path) == 0)
		return 0;
	return add_needed(needs, &file->id, file->path);
}

/* Order by path, builds with an id first. */
static int by_path(const void *a, const void *b)
{
	const struct ctl_build *const *one = a, *const *two = b;
	int order = strcmp((*one)->path, (*two)->path);

	return order ? order : ((*one)->id.len == 0) - ((*two)->id.len == 0);
}

/* Warn of each file without an id once, unless another mapping of the file has an id. */
static int name_unidentified(struct ctl_perf_data *needs)
{
	bid_auto_free struct ctl_build **sorted = calloc(needs->n + 1, sizeof(struct ctl_build *));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < needs->n; i++)
		sorted[i] = &needs->builds[i];
	qsort(sorted, needs->n, sizeof(struct ctl_build *), by_path);
	for (size_t i = 0; i < needs->n; i++) {
		if (sorted[i]->id.len > 0)
			continue;
		if (i > 0 && strcmp(sorted[i - 1]->path, sorted[i]->path) == 0)
			sorted[i]->state = CTL_BUILD_KNOWN;
		else
			bid_warning("'%s': %s", sorted[i]->path,
				    sorted[i]->why ? sorted[i]->why : "the core file has no build-id of it");
	}
	return 0;
}

/* Does any build have an id? */
static bool has_ids(const struct ctl_perf_data *needs)
{
	for (size_t i = 0; i < needs->n; i++)
		if (needs->builds[i].id.len > 0)
			return true;
	return false;
}

static const char *why_no_core(int error)
{
	switch (error) {
	case -ENOENT:
		return "no such file";
	case -ENOEXEC:
	case -EINVAL:
		return "not a core file";
	case -ENODATA:
		return "a core file without a list of its mappings";
	case -EBADMSG:
		return "damaged or cut short";
	case -ENOSPC:
	case -EDQUOT:
		return "no room for a copy in the directory that TMPDIR names, or else in /var/tmp";
	default:
		return strerror(-error);
	}
}

/* Open a file without a name, for a copy that permits reads at any offset. */
static int open_spool(void)
{
	const char *directory = getenv("TMPDIR");
	int fd = open(directory && *directory ? directory : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/* Open the core file for reads at any offset: the file itself, or a copy of a packed file or of a pipe. */
static int open_core(const char *path)
{
	bid_auto_fd int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	bid_auto_fd int spool = -1;
	char magic[SELFMAG];
	int r;

	if (fd < 0)
		return -errno;
	if (pread(fd, magic, sizeof(magic), 0) == sizeof(magic) && memcmp(magic, ELFMAG, SELFMAG) == 0)
		return bid_steal_fd(&fd);
	spool = open_spool();
	r = spool < 0 ? spool : bid_elf_core_unpack(fd, spool);
	return r < 0 ? r : bid_steal_fd(&spool);
}

/* Can this process look up the core file's paths below the root of the process of --pid? */
static enum ctl_status check_root(const struct ctl *ctl)
{
	bid_auto_fd int root = ctl->pid ? ctl_process_root(ctl->pid) : -1;

	if (!ctl->pid || root >= 0)
		return CTL_DONE;
	bid_error_about(ctl->pid, root, "%s: cannot open the root of that process",
			root == -ENOENT ? "no such process" : strerror(-root));
	return CTL_REFUSED;
}

static enum ctl_status read_core(const struct ctl *ctl, struct ctl_perf_data *needs)
{
	bid_auto_fd int fd = open_core(ctl->core);
	int r = fd < 0 ? fd : bid_elf_core_each(fd, take_core_file, needs);

	if (check_root(ctl) != CTL_DONE)
		return CTL_REFUSED;
	if (r == 0)
		r = name_unidentified(needs);
	if (r < 0) {
		bid_error_about(ctl->core, r, "%s", why_no_core(r));
		return bid_is_local_error(r) ? CTL_TROUBLE : CTL_REFUSED;
	}
	if (has_ids(needs))
		return CTL_DONE;
	bid_error_about(ctl->core, -ENODATA, "no build-id in it - set bit 4 of /proc/PID/coredump_filter before the next crash");
	return CTL_REFUSED;
}

struct process {
	const struct ctl *ctl;
	struct bid_store *store; /* borrowed; NULL to add no files */
	struct ctl_perf_data *needs;
	dev_t dev; /* device of the previous mapping */
	ino_t ino;
};

static const char *why_unidentified(int error)
{
	switch (error) {
	case -ENODATA:
		return "it has no build-id";
	case -ENOEXEC:
		return "a program or library inside an archive, where bidctl reads no build-id";
	default:
		return strerror(-error);
	}
}

static int add_unidentified(struct ctl_perf_data *needs, const char *path, int error)
{
	int r = add_needed(needs, &(struct bid_id){ 0 }, path);

	if (r == 0) {
		needs->builds[needs->n - 1].why = strdup(why_unidentified(error));
		r = needs->builds[needs->n - 1].why ? 0 : -ENOMEM;
	}
	return r;
}

static int take_mapping(void *user, const struct ctl_mapping *mapping)
{
	struct process *process = user;
	char path[PATH_MAX] = "";
	bid_auto_fd int fd = -1;
	struct bid_added added;
	struct bid_id id;
	int r;

	if (mapping->dev == process->dev && mapping->ino == process->ino)
		return 0;
	process->dev = mapping->dev;
	process->ino = mapping->ino;
	fd = ctl_mapping_open(mapping, path);
	r = fd < 0 ? fd : bid_elf_build_id(fd, &id);
	/* the process has ended, or the mapping is a device or a compiler's output */
	if (r == -ESRCH || r == -EINVAL || (r == -ENOEXEC && !ctl_mapping_is_archive(fd)))
		return 0;
	if (r < 0)
		return add_unidentified(process->needs, fd < 0 ? mapping->path : path, r);
	r = add_needed(process->needs, &id, path);
	if (r < 0 || !process->store)
		return r;
	r = bid_store_add_file(process->store, &(struct bid_add){ .path = path, .fd = fd, .link = process->ctl->link }, &added);
	if (r == 0)
		process->needs->builds[process->needs->n - 1].state = added.known ? CTL_BUILD_KNOWN : CTL_BUILD_ADDED;
	return bid_is_local_error(r) ? r : 0;
}

static enum ctl_status read_process(const struct ctl *ctl, struct bid_store *store, struct ctl_perf_data *needs)
{
	struct process process = { .ctl = ctl, .store = store, .needs = needs };
	int r;

	if (!*ctl->pid || strlen(ctl->pid) > 10 || strspn(ctl->pid, "0123456789") != strlen(ctl->pid))
		return ctl_usage(ctl->pid, "not the number of a process");
	r = ctl_maps_each(ctl->pid, take_mapping, &process);
	if (r == 0)
		r = name_unidentified(needs);
	if (r == 0 && has_ids(needs))
		return CTL_DONE;
	bid_error_about(ctl->pid, r, "%s: process '%s'",
			r == 0	       ? "it has ended, or maps no file with a build-id"
			: r == -ENOENT ? "no such process"
				       : bid_strerror(r),
			ctl->pid);
	return r == 0 || r == -ENOENT || r == -EACCES ? CTL_REFUSED : CTL_TROUBLE;
}

/* Count a line without an id; print a message for the first one. */
static void refuse_line(const char *text, size_t number, size_t *n_refused)
{
	if ((*n_refused)++ == 0)
		bid_error_about(text, -EINVAL, "not a build-id in hex, in line %zu", number);
}

/* Take "ID", or "ID NAME" as perf-buildid-list(1) prints them. Skips an empty line. */
static int take_line(struct ctl_perf_data *needs, char *line, size_t number, size_t *n_refused)
{
	char *id_text = line + strspn(line, " \t"), *name;
	struct bid_id id;
	size_t len = strcspn(id_text, " \t\r\n");

	if (len == 0)
		return 0;
	name = id_text + len + strspn(id_text + len, " \t\r\n");
	name[strcspn(name, "\r\n")] = '\0';
	id_text[len] = '\0';
	if (ctl_parse_id(id_text, &id) == 0)
		return add_needed(needs, &id, name);
	refuse_line(id_text, number, n_refused);
	return 0;
}

/* Read the builds on standard input. Returns CTL_USAGE after the last line if a line begins with no id. */
static enum ctl_status read_list(struct ctl_perf_data *needs)
{
	bid_auto_free char *line = NULL;
	size_t size = 0, number = 0, n_refused = 0;
	int r = 0;

	/* a hint for a user who gave no operand by mistake */
	if (isatty(STDIN_FILENO))
		bid_warning("reading build-ids from the terminal, one a line, to the end of input (Ctrl-D)");
	while (r == 0 && getline(&line, &size, stdin) >= 0)
		r = take_line(needs, line, ++number, &n_refused);
	if (r < 0)
		return ctl_no_memory();
	if (ferror(stdin))
		return ctl_trouble("standard input", -errno, NULL);
	if (n_refused > 1)
		bid_error_about("standard input", -EINVAL, "no build-id in %zu more lines", n_refused - 1);
	return n_refused > 0 ? CTL_USAGE : CTL_DONE;
}

enum ctl_status ctl_needs_read(const struct ctl *ctl, struct bid_store *store, struct ctl_perf_data *needs)
{
	if (ctl->perf_data)
		return read_perf_data(ctl, needs);
	if (ctl->core)
		return read_core(ctl, needs);
	return ctl->pid ? read_process(ctl, store, needs) : read_list(needs);
}
