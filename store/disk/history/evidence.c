// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/history/evidence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/elf.h"
#include "base/io.h"
#include "base/json.h"
#include "disk/layout.h"
#include "disk/root.h"
#include "disk/store.h"

enum {
	MAX_KEPT = 1 << 20, /* bytes of one file: what it is shows at its beginning */
	MAX_COUNT = 64,
	TRIES = 100,
};

#define SUFFIX ".json"

/* Is @name that of a piece of evidence, which has its file beside it under the same name without the suffix? */
static bool is_evidence(const char *name)
{
	size_t len = strlen(name);

	return len > strlen(SUFFIX) && strcmp(name + len - strlen(SUFFIX), SUFFIX) == 0;
}

/* What nobody can have put there but us: evidence, and its file. */
static int drop(int dir, const char *name)
{
	char file[NAME_MAX + 1];

	snprintf(file, sizeof(file), "%.*s", (int)(strlen(name) - strlen(SUFFIX)), name);
	if (unlinkat(dir, file, 0) < 0 && errno != ENOENT)
		return -errno;
	return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/*
 * When was the file @name of ours set aside (quarantine.h)? "ID.KIND.TIME" or "COOKIE.cookie.TIME", perhaps with a number behind
 * it. Returns false if it is none, as that of a piece of evidence in @dir.
 */
static bool is_set_aside(int dir, const char *name, int64_t *ret_time)
{
	char json_name[NAME_MAX + sizeof(SUFFIX)], kind[16];
	long long seconds;
	unsigned number;
	int end = 0;

	if (sscanf(name, "%*[0-9a-f-].%15[a-z].%lld%n.%u%n", kind, &seconds, &end, &number, &end) < 2 || name[end] != '\0')
		return false;
	snprintf(json_name, sizeof(json_name), "%s" SUFFIX, name);
	*ret_time = seconds;
	return faccessat(dir, json_name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

/*
 * How many pieces there are, and the oldest of them. Those written before @before are dropped, and so are files that were set aside
 * before, by their names, because they keep the time that they had.
 */
struct survey {
	int64_t before;
	bool dry_run;
	unsigned n, dropped;
	unsigned n_aside;
	struct timespec oldest_time;
	char oldest[NAME_MAX + 1];
};

static bool is_older(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static int survey(struct bid_store *store, struct survey *survey)
{
	bid_auto_dir DIR *dir = NULL;
	struct dirent *entry;
	int r = bid_root_opendir(bid_store_root(store), BID_LAYOUT_QUARANTINE, &dir);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (errno = 0; (entry = readdir(dir)); errno = 0) {
		struct stat st;
		int64_t at;

		/* the file of a piece that was just dropped may still be listed */
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (is_set_aside(dirfd(dir), entry->d_name, &at)) {
			bool gone = at < survey->before && (survey->dry_run || unlinkat(dirfd(dir), entry->d_name, 0) == 0);

			*(gone ? &survey->dropped : &survey->n_aside) += 1;
			continue;
		}
		if (!is_evidence(entry->d_name))
			continue;
		if (st.st_mtim.tv_sec < survey->before && (survey->dry_run || drop(dirfd(dir), entry->d_name) == 0)) {
			survey->dropped++;
			continue;
		}
		if (survey->n++ == 0 || is_older(&st.st_mtim, &survey->oldest_time)) {
			survey->oldest_time = st.st_mtim;
			memcpy(survey->oldest, entry->d_name, strlen(entry->d_name) + 1);
		}
	}
	return -errno;
}

static int make_room(struct bid_store *store, int dir)
{
	/* as many as somebody else may have left, and no endless race with one who adds */
	for (int i = 0; i < MAX_COUNT; i++) {
		struct survey found = { .before = INT64_MIN };
		int r = survey(store, &found);

		if (r < 0 || found.n < MAX_COUNT)
			return r;
		r = drop(dir, found.oldest);
		if (r < 0)
			return r;
	}
	return 0;
}

static void set_text(json_t *json, const char *key, const char *value)
{
	if (value)
		json_object_set_new(json, key, bid_json_text(value));
}

static json_t *to_json(const struct bid_request *request, int fd, uint64_t size, const struct bid_evidence *evidence)
{
	json_t *json = json_pack("{s:I, s:I, s:I}", "received", (json_int_t)size, "kept",
				 (json_int_t)(size < MAX_KEPT ? size : MAX_KEPT), "time", (json_int_t)time(NULL));
	char hex[BID_ID_HEX_MAX];
	struct bid_id id;

	set_text(json, "id", bid_id_format(&request->id, hex));
	set_text(json, "kind", bid_kind_name(request->kind));
	set_text(json, "reason", evidence->reason);
	set_text(json, "server", evidence->origin->server);
	set_text(json, "url", evidence->origin->url);
	set_text(json, "file", evidence->origin->file);
	set_text(json, "archive", evidence->origin->archive);
	if (evidence->announced != UINT64_MAX)
		json_object_set_new(json, "announced", json_integer((json_int_t)evidence->announced));
	if (bid_elf_identify(fd, &id) == 0)
		set_text(json, "id_found", bid_id_format(&id, hex));
	return json;
}

/* Write @json as @name in @dir. */
static int write_json(struct bid_store *store, json_t *json, int dir, const char *name)
{
	bid_auto_free char *text = bid_json_dump(json, JSON_INDENT(1));
	struct bid_temp temp = BID_TEMP_NONE;
	int r = text ? bid_temp_new(store, false, &temp) : -ENOMEM;

	if (r == 0)
		r = bid_pwrite_full(temp.fd, text, strlen(text), 0);
	if (r == 0)
		r = bid_temp_link(&temp, dir, name);
	bid_temp_release(&temp);
	return r;
}

/* The text first: what has none is not known as evidence, and would never make room. -EEXIST if either has that name. */
static int keep_as(struct bid_store *store, struct bid_temp *temp, json_t *json, int dir, const char *name)
{
	char json_name[NAME_MAX + 1];
	int r;

	snprintf(json_name, sizeof(json_name), "%.200s" SUFFIX, name);
	r = write_json(store, json, dir, json_name);
	if (r < 0)
		return r;
	r = bid_temp_link(temp, dir, name);
	if (r < 0)
		unlinkat(dir, json_name, 0);
	return r;
}

int bid_evidence_keep(struct bid_store *store, const struct bid_request *request, struct bid_temp *temp, uint64_t size,
		      const struct bid_evidence *evidence)
{
	char hex[BID_ID_HEX_MAX], name[NAME_MAX + 1];
	bid_auto_fd int dir = -1;
	json_t *json;
	int r = bid_root_mkdirs(bid_store_root(store), BID_LAYOUT_QUARANTINE, false, &dir);

	if (r == 0)
		r = make_room(store, dir);
	if (r < 0)
		return r;
	json = to_json(request, temp->fd, size, evidence);
	r = -EEXIST;
	if (ftruncate(temp->fd, size < MAX_KEPT ? (off_t)size : MAX_KEPT) < 0 || fchmod(temp->fd, 0400) < 0)
		r = -errno;
	for (unsigned i = 0; r == -EEXIST && i < TRIES; i++) {
		snprintf(name, sizeof(name), "%s.%s.%lld.%u", bid_id_format(&request->id, hex), bid_kind_name(request->kind),
			 (long long)time(NULL), i);
		r = keep_as(store, temp, json, dir, name);
	}
	json_decref(json);
	return r;
}

int bid_evidence_forget(struct bid_store *store, int64_t before, bool dry_run, unsigned *left, unsigned *gone)
{
	struct survey found = { .before = before, .dry_run = dry_run };
	int r = survey(store, &found);

	*left += found.n + found.n_aside;
	*gone += found.dropped;
	return r;
}
