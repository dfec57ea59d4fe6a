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

#include <bid/error.h>
#include <bid/version.h>

#include "base/array.h"
#include "base/log.h"
#include "base/path.h"
#include "base/process.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

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
	  "  bidctl add --perf-data=perf.data\n" },
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
	  "ID is a build-id in full; FILE is an ELF file, or a path of one that the store\n"
	  "knows; kernel is the running kernel.\n\n"
	  "Examples:\n"
	  "  bidctl remove ./a.out\n"
	  "  bidctl remove --path=/usr/bin/ls --dry-run\n" },
	{ "update", "FILE...", "add files, and replace the stored files of their builds", 1, -1, ctl_update },
	{ "missing", "[ID...|-]", "list the build-ids that the store lacks", 0, -1, ctl_missing,
	  "Without ID it reads build-ids from standard input, one a line.\n"
	  "Exit status 1 if any is missing.\n\n"
	  "Examples:\n"
	  "  perf buildid-list | bidctl missing\n"
	  "  bidctl missing --perf-data=perf.data\n" },
	{ "archive", "[" HELP_BUILD "...]", "pack builds, or all builds of a recording or core file", 0, -1, ctl_archive,
	  HELP_ID "Examples:\n"
		  "  bidctl archive --output=builds.tar.zst --perf-data=perf.data\n"
		  "  bidctl archive --output=builds.tar.zst --core=core.1234\n" },
	{ "unarchive", "FILE", "unpack an archive of 'bidctl archive' or perf archive ('-': standard input)", 1, 1, ctl_unarchive },
	{ "probe", "list|show|add|remove|apply [" HELP_BUILD "] ...",
	  "list, show, add, remove or apply the probe definitions of a build", 1, -1, ctl_probe,
	  HELP_ID "Examples:\n"
		  "  bidctl probe show kernel\n"
		  "  bidctl probe apply ./a.out\n" },
	{ "verify", "[" HELP_BUILD "...]", "check every object, name and record", 0, -1, ctl_verify,
	  "Exit status 1 if anything is found, also if it was repaired.\n" HELP_ID "Examples:\n"
	  "  bidctl verify --deep --repair\n"
	  "  bidctl verify --against=packages\n" },
	{ "du", "", "show the disk usage of the store, by kind and origin", 0, 0, ctl_du },
	{ "gc", "", "evict downloaded and derived files, least recently used first", 0, 0, ctl_gc,
	  "SIZE is a number of bytes, or with K, M, G, T or KiB, MiB, GiB, TiB, or a\n"
	  "part of the file system, such as 10%. Exit status 1 if a limit was not\n"
	  "reached.\n\n"
	  "Examples:\n"
	  "  bidctl gc --cache-size=1.5G --dry-run\n"
	  "  bidctl gc --min-free=10%\n" },
	{ "log", "", "show downloads, refusals and evictions, newest last", 0, 0, ctl_log },
	{ "pin", HELP_BUILD "...", "keep the stored files of builds: gc never evicts them", 1, -1, ctl_pin,
	  HELP_ID "Examples:\n"
		  "  bidctl pin /usr/bin/ls\n" },
	{ "unpin", HELP_BUILD "...", "let gc evict pinned builds again", 1, -1, ctl_unpin,
	  HELP_ID "Examples:\n"
		  "  bidctl unpin /usr/bin/ls\n" },
	{ "quarantine", "[list|show|restore|drop [NAME...]]", "list, show, restore or drop wrong files", 0, -1, ctl_quarantine,
	  "list prints the time, the size, the build-id that the file carries, and its name.\n"
	  "show prints the path too, and the reason if restore would refuse the file.\n"
	  "restore adds a file under that build-id.\n\n"
	  "Examples:\n"
	  "  bidctl quarantine\n"
	  "  bidctl quarantine restore --dry-run NAME\n" },
	{ "mount", "[STORE [MOUNTPOINT]]", "mount a store as a file system: mount.bidfs", 0, 2, ctl_mount,
	  "It prints no JSON: 'bidctl --json status' shows the mount.\n\n"
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

static const char *const when_words[] = { "auto", "always", "never", NULL };
static const char *const link_words[] = {
	[BID_LINK_AUTO] = "auto", [BID_LINK_REFLINK] = "reflink", [BID_LINK_HARD] = "hard", [BID_LINK_COPY] = "copy", NULL
};
static const char *const order_words[] = {
	[CTL_BY_ID] = "id", [CTL_BY_PATH] = "path", [CTL_BY_TIME] = "time", [CTL_BY_SIZE] = "size", NULL
};
static const char *const require_words[] = { "any", "signed", NULL };
static const char *const kind_words[] = { [BID_KIND_ELF - 1] = "elf",		[BID_KIND_DEBUGINFO - 1] = "debuginfo",
					  [BID_KIND_KALLSYMS - 1] = "kallsyms", [BID_KIND_PROBES - 1] = "probes",
					  [BID_KIND_VDSO - 1] = "vdso",		NULL };

enum { JOBS_MAX = 256, INTERVAL_MAX = 86400 };

/* The type of an option's field in struct ctl. */
enum option_type {
	FLAG, /* bool */
	TEXT, /* const char * */
	ONCE, /* as TEXT, refused a second time */
	LIST, /* struct ctl_words */
	LINKS, /* char **: real paths */
	NUMBER, /* unsigned, from 1 to a maximum */
	SIZE, /* struct ctl_size */
	WORD, /* an enumeration: the index among some words */
	KIND, /* as WORD, plus one */
};

#define AT(field) offsetof(struct ctl, field)

/* An option with several help texts has a row for each; the first row decides everything else. */
static const struct option_row {
	const char *name;
	int letter; /* 0 for none */
	const char *argument; /* NULL without one */
	const char *commands; /* commands with this option, separated by blanks; NULL for all */
	const char *help;
	enum option_type type;
	size_t offset;
	const char *const *words; /* WORD and KIND */
	unsigned max; /* NUMBER */
} options[] = {
	{ "store", 's', "DIR", NULL, "use this store (default: perf's buildid.dir, then ~/.debug)", TEXT, AT(store) },
	{ "json", 'j', NULL, NULL, "print JSON", FLAG, AT(json) },
	{ "verbose", 'v', NULL, NULL, "print more", FLAG, AT(verbose) },
	{ "quiet", 'q', NULL, NULL, "print no summary, no progress and no warning", FLAG, AT(quiet) },
	{ "color", 0, "WHEN", NULL, "color the output: auto, always or never (default: auto)", WORD, AT(color), when_words },
	{ "progress", 0, "WHEN", NULL, "show progress: auto, always or never (default: auto)", WORD, AT(progress), when_words },
	{ "help", 'h', NULL, NULL, "show this help", FLAG, AT(help) },
	{ "version", 'V', NULL, NULL, "show the version", FLAG, AT(version) },
	{ "perf-data", 0, "FILE", "add archive get missing", "use the builds of a perf recording ('-': stdin)", ONCE,
	  AT(perf_data) },
	{ "core", 0, "FILE", "archive get", "use the builds of a core file ('-': stdin)", TEXT, AT(core) },
	{ "pid", 0, "PID", "get", "get the mapped code of a process", TEXT, AT(pid) },
	{ "output", 'o', "FILE", "archive", "write FILE.tar.zst, .tar.gz, .tar.xz, .tar.bz2, .tar, or '-'", TEXT, AT(output) },
	{ "options", 'o', "OPTIONS", "mount", "mount with these options of mount.bidfs(8)", LIST, AT(options) },
	{ "link", 0, "WAY", "add update watch", "link or copy files: auto, reflink, hard or copy (default: auto)", WORD, AT(link),
	  link_words },
	{ "jobs", 0, "N", "add", "search with N threads (default: one per CPU)", NUMBER, AT(jobs), .max = JOBS_MAX },
	{ "jobs", 0, "N", "verify", "check with N threads (default: one per CPU)" },
	{ "cross", 0, NULL, "add", "search other file systems below a directory, too", FLAG, AT(cross) },
	{ "files-from", 0, "FILE", "add", "add the paths in FILE, one a line ('-': stdin)", TEXT, AT(files_from) },
	{ "running", 0, NULL, "add", "add the mapped code of every process, and the kernel", FLAG, AT(running) },
	{ "kernel", 0, NULL, "add", "add the running kernel: symbols, vDSO, modules, image", FLAG, AT(kernel) },
	{ "content-keys", 0, NULL, "list", "list the files without a build-id", FLAG, AT(content_keys) },
	{ "kind", 0, "KIND", "list", "list only builds with an artifact of this kind", KIND, AT(kind), kind_words },
	{ "missing", 0, "KIND", "list", "list only builds without an artifact of this kind", KIND, AT(missing), kind_words },
	{ "format", 0, "FORMAT", "list", "print FORMAT, such as '%(size) %(path)', for each build", TEXT, AT(format) },
	{ "null", '0', NULL, "list", "end rows with NUL instead of newline", FLAG, AT(nul) },
	{ "lower", 0, "DIR", "archive list show get missing status",
	  "also search DIR ('debuginfod': its cache; 'none': no lower store)", LIST, AT(lowers) },
	{ "links", 0, "DIR", "archive list show get missing status", "follow links of lower stores into DIR[:DIR...]", LINKS,
	  AT(links) },
	{ "links", 0, "DIR", "verify", "with --repair: follow links of file:// trees into DIR[:DIR...]" },
	{ "interval", 0, "SECONDS", "watch", "search all processes every SECONDS (default: 10)", NUMBER, AT(interval),
	  .max = INTERVAL_MAX },
	{ "interval", 0, "SECONDS", "status", "with --watch: repeat every SECONDS (default: 2)" },
	{ "watch", 'w', NULL, "status", "repeat until interrupted", FLAG, AT(watch) },
	{ "url", 0, "URL", "doctor get setup verify", "use this server, not those of the environment; repeatable", LIST, AT(urls) },
	{ "offline", 0, NULL, "doctor get verify", "use no server", FLAG, AT(offline) },
	{ "refresh", 0, NULL, "get", "ignore cached \"not found\" answers", FLAG, AT(refresh) },
	{ "accept", 0, NULL, "get", "accept other bytes than those of the first download", FLAG, AT(accept) },
	{ "require", 0, "WHAT", "get", "accept downloads: any or signed (default: any)", WORD, AT(require_signed), require_words },
	{ "by", 0, "ORDER", "list", "sort by: id, path, time (newest first) or size (largest first) (default: id)", WORD, AT(order),
	  order_words },
	{ "path", 0, "PATH", "remove", "remove this name of every build; repeatable", LIST, AT(paths) },
	{ "deep", 0, NULL, "verify", "read every byte and compare it with the recorded digest", FLAG, AT(deep) },
	{ "against", 0, "LIST", "verify", "compare with a list of sha256sum(1), or with 'packages'", TEXT, AT(against) },
	{ "repair", 0, NULL, "verify", "relink builds, quarantine wrong files and fetch them again", FLAG, AT(repair) },
	{ "cache-size", 0, "SIZE", "gc", "evict until at most SIZE of these files remains", SIZE, AT(cache_size) },
	{ "min-free", 0, "SIZE", "gc", "evict until SIZE is free on the file system", SIZE, AT(min_free) },
	{ "undo", 0, NULL, "setup", "undo the changes of 'setup'", FLAG, AT(undo) },
	{ "root", 0, "DIR", "setup", "change the machine below DIR, such as an image", TEXT, AT(root) },
	{ "dry-run", 'n', NULL, "add gc pin probe quarantine remove setup unpin update", "change nothing, only show the changes",
	  FLAG, AT(dry_run) },
	/* behind --dry-run, to which -n belongs before the command */
	{ "lines", 'n', "N", "log", "show only the last N events", NUMBER, AT(lines), .max = UINT_MAX },
};

enum {
	N_OPTIONS = sizeof(options) / sizeof(options[0]),
	LONG_ONLY = 256,
};

enum ctl_status ctl_usage(const char *subject, const char *format, ...)
{
	char message[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	bid_error_about(subject, 0, "%s", message);
	return CTL_USAGE;
}

/* Refuse @word, and suggest @meant (NULL for nothing). */
static enum ctl_status refuse_word(const char *what, const char *word, const char *meant, const char *dashes)
{
	char subject[64];

	snprintf(subject, sizeof(subject), "%s%s", dashes, word);
	if (meant)
		return ctl_usage(subject, "no such %s: '%s' - did you mean '%s%s'?", what, subject, dashes, meant);
	return ctl_usage(subject, "no such %s", what);
}

int ctl_word(const char *what, const char *word, const char *const *words)
{
	const char *meant = bid_did_you_mean(word, words);

	for (int i = 0; words[i]; i++)
		if (strcmp(words[i], word) == 0)
			return i;
	if (meant) {
		refuse_word(what, word, meant, "");
	} else {
		char list[256] = "";

		for (int i = 0; words[i]; i++)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? ", " : "", words[i]);
		ctl_usage(word, "no such %s: '%s' - name one of %s", what, word, list);
	}
	return -EINVAL;
}

enum ctl_status ctl_trouble(const char *subject, int error, const char *action)
{
	bid_error_about(subject, error, action ? "%s: cannot %s" : "%s", bid_strerror(error), action);
	return CTL_TROUBLE;
}

enum ctl_status ctl_no_memory(void)
{
	return ctl_trouble("bidctl", -ENOMEM, NULL);
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
	return refuse_word("command", name, meant ? meant : bid_did_you_mean(name, names), "");
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

/* Print the options of @command alone, or for NULL those of every command. */
static void print_options(const char *command)
{
	bool first = true;

	for (size_t i = 0; i < N_OPTIONS; i++) {
		char text[64], letter[8] = "    ";

		if (command ? !is_own_option(i, command) : options[i].commands != NULL)
			continue;
		if (first)
			puts(command ? "\nOptions:" : "\nOptions of every command:");
		first = false;
		if (options[i].letter)
			snprintf(letter, sizeof(letter), "-%c, ", options[i].letter);
		snprintf(text, sizeof(text), "%s--%s%s%s", letter, options[i].name, options[i].argument ? "=" : "",
			 options[i].argument ? options[i].argument : "");
		printf("  %-22s  %s\n", text, options[i].help);
	}
}

static enum ctl_status print_command_help(const struct command *command)
{
	printf("Usage: bidctl %s [OPTION...]%s%s\n%c%s.\n", command->name, *command->operands ? " " : "", command->operands,
	       command->help[0] - 'a' + 'A', command->help + 1);
	if (command->more)
		printf("\n%s", command->more);
	print_options(command->name);
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
		return ctl_usage(argv[1], "too many operands for 'help'");
	if (argc > 0 && !command)
		return refuse_command(argv[0]);
	return command && command->run ? print_command_help(command) : print_help();
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

/* Return the exponent of 1024 for @unit: 0 for "" and "B", 1 for "K" and "KiB". Returns -1 for other text. */
static int exponent_of(const char *unit)
{
	static const char letters[] = "BKMGT";
	const char *letter = *unit ? strchr(letters, *unit) : letters;

	if (!letter || (*unit && unit[1] && (letter == letters || strcmp(unit + 1, "iB") != 0)))
		return -1;
	return (int)(letter - letters);
}

/*
 * Parse "1048576", "1024K", "1.5GiB" or "10%". The units K, M, G, T and KiB, MiB, GiB, TiB are binary. Returns 0, or -EINVAL for
 * other text and for less than a byte.
 */
static int parse_size(const char *text, struct ctl_size *ret_size)
{
	size_t digits = strspn(text, "0123456789"), len = digits;
	double n = strtod(text, NULL);
	int exponent;

	if (text[len] == '.')
		len += 1 + strspn(text + len + 1, "0123456789");
	/* a fraction of a byte, or a number that strtod(3) parses in another way */
	if (digits == 0 || digits > 20 || text[len - 1] == '.')
		return -EINVAL;
	if (strcmp(text + len, "%") == 0) {
		*ret_size = (struct ctl_size){ .percent = n };
		return n > 0 && n <= 100 ? 0 : -EINVAL;
	}
	exponent = exponent_of(text + len);
	for (int i = 0; i < exponent; i++)
		n *= 1024;
	if (exponent < 0 || n < 1 || n >= (double)INT64_MAX)
		return -EINVAL;
	*ret_size = (struct ctl_size){ .bytes = (uint64_t)n };
	return 0;
}

static enum ctl_status add_word(struct ctl_words *words, const char *word)
{
	if (bid_array_grow(words->at, words->n, words->room) < 0)
		return ctl_no_memory();
	words->at[words->n++] = word;
	return CTL_DONE;
}

struct wanted {
	const struct command *command; /* NULL without one */
	uint64_t seen; /* bit mask of the given options: 1 << index of the option's first row in options[] */
};

/* Set the field of @option to @value, NULL without an argument. */
static enum ctl_status set_option(struct ctl *ctl, const struct option_row *option, const char *value)
{
	void *field = (char *)ctl + option->offset;
	int word;

	switch (option->type) {
	case FLAG:
		*(bool *)field = true;
		return CTL_DONE;
	case ONCE:
		if (*(const char **)field)
			return ctl_usage(value, "'--%s' is given twice", option->name);
		/* fall through */
	case TEXT:
		*(const char **)field = value;
		return CTL_DONE;
	case LIST:
		return add_word(field, value);
	case LINKS:
		return bid_path_append_real(field, "--links", value) < 0 ? CTL_USAGE : CTL_DONE;
	case NUMBER:
		if (parse_number(value, option->max, field) == 0)
			return CTL_DONE;
		return ctl_usage(value, "not a number from 1 to %u for '--%s'", option->max, option->name);
	case SIZE:
		if (parse_size(value, field) == 0)
			return CTL_DONE;
		return ctl_usage(value, "not a size such as 500M, 1.5GiB or 10%%");
	case WORD:
	case KIND:
		word = ctl_word(option->type == KIND ? "kind of artifact" : option->name, value, option->words);
		*(unsigned *)field = (unsigned)(word + (option->type == KIND));
		return word < 0 ? CTL_USAGE : CTL_DONE;
	}
	return CTL_USAGE;
}

/* Set the environment variable that the users of --color or --progress read, unless the choice is "auto". */
static void set_when(unsigned choice, const char *always, const char *never)
{
	if (choice == 0)
		return;
	unsetenv(always);
	unsetenv(never);
	setenv(choice == 1 ? always : never, "1", 1);
}

/* Refuse the option in @word, "--NAME" or "--NAME=VALUE", and suggest the nearest name. */
static enum ctl_status refuse_name(const char *word)
{
	const char *names[N_OPTIONS + 1] = { 0 };
	char name[64];

	for (size_t i = 0; i < N_OPTIONS; i++)
		names[i] = options[i].name;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	return refuse_word("option", name, bid_did_you_mean(name, names), "--");
}

/* Refuse @word, the last word before getopt_long(3)'s position. */
static enum ctl_status refuse_option(const struct option *longs, const char *word)
{
	if (optopt == 0)
		return refuse_name(word);
	for (; longs->name; longs++)
		if (longs->val == optopt)
			return ctl_usage(word, "takes no argument");
	/* getopt_long(3) may still be inside a word of several letters */
	return refuse_word("option", (char[]){ (char)optopt, '\0' }, NULL, "-");
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

static enum ctl_status parse_command(struct ctl *ctl, struct wanted *wanted, int argc, char **argv)
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
		size_t row;

		if (key < 0)
			return CTL_DONE;
		word = argv[optind - 1];
		if (key == ':')
			return ctl_usage(word, "an argument is missing");
		if (key == '?')
			return refuse_option(longs, word);
		/* the argument is a word of its own */
		if (optarg == word)
			word = argv[optind - 2];
		if (key >= LONG_ONLY && !is_spelt_out(&longs[key - LONG_ONLY], word))
			return refuse_name(word);
		row = key >= LONG_ONLY ? (size_t)(key - LONG_ONLY) : row_of_letter(key, wanted->command);
		wanted->seen |= UINT64_C(1) << row;
		status = set_option(ctl, &options[row], optarg);
		if (status != CTL_DONE)
			return status;
	}
}

static enum ctl_status run_command(const struct ctl *ctl, const struct wanted *wanted, int argc, char **argv)
{
	const struct command *command = wanted->command;

	if (ctl->version) {
		printf("bidctl %s\n", bid_version());
		return CTL_DONE;
	}
	if (argc > 0 && !command)
		return refuse_command(argv[0]);
	if (ctl->help)
		return command && command->run ? print_command_help(command) : print_help();
	if (!command)
		return ctl_usage("bidctl", "no command");

	for (size_t i = 0; i < N_OPTIONS; i++) {
		char subject[64];

		snprintf(subject, sizeof(subject), "--%s", options[i].name);
		if (wanted->seen & UINT64_C(1) << i && !has_option(command->name, i))
			return ctl_usage(subject, "not an option of '%s'", command->name);
	}
	argc--;
	argv++;
	if (argc < command->min)
		return ctl_usage(command->name, "'%s' needs %s", command->name, command->operands);
	if (command->max >= 0 && argc > command->max)
		return ctl_usage(argv[command->max], "too many operands for '%s'", command->name);
	return command->run ? command->run(ctl, argc, argv) : run_help(argc, argv);
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
	struct ctl_envelope envelope = { 0 };
	struct ctl ctl = { .envelope = &envelope };
	bool json = asks_for_json(argc, argv);
	struct wanted wanted = { 0 };
	enum ctl_status status;

	/* a summary is printed in parts, and is one line */
	setlinebuf(stderr);
	bid_log_init("bidctl", BID_LOG_WARNING);
	if (bid_std_fds_occupy() < 0)
		return CTL_TROUBLE;
	/* before the options: errors in them, too */
	if (json)
		ctl_envelope_begin(&envelope);
	status = parse_command(&ctl, &wanted, argc, argv);
	set_when(ctl.color, CTL_COLOUR_ALWAYS, CTL_COLOUR_NEVER);
	set_when(ctl.progress, CTL_PROGRESS_ALWAYS, CTL_PROGRESS_NEVER);
	if (ctl.quiet)
		setenv(CTL_PROGRESS_NEVER, "1", 1);
	bid_log_init("bidctl", ctl.quiet ? BID_LOG_ERROR : ctl.verbose ? BID_LOG_INFO : BID_LOG_WARNING);
	envelope.command = wanted.command ? wanted.command->name : NULL;
	/* help has no other form than text */
	if (status == CTL_DONE && (!ctl.json || ctl.help || ctl.version || (wanted.command && !wanted.command->run)))
		json = false;
	ctl.json = json;
	if (status == CTL_DONE)
		status = run_command(&ctl, &wanted, argc - optind, argv + optind);
	if (ctl.json && ctl_envelope_end(&envelope) < 0)
		status = ctl_no_memory();

	if (argc == 1)
		print_help();
	if (fflush(stdout) != 0 || ferror(stdout))
		status = ctl_trouble("standard output", -errno, NULL);
	if (status == CTL_USAGE && argc > 1)
		fprintf(stderr, "Try 'bidctl %s%s--help'.\n", wanted.command ? wanted.command->name : "",
			wanted.command ? " " : "");
	for (char **dir = ctl.links; dir && *dir; dir++)
		free(*dir);
	free(ctl.links);
	free(ctl.urls.at);
	free(ctl.lowers.at);
	free(ctl.paths.at);
	free(ctl.options.at);
	return (int)status;
}
