// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl missing */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bid/error.h>

#include "base/cleanup.h"
#include "base/local_error.h"
#include "ctl/ctl.h"
#include "ctl/needed_builds.h"
#include "ctl/output.h"

/* Does the store lack all artifacts that perf would use: ELF file, kernel symbols and vDSO? Returns 1, 0 or a negative errno. */
static int is_missing(struct bid_store *store, const struct bid_id *id)
{
	static const enum bid_kind kinds[] = { BID_KIND_ELF, BID_KIND_KALLSYMS, BID_KIND_VDSO };

	for (size_t i = 0; store && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct bid_artifact artifact = { .id = *id, .kind = kinds[i] };
		struct bid_file file = BID_FILE_NONE;
		int r = bid_store_find(store, &artifact, BID_MAY_DERIVE, &file);

		bid_file_release(&file);
		if (r == 0)
			return 0;
		/* an unusable artifact counts as missing */
		if (r != -ENOENT && !bid_is_unusable(r))
			return r;
	}
	return 1;
}

/* Print the build if it is missing, with the text behind the id. */
static enum ctl_status check_id(const struct ctl *ctl, struct bid_store *store, const struct bid_id *id, const char *rest,
				size_t *n)
{
	char hex[BID_ID_HEX_MAX];
	int r = is_missing(store, id);

	bid_id_format(id, hex);
	if (r < 0)
		return ctl_trouble(hex, r, "look for it");
	*n += (size_t)r;
	if (r > 0 && ctl->json) {
		ctl_row(ctl, CTL_ID("id", 40, id), CTL_TEXT("path", 0, rest));
	} else if (r > 0) {
		printf("%s%s", hex, *rest ? " " : "");
		ctl_print_text(stdout, rest);
		putchar('\n');
	}
	return CTL_DONE;
}

enum ctl_status ctl_missing(const struct ctl *ctl, int argc, char **argv)
{
	bid_cleanup(ctl_perf_data_release) struct ctl_perf_data needs = { 0 };
	ctl_auto_store struct bid_store *store = NULL;
	enum ctl_status status = ctl_open_to_find(ctl, CTL_READ, &store), lines = CTL_DONE;
	struct bid_id id;
	size_t n = 0;

	/* as for get */
	if (argc == 1 && strcmp(argv[0], "-") == 0 && !ctl->perf_data)
		argc = 0;
	if (ctl->perf_data && argc > 0)
		return ctl_usage(argv[0], "'--perf-data' excludes operands and other sources");
	for (int i = 0; status == CTL_DONE && i < argc; i++)
		if (ctl_parse_id(argv[i], &id) < 0)
			return ctl_usage(argv[i], "not a build-id in hex, and a recording goes with '--perf-data'");
	for (int i = 0; status == CTL_DONE && i < argc; i++)
		if (ctl_parse_id(argv[i], &id) == 0)
			status = check_id(ctl, store, &id, "", &n);
	if (status == CTL_DONE && argc == 0)
		status = ctl_needs_read(ctl, NULL, &needs);
	/* the good lines of a list count even if others were bad */
	if (status == CTL_USAGE) {
		lines = status;
		status = CTL_DONE;
	}
	for (size_t i = 0; i < needs.n && status == CTL_DONE; i++)
		if (needs.builds[i].id.len > 0)
			status = check_id(ctl, store, &needs.builds[i].id, needs.builds[i].path, &n);
	ctl_totals(ctl, CTL_NUMBER("missing", CTL_HIDDEN, n));
	if (status == CTL_DONE && lines == CTL_DONE && (n > 0 || needs.partial))
		return CTL_REFUSED;
	return status == CTL_DONE ? lines : status;
}
