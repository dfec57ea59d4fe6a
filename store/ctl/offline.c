// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl offline */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/mounts.h"
#include "ctl/output.h"

struct telling {
	const char *only; /* the mount point that is meant, or NULL for all */
	bool offline; /* what they are told */
	json_t *all; /* NULL without --json; owned by the caller */
	size_t n;
	enum ctl_status status; /* the worst so far */
};

static const char *why_not(int error)
{
	switch (error) {
	case -ETIMEDOUT:
		return "its daemon does not answer";
	case -EROFS:
		return "it is read-only";
	case -EACCES:
	case -EPERM:
		return "only its owner and root may tell it";
	case -EOPNOTSUPP:
		return "it is of an older version, which cannot be told (mount it anew)";
	default:
		return strerror(-error);
	}
}

/* Have @mount be as wanted; what it says of itself then is in @ret_state, for the caller to release. */
static int set(const struct ctl_mount *mount, bool offline, json_t **ret_state)
{
	bid_auto_free char *before = NULL, *after = NULL;
	char dir[PATH_MAX + sizeof("/.bidfs")];
	int r;

	/* one that hangs would keep us for ever */
	r = ctl_mount_status(mount, CTL_MOUNT_TIMEOUT_MS, &before);
	if (r < 0)
		return r;
	snprintf(dir, sizeof(dir), "%s/.bidfs", mount->point);
	if (setxattr(dir, "user.bidfs.offline", offline ? "1" : "0", 1, 0) < 0)
		return -errno;
	r = ctl_mount_status(mount, CTL_MOUNT_TIMEOUT_MS, &after);
	*ret_state = r < 0 ? NULL : json_loads(after, 0, NULL);
	return r < 0 ? r : *ret_state ? 0 : -EBADMSG;
}

/* What keeps the mount that says @state from asking servers; NULL if it asks them. */
static const char *why_silent(const json_t *state)
{
	if (json_array_size(json_object_get(state, "sources")) == 0)
		return "it has none";
	return json_is_true(json_object_get(state, "offline")) ? "it is offline" : NULL;
}

static void report(struct telling *telling, const struct ctl_mount *mount, const char *silent)
{
	if (telling->all) {
		json_array_append_new(telling->all, json_pack("{s:o, s:b, s:s?}", "mount_point", ctl_json_text(mount->point),
							      "asks_servers", !silent, "reason", silent));
		return;
	}
	ctl_print_text(stdout, mount->point);
	if (silent)
		printf(": asks no server (%s)\n", silent);
	else
		puts(": asks its servers");
}

static int tell(void *user, const struct ctl_mount *mount)
{
	struct telling *telling = user;
	enum ctl_status status = CTL_DONE;
	json_t *state = NULL;
	const char *silent;
	int r;

	if (telling->only && strcmp(telling->only, mount->point) != 0)
		return 0;
	telling->n++;
	r = set(mount, telling->offline, &state);
	silent = r < 0 ? why_not(r) : why_silent(state);
	if (r == 0 || (r == -EROFS && telling->offline)) {
		report(telling, mount, silent);
		status = !silent == !telling->offline ? CTL_DONE : CTL_REFUSED;
	} else {
		bid_error("%s: '%s'", silent, mount->point);
		status = r == -EROFS || r == -EACCES || r == -EPERM || r == -EOPNOTSUPP ? CTL_REFUSED : CTL_TROUBLE;
	}
	if (status > telling->status)
		telling->status = status;
	json_decref(state);
	return 0;
}

/* Those at @path, or all. */
static void tell_each(struct telling *telling, const char *path)
{
	bid_auto_free char *real = path ? realpath(path, NULL) : NULL;
	size_t before = telling->n;
	int r;

	/* of a daemon that is gone even this fails, and then the name as it was given will do */
	telling->only = real ? real : path;
	r = ctl_each_mount(CTL_MOUNTINFO, tell, telling);
	telling->only = NULL;
	if (r < 0) {
		bid_error("%s: '" CTL_MOUNTINFO "'", strerror(-r));
		telling->status = CTL_TROUBLE;
		return;
	}
	if (telling->n > before)
		return;
	if (path)
		bid_error("no mount of bidfs: '%s'", path);
	else
		bid_error("no mount of bidfs");
	if (telling->status < CTL_REFUSED)
		telling->status = CTL_REFUSED;
}

enum ctl_status ctl_offline(const struct ctl *ctl, int argc, char **argv)
{
	struct telling telling = { .offline = strcmp(argv[0], "on") == 0 };

	if (!telling.offline && strcmp(argv[0], "off") != 0)
		return ctl_usage("neither 'on' nor 'off': '%s'", argv[0]);
	telling.all = ctl->json ? json_array() : NULL;
	/* a child of ours must not write out what we have in the buffer */
	fflush(stdout);
	for (int i = 1; i < argc; i++)
		tell_each(&telling, argv[i]);
	if (argc == 1)
		tell_each(&telling, NULL);
	if (ctl->json && ctl_print_json(telling.all) < 0)
		telling.status = CTL_TROUBLE;
	return telling.status;
}
