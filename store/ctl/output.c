// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/output.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

bool ctl_is_terminal(FILE *file)
{
	return isatty(fileno(file));
}

const char *ctl_colour(FILE *file, enum ctl_colour colour)
{
	static const char *const sequences[] = {
		[CTL_PLAIN] = "\033[0m",  [CTL_BOLD] = "\033[1m", [CTL_DIM] = "\033[2m",
		[CTL_GREEN] = "\033[32m", [CTL_RED] = "\033[31m",
	};
	const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");

	if (!ctl_is_terminal(file) || (no && *no) || (terminal && strcmp(terminal, "dumb") == 0))
		return "";
	return sequences[colour];
}

void ctl_print_text(FILE *file, const char *text)
{
	for (; *text; text++)
		putc((unsigned char)*text < ' ' || *text == '\177' ? '?' : *text, file);
}

void ctl_print_label(const char *label)
{
	printf("%s%-11s%s", ctl_colour(stdout, CTL_BOLD), label, ctl_colour(stdout, CTL_PLAIN));
}

const char *ctl_format_size(uint64_t bytes, char buf[static CTL_SIZE_MAX])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	size_t unit = 0;

	/* what would be printed as 1024 is one of the next unit */
	while (value >= 1023.5) {
		value /= 1024;
		unit++;
	}
	snprintf(buf, CTL_SIZE_MAX, "%.*f %s", unit > 0 && value < 9.95 ? 1 : 0, value, units[unit]);
	return buf;
}

/* The length of the UTF-8 sequence at @text, as RFC 3629 has it; 0 if there is none. */
static size_t utf8_length(const unsigned char *text)
{
	size_t n;

	if (text[0] < 0x80)
		return 1;
	if (text[0] < 0xc2 || text[0] > 0xf4)
		return 0;
	n = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	for (size_t i = 1; i < n; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	/* overlong forms, surrogates, and what is beyond Unicode */
	if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) || (text[0] == 0xf0 && text[1] < 0x90) ||
	    (text[0] == 0xf4 && text[1] > 0x8f))
		return 0;
	return n;
}

json_t *ctl_json_text(const char *text)
{
	const unsigned char *in = (const unsigned char *)text;
	bid_auto_free char *clean = NULL;
	char *out;

	if (!text)
		return json_null();
	clean = malloc(3 * strlen(text) + 1);
	if (!clean)
		return NULL;
	for (out = clean; *in;) {
		size_t n = utf8_length(in);

		memcpy(out, n ? (const char *)in : "\357\277\275", n ? n : 3);
		out += n ? n : 3;
		in += n ? n : 1;
	}
	*out = '\0';
	return json_string(clean);
}

static int print_json(json_t *json, size_t flags)
{
	int r = json ? json_dumpf(json, stdout, flags) : -1;

	json_decref(json);
	putchar('\n');
	return r < 0 && !ferror(stdout) ? -ENOMEM : 0;
}

int ctl_print_json(json_t *json)
{
	return print_json(json, JSON_INDENT(2));
}

int ctl_print_json_line(json_t *json)
{
	return print_json(json, JSON_COMPACT);
}

int ctl_array_add(struct ctl_array *array, json_t *element)
{
	int r;

	fputs(array->n++ ? ",\n" : "[\n", stdout);
	r = element ? json_dumpf(element, stdout, JSON_COMPACT) : -1;
	json_decref(element);
	/* a write error is main()'s, which looks at the stream in the end */
	return r < 0 && !ferror(stdout) ? -ENOMEM : 0;
}

void ctl_array_end(const struct ctl_array *array)
{
	fputs(array->n ? "\n]\n" : "[]\n", stdout);
}
