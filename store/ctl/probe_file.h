/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text of perf's probe cache: docs/FORMAT.md, "Probe definitions"; perf, util/probe-file.c, probe_cache__load(). */
#ifndef BID_CTL_PROBE_FILE_H
#define BID_CTL_PROBE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { CTL_PROBE_LINE_MAX = 4094 }; /* perf reads no longer ones as one */

/* One event. Strings are the file's. */
struct ctl_probe {
	bool sdt; /* made of static probes */
	const char *text; /* its first line, "GROUP:EVENT=COMMAND", without the letter that tells which */
	const char *command; /* in it: what it was made of; "" if nothing says */
	char **definitions; /* what the kernel is to be told, a line for each place */
	size_t n;
};

struct ctl_probe_file {
	char *text; /* owned */
	char **lines; /* owned */
	struct ctl_probe *probes; /* owned */
	size_t n;
};

/*
 * Take @text, of @len bytes with a NUL behind it, apart. Returns 0, -ENOMEM, or -EBADMSG for what perf would not read: a
 * definition before any event, a line that is too long, a byte that is no text. In any case @text belongs to @ret_file, which the
 * caller releases.
 */
int ctl_probe_file_parse(char *text, size_t len, struct ctl_probe_file *ret_file);

void ctl_probe_file_release(struct ctl_probe_file *file);

/* "GROUP:EVENT" is the first @len bytes of probe->text; 0 if it says none. */
size_t ctl_probe_name_len(const struct ctl_probe *probe);

/* Does the pattern of a shell @pattern fit the probe's "GROUP:EVENT", or its "EVENT"? */
bool ctl_probe_matches(const struct ctl_probe *probe, const char *pattern);

void ctl_probe_print(FILE *out, const struct ctl_probe *probe);

/*
 * What one definition says: "p:GROUP/EVENT PLACE ARGUMENTS" (Linux, Documentation/trace/uprobetracer.rst, kprobetrace.rst).
 * Strings are parts of its text, which are not terminated.
 */
struct ctl_definition {
	int type_len; /* "p", "r", "r10" */
	const char *type;
	int group_len, event_len;
	const char *group, *event;
	int path_len; /* of a program's file; 0 for a place in the kernel */
	int module_len; /* of a module of the kernel; 0 if none is named */
	const char *place; /* PATH:0xOFFSET(0xSEMAPHORE), SYMBOL+OFFSET, MODULE:SYMBOL+OFFSET or, with no path yet, 0xOFFSET */
	int place_len;
	const char *rest; /* the arguments, with a blank before each; terminated */
};

/* 0, or -EINVAL for what is no such definition with a group and an event of its own. */
int ctl_definition_parse(const char *text, struct ctl_definition *ret_definition);

#endif
