// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl du */
#include <errno.h>
#include <fts.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

enum origin { ADDED, FETCHED, DERIVED, ORIGINS };

static const char *const origin_names[ORIGINS] = { "added", "fetched", "derived" };

/* Rows: the kinds of artifacts, then the rest. */
enum usage_row { KEY = BID_KIND_END, KCORE, QUARANTINE, INDEX, FOREIGN, ROWS };

struct sum {
	uint64_t files, bytes;
};

/* A file with several names. */
struct counted_inode {
	dev_t dev;
	ino_t ino;
	nlink_t unseen; /* names outside of what was searched */
	uint64_t bytes;
};

struct usage {
	struct bid_store *store;
	struct sum sums[ROWS][ORIGINS], all;
	uint64_t shared; /* bytes of files with names outside */
	void *inodes; /* tree of tsearch(3) of struct counted_inode; owned */
	bool incomplete;
};

/* The meaning of a path of the store. */
struct stored_path {
	unsigned row; /* enum bid_kind or enum usage_row */
	enum origin origin;
};

static const char *row_name(unsigned row)
{
	static const char *const names[ROWS] = {
		[KEY] = "content_key", [KCORE] = "kcore", [QUARANTINE] = "quarantine", [INDEX] = "index", [FOREIGN] = "foreign",
	};

	return row < BID_KIND_END ? bid_kind_name((enum bid_kind)row) : names[row];
}

/* bid_store_field_fn: find out whether the artifact was fetched or derived. */
static int take_origin(void *user, const char *name, const char *value)
{
	enum origin *origin = user;

	if (strcmp(name, "how") != 0)
		return 0;
	*origin = strcmp(value, "fetched") == 0 ? FETCHED : strcmp(value, "sliced") == 0 ? DERIVED : ADDED;
	return 1;
}

/* Find out whether the section "xx/rest/NAME" was fetched or derived. */
static void find_origin(const struct usage *usage, const char *text, enum origin *origin)
{
	struct bid_artifact artifact = { .kind = BID_KIND_SECTION };
	struct bid_subpath *subpath = NULL;
	char hex[BID_ID_HEX_MAX];
	int name = 0;

	if (sscanf(text, "%2[0-9a-f]/%126[0-9a-f]/%n", hex, hex + 2, &name) != 2 || name == 0 ||
	    bid_id_parse_str(hex, &artifact.id) < 0 || bid_subpath_section(text + name, &subpath) < 0)
		return;
	artifact.subpath = subpath;
	bid_store_each_field(usage->store, &artifact, take_origin, origin);
	bid_subpath_unref(subpath);
}

/* Classify the file ".bidfs/@text". */
static void classify_own(const struct usage *usage, const char *text, struct stored_path *place)
{
	static const struct {
		const char *folder;
		unsigned row;
		enum origin origin;
	} folders[] = {
		{ "source/", BID_KIND_SOURCE, FETCHED }, { "section/", BID_KIND_SECTION, FETCHED },
		{ "unpacked/", BID_KIND_ELF, DERIVED },	 { "kallsyms/", BID_KIND_KALLSYMS, DERIVED },
		{ "content key/", KEY, ADDED },		 { "quarantine/", QUARANTINE, ADDED },
	};

	place->row = INDEX;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t len = strlen(folders[i].folder);

		if (strncmp(text, folders[i].folder, len) != 0)
			continue;
		place->row = folders[i].row;
		place->origin = folders[i].origin;
		if (place->row == BID_KIND_SECTION)
			find_origin(usage, text + len, &place->origin);
	}
}

/* Classify the file "PATH/ID/NAME". */
static void classify_artifact(const struct usage *usage, const char *text, struct stored_path *place)
{
	const char *name = strrchr(text, '/'), *id = name;
	struct bid_artifact artifact = { 0 };
	char hex[BID_ID_HEX_MAX];

	if (strncmp(text, "[kernel.kcore]/", 15) == 0) {
		place->row = KCORE;
		return;
	}
	while (id && id > text && id[-1] != '/')
		id--;
	if (!id || id == text || (size_t)(name - id) >= sizeof(hex))
		return;
	snprintf(hex, sizeof(hex), "%.*s", (int)(name - id), id);
	artifact.kind = bid_kind_parse_store_name(name + 1);
	if (artifact.kind == BID_KIND_NONE || bid_id_parse_str(hex, &artifact.id) < 0)
		return;
	place->row = artifact.kind;
	bid_store_each_field(usage->store, &artifact, take_origin, &place->origin);
}

static int by_inode(const void *a, const void *b)
{
	const struct counted_inode *one = a, *other = b;

	if (one->dev != other->dev)
		return one->dev < other->dev ? -1 : 1;
	return (one->ino > other->ino) - (one->ino < other->ino);
}

/* Does this name of a file with several names count: the first one that the search meets? Returns 1, 0 or -ENOMEM. */
static int is_first_name(struct usage *usage, const struct stat *st, uint64_t bytes)
{
	struct counted_inode *inode = malloc(sizeof(*inode)), **found;

	if (!inode)
		return -ENOMEM;
	*inode = (struct counted_inode){ .dev = st->st_dev, .ino = st->st_ino, .unseen = st->st_nlink, .bytes = bytes };
	found = tsearch(inode, &usage->inodes, by_inode);
	if (!found || *found != inode)
		free(inode);
	if (!found)
		return -ENOMEM;
	(*found)->unseen--;
	return *found == inode;
}

/* Count the file or directory @text, relative to the store. */
static int count_file(struct usage *usage, const char *text, const struct stat *st)
{
	uint64_t bytes = (uint64_t)st->st_blocks * 512;
	struct stored_path place = { .row = FOREIGN };
	int r;

	if (S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode))
		place.row = INDEX;
	else if (strncmp(text, ".bidfs/", 7) == 0)
		classify_own(usage, text + 7, &place);
	else
		classify_artifact(usage, text, &place);
	r = st->st_nlink > 1 && S_ISREG(st->st_mode) ? is_first_name(usage, st, bytes) : 1;
	if (r <= 0)
		return r;
	usage->sums[place.row][place.origin].files += !S_ISDIR(st->st_mode);
	usage->sums[place.row][place.origin].bytes += bytes;
	usage->all.files += !S_ISDIR(st->st_mode);
	usage->all.bytes += bytes;
	return 0;
}

static int walk_store(struct usage *usage)
{
	const char *root = bid_store_path(usage->store);
	FTS *tree = fts_open((char *const[]){ (char *)root, NULL }, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	FTSENT *entry;
	int r = 0;

	if (!tree)
		return -errno;
	for (errno = 0; r == 0 && (entry = fts_read(tree)); errno = 0) {
		if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS) {
			bid_error_about(entry->fts_path, -entry->fts_errno, "%s", strerror(entry->fts_errno));
			usage->incomplete = true;
		} else if (entry->fts_info != FTS_DP) {
			r = count_file(usage, entry->fts_path + strlen(root) + (entry->fts_level > 0), entry->fts_statp);
		}
	}
	if (r == 0)
		r = -errno;
	fts_close(tree);
	return r;
}

static void add_shared(const void *node, VISIT visit, void *user)
{
	const struct counted_inode *const *inode = node;
	struct usage *usage = user;

	if ((visit == postorder || visit == leaf) && (*inode)->unseen > 0)
		usage->shared += (*inode)->bytes;
}

static void usage_release(struct usage *usage)
{
	tdestroy(usage->inodes, free);
}

/* Print the sums by kind and origin. */
static void print_sums(const struct ctl *ctl, const struct usage *usage)
{
	for (unsigned row = 0; row < ROWS; row++) {
		for (int origin = 0; origin < ORIGINS; origin++) {
			const struct sum *sum = &usage->sums[row][origin];

			if (sum->files > 0)
				ctl_row(ctl, CTL_TEXT("kind", 11, row_name(row)),
					CTL_TEXT("origin", 7, row <= KEY ? origin_names[origin] : NULL),
					CTL_NUMBER("files", -8, sum->files), CTL_SIZE("size", -9, sum->bytes));
		}
	}
}

static void report_usage(const struct ctl *ctl, const struct usage *usage)
{
	print_sums(ctl, usage);
	ctl_totals(ctl, CTL_NUMBER("files", 0, usage->all.files), CTL_SIZE("size", 0, usage->all.bytes),
		   CTL_SIZE("shared_size", usage->shared ? 0 : CTL_HIDDEN, usage->shared));
}

enum ctl_status ctl_du(const struct ctl *ctl, int argc, char **argv)
{
	bid_cleanup(usage_release) struct usage usage = { 0 };
	ctl_auto_store struct bid_store *store = NULL;
	enum ctl_status status = ctl_open_store(ctl, CTL_READ_ITSELF, &store);
	int r;

	if (status != CTL_DONE)
		return status;
	usage.store = store;
	r = store ? walk_store(&usage) : 0;
	if (r < 0)
		return ctl_trouble(bid_store_path(store), r, "search the store");
	twalk_r(usage.inodes, add_shared, &usage);
	report_usage(ctl, &usage);
	return usage.incomplete ? CTL_TROUBLE : CTL_DONE;
}
