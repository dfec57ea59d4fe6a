// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/links.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/lock_file.h"
#include "disk/store.h"
#include "disk/verify/verify.h"

/* Remove a link that leads nowhere or to another id, unless it was repaired meanwhile. */
static bool remove_link(struct bid_verify *verify, const struct bid_id *filed, const char *target)
{
	bid_auto_fd int lock = bid_store_lock(verify->store, true);
	char now[PATH_MAX];
	enum bid_link_state state = bid_link_look(verify->store, filed, now);

	if ((state != BID_LINK_DANGLING && state != BID_LINK_MISMATCHED) || bid_link_drop(verify->store, filed, target) < 0)
		return state == BID_LINK_GOOD;
	verify->unlinked = true;
	return true;
}

/* Check the link of @filed in the directory open at @fan. */
static int check_link(struct bid_verify *verify, int fan, const struct bid_id *filed)
{
	char link[BID_LAYOUT_MAX], target[PATH_MAX], text[PATH_MAX + 64];
	struct bid_request request = { .id = *filed, .kind = BID_KIND_ELF };
	struct bid_finding finding = { .path = bid_layout_link(filed, link), .request = { .id = *filed }, .text = text };
	bool right;

	if (bid_verify_is_linked(verify, filed)) {
		verify->stats.links++;
		return 0;
	}
	switch (bid_link_look_in(verify->store, fan, filed, target)) {
	case BID_LINK_NONE:
		return 0;
	case BID_LINK_GOOD:
		verify->stats.links++;
		return 0;
	case BID_LINK_FILE:
		verify->stats.links++;
		return bid_verify_object(verify, bid_store_root(verify->store), link, link, &request, &right);
	case BID_LINK_DANGLING:
		finding.kind = BID_FINDING_DANGLING;
		snprintf(text, sizeof(text), "leads to '%s', which is not there", target);
		break;
	case BID_LINK_MISMATCHED:
		finding.kind = BID_FINDING_MISMATCHED;
		snprintf(text, sizeof(text), "leads to '%s', which is not of this id", target);
		break;
	case BID_LINK_FOREIGN:
		finding.kind = BID_FINDING_FOREIGN_LINK;
		snprintf(text, sizeof(text), "does not have the form '../../PATH/ID'");
		break;
	case BID_LINK_ODD:
		finding.kind = BID_FINDING_FOREIGN_LINK;
		snprintf(text, sizeof(text), "is neither a link nor a file");
		break;
	}
	verify->stats.links++;
	if (verify->config->repair && (finding.kind == BID_FINDING_DANGLING || finding.kind == BID_FINDING_MISMATCHED))
		finding.repaired = remove_link(verify, filed, target);
	return bid_verify_found(verify, &finding);
}

/* One directory of links; @path is its name. */
static int check_fan(struct bid_verify *verify, const char *path, const char *first)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r;

	r = bid_beneath_opendir(bid_store_root(verify->store), path, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		char hex[2 + NAME_MAX + 1];
		struct bid_id id;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(hex, sizeof(hex), "%.2s%s", first, entry->d_name);
		if (!bid_entry_name(hex, &id))
			verify->stats.foreign++;
		else
			r = check_link(verify, dirfd(dir), &id);
		if (r == 0)
			r = bid_verify_progress(verify);
	}
	return r != 0 ? r : -errno;
}

int bid_verify_links(struct bid_verify *verify)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r = 0;

	for (size_t i = 0; r == 0 && verify->worker == 0 && i < verify->wanted->n; i++) {
		const struct bid_id *filed = &verify->wanted->members[i].filed;
		int fan = bid_verify_fan(verify, filed);

		r = fan < 0 ? 0 : check_link(verify, fan, filed);
	}
	if (r != 0 || verify->config->ids)
		return r;

	r = bid_beneath_opendir(bid_store_root(verify->store), BID_LAYOUT_LINKS, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		char path[sizeof(BID_LAYOUT_LINKS) + NAME_MAX + 1];
		struct bid_id first;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", BID_LAYOUT_LINKS, entry->d_name);
		if (!bid_entry_name(entry->d_name, &first) || first.len != 1)
			verify->stats.foreign += verify->worker == 0;
		else if (bid_verify_claim(verify, BID_VERIFY_LINKS, first.bytes[0]))
			r = check_fan(verify, path, entry->d_name);
	}
	return r != 0 ? r : -errno;
}
