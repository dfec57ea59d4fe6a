// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl quarantine */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/local_error.h"
#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

#define QUARANTINE ".bidfs/quarantine"

struct quarantine {
	const struct ctl *ctl;
	struct bid_store *store;
	int fd; /* descriptor of the directory; -1 without one */
	bool shows; /* print the details */
	size_t n; /* listed or changed files */
	uint64_t size; /* bytes */
};

/* Is @name a plain name, as all files of the quarantine have? */
static bool is_name(const char *name)
{
	return name[0] != '.' && name[0] != '\0' && !strchr(name, '/');
}

/* Is the file open at @fd complete, with a build-id? Returns 0, or a negative errno. */
static int check_file(int fd)
{
	struct bid_elf_info info;
	struct bid_id id;
	int r = bid_elf_build_id_any(fd, &id);

	return r == 0 && bid_elf_examine(fd, &info) == -EBADMSG ? -EBADMSG : r;
}

static int print_file(struct quarantine *quarantine, const char *name)
{
	bid_auto_fd int fd = openat(quarantine->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct bid_id id = { 0 };
	char path[PATH_MAX];
	struct stat st;
	int r;

	if (fstatat(quarantine->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fd >= 0 && S_ISREG(st.st_mode))
		(void)bid_elf_build_id(fd, &id);
	quarantine->n++;
	quarantine->size += (uint64_t)st.st_size;
	snprintf(path, sizeof(path), "%s/" QUARANTINE "/%s", bid_store_path(quarantine->store), name);
	r = fd < 0 ? -errno : check_file(fd);
	return ctl_row(quarantine->ctl, CTL_TIME("time", 19, st.st_ctim.tv_sec), CTL_SIZE("size", -8, (uint64_t)st.st_size),
		       CTL_ID("id", 40, &id), CTL_TEXT("name", quarantine->shows ? CTL_HIDDEN : 0, name),
		       CTL_TEXT("reason", quarantine->shows ? 24 : CTL_HIDDEN, r < 0 ? bid_strerror(r) : NULL),
		       CTL_TEXT("path", quarantine->shows ? 0 : CTL_HIDDEN, path));
}

static int by_name(const struct dirent **one, const struct dirent **other)
{
	return strcmp((*one)->d_name, (*other)->d_name);
}

static int is_listed(const struct dirent *entry)
{
	return is_name(entry->d_name);
}

static int list_files(struct quarantine *quarantine)
{
	struct dirent **entries = NULL;
	int n = quarantine->fd < 0 ? 0 : scandirat(quarantine->fd, ".", &entries, is_listed, by_name), r = n < 0 ? -errno : 0;

	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = print_file(quarantine, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return r;
}

static int find_file(const struct quarantine *quarantine, const char *name)
{
	if (!is_name(name))
		return -EINVAL;
	return faccessat(quarantine->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int show_file(struct quarantine *quarantine, const char *name)
{
	int r = find_file(quarantine, name);

	return r < 0 ? r : print_file(quarantine, name);
}

static int drop_file(struct quarantine *quarantine, const char *name)
{
	int r = find_file(quarantine, name);

	if (r < 0 || quarantine->ctl->dry_run)
		return r;
	return unlinkat(quarantine->fd, name, 0) < 0 ? -errno : 0;
}

/* Does the store have the bytes of the file open at @fd as the artifact of @added? */
static bool is_stored(struct bid_store *store, const struct bid_added *added, int fd)
{
	struct bid_artifact artifact = { .id = added->id, .kind = added->kind };
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;

	return bid_store_find(store, &artifact, BID_MAY_DERIVE, &file) == 0 && bid_same_bytes(fd, file.fd) == 1;
}

/* Add the file under its own build-id, unless the store has other bytes of it. */
static int restore_file(struct quarantine *quarantine, const char *name)
{
	bid_auto_fd int fd = -1;
	char path[PATH_MAX];
	struct bid_added added;
	int r;

	if (!is_name(name))
		return -EINVAL;
	snprintf(path, sizeof(path), "%s/" QUARANTINE "/%s", bid_store_path(quarantine->store), name);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (quarantine->ctl->dry_run)
		return check_file(fd);
	r = bid_store_add(quarantine->store, path, BID_LINK_COPY, &added);
	if (r == 0 && added.known && !is_stored(quarantine->store, &added, fd))
		r = -EEXIST;
	return r < 0 ? r : drop_file(quarantine, name);
}

enum { LIST, SHOW, RESTORE, DROP };

/* Show, restore or drop the files @argv. */
static enum ctl_status each_operand(struct quarantine *quarantine, int verb, int argc, char **argv)
{
	static int (*const verbs[])(struct quarantine * quarantine, const char *name) = { NULL, show_file, restore_file,
											  drop_file };
	const char *state = verb == DROP ? "dropped" : "restored";
	const struct ctl *ctl = quarantine->ctl;
	enum ctl_status status = CTL_DONE;

	for (int i = 0; i < argc; i++) {
		int r = quarantine->fd < 0 ? -ENOENT : verbs[verb](quarantine, argv[i]);

		if (r == 0 && verb != SHOW) {
			quarantine->n++;
			if (ctl->json || ctl->dry_run || ctl->verbose)
				ctl_row(ctl, CTL_STATE("state", 17, state), CTL_TEXT("name", 0, argv[i]));
		}
		if (r == 0)
			continue;
		bid_error_about(argv[i], r, "%s",
				r == -EEXIST ? "cannot restore: the store has other bytes of this build - run 'bidctl remove' first"
				: r == -ENOENT ? "not in the quarantine"
					       : bid_strerror(r));
		status = bid_is_local_error(r) || status == CTL_TROUBLE ? CTL_TROUBLE : CTL_REFUSED;
	}
	if (verb != SHOW)
		ctl_totals(ctl, CTL_NUMBER(state, quarantine->n ? 0 : CTL_HIDDEN, quarantine->n),
			   CTL_BOOL("dry_run", ctl->dry_run));
	return status;
}

enum ctl_status ctl_quarantine(const struct ctl *ctl, int argc, char **argv)
{
	static const char *const verbs[] = { "list", "show", "restore", "drop", NULL };
	int verb = argc > 0 ? ctl_word("verb of 'quarantine'", argv[0], verbs) : LIST;
	struct quarantine quarantine = { .ctl = ctl, .fd = -1, .shows = verb == SHOW };
	ctl_auto_store struct bid_store *store = NULL;
	bid_auto_fd int fd = -1;
	enum ctl_status status;
	char path[PATH_MAX];

	if (verb < 0)
		return CTL_USAGE;
	if (verb == LIST && argc > 1)
		return ctl_usage(argv[1], "'quarantine list' takes no operand");
	if (verb != LIST && argc < 2)
		return ctl_usage(argv[0], "'%s' needs NAME...", argv[0]);
	status = ctl_open_store(ctl, verb < RESTORE || ctl->dry_run ? CTL_READ_ITSELF : CTL_WRITE, &store);
	if (status != CTL_DONE)
		return status;
	if (store) {
		snprintf(path, sizeof(path), "%s/" QUARANTINE, bid_store_path(store));
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT)
			return ctl_trouble(path, -errno, NULL);
	}
	quarantine.store = store;
	quarantine.fd = fd;
	if (verb != LIST) {
		status = each_operand(&quarantine, verb, argc - 1, argv + 1);
	} else {
		int r = list_files(&quarantine);

		if (r < 0)
			status = ctl_trouble(bid_store_path(store), r, "read the quarantine");
	}
	if (verb < RESTORE)
		ctl_totals(ctl, CTL_NUMBER("files", CTL_HIDDEN, quarantine.n), CTL_SIZE("size", CTL_HIDDEN, quarantine.size));
	return status;
}
