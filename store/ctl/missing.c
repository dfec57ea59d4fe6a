// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl missing */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <bid/error.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/trouble.h"
#include "ctl/ctl.h"
#include "ctl/id_lines.h"
#include "ctl/output.h"
#include "ctl/perf_data.h"

struct asking {
	const struct ctl *ctl;
	struct bid_store *store; /* NULL is an empty one */
	size_t n; /* missing builds */
	bool partial; /* the recording lacks builds */
};

/* Does the store lack all artifacts that perf would use: ELF file, kernel symbols and vDSO? Returns 1, 0 or a negative errno. */
static int is_missing(struct bid_store *store, const struct bid_id *id)
{
	static const enum bid_kind kinds[] = { BID_KIND_ELF, BID_KIND_KALLSYMS, BID_KIND_VDSO };

	for (size_t i = 0; store && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct bid_request request = { .id = *id, .kind = kinds[i] };
		struct bid_file file = BID_FILE_NONE;
		int r = bid_store_find(store, &request, &file);

		bid_file_release(&file);
		if (r == 0)
			return 0;
		/* an unusable artifact counts as missing */
		if (r != -ENOENT && !bid_is_unusable(r))
			return r;
	}
	return 1;
}

/* ctl_id_line_fn. The output repeats @rest, the text behind the id. */
static enum ctl_status ask(void *user, const struct bid_id *id, const char *rest)
{
	struct asking *asking = user;
	char hex[BID_ID_HEX_MAX];
	int r = is_missing(asking->store, id);

	bid_id_format(id, hex);
	if (r < 0)
		return ctl_trouble(hex, r, "looking for it");
	if (r == 0)
		return CTL_DONE;
	asking->n++;
	if (asking->ctl->json) {
		ctl_row(asking->ctl, CTL_ID("id", 40, id), CTL_TEXT("path", 0, rest));
	} else {
		printf("%s%s", hex, *rest ? " " : "");
		ctl_print_text(stdout, rest);
		putchar('\n');
	}
	return CTL_DONE;
}

/* Check all builds of a recording, sampled or not. */
static enum ctl_status ask_recording(struct asking *asking, const char *path)
{
	bid_cleanup(ctl_recording_release) struct ctl_recording recording = { .path = path };
	enum ctl_status status = ctl_recording_read(&recording, false);

	for (size_t i = 0; i < recording.n && status == CTL_DONE; i++)
		if (recording.builds[i].id.len)
			status = ask(asking, &recording.builds[i].id, recording.builds[i].path);
	if (status == CTL_DONE) {
		ctl_recording_warn(&recording);
		asking->partial = recording.partial;
	}
	return status;
}

enum ctl_status ctl_missing(const struct ctl *ctl, int argc, char **argv)
{
	struct asking asking = { .ctl = ctl };
	ctl_auto_store struct bid_store *store = NULL;
	enum ctl_status status = ctl_open_to_find(ctl, CTL_READ, &store);
	struct bid_id id;

	if (ctl->perf_data && argc > 0)
		return ctl_usage(argv[0], "'--perf-data' takes nothing beside");
	asking.store = store;
	for (int i = 0; status == CTL_DONE && i < argc; i++) {
		if (ctl_parse_id(argv[i], &id) < 0)
			return ctl_usage(argv[i], "not a build-id in hex, and a recording goes with '--perf-data'");
	}
	for (int i = 0; status == CTL_DONE && i < argc; i++)
		if (ctl_parse_id(argv[i], &id) == 0)
			status = ask(&asking, &id, "");
	if (status == CTL_DONE && ctl->perf_data)
		status = ask_recording(&asking, ctl->perf_data);
	else if (status == CTL_DONE && argc == 0)
		status = ctl_each_id_line(ask, &asking);
	ctl_totals(ctl, CTL_NUMBER("missing", CTL_HIDDEN, asking.n));
	return status == CTL_DONE && (asking.n > 0 || asking.partial) ? CTL_REFUSED : status;
}
