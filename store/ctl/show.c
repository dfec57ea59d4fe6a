// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl show */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/remove.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "ctl/content_keys.h"
#include "ctl/covering_mount.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

static const char *string_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void print_line(const char *label, const char *value)
{
	ctl_print_label(label);
	ctl_print_text(stdout, value);
	putchar('\n');
}

static void print_size(const json_t *artifact)
{
	uint64_t size = (uint64_t)json_integer_value(json_object_get(artifact, "size"));
	char text[CTL_SIZE_MAX];

	printf("%s (%" PRIu64 " bytes)", ctl_format_size(size, text), size);
}

/* Print ", fetched 2026-01-31 12:00:00", as far as recorded. */
static void print_history(const json_t *artifact)
{
	const char *how = string_of(artifact, "how");
	time_t when = (time_t)json_integer_value(json_object_get(artifact, "time"));
	char date[CTL_TIME_MAX];

	if (!how)
		return;
	fputs(", ", stdout);
	ctl_print_text(stdout, how);
	if (when > 0)
		printf(" %s", ctl_format_time(when, date));
}

static void print_skeleton(const json_t *artifact)
{
	if (json_is_true(json_object_get(artifact, "skeleton")))
		print_line("  split", "a skeleton: the rest of its DWARF is in .dwo files or a .dwp, which have no build-id");
}

static void print_artifact(const char *kind, const json_t *artifact)
{
	static const struct {
		const char *key, *label;
	} details[] = {
		{ "path", "  stored" },	    { "file", "  from" },     { "server", "  server" },	    { "url", "  url" },
		{ "archive", "  archive" }, { "digest", "  digest" }, { "ima_signature", "  ima" }, { "signer", "  signer" }
	};
	const char *same = string_of(artifact, "same_as"), *error = string_of(artifact, "error");

	ctl_print_label(kind);
	if (same) {
		printf("the same file as %s\n", same);
		print_skeleton(artifact);
		return;
	}
	if (error) {
		printf("%snot served: ", ctl_colour(stdout, CTL_RED));
		ctl_print_text(stdout, error);
		printf("%s\n", ctl_colour(stdout, CTL_PLAIN));
		return;
	}
	print_size(artifact);
	print_history(artifact);
	putchar('\n');
	print_skeleton(artifact);
	for (size_t i = 0; i < sizeof(details) / sizeof(details[0]); i++) {
		const char *value = string_of(artifact, details[i].key);

		if (value)
			print_line(details[i].label, value);
	}
}

/* Print sources and sections that were downloaded alone. */
static size_t print_source_sections(const char *kind, const json_t *files)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)files, name, value)
	{
		print_artifact(kind, value);
		print_line("  name", name);
	}
	return json_object_size(files);
}

static void print_info(const json_t *info)
{
	json_t *artifacts = json_object_get(info, "artifacts"), *paths = json_object_get(info, "paths"), *value;
	const char *kind, *id = string_of(info, "id");
	size_t i, source_sections;

	print_line("build-id", id ? id : "-");
	json_array_foreach(paths, i, value) print_line("path", json_is_string(value) ? json_string_value(value) : "-");
	json_object_foreach(artifacts, kind, value) print_artifact(kind, value);
	source_sections = print_source_sections("source", json_object_get(info, "sources")) +
			  print_source_sections("section", json_object_get(info, "sections"));
	if (json_object_size(artifacts) + source_sections == 0)
		print_line("artifacts", "none: the link is dangling");
}

/* Read the records of @id, below a mount from the mount, which hides the store's records. Errors as of bid_store_info(). */
static int info_of(struct bid_store *store, const struct bid_id *id, char **ret_text)
{
	struct timespec changed;

	if (ctl_covering_mount_info(bid_store_path(store), id, ret_text) == 0)
		return 0;
	return bid_store_info(store, id, ret_text, &changed);
}

/* Print @text of bid_store_info(). */
static int show_text(const char *text)
{
	json_t *info = json_loads(text, 0, NULL);

	if (!info)
		return -ENOMEM;
	print_info(info);
	json_decref(info);
	return 0;
}

/* Iteration over the builds of one path. */
struct showing {
	const struct ctl *ctl;
	struct bid_store *store;
	size_t n;
};

/* bid_store_id_fn */
static int show_build(void *user, const struct bid_id *id)
{
	struct showing *showing = user;
	bid_auto_free char *text = NULL;
	int r = info_of(showing->store, id, &text);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (showing->n++ > 0 && !showing->ctl->json)
		putchar('\n');
	return showing->ctl->json ? ctl_row_json(showing->ctl, json_loads(text, 0, NULL)) : show_text(text);
}

/* Show the build of the file @path, which the store may have without this path. */
static int show_file(struct showing *showing, const char *path)
{
	bid_auto_free char *real = NULL;
	bid_auto_fd int fd = -1;
	struct bid_id id;

	if (ctl_open_real(path, &fd, &real) < 0 || ctl_identify(fd, &id) < 0)
		return 0;
	return show_build(showing, &id);
}

/* Show every build of the original path @path, or of a file that leads to one, and its content keys. */
static enum ctl_status show_path(const struct ctl *ctl, struct bid_store *store, const char *path)
{
	struct showing showing = { .ctl = ctl, .store = store };
	bid_auto_free char *real = realpath(path, NULL);
	enum ctl_status status;
	size_t keys = 0;
	int r;

	if (path[0] != '/' && path[0] != '[' && real)
		path = real;
	r = store ? bid_store_each_build(store, path, show_build, &showing) : 0;
	/* the store uses real paths */
	if (r == -ENOENT && real)
		r = bid_store_each_build(store, real, show_build, &showing);
	if (store && showing.n == 0 && (r == 0 || r == -ENOENT))
		r = show_file(&showing, path);
	if (r < 0 && r != -ENOENT)
		return ctl_which_failed(path, r);
	status = ctl_show_content_keys(ctl, store, path, &keys);
	if (status == CTL_DONE && showing.n + keys == 0) {
		bid_error_about(path, -ENOENT, "no build of this path in the store");
		return CTL_REFUSED;
	}
	return status;
}

enum ctl_status ctl_show(const struct ctl *ctl, int argc, char **argv)
{
	ctl_auto_store struct bid_store *store = NULL;
	enum ctl_status status = ctl_open_store(ctl, CTL_READ, &store);
	struct showing showing = { .ctl = ctl, .store = store };
	struct bid_id id;
	int r;

	if (status != CTL_DONE)
		return status;
	/* as the store writes paths: "/usr/bin/ls", "[vdso]" */
	if (argv[0][0] == '/' || argv[0][0] == '[')
		return show_path(ctl, store, argv[0]);
	r = ctl_which(store, argv[0], &id);
	if ((r == -EINVAL || r == -ENOENT) && access(argv[0], F_OK) == 0)
		return show_path(ctl, store, argv[0]);
	if (r == 0)
		r = show_build(&showing, &id);
	if (r < 0)
		return ctl_which_failed(argv[0], r);
	if (showing.n > 0)
		return CTL_DONE;
	bid_error_about(argv[0], -ENOENT, "dangling link: the store has no file of this build");
	return CTL_REFUSED;
}
