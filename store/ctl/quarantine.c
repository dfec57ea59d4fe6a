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
	size_t n; /* listed or changed files */
	uint64_t size; /* bytes */
};

/* Is @name a plain name, as all files of the quarantine have? */
static bool is_name(const char *name)
{
	return name[0] != '.' && name[0] != '\0' && !strchr(name, '/');
}

static int print_file(struct quarantine *quarantine, const char *name)
{
	bid_auto_fd int fd = openat(quarantine->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct bid_id id = { 0 };
	struct stat st;

	if (fstatat(quarantine->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fd >= 0 && S_ISREG(st.st_mode))
		(void)bid_elf_build_id(fd, &id);
	quarantine->n++;
	quarantine->size += (uint64_t)st.st_size;
	return ctl_row(quarantine->ctl, CTL_TIME("time", 19, st.st_ctim.tv_sec), CTL_SIZE("size", -8, (uint64_t)st.st_size),
		       CTL_ID("id", 40, &id), CTL_TEXT("name", 0, name));
}

static int by_name(const struct dirent **one, const struct dirent **other)
{
	return strcmp((*one)->d_name, (*other)->d_name);
}

static int is_listed(const struct dirent *entry)
{
	return is_name(entry->d_name);
}

/* Call @fn for each file. A negative result ends the loop. */
static int each_file(struct quarantine *quarantine, int (*fn)(struct quarantine *quarantine, const char *name))
{
	struct dirent **entries = NULL;
	int n = quarantine->fd < 0 ? 0 : scandirat(quarantine->fd, ".", &entries, is_listed, by_name), r = n < 0 ? -errno : 0;

	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = fn(quarantine, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return r;
}

static int drop(struct quarantine *quarantine, const char *name)
{
	if (!is_name(name))
		return -EINVAL;
	if (quarantine->ctl->dry_run)
		return faccessat(quarantine->fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
	return unlinkat(quarantine->fd, name, 0) < 0 ? -errno : 0;
}

/* Does the store have the bytes of the file open at @fd as the artifact of @added? */
static bool is_stored(struct bid_store *store, const struct bid_added *added, int fd)
{
	struct bid_request request = { .id = added->id, .kind = added->kind };
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;

	return bid_store_find(store, &request, &file) == 0 && bid_same_bytes(fd, file.fd) == 1;
}

/* Is the file open at @fd complete, with a build-id? Returns 0, or a negative errno. */
static int check_file(int fd)
{
	struct bid_elf_info info;
	struct bid_id id;
	int r = bid_elf_build_id_any(fd, &id);

	return r == 0 && bid_elf_examine(fd, &info) == -EBADMSG ? -EBADMSG : r;
}

/* Add the file under its own build-id, unless the store has other bytes of it. */
static int restore(struct quarantine *quarantine, const char *name)
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
	return r < 0 ? r : drop(quarantine, name);
}

static enum ctl_status change(struct quarantine *quarantine, int argc, char **argv,
			      int (*fn)(struct quarantine *quarantine, const char *name))
{
	const char *state = fn == drop ? "dropped" : "restored";
	const struct ctl *ctl = quarantine->ctl;
	enum ctl_status status = CTL_DONE;

	for (int i = 0; i < argc; i++) {
		int r = quarantine->fd < 0 ? -ENOENT : fn(quarantine, argv[i]);

		if (r == 0) {
			quarantine->n++;
			if (ctl->json || ctl->dry_run || ctl->verbose)
				ctl_row(ctl, CTL_STATE("state", 17, state), CTL_TEXT("name", 0, argv[i]));
			continue;
		}
		bid_error_about(argv[i], r, "%s",
				r == -EEXIST ? "cannot restore: the store has other bytes of this build - run 'bidctl remove' first"
				: r == -ENOENT ? "not in the quarantine"
					       : bid_strerror(r));
		status = bid_is_local_error(r) || status == CTL_TROUBLE ? CTL_TROUBLE : CTL_REFUSED;
	}
	ctl_totals(ctl, CTL_NUMBER(state, quarantine->n ? 0 : CTL_HIDDEN, quarantine->n), CTL_BOOL("dry_run", ctl->dry_run));
	return status;
}

enum ctl_status ctl_quarantine(const struct ctl *ctl, int argc, char **argv)
{
	struct quarantine quarantine = { .ctl = ctl, .fd = -1 };
	static const char *const verbs[] = { "list", "restore", "drop", NULL };
	int verb = argc > 0 ? ctl_word("verb of 'quarantine'", argv[0], verbs) : 0;
	bool lists = verb == 0, drops = verb == 2;
	ctl_auto_store struct bid_store *store = NULL;
	bid_auto_fd int fd = -1;
	enum ctl_status status;
	char path[PATH_MAX];
	int r;

	if (verb < 0)
		return CTL_USAGE;
	if (lists && argc > 1)
		return ctl_usage(argv[1], "'quarantine list' takes no operand");
	if (!lists && argc < 2)
		return ctl_usage(argv[0], "'%s' needs NAME...", argv[0]);
	status = ctl_open_store(ctl, lists || ctl->dry_run ? CTL_READ_ITSELF : CTL_WRITE, &store);
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
	if (!lists)
		return change(&quarantine, argc - 1, argv + 1, drops ? drop : restore);
	r = each_file(&quarantine, print_file);
	ctl_totals(ctl, CTL_NUMBER("files", CTL_HIDDEN, quarantine.n), CTL_SIZE("size", CTL_HIDDEN, quarantine.size));
	return r < 0 ? ctl_trouble(bid_store_path(store), r, "read the quarantine") : CTL_DONE;
}
