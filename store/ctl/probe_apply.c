// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl probe apply: set definitions as events of the kernel, only in the build that they were made for. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <bid/error.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/local_builds.h"
#include "ctl/output.h"
#include "ctl/probe.h"
#include "ctl/probe_script.h"
#include "ctl/tracefs.h"

struct events {
	struct ctl_event *events; /* owned */
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
static int add_event(struct events *events, const struct ctl_probed *probed, const char *text, size_t number)
{
	struct ctl_event *event = &events->events[events->n];
	struct ctl_definition definition;
	char suffix[24] = "";

	if (has_blank_path(text) || !is_takeable(probed->path, strlen(probed->path)))
		return -ENOTSUP;
	if (ctl_definition_parse(text, &definition) < 0)
		return -EBADMSG;
	if (number > 0)
		snprintf(suffix, sizeof(suffix), "_%zu", number);
	*event = (struct ctl_event){ 0 };
	events->n++;
	if (definition.path_len > 0) {
		event->path = probed->path[0] ? strdup(probed->path) : strndup(definition.place, (size_t)definition.path_len);
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

static enum ctl_status not_collected(const struct ctl_probed *probed, const char *text, int error)
{
	if (error == -ENOTSUP)
		bid_error("the kernel takes no path with a blank or a '#' in it, so give the file another name first: '%s'",
			  probed->path[0] ? probed->path : text);
	else
		bid_error_about(text, error, "%s", error == -EBADMSG ? "no definition of an event" : bid_strerror(error));
	return error == -ENOTSUP || error == -EBADMSG ? CTL_REFUSED : CTL_TROUBLE;
}

static enum ctl_status collect(const struct ctl_probed *probed, const struct ctl_probe_file *file, char *const *patterns, int n,
			       struct events *events)
{
	size_t room = 0;

	if (ctl_probe_unmatched(file, patterns, n)) {
		bid_error_about(ctl_probe_unmatched(file, patterns, n), -ENOENT, "no probe fits");
		return CTL_REFUSED;
	}
	for (size_t i = 0; i < file->n; i++)
		room += file->probes[i].n;
	events->events = calloc(room + 1, sizeof(*events->events));
	for (size_t i = 0; events->events && i < file->n; i++) {
		for (size_t j = 0; ctl_probe_wanted(&file->probes[i], patterns, n) && j < file->probes[i].n; j++) {
			int r = add_event(events, probed, file->probes[i].definitions[j], j);

			if (r < 0)
				return not_collected(probed, file->probes[i].definitions[j], r);
		}
	}
	if (!events->events)
		bid_error("%s", strerror(ENOMEM));
	return events->events ? CTL_DONE : CTL_TROUBLE;
}

static int identify_kernel(const struct ctl *ctl, struct bid_id *ret_id)
{
	return ctl->notes ? ctl_here_notes(ctl->notes, ret_id) : ctl_here_kernel(ret_id);
}

/* Read the build-id of the file @path, or of a module's notes. */
static int identify(const struct ctl_event *event, const char *path, struct bid_id *ret_id)
{
	bid_auto_fd int fd = -1;

	if (event->module)
		return ctl_here_notes(path, ret_id);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : bid_elf_identify(fd, ret_id);
}

/* Refuse, or with --guru warn, if @what is another build than @wanted, or with @error no known build. */
static enum ctl_status decide(const struct ctl *ctl, const struct bid_id *wanted, const char *what, const struct bid_id *found,
			      const char *error, bool again)
{
	char hex[BID_ID_HEX_MAX], found_hex[BID_ID_HEX_MAX];

	bid_id_format(wanted, hex);
	if (ctl->guru < (error ? 2 : 1)) {
		if (error)
			bid_error("%s: '%s', and the probes are of build %s; '--guru', given twice, sets them all the same", error,
				  what, hex);
		else
			bid_error("'%s' is build %s, and the probes are of build %s; '--guru' sets them all the same", what,
				  bid_id_format(found, found_hex), hex);
		return CTL_REFUSED;
	}
	if (!again)
		bid_warning(
			"--guru: '%s' is %s%s, AND THE PROBES ARE OF BUILD %s: they may be set into the middle of an instruction",
			what, error ? "of no known build" : "build ", error ? "" : bid_id_format(found, found_hex), hex);
	return CTL_DONE;
}

/* Do the module's probes come from a kernel's id? Then no id tells the build of the module. */
static bool is_of_unknown_module(const struct ctl *ctl, const struct bid_id *wanted, const struct ctl_event *event)
{
	struct bid_id kernel;

	return event->module && identify_kernel(ctl, &kernel) == 0 && bid_id_answers(&kernel, wanted);
}

/* Check that the target of @event is build @wanted. @again: a second check, without a repeated warning. */
static enum ctl_status check(const struct ctl *ctl, const struct bid_id *wanted, const struct ctl_event *event, bool again)
{
	char path[PATH_MAX], hex[BID_ID_HEX_MAX];
	struct bid_id found = { 0 };
	bool kernel = !event->path && !event->module;
	int r;

	if (kernel)
		snprintf(path, sizeof(path), "%s", ctl->notes ? ctl->notes : "/sys/kernel/notes");
	else if (event->module)
		snprintf(path, sizeof(path), CTL_MODULE_NOTES, event->module);
	else
		snprintf(path, sizeof(path), "%s", event->path);
	if (is_of_unknown_module(ctl, wanted, event))
		return decide(ctl, wanted, path, NULL, "under the kernel's id nothing says of which build of the module they are",
			      again);
	/* for another machine, the script checks the modules there */
	if (event->module && ctl->notes)
		return CTL_DONE;
	r = kernel ? identify_kernel(ctl, &found) : identify(event, path, &found);
	if (r == 0 && bid_id_answers(&found, wanted))
		return CTL_DONE;
	if (r == -ENOENT && event->path) {
		bid_error_about(path, r, "no such file, and the probes are of its build %s", bid_id_format(wanted, hex));
		return CTL_REFUSED;
	}
	return decide(ctl, wanted, path, &found, r == 0 ? NULL : event->path ? bid_strerror(r) : ctl_here_strerror(r), again);
}

static enum ctl_status check_all(const struct ctl *ctl, const struct bid_id *wanted, const struct events *events, bool again)
{
	for (size_t i = 0; i < events->n; i++) {
		enum ctl_status status = CTL_DONE;

		if (ctl_event_is_first_of_target(events->events, i))
			status = check(ctl, wanted, &events->events[i], again);
		if (status != CTL_DONE)
			return status;
	}
	return CTL_DONE;
}

/*
 * Refuse to set an existing event: the kernel would add a place to it. @set is its line in the list; NULL for an event of another
 * kind.
 */
static enum ctl_status there_already(const struct ctl_event *event, const char *set)
{
	const char *list = ctl_tracefs_list(!event->path);
	const char *colon = strchr(event->name, '/');

	if (!set)
		bid_error("there is an event of that name already, and not one of '%s': '%s'", list, event->name);
	else
		bid_error("%s '%s'; 'perf probe --del %.*s:%s' or 'echo -:%s >>%s/%s' removes it",
			  ctl_tracefs_is_same(set, event->line) ? "this is set already:"
								: "there is an event of that name already:",
			  set, (int)(colon - event->name), event->name, colon + 1, event->name, ctl_tracefs(), list);
	return CTL_REFUSED;
}

static enum ctl_status check_absent(const struct events *events)
{
	for (size_t i = 0; i < events->n; i++) {
		const struct ctl_event *event = &events->events[i];
		bid_auto_free char *set = ctl_tracefs_find(!event->path, event->name, NULL);

		if (set || ctl_tracefs_has(event->name))
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
				bid_error("two definitions of one event: '%s' and '%s'", events->events[j].line,
					  events->events[i].line);
				return CTL_REFUSED;
			}
		}
	}
	return CTL_DONE;
}

/* Remove the first @n events, but no places that others added to them since. */
static void take_back(const struct events *events, size_t n)
{
	while (n-- > 0) {
		const struct ctl_event *event = &events->events[n];
		bid_auto_free char *set = ctl_tracefs_find(!event->path, event->name, event->line);
		bid_auto_free char *line = NULL;

		if (!set || asprintf(&line, "-%s\n", strchr(set, ':')) < 0)
			line = NULL;
		if (!line || ctl_tracefs_write(!event->path, line) < 0)
			bid_warning("not taken back: '%s'", event->line);
	}
}

static enum ctl_status not_set(const struct ctl_event *event, int error)
{
	const char *list = ctl_tracefs_list(!event->path);

	/* another process set the event after the check */
	if (error == -EEXIST) {
		bid_auto_free char *set = ctl_tracefs_find(!event->path, event->name, NULL);

		return there_already(event, set);
	}
	if (!ctl_tracefs())
		bid_error("no tracefs: mount it with 'mount -t tracefs tracefs /sys/kernel/tracing'");
	else if (error == -ENOTSUP)
		bid_error("this kernel has no '%s/%s'", ctl_tracefs(), list);
	else if (error == -ENOENT)
		bid_error("%s: '%s'",
			  event->path ? "the kernel finds no such file"
				      : "this kernel has no such symbol, or the module that it is in is not loaded",
			  event->line);
	else
		bid_error("%s: the kernel does not take '%s'", bid_strerror(error), event->line);
	return error == -EINVAL || error == -ENOENT ? CTL_REFUSED : CTL_TROUBLE;
}

/* Set all events, or none. */
static enum ctl_status set(const struct events *events)
{
	for (size_t i = 0; i < events->n; i++) {
		bid_auto_free char *line = NULL;
		int r = asprintf(&line, "%s\n", events->events[i].line) < 0 ? -ENOMEM : 0;

		if (r < 0)
			line = NULL;
		else
			r = ctl_tracefs_write(!events->events[i].path, line);
		if (r < 0) {
			take_back(events, i);
			return not_set(&events->events[i], r);
		}
	}
	return CTL_DONE;
}

static void report(const struct ctl *ctl, const struct bid_id *id, const struct events *events)
{
	for (size_t i = 0; i < events->n; i++) {
		const struct ctl_event *event = &events->events[i];

		if (ctl->json)
			ctl_row(ctl,
				json_pack("{s:o, s:s, s:s, s:o, s:o}", "id", ctl_json_id(id), "event", event->name, "state", "set",
					  "file", ctl_json_text(event->path), "definition", ctl_json_text(event->line)));
		else
			puts(event->name);
	}
	if (ctl->json)
		ctl_totals(ctl, json_pack("{s:I}", "set", (json_int_t)events->n));
}

/* Does the event name the store's own file, which never runs? Definitions of a build without an original path do. */
static bool is_unrun(const struct ctl_event *event)
{
	return event->path && strstr(event->path, "/" BID_STORE_UNNAMED "/");
}

static enum ctl_status apply(const struct ctl *ctl, const struct bid_id *id, const struct events *events)
{
	char hex[BID_ID_HEX_MAX];
	enum ctl_status status = CTL_DONE;
	bool kernel = true;

	for (size_t i = 0; i < events->n; i++)
		kernel = kernel && !events->events[i].path;
	if (ctl->notes && !kernel)
		return ctl_usage("'--notes' is of the kernel, and there are probes of programs");
	if (events->n > 0 && is_unrun(&events->events[0])) {
		bid_error("the store does not know where build %s is run from: name its file instead of the id",
			  bid_id_format(id, hex));
		return CTL_REFUSED;
	}
	/* the script checks the files, on the machine that runs it */
	if (!ctl->print || ctl->notes)
		status = check_all(ctl, id, events, false);
	if (status == CTL_DONE)
		status = check_names(events);
	if (status != CTL_DONE)
		return status;
	if (ctl->print) {
		ctl_probe_script(stdout, id, events->events, events->n, ctl->guru);
		return CTL_DONE;
	}
	status = check_absent(events);
	if (status == CTL_DONE)
		status = set(events);
	/* a second check, because the kernel resolved the path itself */
	if (status == CTL_DONE && check_all(ctl, id, events, true) != CTL_DONE) {
		take_back(events, events->n);
		return CTL_REFUSED;
	}
	if (status == CTL_DONE)
		report(ctl, id, events);
	return status;
}

enum ctl_status ctl_probe_apply(const struct ctl *ctl, int argc, char **argv)
{
	bid_cleanup(ctl_probe_file_release) struct ctl_probe_file file = { 0 };
	bid_cleanup(events_release) struct events events = { 0 };
	ctl_auto_store struct bid_store *store = NULL;
	struct ctl_probed probed;
	enum ctl_status status;

	if (argc < 1)
		return ctl_usage("'probe apply' needs ID|FILE|kernel");
	if (ctl->notes && !ctl->print)
		return ctl_usage("'--notes' is of another machine, and needs '--print'");
	if (ctl->json && ctl->print)
		return ctl_usage("'--print' writes a script, and not JSON");
	status = ctl_open_store(ctl, CTL_WRITE_IF_POSSIBLE, &store);
	if (status == CTL_DONE)
		status = ctl_probed_find(ctl, store, argv[0], &probed);
	if (status == CTL_DONE)
		status = ctl_probed_read(store, &probed, &file);
	if (status == CTL_DONE)
		status = collect(&probed, &file, argv + 1, argc - 1, &events);
	return status == CTL_DONE ? apply(ctl, &probed.id, &events) : status;
}
