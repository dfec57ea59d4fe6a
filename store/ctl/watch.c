// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * bidctl watch: keep running programs, before their files are replaced. The kernel's events report each started program, which is
 * added at once. Its libraries follow after a moment, when the program has mapped them. A periodic look at the maps of all
 * processes finds mappings from later, and stands in for missing events.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/signalfd.h>

#include <bid/error.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "ctl/add_mapped_code.h"
#include "ctl/child.h"
#include "ctl/mounts.h"

enum {
	INTERVAL_S = 10,
	STARTED_MS = 250, /* time for a program to map its libraries */
	STEP_MS = 50, /* granularity: programs due in one step share a look */
	STARTED_MAX = 1024, /* queue length; above it, all processes get a look */
};

/* Program starts on every local file system: fanotify(7), FAN_OPEN_EXEC. */
struct exec_events {
	int fd; /* readable with events in its queue; owned */
	int mounts; /* has an exceptional condition (POLLPRI) after a mount or unmount; owned */
};

#define EXEC_EVENTS_NONE ((struct exec_events){ .fd = -1, .mounts = -1 })

/* A started program, whose mappings are due for a look. */
struct started {
	pid_t pid; /* 0 or less outside this PID namespace */
	int64_t due_ms; /* clock at which the libraries are mapped */
};

struct watch {
	const struct ctl *ctl;
	struct bid_store *store; /* owned; NULL while it cannot be opened */
	char path[PATH_MAX]; /* path of the store */
	struct stat opened; /* directory of the opened store */
	struct ctl_add_stats stats;
	struct ctl_mapped_code running;
	struct exec_events events;
	int signals; /* signalfd; owned */
	bool ended;
	int64_t interval_ms;
	int64_t all_ms; /* clock of the next look at all processes */
	int64_t full_ms; /* clock of a further one, for programs beyond the queue */
	struct started started[STARTED_MAX]; /* sorted by due_ms */
	size_t n_started;
	uint64_t modules; /* modules_cookie() at the last add of the kernel; 0 before */
	int trouble; /* reported error of the last pass */
};

static int mark_mount(void *user, const struct ctl_mount *mount)
{
	const struct exec_events *events = user;

	/* on other file systems the kernel's open of the file for this process would wait for a server */
	if (!ctl_type_is_local(mount->type))
		return 0;
	/* file systems without programs, or below another mount, give no events */
	if (fanotify_mark(events->fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN_EXEC, AT_FDCWD, mount->point) < 0)
		bid_debug("%s: watching '%s'", strerror(errno), mount->point);
	return 0;
}

/* Mark new mounts. Network and FUSE file systems stay without a mark, because calls into them may block for ever. */
static void mark_mounts(struct exec_events *events)
{
	ctl_each_mount_of_all(mark_mount, events);
}

static void release_events(struct exec_events *events)
{
	bid_close(events->fd);
	bid_close(events->mounts);
	*events = EXEC_EVENTS_NONE;
}

/*
 * Open the event queue. Returns 0, -EPERM without CAP_SYS_ADMIN, or -ENOSYS or -EINVAL from a kernel before 5.0 or without
 * fanotify.
 */
static int open_events(struct exec_events *ret_events)
{
	struct exec_events events = EXEC_EVENTS_NONE;
	int r = 0;

	events.fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC);
	/* a mark on / shows whether the kernel knows these events */
	if (events.fd < 0 || fanotify_mark(events.fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN_EXEC, AT_FDCWD, "/") < 0)
		r = -errno;
	if (r == 0)
		events.mounts = open("/proc/self/mounts", O_RDONLY | O_CLOEXEC);
	if (r == 0 && events.mounts < 0)
		r = -errno;
	if (r < 0) {
		release_events(&events);
		return r;
	}
	mark_mounts(&events);
	*ret_events = events;
	return 0;
}

/*
 * Call @fn for a number of the queued events. @fd is the program's file, open for reading, and is closed after the call. Process
 * @pid executed the file, and may have ended. A non-zero return ends the loop and is returned. Returns 0 otherwise, or -EOVERFLOW
 * after a loss of events.
 */
static int read_events(const struct exec_events *events, int (*fn)(void *user, pid_t pid, int fd), void *user)
{
	_Alignas(struct fanotify_event_metadata) char buffer[2048];
	const struct fanotify_event_metadata *event = (const void *)buffer;
	ssize_t len = read(events->fd, buffer, sizeof(buffer));
	bool lost = false;
	int r = 0;

	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	/* always to the end, because each event has a descriptor */
	for (; FAN_EVENT_OK(event, len); event = FAN_EVENT_NEXT(event, len)) {
		lost |= (event->mask & FAN_Q_OVERFLOW) != 0;
		if (r == 0 && event->fd >= 0)
			r = fn(user, event->pid, event->fd);
		bid_close(event->fd);
	}
	return r == 0 && lost ? -EOVERFLOW : r;
}

/* Start with the opened watch->store. */
static int begin_watch(struct watch *watch)
{
	int r = stat(bid_store_path(watch->store), &watch->opened) < 0 ? -errno : 0;

	if (r == 0)
		r = ctl_mapped_code_begin(&watch->running, &watch->stats, watch->store);
	if (r < 0) {
		bid_store_free(bid_steal(watch->store));
		return r;
	}
	watch->running.interrupt = watch->signals;
	watch->modules = 0;
	return 0;
}

static void end_watch(struct watch *watch)
{
	ctl_mapped_code_release(&watch->running);
	bid_store_free(bid_steal(watch->store));
}

/* Reopen the store if its path leads to another directory: it may have been removed and created anew. */
static int reopen_store(struct watch *watch)
{
	struct stat st;
	int r;

	if (watch->store) {
		if (stat(watch->path, &st) == 0 && st.st_dev == watch->opened.st_dev && st.st_ino == watch->opened.st_ino)
			return 0;
		end_watch(watch);
	}
	r = bid_store_open(watch->path, BID_STORE_WRITE, &watch->store);
	return r < 0 ? r : begin_watch(watch);
}

/*
 * Compute a change cookie of the loaded modules, which changes with each load, because the new directory's inode number is unique.
 * Returns 0 if the modules cannot be listed.
 */
static uint64_t modules_cookie(void)
{
	bid_auto_dir DIR *modules = opendir("/sys/module");
	struct dirent *module;
	uint64_t cookie = 0;

	while (modules && (module = readdir(modules)))
		cookie += (module->d_ino ^ module->d_ino >> 29) * 0x9e3779b97f4a7c15U;
	return cookie;
}

static int look_at_all(struct watch *watch)
{
	int64_t now = bid_clock_ms();
	uint64_t modules = modules_cookie();
	int r;

	watch->all_ms = watch->full_ms > now ? watch->full_ms : now + watch->interval_ms;
	r = ctl_mapped_code_all(&watch->running);
	/* at the start, and after each load of a module */
	if (r == 0 && modules != watch->modules) {
		r = ctl_add_kernel(&watch->stats, watch->store);
		watch->modules = r < 0 ? 0 : modules;
	}
	return r;
}

static int look_at_started(struct watch *watch)
{
	int64_t now = bid_clock_ms();
	pid_t pids[STARTED_MAX];
	size_t n = 0, due = 0;

	for (; due < watch->n_started && (watch->started[due].due_ms <= now || watch->ended); due++)
		if (watch->started[due].pid > 0)
			pids[n++] = watch->started[due].pid;
	watch->n_started -= due;
	memmove(watch->started, watch->started + due, watch->n_started * sizeof(*watch->started));
	return ctl_mapped_code_processes(&watch->running, pids, n);
}

/* Queue a process that has just executed a program, before it maps anything. */
static void note_started(struct watch *watch, pid_t pid)
{
	int64_t due_ms = (bid_clock_ms() + STARTED_MS + STEP_MS - 1) / STEP_MS * STEP_MS;

	if (watch->n_started < STARTED_MAX) {
		watch->started[watch->n_started++] = (struct started){ .pid = pid, .due_ms = due_ms };
		return;
	}
	watch->full_ms = due_ms;
	if (due_ms < watch->all_ms)
		watch->all_ms = due_ms;
}

static int look_at_file(void *user, pid_t pid, int fd)
{
	struct watch *watch = user;

	note_started(watch, pid);
	/* after a failure, wait for the next look at all processes, which finds the programs still running */
	return watch->trouble ? 0 : ctl_mapped_code_file(&watch->running, fd);
}

static int look_at_events(struct watch *watch)
{
	int r = read_events(&watch->events, look_at_file, watch);

	if (r != -EOVERFLOW)
		return r;
	bid_warning("too many programs started at once: bidctl may have missed those that ended at once");
	watch->all_ms = 0;
	return 0;
}

/* Report the beginning and the end of an error of the store. */
static void note_result(struct watch *watch, int r)
{
	if (r == watch->trouble)
		return;
	if (r < 0)
		bid_error_about(watch->path, r,
				"%s: cannot add the running programs to '%s' - bidctl tries again every %" PRId64 " s",
				bid_strerror(r), watch->path, watch->interval_ms / 1000);
	else
		bid_warning("bidctl can add the running programs to '%s' again", watch->path);
	watch->trouble = r;
}

/* Run @look, sync the added files, and report them. */
static void make_pass(struct watch *watch, int (*look)(struct watch *watch), bool commit)
{
	int r = reopen_store(watch), committed = 0;

	if (r == 0)
		r = look(watch);
	/* also after an error: the files from before it */
	if (watch->store && (commit || r < 0))
		committed = ctl_mapped_code_commit(&watch->running);
	if (r == 0)
		r = committed;
	if (r == -EINTR) {
		watch->ended = true;
		return;
	}
	/* after a failure, events add nothing; only a look at all processes shows the end of the error */
	if (r < 0 || look == look_at_all)
		note_result(watch, r);
	if (fflush(stdout) != 0)
		watch->ended = true;
}

/* Wait for the next event, and handle it. */
static void run_turn(struct watch *watch)
{
	struct pollfd fds[] = {
		{ .fd = watch->signals, .events = POLLIN },
		{ .fd = watch->events.fd, .events = POLLIN },
		{ .fd = watch->events.mounts, .events = POLLPRI },
	};
	int64_t started_ms = watch->n_started > 0 ? watch->started[0].due_ms : INT64_MAX;
	int64_t wait = (started_ms < watch->all_ms ? started_ms : watch->all_ms) - bid_clock_ms();

	if (poll(fds, sizeof(fds) / sizeof(fds[0]), wait > 0 ? (int)wait : 0) < 0 && errno != EINTR) {
		note_result(watch, -errno);
		watch->ended = true;
		return;
	}
	if (fds[0].revents) {
		watch->ended = true;
		return;
	}
	if (fds[2].revents)
		mark_mounts(&watch->events);
	/* no sync yet: the look at the started programs has one for all */
	if (fds[1].revents)
		make_pass(watch, look_at_events, false);
	if (started_ms <= bid_clock_ms())
		make_pass(watch, look_at_started, true);
	if (watch->all_ms <= bid_clock_ms())
		make_pass(watch, look_at_all, true);
}

static void listen_to_kernel(struct watch *watch)
{
	int r = open_events(&watch->events);

	if (r < 0)
		bid_warning("%s: the kernel reports no program starts, so bidctl may miss programs that run for less than %" PRId64
			    " s",
			    strerror(-r), watch->interval_ms / 1000);
}

static void watch_on(struct watch *watch)
{
	bid_auto_fd int manager = -1;

	if (begin_watch(watch) == 0) {
		listen_to_kernel(watch);
		/* programs started during this look wait in the queue of events */
		make_pass(watch, look_at_all, true);
	}
	ctl_mapped_code_warn_hidden(&watch->running);
	manager = bid_notify_open();
	bid_notify(manager, "READY=1");
	while (!watch->ended)
		run_turn(watch);
	bid_notify(manager, "STOPPING=1");
	/* the last look at programs in the queue */
	watch->running.interrupt = -1;
	if (watch->n_started > 0)
		make_pass(watch, look_at_started, true);
}

enum ctl_status ctl_watch(const struct ctl *ctl, int argc, char **argv)
{
	struct watch watch = {
		.ctl = ctl,
		.events = EXEC_EVENTS_NONE,
		.interval_ms = 1000 * (int64_t)(ctl->interval ? ctl->interval : INTERVAL_S),
	};
	sigset_t ends, before;
	enum ctl_status status;

	status = ctl_open_store(ctl, CTL_WRITE, &watch.store);
	if (status != CTL_DONE)
		return status;
	snprintf(watch.path, sizeof(watch.path), "%s", bid_store_path(watch.store));
	ctl_end_signals(&ends);
	sigprocmask(SIG_BLOCK, &ends, &before);
	watch.signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	ctl->envelope->stream = true;
	ctl_add_stats_begin(&watch.stats, ctl, CTL_ADD_STREAM);
	if (watch.signals < 0)
		status = ctl_trouble("signals", -errno, "wait for them");
	else
		watch_on(&watch);
	if (watch.store)
		end_watch(&watch);
	release_events(&watch.events);
	bid_close(watch.signals);
	return ctl_add_stats_end(&watch.stats, status);
}
