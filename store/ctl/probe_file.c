// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/probe_file.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

void ctl_probe_file_release(struct ctl_probe_file *file)
{
	free(file->text);
	free(file->lines);
	free(file->probes);
	*file = (struct ctl_probe_file){ 0 };
}

static bool is_text(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' && text[i] != '\n' && text[i] != '\t')
			return false;
	return true;
}

static bool is_head(const char *line)
{
	return line[0] == '#' || line[0] == '%';
}

/* Cut @text into lines, and count them. */
static int cut_lines(struct ctl_probe_file *file, size_t len, size_t *ret_lines)
{
	char *end = file->text + len;
	size_t n = 0;

	for (const char *at = file->text; at < end; at++)
		n += *at == '\n';
	file->lines = calloc(n + 1, sizeof(*file->lines));
	if (!file->lines)
		return -ENOMEM;
	n = 0;
	for (char *at = file->text; at < end;) {
		char *newline = memchr(at, '\n', (size_t)(end - at)), *next = newline ? newline + 1 : end;

		if ((newline ? newline : end) - at >= CTL_PROBE_LINE_MAX)
			return -EBADMSG;
		if (newline)
			*newline = '\0';
		file->lines[n++] = at;
		at = next;
	}
	*ret_lines = n;
	return 0;
}

int ctl_probe_file_parse(char *text, size_t len, struct ctl_probe_file *ret_file)
{
	struct ctl_probe *probe;
	size_t lines = 0;
	int r;

	*ret_file = (struct ctl_probe_file){ .text = text };
	if (!is_text(text, len))
		return -EBADMSG;
	r = cut_lines(ret_file, len, &lines);
	if (r < 0)
		return r;
	ret_file->probes = calloc(lines + 1, sizeof(*ret_file->probes));
	if (!ret_file->probes)
		return -ENOMEM;
	for (size_t i = 0; i < lines; i++) {
		char *line = ret_file->lines[i], *equals;

		if (is_head(line)) {
			equals = strchr(line, '=');
			probe = &ret_file->probes[ret_file->n++];
			*probe = (struct ctl_probe){
				.sdt = line[0] == '%',
				.text = line + 1,
				.command = equals ? equals + 1 : "",
				.definitions = ret_file->lines + i + 1,
			};
		} else if (ret_file->n == 0) {
			return -EBADMSG;
		} else {
			ret_file->probes[ret_file->n - 1].n++;
		}
	}
	return 0;
}

size_t ctl_probe_name_len(const struct ctl_probe *probe)
{
	const char *equals = strchr(probe->text, '=');

	return equals ? (size_t)(equals - probe->text) : 0;
}

bool ctl_probe_matches(const struct ctl_probe *probe, const char *pattern)
{
	char name[CTL_PROBE_LINE_MAX], *colon;

	snprintf(name, sizeof(name), "%.*s", (int)ctl_probe_name_len(probe), probe->text);
	colon = strchr(name, ':');
	return fnmatch(pattern, name, 0) == 0 || (colon && fnmatch(pattern, colon + 1, 0) == 0);
}

void ctl_probe_print(FILE *out, const struct ctl_probe *probe)
{
	fprintf(out, "%c%s\n", probe->sdt ? '%' : '#', probe->text);
	for (size_t i = 0; i < probe->n; i++)
		fprintf(out, "%s\n", probe->definitions[i]);
}

/* Return the length of the kernel's name (a C identifier) at the beginning of @text. */
static int name_len(const char *text)
{
	int len = 0;

	while (isalnum((unsigned char)text[len]) || text[len] == '_')
		len++;
	return isdigit((unsigned char)text[0]) ? 0 : len;
}

/* Return the length of the module's name, before a colon, in @place; -EINVAL for a name with other characters than a module's. */
static int module_len(const char *place, int len)
{
	const char *colon = memchr(place, ':', (size_t)len);

	for (const char *at = place; colon && at < colon; at++)
		if (!isalnum((unsigned char)*at) && *at != '_' && *at != '-')
			return -EINVAL;
	return colon == place ? -EINVAL : colon ? (int)(colon - place) : 0;
}

/* Return the length of a hexadecimal number with "0x", of at most 64 bits, at the beginning of @text. */
static size_t hex_len(const char *text)
{
	size_t digits = strncmp(text, "0x", 2) == 0 ? strspn(text + 2, "0123456789abcdefABCDEF") : 0;

	return digits > 0 && digits <= 16 ? 2 + digits : 0;
}

/* Return the length of a decimal number at the beginning of @text; the kernel reads further digits after a 0 as octal. */
static size_t decimal_len(const char *text)
{
	size_t digits = text[0] == '0' ? 1 : strspn(text, "0123456789");

	return digits < 20 ? digits : 0;
}

/* Return the length of 0xOFFSET or 0xOFFSET(0xSEMAPHORE) at the beginning of @text. */
static size_t offset_len(const char *text)
{
	size_t len = hex_len(text), semaphore = len > 0 && text[len] == '(' ? hex_len(text + len + 1) : 0;

	return semaphore > 0 && text[len + 1 + semaphore] == ')' ? len + semaphore + 2 : len;
}

/* Return the length of SYMBOL or SYMBOL+OFFSET at the beginning of @text. Compilers put dots and dollars into names. */
static size_t symbol_len(const char *text)
{
	size_t len = 0, offset;

	while (isalnum((unsigned char)text[len]) || (text[len] && strchr("_.$", text[len])))
		len++;
	if (len == 0 || isdigit((unsigned char)text[0]))
		return 0;
	if (text[len] != '+')
		return len;
	offset = hex_len(text + len + 1);
	if (offset == 0)
		offset = decimal_len(text + len + 1);
	return offset > 0 ? len + 1 + offset : 0;
}

/* Parse the place, as strictly as perf does: one place that perf cannot read hides all probes of the build. */
static int parse_place(struct ctl_definition *definition)
{
	const char *where = definition->place, *colon;
	size_t len;

	if (where[0] == '/') {
		colon = memrchr(where, ':', (size_t)definition->place_len);
		if (!colon)
			return -EINVAL;
		definition->path_len = (int)(colon - where);
		where = colon + 1;
		len = offset_len(where);
	} else {
		definition->module_len = module_len(where, definition->place_len);
		if (definition->module_len < 0)
			return -EINVAL;
		if (definition->module_len > 0)
			where += definition->module_len + 1;
		len = definition->module_len == 0 && where[0] == '0' ? offset_len(where) : symbol_len(where);
	}
	return len > 0 && where + len == definition->rest ? 0 : -EINVAL;
}

int ctl_definition_parse(const char *text, struct ctl_definition *ret_definition)
{
	struct ctl_definition definition = { .type = text, .type_len = 1 };

	if (strlen(text) >= CTL_PROBE_LINE_MAX || !is_text(text, strlen(text)) || strchr(text, '\n') ||
	    (text[0] != 'p' && text[0] != 'r'))
		return -EINVAL;
	while (text[0] == 'r' && isdigit((unsigned char)text[definition.type_len]))
		definition.type_len++;
	if (text[definition.type_len] != ':')
		return -EINVAL;
	definition.group = text + definition.type_len + 1;
	definition.group_len = name_len(definition.group);
	if (definition.group_len == 0 || definition.group[definition.group_len] != '/')
		return -EINVAL;
	definition.event = definition.group + definition.group_len + 1;
	definition.event_len = name_len(definition.event);
	if (definition.event_len == 0 || definition.event[definition.event_len] != ' ')
		return -EINVAL;
	definition.place = definition.event + definition.event_len + 1;
	definition.place_len = (int)strcspn(definition.place, " \t");
	definition.rest = definition.place + definition.place_len;
	if (parse_place(&definition) < 0)
		return -EINVAL;
	*ret_definition = definition;
	return 0;
}
