// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/probe_script.h"

#include <string.h>

#include "ctl/tracefs.h"

/* Print @text as one word of the shell. */
static void print_word(FILE *out, const char *text)
{
	putc('\'', out);
	for (; *text; text++)
		fputs(*text == '\'' ? "'\\''" : (char[]){ *text, '\0' }, out);
	putc('\'', out);
}

/*
 * Preamble of the script. $id and $guru stand in front.
 *
 * id_of finds the note of type 3 and owner "GNU" (ELF gABI, "Note Section") in a file's first MiB. The note lies at a multiple of 4
 * bytes, in either byte order. Lengths and types are less than 256, so the sum of their bytes is their value.
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
	"# may a file that carries FOUND have the probes of $id? perf keeps 20 bytes of a longer id, and adds zeros to a shorter "
	"one\n"
	"answers() {\n"
	"\t[ \"$1\" != \"$id\" ] || return 0\n"
	"\t[ ${#1} -gt 0 ] && [ ${#id} -le 40 ] || return 1\n"
	"\tcase $1 in \"$id\"*) [ ${#id} -eq 40 ]; return ;; esac\n"
	"\tcase $id in \"$1\"*) ;; *) return 1 ;; esac\n"
	"\tcase ${id#\"$1\"} in *[!0]*) return 1 ;; esac\n"
	"}\n"
	"\n"
	"# is FILE the build that the definitions were resolved against? Of a module a kernel's id says nothing\n"
	"check() {\n"
	"\tfound=$(id_of \"$1\")\n"
	"\t! answers \"$found\" || return 0\n"
	"\tcase $found in\n"
	"\t'') what=\"no build-id to be found in '$1'\" need=2\n"
	"\t\t[ -e \"$1\" ] || what=\"no such file: '$1'\" ;;\n"
	"\t*) what=\"'$1' is build $found\" need=1 ;;\n"
	"\tesac\n"
	"\tcase $1 in /sys/module/*) ! answers \"$(id_of /sys/kernel/notes)\" ||\n"
	"\t\twhat=\"nothing says which build '$1' has to be\" need=2 ;;\n"
	"\tesac\n"
	"\tif [ $guru -lt $need ]; then\n"
	"\t\techo \"refused: $what, and the probes are of build $id\" >&2\n"
	"\t\texit 1\n"
	"\tfi\n"
	"\techo \"WARNING: $what, and the probes are of build $id: they are set all the same, perhaps into the middle of an "
	"instruction\" >&2\n"
	"}\n"
	"\n"
	"# is there no EVENT yet, that is to be in LIST? The kernel would add a place to it\n"
	"absent() {\n"
	"\t[ -e \"$tracing/events/$2\" ] || return 0\n"
	"\techo \"refused: there is an event '$2' already; 'perf probe --del ${2%/*}:${2#*/}' or 'echo -:$2 >>$tracing/$1' "
	"removes it\" >&2\n"
	"\texit 1\n"
	"}\n"
	"\n"
	"# take back what was set here; a place that somebody else has added to an event since stays\n"
	"undo() {\n"
	"\tfor one in $set; do\n"
	"\t\tlist=${one%%:*} event=${one#*:}\n"
	"\t\tline=$(sed -n \"\\\\|^[^:]*:$event |{s|^[^:]*:|-:|p;q;}\" \"$tracing/$list\")\n"
	"\t\t(printf '%s\\n' \"$line\" >>\"$tracing/$list\") 2>/dev/null || echo \"warning: not taken back: $event\" >&2\n"
	"\tdone\n"
	"}\n"
	"\n"
	"# write DEFINITION of EVENT to LIST\n"
	"set=\n"
	"put() {\n"
	"\tif (printf '%s\\n' \"$3\" >>\"$tracing/$1\") 2>/dev/null; then\n"
	"\t\tset=\"$1:$2 $set\"\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tundo\n"
	"\t[ -w \"$tracing/$1\" ] || { echo \"error: not to be written to: '$tracing/$1'\" >&2; exit 3; }\n"
	"\techo \"refused: the kernel does not take '$3'\" >&2\n"
	"\texit 1\n"
	"}\n"
	"\n";

static bool is_equal(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool ctl_event_is_first_of_target(const struct ctl_event *events, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (is_equal(events[i].path, events[j].path) && is_equal(events[i].module, events[j].module))
			return false;
	return true;
}

/* Print a call of @function with the list and the name of @event, open for further arguments. */
static void print_call(FILE *out, const char *function, const struct ctl_event *event)
{
	fprintf(out, "%s %s ", function, ctl_tracefs_list(!event->path));
	print_word(out, event->name);
}

void ctl_probe_script(FILE *out, const struct bid_id *id, const struct ctl_event *events, size_t n, unsigned guru)
{
	char hex[BID_ID_HEX_MAX];

	fprintf(out, "#!/bin/sh\n"
		     "# Sets probes that were resolved against one build, if that is the build which is here.\n"
		     "# Needs a POSIX shell with od, tr, awk and sed, and the right to write to tracefs.\n");
	fprintf(out, "id=%s guru=%u\n", bid_id_format(id, hex), guru);
	fputs(preamble, out);
	for (size_t i = 0; i < n; i++) {
		if (!ctl_event_is_first_of_target(events, i))
			continue;
		if (events[i].module) {
			fprintf(out, "check '" CTL_MODULE_NOTES "'\n", events[i].module);
			continue;
		}
		fputs("check ", out);
		print_word(out, events[i].path ? events[i].path : "/sys/kernel/notes");
		putc('\n', out);
	}
	for (size_t i = 0; i < n; i++) {
		print_call(out, "absent", &events[i]);
		putc('\n', out);
	}
	for (size_t i = 0; i < n; i++) {
		print_call(out, "put", &events[i]);
		putc(' ', out);
		print_word(out, events[i].line);
		putc('\n', out);
	}
	fputs("printf '%s\\n'", out);
	for (size_t i = 0; i < n; i++) {
		putc(' ', out);
		print_word(out, events[i].name);
	}
	putc('\n', out);
}
