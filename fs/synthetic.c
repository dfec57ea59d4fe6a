// SPDX-License-Identifier: LGPL-2.1-or-later
#include "synthetic.h"

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
	"  M/buildid/ID/unstripped   ELF and debuginfo put together, when first used\n"
	"  M/buildid/ID/source/PATH  a source file of that build, as a server has it\n"
	"  M/buildid/ID/section/NAME the bytes of one ELF section\n"
	"  M/buildid/ID/info         all facts about this id, as JSON\n"
	"%s"
	"  M/.bidfs/status, metrics  state and counters of this mount, as JSON and for Prometheus\n"
	"\n"
	"Listings show what is in the store. Any other id can be named all the same, and is fetched if a server has it:\n"
	"\n"
	"  cp M/buildid/ID/debuginfo somewhere\n"
	"\n"
	"If a file does not appear, 'bidctl get -v ID debuginfo' shows the response of each server. See mount.bidfs(8).\n";

static const char whole_tree[] =
	"  M/by-path/usr/bin/ls/ID   every build of /usr/bin/ls that the store knows\n"
	"  M/.build-id               perf's view:        perf report --buildid-dir M\n"
	"  M/usr/lib/debug           the debuggers' view: gdb -iex 'set debug-file-directory M/usr/lib/debug:/usr/lib/debug'\n";

static const char debug_view[] =
	"  M/.build-id               the debuggers' view: gdb -iex 'set debug-file-directory M:/usr/lib/debug'\n";

/* Append a newline to @text, JSON, or pad it to a multiple of the block, which a terminal shows as one empty line. */
static int end_json(const struct bid_fs *fs, char **text)
{
	size_t size = strlen(*text);
	size_t whole = fs->mode == BID_MODE_NO_OPEN || fs->options->allow_other
			       ? (size / BID_SYNTHETIC_BLOCK + 1) * BID_SYNTHETIC_BLOCK
			       : size + 1;
	char *larger = realloc(*text, whole + 1);

	if (!larger)
		return -ENOMEM;
	memset(larger + size, '\t', whole - size);
	larger[size] = '\n';
	larger[whole - 1] = '\n';
	larger[whole] = '\0';
	*text = larger;
	return 0;
}

/* The text of an id without artifacts. */
static char *empty_info(const struct bid_id *id)
{
	char hex[BID_ID_HEX_MAX], *text;

	return asprintf(&text, "{\n  \"artifacts\": {},\n  \"id\": \"%s\",\n  \"paths\": []\n}", bid_id_format(id, hex)) < 0 ? NULL
															     : text;
}

static int make_info(const struct bid_fs *fs, const struct bid_id *id, char **ret_text, struct stat *st)
{
	struct stat store;

	/* the owner of the files, not of the mount */
	if (bid_store_stat_path(fs->store, ".", &store) == 0) {
		st->st_uid = store.st_uid;
		st->st_gid = store.st_gid;
	}
	bid_fs_narrow(fs, st);
	if (bid_store_info(fs->store, id, ret_text, &st->st_mtim) == -ENOENT)
		*ret_text = empty_info(id);
	st->st_ctim = st->st_mtim;
	return *ret_text ? end_json(fs, ret_text) : -ENOMEM;
}

/* The modules of a kernel come from its symbol table, and have the readers of the table. */
static int make_modules(const struct bid_fs *fs, const struct bid_id *id, char **ret_text, struct stat *st)
{
	struct stat table;
	int r = bid_store_modules(fs->store, id, ret_text, &table);

	if (r < 0)
		return r;
	st->st_mode = S_IFREG | (table.st_mode & 0444);
	st->st_uid = table.st_uid;
	st->st_gid = table.st_gid;
	bid_fs_narrow(fs, st);
	return 0;
}

/* The state of this moment. A scraper of metrics reads lines. */
static int make_state(const struct bid_fs *fs, enum bid_node_type type, char **ret_text, struct stat *st)
{
	clock_gettime(CLOCK_REALTIME, &st->st_mtim);
	*ret_text = type == BID_NODE_STATUS ? bid_status_json(fs) : bid_metrics_text(fs);
	if (!*ret_text)
		return -ENOMEM;
	return type == BID_NODE_STATUS ? end_json(fs, ret_text) : 0;
}

int bid_synthetic_make(const struct bid_fs *fs, const struct bid_node *node, char **ret_text, struct stat *st)
{
	bid_auto_free char *text = NULL;
	int r = 0;

	st->st_mode = S_IFREG | 0444;
	switch (node->type) {
	case BID_NODE_INFO:
		r = make_info(fs, &node->id, &text, st);
		break;
	case BID_NODE_MODULES:
		r = make_modules(fs, &node->id, &text, st);
		break;
	case BID_NODE_STATUS:
	case BID_NODE_METRICS:
		r = make_state(fs, node->type, &text, st);
		break;
	case BID_NODE_README:
		r = asprintf(&text, readme, fs->options->debug_view ? debug_view : whole_tree) < 0 ? -ENOMEM : 0;
		break;
	default:
		r = -ENOENT;
		break;
	}
	if (r < 0)
		return r;
	st->st_size = (off_t)strlen(text);
	/* without blocks, cp(1) looks for holes, and cuts a text that has grown since */
	st->st_blocks = (st->st_size + 511) / 512;
	*ret_text = bid_steal(text);
	return 0;
}
