// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl probe apply: set definitions as events of the kernel, only in the build that they were made for. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/output.h"
#include "ctl/probe.h"
#include "ctl/running_kernel.h"

/* Notes of the loaded module %s (Linux, kernel/module/sysfs.c). */
#define MODULE_NOTES "/sys/module/%s/notes/.note.gnu.build-id"

/* One event to be set. */
struct event {
	char *line; /* line for the kernel's list; owned */
	char *name; /* "GROUP/EVENT"; owned */
	char *path; /* file of the program; NULL for the kernel and its modules. Owned */
	char *module; /* kernel module of the event; NULL for the kernel itself, and for programs. Owned */
};

struct events {
	struct event *events; /* owned */
	size_t n;
};

static void events_release(struct events *events)
{
	for (size_t i = 0; i < events->n; i++) {
		free(events->events[i].line);
		free(events->events[i].name);
		free(events->events[i].path);
		free(events->events[i].module);
	}
	free(events->events);
}

/* The kernel's lists of dynamic events: Documentation/trace/uprobetracer.rst, kprobetrace.rst. */

/* Return the mount point of tracefs, or NULL. Static. */
static const char *find_tracefs(void)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/trace", places[i]);
		if (access(path, F_OK) == 0)
			return places[i];
	}
	return NULL;
}

/* Return the list of events of programs or of the kernel. */
static const char *name_of_list(bool kernel)
{
	return kernel ? "kprobe_events" : "uprobe_events";
}

static const char *list_path(bool kernel, char path[static 64])
{
	const char *top = find_tracefs();

	snprintf(path, 64, "%s/%s", top ? top : "", name_of_list(kernel));
	return path;
}

/*
 * Write @prefix and @text to that list, in one write(2). A line for an existing event with equal arguments adds a place to the
 * event. Returns 0; -ENOTSUP without such a list; or as open(2) and write(2): -EINVAL if the kernel rejects the line, -ENOENT for
 * an unknown file or symbol.
 */
static int write_line(bool kernel, const char *prefix, const char *text)
{
	char path[64], line[CTL_PROBE_LINE_MAX + PATH_MAX];
	int len = snprintf(line, sizeof(line), "%s%s\n", prefix, text);
	bid_auto_fd int fd = -1;

	if (len >= (int)sizeof(line))
		return -EINVAL;
	/* append: O_TRUNC would remove all events of all users */
	fd = open(list_path(kernel, path), O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ENOTSUP : -errno;
	return write(fd, line, (size_t)len) < 0 ? -errno : 0;
}

/* Does an event "GROUP/EVENT" of any kind exist? */
static bool has_event(const char *name)
{
	const char *top = find_tracefs();
	char path[CTL_PROBE_LINE_MAX + 64];

	snprintf(path, sizeof(path), "%s/events/%s", top ? top : "", name);
	return access(path, F_OK) == 0;
}

/* Return the first line of that list for the event "GROUP/EVENT", for the caller to free. NULL without one, or without the list. */
static char *find_line(bool kernel, const char *name)
{
	bid_auto_free char *listed = NULL;
	bid_auto_file FILE *list = NULL;
	size_t len = strlen(name), room = 0;
	char path[64];

	list = fopen(list_path(kernel, path), "re");
	while (list && getline(&listed, &room, list) > 0) {
		const char *colon = strchr(listed, ':');

		listed[strcspn(listed, "\n")] = '\0';
		if (colon && strncmp(colon + 1, name, len) == 0 && (colon[1 + len] == ' ' || colon[1 + len] == '\0'))
			return bid_steal(listed);
	}
	return NULL;
}

/* Can the kernel parse @path? It splits a line at blanks, and ends it at a '#', without any escape. */
static bool is_takeable(const char *path, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (isspace((unsigned char)path[i]) || path[i] == '#')
			return false;
	return true;
}

/* Does a path with blanks make @text an invalid definition? */
static bool has_blank_path(const char *text)
{
	const char *path = strstr(text, " /"), *colon = path ? strstr(path, ":0x") : NULL;

	return colon && !is_takeable(path + 1, (size_t)(colon - path - 1));
}

/*
 * Add one definition in the kernel's form. A file named by an operand replaces its path; further places of one event get a number
 * behind the name, as in perf. Returns -ENOTSUP for a path that the kernel cannot parse.
 */
static int add_event(struct events *events, const struct ctl_probe_target *target, const char *text, size_t number)
{
	struct event *event = &events->events[events->n];
	struct ctl_definition definition;
	char suffix[24] = "";

	if (has_blank_path(text) || !is_takeable(target->path, strlen(target->path)))
		return -ENOTSUP;
	if (ctl_definition_parse(text, &definition) < 0)
		return -EBADMSG;
	if (number > 0)
		snprintf(suffix, sizeof(suffix), "_%zu", number);
	*event = (struct event){ 0 };
	events->n++;
	if (definition.path_len > 0) {
		event->path = target->path[0] ? strdup(target->path) : strndup(definition.place, (size_t)definition.path_len);
		if (!event->path)
			return -ENOMEM;
	}
	if (definition.module_len > 0) {
		event->module = strndup(definition.place, (size_t)definition.module_len);
		if (!event->module)
			return -ENOMEM;
	}
	if (asprintf(&event->name, "%.*s/%.*s%s", definition.group_len, definition.group, definition.event_len, definition.event,
		     suffix) < 0) {
		event->name = NULL;
		return -ENOMEM;
	}
	if (asprintf(&event->line, "%.*s:%s %s%s", definition.type_len, definition.type, event->name,
		     event->path ? event->path : "", definition.place + definition.path_len) < 0) {
		event->line = NULL;
		return -ENOMEM;
	}
	return 0;
}

static enum ctl_status not_collected(const struct ctl_probe_target *target, const char *text, int error)
{
	if (error == -ENOTSUP)
		bid_error_about(target->path[0] ? target->path : text, error,
				"the kernel takes no path with a blank or a '#' in it - give the file another name first");
	else
		bid_error_about(text, error, "%s", error == -EBADMSG ? "no definition of an event" : bid_strerror(error));
	return error == -ENOTSUP || error == -EBADMSG ? CTL_REFUSED : CTL_TROUBLE;
}

static enum ctl_status collect_events(const struct ctl_probe_target *target, const struct ctl_probe_file *file,
				      char *const *patterns, int n, struct events *events)
{
	size_t room = 0;

	if (ctl_probe_unmatched(file, patterns, n)) {
		bid_error_about(ctl_probe_unmatched(file, patterns, n), -ENOENT, "no matching probe");
		return CTL_REFUSED;
	}
	for (size_t i = 0; i < file->n; i++)
		room += file->probes[i].n;
	events->events = calloc(room + 1, sizeof(*events->events));
	for (size_t i = 0; events->events && i < file->n; i++) {
		for (size_t j = 0; ctl_probe_wanted(&file->probes[i], patterns, n) && j < file->probes[i].n; j++) {
			int r = add_event(events, target, file->probes[i].definitions[j], j);

			if (r < 0)
				return not_collected(target, file->probes[i].definitions[j], r);
		}
	}
	return events->events ? CTL_DONE : ctl_no_memory();
}

/* Read the build-id of the file @path, or in the notes of the kernel or a module. */
static int identify_file(const struct event *event, const char *path, struct bid_id *ret_id)
{
	bid_auto_fd int fd = -1;

	if (!event->path)
		return ctl_running_notes(path, ret_id);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : bid_elf_build_id(fd, ret_id);
}

/* Do the module's probes come from a kernel's id? Then no id tells the build of the module. */
static bool is_of_unknown_module(const struct bid_id *wanted, const struct event *event)
{
	struct bid_id kernel;

	return event->module && ctl_running_kernel(&kernel) == 0 && bid_id_answers(&kernel, wanted);
}

/* Check that the target of @event is build @wanted: in another build an offset may be the middle of an instruction. */
static enum ctl_status check_build(const struct bid_id *wanted, const struct event *event)
{
	char path[PATH_MAX], hex[BID_ID_HEX_MAX], found_hex[BID_ID_HEX_MAX];
	struct bid_id found = { 0 };
	int r;

	bid_id_format(wanted, hex);
	if (event->module)
		snprintf(path, sizeof(path), MODULE_NOTES, event->module);
	else
		snprintf(path, sizeof(path), "%s", event->path ? event->path : "/sys/kernel/notes");
	if (is_of_unknown_module(wanted, event)) {
		bid_error_about(path, 0, "the probes are under the kernel's build-id, which does not identify the module: build %s",
				hex);
		return CTL_REFUSED;
	}
	r = identify_file(event, path, &found);
	if (r == 0 && bid_id_answers(&found, wanted))
		return CTL_DONE;
	if (r == 0)
		bid_error_about(path, 0, "'%s' is build %s, and the probes are of build %s", path, bid_id_format(&found, found_hex),
				hex);
	else if (r == -ENOENT && event->path)
		bid_error_about(path, r, "no such file, and the probes are of its build %s", hex);
	else
		bid_error_about(path, r, "%s: '%s', and the probes are of build %s",
				event->path ? bid_strerror(r) : ctl_running_strerror(r), path, hex);
	return CTL_REFUSED;
}

static enum ctl_status check_all(const struct bid_id *wanted, const struct events *events)
{
	enum ctl_status status = CTL_DONE;

	for (size_t i = 0; i < events->n && status == CTL_DONE; i++)
		status = check_build(wanted, &events->events[i]);
	return status;
}

/*
 * Refuse to set an existing event: the kernel would add a place to it. @set is its line in the list; NULL for an event of another
 * kind.
 */
static enum ctl_status there_already(const struct event *event, const char *set)
{
	const char *list = name_of_list(!event->path);
	const char *colon = strchr(event->name, '/');

	if (!set)
		bid_error_about(event->name, -EEXIST, "the kernel has another event of that name, which is not in '%s': '%s'", list,
				event->name);
	else
		bid_error_about(
			event->name, -EEXIST,
			"the kernel has this event already: '%s' - 'perf probe --del %.*s:%s' or 'echo -:%s >>%s/%s' removes it",
			set, (int)(colon - event->name), event->name, colon + 1, event->name, find_tracefs(), list);
	return CTL_REFUSED;
}

static enum ctl_status check_absent(const struct events *events)
{
	for (size_t i = 0; i < events->n; i++) {
		const struct event *event = &events->events[i];
		bid_auto_free char *set = find_line(!event->path, event->name);

		if (set || has_event(event->name))
			return there_already(event, set);
	}
	return CTL_DONE;
}

/* Refuse two events of one name, which would become one event with two places. */
static enum ctl_status check_names(const struct events *events)
{
	for (size_t i = 1; i < events->n; i++) {
		for (size_t j = 0; j < i; j++) {
			if (strcmp(events->events[i].name, events->events[j].name) == 0) {
				bid_error_about(events->events[i].name, -EEXIST, "two definitions of one event: '%s' and '%s'",
						events->events[j].line, events->events[i].line);
				return CTL_REFUSED;
			}
		}
	}
	return CTL_DONE;
}

/* Remove the first @n events. */
static void take_back(const struct events *events, size_t n)
{
	while (n-- > 0) {
		const struct event *event = &events->events[n];

		if (write_line(!event->path, "-:", event->name) < 0)
			bid_warning("cannot remove this event again: '%s'", event->line);
	}
}

static enum ctl_status not_set(const struct event *event, int error)
{
	const char *list = name_of_list(!event->path);

	/* another process set the event after the check */
	if (error == -EEXIST) {
		bid_auto_free char *set = find_line(!event->path, event->name);

		return there_already(event, set);
	}
	if (!find_tracefs())
		bid_error_about("/sys/kernel/tracing", error,
				"no tracefs - mount it with 'mount -t tracefs tracefs /sys/kernel/tracing'");
	else if (error == -ENOTSUP)
		bid_error_about(list, error, "this kernel has no '%s/%s'", find_tracefs(), list);
	else if (error == -ENOENT)
		bid_error_about(event->name, error, "%s: '%s'",
				event->path ? "the kernel finds no such file"
					    : "this kernel has no such symbol, or its module is not loaded",
				event->line);
	else
		bid_error_about(event->name, error, "%s: the kernel does not take '%s'", bid_strerror(error), event->line);
	return error == -EINVAL || error == -ENOENT ? CTL_REFUSED : CTL_TROUBLE;
}

/* Set all events, or none. */
static enum ctl_status set_events(const struct events *events)
{
	for (size_t i = 0; i < events->n; i++) {
		int r = write_line(!events->events[i].path, "", events->events[i].line);

		if (r < 0) {
			take_back(events, i);
			return not_set(&events->events[i], r);
		}
	}
	return CTL_DONE;
}

static void report_events(const struct ctl *ctl, const struct bid_id *id, const struct events *events)
{
	for (size_t i = 0; i < events->n; i++) {
		const struct event *event = &events->events[i];

		ctl_row(ctl, CTL_TEXT("event", 0, event->name), CTL_ID("id", CTL_HIDDEN, id),
			CTL_STATE("state", ctl->dry_run ? 12 : CTL_HIDDEN, "set"), CTL_TEXT("file", CTL_HIDDEN, event->path),
			CTL_TEXT("definition", CTL_HIDDEN, event->line));
	}
	ctl_totals(ctl, CTL_NUMBER("set", CTL_HIDDEN, events->n), CTL_BOOL("dry_run", ctl->dry_run));
}

/* Does the event name the store's own file, which never runs? Definitions of a build without an original path do. */
static bool is_unrun(const struct event *event)
{
	return event->path && strstr(event->path, "/" BID_STORE_UNNAMED "/");
}

static enum ctl_status apply_events(const struct ctl *ctl, const struct bid_id *id, const struct events *events)
{
	char hex[BID_ID_HEX_MAX];
	enum ctl_status status;

	if (events->n > 0 && is_unrun(&events->events[0])) {
		bid_error_about(bid_id_format(id, hex), 0,
				"the store does not know the path of the program of build %s - name its file instead of the id",
				hex);
		return CTL_REFUSED;
	}
	status = check_all(id, events);
	if (status == CTL_DONE)
		status = check_names(events);
	if (status == CTL_DONE)
		status = check_absent(events);
	if (status == CTL_DONE && ctl->dry_run) {
		report_events(ctl, id, events);
		return CTL_DONE;
	}
	if (status == CTL_DONE)
		status = set_events(events);
	/* a second check, because the kernel resolved the path itself */
	if (status == CTL_DONE && check_all(id, events) != CTL_DONE) {
		take_back(events, events->n);
		return CTL_REFUSED;
	}
	if (status == CTL_DONE)
		report_events(ctl, id, events);
	return status;
}

enum ctl_status ctl_probe_apply(const struct ctl *ctl, int argc, char **argv)
{
	bid_cleanup(ctl_probe_file_release) struct ctl_probe_file file = { 0 };
	bid_cleanup(events_release) struct events events = { 0 };
	ctl_auto_store struct bid_store *store = NULL;
	struct ctl_probe_target target;
	enum ctl_status status;

	if (argc < 1)
		return ctl_usage("probe apply", "'probe apply' needs ID|FILE|kernel");
	status = ctl_probe_open(ctl, argv[0], &store, &target, &file);
	if (status == CTL_DONE)
		status = collect_events(&target, &file, argv + 1, argc - 1, &events);
	return status == CTL_DONE ? apply_events(ctl, &target.id, &events) : status;
}
