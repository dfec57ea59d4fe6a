// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * bidctl watch: keep running programs, before their files are replaced. The kernel's events report each started program, which is
 * added at once. Its libraries follow after a moment, when the program has mapped them. A periodic look at the maps of all
 * processes finds mappings from later, and stands in for missing events.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include <bid/error.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "ctl/exec_events.h"
#include "ctl/running.h"
#include "ctl/signals.h"

enum {
	INTERVAL_S = 10,
	STARTED_MS = 250, /* time for a program to map its libraries */
	STEP_MS = 50, /* granularity: programs due in one step share a look */
	STARTED_MAX = 1024, /* queue length; above it, all processes get a look */
};

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
	struct ctl_running running;
	struct ctl_exec_events events;
	int signals; /* signalfd; owned */
	bool ended;
	bool cut; /* a signal interrupted a look */
	int64_t interval_ms;
	int64_t all_ms; /* clock of the next look at all processes */
	int64_t full_ms; /* clock of a further one, for programs beyond the queue */
	struct started started[STARTED_MAX]; /* sorted by due_ms */
	size_t n_started;
	uint64_t modules; /* modules_cookie() at the last add of the kernel; 0 before */
	int trouble; /* reported error of the last pass */
};

/* Start with the opened watch->store. */
static int begin(struct watch *watch)
{
	int r = stat(bid_store_path(watch->store), &watch->opened) < 0 ? -errno : 0;

	if (r == 0)
		r = ctl_running_begin(&watch->running, &watch->stats, watch->store);
	if (r < 0) {
		bid_store_free(bid_steal(watch->store));
		return r;
	}
	watch->running.interrupt = watch->signals;
	watch->modules = 0;
	return 0;
}

static void end(struct watch *watch)
{
	ctl_running_release(&watch->running);
	bid_store_free(bid_steal(watch->store));
}

/* Reopen the store if its path leads to another directory: it may have been removed and created anew. */
static int reopen(struct watch *watch)
{
	struct stat st;
	int r;

	if (watch->store) {
		if (stat(watch->path, &st) == 0 && st.st_dev == watch->opened.st_dev && st.st_ino == watch->opened.st_ino)
			return 0;
		end(watch);
	}
	r = bid_store_open(watch->path, BID_STORE_WRITE, &watch->store);
	return r < 0 ? r : begin(watch);
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
	r = ctl_running_all(&watch->running);
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
	return ctl_running_processes(&watch->running, pids, n);
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
	return watch->trouble ? 0 : ctl_running_file(&watch->running, fd);
}

static int look_at_events(struct watch *watch)
{
	int r = ctl_exec_events_read(&watch->events, look_at_file, watch);

	if (r != -EOVERFLOW)
		return r;
	bid_warning("more programs were started than could be looked at: those that ended at once may be missing");
	watch->all_ms = 0;
	return 0;
}

/* Report the beginning and the end of an error of the store. */
static void note(struct watch *watch, int r)
{
	if (r == watch->trouble)
		return;
	if (r < 0 && watch->ctl->once)
		bid_error_about(watch->path, r, "%s: adding what runs to '%s'", bid_strerror(r), watch->path);
	else if (r < 0)
		bid_error_about(watch->path, r, "%s: adding what runs to '%s'; trying again every %" PRId64 " s", bid_strerror(r),
				watch->path, watch->interval_ms / 1000);
	else
		bid_warning("out of trouble: adding what runs to '%s'", watch->path);
	watch->trouble = r;
}

/* Run @look, sync the added files, and report them. */
static int pass(struct watch *watch, int (*look)(struct watch *watch), bool settle)
{
	int r = reopen(watch), settled = 0;

	if (r == 0)
		r = look(watch);
	/* also after an error: the files from before it */
	if (watch->store && (settle || r < 0))
		settled = ctl_running_settle(&watch->running);
	if (r == 0)
		r = settled;
	if (r == -EINTR) {
		watch->ended = watch->cut = true;
		return 0;
	}
	/* after a failure, events add nothing; only a look at all processes shows the end of the error */
	if (r < 0 || look == look_at_all)
		note(watch, r);
	if (fflush(stdout) != 0)
		watch->ended = true;
	return r;
}

/* Wait for the next event, and handle it. */
static void turn(struct watch *watch)
{
	struct pollfd fds[] = {
		{ .fd = watch->signals, .events = POLLIN },
		{ .fd = watch->events.fd, .events = POLLIN },
		{ .fd = watch->events.mounts, .events = POLLPRI },
	};
	int64_t started_ms = watch->n_started > 0 ? watch->started[0].due_ms : INT64_MAX;
	int64_t wait = (started_ms < watch->all_ms ? started_ms : watch->all_ms) - bid_clock_ms();

	if (poll(fds, sizeof(fds) / sizeof(fds[0]), wait > 0 ? (int)wait : 0) < 0 && errno != EINTR) {
		note(watch, -errno);
		watch->ended = true;
		return;
	}
	if (fds[0].revents) {
		watch->ended = true;
		return;
	}
	if (fds[2].revents)
		ctl_exec_events_mark(&watch->events);
	/* no sync yet: the look at the started programs has one for all */
	if (fds[1].revents)
		pass(watch, look_at_events, false);
	if (started_ms <= bid_clock_ms())
		pass(watch, look_at_started, true);
	if (watch->all_ms <= bid_clock_ms())
		pass(watch, look_at_all, true);
}

static void listen_to_kernel(struct watch *watch)
{
	int r = ctl_exec_events_open(&watch->events);

	if (r < 0)
		bid_warning("%s: the kernel does not tell of programs that are started, so that what runs for less than %" PRId64
			    " s may be missed",
			    strerror(-r), watch->interval_ms / 1000);
}

static enum ctl_status watch_on(struct watch *watch)
{
	bid_auto_fd int manager = -1;
	int r = begin(watch);

	if (r == 0 && !watch->ctl->once)
		listen_to_kernel(watch);
	/* programs started during this look wait in the queue of events */
	if (r == 0)
		r = pass(watch, look_at_all, true);
	ctl_running_warn_hidden(&watch->running);
	if (watch->ctl->once)
		return r < 0 || watch->cut ? CTL_TROUBLE : CTL_DONE;
	manager = bid_notify_open();
	bid_notify(manager, "READY=1");
	while (!watch->ended)
		turn(watch);
	bid_notify(manager, "STOPPING=1");
	/* the last look at programs in the queue */
	watch->running.interrupt = -1;
	if (watch->n_started > 0)
		pass(watch, look_at_started, true);
	return CTL_DONE;
}

enum ctl_status ctl_watch(const struct ctl *ctl, int argc, char **argv)
{
	struct watch watch = {
		.ctl = ctl,
		.events = CTL_EXEC_EVENTS_NONE,
		.interval_ms = 1000 * (int64_t)(ctl->interval ? ctl->interval : INTERVAL_S),
	};
	sigset_t ends, before;
	enum ctl_status status;

	if (ctl->once && ctl->interval)
		return ctl_usage("--interval", "'--interval' and '--once' exclude each other");
	status = ctl_open_store(ctl, CTL_WRITE, &watch.store);
	if (status != CTL_DONE)
		return status;
	snprintf(watch.path, sizeof(watch.path), "%s", bid_store_path(watch.store));
	ctl_end_signals(&ends);
	sigprocmask(SIG_BLOCK, &ends, &before);
	watch.signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	ctl_stream(ctl);
	ctl_add_stats_begin(&watch.stats, ctl, CTL_ADD_STREAM);
	if (watch.signals < 0) {
		status = ctl_trouble("signals", -errno, "waiting for them");
	} else {
		status = watch_on(&watch);
	}
	if (watch.store)
		end(&watch);
	ctl_exec_events_release(&watch.events);
	bid_close(watch.signals);
	return ctl_add_stats_end(&watch.stats, status);
}
