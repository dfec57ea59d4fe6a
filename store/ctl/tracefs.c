// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/tracefs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

const char *ctl_tracefs(void)
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

const char *ctl_tracefs_list(bool kernel)
{
	return kernel ? "kprobe_events" : "uprobe_events";
}

static const char *list_path(bool kernel, char path[static 64])
{
	const char *top = ctl_tracefs();

	snprintf(path, 64, "%s/%s", top ? top : "", ctl_tracefs_list(kernel));
	return path;
}

int ctl_tracefs_write(bool kernel, const char *line)
{
	bid_auto_fd int fd = -1;
	char path[64];

	/* append: O_TRUNC would remove all events of all users */
	fd = open(list_path(kernel, path), O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ENOTSUP : -errno;
	return write(fd, line, strlen(line)) < 0 ? -errno : 0;
}

bool ctl_tracefs_has(const char *name)
{
	const char *top = ctl_tracefs();
	bid_auto_free char *path = NULL;

	if (asprintf(&path, "%s/events/%s", top ? top : "", name) < 0) {
		path = NULL;
		return false;
	}
	return access(path, F_OK) == 0;
}

/* Take the next word off @text; at the end it is empty. */
static size_t next_word(const char **text, const char **ret_word)
{
	size_t len;

	*ret_word = *text + strspn(*text, " \t\n");
	len = strcspn(*ret_word, " \t\n");
	*text = *ret_word + len;
	return len;
}

/* Return the length of a place before its offset, and the offset: "/PATH:0x1129", "do_sys_open+4". */
static size_t place_head(const char *place, size_t len, unsigned long long *ret_offset)
{
	size_t head = len;

	while (head > 0 && place[head - 1] != ':' && place[head - 1] != '+')
		head--;
	*ret_offset = head > 0 && isdigit((unsigned char)place[head]) ? strtoull(place + head, NULL, 0) : 0;
	return head > 0 && isdigit((unsigned char)place[head]) ? head - 1 : len;
}

/* Compare two places: the kernel writes offsets in its own form. */
static bool is_same_place(const char *a, size_t a_len, const char *b, size_t b_len)
{
	const char *a_end = memchr(a, '(', a_len), *b_end = memchr(b, '(', b_len); /* end before a semaphore */
	unsigned long long a_offset, b_offset;
	size_t a_head, b_head;

	if (!a_end != !b_end || (a_end && strtoull(a_end + 1, NULL, 0) != strtoull(b_end + 1, NULL, 0)))
		return false;
	a_head = place_head(a, a_end ? (size_t)(a_end - a) : a_len, &a_offset);
	b_head = place_head(b, b_end ? (size_t)(b_end - b) : b_len, &b_offset);
	return a_head == b_head && memcmp(a, b, a_head) == 0 && a_offset == b_offset;
}

/* Compare two arguments: the kernel names unnamed ones. */
static bool is_same_argument(const char *listed, size_t listed_len, const char *word, size_t len)
{
	const char *equals = memchr(listed, '=', listed_len);

	if (equals && !memchr(word, '=', len)) {
		listed_len -= (size_t)(equals + 1 - listed);
		listed = equals + 1;
	}
	return listed_len == len && memcmp(listed, word, len) == 0;
}

bool ctl_tracefs_is_same(const char *listed, const char *line)
{
	for (unsigned i = 0;; i++) {
		const char *a, *b;
		size_t a_len = next_word(&listed, &a), b_len = next_word(&line, &b);
		bool same = i == 1 ? is_same_place(a, a_len, b, b_len) : is_same_argument(a, a_len, b, b_len);

		if (!same || a_len == 0)
			return same;
	}
}

char *ctl_tracefs_find(bool kernel, const char *name, const char *line)
{
	bid_auto_free char *listed = NULL;
	bid_auto_file FILE *list = NULL;
	size_t len = strlen(name), room = 0;
	char path[64];

	list = fopen(list_path(kernel, path), "re");
	while (list && getline(&listed, &room, list) > 0) {
		const char *colon = strchr(listed, ':');

		listed[strcspn(listed, "\n")] = '\0';
		if (colon && strncmp(colon + 1, name, len) == 0 && (colon[1 + len] == ' ' || colon[1 + len] == '\0') &&
		    (!line || ctl_tracefs_is_same(listed, line)))
			return bid_steal(listed);
	}
	return NULL;
}
