// SPDX-License-Identifier: LGPL-2.1-or-later
#include "ctl/cover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/mount.h"
#include "ctl/mounts.h"

/* Does @mount have the number at @id, and does its daemon say nothing? */
static int is_silent_cover(void *user, const struct ctl_mount *mount)
{
	const uint64_t *id = user;
	bid_auto_free char *text = NULL;

	return mount->id == *id && ctl_mount_status(mount, CTL_MOUNT_TIMEOUT_MS, &text) == -ETIMEDOUT;
}

bool ctl_cover_is_silent(const char *path)
{
	struct statx stx;
	uint64_t id;

	/* which mount it is in the kernel knows by itself */
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_MNT_ID, &stx) < 0 || !(stx.stx_mask & STATX_MNT_ID))
		return false;
	id = stx.stx_mnt_id;
	return ctl_each_mount(CTL_MOUNTINFO, is_silent_cover, &id) > 0;
}

json_t *ctl_cover_state(const char *path)
{
	bid_auto_free char *text = NULL;
	struct ctl_mount mount = { 0 };
	json_t *state = NULL;

	if (!bid_is_mount(path))
		return NULL;
	snprintf(mount.point, sizeof(mount.point), "%s", path);
	if (ctl_mount_status(&mount, CTL_MOUNT_TIMEOUT_MS, &text) == 0)
		state = json_loads(text, 0, NULL);
	return state ? state : json_object();
}

static const char *string_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

bool ctl_cover_is_sure(const json_t *state, const struct bid_request *request, int64_t since)
{
	json_t *sources = json_object_get(state, "sources"), *flights = json_object_get(state, "flights"), *one;
	json_t *failures = json_object_get(state, "failures");
	char hex[BID_ID_HEX_MAX];
	size_t i;

	bid_id_format(&request->id, hex);
	json_array_foreach(sources, i, one) if (strcmp(string_of(one, "breaker"), "closed") != 0) return false;
	json_array_foreach(flights, i, one) if (strcmp(string_of(one, "id"), hex) == 0) return false;
	/* of several that say the same only the last one's id is told */
	json_array_foreach(failures, i, one) if (json_integer_value(json_object_get(one, "last_time")) >= since) return false;
	return sources && flights && failures;
}
