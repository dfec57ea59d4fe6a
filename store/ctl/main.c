// SPDX-License-Identifier: LGPL-2.1-or-later
/* bidctl: the store and the file system of build-ids from the command line. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
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
#include "ctl/closest.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/size.h"

#define HELP_BUILD "ID|FILE|kernel"
#define HELP_ID \
	"ID is a build-id in hex, in full or its first 7 digits or more; FILE is an ELF\n" \
	"file, or a path of one that the store knows; kernel is the running kernel.\n\n"
#define HELP_PATTERN "PATTERN is a part of the path, has wildcards, or is an ID.\n\n"
#define HELP_KIND \
	"KIND is debuginfo (the default), elf, kallsyms, probes or vdso; or source or\n" \
	"section with a NAME. KIND may stand in front of ID.\n"

static const struct command {
	const char *name;
	const char *operands;
	const char *help;
	int min, max; /* number of operands; a negative maximum means no limit */
	ctl_command_fn run; /* NULL for help */
	const char *more; /* further paragraphs and examples of its help, or NULL */
} commands[] = {
	{ "add", "FILE|DIR...", "add ELF files to the store, each under its build-id", 0, -1, ctl_add,
	  "Examples:\n"
	  "  bidctl add /usr/lib/debug ./build\n"
	  "  bidctl add --running --kernel\n"
	  "  bidctl add --perf-data=perf.data --fetch\n" },
	{ "list", "[PATTERN]", "list the builds in the store", 0, 1, ctl_list,
	  HELP_PATTERN "Examples:\n"
		       "  bidctl list '/usr/lib/*' --missing=debuginfo\n"
		       "  bidctl list --by=size\n" },
	{ "show", HELP_BUILD, "show the artifacts of a build, or of all builds of a path", 1, 1, ctl_show,
	  HELP_ID "Examples:\n"
		  "  bidctl show 15dfff3\n"
		  "  bidctl show /usr/bin/ls\n" },
	{ "get", HELP_BUILD "|- [KIND [NAME]]", "fetch an artifact unless it is stored, and print its path", 0, 3, ctl_get,
	  HELP_KIND HELP_ID "'-' reads build-ids from standard input, one a line.\n\n"
			    "Examples:\n"
			    "  bidctl get /usr/bin/ls\n"
			    "  bidctl get 15dfff3 source /usr/src/coreutils/ls.c\n"
			    "  bidctl get --core=core.1234\n" },
	{ "remove", HELP_BUILD "...", "remove builds, or one path of a build", 0, -1, ctl_remove,
	  HELP_ID "Examples:\n"
		  "  bidctl remove ./a.out\n"
		  "  bidctl remove --path=/usr/bin/ls --dry-run\n" },
	{ "update", "FILE...", "add files, and replace what the store has of their builds", 1, -1, ctl_update },
	{ "missing", "[ID...]", "list the build-ids that the store lacks", 0, -1, ctl_missing,
	  "Without ID it reads build-ids from standard input, one a line.\n"
	  "Exit status 1 if any is missing.\n\n"
	  "Examples:\n"
	  "  perf buildid-list | bidctl missing\n"
	  "  bidctl missing --perf-data=perf.data\n" },
	{ "archive", "[" HELP_BUILD "...]", "pack builds, or all that a perf recording names, for another machine", 0, -1,
	  ctl_archive,
	  HELP_ID "Examples:\n"
		  "  bidctl archive --output=builds.tar.zst --perf-data=perf.data\n" },
	{ "unarchive", "FILE", "unpack an archive of 'bidctl archive' or perf archive ('-': standard input)", 1, 1, ctl_unarchive },
	{ "probe", "VERB [" HELP_BUILD "] ...", "list, show, add, remove or apply the probe definitions of a build", 1, -1,
	  ctl_probe,
	  "VERB is list, show, add, remove or apply.\n" HELP_ID "Examples:\n"
	  "  bidctl probe show kernel\n"
	  "  bidctl probe apply ./a.out\n" },
	{ "verify", "[" HELP_BUILD "...]", "check every object, name and record", 0, -1, ctl_verify,
	  "Exit status 1 if anything is found, also if it was repaired.\n" HELP_ID "Examples:\n"
	  "  bidctl verify --deep --repair\n"
	  "  bidctl verify --against=packages\n" },
	{ "du", "[PATTERN]", "show what the store takes on disk, by kind and origin", 0, 1, ctl_du,
	  HELP_PATTERN "Examples:\n"
		       "  bidctl du\n"
		       "  bidctl du '/usr/lib/*'\n" },
	{ "gc", "", "evict downloaded and derived files, least recently used first", 0, 0, ctl_gc,
	  "SIZE is a number with K, M, G, T or KiB, MiB, GiB, TiB, or a part of the\n"
	  "file system, such as 10%. Exit status 1 if a limit was not reached.\n\n"
	  "Examples:\n"
	  "  bidctl gc --cache-size=1.5G --dry-run\n"
	  "  bidctl gc --min-free=10%\n" },
	{ "log", "", "show what was fetched, refused and evicted, newest last", 0, 0, ctl_log },
	{ "pin", HELP_BUILD "...", "keep builds: gc never evicts what the store has of them now", 1, -1, ctl_pin,
	  HELP_ID "Examples:\n"
		  "  bidctl pin /usr/bin/ls\n" },
	{ "quarantine", "[list|restore NAME...|drop NAME...]", "list, restore or drop wrong files", 0, -1, ctl_quarantine,
	  "list prints the time, the size, the build-id that the file carries, and its name.\n"
	  "restore adds a file under that build-id.\n\n"
	  "Examples:\n"
	  "  bidctl quarantine\n"
	  "  bidctl quarantine restore --dry-run NAME\n" },
	{ "mount", "[STORE [MOUNTPOINT]]", "mount a store as a file system: mount.bidfs", 0, 2, ctl_mount,
	  "Examples:\n"
	  "  bidctl mount\n"
	  "  bidctl mount ~/.debug /mnt/bid -o url=https://debuginfod.elfutils.org\n" },
	{ "umount", "[MOUNT...]", "unmount these mounts, or the mount of the store", 0, -1, ctl_umount },
	{ "watch", "", "add programs as they are started and mapped, until interrupted", 0, 0, ctl_watch },
	{ "offline", "on|off [MOUNT...]", "switch mounts offline or online", 1, -1, ctl_offline },
	{ "setup", "system|user", "let debuggers find all builds, without a setting", 1, 1, ctl_setup,
	  "system, as root: for all tools of the machine. user: for gdb and lldb.\n\n"
	  "Examples:\n"
	  "  bidctl setup system --url=https://debuginfod.elfutils.org\n"
	  "  bidctl setup user\n"
	  "  bidctl setup user --undo\n" },
	{ "status", "", "show the store and the mounts", 0, 0, ctl_show_status },
	{ "doctor", "", "check FUSE, the store, the mounts and the servers, with remedies", 0, 0, ctl_doctor,
	  "Exit status 1 if anything is bad.\n" },
	{ "help", "[COMMAND]", "show the commands, or the options of one", 0, 1, NULL },
};

enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

/* Names of commands in other tools, for suggestions alone. */
static const char *const aliases[][2] = {
	{ "ls", "list" },      { "rm", "remove" },	{ "delete", "remove" },	 { "fsck", "verify" },
	{ "check", "verify" }, { "prune", "gc" },	{ "fetch", "get" },	 { "find", "list" },
	{ "info", "show" },    { "unmount", "umount" }, { "export", "archive" }, { "import", "unarchive" },
};

/* Options that only set a field of struct ctl. */
enum noted { NOT, AS_FLAG, AS_TEXT };

#define FLAG(field) AS_FLAG, offsetof(struct ctl, field)
#define TEXT(field) AS_TEXT, offsetof(struct ctl, field)

/* An option with several help texts has a row for each; the first row decides everything else. */
static const struct {
	const char *name;
	int letter; /* 0 for none */
	const char *argument; /* NULL without one */
	const char *commands; /* commands with this option, separated by blanks; NULL for all */
	const char *help;
	enum noted noted;
	size_t offset; /* offset of the bool or the const char * */
} options[] = {
	{ "store", 's', "DIR", NULL, "use this store (default: perf's buildid.dir, then ~/.debug)", TEXT(store) },
	{ "json", 'j', NULL, NULL, "print JSON", FLAG(json) },
	{ "verbose", 'v', NULL, NULL, "print more", FLAG(verbose) },
	{ "quiet", 'q', NULL, NULL, "print no summary, no progress and no warning", FLAG(quiet) },
	{ "color", 0, "WHEN", NULL, "auto, always or never (default: auto)" },
	{ "progress", 0, "WHEN", NULL, "auto, always or never (default: auto)" },
	{ "help", 'h', NULL, NULL, "show this help" },
	{ "version", 'V', NULL, NULL, "show the version" },
	{ "perf-data", 0, "FILE", "add archive get missing", "take the builds that a perf recording names ('-': stdin)" },
	{ "core", 0, "FILE", "get", "get all that a core file names", TEXT(core) },
	{ "pid", 0, "PID", "get", "get all that a process has mapped as code", TEXT(pid) },
	{ "fetch", 0, NULL, "add", "with --perf-data: fetch what this machine lacks", FLAG(fetch) },
	{ "fetch", 0, NULL, "archive", "fetch what the store lacks", FLAG(fetch) },
	{ "output", 'o', "FILE", "archive", "write FILE.tar.zst, .tar.gz, .tar.xz, .tar.bz2, .tar, or '-'", TEXT(output) },
	{ "options", 'o', "OPTIONS", "mount", "mount options, as mount.bidfs(8) has them" },
	{ "link", 0, "WAY", "add watch", "auto, reflink, hard or copy (default: auto)" },
	{ "jobs", 0, "N", "add", "search with N threads (default: one per CPU)" },
	{ "jobs", 0, "N", "verify", "check with N threads (default: one per CPU)" },
	{ "cross", 0, NULL, "add", "search other file systems below a directory, too", FLAG(cross) },
	{ "files-from", 0, "FILE", "add", "add the paths in FILE, one a line ('-': stdin)", TEXT(files_from) },
	{ "running", 0, NULL, "add", "add what every process has mapped as code, and the kernel", FLAG(running) },
	{ "kernel", 0, NULL, "add", "add the running kernel: symbols, vDSO, modules, image", FLAG(kernel) },
	{ "content-keys", 0, NULL, "list", "list what is stored without a build-id", FLAG(content_keys) },
	{ "kind", 0, "KIND", "list", "list only builds with an artifact of this kind" },
	{ "missing", 0, "KIND", "list", "list only builds without an artifact of this kind" },
	{ "format", 0, "FORMAT", "list", "print FORMAT, such as '%(size) %(path)', for each build", TEXT(format) },
	{ "null", '0', NULL, "list", "end rows with NUL instead of newline", FLAG(nul) },
	{ "lower", 0, "DIR", "archive list show get missing status", "read DIR, too ('debuginfod': its cache; 'none')" },
	{ "links", 0, "DIR", "add archive list show get missing status verify", "follow links of lower stores into DIR[:DIR...]" },
	{ "interval", 0, "SECONDS", "watch", "look through all processes that often (default: 10)" },
	{ "interval", 0, "SECONDS", "status", "with --watch: show it that often (default: 2)" },
	{ "watch", 'w', NULL, "status", "show it again and again, until interrupted", FLAG(watch) },
	{ "once", 0, NULL, "watch", "look through all processes once, then end", FLAG(once) },
	{ "url", 0, "URL", "add archive doctor get setup verify", "ask this server, not those of the environment; repeatable" },
	{ "offline", 0, NULL, "doctor get verify", "ask no server", FLAG(offline) },
	{ "refresh", 0, NULL, "get", "ignore cached \"not found\" answers", FLAG(refresh) },
	{ "accept", 0, NULL, "get", "accept other bytes than were fetched first for this id", FLAG(accept) },
	{ "require", 0, "WHAT", "get", "signed: no download without a valid signature; any (default)" },
	{ "by", 0, "ORDER", "list", "id, path, time (newest first) or size (largest first) (default: id)" },
	{ "path", 0, "PATH", "remove", "remove every build of this original path; repeatable" },
	{ "deep", 0, NULL, "verify", "read every byte and compare it with the recorded digest", FLAG(deep) },
	{ "against", 0, "LIST", "verify", "compare with a list of sha256sum(1), or with 'packages'", TEXT(against) },
	{ "repair", 0, NULL, "verify", "relink, quarantine and fetch again", FLAG(repair) },
	{ "cache-size", 0, "SIZE", "gc", "evict until at most SIZE of these files remains" },
	{ "min-free", 0, "SIZE", "gc", "evict until SIZE is free on the file system" },
	{ "undo", 0, NULL, "setup", "undo what 'setup' has changed", FLAG(undo) },
	{ "root", 0, "DIR", "setup", "change the machine whose files are in DIR, such as an image", TEXT(root) },
	{ "dry-run", 'n', NULL, "gc pin quarantine remove setup", "change nothing, only show what would change", FLAG(dry_run) },
	/* behind --dry-run, to which -n belongs before the command */
	{ "lines", 'n', "N", "log", "show only the last N events" },
};

enum {
	N_OPTIONS = sizeof(options) / sizeof(options[0]),
	LONG_ONLY = 256,
	JOBS_MAX = 256,
	INTERVAL_MAX = 86400,
};

enum ctl_status ctl_usage(const char *format, ...)
{
	char message[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	bid_error("%s", message);
	return CTL_USAGE;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static enum ctl_status refuse_command(const char *name)
{
	const char *names[N_COMMANDS + 1] = { 0 }, *meant = NULL;

	for (size_t i = 0; i < N_COMMANDS; i++)
		names[i] = commands[i].name;
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strcmp(aliases[i][0], name) == 0)
			meant = aliases[i][1];
	if (!meant)
		meant = ctl_closest(name, names);
	if (meant)
		return ctl_usage("no such command: '%s' - did you mean '%s'?", name, meant);
	return ctl_usage("no such command: '%s'", name);
}

/* Does row @index name @command, as an option of certain commands? */
static bool is_own_option(size_t index, const char *command)
{
	size_t len = strlen(command);

	for (const char *at = options[index].commands; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
		if (strcspn(at, " ") == len && strncmp(at, command, len) == 0)
			return true;
	return false;
}

/* Does @command have the option of row @index? Looks at all rows of that option. */
static bool has_option(const char *command, size_t index)
{
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (strcmp(options[i].name, options[index].name) == 0 && (!options[i].commands || is_own_option(i, command)))
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
		printf("  %-21s  %s\n", text, options[i].help);
	}
}

static bool has_own_options(const char *command)
{
	for (size_t i = 0; i < N_OPTIONS; i++)
		if (is_own_option(i, command))
			return true;
	return false;
}

static enum ctl_status print_command_help(const struct command *command)
{
	printf("Usage: bidctl %s [OPTION...]%s%s\n%c%s.\n", command->name, *command->operands ? " " : "", command->operands,
	       command->help[0] - 'a' + 'A', command->help + 1);
	if (command->more)
		printf("\n%s", command->more);
	if (has_own_options(command->name)) {
		puts("\nOptions:");
		print_options(command->name);
	}
	puts("\nOptions of every command:");
	print_options(NULL);
	printf("\nSee bidctl-%s(1).\n", command->name);
	return CTL_DONE;
}

static enum ctl_status print_help(void)
{
	puts("Usage: bidctl [OPTION...] COMMAND [OPERAND...]\nELF artifacts by build-id.\n\nCommands:");
	for (size_t i = 0; i < N_COMMANDS; i++)
		if (commands[i].run)
			printf("  %-11s  %s\n", commands[i].name, commands[i].help);
	puts("\nOptions of every command:");
	print_options(NULL);
	puts("\n'bidctl help COMMAND' shows the options of a command.\n"
	     "Exit status: 0 done, 1 not found or refused, 2 usage, 3 I/O or network trouble.\n"
	     "See bidctl(1); the page of a command is bidctl-COMMAND(1).");
	return CTL_DONE;
}

static enum ctl_status run_help(int argc, char **argv)
{
	const struct command *command = argc > 0 ? find_command(argv[0]) : NULL;

	if (argc > 1)
		return ctl_usage("too many operands for 'help': '%s'", argv[1]);
	if (argc > 0 && !command)
		return refuse_command(argv[0]);
	return command && command->run ? print_command_help(command) : print_help();
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
	/* strtoul(3) accepts blanks and signs, too */
	if (text[0] < '0' || text[0] > '9' || *end || errno || number == 0 || number > max)
		return -EINVAL;
	*ret_number = (unsigned)number;
	return 0;
}

static int parse_require(const char *text, bool *ret_signed)
{
	*ret_signed = strcmp(text, "signed") == 0;
	return *ret_signed || strcmp(text, "any") == 0 ? 0 : -EINVAL;
}

/* Parse --color and --progress into the environment variables that their users read. */
/* Parse a kind that the store lists, else BID_KIND_NONE. */
static enum bid_kind parse_stored_kind(const char *name)
{
	enum bid_kind kind = bid_kind_parse(name);

	return kind < BID_KIND_COUNT ? kind : BID_KIND_NONE;
}

static int parse_when(const char *text, const char *always, const char *never)
{
	unsetenv(always);
	unsetenv(never);
	if (strcmp(text, "always") == 0)
		return setenv(always, "1", 1);
	if (strcmp(text, "never") == 0)
		return setenv(never, "1", 1);
	return strcmp(text, "auto") == 0 ? 0 : -EINVAL;
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
	const struct command *command; /* NULL without one */
	bool help;
	bool version;
	uint64_t seen; /* bit mask of the given options: 1 << index of the option's first row in options[] */
};

/* Process one option. */
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
	else if (strcmp(name, "options") == 0)
		ctl->options[ctl->n_options++] = value;
	else if (strcmp(name, "path") == 0)
		ctl->paths[ctl->n_paths++] = value;
	else if (strcmp(name, "perf-data") == 0 && ctl->perf_data)
		return ctl_usage("one recording at a time: '%s'", value);
	else if (strcmp(name, "perf-data") == 0)
		ctl->perf_data = value;
	else if (strcmp(name, "by") == 0 && parse_order(value, &ctl->order) < 0)
		return ctl_usage("not an order, which is id, path, time or size: '%s'", value);
	else if ((strcmp(name, "cache-size") == 0 && ctl_parse_size(value, &ctl->cache_size) < 0) ||
		 (strcmp(name, "min-free") == 0 && ctl_parse_size(value, &ctl->min_free) < 0))
		return ctl_usage("not a size such as 500M, 1.5GiB or 10%%: '%s'", value);
	else if ((strcmp(name, "color") == 0 && parse_when(value, CTL_COLOUR_ALWAYS, CTL_COLOUR_NEVER) < 0) ||
		 (strcmp(name, "progress") == 0 && parse_when(value, CTL_PROGRESS_ALWAYS, CTL_PROGRESS_NEVER) < 0))
		return ctl_usage("not one of auto, always, never: '%s'", value);
	else if (strcmp(name, "kind") == 0 && !(ctl->kind = parse_stored_kind(value)))
		return ctl_usage("no such kind of artifact: '%s'", value);
	else if (strcmp(name, "missing") == 0 && !(ctl->missing = parse_stored_kind(value)))
		return ctl_usage("no such kind of artifact: '%s'", value);
	else if (strcmp(name, "jobs") == 0 && parse_number(value, JOBS_MAX, &ctl->jobs) < 0)
		return ctl_usage("not a number of threads, 1 to %d: '%s'", JOBS_MAX, value);
	else if (strcmp(name, "lines") == 0 && parse_number(value, UINT_MAX, &ctl->lines) < 0)
		return ctl_usage("not a number of events: '%s'", value);
	else if (strcmp(name, "interval") == 0 && parse_number(value, INTERVAL_MAX, &ctl->interval) < 0)
		return ctl_usage("not a number of seconds, 1 to %d: '%s'", INTERVAL_MAX, value);
	else if (strcmp(name, "require") == 0 && parse_require(value, &ctl->require_signed) < 0)
		return ctl_usage("neither 'signed' nor 'any': '%s'", value);
	else if (strcmp(name, "link") == 0 && parse_link(value, &ctl->link) < 0)
		return ctl_usage("not a way to link: '%s'", value);
	return CTL_DONE;
}

/* Refuse the option in @word, "--NAME" or "--NAME=VALUE", and suggest the nearest name. */
static enum ctl_status refuse_name(const char *word)
{
	const char *names[N_OPTIONS + 1] = { 0 }, *meant;
	char name[64];

	for (size_t i = 0; i < N_OPTIONS; i++)
		names[i] = options[i].name;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	meant = ctl_closest(name, names);
	if (meant)
		return ctl_usage("no such option: '--%s' - did you mean '--%s'?", name, meant);
	return ctl_usage("no such option: '--%s'", name);
}

/* Refuse @word, the last word before getopt_long(3)'s position. */
static enum ctl_status refuse_option(const struct option *longs, const char *word)
{
	if (optopt == 0)
		return refuse_name(word);
	for (; longs->name; longs++)
		if (longs->val == optopt)
			return ctl_usage("takes no argument: '%s'", word);
	/* getopt_long(3) may still be inside a word of several letters */
	return ctl_usage("no such option: '-%c'", optopt);
}

/* Does @word, "--NAME" or "--NAME=VALUE", have the full name of @option? getopt_long(3) accepts abbreviated names. */
static bool is_spelt_out(const struct option *option, const char *word)
{
	size_t len = strlen(option->name);

	return strcspn(word + 2, "=") == len && strncmp(word + 2, option->name, len) == 0;
}

/* Fill the letters for getopt_long(3), those of @command (may be NULL) first: "-n" has an argument for "log" alone. */
static void fill_letters(const struct command *command, char *shorts, size_t size)
{
	for (int own = 1; own >= 0; own--)
		for (size_t i = 0; i < N_OPTIONS; i++)
			if (options[i].letter && (command && is_own_option(i, command->name)) == own)
				snprintf(shorts + strlen(shorts), size - strlen(shorts), "%c%s", options[i].letter,
					 options[i].argument ? ":" : "");
}

/* Find the command, the first word that is neither an option nor the argument of one. */
static const struct command *look_for_command(int argc, char **argv, const struct option *longs)
{
	char shorts[2 * N_OPTIONS + 3] = "+:";

	fill_letters(NULL, shorts, sizeof(shorts));
	while (getopt_long(argc, argv, shorts, longs, NULL) >= 0)
		;
	argv += optind;
	argc -= optind;
	optind = 0; /* begin anew */
	return argc > 0 ? find_command(argv[0]) : NULL;
}

/* Find the row of the letter @key, for @command if several have it. */
static size_t row_of_letter(int key, const struct command *command)
{
	size_t row = 0;

	for (size_t i = N_OPTIONS; i-- > 0;)
		if (options[i].letter == key && (options[row].letter != key || !command || !is_own_option(row, command->name)))
			row = i;
	return row;
}

static enum ctl_status parse(struct ctl *ctl, struct wanted *wanted, int argc, char **argv)
{
	struct option longs[N_OPTIONS + 1] = { 0 };
	char shorts[2 * N_OPTIONS + 2] = ":";

	opterr = 0;
	for (int i = 0; i < N_OPTIONS; i++)
		longs[i] = (struct option){ options[i].name, options[i].argument ? required_argument : no_argument, NULL,
					    LONG_ONLY + i };
	wanted->command = look_for_command(argc, argv, longs);
	fill_letters(wanted->command, shorts, sizeof(shorts));
	for (;;) {
		int key = getopt_long(argc, argv, shorts, longs, NULL);
		enum ctl_status status = CTL_DONE;
		const char *word;

		if (key < 0)
			return CTL_DONE;
		word = argv[optind - 1];
		if (key == ':')
			return ctl_usage("an argument is missing: '%s'", word);
		if (key == '?')
			return refuse_option(longs, word);
		/* the argument is a word of its own */
		if (optarg == word)
			word = argv[optind - 2];
		if (key >= LONG_ONLY && !is_spelt_out(&longs[key - LONG_ONLY], word))
			return refuse_name(word);
		status = take(ctl, wanted, key >= LONG_ONLY ? (size_t)(key - LONG_ONLY) : row_of_letter(key, wanted->command),
			      optarg);
		if (status != CTL_DONE)
			return status;
	}
}

static enum ctl_status run(const struct ctl *ctl, const struct wanted *wanted, int argc, char **argv)
{
	const struct command *command = wanted->command;

	if (wanted->version) {
		printf("bidctl %s\n", bid_version());
		return CTL_DONE;
	}
	if (argc > 0 && !command)
		return refuse_command(argv[0]);
	if (wanted->help)
		return command && command->run ? print_command_help(command) : print_help();
	if (!command)
		return ctl_usage("no command");

	for (size_t i = 0; i < N_OPTIONS; i++)
		if (wanted->seen & UINT64_C(1) << i && !has_option(command->name, i))
			return ctl_usage("not an option of '%s': '--%s'", command->name, options[i].name);
	argc--;
	argv++;
	if (argc < command->min)
		return ctl_usage("'%s' needs %s", command->name, command->operands);
	if (command->max >= 0 && argc > command->max)
		return ctl_usage("too many operands for '%s': '%s'", command->name, argv[command->max]);
	return command->run ? command->run(ctl, argc, argv) : run_help(argc, argv);
}

static void point_to_help(const struct command *command)
{
	fprintf(stderr, "Try 'bidctl %s%s--help'.\n", command ? command->name : "", command ? " " : "");
}

/* Does a word look like --json, alone or among letters? */
static bool asks_for_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--json") == 0 || (argv[i][0] == '-' && argv[i][1 + strspn(argv[i] + 1, "vqn0")] == 'j'))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	bid_auto_free const char **urls = calloc((size_t)argc + 1, sizeof(*urls));
	bid_auto_free const char **paths = calloc((size_t)argc + 1, sizeof(*paths));
	bid_auto_free const char **lowers = calloc((size_t)argc + 1, sizeof(*lowers));
	bid_auto_free const char **given = calloc((size_t)argc + 1, sizeof(*given));
	struct ctl ctl = { .urls = urls, .paths = paths, .lowers = lowers, .options = given };
	struct ctl_envelope envelope;
	struct wanted wanted = { 0 };
	enum ctl_status status;

	/* a summary is printed in parts, and is one line */
	setlinebuf(stderr);
	bid_log_init("bidctl", BID_LOG_WARNING);
	if (bid_stdio_occupy() < 0)
		return CTL_TROUBLE;
	if (!urls || !paths || !lowers || !given) {
		bid_error("%s", strerror(ENOMEM));
		return CTL_TROUBLE;
	}
	/* before the options: errors in them, too */
	if (asks_for_json(argc, argv)) {
		ctl_envelope_begin(&envelope);
		ctl.envelope = &envelope;
	}
	status = parse(&ctl, &wanted, argc, argv);
	if (ctl.quiet)
		setenv(CTL_PROGRESS_NEVER, "1", 1);
	bid_log_init("bidctl", ctl.quiet ? BID_LOG_ERROR : ctl.verbose ? BID_LOG_INFO : BID_LOG_WARNING);
	envelope.command = wanted.command ? wanted.command->name : NULL;
	/* help has no other form than text */
	if (status == CTL_DONE && (!ctl.json || wanted.help || wanted.version || (wanted.command && !wanted.command->run)))
		ctl.envelope = NULL;
	ctl.json = ctl.envelope != NULL;
	if (status == CTL_DONE)
		status = run(&ctl, &wanted, argc - optind, argv + optind);
	if (ctl.json && ctl_envelope_end(&envelope) < 0) {
		bid_error("%s", strerror(ENOMEM));
		status = CTL_TROUBLE;
	}

	if (fflush(stdout) != 0 || ferror(stdout)) {
		bid_error("%s: standard output", strerror(errno));
		status = CTL_TROUBLE;
	}
	if (status == CTL_USAGE)
		point_to_help(wanted.command);
	for (char **dir = ctl.links; dir && *dir; dir++)
		free(*dir);
	free(ctl.links);
	return (int)status;
}
