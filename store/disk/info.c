// SPDX-License-Identifier: LGPL-2.1-or-later
/* The properties of an id, for people and scripts. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bid/error.h>

#include "api/elf.h"
#include "api/source_section.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/path.h"
#include "disk/layout.h"
#include "disk/lookup.h"
#include "disk/other_paths.h"
#include "disk/record.h"
#include "disk/source_section.h"
#include "disk/store.h"

/* Fields that a record adds to the properties of the file. Size and id are not among them: the file may have changed since. */
static const char *const recorded[] = { "digest", "how", "time", "server", "url", "file", "archive", "ima_signature", "signer" };

/*
 * Read the record in the store that has the file, because a lower store may have records too. A file without a record was added by
 * bidfs or by perf. Errors as bid_record_read().
 */
static int read_record(struct bid_store *store, const struct bid_artifact *artifact, json_t **ret_json)
{
	struct stat st;
	int r;

	/* sources and sections are the store's own */
	if (bid_kind_has_subpath(artifact->kind))
		return bid_record_read(store, artifact, ret_json);
	while (store && bid_lookup_stat(store, artifact, &st) < 0)
		store = store->lower;
	r = store ? bid_record_read(store, artifact, ret_json) : -ENOENT;
	if (r == -ENOENT && store) {
		*ret_json = json_pack("{s:s}", "how", BID_ADDED);
		r = *ret_json ? 0 : -ENOMEM;
	}
	return r;
}

int bid_store_each_field(struct bid_store *store, const struct bid_artifact *artifact, bid_store_field_fn fn, void *user)
{
	json_t *record;
	int r = read_record(store, artifact, &record);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < sizeof(recorded) / sizeof(recorded[0]); i++) {
		const json_t *value = json_object_get(record, recorded[i]);
		char number[32];

		if (json_is_string(value)) {
			r = fn(user, recorded[i], json_string_value(value));
		} else if (json_is_integer(value)) {
			snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
			r = fn(user, recorded[i], number);
		}
	}
	json_decref(record);
	return r;
}

static void set_later(struct timespec *time, const struct timespec *other)
{
	if (bid_compare_times(other, time) > 0)
		*time = *other;
}

/* The file @file of @artifact. Its times of change and access are other ones after each use, and say nothing. */
static json_t *artifact_json(struct bid_store *store, const struct bid_artifact *artifact, const struct bid_file *file,
			     struct timespec *changed)
{
	char path[PATH_MAX];
	size_t root = strlen(bid_store_path(store));
	json_t *json = json_pack("{s:I, s:I}", "size", (json_int_t)file->st.st_size, "mtime", (json_int_t)file->st.st_mtim.tv_sec);
	struct timespec recorded_at = { 0 };
	json_t *record;

	set_later(changed, &file->st.st_mtim);
	if (bid_path_of(file->fd, path, sizeof(path)) < 0)
		*path = '\0';
	if (strncmp(path, bid_store_path(store), root) == 0 && path[root] == '/')
		json_object_set_new(json, "path", bid_json_text(path + root + 1));
	else if (path[0] == '/' && file->st.st_nlink > 0)
		json_object_set_new(json, "path", bid_json_text(path)); /* in a lower store */
	if (read_record(store, artifact, &record) < 0)
		return json;
	for (size_t i = 0; i < sizeof(recorded) / sizeof(recorded[0]); i++) {
		json_t *value = json_object_get(record, recorded[i]);

		if (value)
			json_object_set(json, recorded[i], value);
	}
	recorded_at.tv_sec = (time_t)bid_json_number(record, "time");
	set_later(changed, &recorded_at);
	json_decref(record);
	return json;
}

/* a part of the properties, to which the callbacks below add */
struct part {
	struct bid_store *store;
	json_t *json;
	struct timespec *changed;
};

static int add_source_section(void *user, const struct bid_artifact *artifact)
{
	const struct part *adding = user;
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;
	bid_auto_free char *name = bid_utf8(bid_subpath_text(artifact->subpath));
	json_t *json;

	if (!name || bid_source_section_open(adding->store, artifact, &file) < 0)
		return 0;
	json = artifact_json(adding->store, artifact, &file, adding->changed);
	/* a section cut out of a file with the id is verified; any other file is a server's response */
	json_object_set_new(json, "verified", json_boolean(strcmp(bid_json_string(json, "how"), BID_SLICED) == 0));
	json_object_set_new(adding->json, name, json);
	return 0;
}

/* "sources" and "sections", if any are kept. */
static void add_source_sections(struct bid_store *store, const struct bid_id *id, json_t *json, struct timespec *changed)
{
	static const char *const keys[] = { "sources", "sections" };

	for (int kind = BID_KIND_SOURCE; kind < BID_KIND_END; kind++) {
		struct part adding = { .store = store, .json = json_object(), .changed = changed };

		if (bid_store_each_source_section(store, id, (enum bid_kind)kind, add_source_section, &adding) == 0 &&
		    json_object_size(adding.json) > 0)
			json_object_set(json, keys[kind - BID_KIND_SOURCE], adding.json);
		json_decref(adding.json);
	}
}

/* Add the kept file of BID_KIND_UNSTRIPPED. A file that was not stripped is there as what it is. */
static void add_unstripped(struct bid_store *store, const struct bid_id *id, json_t *artifacts, struct timespec *changed)
{
	struct bid_artifact artifact = { .id = *id, .kind = BID_KIND_UNSTRIPPED };
	bid_cleanup(bid_file_release) struct bid_file file = BID_FILE_NONE;

	if (bid_store_find(store, &artifact, BID_NEVER_DERIVE, &file) == 0 && file.kind == artifact.kind)
		json_object_set_new(artifacts, bid_kind_name(artifact.kind), artifact_json(store, &artifact, &file, changed));
}

/* Add the original path of the name @path, "usr/bin/ls/ID", in order and only once. The name of perf's link comes first. */
static int add_path(void *user, const char *path)
{
	const struct part *adding = user;
	json_t *paths = adding->json, *added;
	char text[PATH_MAX + 1];
	struct stat st;
	size_t at;
	int order = 1;

	if (!strrchr(path, '/'))
		return 0;
	/* a name came or went */
	if (bid_store_stat_path(adding->store, path, &st) == 0)
		set_later(adding->changed, &st.st_mtim);
	/* "usr/bin/ls" was an absolute path, "[vdso]" is a name */
	snprintf(text, sizeof(text), "%s%.*s", path[0] == '[' ? "" : "/", (int)(strrchr(path, '/') - path), path);
	added = bid_json_text(text);
	for (at = 0; added && at < json_array_size(paths); at++) {
		order = strcmp(json_string_value(added), json_string_value(json_array_get(paths, at)));
		if (order == 0 || (order < 0 && at > 0))
			break;
	}
	if (added && at < json_array_size(paths) && order == 0)
		json_decref(added);
	else
		json_array_insert_new(paths, at, added);
	return 0;
}

/* Add the target of perf's link, and the other recorded names. */
static void add_paths(struct bid_store *store, const struct bid_id *id, struct part *paths)
{
	char where[PATH_MAX];

	if (bid_store_perf_link(store, id, where, sizeof(where)) == 0)
		add_path(paths, where);
	for (; store; store = store->lower)
		if (bid_store_has_paths(store))
			bid_other_paths_each(store, id, add_path, paths);
}

int bid_store_info(struct bid_store *store, const struct bid_id *id, char **ret_json, struct timespec *ret_changed)
{
	struct timespec changed = { 0 };
	char hex[BID_ID_HEX_MAX];
	json_t *json, *artifacts, *paths;
	char *text;

	if (bid_store_has(store, id) <= 0)
		return -ENOENT;

	json = json_object();
	artifacts = json_object();
	paths = json_array();
	json_object_set_new(json, "id", json_string(bid_id_format(id, hex)));
	json_object_set_new(json, "paths", paths);
	json_object_set_new(json, "artifacts", artifacts);
	add_paths(store, id, &(struct part){ .store = store, .json = paths, .changed = &changed });
	for (int kind = BID_KIND_NONE + 1; kind < BID_KIND_COUNT; kind++) {
		struct bid_artifact artifact = { .id = *id, .kind = (enum bid_kind)kind };
		struct bid_file file = BID_FILE_NONE;
		int r = bid_store_find(store, &artifact, BID_NEVER_DERIVE, &file);
		json_t *known = NULL;

		/* a compressed module that no reader has opened yet */
		if (r == -EAGAIN && kind == BID_KIND_ELF)
			r = bid_lookup_file(store, &artifact, &file);
		if (r == 0 && file.kind != artifact.kind)
			known = json_pack("{s:s}", "same_as", bid_kind_name(file.kind));
		else if (r == 0)
			known = artifact_json(store, &artifact, &file, &changed);
		else if (r != -ENOENT && r != -EAGAIN)
			known = json_pack("{s:s}", "error", bid_strerror(r));
		if (r == 0 && artifact.kind == BID_KIND_DEBUGINFO && bid_elf_is_skeleton(file.fd))
			json_object_set_new(known, "skeleton", json_true());
		if (known)
			json_object_set_new(artifacts, bid_kind_name(artifact.kind), known);
		bid_file_release(&file);
	}

	add_unstripped(store, id, artifacts, &changed);
	add_source_sections(store, id, json, &changed);

	text = bid_json_dump(json, JSON_INDENT(2) | JSON_SORT_KEYS);
	json_decref(json);
	if (!text)
		return -ENOMEM;
	*ret_json = text;
	*ret_changed = changed;
	return 0;
}
