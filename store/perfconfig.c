// SPDX-License-Identifier: LGPL-2.1-or-later
#include "perfconfig.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

#define NAME_MAX_LEN 256 /* as perf's */

struct scanner {
	const char *at, *end;
	unsigned line;
};

/* as in the C locale, in any locale of the caller */
static bool is_space(int c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int lower(int c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static bool is_letter(int c)
{
	return lower(c) >= 'a' && lower(c) <= 'z';
}

static bool is_key_char(int c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* The end of the file ends a line too. */
static int next(struct scanner *scanner)
{
	int c;

	if (scanner->at == scanner->end)
		return '\n';
	if (scanner->end - scanner->at >= 2 && scanner->at[0] == '\r' && scanner->at[1] == '\n')
		scanner->at++;
	c = (unsigned char)*scanner->at++;
	if (c == '\n')
		scanner->line++;
	return c;
}

static void skip_line(struct scanner *scanner)
{
	while (next(scanner) != '\n')
		;
}

static int append(char *buffer, size_t size, size_t *len, int c, int error)
{
	if (*len + 1 >= size)
		return error;
	buffer[(*len)++] = (char)c;
	buffer[*len] = '\0';
	return 0;
}

/* Read the rest of ["sub section"]: from behind the blank to the closing bracket. */
static int scan_subsection(struct scanner *scanner, char *name, size_t *len)
{
	int c, r;

	do {
		c = next(scanner);
	} while (c != '\n' && is_space(c));
	if (c != '"')
		return -EINVAL;

	r = append(name, NAME_MAX_LEN, len, '.', -EINVAL);
	for (c = next(scanner); r == 0 && c != '"'; c = next(scanner)) {
		if (c == '\\')
			c = next(scanner);
		if (c == '\n')
			return -EINVAL;
		r = append(name, NAME_MAX_LEN, len, c, -EINVAL);
	}
	if (r < 0)
		return r;
	return next(scanner) == ']' ? 0 : -EINVAL;
}

/* Read a section from behind the opening bracket. */
static int scan_section(struct scanner *scanner, char *name, size_t *len)
{
	*len = 0;
	for (;;) {
		int c = next(scanner), r;

		if (c == ']')
			return 0;
		if (c != '\n' && is_space(c))
			return scan_subsection(scanner, name, len);
		if (!is_key_char(c) && c != '.')
			return -EINVAL;
		r = append(name, NAME_MAX_LEN, len, lower(c), -EINVAL);
		if (r < 0)
			return r;
	}
}

static int unescape(int c)
{
	switch (c) {
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'n':
		return '\n';
	case '\\':
	case '"':
		return c;
	default:
		return -EINVAL;
	}
}

/* Read a value from behind the equals sign: unquoted blanks count as one blank between words, and as none around them. */
static int scan_value(struct scanner *scanner, char *value, size_t size)
{
	bool quoted = false, blank = false;
	size_t len = 0;

	value[0] = '\0';
	for (;;) {
		int c = next(scanner), r = 0;

		if (c == '\n')
			return quoted ? -EINVAL : 0;
		if (!quoted && is_space(c)) {
			blank = true;
			continue;
		}
		if (!quoted && (c == ';' || c == '#')) {
			skip_line(scanner);
			return 0;
		}
		if (blank && len > 0)
			r = append(value, size, &len, ' ', -ENAMETOOLONG);
		blank = false;
		if (r < 0)
			return r;
		if (c == '"') {
			quoted = !quoted;
			continue;
		}
		if (c == '\\') {
			c = next(scanner);
			if (c == '\n')
				continue;
			c = unescape(c);
			if (c < 0)
				return c;
		}
		r = append(value, size, &len, c, -ENAMETOOLONG);
		if (r < 0)
			return r;
	}
}

/* Read a line "name = value" with the first character @c; @name begins with @len characters of the section's name. */
static int scan_variable(struct scanner *scanner, int c, char *name, size_t len, char *value, size_t size)
{
	int r = append(name, NAME_MAX_LEN, &len, '.', -EINVAL);

	for (; r == 0 && is_key_char(c); c = next(scanner))
		r = append(name, NAME_MAX_LEN, &len, lower(c), -EINVAL);
	if (r < 0)
		return r;
	while (c == ' ' || c == '\t')
		c = next(scanner);
	/* in git a name alone means "true"; neither perf nor bidfs needs it */
	return c == '=' ? scan_value(scanner, value, size) : -EINVAL;
}

static int scan_file(struct scanner *scanner, const char *key, char *value, char *found, size_t size)
{
	char name[NAME_MAX_LEN] = "";
	bool is_set = false;
	size_t len = 0;

	while (scanner->at < scanner->end) {
		int c = next(scanner), r = 0;

		if (is_space(c))
			continue;
		if (c == '#' || c == ';') {
			skip_line(scanner);
		} else if (c == '[') {
			r = scan_section(scanner, name, &len);
		} else if (is_letter(c)) {
			r = scan_variable(scanner, c, name, len, value, size);
			if (r == 0 && strcmp(name, key) == 0) {
				memcpy(found, value, strlen(value) + 1);
				is_set = true;
			}
			name[len] = '\0';
		} else {
			r = -EINVAL;
		}
		if (r < 0)
			return r;
	}
	return is_set;
}

int bid_perfconfig_get(const char *text, size_t len, const char *key, char *ret_value, size_t size, unsigned *ret_line)
{
	struct scanner scanner = { .at = text, .end = text + len, .line = 1 };
	bid_auto_free char *value = malloc(size + 1), *found = malloc(size + 1);
	unsigned line;
	int r;

	if (!value || !found)
		return -ENOMEM;
	if (len >= 3 && memcmp(text, "\357\273\277", 3) == 0)
		scanner.at += 3; /* the byte order mark that some editors write before UTF-8 */

	r = scan_file(&scanner, key, value, found, size);
	if (r == -EINVAL) {
		/* after a fully read line the scanner is at the next line */
		line = scanner.line;
		if (scanner.at > text && scanner.at[-1] == '\n')
			line--;
		*ret_line = line;
	}
	if (r == 1)
		memcpy(ret_value, found, strlen(found) + 1);
	return r;
}
