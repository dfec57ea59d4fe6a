// SPDX-License-Identifier: LGPL-2.1-or-later
/* The form of artifacts without an id of their own. */
#include <string.h>

#include "archive/member.h"
#include "base/kallsyms.h"

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
