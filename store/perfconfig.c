// SPDX-License-Identifier: LGPL-2.1-or-later
#include "perfconfig.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define KEY_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
#define BLANKS	  " \t\v\f\r"

static bool is_name(const char *text, size_t len, const char *name)
{
	return len == strlen(name) && strncasecmp(text, name, len) == 0;
}

/* Read [section] or [section "subsection"]. Moves *@at behind it, or to an error. */
static bool scan_section(char **at, bool *ret_buildid)
{
	char *name = *at + 1, *end = name + strspn(name, KEY_CHARS ".");

	*ret_buildid = *end == ']' && is_name(name, (size_t)(end - name), "buildid");
	if (*end && strchr(BLANKS, *end)) {
		end += strspn(end, BLANKS);
		if (*end == '"')
			for (end++; *end && *end != '"' && *end != '\n'; end++)
				end += end[0] == '\\' && (end[1] == '\\' || end[1] == '"');
		end += *end == '"';
		*at = end;
		if (end[-1] != '"')
			return false;
	}
	*at = end + (*end == ']');
	return *end == ']';
}

static char unescape(char c)
{
	static const char escaped[] = "tbn\\\"", plain[] = "\t\b\n\\\"";
	const char *at = c ? strchr(escaped, c) : NULL;

	return at ? plain[at - escaped] : '\0';
}

/*
 * Read a value from behind the equals sign: unquoted blanks count as one blank between words, and as none around them. Moves *@at
 * to the end of the line, or to an error. Returns the value, which lies in the text from the equals sign on, or NULL.
 */
static char *scan_value(char **at)
{
	char *from = *at, *value = from - 1, *to = value;
	bool quoted = false, blank = false;

	for (; *from && *from != '\n'; from++) {
		char c = *from;

		if (!quoted && (c == ';' || c == '#')) {
			from += strcspn(from, "\n");
			break;
		}
		if (!quoted && strchr(BLANKS, c)) {
			blank = to > value;
			continue;
		}
		if (blank)
			*to++ = ' ';
		blank = false;
		if (c == '"') {
			quoted = !quoted;
			continue;
		}
		if (c == '\\' && *++from == '\n')
			continue;
		if (c == '\\' && !(c = unescape(*from)))
			break;
		*to++ = c;
	}
	*at = from;
	if (quoted || (*from && *from != '\n'))
		return NULL;
	*to = '\0';
	return value;
}

/* Read "name = value". In git a name alone means "true"; neither perf nor bidfs needs it. */
static bool scan_variable(char **at, bool buildid, const char **ret_dir)
{
	size_t len = strspn(*at, KEY_CHARS);
	bool dir = buildid && is_name(*at, len, "dir");
	const char *value;

	*at += len;
	*at += strspn(*at, BLANKS);
	if (len == 0 || **at != '=')
		return false;
	++*at;
	value = scan_value(at);
	if (value && dir)
		*ret_dir = value;
	return value;
}

int bid_perfconfig_dir(char *text, const char **ret_dir, unsigned *ret_line)
{
	static const char utf8_mark[] = "\357\273\277"; /* which some editors write */
	char *at = text + (strncmp(text, utf8_mark, strlen(utf8_mark)) == 0 ? strlen(utf8_mark) : 0);
	bool good = true, buildid = false;
	const char *dir = NULL;
	unsigned line = 1;

	while (good && *(at += strspn(at, BLANKS "\n"))) {
		if (*at == '#' || *at == ';')
			at += strcspn(at, "\n");
		else if (*at == '[')
			good = scan_section(&at, &buildid);
		else
			good = scan_variable(&at, buildid, &dir);
	}
	if (!good) {
		for (const char *before = text; before < at; before++)
			line += *before == '\n';
		*ret_line = line;
		return -EINVAL;
	}
	if (dir)
		*ret_dir = dir;
	return dir != NULL;
}
