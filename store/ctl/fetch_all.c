// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/fetch_all.h"

#include <errno.h>
#include <poll.h>
#include <search.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include "api/elf.h"
#include "api/negative.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "ctl/child.h"
#include "ctl/covering_mount.h"
#include "ctl/output.h"
#include "ctl/servers.h"

/* Each download has a temporary file open; further ones would only wait for the servers' limits. */
enum { AT_ONCE = 32, REDRAW_MS = 100 };

struct fetching {
	const struct ctl *ctl;
	struct bid_store *store; /* borrowed */
	struct bid_broker *broker; /* borrowed */
	bool covered; /* a mount is over the store */
	struct ctl_wanted *wanted; /* borrowed */
	size_t n, begun, ended;
	int event; /* eventfd that counts finished downloads; owned */
	int signals; /* signalfd; owned */
	int caught; /* signal that cancelled the downloads, or 0 */
	int64_t redraw_ms; /* clock of the next drawing of the progress */
};

void ctl_wanted_release(struct ctl_wanted_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->wanted[i].why);
		ctl_trace_release(&list->wanted[i].trace);
	}
	free(list->wanted);
	tdestroy(list->seen, free);
	*list = (struct ctl_wanted_list){ 0 };
}

static int by_request(const void *a, const void *b)
{
	const struct bid_artifact *one = a, *other = b;
	int order = memcmp(&one->id, &other->id, sizeof(one->id));

	return order ? order : (int)one->kind - (int)other->kind;
}

int ctl_want(struct ctl_wanted_list *list, const struct bid_artifact *artifact, struct ctl_build *build)
{
	if (bid_array_grow(list->wanted, list->n, list->room) < 0)
		return -ENOMEM;
	list->wanted[list->n++] = (struct ctl_wanted){ .artifact = *artifact, .build = build };
	return 0;
}

int ctl_want_once(struct ctl_wanted_list *list, const struct bid_id *id, enum bid_kind kind, struct ctl_build *build)
{
	struct bid_artifact *artifact = malloc(sizeof(*artifact)), **found;

	if (!artifact)
		return -ENOMEM;
	*artifact = (struct bid_artifact){ .id = *id, .kind = kind };
	found = tsearch(artifact, &list->seen, by_request);
	if (found && *found == artifact)
		return ctl_want(list, artifact, build);
	free(artifact);
	return found ? 0 : -ENOMEM;
}

int ctl_open_artifact(struct bid_store *store, const struct bid_artifact *artifact, struct bid_file *ret_file)
{
	/* a lookup in the mount's view of perf's layout would download further artifacts */
	if (bid_is_mount(bid_store_path(store)))
		return ctl_covering_mount_open(bid_store_path(store), artifact, ret_file);
	return bid_store_find(store, artifact, BID_MAY_DERIVE, ret_file);
}

int ctl_want_dwz(struct ctl_wanted_list *list, struct bid_store *store)
{
	size_t n = list->n;

	for (size_t i = 0; i < n && store; i++) {
		const struct ctl_wanted *wanted = &list->wanted[i];
		bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
		struct bid_elf_info info;

		if (wanted->artifact.kind != BID_KIND_DEBUGINFO || wanted->error < 0 ||
		    ctl_open_artifact(store, &wanted->artifact, &file) < 0 || bid_elf_examine(file.fd, &info) < 0 ||
		    info.alt.len == 0)
			continue;
		if (ctl_want_once(list, &info.alt, BID_KIND_DEBUGINFO, wanted->build) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Return the last report, if possible one other than "absent", as the cause of the failure. */
static const struct bid_report *why_not(const struct bid_result *result)
{
	const struct bid_report *why = result->reports[result->n_reports - 1];

	for (size_t i = result->n_reports; i > 0 && why->outcome == BID_OUTCOME_ABSENT; i--)
		if (result->reports[i - 1]->outcome != BID_OUTCOME_ABSENT)
			why = result->reports[i - 1];
	return why;
}

/* bid_broker_fn. Its writes are read after bid_broker_free(), which joins the broker's threads. */
static void take_answer(void *user, const struct bid_result *result)
{
	struct ctl_wanted *wanted = user;

	wanted->error = result->error;
	for (size_t i = 0; i < result->n_reports; i++)
		wanted->bytes += result->reports[i]->bytes;
	if (result->n_reports > 0 && result->error < 0) {
		const struct bid_report *why = why_not(result);

		if (asprintf(&wanted->why, "%s: %s%s", why->server, why->text ? why->text : bid_outcome_name(why->outcome),
			     why->changed ? " - 'bidctl get --accept' accepts them" : "") < 0)
			wanted->why = NULL;
	}
	ctl_trace_add(&wanted->trace, result);
	eventfd_write(wanted->event, 1);
}

/* Start the next download. */
static void begin_fetch(struct fetching *fetching)
{
	struct ctl_wanted *wanted = &fetching->wanted[fetching->begun++];
	struct bid_file file = BID_FILE_NONE;

	wanted->event = fetching->event;
	if (!fetching->covered && (fetching->ctl->refresh || fetching->ctl->accept))
		bid_broker_refresh(fetching->broker, &wanted->artifact, fetching->ctl->accept);
	if (fetching->covered)
		wanted->error = ctl_covering_mount_open(bid_store_path(fetching->store), &wanted->artifact, &file);
	else
		wanted->error = bid_broker_look_up(fetching->broker, &wanted->artifact, &file, &wanted->trace.negative_ttl_s);
	bid_file_release(&file);
	if (wanted->error == -EINPROGRESS)
		wanted->error = bid_broker_new_waiter(fetching->broker, take_answer, wanted, &wanted->waiter_id);
	if (wanted->waiter_id)
		bid_broker_fetch(fetching->broker, wanted->waiter_id, &wanted->artifact);
	else
		fetching->ended++;
}

static void give_up(struct fetching *fetching, int caught)
{
	fetching->caught = caught;
	for (size_t i = 0; i < fetching->begun; i++)
		if (fetching->wanted[i].waiter_id)
			bid_broker_cancel(fetching->broker, fetching->wanted[i].waiter_id);
	for (size_t i = fetching->begun; i < fetching->n; i++)
		fetching->wanted[i].error = -EINTR;
	fetching->n = fetching->begun;
}

/* Shorten "https://user@host:8002/path" to "host:8002". */
static void host_of(const char *server, char *ret_host, size_t size)
{
	const char *host = strstr(server, "://");

	host = host ? host + 3 : server;
	snprintf(ret_host, size, "%.*s", (int)strcspn(host, "/"), host);
}

/* Totals of the running downloads. */
struct running_sum {
	size_t n;
	uint64_t received;
};

static int add_received(void *user, const struct bid_progress *progress)
{
	struct running_sum *sum = user;

	sum->received += progress->received;
	sum->n += progress->received > 0;
	return 0;
}

static void draw_one(const struct bid_progress *one, struct ctl_progress *line)
{
	char host[64], received[CTL_SIZE_MAX], size[CTL_SIZE_MAX];
	bool sized = one->size != BID_SIZE_UNKNOWN;

	host_of(one->server, host, sizeof(host));
	if (one->received == 0)
		ctl_progress_draw(line, 0, 0, 0, "asking %s, %u s", *host ? host : "for it", one->age_ms / 1000);
	else
		ctl_progress_draw(line, one->received, one->received, sized ? one->size : 0, "%s  %s%s%s", host,
				  ctl_format_size(one->received, received), sized ? " of " : "",
				  sized ? ctl_format_size(one->size, size) : "");
}

static void draw_progress(const struct fetching *fetching, struct ctl_progress *line)
{
	struct running_sum sum = { 0 };
	struct bid_server_stats stats;
	char received[CTL_SIZE_MAX];
	struct bid_progress one;

	if (fetching->n == 1 && bid_broker_progress(fetching->broker, fetching->wanted->waiter_id, &one) == 0) {
		draw_one(&one, line);
		return;
	}
	/* with those of finished downloads */
	for (size_t i = 0; bid_broker_server_stats(fetching->broker, i, &stats) == 0; i++)
		sum.received += stats.bytes;
	bid_broker_each_download(fetching->broker, add_received, &sum);
	ctl_progress_draw(line, sum.received, fetching->ended, fetching->n, "%zu of %zu, %zu under way, %s", fetching->ended,
			  fetching->n, sum.n, ctl_format_size(sum.received, received));
}

static void wait_for_some(struct fetching *fetching, struct ctl_progress *line)
{
	struct pollfd fds[] = { { .fd = fetching->event, .events = POLLIN }, { .fd = fetching->signals, .events = POLLIN } };
	struct signalfd_siginfo caught;
	eventfd_t ended;

	if (poll(fds, 2, ctl_progress_wanted() ? REDRAW_MS : -1) < 0)
		return;
	if (fds[1].revents & POLLIN && read(fetching->signals, &caught, sizeof(caught)) == sizeof(caught))
		give_up(fetching, (int)caught.ssi_signo);
	if (fds[0].revents & POLLIN && eventfd_read(fetching->event, &ended) == 0)
		fetching->ended += (size_t)ended;
	if (ctl_progress_wanted() && bid_clock_ms() >= fetching->redraw_ms) {
		fetching->redraw_ms = bid_clock_ms() + REDRAW_MS;
		draw_progress(fetching, line);
	}
}

/* Copy the negative cache entries of the servers behind a result without requests into its trace. */
static void recall_response(const struct fetching *fetching, struct ctl_wanted *wanted)
{
	struct bid_negative *negative;
	struct bid_server_stats stats;
	unsigned ttl;

	if (wanted->trace.negative_ttl_s == 0 || bid_negative_new(fetching->store, &negative) < 0)
		return;
	for (size_t i = 0; bid_broker_server_stats(fetching->broker, i, &stats) == 0; i++) {
		bid_negative_lookup(negative, &wanted->artifact, stats.name, &ttl);
		ctl_trace_add_negative(&wanted->trace, stats.name, ttl);
	}
	bid_negative_free(negative);
}

static enum ctl_status fetch_wanted(struct fetching *fetching, const sigset_t *interrupts)
{
	struct ctl_progress line = { 0 };

	fetching->event = eventfd(0, EFD_CLOEXEC);
	fetching->signals = fetching->event < 0 ? -1 : signalfd(-1, interrupts, SFD_CLOEXEC);
	if (fetching->signals < 0)
		return ctl_trouble("servers", -errno, "start to fetch");
	while (fetching->ended < fetching->n) {
		while (fetching->begun < fetching->n && fetching->begun - fetching->ended < AT_ONCE)
			begin_fetch(fetching);
		if (fetching->ended < fetching->n)
			wait_for_some(fetching, &line);
	}
	ctl_progress_clear(&line);
	return fetching->caught ? (enum ctl_status)(CTL_SIGNAL + fetching->caught) : CTL_DONE;
}

/* Have a mount over the store retry its servers: it does not see this program's options, and has its own negative cache. */
static void refresh_wanted(const struct fetching *fetching, struct ctl_wanted_list *list)
{
	const char *path = bid_store_path(fetching->store);

	if (!fetching->covered || (!fetching->ctl->refresh && !fetching->ctl->accept))
		return;
	for (size_t i = 0; i < fetching->n && list->refresh_error == 0; i++)
		list->refresh_error = ctl_covering_mount_refresh(path, &fetching->wanted[i].artifact, fetching->ctl->accept);
	if (list->refresh_error == 0)
		ctl_covering_mount_wait(path);
}

enum ctl_status ctl_fetch_all(const struct ctl *ctl, struct bid_store *store, struct ctl_wanted_list *list, size_t first)
{
	struct fetching fetching = {
		.ctl = ctl,
		.store = store,
		.wanted = list->wanted + first,
		.n = list->n - first,
		.event = -1,
		.signals = -1,
	};
	struct ctl_servers servers = CTL_SERVERS_NONE;
	enum ctl_status status;
	sigset_t interrupts, before;

	if (fetching.n == 0)
		return CTL_DONE;
	fetching.covered = bid_is_mount(bid_store_path(store));
	refresh_wanted(&fetching, list);
	/* before the threads start, so that they inherit the mask */
	ctl_end_signals(&interrupts);
	sigprocmask(SIG_BLOCK, &interrupts, &before);
	status = ctl_servers_init(&servers, ctl, store);
	fetching.broker = servers.broker;
	/* the report of one artifact includes the servers' responses, so the broker's warnings would repeat them */
	if (!ctl->verbose || fetching.n == 1)
		bid_log_init("bidctl", BID_LOG_ERROR);
	if (status == CTL_DONE)
		status = fetch_wanted(&fetching, &interrupts);
	if (status == CTL_DONE && ctl->verbose && fetching.n == 1)
		recall_response(&fetching, fetching.wanted);
	/* joins the threads, which write to @list */
	ctl_servers_release(&servers);
	bid_log_init("bidctl", ctl->quiet ? BID_LOG_ERROR : ctl->verbose ? BID_LOG_INFO : BID_LOG_WARNING);
	bid_close(fetching.event);
	bid_close(fetching.signals);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return status;
}
