// SPDX-License-Identifier: LGPL-2.1-or-later
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"

static const char readme[] =
	"Every build-id is a directory here. ID is a build-id in lower-case hex, M this mount point.\n"
	"\n"
	"  M/buildid/ID/elf          the program, library, kernel or module (executable: the same)\n"
	"  M/buildid/ID/debuginfo    the file with its DWARF\n"
	"  M/buildid/ID/kallsyms     a kernel's symbol table\n"
	"  M/buildid/ID/probes       cached probe definitions, in perf's format\n"
	"  M/buildid/ID/vdso         a vDSO's image\n"
	"  M/buildid/ID/info         what is known of this id, as JSON\n"
	"  M/by-path/usr/bin/ls/ID   every build of /usr/bin/ls that the store knows\n"
	"  M/.build-id               perf's view:        perf report --buildid-dir M\n"
	"  M/usr/lib/debug           the debuggers' view: gdb -iex 'set debug-file-directory M/usr/lib/debug'\n"
	"  M/.bidfs/status, metrics  what this mount does and did, as JSON and for Prometheus\n"
	"\n"
	"Listings show what is in the store. Any other id can be named all the same, and is fetched if a server has it:\n"
	"\n"
	"  cp M/buildid/ID/debuginfo somewhere\n"
	"\n"
	"If a file does not appear, 'bidctl get ID debuginfo' says what each server answered. See mount.bidfs(8).\n";

/* Make @text, of @size bytes, a multiple of the block by newlines, which neither JSON nor Prometheus minds. */
static int pad(char **text, size_t *size)
{
	size_t padded = (*size / BID_TEXT_BLOCK + 1) * BID_TEXT_BLOCK;
	char *larger = realloc(*text, padded + 1);

	if (!larger)
		return -ENOMEM;
	memset(larger + *size, '\n', padded - *size);
	larger[padded] = '\0';
	*text = larger;
	*size = padded;
	return 0;
}

int bid_text_make(const struct bid_fs *fs, const struct bid_node *node, char **ret_text, size_t *ret_size)
{
	bid_auto_free char *text = NULL;
	size_t size;
	int r;

	switch (node->type) {
	case BID_NODE_README:
		text = strdup(readme);
		break;
	case BID_NODE_STATUS:
		text = bid_status_json(fs);
		break;
	case BID_NODE_METRICS:
		text = bid_metrics_text(fs);
		break;
	case BID_NODE_INFO: {
		char hex[BID_ID_HEX_MAX];

		r = bid_store_info(fs->store, &node->id, &text);
		if (r == -ENOENT && asprintf(&text, "{\n  \"artifacts\": {},\n  \"id\": \"%s\",\n  \"paths\": []\n}",
					     bid_id_format(&node->id, hex)) < 0)
			text = NULL;
		break;
	}
	default:
		return -ENOENT;
	}
	if (!text)
		return -ENOMEM;
	size = strlen(text);
	if (node->type != BID_NODE_README) {
		r = pad(&text, &size);
		if (r < 0)
			return r;
	}
	*ret_text = bid_steal(text);
	*ret_size = size;
	return 0;
}

size_t bid_text_size(const struct bid_fs *fs, const struct bid_node *node, struct timespec *ret_time)
{
	bid_auto_free char *text = NULL;
	size_t size = 0;

	if (bid_text_make(fs, node, &text, &size) < 0)
		return 0;
	if (node->type != BID_NODE_README)
		clock_gettime(CLOCK_REALTIME, ret_time);
	return size;
}

const char *bid_mode_name(enum bid_mode mode)
{
	switch (mode) {
	case BID_MODE_PASSTHROUGH:
		return "passthrough";
	case BID_MODE_NO_OPEN:
		return "no_open";
	default:
		return "starting";
	}
}
