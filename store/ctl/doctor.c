// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl doctor */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/fetch.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/ctl.h"
#include "ctl/fetch_all.h"
#include "ctl/mounts.h"
#include "ctl/output.h"

enum { TEXT_MAX = 512 };

/* WISH: works, but could be better. */
enum result { WELL, WISH, BAD };

struct exam {
	const struct ctl *ctl;
	size_t counts[BAD + 1]; /* checks with each result */
};

/* Report one check. @remedy is NULL for a good result. */
static void report(struct exam *exam, enum result result, const char *check, const char *text, const char *remedy)
{
	static const char *const names[] = { [WELL] = "ok", [WISH] = "note", [BAD] = "bad" };

	exam->counts[result]++;
	if (exam->ctl->json || result != WELL || !exam->ctl->quiet)
		ctl_row(exam->ctl, CTL_TEXT("state", 5, names[result]), CTL_TEXT("check", 12, check), CTL_TEXT("reason", 0, text),
			CTL_TEXT("remedy", 0, remedy));
}

/* Does PATH have a program @name? */
static bool is_in_path(const char *name)
{
	const char *dir = getenv("PATH");
	char path[PATH_MAX];

	for (; dir && *dir; dir += strcspn(dir, ":"), dir += *dir == ':') {
		int len = snprintf(path, sizeof(path), "%.*s/%s", (int)strcspn(dir, ":"), dir, name);

		if (len < (int)sizeof(path) && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static void check_fuse(struct exam *exam)
{
	if (access("/dev/fuse", R_OK | W_OK) == 0)
		report(exam, WELL, "fuse", "/dev/fuse can be opened", NULL);
	else if (errno == ENOENT)
		report(exam, BAD, "fuse", "no /dev/fuse", "run 'modprobe fuse'; in a container, pass '--device /dev/fuse'");
	else
		report(exam, BAD, "fuse", "/dev/fuse: permission denied", "allow the user read and write access to /dev/fuse");
	if (geteuid() == 0)
		report(exam, WELL, "privilege", "root needs no fusermount3", NULL);
	else if (is_in_path("fusermount3"))
		report(exam, WELL, "privilege", "fusermount3 is in PATH", NULL);
	else
		report(exam, BAD, "privilege", "no fusermount3 in PATH", "install the package fuse3");
	if (is_in_path("mount.bidfs"))
		report(exam, WELL, "mount.bidfs", "in PATH", NULL);
	else
		report(exam, WISH, "mount.bidfs", "not in PATH", "use 'bidctl mount', or add its directory to PATH");
}

static void check_passthrough(struct exam *exam)
{
	struct utsname system;
	unsigned major = 0, minor = 0;
	char text[TEXT_MAX];

	if (uname(&system) < 0 || sscanf(system.release, "%u.%u", &major, &minor) != 2)
		return;
	snprintf(text, sizeof(text), "Linux %u.%u ('bidctl status' shows whether a mount has it)", major, minor);
	if (major < 6 || (major == 6 && minor < 9))
		report(exam, WISH, "passthrough", text, "Linux 6.9 and libfuse 3.17 read stored files without the daemon");
	else if (geteuid() != 0)
		report(exam, WISH, "passthrough", "only root has it (CAP_SYS_ADMIN)", "mount as root for native reading speed");
	else
		report(exam, WELL, "passthrough", text, NULL);
}

static void check_store(struct exam *exam)
{
	char path[PATH_MAX], text[PATH_MAX + TEXT_MAX];

	if (ctl_store_path(exam->ctl, path, sizeof(path)) != CTL_DONE) {
		report(exam, BAD, "store", "perf's configuration or HOME names none", "correct ~/.perfconfig, or use '--store'");
		return;
	}
	if (access(path, W_OK) == 0) {
		report(exam, WELL, "store", path, NULL);
	} else if (errno == ENOENT) {
		snprintf(text, sizeof(text), "'%s' does not exist yet", path);
		report(exam, WISH, "store", text, "'bidctl add FILE' or 'bidctl mount' makes it");
	} else {
		snprintf(text, sizeof(text), "'%s' cannot be written: %s", path, strerror(errno));
		report(exam, WISH, "store", text, "bidctl downloads nothing into it - name another with '--store'");
	}
}

static int check_mount(void *user, const struct ctl_mount *mount)
{
	struct exam *exam = user;
	char text[2 * PATH_MAX + TEXT_MAX];
	json_t *state = NULL;
	bool removed;
	int r;

	if (!mount->whole)
		return 0;
	r = ctl_mount_state(mount, &state);
	removed = json_is_true(json_object_get(state, "store_removed"));
	json_decref(state);
	if (removed) {
		snprintf(text, sizeof(text), "'%s': its store '%s' is removed", mount->point, mount->source);
		report(exam, BAD, "mount", text, CTL_STORE_REMOVED);
		return 0;
	}
	snprintf(text, sizeof(text), "'%s'%s%s", mount->point, r < 0 ? ": " : "", r < 0 ? ctl_mount_trouble(r) : " answers");
	report(exam,
	       r == 0	      ? WELL
	       : r == -EACCES ? WISH
			      : BAD,
	       "mount", text,
	       r == 0	      ? NULL
	       : r == -EACCES ? "it is of another user, who can run 'bidctl status'"
			      : "unmount it with 'umount -l' or 'fusermount3 -uz', and mount it again");
	return 0;
}

#if BID_HAVE_FETCH

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	return remove(path);
}

/* Request a nonexistent build from @url, with a temporary store. */
static void check_server(struct exam *exam, const char *url)
{
	const char *temp = getenv("TMPDIR");
	char dir[PATH_MAX], text[PATH_MAX + TEXT_MAX];
	struct ctl ctl = { .urls = { .at = &url, .n = 1 }, .quiet = true };
	struct bid_artifact artifact = { .kind = BID_KIND_DEBUGINFO };
	bid_cleanup(ctl_wanted_release) struct ctl_wanted_list list = { 0 };
	bid_auto_free char *shown = bid_fetch_url_shown(url);
	ctl_auto_store struct bid_store *store = NULL;
	enum ctl_status status;
	int error = 0;

	snprintf(dir, sizeof(dir), "%s/bidctl-doctor.XXXXXX", temp ? temp : "/tmp");
	if (!mkdtemp(dir)) {
		snprintf(text, sizeof(text), "cannot check %s: '%s': %s", shown ? shown : "", dir, strerror(errno));
		report(exam, BAD, "server", text, "name a writable directory in TMPDIR");
		return;
	}
	ctl.store = dir;
	bid_id_parse_str("00000000000000000000000000000000b1df5000", &artifact.id);
	status = ctl_open_store(&ctl, CTL_WRITE, &store);
	if (status == CTL_DONE && ctl_want(&list, &artifact, NULL) == 0) {
		status = ctl_fetch_all(&ctl, store, &list, 0);
		error = list.wanted->error;
	}
	snprintf(text, sizeof(text), "%s",
		 list.n == 1 && list.wanted->why ? list.wanted->why : bid_strerror(error ? error : -EHOSTUNREACH));
	if (status != CTL_DONE || list.n == 0 || (error != 0 && error != -ENOENT))
		report(exam, BAD, "server", text, "check the URL, the network and http_proxy");
	else if (strstr(text, BID_FETCH_WEB_PAGE))
		report(exam, WISH, "server", text, "check the URL, unless it is a static tree: debuginfod answers in plain text");
	else
		report(exam, WELL, "server", shown ? shown : "", NULL);
	bid_store_free(store);
	store = NULL;
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void check_servers(struct exam *exam)
{
	char **urls = NULL;
	int n = (int)exam->ctl->urls.n;

	for (int i = 0; i < n; i++)
		check_server(exam, exam->ctl->urls.at[i]);
	if (n > 0)
		return;
	n = bid_fetch_urls_from_environment(NULL, &urls);
	for (int i = 0; i < n; i++)
		check_server(exam, urls[i]);
	if (n >= 0)
		bid_fetch_urls_free(urls);
	if (n <= 0)
		report(exam, WISH, "server", "no server is configured",
		       "set DEBUGINFOD_URLS, such as https://debuginfod.elfutils.org, or mount with '-o url=URL'");
}

#else

static void check_servers(struct exam *exam)
{
	report(exam, WISH, "server", "this bidctl is built without fetching", "build it with -Dfetch=enabled");
}

#endif

enum ctl_status ctl_doctor(const struct ctl *ctl, int argc, char **argv)
{
	struct exam exam = { .ctl = ctl };

	/* each check prints its own errors */
	bid_log_init("bidctl", BID_LOG_ERROR);
	check_fuse(&exam);
	check_passthrough(&exam);
	check_store(&exam);
	ctl_each_mount(check_mount, &exam);
	if (!ctl->offline)
		check_servers(&exam);
	ctl_totals(ctl, CTL_NUMBER("ok", CTL_HIDDEN, exam.counts[WELL]), CTL_NUMBER("note", CTL_HIDDEN, exam.counts[WISH]),
		   CTL_NUMBER("bad", CTL_HIDDEN, exam.counts[BAD]));
	return exam.counts[BAD] > 0 ? CTL_REFUSED : CTL_DONE;
}
