// SPDX-License-Identifier: LGPL-2.1-or-later
#include "synthetic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/access.h"
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
	"  M/by-path/usr/bin/ls/ID   every build of /usr/bin/ls that the store knows\n"
	"  M/.build-id               perf's view:        perf report --buildid-dir M\n"
	"  M/usr/lib/debug           the debuggers' view: gdb -iex 'set debug-file-directory M/usr/lib/debug:/usr/lib/debug'\n"
	"  M/.bidfs/status, metrics  state and counters of this mount, as JSON and for Prometheus\n"
	"\n"
	"Listings show what is in the store. Any other id can be named all the same, and is fetched if a server has it:\n"
	"\n"
	"  cp M/buildid/ID/debuginfo somewhere\n"
	"\n"
	"If a file does not appear, 'bidctl get -v ID debuginfo' shows the response of each server. See mount.bidfs(8).\n";

/* The text of one snapshot: an attachment of its inode. */
struct snapshot {
	size_t size;
	struct timespec time;
	char text[];
};

static bool has_snapshots(const struct bid_node *node)
{
	return node->type == BID_NODE_STATUS || node->type == BID_NODE_METRICS;
}

void bid_synthetic_new_snapshot(struct bid_fs *fs, struct bid_node *node)
{
	if (!has_snapshots(node))
		return;
	do
		node->snapshot = ++fs->snapshots;
	while (node->snapshot == 0);
}

/*
 * Append a newline to @text, JSON of @size bytes. In no_open mode pad it to a multiple of the block, which a terminal shows as one
 * empty line.
 */
static int end_json(const struct bid_fs *fs, char **text, size_t *size)
{
	bool padded = fs->mode == BID_MODE_NO_OPEN;
	size_t whole = padded ? (*size / BID_SYNTHETIC_BLOCK + 1) * BID_SYNTHETIC_BLOCK : *size + 1;
	char *larger = realloc(*text, whole + 1);

	if (!larger)
		return -ENOMEM;
	memset(larger + *size, '\t', whole - *size);
	larger[*size] = '\n';
	larger[whole - 1] = '\n';
	larger[whole] = '\0';
	*text = larger;
	*size = whole;
	return 0;
}

int bid_synthetic_fill_snapshot(struct bid_fs *fs, const struct bid_inode *inode)
{
	bid_auto_free char *text = NULL;
	bid_auto_free struct snapshot *snapshot = NULL;
	size_t size;
	int r;

	if (!has_snapshots(&inode->node) || inode->node.snapshot == 0)
		return 0;
	text = inode->node.type == BID_NODE_STATUS ? bid_status_json(fs) : bid_metrics_text(fs);
	if (!text)
		return -ENOMEM;
	size = strlen(text);
	/* a scraper of metrics reads lines */
	r = inode->node.type == BID_NODE_STATUS ? end_json(fs, &text, &size) : 0;
	if (r < 0)
		return r;
	snapshot = malloc(sizeof(*snapshot) + size);
	if (!snapshot)
		return -ENOMEM;
	snapshot->size = size;
	memcpy(snapshot->text, text, size);
	clock_gettime(CLOCK_REALTIME, &snapshot->time);

	r = bid_inodes_attach(fs->inodes, inode->number, snapshot);
	if (r == 0)
		bid_steal(snapshot);
	return r == -EEXIST ? 0 : r; /* NFS: the inode was found by its number */
}

void bid_synthetic_detach(void *attachment)
{
	free(attachment);
}

/* Set before the kernel knows the inode, freed when the kernel forgets the inode. */
static const struct snapshot *snapshot_of(const struct bid_fs *fs, const struct bid_inode *inode)
{
	return inode->node.snapshot ? bid_inodes_attached(fs->inodes, inode->number) : NULL;
}

static int make_info(const struct bid_fs *fs, const struct bid_id *id, char **ret_text, size_t *ret_size,
		     struct timespec *ret_changed)
{
	struct timespec changed = fs->started;
	bid_auto_free char *text = NULL;
	char hex[BID_ID_HEX_MAX];
	int r = bid_store_info(fs->store, id, &text, &changed);

	if (r == -ENOENT &&
	    asprintf(&text, "{\n  \"artifacts\": {},\n  \"id\": \"%s\",\n  \"paths\": []\n}", bid_id_format(id, hex)) < 0)
		text = NULL;
	if (!text)
		return -ENOMEM;
	*ret_size = strlen(text);
	r = end_json(fs, &text, ret_size);
	if (r == 0)
		*ret_text = bid_steal(text);
	*ret_changed = changed;
	return r;
}

static int make_modules(const struct bid_fs *fs, const struct bid_id *id, char **ret_text, size_t *ret_size)
{
	struct stat table;
	int r = bid_store_modules(fs->store, id, ret_text, &table);

	if (r == 0)
		*ret_size = strlen(*ret_text);
	return r;
}

int bid_synthetic_make(struct bid_fs *fs, const struct bid_inode *inode, char **ret_text, size_t *ret_size)
{
	const struct snapshot *snapshot = snapshot_of(fs, inode);
	const char *from = snapshot ? snapshot->text : readme;
	size_t size = snapshot ? snapshot->size : strlen(readme);
	struct timespec changed;
	char *text;

	if (inode->node.type == BID_NODE_INFO)
		return make_info(fs, &inode->node.id, ret_text, ret_size, &changed);
	if (inode->node.type == BID_NODE_MODULES)
		return make_modules(fs, &inode->node.id, ret_text, ret_size);
	if (!snapshot && inode->node.type != BID_NODE_README)
		return -ENOENT;
	text = malloc(size + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, from, size);
	*ret_text = text;
	*ret_size = size;
	return 0;
}

/* The modules of a kernel come from its symbol table, and have the readers of the table. */
static void stat_modules(const struct bid_fs *fs, const struct bid_id *id, struct stat *st)
{
	bid_auto_free char *text = NULL;
	struct stat table;

	st->st_mode = S_IFREG;
	if (bid_store_modules(fs->store, id, &text, &table) < 0)
		return;
	st->st_mode |= table.st_mode & 0444;
	st->st_uid = table.st_uid;
	st->st_gid = table.st_gid;
	st->st_size = (off_t)strlen(text);
	bid_fs_narrow(fs, st);
}

static void stat_info(const struct bid_fs *fs, const struct bid_id *id, struct stat *st)
{
	bid_auto_free char *text = NULL;
	struct stat store;
	size_t size;

	st->st_mode = S_IFREG | 0444;
	/* the owner of the files, not of the mount */
	if (bid_store_stat(fs->store, ".", &store) == 0) {
		st->st_uid = store.st_uid;
		st->st_gid = store.st_gid;
	}
	bid_fs_narrow(fs, st);
	if (make_info(fs, id, &text, &size, &st->st_mtim) == 0)
		st->st_size = (off_t)size;
	st->st_ctim = st->st_mtim;
}

void bid_synthetic_stat(const struct bid_fs *fs, const struct bid_inode *inode, struct stat *st)
{
	const struct snapshot *snapshot = snapshot_of(fs, inode);

	if (inode->node.type == BID_NODE_MODULES) {
		stat_modules(fs, &inode->node.id, st);
		return;
	}
	if (inode->node.type == BID_NODE_INFO) {
		stat_info(fs, &inode->node.id, st);
		return;
	}
	st->st_mode = S_IFREG | 0444;
	if (snapshot) {
		st->st_size = (off_t)snapshot->size;
		st->st_mtim = snapshot->time;
	} else if (inode->node.type == BID_NODE_README) {
		st->st_size = (off_t)strlen(readme);
	}
}
