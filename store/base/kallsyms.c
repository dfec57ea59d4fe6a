// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/kallsyms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"

enum {
	FIRST = 4096, /* bytes, enough for nearly all tables */
	BEGINNING = 1 << 16, /* bytes, where a table with addresses has one */
};

bool bid_kallsyms_is_line(const char *line, size_t len)
{
	size_t digits = 0;

	while (digits < len && ((line[digits] >= '0' && line[digits] <= '9') || (line[digits] >= 'a' && line[digits] <= 'f')))
		digits++;
	return digits > 0 && digits <= 16 && len > digits + 3 && line[digits] == ' ' && line[digits + 2] == ' ';
}

/* str*() would read to the end of the long text for every line. */
int bid_kallsyms_check(const char *text, size_t len)
{
	const char *end = text + (len < BEGINNING ? len : BEGINNING);

	if (len == 0)
		return -EBADMSG;
	for (const char *line = text, *newline; line < end; line = newline + 1) {
		size_t zeros = 0;

		newline = memchr(line, '\n', (size_t)(end - line));
		/* ignore a line that is cut here */
		if (!newline && line > text && (size_t)(end - text) < len)
			break;
		newline = newline ? newline : end;
		if (!bid_kallsyms_is_line(line, (size_t)(newline - line)))
			return -EBADMSG;
		while (line[zeros] == '0')
			zeros++;
		if (line[zeros] != ' ')
			return 0;
	}
	return -EPERM;
}

int bid_kallsyms_check_file(int fd)
{
	bid_auto_free char *rest = NULL;
	char first[FIRST];
	ssize_t n = bid_pread_full(fd, first, sizeof(first), 0);
	int r;

	if (n < 0)
		return (int)n;
	r = bid_kallsyms_check(first, (size_t)n);
	if (r == 0 || n < FIRST)
		return r;
	rest = malloc(BEGINNING + 1);
	if (!rest)
		return -ENOMEM;
	n = bid_pread_full(fd, rest, BEGINNING + 1, 0);
	return n < 0 ? (int)n : bid_kallsyms_check(rest, (size_t)n);
}

uint64_t bid_kallsyms_begin(const char *text, size_t len)
{
	static const char *const names[] = { " _text\n", " _stext\n" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *name = memmem(text, len, names[i], strlen(names[i]));
		const char *before = name ? memrchr(text, '\n', (size_t)(name - text)) : NULL;

		if (name)
			return strtoull(before ? before + 1 : text, NULL, 16);
	}
	return 0;
}

const char *bid_kallsyms_why(int error)
{
	return error == -EPERM ? "its addresses are hidden (see kernel.kptr_restrict)" : "not a kernel's symbol table";
}
