// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl unarchive */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/archive.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

enum { SHOWN_MAX = 20 }; /* refused members with a line of their own: an archive may consist of nothing else */

struct unarchiving {
	const struct ctl *ctl;
	struct ctl_progress progress;
	uint64_t refused;
};

static const char *state_name(enum bid_member_state state)
{
	static const char *const names[] = {
		[BID_MEMBER_ADDED] = "added", [BID_MEMBER_KNOWN] = "known", [BID_MEMBER_REFUSED] = "refused"
	};

	return names[state];
}

static int show_member(void *user, const struct bid_archive_member *member)
{
	struct unarchiving *taking = user;
	ctl_progress_clear(&taking->progress);
	if (member->state == BID_MEMBER_REFUSED && ++taking->refused <= SHOWN_MAX)
		bid_warning("%s: '%s'", member->why, member->name);
	if (taking->ctl->json || (taking->ctl->verbose && member->state != BID_MEMBER_REFUSED))
		return ctl_row(taking->ctl, CTL_ID("id", 40, &member->id), CTL_KIND("kind", 9, member->kind),
			       CTL_STATE("state", 14, state_name(member->state)), CTL_SIZE("size", CTL_HIDDEN, member->size),
			       CTL_TEXT("name", 0, member->name),
			       CTL_TEXT("reason", CTL_HIDDEN, member->state == BID_MEMBER_REFUSED ? member->why : NULL));
	return 0;
}

static int draw_progress(void *user, uint64_t done, uint64_t total)
{
	struct unarchiving *taking = user;
	char read[CTL_SIZE_MAX], size[CTL_SIZE_MAX];

	ctl_progress_text(&taking->progress, "unpacking: %s%s%s", ctl_format_size(done, read), total ? " of " : "",
			  total ? ctl_format_size(total, size) : "");
	return 0;
}

static enum ctl_status report_error(const struct bid_store *store, const char *path, int error)
{
	switch (error) {
	case -ENOSPC:
	case -EDQUOT:
	case -EROFS:
		bid_error_about(path, error, "%s: store '%s'; bidctl added the files before that", bid_strerror(error),
				bid_store_path(store));
		return CTL_TROUBLE;
	case -EINVAL:
		bid_error_about(path, error,
				"not a tar archive, plain or packed once by bzip2, gzip, xz or zstd, or cut short before a file");
		return CTL_REFUSED;
	case -EBADMSG:
		bid_error_about(path, error, "damaged or cut short; bidctl added the files before that");
		return CTL_REFUSED;
	case -EFBIG:
		bid_error_about(path, error, "unpacks to far more than its size allows, so bidctl stopped reading");
		return CTL_REFUSED;
	default:
		bid_error_about(path, error, "%s", bid_strerror(error));
		return CTL_TROUBLE;
	}
}

static enum ctl_status unpack_archive(struct unarchiving *taking, struct bid_store *store, int fd, const char *path)
{
	struct bid_unpack_config config = { .member = show_member, .tick = draw_progress, .user = taking };
	struct bid_archive_counts counts;
	int r;

	r = bid_archive_unpack(store, fd, &config, &counts);
	ctl_progress_clear(&taking->progress);
	if (taking->refused > SHOWN_MAX)
		bid_warning("and %" PRIu64 " more refused files: '%s'", taking->refused - SHOWN_MAX, path);
	ctl_totals(taking->ctl, CTL_NUMBER("added", 0, counts.added), CTL_NUMBER("known", 0, counts.known),
		   CTL_NUMBER("refused", 0, counts.refused), CTL_SIZE("size", 0, counts.size));
	if (r < 0)
		return report_error(store, path, r);
	if (counts.added + counts.known + counts.refused == 0)
		bid_warning("no file in the layout of perf's cache: '%s'", path);
	return counts.refused > 0 || counts.added + counts.known == 0 ? CTL_REFUSED : CTL_DONE;
}

enum ctl_status ctl_unarchive(const struct ctl *ctl, int argc, char **argv)
{
	ctl_auto_store struct bid_store *store = NULL;
	struct unarchiving taking = { .ctl = ctl };
	bid_auto_fd int owned = -1;
	enum ctl_status status;
	int fd = STDIN_FILENO;

	if (strcmp(argv[0], "-") != 0) {
		fd = owned = open(argv[0], O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (fd < 0) {
			bool absent = errno == ENOENT;

			bid_error_about(argv[0], -errno, "%s", absent ? "no such file" : strerror(errno));
			return absent ? CTL_REFUSED : CTL_TROUBLE;
		}
	}
	status = ctl_open_store(ctl, CTL_WRITE, &store);
	return status == CTL_DONE ? unpack_archive(&taking, store, fd, argv[0]) : status;
}
