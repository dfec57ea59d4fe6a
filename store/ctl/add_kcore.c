// SPDX-License-Identifier: LGPL-2.1-or-later
/* Copies of /proc/kcore, as "perf buildid-cache -k" makes them: three files in one directory, stored at perf's path. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "api/write.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/kallsyms.h"
#include "ctl/add.h"
#include "ctl/local_builds.h"

#define TOP "[kernel.kcore]"

enum {
	TEXT_MAX = 1 << 28, /* maximum bytes of a symbol table, or of a list of modules */
	CHUNK = 1 << 20,
	HUNDREDTH = 10000000, /* ns */
};

/* kcore last: modules and kallsyms alone give perf the symbols; kcore alone gives it nothing. */
static const char *const names[] = { "modules", "kallsyms", "kcore" };

enum { MODULES, KALLSYMS, KCORE, FILES };

struct kcore {
	char dir[PATH_MAX]; /* directory of the files */
	struct bid_id id;
	int fds[FILES]; /* owned */
	char *texts[KCORE]; /* contents of modules and kallsyms; owned */
	size_t lens[KCORE];
	int table_error; /* error in kallsyms */
};

static void kcore_release(struct kcore *kcore)
{
	for (int i = 0; i < FILES; i++)
		bid_close(kcore->fds[i]);
	for (int i = 0; i < KCORE; i++)
		free(kcore->texts[i]);
}

/* Find the directory of @path. Returns false unless @path is a file "kcore" with the two others beside it. */
static bool find_directory(const char *path, char ret_dir[static PATH_MAX])
{
	bid_auto_free char *real = realpath(path, NULL);
	char *slash = real ? strrchr(real, '/') : NULL;
	char other[PATH_MAX + 16];

	if (!slash || strcmp(slash + 1, names[KCORE]) != 0)
		return false;
	*slash = '\0';
	snprintf(ret_dir, PATH_MAX, "%s", real);
	for (int i = 0; i < KCORE; i++) {
		snprintf(other, sizeof(other), "%s/%s", ret_dir, names[i]);
		if (access(other, F_OK) < 0)
			return false;
	}
	return true;
}

/* Is @path in /proc, and therefore all of memory? perf copies the code alone. */
static bool is_memory(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

bool ctl_is_kcore(const char *path)
{
	char dir[PATH_MAX];

	return strcmp(path, "/proc/kcore") == 0 || find_directory(path, dir);
}

/* Return the last component of @copy, and cut it off. */
static const char *take_last(char *copy)
{
	char *slash = strrchr(copy, '/');

	if (!slash)
		return "";
	*slash = '\0';
	return slash + 1;
}

/* Read the notes of the machine whose /proc is @dir; never this machine's, which may run another kernel than the one copied. */
static int read_notes(const char *dir, struct bid_id *ret_id)
{
	const char *slash = strrchr(dir, '/');
	char path[PATH_MAX + 32];
	struct statfs fs;

	if (!slash || strcmp(slash, "/proc") != 0)
		return -ENODATA;
	snprintf(path, sizeof(path), "%s/../sys/kernel/notes", dir);
	return statfs(path, &fs) == 0 && fs.f_type != SYSFS_MAGIC ? ctl_here_notes(path, ret_id) : -ENODATA;
}

/*
 * Find the kernel's id, which none of the files contains. The source is the same as perf's: the notes of the copied machine
 * (builtin-buildid-cache.c, build_id_cache__kcore_buildid()), or the directory of perf's copy.
 */
static int find_id(const char *dir, struct bid_id *ret_id)
{
	char path[PATH_MAX], *copy = path;
	const char *id;
	int r;

	if (read_notes(dir, ret_id) == 0)
		return 0;
	snprintf(path, sizeof(path), "%s", dir);
	take_last(copy);
	id = take_last(copy);
	r = bid_id_parse_str(id, ret_id);
	return r == 0 && strcmp(take_last(copy), TOP) == 0 ? 0 : -ENODATA;
}

static int open_files(struct kcore *kcore)
{
	for (int i = 0; i < FILES; i++) {
		char path[PATH_MAX + 16];
		struct stat st;
		int r;

		snprintf(path, sizeof(path), "%s/%s", kcore->dir, names[i]);
		kcore->fds[i] = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (kcore->fds[i] < 0 || fstat(kcore->fds[i], &st) < 0)
			return -errno;
		if (!S_ISREG(st.st_mode))
			return -EINVAL;
		r = i == KCORE ? 0 : bid_read_file(kcore->fds[i], TEXT_MAX, &kcore->texts[i], &kcore->lens[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Does the file @name of the stored copy @dir have that text? */
static bool has_text(struct bid_store *store, const char *dir, const char *name, const char *text, size_t len)
{
	struct bid_file file = BID_FILE_NONE;
	bid_auto_free char *there = NULL, *path = NULL;
	size_t there_len;
	bool same;

	if (asprintf(&path, "%s/%s", dir, name) < 0) {
		path = NULL;
		return false;
	}
	same = bid_store_open_kcore(store, path, &file) == 0 && bid_read_file(file.fd, TEXT_MAX, &there, &there_len) == 0 &&
	       there_len == len && memcmp(there, text, len) == 0;
	bid_file_release(&file);
	return same;
}

struct kcore_search {
	struct bid_store *store;
	const struct kcore *kcore;
	const char *top; /* "[kernel.kcore]/ID" */
};

/* Is the stored copy the same: the modules and the symbols at equal addresses? perf compares less. */
static int is_same(void *user, const char *name, enum bid_entry entry)
{
	const struct kcore_search *search = user;
	const struct kcore *kcore = search->kcore;
	struct bid_file file = BID_FILE_NONE;
	bid_auto_free char *dir = NULL, *image = NULL;
	int r = 1;

	if (asprintf(&dir, "%s/%s", search->top, name) < 0) {
		dir = NULL;
		return -ENOMEM;
	}
	for (int i = 0; i < KCORE && r; i++)
		r = has_text(search->store, dir, names[i], kcore->texts[i], kcore->lens[i]);
	if (!r)
		return 0;
	if (asprintf(&image, "%s/%s", dir, names[KCORE]) < 0) {
		image = NULL;
		return -ENOMEM;
	}
	r = bid_store_open_kcore(search->store, image, &file);
	bid_file_release(&file);
	return r == 0;
}

/* Make an unused directory name of the present time, in perf's form. */
static void find_timestamp(struct bid_store *store, const char *top, char ret_dir[static PATH_MAX])
{
	struct timespec now;
	struct stat st;

	clock_gettime(CLOCK_REALTIME, &now);
	do {
		char text[32];
		struct tm local;

		localtime_r(&now.tv_sec, &local);
		strftime(text, sizeof(text), "%Y%m%d%H%M%S", &local);
		snprintf(ret_dir, PATH_MAX, "%s/%s%02d", top, text, (int)(now.tv_nsec / HUNDREDTH));
		now.tv_nsec += HUNDREDTH;
		now.tv_sec += now.tv_nsec / 1000000000;
		now.tv_nsec %= 1000000000;
	} while (bid_store_stat(store, ret_dir, &st) == 0);
}

static int copy_into(struct bid_stage *stage, int from)
{
	bid_auto_free char *chunk = malloc(CHUNK);
	off_t at = 0;
	ssize_t n;

	if (!chunk)
		return -ENOMEM;
	while ((n = bid_pread_full(from, chunk, CHUNK, at)) > 0) {
		int r = bid_stage_write(stage, chunk, (size_t)n, at);

		if (r < 0)
			return r;
		at += n;
	}
	return (int)n;
}

static int put_file(struct bid_store *store, int from, const char *dir, const char *name)
{
	struct bid_stage *stage = NULL;
	int r = bid_stage_new(store, &stage);

	/* as perf does, because addresses are secret */
	if (r == 0 && fchmod(bid_stage_fd(stage), 0400) < 0)
		r = -errno;
	if (r == 0)
		r = copy_into(stage, from);
	if (r == 0)
		r = bid_stage_publish_kcore(stage, dir, name);
	bid_stage_free(stage);
	return r;
}

/* Put all files of the copy into the store, or none. */
static int put(struct bid_store *store, const struct kcore *kcore, const char *top)
{
	char dir[PATH_MAX], path[PATH_MAX + 16];
	int r = 0, n = 0;

	find_timestamp(store, top, dir);
	/* an existing name belongs to another process, which was as fast */
	while (n < FILES && r == 0) {
		r = put_file(store, kcore->fds[n], dir, names[n]);
		n += r == 0;
	}
	if (r == 0)
		r = bid_store_sync(store);
	if (r == 0)
		return 0;
	while (n-- > 0) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[n]);
		bid_store_unlink_kcore(store, path);
	}
	if (bid_store_rmdir_kcore(store, dir) == 0 && bid_store_rmdir_kcore(store, top) == 0)
		bid_store_rmdir(store, TOP);
	return r;
}

static int add(struct bid_store *store, struct kcore *kcore, bool *ret_known)
{
	char hex[BID_ID_HEX_MAX], top[sizeof(TOP) + BID_ID_HEX_MAX];
	struct kcore_search search = { .store = store, .kcore = kcore, .top = top };
	int r = open_files(kcore);

	if (r == 0)
		r = kcore->table_error = bid_kallsyms_check(kcore->texts[KALLSYMS], kcore->lens[KALLSYMS]);
	if (r < 0)
		return r;
	snprintf(top, sizeof(top), TOP "/%s", bid_id_format(&kcore->id, hex));
	r = bid_store_each_entry(store, top, is_same, &search);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret_known = r == 1;
	return r == 1 ? 0 : put(store, kcore, top);
}

static const char *why(int error)
{
	switch (error) {
	case -ENODATA:
		return "no build-id of the kernel: neither a 'proc' with '../sys/kernel/notes', nor a directory '" TOP "/ID'";
	case -EOPNOTSUPP:
		return "it is all of memory, of which 'perf buildid-cache -k' files a copy that can be added";
	default:
		return ctl_add_reason(error, BID_LINK_AUTO);
	}
}

int ctl_add_kcore(struct ctl_add_stats *stats, struct bid_store *store, const char *path)
{
	bid_cleanup(kcore_release) struct kcore kcore = { .fds = { -1, -1, -1 } };
	struct bid_added added = { .link = BID_LINK_COPY };
	int r = -EOPNOTSUPP;

	stats->seen++;
	if (!is_memory(path))
		r = find_directory(path, kcore.dir) ? find_id(kcore.dir, &kcore.id) : -ENOENT;
	if (r == 0)
		r = add(store, &kcore, &added.known);
	if (r < 0) {
		ctl_add_stats_refused(stats, path, r, kcore.table_error ? bid_kallsyms_why(r) : why(r), true);
		return r;
	}
	added.id = kcore.id;
	ctl_add_stats_taken(stats, path, &added);
	return 0;
}
