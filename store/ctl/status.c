// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl status */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/cover.h"
#include "ctl/ctl.h"
#include "ctl/mount_state.h"
#include "ctl/mounts.h"
#include "ctl/output.h"

struct summary {
	char path[PATH_MAX];
	bool readable; /* false after a reported error; then the next fields are those of an absent store */
	bool exists, writable;
	uint64_t ids, free, size; /* bytes, except ids */
};

struct mounts {
	const struct ctl *ctl;
	size_t n;
};

static int count(void *user, const struct bid_id *id)
{
	(*(uint64_t *)user)++;
	return 0;
}

static int summarise(struct bid_store *store, struct summary *summary)
{
	struct statvfs fs;
	int r;

	summary->exists = true;
	snprintf(summary->path, sizeof(summary->path), "%s", bid_store_path(store));
	/* no trial write, because this command changes nothing */
	summary->writable = access(summary->path, W_OK) == 0;
	r = bid_store_each_id(store, count, &summary->ids);
	if (r == 0)
		r = bid_store_statfs(store, &fs);
	if (r < 0)
		return r;
	summary->free = (uint64_t)fs.f_bavail * fs.f_frsize;
	summary->size = (uint64_t)fs.f_blocks * fs.f_frsize;
	return 0;
}

static void print_summary(const struct summary *summary)
{
	char available[CTL_SIZE_MAX], total[CTL_SIZE_MAX];

	ctl_print_label("store");
	ctl_print_text(stdout, summary->path);
	putchar('\n');
	if (!summary->readable) {
		printf("  cannot be read\n");
		return;
	}
	if (!summary->exists) {
		printf("  does not exist yet; 'bidctl add FILE' makes it\n");
		return;
	}
	ctl_print_label("  writable");
	puts(summary->writable ? "yes" : "no");
	ctl_print_label("  ids");
	printf("%" PRIu64 "\n", summary->ids);
	ctl_print_label("  free");
	printf("%s of %s\n", ctl_format_size(summary->free, available), ctl_format_size(summary->size, total));
}

static void print_mount(const struct ctl_mount *mount, int error, const json_t *state)
{
	putchar('\n');
	ctl_print_label("mount");
	ctl_print_text(stdout, mount->point);
	putchar('\n');
	ctl_print_label("  store");
	ctl_print_text(stdout, mount->source);
	putchar('\n');
	ctl_print_label("  mode");
	puts(mount->read_only ? "read-only" : "read-write");
	if (error == 0) {
		ctl_print_mount_state(state);
		return;
	}
	ctl_print_label("  state");
	printf("%sunknown: %s%s\n", ctl_colour(stdout, CTL_RED), ctl_mount_trouble(error), ctl_colour(stdout, CTL_PLAIN));
}

/* Report one mount; also another user's, or one without a daemon, because its existence is the news. */
static int report_mount(void *user, const struct ctl_mount *mount)
{
	struct mounts *mounts = user;
	json_t *state = NULL;
	int r;

	if (!mount->whole)
		return 0;
	r = ctl_mount_state(mount, &state);
	mounts->n++;
	if (mounts->ctl->json)
		ctl_row(mounts->ctl, CTL_TEXT("mount", 0, mount->point), CTL_TEXT("store", 0, mount->source),
			CTL_TEXT("state", 0, r == 0 ? "up" : "unknown"), CTL_BOOL("writable", !mount->read_only),
			CTL_JSON("status", r == 0 ? json_incref(state) : NULL),
			CTL_TEXT("reason", 0, r < 0 ? ctl_mount_trouble(r) : NULL));
	else
		print_mount(mount, r, state);
	json_decref(state);
	return 0;
}

/* Report the mounts, and return the exit status. */
static enum ctl_status report_mounts(const struct ctl *ctl)
{
	struct mounts mounts = { .ctl = ctl };
	int r;

	/* flush before the fork, so that a child does not write the buffer again */
	fflush(stdout);
	r = ctl_each_mount(CTL_MOUNTINFO, report_mount, &mounts);
	if (r < 0) {
		bid_error_about(CTL_MOUNTINFO, r, "%s", strerror(-r));
		return CTL_TROUBLE;
	}
	ctl_totals(ctl, CTL_NUMBER("mounts", CTL_HIDDEN, mounts.n));
	if (!ctl->json && mounts.n == 0)
		puts("\nno mount of bidfs");
	return CTL_DONE;
}

/* Fill the summary of the store at its path. */
static enum ctl_status look(const struct ctl *ctl, struct summary *summary)
{
	ctl_auto_store struct bid_store *store = NULL;
	enum ctl_status status;
	int r;

	if (ctl_cover_is_silent(summary->path)) {
		bid_error_about(summary->path, -ETIMEDOUT, "a mount of bidfs covers the store '%s', and its daemon does not answer",
				summary->path);
		return CTL_TROUBLE;
	}
	status = ctl_open_store(ctl, CTL_READ, &store);
	r = store ? summarise(store, summary) : 0;
	if (r < 0)
		bid_error_about(summary->path, r, "%s: reading the store", strerror(-r));
	return r < 0 ? CTL_TROUBLE : status;
}

static enum ctl_status show(const struct ctl *ctl)
{
	struct summary summary = { .readable = true };
	enum ctl_status status = ctl_store_path(ctl, summary.path, sizeof(summary.path)), mounts;

	if (status != CTL_DONE)
		return status;
	/* report the mounts also after an error of the store: a mount without a daemon may be its cause */
	status = look(ctl, &summary);
	summary.readable = status == CTL_DONE;
	if (ctl->json)
		ctl_row(ctl, CTL_TEXT("store", 0, summary.path),
			CTL_TEXT("state", 0,
				 !summary.readable ? "unreadable"
				 : summary.exists  ? "ok"
						   : "absent"),
			CTL_BOOL("writable", summary.writable), CTL_NUMBER("builds", 0, summary.ids),
			CTL_SIZE("free", 0, summary.free), CTL_SIZE("size", 0, summary.size));
	else
		print_summary(&summary);
	mounts = report_mounts(ctl);
	return status != CTL_DONE ? status : mounts;
}

enum ctl_status ctl_show_status(const struct ctl *ctl, int argc, char **argv)
{
	enum ctl_status status;

	if (ctl->interval > 0 && !ctl->watch)
		return ctl_usage("--interval", "'--interval' needs '--watch'");
	for (;;) {
		/* to the upper left corner, and erase */
		if (ctl->watch && ctl_is_terminal(stdout))
			fputs("\033[H\033[J", stdout);
		status = show(ctl);
		if (!ctl->watch || fflush(stdout) != 0)
			return status;
		sleep(ctl->interval > 0 ? ctl->interval : 2);
		if (!ctl_is_terminal(stdout) && !ctl->json)
			putchar('\n');
	}
}
