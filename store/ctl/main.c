// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl: the store and the file system of build-ids from the command line. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bid/version.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "base/stdio.h"
#include "ctl/ctl.h"
#include "ctl/size.h"

static const struct command {
	const char *name;
	const char *operands;
	const char *help;
	int min, max; /* operands; a negative maximum is none */
	ctl_command_fn run;
} commands[] = {
	{ "add", "FILE|DIR...", "put ELF files into the store, each under its build-id", 0, -1, ctl_add },
	{ "list", "", "list what is in the store", 0, 0, ctl_list },
	{ "show", "ID|PATH", "show what is known of a build, or of all builds of a path", 1, 1, ctl_show },
	{ "get", "ID|- [KIND [NAME]]", "fetch an artifact if it is not there, print its path; or many", 0, 3, ctl_get },
	{ "remove", "FILE|ID|COOKIE...", "take builds, or names of builds, out of the store", 0, -1, ctl_remove },
	{ "update", "FILE...", "add files in the place of what the store has of their build", 1, -1, ctl_update },
	{ "missing", "[ID...]", "list which of these ids, or of those on standard input, the store lacks", 0, -1, ctl_missing },
	{ "archive", "[ID...]", "pack builds, or what a recording of perf names, for another machine", 0, -1, ctl_archive },
	{ "unarchive", "FILE", "take in what 'archive' or perf archive packed ('-': standard input)", 1, 1, ctl_unarchive },
	{ "probe", "VERB [ID|FILE|kernel] ...", "list, show, add, remove or apply probe definitions of a build", 1, -1, ctl_probe },
	{ "verify", "[ID...]", "check every object, name and record; with '--repair' put them right", 0, -1, ctl_verify },
	{ "gc", "", "evict what was fetched, longest unused first, until the limits are kept", 0, 0, ctl_gc },
	{ "watch", "", "add what runs, as it is started and mapped, until it is told to end", 0, 0, ctl_watch },
	{ "offline", "on|off [MOUNT...]", "have mounts ask no server, or ask them again", 1, -1, ctl_offline },
	{ "setup", "system|user", "give debuggers all builds without a setting of theirs; '--undo' takes it back", 1, 1,
	  ctl_setup },
	{ "status", "", "show the store and the mounts", 0, 0, ctl_show_status },
};

enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

/* What needs no more than to be noted in struct ctl. */
enum noted { NOT, AS_FLAG, AS_TEXT };

#define FLAG(field) AS_FLAG, offsetof(struct ctl, field)
#define TEXT(field) AS_TEXT, offsetof(struct ctl, field)

static const struct {
	const char *name;
	int letter; /* 0 if it has none */
	const char *argument; /* NULL if it takes none */
	const char *commands; /* whose it is, blanks between them; NULL for all */
	const char *help;
	enum noted noted;
	size_t offset; /* of the bool or the const char * */
} options[] = {
	{ "store", 's', "DIR", NULL, "the store (default: perf's buildid.dir, then ~/.debug)", TEXT(store) },
	{ "json", 'j', NULL, NULL, "write JSON on standard output", FLAG(json) },
	{ "verbose", 'v', NULL, NULL, "say more on standard error", FLAG(verbose) },
	{ "help", 'h', NULL, NULL, "show this help, of one command if it is named" },
	{ "version", 'V', NULL, NULL, "show the version" },
	{ "perf-data", 0, "FILE", "add archive get missing", "what a recording of perf names ('-': standard input)" },
	{ "core", 0, "FILE", "get", "what a core file says was mapped", TEXT(core) },
	{ "pid", 0, "PID", "get", "what a process has mapped as code", TEXT(pid) },
	{ "fetch", 0, NULL, "add archive", "fetch from the servers what is not here; for 'add' only with --perf-data",
	  FLAG(fetch) },
	{ "output", 'o', "FILE", "archive", "write FILE.tar.zst, .tar.gz, .tar.xz, .tar.bz2 or .tar; or '-'", TEXT(output) },
	{ "link", 0, "WAY", "add watch", "auto, reflink, hard or copy (default: auto)" },
	{ "jobs", 0, "N", "add verify", "search or check with N threads (default: one per CPU)" },
	{ "cross", 0, NULL, "add", "search other file systems below a directory, too", FLAG(cross) },
	{ "files-from", 0, "FILE", "add", "the ELF files among the paths in FILE, one on a line ('-': standard input)",
	  TEXT(files_from) },
	{ "running", 0, NULL, "add", "what every process has mapped as code, the kernel and its modules", FLAG(running) },
	{ "kernel", 0, NULL, "add", "the running kernel: symbols, vDSO, modules, and its image and debug file", FLAG(kernel) },
	{ "cookies", 0, NULL, "list", "list what is kept without a build-id, which is a guess", FLAG(cookies) },
	{ "lower", 0, "DIR", "archive list show get missing status", "look into DIR, too ('debuginfod': its cache; or 'none')" },
	{ "links", 0, "DIR", "add archive list show get missing status verify",
	  "follow links of lower stores and file:// trees into DIR; ':' between several" },
	{ "interval", 0, "SECONDS", "watch", "look through all processes that often (default: 10)" },
	{ "once", 0, NULL, "watch", "look through all processes once, and end", FLAG(once) },
	{ "url", 0, "URL", "add archive get setup verify", "ask this server, not those of the environment; repeatable" },
	{ "offline", 0, NULL, "get verify", "ask no server", FLAG(offline) },
	{ "refresh", 0, NULL, "get", "ask the servers even for what they said they do not have", FLAG(refresh) },
	{ "accept", 0, NULL, "get", "take other bytes than were fetched first under this id", FLAG(accept) },
	{ "by", 0, "ORDER", "list", "id, path, time (newest first) or size (largest first) (default: id)" },
	{ "path", 0, "PATH", "remove", "every build of this original path; repeatable" },
	{ "deep", 0, NULL, "verify", "read every byte, and compare it with the digest that was recorded", FLAG(deep) },
	{ "repair", 0, NULL, "verify", "adopt, set aside, fetch again: put right what was found", FLAG(repair) },
	{ "cache-size", 0, "SIZE", "gc", "as much of what was fetched or made may stay; with a suffix K, M, G or T" },
	{ "min-free", 0, "SIZE", "gc", "as much is to be free on the file system" },
	{ "print", 0, NULL, "probe", "of 'apply': print a script that checks the build and sets the probes, where it is run",
	  FLAG(print) },
	{ "notes", 0, "FILE", "probe", "of 'apply': another machine's /sys/kernel/notes", TEXT(notes) },
	{ "guru", 0, NULL, "probe", "of 'apply': set them in another build, too; twice: in one without a build-id" },
	{ "undo", 0, NULL, "setup", "put back what 'setup' has changed", FLAG(undo) },
	{ "root", 0, "DIR", "setup", "change the machine whose files are in DIR, such as an image", TEXT(root) },
	{ "dry-run", 0, NULL, "gc", "only show what would be evicted and dropped", FLAG(dry_run) },
};

enum { N_OPTIONS = sizeof(options) / sizeof(options[0]), LONG_ONLY = 256, JOBS_MAX = 256, INTERVAL_MAX = 86400 };

enum ctl_status ctl_usage(const char *format, ...)
{
	char message[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	bid_error("%s; see 'bidctl --help'", message);
	return CTL_USAGE;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* Is the @index-th option one of @command's own? */
static bool is_own_option(size_t index, const char *command)
{
	size_t len = strlen(command);

	for (const char *at = options[index].commands; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
		if (strcspn(at, " ") == len && strncmp(at, command, len) == 0)
			return true;
	return false;
}

static void print_options(const char *command)
{
	for (size_t i = 0; i < N_OPTIONS; i++) {
		char text[64], letter[8] = "    ";

		if (command ? !is_own_option(i, command) : options[i].commands != NULL)
			continue;
		if (options[i].letter)
			snprintf(letter, sizeof(letter), "-%c, ", options[i].letter);
		snprintf(text, sizeof(text), "%s--%s%s%s", letter, options[i].name, options[i].argument ? "=" : "",
			 options[i].argument ? options[i].argument : "");
		printf("  %-22s  %s\n", text, options[i].help);
	}
}

static bool has_own_options(const char *command)
{
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (is_own_option(i, command))
			return true;
	return false;
}

static enum ctl_status print_help(const struct command *only)
{
	if (only)
		printf("Usage: bidctl %s [OPTION...]%s%s\n%c%s.\n", only->name, *only->operands ? " " : "", only->operands,
		       only->help[0] - 'a' + 'A', only->help + 1);
	else
		printf("Usage: bidctl [OPTION...] COMMAND [OPERAND...]\nELF artifacts by build-id.\n\nCommands:\n");
	for (size_t i = 0; !only && i < N_COMMANDS; i++) {
		char text[32];

		snprintf(text, sizeof(text), "%s %s", commands[i].name, commands[i].operands);
		printf("  %-22s  %s\n", text, commands[i].help);
	}
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if ((only && only != &commands[i]) || !has_own_options(commands[i].name))
			continue;
		printf("\nOptions of %s:\n", commands[i].name);
		print_options(commands[i].name);
	}
	printf("\nOptions of every command:\n");
	print_options(NULL);
	printf("\nAn ID may be cut short to its first 7 digits or more. KIND is elf (or executable),\n"
	       "debuginfo (the default), kallsyms, probes or vdso; or source or section, with its NAME.\n"
	       "Exit status: 0 done, 1 not found or refused, 2 usage, 3 I/O or network trouble;\n"
	       "of verify a sum, see bidctl-verify(1).\n");
	if (only)
		printf("See bidctl-%s(1).\n", only->name);
	else
		printf("See bidctl(1); the page of a command is bidctl-COMMAND(1).\n");
	return CTL_DONE;
}

static int parse_link(const char *text, enum bid_link *ret_link)
{
	static const char *const names[] = {
		[BID_LINK_AUTO] = "auto", [BID_LINK_REFLINK] = "reflink", [BID_LINK_HARD] = "hard", [BID_LINK_COPY] = "copy"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret_link = (enum bid_link)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_number(const char *text, unsigned max, unsigned *ret_number)
{
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(text, &end, 10);
	/* strtoul(3) takes blanks and signs, too */
	if (text[0] < '0' || text[0] > '9' || *end || errno || number == 0 || number > max)
		return -EINVAL;
	*ret_number = (unsigned)number;
	return 0;
}

static int parse_order(const char *text, enum ctl_order *ret_order)
{
	static const char *const names[] = {
		[CTL_BY_ID] = "id", [CTL_BY_PATH] = "path", [CTL_BY_TIME] = "time", [CTL_BY_SIZE] = "size"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret_order = (enum ctl_order)i;
			return 0;
		}
	}
	return -EINVAL;
}

struct wanted {
	bool help;
	bool version;
	uint64_t seen; /* 1 << the index in options[] of each that was given */
};

/* Take in one option. */
static enum ctl_status take(struct ctl *ctl, struct wanted *wanted, size_t index, const char *value)
{
	const char *name = options[index].name;
	void *field = (char *)ctl + options[index].offset;

	wanted->seen |= UINT64_C(1) << index;
	if (options[index].noted == AS_FLAG)
		*(bool *)field = true;
	else if (options[index].noted == AS_TEXT)
		*(const char **)field = value;
	else if (strcmp(name, "help") == 0)
		wanted->help = true;
	else if (strcmp(name, "version") == 0)
		wanted->version = true;
	else if (strcmp(name, "url") == 0)
		ctl->urls[ctl->n_urls++] = value;
	else if (strcmp(name, "lower") == 0)
		ctl->lowers[ctl->n_lowers++] = value;
	else if (strcmp(name, "links") == 0 && bid_path_append_real(&ctl->links, "--links", value) < 0)
		return CTL_USAGE;
	else if (strcmp(name, "path") == 0)
		ctl->paths[ctl->n_paths++] = value;
	else if (strcmp(name, "guru") == 0)
		ctl->guru++;
	else if (strcmp(name, "perf-data") == 0 && ctl->perf_data)
		return ctl_usage("one recording at a time: '%s'", value);
	else if (strcmp(name, "perf-data") == 0)
		ctl->perf_data = value;
	else if (strcmp(name, "by") == 0 && parse_order(value, &ctl->order) < 0)
		return ctl_usage("not an order, which is id, path, time or size: '%s'", value);
	else if ((strcmp(name, "cache-size") == 0 && ctl_parse_size(value, &ctl->cache_size) < 0) ||
		 (strcmp(name, "min-free") == 0 && ctl_parse_size(value, &ctl->min_free) < 0))
		return ctl_usage("not a size of a byte or more, such as '500M': '%s'", value);
	else if (strcmp(name, "jobs") == 0 && parse_number(value, JOBS_MAX, &ctl->jobs) < 0)
		return ctl_usage("not a number of threads, 1 to %d: '%s'", JOBS_MAX, value);
	else if (strcmp(name, "interval") == 0 && parse_number(value, INTERVAL_MAX, &ctl->interval) < 0)
		return ctl_usage("not a number of seconds, 1 to %d: '%s'", INTERVAL_MAX, value);
	else if (strcmp(name, "link") == 0 && parse_link(value, &ctl->link) < 0)
		return ctl_usage("not a way to link: '%s'", value);
	return CTL_DONE;
}

/* What getopt_long(3) did not like; @word is the one that it has just left behind. */
static enum ctl_status refuse_option(const struct option *longs, const char *word)
{
	if (optopt == 0)
		return ctl_usage("no such option, or short for several: '%s'", word);
	for (; longs->name; longs++)
		if (longs->val == optopt)
			return ctl_usage("takes no argument: '%s'", word);
	/* the word may have more letters, and not have been left */
	return ctl_usage("no such option: '-%c'", optopt);
}

static enum ctl_status parse(struct ctl *ctl, struct wanted *wanted, int argc, char **argv)
{
	struct option longs[N_OPTIONS + 1] = { 0 };
	char shorts[2 * N_OPTIONS + 2] = ":";

	for (size_t i = 0; i < N_OPTIONS; i++) {
		int letter = options[i].letter;

		longs[i] = (struct option){ options[i].name, options[i].argument ? required_argument : no_argument, NULL,
					    letter ? letter : LONG_ONLY + (int)i };
		if (letter)
			snprintf(shorts + strlen(shorts), sizeof(shorts) - strlen(shorts), "%c%s", letter,
				 options[i].argument ? ":" : "");
	}
	opterr = 0;
	for (;;) {
		int which, key = getopt_long(argc, argv, shorts, longs, NULL);
		enum ctl_status status = CTL_DONE;

		if (key < 0)
			return CTL_DONE;
		if (key == ':')
			return ctl_usage("an argument is missing: '%s'", argv[optind - 1]);
		if (key == '?')
			return refuse_option(longs, argv[optind - 1]);
		for (which = 0; which < N_OPTIONS && longs[which].val != key; which++)
			;
		status = take(ctl, wanted, (size_t)which, optarg);
		if (status != CTL_DONE)
			return status;
	}
}

static enum ctl_status run(const struct ctl *ctl, const struct wanted *wanted, int argc, char **argv)
{
	const struct command *command = argc > 0 ? find_command(argv[0]) : NULL;

	if (wanted->version) {
		printf("bidctl %s\n", bid_version());
		return CTL_DONE;
	}
	if (argc > 0 && !command)
		return ctl_usage("no such command: '%s'", argv[0]);
	if (wanted->help)
		return print_help(command);
	if (!command)
		return ctl_usage("no command");

	for (size_t i = 0; i < N_OPTIONS; i++)
		if (wanted->seen & UINT64_C(1) << i && options[i].commands && !is_own_option(i, command->name))
			return ctl_usage("not an option of '%s': '--%s'", command->name, options[i].name);
	argc--;
	argv++;
	if (argc < command->min)
		return ctl_usage("'%s' needs %s", command->name, command->operands);
	if (command->max >= 0 && argc > command->max)
		return ctl_usage("too many operands for '%s': '%s'", command->name, argv[command->max]);
	return command->run(ctl, argc, argv);
}

int main(int argc, char **argv)
{
	bid_auto_free const char **urls = calloc((size_t)argc + 1, sizeof(*urls));
	bid_auto_free const char **paths = calloc((size_t)argc + 1, sizeof(*paths));
	bid_auto_free const char **lowers = calloc((size_t)argc + 1, sizeof(*lowers));
	struct ctl ctl = { .urls = urls, .paths = paths, .lowers = lowers };
	struct wanted wanted = { 0 };
	enum ctl_status status;

	bid_log_init("bidctl", BID_LOG_WARNING);
	if (bid_stdio_occupy() < 0)
		return CTL_TROUBLE;
	if (!urls || !paths || !lowers) {
		bid_error("%s", strerror(ENOMEM));
		return CTL_TROUBLE;
	}
	status = parse(&ctl, &wanted, argc, argv);
	if (ctl.verbose)
		bid_log_init("bidctl", BID_LOG_INFO);
	if (status == CTL_DONE)
		status = run(&ctl, &wanted, argc - optind, argv + optind);

	if (fflush(stdout) != 0 || ferror(stdout)) {
		bid_error("%s: standard output", strerror(errno));
		status = CTL_TROUBLE;
	}
	for (char **dir = ctl.links; dir && *dir; dir++)
		free(*dir);
	free(ctl.links);
	return (int)status;
}
