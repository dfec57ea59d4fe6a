// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include <bid/evict.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "disk/dirs.h"
#include "disk/layout.h"
#include "disk/lock_file.h"
#include "disk/pack/packs.h"
#include "disk/publish/temp.h"
#include "disk/record_name.h"
#include "disk/record_text.h"
#include "disk/root.h"
#include "disk/store.h"

enum {
	MAX_RECORD = 64 * 1024, /* bytes */
	VOID = 1, /* an empty file: what packs say of it is no more */
	LOCK_TRIES = 50, /* for one that is about to be removed */
	LOCK_PAUSE_NS = 1000 * 1000,
};

static struct bid_pack_key key_of(const struct bid_request *request)
{
	struct bid_id filed = bid_layout_filed(&request->id);

	return bid_pack_key(&filed, request->kind);
}

/* The directory and the name of a record; the directory is made if @make. */
static int open_place(struct bid_store *store, const struct bid_request *request, bool make, struct bid_dir *ret_dir,
		      char name[static BID_LAYOUT_MAX])
{
	struct bid_id filed = bid_layout_filed(&request->id);
	char path[BID_LAYOUT_MAX], suffix[BID_RECORD_SUFFIX_MAX];
	char *slash;

	bid_layout_fanned(BID_LAYOUT_RECORDS, &filed, bid_record_suffix(request, suffix), path);
	slash = strrchr(path, '/');
	*slash = '\0';
	memcpy(name, slash + 1, strlen(slash + 1) + 1);
	return bid_dir_open(store, path, make, NULL, ret_dir);
}

/*
 * Write @text as @name in @dir: in the place of what has that name, or -EEXIST if anything has. The latter is much cheaper, where
 * files without a name are to be had. With @times, it looks as if last written then.
 */
static int write_text(struct bid_store *store, const char *text, const struct timespec *times, int dir, const char *name,
		      bool replace)
{
	struct bid_temp temp = BID_TEMP_NONE;
	int r = bid_temp_new(store, replace, &temp);

	if (r == 0)
		r = bid_pwrite_full(temp.fd, text, strlen(text), 0);
	if (r == 0 && (fchmod(temp.fd, 0644) < 0 || (times && futimens(temp.fd, times) < 0)))
		r = -errno;
	if (r == 0)
		r = replace ? bid_temp_replace(store, &temp, dir, name) : bid_temp_link(&temp, dir, name);
	bid_temp_release(&temp);
	return r;
}

/*
 * Open the empty file @name, and lock it: with the lock it is the one that has the name, until who has it gives it another. -EBUSY
 * for a record, -EAGAIN if somebody else has the lock, or had it until now.
 */
static int lock_void(int dir, const char *name, int *ret_fd)
{
	bid_auto_fd int fd = -1;
	struct stat st, there;
	int r = bid_root_open(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, &fd);

	if (r < 0)
		return r;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 || fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (st.st_size > 0)
		return -EBUSY;
	if (st.st_ino != there.st_ino || st.st_dev != there.st_dev)
		return -EAGAIN;
	*ret_fd = bid_steal_fd(&fd);
	return 0;
}

/*
 * Write @text in the place of what is called @name. Not of an empty file that somebody is about to remove: what came to that name
 * would go. Who may read the file may also hold the lock, for ever; so it is waited for as long as to remove takes, and some more.
 */
static int replace_text(struct bid_store *store, const char *text, const struct timespec *times, int dir, const char *name)
{
	bid_auto_fd int fd = -1;
	int locked = -EAGAIN;

	for (int i = 0; locked == -EAGAIN && i < LOCK_TRIES; i++) {
		struct stat st;

		if (i > 0)
			nanosleep(&(struct timespec){ .tv_nsec = LOCK_PAUSE_NS }, NULL);
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_size > 0)
			break;
		locked = lock_void(dir, name, &fd);
	}
	return write_text(store, text, times, dir, name, true);
}

/* Write @text as the record of @request. With @times, it looks as if last written then. */
static int put_text(struct bid_store *store, const struct bid_request *request, const char *text, const struct timespec *times)
{
	char name[BID_LAYOUT_MAX];
	bid_auto_kept struct bid_dir dir = BID_DIR_NONE;
	int r = open_place(store, request, true, &dir, name);

	if (r < 0)
		return r;
	r = times ? -EEXIST : write_text(store, text, NULL, dir.fd, name, false);
	return r == -EEXIST ? replace_text(store, text, times, dir.fd, name) : r;
}

/* The same of @json, which is taken over. */
static int put(struct bid_store *store, const struct bid_request *request, json_t *json, const struct timespec *times)
{
	bid_auto_free char *text = NULL;
	int r = bid_record_print(json, &text);

	return r < 0 ? r : put_text(store, request, text, times);
}

int bid_record_write_text(struct bid_store *store, const struct bid_request *request, const char *text)
{
	return put_text(store, request, text, NULL);
}

int bid_record_write(struct bid_store *store, const struct bid_record *record)
{
	return put(store, &record->request, bid_record_json(record), NULL);
}

int bid_record_set(struct bid_store *store, const struct bid_request *request, const char *key, const char *value)
{
	bid_auto_fd int lock = bid_store_lock(store, true);
	struct stat st;
	bool own;
	json_t *json;
	int r;

	/* one out of a pack gets a file of its own, whose times say nothing */
	own = bid_record_stat(store, request, &st) == 0;
	r = bid_record_read(store, request, &json);
	if (r < 0)
		return r;
	bid_record_set_string(json, key, value);
	/* the time of the last use stays */
	return put(store, request, json, own ? (struct timespec[]){ st.st_atim, st.st_mtim } : NULL);
}

static bool says_fetched(const json_t *json)
{
	const char *how = json_string_value(json_object_get(json, "how"));

	return how && strcmp(how, "fetched") == 0;
}

int bid_record_is_fetched(struct bid_store *store, const struct bid_request *request)
{
	json_t *json;
	int r = bid_record_read(store, request, &json);

	if (r < 0)
		return r;
	r = says_fetched(json);
	json_decref(json);
	return r;
}

int bid_record_claim(struct bid_store *store, const struct bid_request *request)
{
	json_t *json;
	int r = bid_record_read(store, request, &json);

	if (r < 0)
		return r;
	if (!says_fetched(json)) {
		json_decref(json);
		return 0;
	}
	bid_record_set_string(json, "how", "added");
	r = put(store, request, json, NULL);
	if (r < 0) {
		/* nothing evicts what has no record */
		bid_record_drop(store, request);
		r = bid_record_is_fetched(store, request) > 0 ? r : 0;
	}
	return r;
}

int bid_record_stat(struct bid_store *store, const struct bid_request *request, struct stat *ret_stat)
{
	char name[BID_LAYOUT_MAX];
	bid_auto_kept struct bid_dir dir = BID_DIR_NONE;
	int r = open_place(store, request, false, &dir, name);

	if (r < 0)
		return r;
	return fstatat(dir.fd, name, ret_stat, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

bool bid_record_is_void(struct bid_store *store, const struct bid_request *request)
{
	struct stat st;

	return bid_record_stat(store, request, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
}

int bid_record_unvoid(struct bid_store *store, const struct bid_request *request)
{
	bid_auto_kept struct bid_dir dir = BID_DIR_NONE;
	char name[BID_LAYOUT_MAX];
	bid_auto_fd int fd = -1;
	int r = open_place(store, request, false, &dir, name);

	if (r == 0)
		r = lock_void(dir.fd, name, &fd);
	if (r == 0 && unlinkat(dir.fd, name, 0) < 0)
		r = -errno;
	return r;
}

int bid_record_used(struct bid_store *store, const struct bid_request *request, time_t if_before)
{
	char name[BID_LAYOUT_MAX];
	bid_auto_kept struct bid_dir dir = BID_DIR_NONE;
	struct stat st;
	int r;

	r = open_place(store, request, false, &dir, name);
	if (r < 0)
		return r;
	if (fstatat(dir.fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (st.st_mtim.tv_sec >= if_before || !S_ISREG(st.st_mode))
		return 0;
	return bid_touch(dir.fd, name, NULL);
}

static int each_in(struct bid_store *store, unsigned first,
		   int (*fn)(void *user, const struct bid_request *request, const struct stat *st), void *user)
{
	char path[sizeof(BID_LAYOUT_RECORDS) + 4], hex[4];
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r;

	snprintf(hex, sizeof(hex), "%02x", first & 0xff);
	snprintf(path, sizeof(path), BID_LAYOUT_RECORDS "/%s", hex);
	r = bid_root_opendir(bid_store_root(store), path, &dir);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		struct bid_request request;
		struct bid_detail *detail = NULL;
		struct stat st;

		if (!bid_record_parse_name(hex, entry->d_name, &request) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		    (bid_kind_has_detail(request.kind) && bid_record_detail(store, hex, entry->d_name, &detail) < 0))
			continue;
		request.detail = detail;
		r = fn(user, &request, &st);
		bid_detail_unref(detail);
	}
	return r != 0 ? r : -errno;
}

int bid_record_each(struct bid_store *store, int (*fn)(void *user, const struct bid_request *request, const struct stat *st),
		    void *user)
{
	int r = 0;

	for (unsigned first = 0; r == 0 && first < 256; first++)
		r = each_in(store, first, fn, user);
	return r;
}

/* The record called @name in @dir. 0, VOID, or a negative errno. */
static int read_named(int dir, const char *name, json_t **ret_json)
{
	bid_auto_fd int fd = -1;
	bid_auto_free char *text = NULL;
	size_t len;
	int r;

	r = bid_root_open(dir, name, O_RDONLY | O_NONBLOCK, &fd);
	if (r == 0)
		r = bid_read_file(fd, MAX_RECORD, &text, &len);
	if (r < 0)
		return r == -EFBIG || r == -EISDIR ? -EBADMSG : r;
	return len == 0 ? VOID : bid_record_parse(text, len, ret_json);
}

/* A file of its own goes before what packs have. */
static int read_own(struct bid_store *store, const struct bid_request *request, json_t **ret_json)
{
	char name[BID_LAYOUT_MAX];
	bid_auto_kept struct bid_dir dir = BID_DIR_NONE;
	int r = open_place(store, request, false, &dir, name);

	return r < 0 ? r : read_named(dir.fd, name, ret_json);
}

static int read_packed(struct bid_store *store, const struct bid_request *request, json_t **ret_json)
{
	struct bid_pack_key key = key_of(request);
	bid_auto_free char *text = NULL;
	size_t len;
	int r = bid_packs_find(store, &key, &text, &len);

	return r < 0 ? r : bid_record_parse_packed(text, len, request, ret_json);
}

int bid_record_read(struct bid_store *store, const struct bid_request *request, json_t **ret_json)
{
	int r = read_own(store, request, ret_json);

	if (request->detail)
		return r == VOID ? -EBADMSG : r;
	if (r == -ENOENT)
		return read_packed(store, request, ret_json);
	return r == VOID ? -ENOENT : r;
}

int bid_record_detail(struct bid_store *store, const char *first, const char *name, struct bid_detail **ret_detail)
{
	char path[sizeof(BID_LAYOUT_RECORDS) + 4];
	struct bid_request request;
	bid_auto_fd int dir = -1;
	struct bid_detail *detail;
	const char *text;
	json_t *json;
	int r;

	if (!bid_record_parse_name(first, name, &request) || !bid_kind_has_detail(request.kind))
		return -EBADMSG;
	snprintf(path, sizeof(path), BID_LAYOUT_RECORDS "/%.2s", first);
	r = bid_root_open(bid_store_root(store), path, O_PATH | O_DIRECTORY, &dir);
	if (r == 0)
		r = read_named(dir, name, &json);
	if (r != 0)
		return r == VOID ? -EBADMSG : r;
	text = json_string_value(json_object_get(json, "detail"));
	r = -EBADMSG;
	if (text)
		r = (request.kind == BID_KIND_SOURCE ? bid_detail_source : bid_detail_section)(text, &detail);
	json_decref(json);
	if (r < 0)
		return r == -EINVAL ? -EBADMSG : r;
	request.detail = detail;
	if (!bid_record_has_name(&request, name)) {
		bid_detail_unref(detail);
		return -EBADMSG;
	}
	*ret_detail = detail;
	return 0;
}

void bid_record_fans(struct bid_store *store, struct bid_record_fans *ret_fans)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r = bid_root_opendir(bid_store_root(store), BID_LAYOUT_RECORDS, &dir);

	/* one that cannot be read is looked into */
	memset(ret_fans, r < 0 && r != -ENOENT, sizeof(*ret_fans));
	for (errno = 0; r == 0 && (entry = readdir(dir));) {
		struct bid_id first;

		if (bid_id_parse_str(entry->d_name, &first) == 0 && first.len == 1)
			ret_fans->any[first.bytes[0]] = true;
	}
	if (r == 0 && errno != 0)
		memset(ret_fans, true, sizeof(*ret_fans));
}

bool bid_record_has_own(struct bid_store *store, const struct bid_record_fans *fans, const struct bid_request *request)
{
	struct stat st;

	return fans->any[request->id.bytes[0]] && bid_record_stat(store, request, &st) != -ENOENT;
}

/* Is it in a pack? No piece is. */
static bool is_packed(struct bid_store *store, const struct bid_request *request)
{
	struct bid_pack_key key = key_of(request);

	return !request->detail && bid_packs_find(store, &key, NULL, NULL) != -ENOENT;
}

bool bid_record_exists(struct bid_store *store, const struct bid_request *request)
{
	struct stat st;
	int r = bid_record_stat(store, request, &st);

	return r == -ENOENT ? is_packed(store, request) : r < 0 || st.st_size > 0;
}

void bid_record_drop(struct bid_store *store, const struct bid_request *request)
{
	char name[BID_LAYOUT_MAX];
	bid_auto_kept struct bid_dir dir = BID_DIR_NONE;

	/* a pack is never changed: what is in it is voided */
	if (is_packed(store, request))
		put_text(store, request, "", NULL);
	else if (open_place(store, request, false, &dir, name) == 0)
		unlinkat(dir.fd, name, 0);
}
