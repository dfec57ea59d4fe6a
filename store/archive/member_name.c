// SPDX-License-Identifier: LGPL-2.1-or-later
#include "archive/member_name.h"

#include <stdio.h>
#include <string.h>

#include "api/store.h"
#include "base/kallsyms.h"
#include "base/path.h"

#define LINKS ".build-id/"

/* Skip a leading "./" of tar(1). */
static const char *without_dot(const char *name)
{
	while (name[0] == '.' && name[1] == '/')
		name += 2;
	return name;
}

/* Set the path of a member: "usr/bin/ls" becomes absolute, "[vdso]" is a name of perf's, "[debuginfod]" means no path. */
static void set_path(struct bid_member_name *name, const char *dir, size_t len)
{
	if (strncmp(dir, BID_STORE_UNNAMED, len) == 0 && strlen(BID_STORE_UNNAMED) == len)
		name->path[0] = '\0';
	else
		snprintf(name->path, sizeof(name->path), "%s%.*s", dir[0] == '[' ? "" : "/", (int)len, dir);
}

/* Parse the last component of the @len bytes of @path as an id. Sets @ret_dir_len to the length before its slash. */
static bool ends_in_id(const char *path, size_t len, struct bid_id *ret_id, size_t *ret_dir_len)
{
	size_t at = len;

	while (at > 0 && path[at - 1] != '/')
		at--;
	if (at < 2 || bid_id_parse(path + at, len - at, ret_id) < 0)
		return false;
	*ret_dir_len = at - 1;
	return true;
}

bool bid_member_parse(const char *name, struct bid_member_name *ret_name)
{
	struct bid_member_name parsed = { 0 };
	const char *slash;
	size_t dir_len;

	name = without_dot(name);
	slash = strrchr(name, '/');
	if (!slash || strlen(name) >= sizeof(parsed.path) - 1 || !bid_path_is_plain(name) || name[0] == '.')
		return false;
	parsed.kind = bid_kind_parse_store_name(slash + 1);
	if (parsed.kind == BID_KIND_NONE || !ends_in_id(name, (size_t)(slash - name), &parsed.id, &dir_len))
		return false;
	/* "[...]" is all of a name */
	if (name[0] == '[' && memchr(name, '/', dir_len))
		return false;
	set_path(&parsed, name, dir_len);
	*ret_name = parsed;
	return true;
}

bool bid_member_is_link(const char *name)
{
	char hex[2 * BID_ID_HEX_MAX];
	struct bid_id id;

	name = without_dot(name);
	if (strncmp(name, LINKS, strlen(LINKS)) != 0)
		return false;
	name += strlen(LINKS);
	if (strlen(name) < 4 || name[2] != '/' || snprintf(hex, sizeof(hex), "%.2s%s", name, name + 3) >= (int)sizeof(hex))
		return false;
	return bid_id_parse_str(hex, &id) == 0;
}

bool bid_member_is_symbols(const char *name)
{
	static const char symbols[] = "perf.symbols.tar";

	name = without_dot(name);
	return strncmp(name, symbols, strlen(symbols)) == 0 && !strchr(name, '/');
}

/* "%sdt_…", "#definition", "p:group/event …", "r…" (perf, util/probe-file.c: probe_cache__load()) */
static bool is_probe(const char *line, size_t len)
{
	return len > 1 && strchr("#%+pr", line[0]);
}

bool bid_member_has_form(enum bid_kind kind, const char *data, size_t len)
{
	const char *end = data + len;

	while (data < end) {
		const char *newline = memchr(data, '\n', (size_t)(end - data));
		size_t line = (size_t)((newline ? newline : end) - data);

		if (!(kind == BID_KIND_KALLSYMS ? bid_kallsyms_is_line(data, line) : is_probe(data, line)))
			return false;
		for (size_t i = 0; i < line; i++)
			if ((unsigned char)data[i] < ' ' && data[i] != '\t')
				return false;
		data += line + 1;
	}
	return len > 0;
}
