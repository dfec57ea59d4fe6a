// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl remove and bidctl update */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <bid/error.h>

#include "api/content_key.h"
#include "api/remove.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/local_error.h"
#include "base/log.h"
#include "ctl/add.h"
#include "ctl/content_keys.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

/* Removals collected from the operands. Content keys are removed at once, builds together at the end. */
struct removal_list {
	const struct ctl *ctl;
	struct ctl_taken keys;
	struct bid_removal *removals; /* owned */
	char **texts; /* operand behind each removal; owned, with its strings */
	size_t n, room;
};

static void list_release(struct removal_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->texts[i]);
		free((char *)list->removals[i].path);
	}
	free(list->texts);
	free(list->removals);
}

static int list_add(struct removal_list *list, const struct bid_id *id, const char *path, const char *text)
{
	size_t room = list->room;

	if (bid_array_grow(list->removals, list->n, list->room) < 0 || bid_array_grow(list->texts, list->n, room) < 0)
		return -ENOMEM;
	list->removals[list->n] = (struct bid_removal){ .id = *id, .path = path ? strdup(path) : NULL };
	list->texts[list->n] = strdup(text);
	list->n++;
	return list->texts[list->n - 1] && (!path || list->removals[list->n - 1].path) ? 0 : -ENOMEM;
}

struct build_of_path {
	struct removal_list *list;
	const char *path;
};

static int add_build(void *user, const struct bid_id *id)
{
	const struct build_of_path *build = user;

	return list_add(build->list, id, build->path, build->path);
}

/* Do both ids stand for the same build? */
static int equal_id(void *user, const struct bid_id *id)
{
	return bid_id_answers(user, id) || bid_id_answers(id, user);
}

/* Collect --path PATH, a path from the time of the add, which need not exist. For an existing one the real path counts first. */
static enum ctl_status add_path(struct bid_store *store, const char *path, struct removal_list *list)
{
	bid_auto_free char *real = realpath(path, NULL);
	struct build_of_path build = { .list = list, .path = real ? real : path };
	enum ctl_status status;
	size_t keys;
	int r;

	if (path[0] != '/' && path[0] != '[' && !real)
		return ctl_usage(path, "not an absolute path, nor one that exists");
	r = bid_store_each_build(store, build.path, add_build, &build);
	if (r == -ENOENT && real) {
		build.path = path;
		r = bid_store_each_build(store, build.path, add_build, &build);
	}
	if (r < 0 && r != -ENOENT)
		return ctl_trouble(path, r, "look for builds of this path");
	status = ctl_remove_content_keys(list->ctl, store, &(struct ctl_content_keys){ .path = build.path, .operand = path },
					 &list->keys, &keys);
	if (status == CTL_DONE && r == -ENOENT && keys == 0) {
		bid_error_about(path, r, "no build of this path in the store");
		return CTL_REFUSED;
	}
	return status;
}

/*
 * Collect a file: its path's name of its build, or the whole build if it was added from another path. A file without a build-id
 * stands for its content keys.
 */
static enum ctl_status add_file(struct bid_store *store, const char *file, struct removal_list *list)
{
	bid_auto_free char *real = NULL;
	bid_auto_fd int fd = -1;
	enum ctl_status status;
	struct bid_id id;
	size_t keys;
	int r = ctl_open_real(file, &fd, &real);

	if (r == 0)
		r = ctl_identify(fd, &id);
	if (r == -ENODATA) {
		status = ctl_remove_content_keys(list->ctl, store, &(struct ctl_content_keys){ .path = real, .operand = file },
						 &list->keys, &keys);
		if (status != CTL_DONE || keys > 0)
			return status;
	}
	if (r < 0) {
		bid_error_about(file, r, "%s", bid_strerror(r));
		return CTL_REFUSED;
	}
	r = bid_store_each_build(store, real, equal_id, &id);
	if (r >= 0 || r == -ENOENT)
		r = list_add(list, &id, r > 0 ? real : NULL, file);
	if (r < 0)
		bid_error_about(file, r, "%s: cannot look for '%s'", bid_strerror(r), file);
	return r < 0 ? CTL_TROUBLE : CTL_DONE;
}

/* Collect the running kernel, or the name of the only build of a path without a file. */
static enum ctl_status add_known(struct bid_store *store, const char *operand, struct removal_list *list)
{
	struct bid_id id;
	enum ctl_status status = ctl_which_build(store, operand, &id, NULL);
	const char *path = *operand == '/' || *operand == '[' ? operand : NULL;

	if (status == CTL_DONE && list_add(list, &id, path, operand) < 0)
		status = ctl_no_memory();
	return status;
}

static enum ctl_status add_content_key(struct bid_store *store, const char *name, struct removal_list *list)
{
	size_t keys;
	enum ctl_status status = ctl_remove_content_keys(
		list->ctl, store, &(struct ctl_content_keys){ .name = name, .operand = name }, &list->keys, &keys);

	if (status != CTL_DONE || keys > 0)
		return status;
	bid_error_about(name, -ENOENT, "no such content key in the store");
	return CTL_REFUSED;
}

/* Collect an operand: a stored id, else a file or its path, else an id that only an orphan may have. */
static enum ctl_status add_operand(struct bid_store *store, const char *operand, struct removal_list *list)
{
	bool exists = faccessat(AT_FDCWD, operand, F_OK, AT_EACCESS) == 0;
	bool gone = !exists && (errno == ENOENT || errno == ENOTDIR);
	struct bid_id id;
	int r;

	if (bid_content_key_is_name(operand))
		return add_content_key(store, operand, list);
	r = ctl_which(store, operand, &id);
	if (r == -EINVAL && (gone || strcmp(operand, "kernel") == 0))
		return add_known(store, operand, list);
	if (r == -EINVAL || (exists && r == -ENOENT))
		return add_file(store, operand, list);
	if (r == -ENOENT)
		r = ctl_which_whole(store, operand, &id);
	if (r < 0)
		return ctl_which_failed(operand, r);
	if (strlen(operand) < 2 * (size_t)id.len) {
		char hex[BID_ID_HEX_MAX];

		bid_error_about(operand, -EINVAL, "abbreviated: '%s' begins '%s' - remove it by its whole build-id", operand,
				bid_id_format(&id, hex));
		return CTL_REFUSED;
	}
	return list_add(list, &id, NULL, operand) < 0 ? CTL_TROUBLE : CTL_DONE;
}

void ctl_removed(const struct ctl *ctl, const char *operand, const struct bid_id *id, const char *key,
		 const struct bid_removal *removal)
{
	if (!ctl->json && (removal->error < 0 || (!ctl->verbose && !ctl->dry_run)))
		return;
	ctl_row(ctl, CTL_ID("id", id ? 40 : CTL_HIDDEN, id), CTL_TEXT("content_key", key ? 40 : CTL_HIDDEN, key),
		CTL_STATE("state", 16,
			  removal->error == 0	      ? "removed"
			  : removal->error == -ENOENT ? "absent"
						      : "failed"),
		CTL_NUMBER("paths_removed", CTL_HIDDEN, removal->names), CTL_NUMBER("paths_left", CTL_HIDDEN, removal->left),
		CTL_SIZE("size", CTL_HIDDEN, removal->size), CTL_TEXT("path", CTL_HIDDEN, removal->path),
		CTL_TEXT("operand", 0, operand),
		CTL_TEXT("reason", CTL_HIDDEN, removal->error ? bid_strerror(removal->error) : NULL));
}

static enum ctl_status report_removals(const struct removal_list *list)
{
	const struct ctl *ctl = list->ctl;
	enum ctl_status status = CTL_DONE;
	uint64_t freed = list->keys.size;
	size_t names = list->keys.n, found = list->keys.n;

	for (size_t i = 0; i < list->n; i++) {
		const struct bid_removal *removal = &list->removals[i];

		freed += removal->size;
		names += removal->names;
		found += removal->error == 0;
		ctl_removed(ctl, list->texts[i], &removal->id, NULL, removal);
		if (removal->error == -ENOENT)
			bid_error_about(list->texts[i], removal->error, "not in the store");
		else if (removal->error < 0)
			bid_error_about(list->texts[i], removal->error, "%s: cannot remove '%s'", bid_strerror(removal->error),
					list->texts[i]);
		if (removal->error < 0 && status != CTL_TROUBLE)
			status = removal->error == -ENOENT ? CTL_REFUSED : CTL_TROUBLE;
	}
	ctl_totals(ctl, CTL_NUMBER("builds", 0, found), CTL_NUMBER("paths_removed", 0, names), CTL_SIZE("size", 0, freed),
		   CTL_BOOL("dry_run", ctl->dry_run));
	return status;
}

/* Check for --dry-run which builds exist. Returns 0 or a negative errno. */
static int look_up_targets(struct bid_store *store, const struct removal_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		int r = bid_store_has(store, &list->removals[i].id);

		if (r < 0)
			return r;
		list->removals[i].error = r > 0 ? 0 : -ENOENT;
	}
	return 0;
}

enum ctl_status ctl_remove(const struct ctl *ctl, int argc, char **argv)
{
	ctl_auto_store struct bid_store *store = NULL;
	struct removal_list list = { .ctl = ctl };
	enum ctl_status status, worst = CTL_DONE;
	int r;

	if (argc == 0 && ctl->paths.n == 0)
		return ctl_usage("remove", "'remove' needs FILE|ID|KEY..., or '--path'");
	status = ctl_open_store(ctl, ctl->dry_run ? CTL_READ_ITSELF : CTL_WRITE, &store);
	worst = status;
	for (size_t i = 0; status != CTL_TROUBLE && store && i < ctl->paths.n + (size_t)argc; i++) {
		status = i < ctl->paths.n ? add_path(store, ctl->paths.at[i], &list)
					  : add_operand(store, argv[i - ctl->paths.n], &list);
		worst = status > worst ? status : worst;
	}
	if (status != CTL_TROUBLE && list.n + list.keys.n > 0) {
		r = ctl->dry_run ? look_up_targets(store, &list) : bid_store_remove(store, list.removals, list.n);
		status = r < 0 ? ctl_trouble(bid_store_path(store), r, "search the store") : report_removals(&list);
	}
	worst = status > worst ? status : worst;
	list_release(&list);
	return worst;
}

enum ctl_status ctl_update(const struct ctl *ctl, int argc, char **argv)
{
	ctl_auto_store struct bid_store *store = NULL;
	enum ctl_status status = ctl_open_store(ctl, ctl->dry_run ? CTL_READ_ITSELF : CTL_WRITE, &store);
	size_t replaced = 0, added = 0, refused = 0;

	for (int i = 0; status != CTL_TROUBLE && i < argc && (store || ctl->dry_run); i++) {
		struct bid_added done = { 0 };
		const char *why = NULL;
		bool was_there = false;
		int r = ctl->dry_run ? ctl_foresee(store, argv[i], &done)
				     : bid_store_update(store, argv[i], ctl->link, &done, &was_there);

		if (ctl->dry_run)
			was_there = done.known;

		if (r < 0) {
			why = ctl_add_reason(r, ctl->link);
			bid_error_about(argv[i], r, "%s", why);
			status = bid_is_local_error(r) ? CTL_TROUBLE : CTL_REFUSED;
		}
		refused += r < 0;
		replaced += r == 0 && was_there;
		added += r == 0 && !was_there;
		if (ctl->json || (r == 0 && (ctl->verbose || ctl->dry_run)))
			ctl_row(ctl, CTL_ID("id", 40, &done.id), CTL_KIND("kind", 9, done.kind),
				CTL_STATE("state", 17,
					  r < 0	      ? "refused"
					  : was_there ? "replaced"
						      : "added"),
				CTL_TEXT("file", 0, argv[i]), CTL_TEXT("reason", CTL_HIDDEN, why));
	}
	ctl_totals(ctl, CTL_NUMBER("replaced", 0, replaced), CTL_NUMBER("added", 0, added), CTL_NUMBER("refused", 0, refused),
		   CTL_BOOL("dry_run", ctl->dry_run));
	return status;
}
