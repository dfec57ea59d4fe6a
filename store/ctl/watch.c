// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * bidctl watch: keep what runs, before it is replaced. A program that is started is added as the kernel tells of it, and its
 * libraries a moment later, when it has mapped them; where the kernel tells nothing, and for what is mapped later, the maps of all
 * processes are looked through now and then.
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
	STEP_MS = 50, /* what was started in that time is looked at together */
	STARTED_MAX = 1024, /* programs that wait for that; if there are more, everything is looked at */
};

/* A program that is to be looked at, and what was added of it brought to disk. */
struct started {
	pid_t pid; /* not above 0 if it has none here */
	int64_t due_ms; /* the clock when it has mapped its libraries */
};

struct watch {
	const struct ctl *ctl;
	struct bid_store *store; /* owned; NULL while it cannot be opened */
	char path[PATH_MAX]; /* of the store */
	struct stat opened; /* its directory */
	struct ctl_tally tally;
	struct ctl_running running;
	struct ctl_exec_events events;
	int signals; /* signalfd; owned */
	bool ended;
	bool cut; /* in the middle of a look */
	int64_t interval_ms;
	int64_t all_ms; /* the clock when all processes are to be looked at next */
	int64_t full_ms; /* the same for a program that was started when there were too many */
	struct started started[STARTED_MAX]; /* in the order in which they are due */
	size_t n_started;
	uint64_t modules; /* modules_mark() when the kernel was added; 0: it was not */
	int trouble; /* of the last pass, and said already */
};

/* Take over watch->store, which was opened. */
static int begin(struct watch *watch)
{
	int r = stat(bid_store_path(watch->store), &watch->opened) < 0 ? -errno : 0;

	if (r == 0)
		r = ctl_running_begin(&watch->running, &watch->tally, watch->store);
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

/* Somebody may have removed the store, and made it anew: what counts is where its path leads to. */
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
 * A mark of the modules that are loaded: another one after any was loaded, because its directory has a number that no other had. 0
 * if they cannot be listed.
 */
static uint64_t modules_mark(void)
{
	bid_auto_dir DIR *modules = opendir("/sys/module");
	struct dirent *module;
	uint64_t mark = 0;

	while (modules && (module = readdir(modules)))
		mark += (module->d_ino ^ module->d_ino >> 29) * 0x9e3779b97f4a7c15U;
	return mark;
}

static int look_at_all(struct watch *watch)
{
	int64_t now = bid_clock_ms();
	uint64_t modules = modules_mark();
	int r;

	watch->all_ms = watch->full_ms > now ? watch->full_ms : now + watch->interval_ms;
	r = ctl_running_all(&watch->running);
	/* once, and again after one was loaded */
	if (r == 0 && modules != watch->modules) {
		r = ctl_add_kernel(&watch->tally, watch->store);
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

/* It is just about to be started, and has mapped nothing yet. */
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
	/* while the store takes nothing, only what still runs then can be caught up with */
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

/* Say that the store is in trouble, or out of it, when that begins. */
static void note(struct watch *watch, int r)
{
	if (r == watch->trouble)
		return;
	if (r < 0 && watch->ctl->once)
		bid_error("%s: adding what runs to '%s'", bid_strerror(r), watch->path);
	else if (r < 0)
		bid_error("%s: adding what runs to '%s'; trying again every %" PRId64 " s", bid_strerror(r), watch->path,
			  watch->interval_ms / 1000);
	else
		bid_warning("out of trouble: adding what runs to '%s'", watch->path);
	watch->trouble = r;
}

/* Look, bring to disk what was found, and report it. */
static int pass(struct watch *watch, int (*look)(struct watch *watch), bool settle)
{
	int r = reopen(watch), settled = 0;

	if (r == 0)
		r = look(watch);
	/* also what was added before the trouble */
	if (watch->store && (settle || r < 0))
		settled = ctl_running_settle(&watch->running);
	if (r == 0)
		r = settled;
	if (r == -EINTR) {
		watch->ended = watch->cut = true;
		return 0;
	}
	/* what comes in trouble was not tried; only a look at all tells that it is over */
	if (r < 0 || look == look_at_all)
		note(watch, r);
	if (fflush(stdout) != 0)
		watch->ended = true;
	return r;
}

/* Wait for the next thing to do, and do it. */
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
	/* one sync for all that was started in that time */
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
	/* the programs that are started meanwhile wait to be looked at */
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
	/* what was started a moment ago */
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
		return ctl_usage("'--interval' and '--once' exclude each other");
	status = ctl_open_store(ctl, CTL_WRITE, &watch.store);
	if (status != CTL_DONE)
		return status;
	snprintf(watch.path, sizeof(watch.path), "%s", bid_store_path(watch.store));
	ctl_end_signals(&ends);
	sigprocmask(SIG_BLOCK, &ends, &before);
	watch.signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	ctl_tally_begin(&watch.tally, ctl, CTL_TALLY_STREAM);
	if (watch.signals < 0) {
		bid_error("%s: waiting for signals", strerror(errno));
		status = CTL_TROUBLE;
	} else {
		status = watch_on(&watch);
	}
	if (watch.store)
		end(&watch);
	ctl_exec_events_release(&watch.events);
	bid_close(watch.signals);
	return ctl_tally_end(&watch.tally, status);
}
