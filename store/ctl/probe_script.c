// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/probe_script.h"

#include <string.h>

#include "ctl/tracefs.h"

/* @text as one word of the shell */
static void print_word(FILE *out, const char *text)
{
	putc('\'', out);
	for (; *text; text++)
		fputs(*text == '\'' ? "'\\''" : (char[]){ *text, '\0' }, out);
	putc('\'', out);
}

/*
 * In it, id_of finds the note of type 3 and owner "GNU" (ELF gABI, "Note Section") in a file's first MiB, at a multiple of 4 bytes,
 * in either byte order: lengths and types are less than 256, so the sum of their bytes is their value. $id and $guru stand in
 * front.
 */
static const char preamble[] =
	"set -u\n"
	"tracing=/sys/kernel/tracing\n"
	"[ -e $tracing/trace ] || tracing=/sys/kernel/debug/tracing\n"
	"[ -e $tracing/trace ] || { echo \"error: no tracefs: mount it with 'mount -t tracefs tracefs /sys/kernel/tracing'\" >&2; "
	"exit "
	"3; }\n"
	"\n"
	"# the build-id in FILE\n"
	"id_of() {\n"
	"\tod -An -v -tu1 -N 1048576 \"$1\" 2>/dev/null | tr -s ' ' '\\n' | awk '\n"
	"\tfunction back(i) { return last[(n - i) % 16] }\n"
	"\tfunction word(i) { return back(i) + back(i - 1) + back(i - 2) + back(i - 3) }\n"
	"\t!NF { next }\n"
	"\twant { printf \"%02x\", $1; if (--want == 0) exit; next }\n"
	"\t{ last[n++ % 16] = $1 }\n"
	"\tn >= 16 && n % 4 == 0 && back(4) == 71 && back(3) == 78 && back(2) == 85 && back(1) == 0 && word(16) == 4 &&\n"
	"\t\tword(8) == 3 && word(12) > 0 && word(12) <= 64 { want = word(12) }'\n"
	"}\n"
	"\n"
	"# is FILE the build that the definitions were resolved against?\n"
	"check() {\n"
	"\tfound=$(id_of \"$1\")\n"
	"\tcase $found in\n"
	"\t\"$id\"*) return ;;\n"
	"\t'') what=\"no build-id to be found in '$1'\" need=2 ;;\n"
	"\t*) what=\"'$1' is build $found\" need=1 ;;\n"
	"\tesac\n"
	"\tif [ $guru -lt $need ]; then\n"
	"\t\techo \"refused: $what, and the probes are of build $id\" >&2\n"
	"\t\texit 1\n"
	"\tfi\n"
	"\techo \"WARNING: $what, and the probes are of build $id: they are set all the same, perhaps into the middle of an "
	"instruction\" >&2\n"
	"}\n"
	"\n"
	"# write DEFINITION of EVENT to LIST\n"
	"put() {\n"
	"\tprintf '%s\\n' \"$3\" >>\"$tracing/$1\" || { echo \"error: not set: $2\" >&2; exit 3; }\n"
	"\techo \"$2\"\n"
	"}\n"
	"\n";

void ctl_probe_script(FILE *out, const struct bid_id *id, const struct ctl_event *events, size_t n, unsigned guru)
{
	const char *checked = NULL;
	char hex[BID_ID_HEX_MAX];

	fprintf(out, "#!/bin/sh\n"
		     "# Sets probes that were resolved against one build, if that is the build which is here.\n"
		     "# Needs a POSIX shell with od, tr and awk, and the right to write to tracefs.\n");
	fprintf(out, "id=%s guru=%u\n", bid_id_format(id, hex), guru);
	fputs(preamble, out);
	for (size_t i = 0; i < n; i++) {
		const char *file = events[i].path ? events[i].path : "/sys/kernel/notes";

		if (checked && strcmp(checked, file) == 0)
			continue;
		fputs("check ", out);
		print_word(out, file);
		putc('\n', out);
		checked = file;
	}
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "put %s ", ctl_tracefs_list(!events[i].path));
		print_word(out, events[i].name);
		putc(' ', out);
		print_word(out, events[i].line);
		putc('\n', out);
	}
}
