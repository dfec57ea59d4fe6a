// SPDX-License-Identifier: LGPL-2.1-or-later
#include "seek.h"

#include <bid/piece.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "inode.h"
#include "kcore.h"
#include "names.h"
#include "slot.h"

enum { FANS = UINT8_MAX + 1, ASK = 64 /* after so many ids it is asked whether the search is over */ };

/* The directories of original paths that ids of one first byte lie below. */
struct part {
	uint64_t mark; /* of their paths when it was read; 0 if it is to be read anew */
	uint64_t *keys; /* of the paths, in order, see bid_key(); owned */
	size_t n, room;
};

struct bid_seek {
	const struct bid_tree *tree; /* borrowed */
	struct part parts[FANS];
};

struct search {
	struct bid_seek *seek;
	uint64_t number;
	enum bid_node_type type;
	enum bid_kind kind;
	bid_seek_over_fn over;
	void *user;
	unsigned ids; /* that were looked at */
	struct bid_id id; /* that is looked at */
	struct part *part; /* that is read */
	int (*see)(struct search *search, char *above); /* what is done with each directory above an original path */
	struct bid_node *found; /* owned by the caller */
};

int bid_seek_new(const struct bid_tree *tree, struct bid_seek **ret_seek)
{
	struct bid_seek *seek = calloc(1, sizeof(*seek));

	if (!seek)
		return -ENOMEM;
	seek->tree = tree;
	*ret_seek = seek;
	return 0;
}

void bid_seek_free(struct bid_seek *seek)
{
	if (!seek)
		return;
	for (unsigned fan = 0; fan < FANS; fan++)
		free(seek->parts[fan].keys);
	free(seek);
}

bool bid_seek_can(enum bid_node_type type, enum bid_kind kind)
{
	switch (type) {
	case BID_NODE_PATH:
	case BID_NODE_PATH_ID:
	case BID_NODE_BY_PATH:
	case BID_NODE_SOURCES:
	case BID_NODE_KCORE:
	case BID_NODE_KCORE_COPY:
	case BID_NODE_KCORE_FILE:
		return kind == BID_KIND_NONE;
	case BID_NODE_FILE:
		return bid_kind_has_detail(kind);
	default:
		return false;
	}
}

/* Callbacks of enumerations from here on: 1 ends them, the node is found then. */

/* What of @r ends a search: what cannot be read has no handles. */
static int end_of(int r)
{
	return r == 1 || r == -EINTR || r == -ENOMEM ? r : 0;
}

/* Is it @node that is searched for? */
static int offer(struct search *search, const struct bid_node *node)
{
	int r;

	if (bid_inode_number(node) != search->number)
		return 0;
	r = bid_node_copy(node, search->found);
	return r < 0 ? r : 1;
}

/* Each directory that @path is in, from the nearest one. */
static int each_above(struct search *search, const char *path, int (*fn)(struct search *search, char *above))
{
	char above[PATH_MAX], *slash;
	int r = 0;

	snprintf(above, sizeof(above), "%s", path);
	while (r == 0 && (slash = strrchr(above, '/')) && slash > above) {
		*slash = '\0';
		r = fn(search, above);
	}
	return r;
}

/* Begin with @id. -EINTR if the search is over. */
static int next_id(struct search *search, const struct bid_id *id)
{
	search->id = *id;
	return ++search->ids % ASK == 0 && search->over && search->over(search->user) ? -EINTR : 0;
}

/* Original paths */

static int add_key(struct search *search, char *path)
{
	struct part *part = search->part;

	if (bid_array_grow(part->keys, part->n, part->room) < 0)
		return -ENOMEM;
	part->keys[part->n++] = bid_key(&(struct bid_node){ .type = BID_NODE_PATH, .path = path }, 0);
	return 0;
}

static int see_path(void *user, const char *path)
{
	struct search *search = user;

	return each_above(search, path, search->see);
}

static int see_id(void *user, const struct bid_id *id)
{
	struct search *search = user;
	int r = next_id(search, id);

	return r < 0 ? r : end_of(bid_store_each_path(search->seek->tree->store, id, see_path, search));
}

/* @see gets each directory that the original paths of the ids of @fan lie below. */
static int see_fan(struct search *search, unsigned fan, int (*see)(struct search *search, char *above))
{
	search->see = see;
	return bid_store_each_id_in(search->seek->tree->store, (uint8_t)fan, see_id, search);
}

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* In order, each once, and in no more memory than that takes. */
static void tidy(struct part *part)
{
	size_t n = 0;
	uint64_t *less;

	if (part->n == 0)
		return;
	qsort(part->keys, part->n, sizeof(*part->keys), compare);
	for (size_t i = 0; i < part->n; i++)
		if (n == 0 || part->keys[n - 1] != part->keys[i])
			part->keys[n++] = part->keys[i];
	part->n = n;
	less = reallocarray(part->keys, n, sizeof(*part->keys));
	if (less) {
		part->keys = less;
		part->room = n;
	}
}

/* Read the part of @fan anew, unless its ids are those that were read. Returns 1 if it was read. */
static int freshen(struct search *search, unsigned fan)
{
	struct bid_store *store = search->seek->tree->store;
	struct part *part = &search->seek->parts[fan];
	uint64_t mark;
	int r;

	if (bid_store_paths_mark_in(store, (uint8_t)fan, &mark) < 0)
		mark = 0;
	else if (mark == part->mark)
		return 0;
	part->n = 0;
	part->mark = 0;
	search->part = part;
	r = see_fan(search, fan, add_key);
	tidy(part);
	if (end_of(r) != 0)
		return r;
	part->mark = r == 0 ? mark : 0;
	return 1;
}

static bool has_key(const struct part *part, uint64_t key)
{
	return part->n && bsearch(&key, part->keys, part->n, sizeof(key), compare);
}

static int offer_path(struct search *search, char *path)
{
	struct bid_node node = { .type = search->type, .path = path };

	if (bid_inode_number(&node) != search->number || bid_store_classify(search->seek->tree->store, path) != BID_ENTRY_DIR)
		return 0;
	return offer(search, &node);
}

static int seek_in(struct search *search, unsigned fan)
{
	uint64_t key = search->number & ((1ULL << BID_KEY_BITS) - 1);

	if (!has_key(&search->seek->parts[fan], key))
		return 0;
	return end_of(see_fan(search, fan, offer_path));
}

/* First where it was when that was read, which costs nothing if it was nowhere; then where others may be by now. */
static int seek_path(struct search *search)
{
	int r = 0;

	for (unsigned fan = 0; fan < FANS && r == 0; fan++)
		r = seek_in(search, fan);
	for (unsigned fan = 0; fan < FANS && r == 0; fan++) {
		r = freshen(search, fan);
		if (r == 1)
			r = seek_in(search, fan);
	}
	return r;
}

/* What has an id */

static int offer_build(void *user, const char *path)
{
	struct search *search = user;
	struct bid_node node = { .type = BID_NODE_PATH_ID, .id = search->id, .path = (char *)path };

	if (bid_inode_number(&node) != search->number || bid_store_classify(search->seek->tree->store, path) != BID_ENTRY_ID)
		return 0;
	return offer(search, &node);
}

/* The directories of @id in perf's view. */
static int try_build(struct search *search, const struct bid_id *id)
{
	struct bid_node node = { .type = BID_NODE_PATH_ID, .id = *id };
	char path[PATH_MAX], hex[BID_ID_HEX_MAX];
	int r;

	node.path = path;
	snprintf(path, sizeof(path), BID_STORE_NAMELESS "/%s", bid_id_format(id, hex));
	r = offer(search, &node);
	return r == 0 ? bid_store_each_path(search->seek->tree->store, id, offer_build, search) : r;
}

static int offer_section(void *user, const char *name)
{
	struct search *search = user;
	struct bid_node node = { .type = BID_NODE_FILE, .kind = BID_KIND_SECTION, .id = search->id };
	struct bid_detail *detail;
	int r = bid_detail_section(name, &detail);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	node.detail = detail;
	r = offer(search, &node);
	bid_detail_unref(detail);
	return r;
}

static int offer_sources(struct search *search, char *path)
{
	return offer(search, &(struct bid_node){ .type = BID_NODE_SOURCES, .id = search->id, .path = path });
}

/* A source file that is kept, and the directories that it is in. */
static int offer_source(void *user, const struct bid_request *piece)
{
	struct search *search = user;

	if (search->type == BID_NODE_SOURCES)
		return each_above(search, bid_detail_text(piece->detail), offer_sources);
	return offer(search,
		     &(struct bid_node){ .type = BID_NODE_FILE, .kind = piece->kind, .id = piece->id, .detail = piece->detail });
}

static int try_id(void *user, const struct bid_id *id)
{
	struct search *search = user;
	struct bid_store *store = search->seek->tree->store;
	int r = next_id(search, id);

	if (r < 0)
		return r;
	if (search->type == BID_NODE_PATH_ID)
		r = try_build(search, id);
	else if (search->kind == BID_KIND_SECTION)
		r = bid_store_each_section(store, id, offer_section, search);
	else
		r = bid_store_each_piece(store, id, BID_KIND_SOURCE, offer_source, search);
	return end_of(r);
}

/* Copies of /proc/kcore */

static int offer_copied(void *user, const char *name, const struct bid_node *node)
{
	struct search *search = user;
	int r = offer(search, node);

	/* those of the one that is offered are of their id alone */
	if (r == 0 && node->type == BID_NODE_KCORE_COPY && node->path)
		r = bid_tree_list(search->seek->tree, node, offer_copied, search);
	return end_of(r);
}

static int try_kcore(void *user, const char *name, enum bid_entry entry)
{
	struct search *search = user;
	struct bid_node node = { .type = BID_NODE_KCORE };
	int r;

	if (bid_id_parse_str(name, &node.id) < 0)
		return 0;
	r = offer(search, &node);
	if (r == 0)
		r = bid_tree_list(search->seek->tree, &node, offer_copied, search);
	return end_of(r);
}

int bid_seek_node(struct bid_seek *seek, uint64_t number, bid_seek_over_fn over, void *user, struct bid_node *ret_node)
{
	struct bid_node found;
	struct search search = { .seek = seek, .number = number, .over = over, .user = user, .found = &found };
	unsigned fan;
	int r;

	bid_inode_take_apart(number, &search.type, &search.kind, &fan);
	if (!bid_seek_can(search.type, search.kind))
		return -ESTALE;
	switch (search.type) {
	case BID_NODE_PATH:
	case BID_NODE_BY_PATH:
		r = seek_path(&search);
		break;
	case BID_NODE_KCORE:
	case BID_NODE_KCORE_COPY:
	case BID_NODE_KCORE_FILE:
		r = bid_store_each_entry(seek->tree->store, BID_KCORE_PATH, try_kcore, &search);
		break;
	default:
		r = bid_store_each_id_in(seek->tree->store, (uint8_t)fan, try_id, &search);
		break;
	}
	if (r != 1)
		return r == -EINTR || r == -ENOMEM ? r : -ESTALE;
	*ret_node = found;
	return 0;
}
