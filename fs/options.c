// SPDX-License-Identifier: LGPL-2.1-or-later
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bid/version.h>

#include "api/default_stores.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text.h"
#include "mountpoint.h"
#include "servers.h"

enum {
	/*
	 * One thread answers fastest, because each request is a change of processes. The second serves while a slow disk blocks the
	 * first. docs/PERFORMANCE.md has the figures.
	 */
	THREADS = 2,
	THREADS_MAX = 64,
	BUSY_POLL = 50, /* microseconds; longer than a change of processes */
	BUSY_POLL_MAX = 1000,
};

static const char usage[] =
	"Usage: mount.bidfs [STORE] [MOUNTPOINT] [-fhnsvV] [-o OPTION[,OPTION]...]\n"
	"\n"
	"Mount a store of ELF files by build-id. STORE is perf's buildid.dir by default, or ~/.debug; MOUNTPOINT is\n"
	"/run/bidfs if you may mount there, else $XDG_RUNTIME_DIR/bid. Prints the mount point when the mount is ready.\n"
	"\n"
	"  -o url=URL              fetch from this debuginfod server; repeatable (default: DEBUGINFOD_URLS, else\n"
	"                          /etc/debuginfod/*.urls)\n"
	"  -o offline              use no server\n"
	"  -o lower=DIR            read DIR, too, and never write it: another ~/.debug, /usr/lib/debug, or a cache of\n"
	"                          libdebuginfod; repeatable. 'none' excludes the user's own cache ('debuginfod')\n"
	"  -o links=DIR[:DIR]...   follow links of lower stores and of trees into DIR, such as /nix/store\n"
	"  -o view=all|debug       mount the whole tree, or the debuggers' view of it (default: all)\n"
	"  -o wait=SECONDS         wait for a download at most; 0 waits for ever (default: 10)\n"
	"  -o errors=enoent|strict choose the errno of a failed download (default: enoent)\n"
	"  -o require=any|signed   serve no download without a valid signature (default: any)\n"
	"  -o miss_rate=NUMBER     limit the cache misses a second of each other user; 0 is no limit (default: 50)\n"
	"  -o max_size=BYTES       fetch no larger file; with a suffix K, M, G or T\n"
	"  -o cache_size=BYTES     evict downloaded and derived files above this size, least recently used first\n"
	"  -o min_free=BYTES       evict downloaded and derived files if less is free on the store's file system\n"
	"  -o passthrough=auto|on|off  let the kernel read open files from the store itself (default: auto)\n"
	"  -o sandbox=auto|on|off  drop all privileges that the daemon does not need (default: auto)\n"
	"  -o max_threads=NUMBER   set the number of threads that serve requests (default: 2)\n"
	"  -o busy_poll=MICROSECONDS  poll for the next request before sleeping; 0 does not poll (default: 50)\n"
	"  -o allow_other          let other users in\n"
	"  -o nonempty             mount on a directory that is not empty\n"
	"  -o foreground           stay in the foreground and log to standard error\n"
	"  -o log_level=error|warning|info|debug  log messages up to this level (default: warning)\n"
	"  -o ro, rw               forbid or allow writing through the mount (default: rw if the store is writable)\n"
	"  -f, --fake              check everything, but do not mount\n"
	"  -n, --no-mtab           accepted for mount(8)\n"
	"  -s, --sloppy            ignore unknown options\n"
	"  -v, --verbose           log at level info\n"
	"  -t, --types TYPE        accepted for mount(8)\n"
	"  -h, --help              print this and exit\n"
	"  -V, --version           print the version and exit\n"
	"\n"
	"See mount.bidfs(8).\n";

/* Options of mount(8), fstab(5), systemd and FUSE that change nothing here. */
static const char accepted[] =
	" defaults auto noauto nofail user nouser users owner group suid nosuid dev nodev exec async sync _netdev "
	"atime diratime nodiratime relatime norelatime strictatime lazytime nolazytime mand nomand iversion "
	"noiversion silent loud nosymfollow comment helper kernel_cache auto_unmount default_permissions ";

/* Options of other FUSE file systems (mount.fuse3(8)), with or without a value: ignored with a warning. */
static const struct {
	const char *names, *reason;
} foreign[] = {
	{ " allow_root ", "it lets root in alone, and bidfs cannot - name 'allow_other' to let all users in" },
	{ " fsname ", "the mount table shows the store" },
	{ " subtype ", "the mount table shows 'fuse.bidfs'" },
	{ " max_read ", "the kernel chooses how much it reads" },
	{ " auto_cache noauto_cache direct_io attr_timeout ac_attr_timeout entry_timeout negative_timeout ",
	  "the daemon decides how long the kernel may cache" },
	{ " umask ", "a file has the mode that it has in the store" },
	{ " uid ", "a file has the owner that it has in the store" },
	{ " gid ", "a file has the group that it has in the store" },
	{ " use_ino readdir_ino ", "the daemon numbers its inodes" },
	{ " big_writes ", "the kernel chooses how much it writes" },
	{ " clone_fd ", "all threads read one device" },
};

/* Options for the kernel. */
static const char kernel[] = " noexec noatime dirsync ";

/* Is @name one of the words of @names, between blanks? */
static bool is_word(const char *names, const char *name)
{
	size_t len = strcspn(name, " ");

	for (const char *at = name[len] ? NULL : strstr(names, name); at; at = strstr(at + 1, name))
		if (at[-1] == ' ' && at[len] == ' ')
			return true;
	return false;
}

/* Find @value in the NULL-terminated list @words. Returns its index, or -EINVAL after an error message. */
static int find_word(const char *option, const char *value, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(words[i], value) == 0)
			return i;
	bid_error("bad value '%s' for the option '%s': see 'mount.bidfs --help'", value, option);
	return -EINVAL;
}

/* Parse @value, up to @end, as a number of units of 1 << @shift: @min units at least, @max in all at most. */
static bool parse_number(const char *value, unsigned shift, uint64_t min, uint64_t max, const char *end, uint64_t *ret_number)
{
	unsigned long long n;
	char *stop;

	/* strtoull(3) accepts blanks and signs */
	errno = 0;
	n = strtoull(value, &stop, 10);
	if (*value < '0' || *value > '9' || stop != end || errno || n < min || n > max >> shift)
		return false;
	*ret_number = n << shift;
	return true;
}

/* Parse a number of bytes with an optional suffix K, M, G or T. -EINVAL after an error message. */
static int set_bytes(const char *option, const char *value, uint64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	size_t len = strlen(value);
	const char *unit = len > 0 ? strchr(units, value[len - 1]) : NULL;

	if (parse_number(value, unit ? 10 * (unsigned)(unit - units + 1) : 0, 0, INT64_MAX, value + len - (unit ? 1 : 0),
			 ret_bytes))
		return 0;
	bid_error("bad value '%s' for the option '%s': it must be a number of bytes, with or without a suffix K, M, G or T", value,
		  option);
	return -EINVAL;
}

static int add_url(struct bid_options *options, const char *url)
{
	if (bid_servers_check(url) < 0)
		return -EINVAL;
	return bid_strings_append(&options->urls, strdup(url));
}

static int add_mount_option(struct bid_options *options, const char *option)
{
	char *longer;

	if (asprintf(&longer, "%s%s%s", options->mount_options ? options->mount_options : "", options->mount_options ? "," : "",
		     option) < 0)
		return -ENOMEM;
	free(options->mount_options);
	options->mount_options = longer;
	return 0;
}

static const char *const views[] = { "all", "debug", NULL };
static const char *const errors[] = { "enoent", "strict", NULL };
static const char *const autos[] = { "auto", "on", "off", NULL };
static const char *const requirements[] = { "any", "signed", NULL };
static const char *const levels[] = { "error", "warning", "info", "debug", NULL };

static int add_lower(struct bid_options *options, const char *dir)
{
	return bid_strings_append(&options->lowers, strdup(dir));
}

static int add_links(struct bid_options *options, const char *dirs)
{
	return bid_path_append_real(&options->links, "option 'links'", dirs);
}

/* Options with a value. @offset is of an unsigned, or of a uint64_t for bytes. */
static const struct value_option {
	const char *name;
	size_t offset;
	const char *const *words; /* NULL for a number */
	unsigned max, min; /* range of a number; 0 for a number of bytes */
	unsigned unit;
	int (*add)(struct bid_options *options, const char *value); /* adds a value; NULL for an option with one value */
} value_options[] = {
	{ "url", .add = add_url },
	{ "lower", .add = add_lower },
	{ "links", .add = add_links },
	{ "wait", offsetof(struct bid_options, wait_ms), .max = 86400, .unit = 1000 },
	{ "miss_rate", offsetof(struct bid_options, miss_rate), .max = 1000000, .unit = 1 },
	{ "max_threads", offsetof(struct bid_options, max_threads), .min = 1, .max = THREADS_MAX, .unit = 1 },
	{ "busy_poll", offsetof(struct bid_options, busy_poll_us), .max = BUSY_POLL_MAX, .unit = 1 },
	{ "max_size", offsetof(struct bid_options, max_size) },
	{ "cache_size", offsetof(struct bid_options, cache_size) },
	{ "min_free", offsetof(struct bid_options, min_free) },
	{ "view", offsetof(struct bid_options, debug_view), .words = views },
	{ "errors", offsetof(struct bid_options, strict), .words = errors },
	{ "require", offsetof(struct bid_options, require_signed), .words = requirements },
	{ "passthrough", offsetof(struct bid_options, passthrough), .words = autos },
	{ "sandbox", offsetof(struct bid_options, sandbox), .words = autos },
	{ "log_level", offsetof(struct bid_options, log_level), .words = levels },
};

/* Options without a value, without ro, rw and those for the kernel. */
static const struct {
	const char *name;
	size_t offset;
} flags[] = {
	{ "offline", offsetof(struct bid_options, offline) },
	{ "allow_other", offsetof(struct bid_options, allow_other) },
	{ "nonempty", offsetof(struct bid_options, nonempty) },
	{ "foreground", offsetof(struct bid_options, foreground) },
};

static const struct value_option *find_value_option(const char *name)
{
	for (size_t i = 0; i < sizeof(value_options) / sizeof(value_options[0]); i++)
		if (strcmp(value_options[i].name, name) == 0)
			return &value_options[i];
	return NULL;
}

/* Set an option with a value. -ENOENT for an unknown name, -EINVAL after an error message. */
static int set_value(struct bid_options *options, const char *name, const char *value)
{
	const struct value_option *option = find_value_option(name);
	void *field = option ? (char *)options + option->offset : NULL;
	uint64_t n;
	int r;

	if (!option)
		return -ENOENT;
	if (option->add)
		return option->add(options, value);
	if (option->words) {
		r = find_word(name, value, option->words);
		if (r >= 0)
			*(unsigned *)field = (unsigned)r;
		return r < 0 ? r : 0;
	}
	if (!option->max)
		return set_bytes(name, value, field);
	if (!parse_number(value, 0, option->min, option->max, value + strlen(value), &n)) {
		bid_error("bad value '%s' for the option '%s': it must be a number from %u to %u", value, name, option->min,
			  option->max);
		return -EINVAL;
	}
	*(unsigned *)field = (unsigned)n * option->unit;
	return 0;
}

static int set_flag(struct bid_options *options, const char *name)
{
	/* the last one wins, as with mount(8) */
	if (strcmp(name, "ro") == 0 || strcmp(name, "rw") == 0) {
		options->read_only = name[1] == 'o';
		return 0;
	}
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (strcmp(flags[i].name, name) != 0)
			continue;
		*(bool *)((char *)options + flags[i].offset) = true;
		return 0;
	}
	return is_word(kernel, name) ? add_mount_option(options, name) : -ENOENT;
}

/* Is @name an option that changes nothing here? @value may be NULL. */
static bool is_ignored(const char *name, const char *value)
{
	if (strncmp(name, "x-", 2) == 0 || strncmp(name, "X-", 2) == 0)
		return true;
	if (is_word(accepted, name))
		return true;
	if (value && strcmp(name, "subtype") == 0 && strcmp(value, "bidfs") == 0)
		return true;
	/* root has access to its own mounts */
	if (strcmp(name, "allow_root") == 0 && geteuid() == 0)
		return true;
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		if (!is_word(foreign[i].names, name))
			continue;
		bid_warning("option '%s' ignored: %s", name, foreign[i].reason);
		return true;
	}
	return false;
}

/* Refuse the unknown option @name, and suggest the nearest one. */
static void refuse_unknown(const char *name)
{
	enum { N_VALUES = sizeof(value_options) / sizeof(value_options[0]), N_FLAGS = sizeof(flags) / sizeof(flags[0]) };
	const char *names[N_VALUES + N_FLAGS + 1] = { NULL }, *meant;

	for (size_t i = 0; i < N_VALUES; i++)
		names[i] = value_options[i].name;
	for (size_t i = 0; i < N_FLAGS; i++)
		names[N_VALUES + i] = flags[i].name;
	meant = bid_did_you_mean(name, names);
	if (meant)
		bid_error("unknown option '%s' - did you mean '%s'?", name, meant);
	else
		bid_error("unknown option '%s': see 'mount.bidfs --help'", name);
}

/* Report why @name is no option. @has_value: the user gave one. */
static void refuse_option(const char *name, bool has_value)
{
	if (strcmp(name, "remount") == 0)
		bid_error("cannot remount: unmount it and mount it anew with the new options");
	else if (!has_value && find_value_option(name))
		bid_error("the option '%s' needs a value, as in '%s=...': see 'mount.bidfs --help'", name, name);
	else
		refuse_unknown(name);
}

/* Set @option, "NAME" or "NAME=VALUE", and modify it. A negative errno after an error message. */
static int set_option(struct bid_options *options, char *option, bool sloppy)
{
	char *value = strchr(option, '=');
	int r;

	if (value)
		*value++ = '\0';
	r = value ? set_value(options, option, value) : set_flag(options, option);
	if (r != -ENOENT || is_ignored(option, value))
		return r == -ENOENT ? 0 : r;
	if (sloppy && strcmp(option, "remount") != 0) {
		bid_warning("unknown option '%s' ignored", option);
		return 0;
	}
	refuse_option(option, value);
	return -EINVAL;
}

/* Set the options of one -o. "\\," is a comma in a value. */
static int set_options(struct bid_options *options, const char *list, bool sloppy)
{
	bid_auto_free char *copy = malloc(strlen(list) + 1);
	int r = copy ? 0 : -ENOMEM;

	while (r == 0 && *list) {
		char *out = copy;

		for (; *list && *list != ','; list++) {
			if (list[0] == '\\' && list[1] == ',')
				list++;
			*out++ = *list;
		}
		*out = '\0';
		list += *list == ',';
		if (*copy)
			r = set_option(options, copy, sloppy);
	}
	return r;
}

/* Use the user's libdebuginfod cache as a lower store, except with allow_other: its files may be for the user alone. */
static int imply_cache(struct bid_options *options)
{
	size_t n = 0;

	while (options->lowers && options->lowers[n])
		n++;
	if (options->allow_other || !bid_store_implies_cache((const char *const *)options->lowers, n))
		return 0;
	return bid_strings_append(&options->lowers, strdup(BID_LOWER_DEBUGINFOD));
}

static int copy_path(char *to, const char *path)
{
	if (strlen(path) >= PATH_MAX) {
		bid_error("path too long: '%.64s...'", path);
		return -1;
	}
	memcpy(to, path, strlen(path) + 1);
	return 0;
}

static int set_operands(struct bid_options *options, char **arguments, int n)
{
	if (n > 2) {
		bid_error("too many arguments: '%s': see 'mount.bidfs --help'", arguments[2]);
		return -1;
	}
	/* fstab(5) has "none" for a file system without a device */
	if (n >= 1 && strcmp(arguments[0], "none") != 0) {
		if (copy_path(options->store, arguments[0]) < 0)
			return -1;
		options->store_named = true;
	} else {
		int r = bid_store_default_path(options->store, sizeof(options->store));

		if (r == -ENOENT)
			bid_error("no store named, and no home directory to look for '.debug' in - name a store");
		if (r < 0)
			return -1; /* the cause was logged */
	}
	if (n == 2)
		return copy_path(options->mountpoint, arguments[1]);
	if (bid_mountpoint_default(options->mountpoint) < 0) {
		bid_error("no mount point named, and neither '/run/bidfs' nor $XDG_RUNTIME_DIR can be used - name one");
		return -1;
	}
	return 0;
}

/* Report a word that getopt_long(3) refused with @c. @word is the word before optind. */
static void refuse_word(int c, const char *word)
{
	if (c == ':')
		bid_error("the option '%s' needs an argument: see 'mount.bidfs --help'", word);
	else if (optopt && word[1] != '-')
		/* optind may still be at the word */
		bid_error("no such option: '-%c': see 'mount.bidfs --help'", optopt);
	else
		bid_error("no such option: '%s': see 'mount.bidfs --help'", word);
}

enum bid_parse bid_options_parse(int argc, char **argv, struct bid_options *options)
{
	static const struct option table[] = {
		{ "fake", no_argument, NULL, 'f' },
		{ "no-mtab", no_argument, NULL, 'n' },
		{ "sloppy", no_argument, NULL, 's' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "options", required_argument, NULL, 'o' },
		{ "types", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	static const char letters[] = ":fnsvo:t:hV";
	bool sloppy = false;
	int c;

	*options = (struct bid_options){
		.wait_ms = 10000,
		.max_threads = THREADS,
		.busy_poll_us = BUSY_POLL,
		.miss_rate = 50,
		.log_level = BID_LOG_WARNING,
	};
	opterr = 0;
	/* -s may follow the -o that needs it */
	while ((c = getopt_long(argc, argv, letters, table, NULL)) != -1)
		sloppy = sloppy || c == 's';
	optind = 0;
	while ((c = getopt_long(argc, argv, letters, table, NULL)) != -1) {
		switch (c) {
		case 'f':
			options->fake = true;
			break;
		case 'v':
			if (options->log_level < BID_LOG_INFO)
				options->log_level = BID_LOG_INFO;
			break;
		case 'n':
		case 's':
		case 't':
			break;
		case 'o':
			if (set_options(options, optarg, sloppy) < 0)
				return BID_PARSE_USAGE;
			break;
		case 'h':
			fputs(usage, stdout);
			return BID_PARSE_DONE;
		case 'V':
			printf("mount.bidfs %s\n", bid_version());
			return BID_PARSE_DONE;
		default:
			refuse_word(c, argv[optind - 1]);
			return BID_PARSE_USAGE;
		}
	}
	if (set_operands(options, argv + optind, argc - optind) < 0 || imply_cache(options) < 0)
		return BID_PARSE_USAGE;
	return BID_PARSE_MOUNT;
}

void bid_options_release(struct bid_options *options)
{
	bid_strings_free(options->urls);
	bid_strings_free(options->lowers);
	bid_strings_free(options->links);
	free(options->mount_options);
}
