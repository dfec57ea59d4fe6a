// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/layout.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/path.h"

/* Is "PRIVATE/NAME" one of the @n paths @paths? */
static bool is_among(const char *name, const char *const *paths, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(paths[i] + sizeof(BID_LAYOUT_PRIVATE), name) == 0)
			return true;
	return false;
}

bool bid_layout_is_private_dir(const char *name)
{
	static const char *const dirs[] = { BID_LAYOUT_TEMP,	   BID_LAYOUT_RECORDS,	    BID_LAYOUT_SCANS,	BID_LAYOUT_UNPACKED,
					    BID_LAYOUT_TABLES,	   BID_LAYOUT_UNSTRIPPED,   BID_LAYOUT_SOURCES, BID_LAYOUT_SECTIONS,
					    BID_LAYOUT_QUARANTINE, BID_LAYOUT_CONTENT_KEYS, BID_LAYOUT_NAMES,	BID_LAYOUT_FIRST,
					    BID_LAYOUT_ABSENT };

	return is_among(name, dirs, sizeof(dirs) / sizeof(dirs[0]));
}

bool bid_layout_is_private_file(const char *name)
{
	static const char *const files[] = { BID_LAYOUT_LOCK, BID_LAYOUT_FETCHING, BID_LAYOUT_EVICTED };

	return is_among(name, files, sizeof(files) / sizeof(files[0]));
}

struct bid_id bid_layout_disk_id(const struct bid_id *id)
{
	struct bid_id disk_id = *id;

	if (disk_id.len > BID_ID_PERF_MAX) {
		memset(disk_id.bytes + BID_ID_PERF_MAX, 0, sizeof(disk_id.bytes) - BID_ID_PERF_MAX);
		disk_id.len = BID_ID_PERF_MAX;
	}
	return disk_id;
}

const char *bid_layout_fanout_path(const char *dir, const struct bid_id *id, const char *suffix, char buf[static BID_LAYOUT_MAX])
{
	char hex[BID_ID_HEX_MAX];

	bid_id_format(id, hex);
	snprintf(buf, BID_LAYOUT_MAX, "%s/%.2s/%s%s%s", dir, hex, hex + 2, *suffix ? "." : "", suffix);
	return buf;
}

const char *bid_layout_suffix(const struct bid_artifact *artifact, char buf[static BID_LAYOUT_SUFFIX_MAX])
{
	const char *subpath = bid_subpath_text(artifact->subpath);

	if (!artifact->subpath)
		snprintf(buf, BID_LAYOUT_SUFFIX_MAX, "%s", bid_kind_name(artifact->kind));
	else
		snprintf(buf, BID_LAYOUT_SUFFIX_MAX, "%s-%016llx", bid_kind_name(artifact->kind),
			 (unsigned long long)XXH3_64bits(subpath, strlen(subpath)));
	return buf;
}

const char *bid_layout_link(const struct bid_id *id, char buf[static BID_LAYOUT_MAX])
{
	return bid_layout_fanout_path(BID_LAYOUT_LINKS, id, "", buf);
}

const char *bid_layout_under(const char *dir, const struct bid_id *id, char buf[static BID_LAYOUT_MAX])
{
	char hex[BID_ID_HEX_MAX];

	snprintf(buf, BID_LAYOUT_MAX, "%s/%s", dir, bid_id_format(id, hex));
	return buf;
}

const char *bid_layout_file(const char *objdir, enum bid_kind kind, char buf[static BID_LAYOUT_FILE_MAX])
{
	snprintf(buf, BID_LAYOUT_FILE_MAX, "%s/%s", objdir, bid_kind_store_name(kind));
	return buf;
}

bool bid_layout_is_named_after(const char *objdir, const struct bid_id *disk_id)
{
	const char *slash = strrchr(objdir, '/');
	char hex[BID_ID_HEX_MAX];

	return strcmp(slash ? slash + 1 : objdir, bid_id_format(disk_id, hex)) == 0;
}

bool bid_layout_is_mismatched(const char *objdir, const struct bid_id *id)
{
	struct bid_alias_iter alias = { 0 };
	struct bid_id disk_id;

	while (bid_alias_next(&alias, id, &disk_id))
		if (bid_layout_is_named_after(objdir, &disk_id))
			return false;
	return true;
}

/* @id with another length: cut, or padded with zero bytes. */
static bool resize_id(const struct bid_id *id, unsigned len, struct bid_id *ret_id)
{
	if (len == id->len || len == 0)
		return false;
	*ret_id = *id;
	ret_id->len = (uint8_t)len;
	if (len < id->len)
		memset(ret_id->bytes + len, 0, id->len - len);
	return true;
}

bool bid_alias_next(struct bid_alias_iter *alias, const struct bid_id *id, struct bid_id *ret_id)
{
	unsigned rounded = (id->len + 3U) & ~3U;

	for (;;) {
		unsigned step = alias->step++;

		if (step == 0) {
			*ret_id = *id;
			return true;
		}
		if (id->len > BID_ID_PERF_MAX)
			return step == 1 && resize_id(id, BID_ID_PERF_MAX, ret_id);
		if (step == 1) {
			if (resize_id(id, rounded, ret_id))
				return true;
		} else if (step == 2) {
			if (rounded != BID_ID_PERF_MAX && resize_id(id, BID_ID_PERF_MAX, ret_id))
				return true;
		} else {
			/* each step drops one more trailing zero byte */
			unsigned dropped = step - 2;

			if (dropped >= id->len || id->bytes[id->len - dropped] != 0)
				return false;
			return resize_id(id, id->len - dropped, ret_id);
		}
	}
}

const char *bid_layout_target(const char *text)
{
	const char *target = text + strlen(BID_LAYOUT_UP);

	return strncmp(text, BID_LAYOUT_UP, strlen(BID_LAYOUT_UP)) == 0 && bid_path_is_plain(target) ? target : NULL;
}

enum bid_kind bid_layout_file_kind(const char *path)
{
	static const char kernel[] = "[kernel.kallsyms]/";

	return strncmp(path, kernel, sizeof(kernel) - 1) == 0 ? BID_KIND_KALLSYMS : BID_KIND_ELF;
}

bool bid_layout_is_beside(const char *path)
{
	static const char *const names[] = { BID_LAYOUT_LINKS, BID_LAYOUT_PRIVATE };
	size_t len = strcspn(path, "/");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (len == strlen(names[i]) && strncmp(path, names[i], len) == 0)
			return true;
	return false;
}

bool bid_layout_is_original(const char *path)
{
	return path[0] == '/' && bid_path_is_plain(path + 1) && !bid_layout_is_beside(path + 1);
}

bool bid_is_unnamed(const char *objdir)
{
	return strncmp(objdir, BID_STORE_UNNAMED "/", strlen(BID_STORE_UNNAMED "/")) == 0;
}
