// SPDX-License-Identifier: LGPL-2.1-or-later
/* Kinds of artifacts, subpaths of requests: parse, compare, name. */
#include "api/artifact.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	const char *store_name; /* perf, util/build-id.c */
	bool fetchable;
	bool elf;
} kinds[BID_KIND_END] = {
	[BID_KIND_NONE] = { "none", "none", false, false },
	[BID_KIND_ELF] = { "elf", "elf", true, true },
	[BID_KIND_DEBUGINFO] = { "debuginfo", "debug", true, true },
	[BID_KIND_KALLSYMS] = { "kallsyms", "kallsyms", false, false },
	[BID_KIND_PROBES] = { "probes", "probes", false, false },
	[BID_KIND_VDSO] = { "vdso", "vdso", false, true },
	[BID_KIND_UNSTRIPPED] = { "unstripped", "unstripped", false, true },
	[BID_KIND_SOURCE] = { "source", "source", true, false },
	[BID_KIND_SECTION] = { "section", "section", true, false },
};

bool bid_artifact_valid(const struct bid_artifact *artifact)
{
	return artifact->id.len > 0 && artifact->kind > BID_KIND_NONE && artifact->kind < BID_KIND_END &&
	       bid_kind_has_subpath(artifact->kind) == (artifact->subpath != NULL);
}

struct bid_artifact bid_artifact_copy(const struct bid_artifact *artifact)
{
	bid_subpath_ref(artifact->subpath);
	return *artifact;
}

void bid_artifact_release(struct bid_artifact *artifact)
{
	bid_subpath_unref(artifact->subpath);
	artifact->subpath = NULL;
}

static enum bid_kind checked(enum bid_kind kind)
{
	return (unsigned)kind < BID_KIND_END ? kind : BID_KIND_NONE;
}

const char *bid_kind_name(enum bid_kind kind)
{
	return kinds[checked(kind)].name;
}

const char *bid_kind_store_name(enum bid_kind kind)
{
	return kinds[checked(kind)].store_name;
}

enum bid_kind bid_kind_parse_store_name(const char *name)
{
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++)
		if (strcmp(name, kinds[kind].store_name) == 0)
			return (enum bid_kind)kind;
	return BID_KIND_NONE;
}

bool bid_kind_fetchable(enum bid_kind kind)
{
	return kinds[checked(kind)].fetchable;
}

bool bid_kind_is_elf(enum bid_kind kind)
{
	return kinds[checked(kind)].elf;
}

bool bid_kind_has_subpath(enum bid_kind kind)
{
	return kind >= BID_KIND_SOURCE && kind < BID_KIND_END;
}

enum bid_kind bid_kind_parse(const char *name)
{
	if (strcmp(name, "executable") == 0)
		return BID_KIND_ELF;
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_SOURCE; kind++)
		if (strcmp(name, kinds[kind].name) == 0)
			return (enum bid_kind)kind;
	return BID_KIND_NONE;
}

struct bid_subpath {
	atomic_uint refs;
	char text[];
};

/*
 * Does @text have C0 characters or DEL? No real file name has them, and they would split lines of logs and requests. Bytes above
 * DEL are permitted.
 */
static bool has_controls(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	return false;
}

static struct bid_subpath *subpath_new(size_t room)
{
	struct bid_subpath *subpath = malloc(sizeof(*subpath) + room);

	if (subpath)
		atomic_init(&subpath->refs, 1);
	return subpath;
}

/*
 * Write the canonical form of @path to @to, which has the same size. Returns false for a path that is too deep, leaves the root, or
 * ends in a directory.
 */
static bool canonicalise(const char *path, char *to)
{
	char *end = to;
	unsigned depth = 0;
	bool dir = true;

	while (*path) {
		size_t len;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (len > NAME_MAX)
			return false;
		dir = len == 0 || (len == 1 && path[0] == '.') || (len == 2 && memcmp(path, "..", 2) == 0);
		if (!dir) {
			*end++ = '/';
			memcpy(end, path, len);
			end += len;
			if (++depth > BID_SUBPATH_DEPTH)
				return false;
		} else if (len == 2) {
			if (end == to)
				return false;
			while (*--end != '/')
				;
			depth--;
		}
		path += len;
	}
	*end = '\0';
	return !dir;
}

int bid_subpath_source(const char *path, struct bid_subpath **ret_subpath)
{
	size_t len = strnlen(path, BID_SUBPATH_MAX + 1);
	struct bid_subpath *subpath;

	if (path[0] != '/' || len > BID_SUBPATH_MAX || has_controls(path))
		return -EINVAL;
	subpath = subpath_new(len + 1);
	if (!subpath)
		return -ENOMEM;
	if (!canonicalise(path, subpath->text)) {
		free(subpath);
		return -EINVAL;
	}
	*ret_subpath = subpath;
	return 0;
}

int bid_subpath_section(const char *name, struct bid_subpath **ret_subpath)
{
	size_t len = strnlen(name, NAME_MAX + 1);
	struct bid_subpath *subpath;

	if (len == 0 || len > NAME_MAX || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    has_controls(name))
		return -EINVAL;
	subpath = subpath_new(len + 1);
	if (!subpath)
		return -ENOMEM;
	memcpy(subpath->text, name, len + 1);
	*ret_subpath = subpath;
	return 0;
}

const struct bid_subpath *bid_subpath_ref(const struct bid_subpath *subpath)
{
	/* the subpath is immutable except for its count */
	if (subpath)
		atomic_fetch_add_explicit(&((struct bid_subpath *)subpath)->refs, 1, memory_order_relaxed);
	return subpath;
}

void bid_subpath_unref(const struct bid_subpath *subpath)
{
	if (subpath && atomic_fetch_sub_explicit(&((struct bid_subpath *)subpath)->refs, 1, memory_order_acq_rel) == 1)
		free((struct bid_subpath *)subpath);
}

const char *bid_subpath_text(const struct bid_subpath *subpath)
{
	return subpath ? subpath->text : "";
}

bool bid_subpath_equal(const struct bid_subpath *a, const struct bid_subpath *b)
{
	return a == b || strcmp(bid_subpath_text(a), bid_subpath_text(b)) == 0;
}
