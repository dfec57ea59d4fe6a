// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl pin and bidctl unpin */
#include <errno.h>

#include <bid/error.h>

#include "api/evict.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

static int find_stored(struct bid_store *store, const struct bid_artifact *artifact)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;

	return bid_store_find(store, artifact, BID_MAY_DERIVE, &file);
}

/* Pin or unpin all artifacts of @id; with @dry_run only look for them. Returns 0, -ENOENT if there are none, or another errno. */
static int pin_build(struct bid_store *store, const struct bid_id *id, bool pin, bool dry_run)
{
	bool found = false;

	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		struct bid_artifact artifact = { .id = *id, .kind = (enum bid_kind)kind };
		int r = dry_run ? find_stored(store, &artifact) : bid_store_pin(store, &artifact, pin);

		if (r < 0 && r != -ENOENT)
			return r;
		found |= r == 0;
	}
	return found ? 0 : -ENOENT;
}

static enum ctl_status pin_builds(const struct ctl *ctl, int argc, char **argv, bool pin)
{
	const char *state = pin ? "pinned" : "unpinned";
	ctl_auto_store struct bid_store *store = NULL;
	enum ctl_status status = ctl_open_store(ctl, ctl->dry_run ? CTL_READ_ITSELF : CTL_WRITE, &store), worst = status;
	size_t n = 0;
	struct bid_id id;

	if (status != CTL_DONE)
		return status;
	for (int i = 0; i < argc; i++) {
		int r;

		status = ctl_which_build(store, argv[i], &id, NULL);
		r = status != CTL_DONE ? 0 : store ? pin_build(store, &id, pin, ctl->dry_run) : -ENOENT;
		if (r < 0) {
			bid_error_about(argv[i], r, "%s", r == -ENOENT ? "not in the store" : bid_strerror(r));
			status = r == -ENOENT ? CTL_REFUSED : CTL_TROUBLE;
		}
		worst = status > worst ? status : worst;
		if (status != CTL_DONE)
			continue;
		n++;
		if (ctl->json || ctl->dry_run || ctl->verbose)
			ctl_row(ctl, CTL_ID("id", 40, &id), CTL_STATE("state", 0, state), CTL_TEXT("operand", CTL_HIDDEN, argv[i]));
	}
	ctl_totals(ctl, CTL_NUMBER(state, CTL_HIDDEN, n), CTL_BOOL("dry_run", ctl->dry_run));
	return worst;
}

enum ctl_status ctl_pin(const struct ctl *ctl, int argc, char **argv)
{
	return pin_builds(ctl, argc, argv, true);
}

enum ctl_status ctl_unpin(const struct ctl *ctl, int argc, char **argv)
{
	return pin_builds(ctl, argc, argv, false);
}
