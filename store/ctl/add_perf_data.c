// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl add --perf-data: what a recording names, from where it was, if that is still the same build. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bid/elf.h>
#include <bid/error.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "ctl/add.h"
#include "ctl/fetch_all.h"
#include "ctl/here.h"
#include "ctl/perf_data.h"

#define DELETED " (deleted)"

enum {
	UNPACKED_MAX = 1 << 30, /* of a compressed module */
	UNIQUE = 8, /* bytes of an id that nothing else begins with */
};

struct adding {
	const struct ctl *ctl;
	struct bid_store *store;
	struct bid_id kernel, vdso; /* of this machine; len 0 if unknown */
	bool unsure; /* a server could not be asked for something */
	struct ctl_recording recording;
};

static void adding_release(struct adding *adding)
{
	ctl_recording_release(&adding->recording);
	bid_store_free(adding->store);
}

/* bid_perfdata_fn */
static int collect(void *user, const struct bid_perfdata_dso *dso)
{
	struct ctl_recording *recording = user;
	struct ctl_build *build;

	if (recording->n == recording->room) {
		size_t room = 2 * recording->room + 64;
		struct ctl_build *larger = reallocarray(recording->builds, room, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		recording->builds = larger;
		recording->room = room;
	}
	build = &recording->builds[recording->n];
	*build = (struct ctl_build){ .id = dso->id, .sized = dso->sized, .mode = dso->mode, .path = strdup(dso->path) };
	if (!build->path)
		return -ENOMEM;
	recording->n++;
	return 0;
}

/* Does a file that carries @carried answer what was recorded? */
static bool answers(const struct bid_id *carried, const struct ctl_build *build)
{
	if (bid_id_answers(carried, &build->id))
		return true;
	/* the padding of an id without a size can be anything */
	return !build->sized && carried->len >= UNIQUE && carried->len < build->id.len &&
	       memcmp(carried->bytes, build->id.bytes, carried->len) == 0;
}

static int write_unpacked(void *user, const void *data, size_t len)
{
	ssize_t n = write(*(int *)user, data, len);

	return n < 0 ? -errno : (size_t)n < len ? -ENOSPC : 0;
}

/* As bid_elf_identify(), of what is in a compressed module too. */
static int identify(int fd, struct bid_id *ret_id)
{
	bid_auto_fd int unpacked = -1;
	char head[8];
	int r = bid_elf_identify(fd, ret_id);

	if (r != -ENOEXEC || bid_pread_full(fd, head, sizeof(head), 0) != sizeof(head) || !bid_elf_is_packed(head, sizeof(head)))
		return r;
	unpacked = memfd_create("module", MFD_CLOEXEC);
	if (unpacked < 0)
		return -errno;
	r = bid_elf_unpack(fd, UNPACKED_MAX, write_unpacked, &unpacked);
	return r < 0 ? -ENOEXEC : bid_elf_identify(unpacked, ret_id);
}

/* A recording may name anything; nothing but a regular file is ever opened because of it, as opening a device may do something. */
static int open_regular(const char *path, struct stat *ret_st, char *ret_name, size_t size)
{
	bid_auto_fd int place = open(path, O_PATH | O_CLOEXEC);
	int fd;

	if (place < 0 || fstat(place, ret_st) < 0)
		return -errno;
	if (!S_ISREG(ret_st->st_mode))
		return -ENOENT;
	snprintf(ret_name, size, "/proc/self/fd/%d", place);
	fd = open(ret_name, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* by which the same file can be opened once more, whatever has its path by then */
	snprintf(ret_name, size, "/proc/self/fd/%d", fd);
	return fd;
}

/* The path at which the file may be: a file that was unlinked when it was recorded may be there again. */
static int open_build(const struct ctl_build *build, struct stat *ret_st, char *ret_name, size_t size)
{
	size_t len = strlen(build->path), mark = strlen(DELETED);
	bid_auto_free char *path = NULL;
	int fd = open_regular(build->path, ret_st, ret_name, size);

	if (fd != -ENOENT || len <= mark || strcmp(build->path + len - mark, DELETED) != 0)
		return fd;
	path = strndup(build->path, len - mark);
	return path ? open_regular(path, ret_st, ret_name, size) : -ENOMEM;
}

static int refuse(struct adding *adding, struct ctl_build *build, int error)
{
	build->state = CTL_BUILD_REFUSED;
	build->why = strdup(ctl_add_reason(error, adding->ctl->link));
	return ctl_add_is_refusal(error) && build->why ? 0 : error;
}

static void replaced(struct ctl_build *build, const struct bid_id *found, time_t mtime)
{
	build->state = CTL_BUILD_REPLACED;
	build->looked = true;
	build->found = *found;
	build->mtime = mtime;
}

/* Add the file at its path, if there is one and it is the one. build->state says what came of it. */
static int add_local(struct adding *adding, struct ctl_build *build)
{
	struct bid_added added;
	struct bid_id found = { 0 };
	bid_auto_fd int fd = -1;
	struct stat st;
	char name[64];
	int r;

	fd = open_build(build, &st, name, sizeof(name));
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ENAMETOOLONG || fd == -ELOOP)
		return 0;
	if (fd < 0)
		return refuse(adding, build, fd);
	r = identify(fd, &found);
	if (r < 0 && r != -ENOEXEC && r != -ENODATA)
		return refuse(adding, build, r);
	if (r < 0 || !answers(&found, build)) {
		replaced(build, &found, st.st_mtime);
		return 0;
	}
	r = bid_store_add(adding->store, name, adding->ctl->link, &added);
	if (r < 0)
		return refuse(adding, build, r);
	if (answers(&added.id, build))
		build->state = added.known ? CTL_BUILD_KNOWN : CTL_BUILD_ADDED;
	else
		replaced(build, &added.id, st.st_mtime);
	return 0;
}

static bool is_kernel(const struct ctl_build *build)
{
	return strncmp(build->path, "[kernel.", strlen("[kernel.")) == 0;
}

static bool is_vdso(const struct ctl_build *build)
{
	return strncmp(build->path, "[vdso", strlen("[vdso")) == 0;
}

/* 1, 0, or a negative errno of trouble with the store. */
static int has_kind(struct adding *adding, const struct ctl_build *build, enum bid_kind kind)
{
	struct bid_request request = { .id = build->id, .kind = kind };
	struct bid_file file = BID_FILE_NONE;
	int r = bid_store_find(adding->store, &request, &file);

	bid_file_release(&file);
	return r == 0 ? 1 : ctl_add_is_refusal(r) ? 0 : r;
}

static int is_stored(struct adding *adding, const struct ctl_build *build)
{
	int r = has_kind(adding, build, BID_KIND_ELF);

	if (r == 0 && is_kernel(build))
		r = has_kind(adding, build, BID_KIND_KALLSYMS);
	if (r == 0 && is_vdso(build))
		r = has_kind(adding, build, BID_KIND_VDSO);
	return r;
}

static bool is_running(const struct adding *adding, const struct ctl_build *build)
{
	if (build->mode == BID_PERFDATA_GUEST)
		return false;
	return (is_kernel(build) && bid_id_answers(&adding->kernel, &build->id)) ||
	       (is_vdso(build) && bid_id_answers(&adding->vdso, &build->id));
}

/* Decide what becomes of one build. Only trouble is an error. */
static int take(struct adding *adding, struct ctl_build *build)
{
	int r = 0;

	build->state = build->id.len ? CTL_BUILD_MISSING : CTL_BUILD_UNIDENTIFIED;
	if (build->id.len == 0)
		return 0;
	/* a guest's path is not one of ours */
	if (build->path[0] == '/' && build->mode != BID_PERFDATA_GUEST)
		r = add_local(adding, build);
	if (r < 0 || build->state == CTL_BUILD_ADDED || build->state == CTL_BUILD_KNOWN)
		return r;
	r = is_stored(adding, build);
	if (r > 0)
		build->state = CTL_BUILD_KNOWN;
	if (r != 0 || !is_running(adding, build))
		return r < 0 ? r : 0;
	build->state = CTL_BUILD_RUNNING;
	build->why = strdup(is_kernel(build) ? "the running kernel: use add --running"
					     : "of the running kernel: use add --running");
	return build->why ? 0 : -ENOMEM;
}

/* The id to ask servers for: without the zeros that perf puts behind a short one, to a multiple of 4 as ids have it. */
static struct bid_id without_padding(const struct ctl_build *build)
{
	struct bid_id id = build->id;

	if (build->sized)
		return id;
	while (id.len > UNIQUE && id.bytes[id.len - 1] == 0)
		id.len--;
	id.len = (uint8_t)((id.len + 3) & ~3);
	/* a zero or three at the end may well be the id's own */
	return build->id.len - id.len >= 4 ? id : build->id;
}

static enum ctl_status fetch(struct adding *adding)
{
	struct ctl_recording *recording = &adding->recording;
	bid_auto_free struct ctl_wanted *wanted = calloc(recording->n + 1, sizeof(*wanted));
	bid_auto_free struct ctl_build **builds = calloc(recording->n + 1, sizeof(struct ctl_build *));
	enum ctl_status status;
	size_t n = 0;

	if (!wanted || !builds) {
		bid_error("%s", strerror(ENOMEM));
		return CTL_TROUBLE;
	}
	for (size_t i = 0; i < recording->n; i++) {
		struct ctl_build *build = &recording->builds[i];

		if (!ctl_build_lacks(build->state) || is_vdso(build))
			continue;
		wanted[n].request = (struct bid_request){ .id = without_padding(build), .kind = BID_KIND_ELF };
		builds[n++] = build;
	}
	status = n > 0 ? ctl_fetch_all(adding->ctl, adding->store, wanted, n) : CTL_DONE;
	for (size_t i = 0; i < n && status != CTL_TROUBLE && status != CTL_USAGE; i++) {
		int error = wanted[i].error;

		if (error == 0) {
			builds[i]->state = CTL_BUILD_FETCHED;
			continue;
		}
		free(builds[i]->why);
		builds[i]->why = wanted[i].why ? bid_steal(wanted[i].why) : strdup(bid_strerror(error));
		adding->unsure |= error != -ENOENT && error != -EBADMSG && error != -EFBIG;
	}
	return status;
}

static enum ctl_status read_recording(struct adding *adding)
{
	struct ctl_recording *recording = &adding->recording;
	int r = bid_perfdata_read(recording->path, collect, recording, &recording->summary);

	if (r == 0)
		return CTL_DONE;
	bid_error("%s: '%s'",
		  r == -EINVAL	 ? "not a recording of perf"
		  : r == -ENOENT ? "no such file"
				 : strerror(-r),
		  recording->path);
	return r == -EINVAL || r == -ENOENT || r == -EACCES ? CTL_REFUSED : CTL_TROUBLE;
}

/* What to exit with when all was done that could be. */
static enum ctl_status judge(const struct adding *adding)
{
	const struct bid_perfdata_summary *summary = &adding->recording.summary;
	bool lacks = summary->cut || summary->damaged > 0;

	if (adding->unsure)
		return CTL_TROUBLE;
	for (size_t i = 0; i < adding->recording.n; i++) {
		const struct ctl_build *build = &adding->recording.builds[i];

		lacks |= ctl_build_lacks(build->state);
		lacks |= build->state == CTL_BUILD_UNIDENTIFIED && build->path[0] == '/' && !summary->lists_sampled;
	}
	return lacks ? CTL_REFUSED : CTL_DONE;
}

enum ctl_status ctl_add_perf_data(const struct ctl *ctl)
{
	bid_cleanup(adding_release) struct adding adding = {
		.ctl = ctl,
		.recording = { .path = ctl->perf_data },
	};
	enum ctl_status status = read_recording(&adding);

	if (status == CTL_DONE)
		status = ctl_open_store(ctl, CTL_WRITE, &adding.store);
	if (status != CTL_DONE)
		return status;
	/* without them nothing is recognised as running */
	(void)ctl_here_kernel(&adding.kernel);
	(void)ctl_here_vdso(&adding.vdso);

	for (size_t i = 0; i < adding.recording.n; i++) {
		int r = take(&adding, &adding.recording.builds[i]);

		if (r < 0) {
			bid_error("%s: '%s'", bid_strerror(r), adding.recording.builds[i].path);
			return CTL_TROUBLE;
		}
	}
	if (ctl->fetch)
		status = fetch(&adding);
	if (status == CTL_TROUBLE || status == CTL_USAGE)
		return status;
	if (ctl_recording_print(ctl, &adding.recording) < 0) {
		bid_error("%s", strerror(ENOMEM));
		return CTL_TROUBLE;
	}
	return status == CTL_DONE ? judge(&adding) : status;
}
