// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/id_lines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

/* Count a line without an id; print a message for the first one. */
static enum ctl_status refuse(const char *text, size_t number, size_t *n_refused)
{
	if ((*n_refused)++ == 0)
		bid_error_about(text, -EINVAL, "not a build-id in hex, in line %zu", number);
	return CTL_DONE;
}

static enum ctl_status take(char *line, size_t number, ctl_id_line_fn fn, void *user, size_t *n_refused)
{
	char *id_text = line + strspn(line, " \t"), *name;
	struct bid_id id;
	size_t len = strcspn(id_text, " \t\r\n");

	if (len == 0)
		return CTL_DONE;
	name = id_text + len + strspn(id_text + len, " \t\r\n");
	name[strcspn(name, "\r\n")] = '\0';
	id_text[len] = '\0';
	if (ctl_parse_id(id_text, &id) < 0)
		return refuse(id_text, number, n_refused);
	return fn(user, &id, name);
}

enum ctl_status ctl_each_id_line(ctl_id_line_fn fn, void *user)
{
	enum ctl_status status = CTL_DONE;
	bid_auto_free char *line = NULL;
	size_t size = 0, number = 0, n_refused = 0;

	/* a hint for a user who gave no operand by mistake */
	if (isatty(STDIN_FILENO))
		bid_warning("reading build-ids from the terminal, one a line, to the end of input (Ctrl-D)");
	while (status == CTL_DONE && getline(&line, &size, stdin) >= 0)
		status = take(line, ++number, fn, user, &n_refused);
	if (status == CTL_DONE && ferror(stdin))
		status = ctl_trouble("standard input", -errno, NULL);
	if (n_refused > 1)
		bid_error_about("standard input", -EINVAL, "nor in %zu more lines", n_refused - 1);
	return status == CTL_DONE && n_refused > 0 ? CTL_USAGE : status;
}
