// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "api/evict.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "disk/beneath.h"
#include "disk/layout.h"
#include "disk/publish/temp.h"
#include "disk/store.h"

enum {
	MAX_RECORD = 64 * 1024, /* bytes */
	SUM_MAX = 24, /* bytes of the text of a sum, with its end; 16 are digits */
};

static enum bid_kind parse_suffix(const char *suffix)
{
	enum bid_kind kind = bid_kind_parse(suffix);

	/* an alias does not count */
	if (kind != BID_KIND_NONE)
		return strcmp(bid_kind_name(kind), suffix) == 0 ? kind : BID_KIND_NONE;
	for (int i = BID_KIND_SOURCE; i < BID_KIND_END; i++) {
		const char *name = bid_kind_name((enum bid_kind)i);
		size_t len = strlen(name);

		if (strncmp(suffix, name, len) == 0 && suffix[len] == '-' && strspn(suffix + len + 1, "0123456789abcdef") == 16 &&
		    suffix[len + 17] == '\0')
			return (enum bid_kind)i;
	}
	return BID_KIND_NONE;
}

bool bid_record_parse_name(const char *first, const char *name, struct bid_artifact *ret_artifact)
{
	const char *dot = strrchr(name, '.');
	char hex[2 + NAME_MAX + 1];

	if (!dot)
		return false;
	ret_artifact->kind = parse_suffix(dot + 1);
	ret_artifact->subpath = NULL;
	if (ret_artifact->kind == BID_KIND_NONE)
		return false;
	snprintf(hex, sizeof(hex), "%.2s%.*s", first, (int)(dot - name), name);
	return bid_id_parse_str(hex, &ret_artifact->id) == 0;
}

/* Set a string. Leaves out NULL, and a server's string that is not UTF-8, to save the rest of the record. */
static void set_string(json_t *object, const char *key, const char *value)
{
	if (value)
		json_object_set_new(object, key, json_string(value));
}

static json_t *to_json(const struct bid_record *record)
{
	const struct bid_origin *origin = record->origin;
	const struct bid_subpath *subpath = record->artifact.subpath;
	char hex[BID_ID_HEX_MAX];
	json_t *json = json_object();

	set_string(json, "id", bid_id_format(&record->artifact.id, hex));
	set_string(json, "kind", bid_kind_name(record->artifact.kind));
	set_string(json, "subpath", subpath ? bid_subpath_text(subpath) : NULL);
	json_object_set_new(json, "size", json_integer((json_int_t)record->size));
	json_object_set_new(json, "time", json_integer((json_int_t)time(NULL)));
	set_string(json, "digest", record->digest);
	set_string(json, "how", origin->how);
	set_string(json, "server", origin->server);
	set_string(json, "url", origin->url);
	set_string(json, "file", origin->file);
	set_string(json, "archive", origin->archive);
	set_string(json, "ima_signature", origin->ima_signature);
	set_string(json, "signer", *origin->signer ? origin->signer : NULL);
	return json;
}

/* Compute the sum of @json without its field "sum". A damaged record has another sum. */
static int compute_sum(json_t *json, char ret_text[static SUM_MAX])
{
	bid_auto_free char *text = NULL;

	json_object_del(json, "sum");
	text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
	if (!text)
		return -ENOMEM;
	snprintf(ret_text, SUM_MAX, "%016llx", (unsigned long long)XXH3_64bits(text, strlen(text)));
	return 0;
}

/* Format @json, a record, in lines for people. The caller frees the text. */
static int format_record(json_t *json, char **ret_text)
{
	char sum_text[SUM_MAX];
	int r = compute_sum(json, sum_text);

	if (r < 0)
		return r;
	set_string(json, "sum", sum_text);
	*ret_text = json_dumps(json, JSON_INDENT(1));
	return *ret_text ? 0 : -ENOMEM;
}

static int parse_record(const char *text, size_t len, json_t **ret_json)
{
	json_t *json = json_loadb(text, len, 0, NULL);
	const char *sum = bid_json_string(json, "sum");
	char written[SUM_MAX], computed[SUM_MAX];
	int r = *sum ? 0 : -EBADMSG;

	if (r == 0) {
		snprintf(written, sizeof(written), "%s", sum);
		r = compute_sum(json, computed);
	}
	if (r == 0 && strcmp(written, computed) != 0)
		r = -EBADMSG;
	if (r < 0) {
		json_decref(json);
		return r;
	}
	*ret_json = json;
	return 0;
}

/* Write @json as the record of @artifact. */
static int write_json(struct bid_store *store, const struct bid_artifact *artifact, json_t *json)
{
	bid_auto_fd int dir = -1;
	bid_auto_free char *text = NULL;
	char name[BID_LAYOUT_MAX];
	int r = format_record(json, &text);

	if (r == 0)
		r = bid_store_open_fanout(store, BID_LAYOUT_RECORDS, artifact, true, &dir, name);
	if (r == 0)
		r = bid_temp_write(store, text, strlen(text), dir, name, false);
	return r == -EEXIST ? bid_temp_write(store, text, strlen(text), dir, name, true) : r;
}

int bid_record_write(struct bid_store *store, const struct bid_record *record)
{
	json_t *json = to_json(record);
	int r = write_json(store, &record->artifact, json);

	json_decref(json);
	return r;
}

int bid_record_stat(struct bid_store *store, const struct bid_artifact *artifact, struct stat *ret_stat)
{
	char name[BID_LAYOUT_MAX];
	bid_auto_fd int dir = -1;
	int r = bid_store_open_fanout(store, BID_LAYOUT_RECORDS, artifact, false, &dir, name);

	if (r < 0)
		return r;
	return fstatat(dir, name, ret_stat, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int bid_record_remove(struct bid_store *store, const struct bid_artifact *artifact)
{
	bid_auto_fd int dir = -1;
	char name[BID_LAYOUT_MAX];
	int r = bid_store_open_fanout(store, BID_LAYOUT_RECORDS, artifact, false, &dir, name);

	return r == 0 && unlinkat(dir, name, 0) < 0 ? -errno : r;
}

int bid_record_used(struct bid_store *store, const struct bid_artifact *artifact, time_t if_before)
{
	char name[BID_LAYOUT_MAX];
	bid_auto_fd int dir = -1;
	struct stat st;
	int r;

	r = bid_store_open_fanout(store, BID_LAYOUT_RECORDS, artifact, false, &dir, name);
	if (r < 0)
		return r;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (st.st_mtim.tv_sec >= if_before || !S_ISREG(st.st_mode))
		return 0;
	return bid_touch(dir, name, NULL);
}

/* Read the record @path below @dir. */
static int read_named(int dir, const char *path, json_t **ret_json)
{
	bid_auto_fd int fd = -1;
	bid_auto_free char *text = NULL;
	size_t len;
	int r;

	r = bid_beneath_open(dir, path, O_RDONLY | O_NONBLOCK, &fd);
	if (r == 0)
		r = bid_read_file(fd, MAX_RECORD, &text, &len);
	if (r < 0)
		return r == -EFBIG || r == -EISDIR || r == -ESPIPE ? -EBADMSG : r;
	return parse_record(text, len, ret_json);
}

int bid_record_read(struct bid_store *store, const struct bid_artifact *artifact, json_t **ret_json)
{
	bid_auto_fd int dir = -1;
	char name[BID_LAYOUT_MAX];
	int r = bid_store_open_fanout(store, BID_LAYOUT_RECORDS, artifact, false, &dir, name);

	return r < 0 ? r : read_named(dir, name, ret_json);
}

bool bid_store_is_download(struct bid_store *store, const struct bid_artifact *artifact)
{
	json_t *record = NULL;
	int r = bid_record_read(store, artifact, &record);
	bool is = r == 0 ? strcmp(bid_json_string(record, "how"), BID_ADDED) != 0 : r != -ENOENT;

	json_decref(record);
	return is;
}

int bid_record_set_how(struct bid_store *store, const struct bid_artifact *artifact, const char *from, const char *to)
{
	json_t *record = NULL;
	int r = bid_record_read(store, artifact, &record);

	/* a damaged record says nothing */
	if (r == -EBADMSG && !from)
		return bid_record_remove(store, artifact);
	if (r < 0)
		return r;
	if (!from || strcmp(bid_json_string(record, "how"), from) == 0) {
		set_string(record, "how", to);
		r = write_json(store, artifact, record);
	}
	json_decref(record);
	return r;
}

bool bid_record_lacks_signer(struct bid_store *store, const struct bid_artifact *artifact)
{
	json_t *record = NULL;
	int r = bid_record_read(store, artifact, &record);
	bool lacks = r < 0 ? r != -ENOENT
			   : !json_object_get(record, "signer") && strcmp(bid_json_string(record, "how"), BID_ADDED) != 0;

	json_decref(record);
	return lacks;
}

/* Parse the subpath in @record, whose file has the name @name. @artifact has the other fields. */
static int parse_subpath(const json_t *record, const char *name, struct bid_artifact *artifact)
{
	const char *text = bid_json_string(record, "subpath");
	struct bid_subpath *subpath;
	char suffix[BID_LAYOUT_SUFFIX_MAX];
	int r = (artifact->kind == BID_KIND_SOURCE ? bid_subpath_source : bid_subpath_section)(text, &subpath);

	if (r < 0)
		return r == -EINVAL ? -EBADMSG : r;
	artifact->subpath = subpath;
	return strcmp(strrchr(name, '.') + 1, bid_layout_suffix(artifact, suffix)) == 0 ? 0 : -EBADMSG;
}

int bid_record_read_named(struct bid_store *store, const char *first, const char *name, struct bid_artifact *ret_artifact,
			  json_t **ret_json)
{
	char path[sizeof(BID_LAYOUT_RECORDS) + 4 + NAME_MAX + 1];
	struct bid_artifact artifact;
	json_t *json = NULL;
	int r;

	if (!bid_record_parse_name(first, name, &artifact))
		return -EBADMSG;
	snprintf(path, sizeof(path), BID_LAYOUT_RECORDS "/%.2s/%s", first, name);
	r = read_named(store->root, path, &json);
	if (r == 0 && bid_kind_has_subpath(artifact.kind))
		r = parse_subpath(json, name, &artifact);
	if (r < 0) {
		json_decref(json);
		bid_artifact_release(&artifact);
		return r;
	}
	*ret_artifact = artifact;
	*ret_json = json;
	return 0;
}

struct each_record {
	struct bid_store *store;
	bid_record_fn fn;
	void *user;
};

static int each_in(void *user, DIR *dir, const char *first)
{
	const struct each_record *each = user;
	struct dirent *entry;
	int r = 0;

	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0) {
		struct bid_artifact artifact;
		struct stat st;
		json_t *json;

		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    bid_record_read_named(each->store, first, entry->d_name, &artifact, &json) < 0)
			continue;
		r = each->fn(each->user, &artifact, json, &st);
		json_decref(json);
		bid_artifact_release(&artifact);
	}
	return r != 0 ? r : -errno;
}

int bid_record_each(struct bid_store *store, bid_record_fn fn, void *user)
{
	return bid_store_each_fanout(store, BID_LAYOUT_RECORDS, each_in,
				     &(struct each_record){ .store = store, .fn = fn, .user = user });
}
