/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text of perf's probe cache: docs/FORMAT.md, "Probe definitions"; perf, util/probe-file.c, probe_cache__load(). */
#ifndef BID_CTL_PROBE_FILE_H
#define BID_CTL_PROBE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { CTL_PROBE_LINE_MAX = 4094 }; /* perf splits longer lines */

/* One event. Strings belong to the file. */
struct ctl_probe {
	bool sdt; /* made of static probes */
	const char *text; /* first line, "GROUP:EVENT=COMMAND", without the letter of its type */
	const char *command; /* part of text: the command behind the event; "" if absent */
	char **definitions; /* lines for the kernel, one for each place */
	size_t n;
};

struct ctl_probe_file {
	char *text; /* owned */
	char **lines; /* owned */
	struct ctl_probe *probes; /* owned */
	size_t n;
};

/*
 * Parse @text, of @len bytes and a NUL. @text belongs to @ret_file in any case; the caller releases @ret_file. Returns 0, -ENOMEM,
 * or -EBADMSG for text that perf would reject: a definition before any event, a line that is too long, a byte that is no text.
 */
int ctl_probe_file_parse(char *text, size_t len, struct ctl_probe_file *ret_file);

void ctl_probe_file_release(struct ctl_probe_file *file);

/* Return the length of "GROUP:EVENT" at the beginning of probe->text; 0 without a name. */
size_t ctl_probe_name_len(const struct ctl_probe *probe);

/* Does the shell pattern @pattern match the probe's "GROUP:EVENT", or its "EVENT"? */
bool ctl_probe_matches(const struct ctl_probe *probe, const char *pattern);

void ctl_probe_print(FILE *out, const struct ctl_probe *probe);

/*
 * Parsed definition: "p:GROUP/EVENT PLACE ARGUMENTS" (Linux, Documentation/trace/uprobetracer.rst, kprobetrace.rst). Strings are
 * unterminated parts of its text.
 */
struct ctl_definition {
	int type_len; /* "p", "r", "r10" */
	const char *type;
	int group_len, event_len;
	const char *group, *event;
	int path_len; /* path of a program's file; 0 for a place in the kernel */
	int module_len; /* name of a kernel module; 0 without one */
	const char *place; /* PATH:0xOFFSET(0xSEMAPHORE), SYMBOL+OFFSET, MODULE:SYMBOL+OFFSET; 0xOFFSET as long as it has no path */
	int place_len;
	const char *rest; /* arguments, with a blank before each; terminated */
};

/* Parse @text. Returns 0, or -EINVAL unless it is such a definition with its own group and event. */
int ctl_definition_parse(const char *text, struct ctl_definition *ret_definition);

#endif
