// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl probe */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <bid/error.h>

#include "api/elf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "ctl/output.h"
#include "ctl/probe.h"
#include "ctl/probe_edit.h"

enum { INPUT_MAX = 16 << 20 };

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

static int print_rows(struct probe_listing *listing, const struct bid_id *id, const struct ctl_probe_file *file)
{
	int r = 0;

	for (size_t i = 0; i < file->n && r == 0; i++)
		r = print_row(listing->ctl, id, &file->probes[i]);
	listing->n += file->n;
	return r;
}

/* List the stored definitions of one id. Deriving absent ones would read every program of the store. */
static int list_id(void *user, const struct bid_id *id)
{
	bid_cleanup(ctl_probe_file_release) struct ctl_probe_file file = { 0 };
	struct probe_listing *listing = user;
	int kinds = bid_store_kinds(listing->store, id), r;
	char hex[BID_ID_HEX_MAX];

	if (kinds < 0 || !(kinds & 1 << BID_KIND_PROBES))
		return 0;
	r = ctl_probe_read(listing->store, id, &file);
	if (r < 0)
		bid_warning("%s: the probe definitions of %s", r == -EBADMSG ? "not in perf's format" : bid_strerror(r),
			    bid_id_format(id, hex));
	return r < 0 ? 0 : print_rows(listing, id, &file);
}

static enum ctl_status list_definitions(const struct ctl *ctl, int argc, char **argv)
{
	bid_cleanup(ctl_probe_file_release) struct ctl_probe_file file = { 0 };
	ctl_auto_store struct bid_store *store = NULL;
	enum ctl_status status = ctl_open_store(ctl, argc > 0 ? CTL_WRITE_IF_POSSIBLE : CTL_READ, &store);
	struct probe_listing listing = { .ctl = ctl, .store = store };
	struct ctl_probe_target target;
	int r = 0;

	if (argc > 1)
		return ctl_usage(argv[1], "too many operands for 'probe list'");
	if (status == CTL_DONE && argc == 1)
		status = ctl_probe_target_find(store, argv[0], &target);
	if (status == CTL_DONE && argc == 1)
		status = ctl_probe_target_read(store, &target, &file);
	if (status != CTL_DONE)
		return status;
	if (argc == 1)
		r = print_rows(&listing, &target.id, &file);
	else if (store)
		r = bid_store_each_id(store, list_id, &listing);
	ctl_totals(ctl, CTL_NUMBER("probes", CTL_HIDDEN, listing.n));
	if (r < 0)
		return ctl_trouble(bid_store_path(store), r, "list probe definitions");
	return CTL_DONE;
}

static enum ctl_status no_such(const char *pattern)
{
	bid_error_about(pattern, -ENOENT, "no matching probe");
	return CTL_REFUSED;
}

static enum ctl_status show_definitions(const struct ctl *ctl, int argc, char **argv)
{
	bid_cleanup(ctl_probe_file_release) struct ctl_probe_file file = { 0 };
	ctl_auto_store struct bid_store *store = NULL;
	struct ctl_probe_target target;
	size_t n = 0;
	enum ctl_status status;

	if (argc < 1)
		return ctl_usage("probe show", "'probe show' needs ID|FILE|kernel");
	status = ctl_open_store(ctl, CTL_WRITE_IF_POSSIBLE, &store);
	if (status == CTL_DONE)
		status = ctl_probe_target_find(store, argv[0], &target);
	if (status == CTL_DONE)
		status = ctl_probe_target_read(store, &target, &file);
	if (status != CTL_DONE)
		return status;
	if (ctl_probe_unmatched(&file, argv + 1, argc - 1))
		return no_such(ctl_probe_unmatched(&file, argv + 1, argc - 1));
	for (size_t i = 0; i < file.n; i++) {
		if (!ctl_probe_wanted(&file.probes[i], argv + 1, argc - 1))
			continue;
		n++;
		if (ctl->json)
			print_row(ctl, &target.id, &file.probes[i]);
		else
			ctl_probe_print(stdout, &file.probes[i]);
	}
	ctl_totals(ctl, CTL_NUMBER("probes", CTL_HIDDEN, n));
	return CTL_DONE;
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
		bid_error_about("standard input", r, "%s", r == -EBADMSG ? "not in perf's format" : bid_strerror(r));
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
		bid_error_about(hex, error, "%s: the probe definitions of '%s'",
				error == -EBADMSG ? "not in perf's format" : bid_strerror(error), hex);
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
		status = ctl_probe_target_find(store, argv[0], &target);
	if (status == CTL_DONE && adding)
		status = collect_definitions(store, &target, argc - 1, argv + 1, &change.wanted);
	if (status == CTL_DONE) {
		r = ctl_probe_edit(store, &target.id, adding ? edit_add : edit_remove, &change, ctl->dry_run);
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
