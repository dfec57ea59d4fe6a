// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packs of records: each record in them as those that have a file, and each pack as a whole. */
#include "disk/verify/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "disk/layout.h"
#include "disk/pack/packs_list.h"
#include "disk/record.h"
#include "disk/record_amend.h"
#include "disk/record_text.h"
#include "disk/root.h"
#include "disk/store.h"

enum { PATH_SIZE = sizeof(BID_LAYOUT_PACKS) + BID_PACKS_NAME };

/* The records of one pack that one thread looks at. */
struct slice {
	struct bid_verify *verify;
	const struct bid_record_fans *fans;
	char path[PATH_SIZE];
};

bool bid_verify_void(struct bid_verify *verify, const struct bid_request *request)
{
	bid_record_drop(verify->store, request);
	return bid_record_is_void(verify->store, request) && bid_record_amends_void(verify->amends, request) == 0;
}

static const char *path_of(const char *name, char buf[static PATH_SIZE])
{
	snprintf(buf, PATH_SIZE, BID_LAYOUT_PACKS "/%.*s", BID_PACKS_NAME - 1, name);
	return buf;
}

static int check_packed(void *user, const struct bid_pack_entry *entry, char *text)
{
	const struct slice *slice = user;
	struct bid_verify *verify = slice->verify;
	json_t *json = text ? json_loadb(text, entry->len, 0, NULL) : NULL;
	struct bid_request request;
	int r = 0;

	/* a damaged one is found with its pack; and one with a file of its own counts no more */
	if (bid_record_says(json, &request) && bid_verify_wants(verify, &request.id) &&
	    !bid_record_has_own(verify->store, slice->fans, &request))
		r = bid_verify_record(verify, slice->path, &request, json);
	json_decref(json);
	return r == 0 ? bid_verify_progress(verify) : r;
}

int bid_verify_packs(struct bid_verify *verify)
{
	bid_auto_packs struct bid_packs_list *list = bid_packs_list(verify->store);
	struct bid_record_fans fans;
	int r = 0;

	if (!list)
		return 0;
	bid_record_fans(verify->store, &fans);
	for (unsigned first = 0; r == 0 && first < BID_VERIFY_FANS; first++) {
		if (!bid_verify_claim(verify, BID_VERIFY_PACKS, (uint8_t)first))
			continue;
		for (size_t i = 0; r == 0 && i < list->n; i++) {
			struct slice slice = { .verify = verify, .fans = &fans };

			path_of(list->packs[i]->name, slice.path);
			r = bid_pack_each(&list->packs[i]->pack, first, check_packed, &slice);
			/* that it cannot be read is told with the pack */
			r = r < 0 && r != -ENOMEM ? 0 : r;
		}
	}
	return r;
}

static int note_damage(void *user, const struct bid_pack_entry *entry, char *text)
{
	return text ? 0 : -EBADMSG;
}

/* Returns 0, -EBADMSG if something is wrong in it, -EPROTONOSUPPORT if it is none of ours, or as open(2) and pread(2). */
static int judge(int dir, const char *name)
{
	bid_cleanup(bid_pack_release) struct bid_pack pack = BID_PACK_NONE;
	bid_auto_fd int fd = -1;
	int r = bid_root_open(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);

	if (r == -ENOENT)
		return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? -EBADMSG : 0;
	if (r == 0)
		r = bid_pack_open(fd, &pack);
	if (r < 0)
		return r == -EISDIR ? -EBADMSG : r;
	bid_steal_fd(&fd);
	r = bid_pack_check(&pack);
	return r < 0 ? r : bid_pack_each(&pack, BID_PACK_ALL, note_damage, NULL);
}

static int check_pack(struct bid_verify *verify, int dir, const char *name)
{
	char path[PATH_SIZE];
	struct bid_finding finding = { .kind = BID_FINDING_RECORD, .path = path_of(name, path), .text = "is damaged" };
	int r = judge(dir, name);

	if (r == 0 || r == -ENOMEM)
		return r;
	if (r == -EPROTONOSUPPORT) {
		verify->stats.foreign++;
		return 0;
	}
	if (r != -EBADMSG) {
		finding.kind = BID_FINDING_UNREADABLE;
		finding.text = strerror(-r);
	}
	/* what is sound in it goes into another */
	finding.repaired = r == -EBADMSG && verify->config->repair && bid_packs_mend(verify->store, name) == 0;
	return bid_verify_found(verify, &finding);
}

int bid_verify_packs_whole(struct bid_verify *verify)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r = bid_root_opendir(bid_store_root(verify->store), BID_LAYOUT_PACKS, &dir);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (bid_packs_is_name(entry->d_name))
			r = check_pack(verify, dirfd(dir), entry->d_name);
		else
			verify->stats.foreign++;
	}
	return r != 0 ? r : -errno;
}
