// SPDX-License-Identifier: LGPL-2.1-or-later
/* A kernel's modules, from the symbol tables of a store. */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/store.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/limits.h"

enum {
	PAGE = 4096,
	CHUNK = 64 << 10, /* bytes of a table per read */
	MODULES_MAX = 1 << 16,
};

bool bid_store_is_module(struct bid_store *store, const struct bid_id *id)
{
	struct bid_file file = BID_FILE_NONE;
	unsigned char head[EI_NIDENT + 2]; /* e_ident and e_type, for both classes */
	bool is = false;
	int r = bid_store_find(store, &(struct bid_artifact){ .id = *id, .kind = BID_KIND_ELF }, BID_NEVER_DERIVE, &file);

	/* compressed, and not opened yet */
	if (r < 0)
		return r == -EAGAIN;
	if (bid_pread_full(file.fd, head, sizeof(head), 0) == sizeof(head)) {
		unsigned first = head[EI_NIDENT], second = head[EI_NIDENT + 1];

		is = (head[EI_DATA] == ELFDATA2MSB ? first << 8 | second : second << 8 | first) == ET_REL;
	}
	bid_file_release(&file);
	return is;
}

/* address range of a module's code, from its symbols */
struct module_range {
	char name[64]; /* MODULE_NAME_LEN; "" before the first */
	unsigned long long first, last;
	unsigned number; /* modules up to this one */
};

static void print_module(FILE *out, const struct module_range *module)
{
	/* module code begins on a page */
	unsigned long long begin = module->first & ~(PAGE - 1ULL), end = (module->last | (PAGE - 1)) + 1;

	if (module->name[0] && module->first <= module->last)
		fprintf(out, "%s %llu 0 - Live 0x%016llx\n", module->name, end - begin, begin);
}

/* Take a line of /proc/kallsyms, which may begin another module. */
static void take_line(FILE *out, const char *line, struct module_range *module)
{
	struct module_range next = { .first = ~0ULL, .number = module->number + 1 };
	const char *bracket = strchr(line, '[');
	size_t len = bracket ? strcspn(bracket + 1, "]") : 0;
	unsigned long long address;
	char *end, type;

	/* "ffffffffc0000000 t helper [module]"; sscanf(3) would take seconds for all lines */
	if (len == 0 || len >= sizeof(next.name) || bracket[1 + len] != ']')
		return;
	address = strtoull(line, &end, 16);
	if (end == line || end[0] != ' ' || end + 3 > bracket || end[2] != ' ')
		return;
	type = end[1];
	memcpy(next.name, bracket + 1, len);
	if (strcmp(next.name, module->name) != 0) {
		print_module(out, module);
		*module = next;
	}
	if (type != 't' && type != 'T')
		return;
	if (address < module->first)
		module->first = address;
	if (address > module->last)
		module->last = address;
}

/*
 * Take the complete lines among the @len bytes at @text. Returns their length, or -EBADMSG: a table has neither long lines nor
 * NULs. A hole consists of NULs.
 */
static ssize_t take_lines(FILE *out, char *text, size_t len, struct module_range *module)
{
	char *line = text, *newline;

	if (memchr(text, '\0', len))
		return -EBADMSG;
	while ((newline = memchr(line, '\n', len - (size_t)(line - text)))) {
		*newline = '\0';
		take_line(out, line, module);
		line = newline + 1;
	}
	return len - (size_t)(line - text) > BID_LIMIT_LINE || module->number > MODULES_MAX ? -EBADMSG : line - text;
}

static int read_modules(int fd, FILE *out)
{
	struct module_range module = { .first = ~0ULL };
	bid_auto_free char *chunk = malloc(CHUNK + 1);
	size_t kept = 0;
	off_t at = 0;
	ssize_t n;

	if (!chunk)
		return -ENOMEM;
	while ((n = bid_pread_full(fd, chunk + kept, CHUNK - kept, at)) > 0) {
		size_t len = kept + (size_t)n;
		ssize_t taken;

		at += n;
		taken = at > BID_LIMIT_KALLSYMS ? -EBADMSG : take_lines(out, chunk, len, &module);
		if (taken < 0)
			return (int)taken;
		kept = len - (size_t)taken;
		memmove(chunk, chunk + taken, kept);
	}
	chunk[kept] = '\0';
	take_line(out, chunk, &module);
	print_module(out, &module);
	return (int)n;
}

static int make_text(int fd, char **ret_text)
{
	bid_auto_free char *text = NULL;
	FILE *out;
	size_t len;
	int r;

	out = open_memstream(&text, &len);
	if (!out)
		return -ENOMEM;
	r = read_modules(fd, out);
	/* fclose(3) completes the text and hands it over */
	if (fclose(out) != 0 && r == 0)
		r = -ENOMEM;
	if (r == 0)
		*ret_text = bid_steal(text);
	return r;
}

int bid_store_modules(struct bid_store *store, const struct bid_id *id, char **ret_text, struct stat *ret_table)
{
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	int r = bid_store_find(store, &(struct bid_artifact){ .id = *id, .kind = BID_KIND_KALLSYMS }, BID_MAY_DERIVE, &file);

	if (r < 0)
		return r;
	r = make_text(file.fd, ret_text);
	if (r < 0)
		return r == -EBADMSG ? -ENOENT : r;
	*ret_table = file.st;
	return 0;
}
