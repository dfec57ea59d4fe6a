// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl probe */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bid/error.h>

#include "api/elf.h"
#include "api/perf_write.h"
#include "api/remove.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/log.h"
#include "base/path.h"
#include "ctl/output.h"
#include "ctl/probe.h"

enum {
	INPUT_MAX = 16 << 20, /* bytes */
	SIZE_LIMIT = 64 << 20, /* bytes */
	LEASE_ATTEMPTS = 100, /* about 2 s; perf keeps the file open for some milliseconds */
};

struct probe_text {
	char *data; /* owned; ends with a NUL */
	size_t len;
};

static void text_release(struct probe_text *text)
{
	free(text->data);
}

static const char *why_unread(int error)
{
	return error == -EBADMSG ? "not in perf's format" : bid_strerror(error);
}

/* Read the current definitions of @id, for the caller to release. Errors as of bid_store_find(), and ctl_probe_file_parse(). */
static int read_probes(struct bid_store *store, const struct bid_id *id, struct ctl_probe_file *ret_file)
{
	struct bid_file file = BID_FILE_NONE;
	struct probe_text text;
	int r;

	r = bid_store_find(store, &(struct bid_artifact){ .id = *id, .kind = BID_KIND_PROBES }, BID_MAY_DERIVE, &file);
	if (r == 0)
		r = bid_read_file(file.fd, SIZE_LIMIT, &text.data, &text.len);
	bid_file_release(&file);
	return r < 0 ? r : ctl_probe_file_parse(text.data, text.len, ret_file);
}

/* Write the replacement of @old to @out. Returns 0, or a negative errno that ends the edit without a change. */
typedef int (*edit_fn)(void *user, const struct ctl_probe_file *old, FILE *out);

/*
 * Open the definitions under a lease, or without one where leases are unsupported. Returns -EBUSY while others keep the file open,
 * also for reading: perf reopens it to write, which would go unnoticed. Each attempt reopens the file, so that two callers do not
 * block each other.
 */
static int open_leased(struct bid_store *store, const struct bid_id *id, int *ret_fd)
{
	for (unsigned attempts = 0; attempts < LEASE_ATTEMPTS; attempts++) {
		struct timespec pause = { .tv_nsec = 10000000 + (getpid() % 16) * 1000000L };
		struct bid_file found = BID_FILE_NONE;
		bid_auto_fd int fd = -1;
		int r;

		bid_store_find(store, &(struct bid_artifact){ .id = *id, .kind = BID_KIND_PROBES }, BID_MAY_DERIVE, &found);
		r = bid_store_open_probes(store, id, NULL, &found, &fd);
		bid_file_release(&found);
		if (r < 0)
			return r;
		/*
		 * the lease holder receives this signal at an open(2); unlike the default signal, SIGURG does not end the program
		 */
		if ((fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0) || errno != EAGAIN) {
			*ret_fd = bid_steal_fd(&fd);
			return 0;
		}
		bid_close(bid_steal_fd(&fd));
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return -EBUSY;
}

static int make_new(const struct probe_text *old, edit_fn edit, void *user, struct probe_text *ret_new)
{
	bid_cleanup(ctl_probe_file_release) struct ctl_probe_file file = { 0 };
	bid_auto_free char *copy = malloc(old->len + 1);
	struct probe_text new = { 0 };
	FILE *out;
	int r;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, old->data, old->len + 1);
	r = ctl_probe_file_parse(bid_steal(copy), old->len, &file);
	if (r < 0)
		return r;
	out = open_memstream(&new.data, &new.len);
	if (!out)
		return -ENOMEM;
	r = edit(user, &file, out);
	if (fclose(out) != 0 && r == 0)
		r = -ENOMEM;
	if (r < 0) {
		text_release(&new);
		return r;
	}
	*ret_new = new;
	return 0;
}

/* Write the changed part. On a full disk restore the old text. */
static int replace_text(int fd, const struct probe_text *old, const struct probe_text *new)
{
	size_t same = 0;
	int r;

	while (same < old->len && same < new->len && old->data[same] == new->data[same])
		same++;
	r = bid_pwrite_full(fd, new->data + same, new->len - same, (off_t)same);
	if (r == 0 && ftruncate(fd, (off_t) new->len) < 0)
		r = -errno;
	if (r < 0) {
		bid_pwrite_full(fd, old->data + same, old->len - same, (off_t)same);
		(void)!ftruncate(fd, (off_t)old->len);
		return r;
	}
	return r;
}

/* Try one edit. Returns 1 after a change by another process. */
static int edit_open(int fd, edit_fn edit, void *user)
{
	bid_cleanup(text_release) struct probe_text old = { 0 };
	bid_cleanup(text_release) struct probe_text new = { 0 };
	bid_cleanup(text_release) struct probe_text now = { 0 };
	int r = bid_read_file(fd, SIZE_LIMIT, &old.data, &old.len);

	if (r == 0)
		r = make_new(&old, edit, user, &new);
	if (r == 0)
		r = bid_read_file(fd, SIZE_LIMIT, &now.data, &now.len);
	if (r < 0)
		return r;
	if (now.len != old.len || memcmp(now.data, old.data, old.len) != 0)
		return 1;
	return replace_text(fd, &old, &new);
}

/* Call @edit for the definitions in @made, or none, without a change. */
static int preview_edit(const struct bid_file *made, edit_fn edit, void *user)
{
	bid_cleanup(text_release) struct probe_text old = { 0 };
	bid_cleanup(text_release) struct probe_text new = { 0 };
	int r = 0;

	if (made->fd >= 0)
		r = bid_read_file(made->fd, SIZE_LIMIT, &old.data, &old.len);
	else if (!(old.data = strdup("")))
		r = -ENOMEM;
	return r == 0 ? make_new(&old, edit, user, &new) : r;
}

/*
 * Change the definitions of @id with @edit. Another writer's change in between leads to a further call of @edit. The first
 * definitions come from the static probes. With @dry_run nothing changes.
 *
 * perf reads the file, truncates it and writes it anew, in place and without a lock. A new file in place of the old one would lose
 * the definitions that perf is about to write. Therefore bidctl also writes in place, under a write lease (fcntl(2), F_SETLEASE):
 * the kernel grants a lease only while no other process has the file open, and delays each open(2) until the lease is released.
 * Some files have no leases (NFS, FUSE, the file of another user). bidctl reads the file once more right before it writes. Without
 * a lease, perf's definitions or bidctl's may be lost in the moment between both.
 *
 * Returns 0, the result of @edit, or
 *   -ENOENT	the store lacks the build
 *   -EBUSY	another process had the file open for about 2 s, for reading or writing
 *   -EBADMSG	the text is not in perf's format
 *   other	as open(2), read(2) and write(2)
 */
static int edit_probes(struct bid_store *store, const struct bid_id *id, edit_fn edit, void *user, bool dry_run)
{
	bid_cleanup(bid_file_release) struct bid_file made = BID_FILE_NONE;
	bid_auto_fd int fd = -1;
	int r;

	/* derives the definitions, if possible */
	r = bid_store_find(store, &(struct bid_artifact){ .id = *id, .kind = BID_KIND_PROBES }, BID_MAY_DERIVE, &made);
	if (r < 0 && r != -ENOENT)
		return r;
	if (dry_run)
		return r < 0 && bid_store_kinds(store, id) <= 0 ? -ENOENT : preview_edit(&made, edit, user);
	bid_file_release(&made);
	r = open_leased(store, id, &fd);
	if (r < 0)
		return r == -EPERM ? -ENOENT : r;
	/* excludes other bidctl processes, where leases are unsupported */
	if (flock(fd, LOCK_EX) < 0)
		return -errno;
	do
		r = edit_open(fd, edit, user);
	while (r > 0);
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

/*
 * Does a program run from the file @real? A packed file, and a copy in a store or in a mount, stand for a build that runs from
 * another path.
 */
static bool is_run(struct bid_store *store, const char *real)
{
	size_t len = store ? strlen(bid_store_path(store)) : 0;
	bid_auto_fd int fd = open(real, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (store && strncmp(real, bid_store_path(store), len) == 0 && real[len] == '/')
		return false;
	return fd >= 0 && bid_elf_is_packed(fd) <= 0 && fstat(fd, &st) == 0 && !bid_is_in_mount(fd, &st);
}

/* Find the build that @operand names: an id, a file, or "kernel". Reports its errors itself. */
static enum ctl_status find_target(struct bid_store *store, const char *operand, struct ctl_probe_target *ret_target)
{
	bid_auto_free char *real = NULL;
	enum ctl_status status;

	*ret_target = (struct ctl_probe_target){ .kernel = strcmp(operand, "kernel") == 0 };
	status = ctl_which_build(store, operand, &ret_target->id, &real);
	if (status == CTL_DONE && real && is_run(store, real))
		snprintf(ret_target->path, sizeof(ret_target->path), "%s", real);
	return status;
}

/* Read the static probes of a file that the store lacks, or has under another path. */
static int read_file(const char *path, struct ctl_probe_file *ret_file)
{
	bid_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = NULL;
	size_t len;
	FILE *out = fd < 0 ? NULL : open_memstream(&text, &len);
	int r;

	if (!out)
		return -errno;
	r = bid_elf_probes(fd, path, out);
	if (fclose(out) != 0 && r == 0)
		r = -ENOMEM;
	if (r == 0)
		return ctl_probe_file_parse(text, len, ret_file);
	free(text);
	return r;
}

struct others {
	struct bid_store *store;
	const struct bid_id *id;
	char hex[BID_ID_HEX_MAX]; /* id of another build with definitions */
};

static int find_other(void *user, const struct bid_id *id)
{
	bid_cleanup(ctl_probe_file_release) struct ctl_probe_file file = { 0 };
	struct others *others = user;

	if (bid_id_equal(id, others->id) || read_probes(others->store, id, &file) < 0 || file.n == 0)
		return 0;
	bid_id_format(id, others->hex);
	return 1;
}

/* Report the absence of definitions, and name another build of the path that has some. */
static enum ctl_status report_absent(struct bid_store *store, const struct ctl_probe_target *target)
{
	struct others others = { .store = store, .id = &target->id };
	char hex[BID_ID_HEX_MAX], where[PATH_MAX];
	int kinds = store ? bid_store_kinds(store, &target->id) : 0;

	bid_id_format(&target->id, hex);
	if (kinds > 0 && kinds & 1 << BID_KIND_PROBES && bid_store_perf_link(store, &target->id, where, sizeof(where)) == 0)
		bid_error_about(hex, -ENOENT,
				"no probe definitions of build '%s' in '%s/%s/%s', which perf emptied - remove that file, and "
				"bidctl makes them of static probes",
				hex, bid_store_path(store), where, bid_kind_store_name(BID_KIND_PROBES));
	else if (store && target->path[0] && bid_store_each_build(store, target->path, find_other, &others) > 0)
		bid_error_about(hex, -ENOENT, "no probe definitions of build '%s' of '%s': the store has those of build %s", hex,
				target->path, others.hex);
	else
		bid_error_about(hex, -ENOENT, "no probe definitions of build '%s', and no static probes to make them of", hex);
	return CTL_REFUSED;
}

static enum ctl_status read_target(struct bid_store *store, const struct ctl_probe_target *target, struct ctl_probe_file *ret_file)
{
	int r = store ? read_probes(store, &target->id, ret_file) : -ENOENT;
	char hex[BID_ID_HEX_MAX];

	if ((r == -ENOENT || (r == 0 && ret_file->n == 0)) && target->path[0]) {
		ctl_probe_file_release(ret_file);
		r = read_file(target->path, ret_file);
	}
	if (r == -ENOENT || r == -ENODATA || (r == 0 && ret_file->n == 0))
		return report_absent(store, target);
	if (r < 0)
		bid_error_about(bid_id_format(&target->id, hex), r, "%s: the probe definitions of '%s'", why_unread(r), hex);
	return r < 0 ? CTL_TROUBLE : CTL_DONE;
}

enum ctl_status ctl_probe_open(const struct ctl *ctl, const char *operand, struct bid_store **ret_store,
			       struct ctl_probe_target *ret_target, struct ctl_probe_file *ret_file)
{
	enum ctl_status status = ctl_open_store(ctl, CTL_WRITE_IF_POSSIBLE, ret_store);

	if (status == CTL_DONE)
		status = find_target(*ret_store, operand, ret_target);
	return status == CTL_DONE ? read_target(*ret_store, ret_target, ret_file) : status;
}

bool ctl_probe_wanted(const struct ctl_probe *probe, char *const *patterns, int n)
{
	for (int i = 0; i < n; i++)
		if (ctl_probe_matches(probe, patterns[i]))
			return true;
	return n == 0;
}

const char *ctl_probe_unmatched(const struct ctl_probe_file *file, char *const *patterns, int n)
{
	for (int i = 0; i < n; i++) {
		bool found = false;

		for (size_t j = 0; j < file->n && !found; j++)
			found = ctl_probe_matches(&file->probes[j], patterns[i]);
		if (!found)
			return patterns[i];
	}
	return NULL;
}

static int print_row(const struct ctl *ctl, const struct bid_id *id, const struct ctl_probe *probe)
{
	bid_auto_free char *event = strndup(probe->text, ctl_probe_name_len(probe));
	json_t *definitions = json_array();

	for (size_t i = 0; i < probe->n; i++)
		json_array_append_new(definitions, bid_json_text(probe->definitions[i]));
	return ctl_row(ctl, CTL_ID("id", 40, id), CTL_TEXT("event", 20, event), CTL_TEXT("command", 0, probe->command),
		       CTL_BOOL("static", probe->sdt), CTL_JSON("definitions", definitions));
}

struct probe_listing {
	const struct ctl *ctl;
	struct bid_store *store;
	size_t n; /* listed probes */
};

/* List the stored definitions of one id. Deriving absent ones would read every program of the store. */
static int list_id(void *user, const struct bid_id *id)
{
	bid_cleanup(ctl_probe_file_release) struct ctl_probe_file file = { 0 };
	struct probe_listing *listing = user;
	int kinds = bid_store_kinds(listing->store, id), r;
	char hex[BID_ID_HEX_MAX];

	if (kinds < 0 || !(kinds & 1 << BID_KIND_PROBES))
		return 0;
	r = read_probes(listing->store, id, &file);
	if (r < 0)
		bid_warning("%s: the probe definitions of %s", why_unread(r), bid_id_format(id, hex));
	for (size_t i = 0; i < file.n && r == 0; i++)
		r = print_row(listing->ctl, id, &file.probes[i]);
	listing->n += file.n;
	return r < 0 ? 0 : r;
}

static enum ctl_status no_such(const char *pattern)
{
	bid_error_about(pattern, -ENOENT, "no matching probe");
	return CTL_REFUSED;
}

/* Print the definitions that match @argv behind the build: as they are, or with @table as rows. */
static enum ctl_status print_definitions(const struct ctl *ctl, int argc, char **argv, bool table)
{
	bid_cleanup(ctl_probe_file_release) struct ctl_probe_file file = { 0 };
	ctl_auto_store struct bid_store *store = NULL;
	struct ctl_probe_target target;
	enum ctl_status status = ctl_probe_open(ctl, argv[0], &store, &target, &file);
	size_t n = 0;

	if (status != CTL_DONE)
		return status;
	if (ctl_probe_unmatched(&file, argv + 1, argc - 1))
		return no_such(ctl_probe_unmatched(&file, argv + 1, argc - 1));
	for (size_t i = 0; i < file.n; i++) {
		if (!ctl_probe_wanted(&file.probes[i], argv + 1, argc - 1))
			continue;
		n++;
		if (table || ctl->json)
			print_row(ctl, &target.id, &file.probes[i]);
		else
			ctl_probe_print(stdout, &file.probes[i]);
	}
	ctl_totals(ctl, CTL_NUMBER("probes", CTL_HIDDEN, n));
	return CTL_DONE;
}

static enum ctl_status show_definitions(const struct ctl *ctl, int argc, char **argv)
{
	if (argc < 1)
		return ctl_usage("probe show", "'probe show' needs ID|FILE|kernel");
	return print_definitions(ctl, argc, argv, false);
}

/* List the definitions of one build, or of all. */
static enum ctl_status list_definitions(const struct ctl *ctl, int argc, char **argv)
{
	ctl_auto_store struct bid_store *store = NULL;
	struct probe_listing listing = { .ctl = ctl };
	enum ctl_status status;
	int r = 0;

	if (argc > 1)
		return ctl_usage(argv[1], "too many operands for 'probe list'");
	if (argc == 1)
		return print_definitions(ctl, argc, argv, true);
	status = ctl_open_store(ctl, CTL_READ, &store);
	if (status != CTL_DONE)
		return status;
	listing.store = store;
	if (store)
		r = bid_store_each_id(store, list_id, &listing);
	ctl_totals(ctl, CTL_NUMBER("probes", CTL_HIDDEN, listing.n));
	return r < 0 ? ctl_trouble(bid_store_path(store), r, "list probe definitions") : CTL_DONE;
}

/* Request and result of "probe add" and "probe remove". */
struct change {
	struct ctl_probe_file wanted; /* add; owned */
	char **patterns; /* remove */
	int n_patterns;
	size_t done, known;
	const char *refused; /* cause: a pattern, or a probe with other definitions in the store or among the operands */
	bool twice; /* two different definitions among the operands */
};

static bool is_same(const struct ctl_probe *a, const struct ctl_probe *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->definitions[i], b->definitions[i]) != 0)
			return false;
	return true;
}

/* Find a probe named as @like among the first @n of @file. */
static const struct ctl_probe *find_named(const struct ctl_probe_file *file, const struct ctl_probe *like, size_t n)
{
	size_t len = ctl_probe_name_len(like);

	for (size_t i = 0; i < n; i++)
		if (ctl_probe_name_len(&file->probes[i]) == len && memcmp(file->probes[i].text, like->text, len) == 0)
			return &file->probes[i];
	return NULL;
}

static int edit_add(void *user, const struct ctl_probe_file *old, FILE *out)
{
	struct change *change = user;

	change->done = change->known = 0;
	for (size_t i = 0; i < old->n; i++)
		ctl_probe_print(out, &old->probes[i]);
	for (size_t i = 0; i < change->wanted.n; i++) {
		const struct ctl_probe *probe = &change->wanted.probes[i], *there = find_named(old, probe, old->n);

		bool twice = !there;

		if (twice)
			there = find_named(&change->wanted, probe, i);
		if (there && !is_same(there, probe)) {
			change->refused = probe->text;
			change->twice = twice;
			return -EEXIST;
		}
		if (!there)
			ctl_probe_print(out, probe);
		change->known += there != NULL;
		change->done += there == NULL;
	}
	return 0;
}

static int edit_remove(void *user, const struct ctl_probe_file *old, FILE *out)
{
	struct change *change = user;

	change->done = 0;
	change->refused = ctl_probe_unmatched(old, change->patterns, change->n_patterns);
	if (change->refused)
		return -ENODATA;
	for (size_t i = 0; i < old->n; i++) {
		if (ctl_probe_wanted(&old->probes[i], change->patterns, change->n_patterns))
			change->done++;
		else
			ctl_probe_print(out, &old->probes[i]);
	}
	return 0;
}

/* Does the build name places by symbol, as only a kernel does? A build without artifacts in the store may be a kernel. */
static bool is_kernel(struct bid_store *store, const struct ctl_probe_target *target)
{
	static const enum bid_kind kinds[] = { BID_KIND_ELF, BID_KIND_DEBUGINFO, BID_KIND_VDSO };

	for (size_t i = 0; !target->kernel && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct bid_file file = BID_FILE_NONE;
		int r = bid_store_find(store, &(struct bid_artifact){ .id = target->id, .kind = kinds[i] }, BID_MAY_DERIVE, &file);

		if (r == 0)
			r = bid_elf_is_kernel(file.fd);
		bid_file_release(&file);
		if (r >= 0)
			return r > 0;
	}
	return true;
}

/* Find the path for a place without one; "" for a place in the kernel. */
static enum ctl_status find_path(struct bid_store *store, const struct ctl_probe_target *target,
				 const struct ctl_definition *definition, char ret_path[static PATH_MAX + 1])
{
	ret_path[0] = '\0';
	if (definition->path_len > 0 || definition->module_len > 0 || is_kernel(store, target))
		return CTL_DONE;
	if (definition->place[0] != '0')
		return ctl_usage(definition->type, "a program's place is PATH:0xOFFSET or 0xOFFSET, and a module's MODULE:SYMBOL");
	if (target->path[0]) {
		snprintf(ret_path, PATH_MAX, "%s", target->path);
		return CTL_DONE;
	}
	if (ctl_original_path(store, &target->id, ret_path) && ret_path[0] == '/')
		return CTL_DONE;
	return ctl_usage(definition->type, "a definition needs the file's path, which the store does not know");
}

/* Write "p:GROUP/EVENT PLACE ARGUMENTS" in the form of perf's cache. A place without a file is in the file of @target. */
static enum ctl_status write_definition(struct bid_store *store, const struct ctl_probe_target *target, const char *text, FILE *out)
{
	char path[PATH_MAX + 1], place[CTL_PROBE_LINE_MAX], *plus, *name;
	struct ctl_definition definition;
	enum ctl_status status;

	if (ctl_definition_parse(text, &definition) < 0)
		return ctl_usage(text, "not a definition, such as 'p:GROUP/EVENT /PATH:0xOFFSET ARGUMENTS'");
	status = find_path(store, target, &definition, path);
	if (status != CTL_DONE)
		return status;
	snprintf(place, sizeof(place), "%.*s", definition.place_len, definition.place);
	/* perf reads the offset behind a symbol as decimal */
	plus = definition.path_len > 0 ? NULL : strchr(place, '+');
	if (plus)
		snprintf(plus + 1, sizeof(place) - (size_t)(plus + 1 - place), "%llu", strtoull(plus + 1, NULL, 0));
	/* the command as perf probe accepts it: without file, module and semaphore, which its syntax lacks */
	name = strrchr(place, ':');
	name = name ? name + 1 : place;
	fprintf(out, "#%.*s:%.*s=%.*s%s\n", definition.group_len, definition.group, definition.event_len, definition.event,
		(int)strcspn(name, "("), name, definition.type[0] == 'r' ? "%return" : "");
	fprintf(out, "%.*s:%.*s/%.*s %s%s%s%s\n", definition.type_len, definition.type, definition.group_len, definition.group,
		definition.event_len, definition.event, path, path[0] ? ":" : "", place, definition.rest);
	return CTL_DONE;
}

static enum ctl_status read_input(FILE *out)
{
	bid_auto_free char *line = NULL;
	size_t room = 0, sum = 0;
	ssize_t len;

	while ((len = getline(&line, &room, stdin)) > 0) {
		sum += (size_t)len;
		if (sum > INPUT_MAX) {
			ctl_trouble("standard input", -EFBIG, NULL);
			return CTL_REFUSED;
		}
		fwrite(line, 1, (size_t)len, out);
		if (line[len - 1] != '\n')
			putc('\n', out);
	}
	return ferror(stdin) ? ctl_trouble("standard input", -errno, NULL) : CTL_DONE;
}

/* Collect the operands of "probe add" in the form of perf's cache. */
static enum ctl_status collect_definitions(struct bid_store *store, const struct ctl_probe_target *target, int argc, char **argv,
					   struct ctl_probe_file *ret_file)
{
	enum ctl_status status = CTL_DONE;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	int r;

	for (int i = 0; out && i < argc && status == CTL_DONE; i++)
		status = strcmp(argv[i], "-") == 0 ? read_input(out) : write_definition(store, target, argv[i], out);
	if (!out || fclose(out) != 0)
		status = ctl_no_memory();
	if (status != CTL_DONE) {
		free(text);
		return status;
	}
	r = ctl_probe_file_parse(text, len, ret_file);
	if (r < 0)
		bid_error_about("standard input", r, "%s", why_unread(r));
	for (size_t i = 0; r == 0 && i < ret_file->n; i++) {
		if (ctl_probe_name_len(&ret_file->probes[i]) == 0 || ret_file->probes[i].n == 0) {
			bid_error_about(ret_file->probes[i].text, 0, "no event, or no definition of it");
			r = -EBADMSG;
		}
	}
	return r == -EBADMSG ? CTL_REFUSED : r < 0 ? CTL_TROUBLE : CTL_DONE;
}

static enum ctl_status change_failed(const struct ctl_probe_target *target, const struct change *change, int error)
{
	char hex[BID_ID_HEX_MAX];

	bid_id_format(&target->id, hex);
	switch (error) {
	case -EEXIST:
		bid_error_about(hex, error, "%s: '%.*s'",
				change->twice ? "two different definitions of one event"
					      : "the store has other definitions of it - remove it first",
				(int)strcspn(change->refused, "="), change->refused);
		return CTL_REFUSED;
	case -ENODATA:
		return no_such(change->refused);
	case -ENOENT:
		bid_error_about(hex, error, "build '%s' is not in the store: add it first with 'bidctl add %s'", hex,
				target->kernel	  ? "--kernel"
				: target->path[0] ? target->path
						  : "FILE");
		return CTL_REFUSED;
	case -EBUSY:
		bid_error_about(hex, error,
				"another process, such as perf, has the probe definitions of '%s' open: bidctl changed nothing - "
				"try again when it has ended",
				hex);
		return CTL_TROUBLE;
	default:
		bid_error_about(hex, error, "%s: the probe definitions of '%s'", why_unread(error), hex);
		return CTL_TROUBLE;
	}
}

static void report_change(const struct ctl *ctl, const struct bid_id *id, const struct change *change, bool adding)
{
	const char *state = adding ? "added" : "removed";

	if (ctl->json)
		ctl_row(ctl, CTL_ID("id", 40, id), CTL_TEXT("state", 0, change->done > 0 ? state : "known"));
	ctl_totals(ctl, CTL_NUMBER(state, 0, change->done), CTL_NUMBER("known", adding ? 0 : CTL_HIDDEN, change->known),
		   CTL_BOOL("dry_run", ctl->dry_run));
}

static enum ctl_status change_definitions(const struct ctl *ctl, int argc, char **argv, bool adding)
{
	ctl_auto_store struct bid_store *store = NULL;
	struct change change = { .patterns = argv + 1, .n_patterns = argc - 1 };
	struct ctl_probe_target target;
	enum ctl_status status;
	int r;

	if (argc < 2)
		return ctl_usage(adding ? "probe add" : "probe remove", "'probe %s' needs ID|FILE|kernel and %s",
				 adding ? "add" : "remove", adding ? "DEFINITION..., or '-'" : "EVENT...");
	status = ctl_open_store(ctl, ctl->dry_run ? CTL_WRITE_IF_POSSIBLE : CTL_WRITE, &store);
	if (status == CTL_DONE)
		status = find_target(store, argv[0], &target);
	if (status == CTL_DONE && adding)
		status = collect_definitions(store, &target, argc - 1, argv + 1, &change.wanted);
	if (status == CTL_DONE) {
		r = edit_probes(store, &target.id, adding ? edit_add : edit_remove, &change, ctl->dry_run);
		status = r < 0 ? change_failed(&target, &change, r) : CTL_DONE;
	}
	ctl_probe_file_release(&change.wanted);
	if (status != CTL_DONE)
		return status;
	report_change(ctl, &target.id, &change, adding);
	return CTL_DONE;
}

static enum ctl_status add_definitions(const struct ctl *ctl, int argc, char **argv)
{
	return change_definitions(ctl, argc, argv, true);
}

static enum ctl_status take_out(const struct ctl *ctl, int argc, char **argv)
{
	return change_definitions(ctl, argc, argv, false);
}

enum ctl_status ctl_probe(const struct ctl *ctl, int argc, char **argv)
{
	static const char *const verbs[] = { "list", "show", "add", "remove", "apply", NULL };
	static const ctl_command_fn runs[] = { list_definitions, show_definitions, add_definitions, take_out, ctl_probe_apply };
	int verb = ctl_word("verb of 'probe'", argv[0], verbs);

	return verb < 0 ? CTL_USAGE : runs[verb](ctl, argc - 1, argv + 1);
}
