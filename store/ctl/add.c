// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl add */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <bid/error.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/local_error.h"
#include "base/log.h"
#include "ctl/child.h"
#include "ctl/debug_file.h"

/* Raise the limit of open files: each thread of a scan holds a descriptor per directory level, and files that wait for a sync. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* One operand that is a tree, or all operands that are files. */
struct adding_files {
	struct ctl_add_stats *stats;
	bool batch; /* one sync for several files */
	struct ctl_debug_files debug_files;
	bool scanned; /* the operand was a tree */
	bool too_large; /* a file exceeds the free space */
	sigset_t ends, before; /* signals that end a scan; signal mask from before the scan */
	int caught; /* signal that ended the scan */
};

static int report_scanned(void *user, const struct bid_scan_file *file)
{
	struct adding_files *adding = user;
	struct ctl_add_stats *stats = adding->stats;

	if (file->error < 0) {
		ctl_add_stats_refused(stats, file->path, file->error,
				      ctl_add_file_reason(file->path, file->error, stats->ctl->link), false);
		return 0;
	}
	ctl_add_stats_taken(stats, file->path, &file->added);
	/* a known build had its search for debug files when it was first added */
	if (file->added.known || file->added.kind != BID_KIND_ELF)
		return 0;
	return ctl_debug_files_want(&adding->debug_files, file->path, &file->added.id);
}

static int show_progress(void *user, const struct bid_scan_counts *counts)
{
	struct adding_files *adding = user;

	ctl_add_stats_progress(adding->stats, counts->seen);
	if (adding->caught > 0)
		return -EINTR;
	adding->caught = sigtimedwait(&adding->ends, NULL, &(struct timespec){ 0 });
	if (adding->caught <= 0)
		return 0;
	/* the scan still adds the files that it has begun; another signal ends the program at once */
	pthread_sigmask(SIG_SETMASK, &adding->before, NULL);
	return -EINTR;
}

static int add_tree(struct adding_files *adding, struct bid_store *store, const char *path)
{
	struct ctl_add_stats *stats = adding->stats;
	struct bid_scan_config config = {
		.jobs = stats->ctl->jobs,
		.cross = stats->ctl->cross,
		.link = stats->ctl->link,
		.file = report_scanned,
		.progress = show_progress,
		.user = adding,
	};
	struct bid_scan_counts counts;
	int r;

	adding->scanned = true;
	/* before the threads start, so that they inherit the mask */
	ctl_end_signals(&adding->ends);
	pthread_sigmask(SIG_BLOCK, &adding->ends, &adding->before);
	r = bid_store_scan(store, path, &config, &counts);
	/* a signal during the last sync */
	if (adding->caught <= 0)
		adding->caught = sigtimedwait(&adding->ends, NULL, &(struct timespec){ 0 });
	pthread_sigmask(SIG_SETMASK, &adding->before, NULL);

	ctl_progress_clear(&stats->progress);
	stats->seen += counts.seen;
	return r;
}

/* Add one file. Without a batch it is on disk on return, otherwise after ctl_add_stats_sync(). */
static int add_file(struct adding_files *adding, struct bid_store *store, const char *path)
{
	struct bid_add add = { .path = path, .fd = -1, .link = adding->stats->ctl->link, .batch = adding->batch };
	struct bid_added added;
	int r;

	adding->stats->seen++;
	r = bid_store_add_file(store, &add, &added);
	if (r == 0 && adding->batch)
		r = ctl_add_stats_defer(adding->stats, path, &added);
	if (r < 0)
		return r;
	if (!adding->batch)
		ctl_add_stats_taken(adding->stats, path, &added);
	return added.kind == BID_KIND_ELF ? ctl_debug_files_want(&adding->debug_files, path, &added.id) : 0;
}

/* Is @path a description of the running kernel? */
static bool is_kernels(const char *path)
{
	return strcmp(path, "/proc/kallsyms") == 0 || strcmp(path, "/sys/kernel/notes") == 0;
}

static bool is_tree(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int ctl_foresee(struct bid_store *store, const char *path, struct bid_added *ret_added)
{
	struct bid_added added = { .kind = BID_KIND_ELF, .link = BID_LINK_AUTO };
	bid_auto_free char *real = NULL;
	struct bid_elf_info info;
	bid_auto_fd int fd = -1;
	int r = is_tree(path) ? -EISDIR : ctl_open_real(path, &fd, &real);

	if (r == 0)
		r = ctl_identify(fd, &added.id);
	if (r == 0 && bid_elf_examine(fd, &info) == 0 && !info.has_code && (info.has_dwarf || info.has_symtab))
		added.kind = BID_KIND_DEBUGINFO;
	if (r < 0)
		return r;
	r = store ? bid_store_kinds(store, &added.id) : 0;
	added.known = r > 0 && r & 1 << added.kind;
	*ret_added = added;
	return 0;
}

/* Report what the add of the file @path would do. */
static enum ctl_status preview_add(struct ctl_add_stats *stats, struct bid_store *store, const char *path)
{
	struct bid_added added;
	int r = ctl_foresee(store, path, &added);

	stats->seen++;
	if (r == 0)
		ctl_add_stats_taken(stats, path, &added);
	else
		ctl_add_stats_refused(stats, path, r, ctl_add_file_reason(path, r, stats->ctl->link), true);
	return r == 0 ? CTL_DONE : bid_is_local_error(r) ? CTL_TROUBLE : CTL_REFUSED;
}

static const char *reason_of(const struct adding_files *tree, const char *path, int error)
{
	if (error == -ENOEXEC && is_kernels(path))
		return "not an ELF file - 'bidctl add --kernel' adds the running kernel";
	/* for a file, open(2) returned the error */
	if (error == -ELOOP && !tree->scanned)
		return strerror(ELOOP);
	return ctl_add_file_reason(path, error, tree->stats->ctl->link);
}

/* Add one operand: a tree, or one of @files. */
static enum ctl_status add_path(struct adding_files *files, struct bid_store *store, const char *path)
{
	struct ctl_add_stats *stats = files->stats;
	struct adding_files tree = { .stats = stats };
	int r;

	if (!is_tree(path)) {
		r = add_file(files, store, path);
	} else {
		r = add_tree(&tree, store, path);
		/* after the scan, which may add them itself; a second run skips known programs and their debug files */
		if (r == 0 || tree.caught > 0) {
			int paired = ctl_debug_files_add(&tree.debug_files, stats, store);

			r = r == 0 ? paired : r;
		}
		ctl_debug_files_release(&tree.debug_files);
	}
	if (tree.caught > 0 && r == -EINTR)
		bid_error_about(path, r, "interrupted: bidctl did not search all of '%s' - add it again to go on", path);
	if (tree.caught > 0 && (r == 0 || r == -EINTR))
		return (enum ctl_status)(CTL_SIGNAL + tree.caught);
	if (r == 0)
		return CTL_DONE;
	ctl_add_stats_refused(stats, path, r, reason_of(&tree, path, r), true);
	/* the next, smaller files may fit */
	files->too_large |= r == -EFBIG;
	return bid_is_local_error(r) ? CTL_TROUBLE : CTL_REFUSED;
}

static enum ctl_status add_operands(struct ctl_add_stats *stats, struct bid_store *store, int argc, char **argv)
{
	struct adding_files files = { .stats = stats, .batch = argc > 1 };
	enum ctl_status status = CTL_DONE;
	int r;

	for (int i = 0; i < argc && stats->ctl->dry_run; i++) {
		enum ctl_status one = preview_add(stats, store, argv[i]);

		status = one > status ? one : status;
	}
	if (stats->ctl->dry_run)
		return status;
	for (int i = 0; i < argc && status < CTL_TROUBLE; i++) {
		enum ctl_status one = add_path(&files, store, argv[i]);

		if (one != CTL_DONE)
			status = one;
	}
	/* also after an error: the files from before it */
	r = ctl_add_stats_sync(stats, store);
	/* after all operands, which may include them */
	if (r == 0 && status < CTL_TROUBLE)
		r = ctl_debug_files_add(&files.debug_files, stats, store);
	ctl_debug_files_release(&files.debug_files);
	if (r == 0)
		return files.too_large && status < CTL_TROUBLE ? CTL_TROUBLE : status;
	return ctl_trouble(bid_store_path(store), r, "add to the store");
}

/* Add all mapped code, and the running parts of the kernel. */
static enum ctl_status add_running(struct ctl_add_stats *stats, struct bid_store *store)
{
	struct ctl_mapped_code running;
	int r = ctl_mapped_code_begin(&running, stats, store);

	if (r == 0)
		r = ctl_mapped_code_all(&running);
	r = ctl_mapped_code_end(&running, r);
	ctl_mapped_code_warn_hidden(&running);
	if (r < 0)
		return ctl_trouble(bid_store_path(store), r, "add the running programs to the store");
	r = ctl_add_kernel(stats, store);
	if (r < 0)
		return ctl_trouble(bid_store_path(store), r, "add the kernel to the store");
	return running.passed_over > 0 ? CTL_REFUSED : CTL_DONE;
}

/* Add a regular file, without following links: their targets belong to other packages, or are in the list. */
static int add_listed_file(struct ctl_mapped_code *running, const char *path)
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

/* Add the ELF files among the paths in the file @list, such as all files of a package. */
static enum ctl_status add_listed(struct ctl_add_stats *stats, struct bid_store *store, const char *list)
{
	bid_auto_file FILE *opened = strcmp(list, "-") == 0 ? NULL : fopen(list, "re");
	FILE *file = strcmp(list, "-") == 0 ? stdin : opened;
	struct ctl_mapped_code running;
	bid_auto_free char *line = NULL;
	size_t size = 0;
	bool unread;
	int r;

	if (!file) {
		bid_error_about(list, -errno, "%s", errno == ENOENT ? "no such file" : strerror(errno));
		return CTL_REFUSED;
	}
	r = ctl_mapped_code_begin(&running, stats, store);
	while (r == 0 && getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		r = add_listed_file(&running, line);
		ctl_add_stats_progress(stats, 0);
	}
	unread = r == 0 && ferror(file);
	if (unread)
		bid_error_about(list, -errno, "%s", strerror(errno));
	r = ctl_mapped_code_end(&running, r);
	if (r == 0)
		return unread ? CTL_TROUBLE : CTL_DONE;
	bid_error_about(list, r, "%s: cannot add the files of the list '%s' to '%s'", strerror(-r), list, bid_store_path(store));
	return CTL_TROUBLE;
}

static enum ctl_status add_whole_kernel(struct ctl_add_stats *stats, struct bid_store *store)
{
	/* --running includes the running parts of the kernel */
	int r = stats->ctl->running ? 0 : ctl_add_kernel(stats, store);

	if (r == 0)
		r = ctl_add_kernel_files(stats, store);
	if (r == 0)
		return stats->without_table ? CTL_REFUSED : CTL_DONE;
	return ctl_trouble(bid_store_path(store), r, "add the kernel to the store");
}

enum ctl_status ctl_add(const struct ctl *ctl, int argc, char **argv)
{
	ctl_auto_store struct bid_store *store = NULL;
	struct ctl_add_stats stats;
	enum ctl_status status;

	if (ctl->perf_data && (argc > 0 || ctl->running || ctl->kernel || ctl->files_from))
		return ctl_usage(argc > 0	? argv[0]
				 : ctl->running ? "--running"
				 : ctl->kernel	? "--kernel"
						: "--files-from",
				 "'--perf-data' excludes operands and other sources");
	if (ctl->dry_run && ctl->perf_data)
		return ctl_usage("--dry-run", "'--dry-run' takes files alone");
	if (ctl->perf_data)
		return ctl_add_perf_data(ctl);
	if (argc == 0 && !ctl->running && !ctl->kernel && !ctl->files_from)
		return ctl_usage("add", "'add' needs FILE|DIR..., '--running', '--kernel', '--files-from' or '--perf-data'");
	if (ctl->dry_run && (ctl->running || ctl->kernel || ctl->files_from))
		return ctl_usage("--dry-run", "'--dry-run' takes files alone");
	for (int i = 0; i < argc && ctl->dry_run; i++)
		if (is_tree(argv[i]))
			return ctl_usage(argv[i], "'--dry-run' takes files, and this is a directory");
	status = ctl_open_store(ctl, ctl->dry_run ? CTL_READ_ITSELF : CTL_WRITE, &store);
	if (status != CTL_DONE)
		return status;
	allow_many_files();
	ctl_add_stats_begin(&stats, ctl, CTL_ADD_WHOLE);

	if (ctl->running)
		status = add_running(&stats, store);
	if (ctl->kernel && status == CTL_DONE)
		status = add_whole_kernel(&stats, store);
	if (ctl->files_from && status == CTL_DONE)
		status = add_listed(&stats, store, ctl->files_from);
	if (argc > 0 && status != CTL_TROUBLE) {
		enum ctl_status operands = add_operands(&stats, store, argc, argv);

		if (operands != CTL_DONE)
			status = operands;
	}
	return ctl_add_stats_end(&stats, status);
}
