/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The command line of mount.bidfs, as of each mount helper: mount(8), "EXTERNAL HELPERS".
 *
 *	bid_options_parse()
 *	bid_options_release()	whatever the result
 */
#ifndef BID_FS_OPTIONS_H
#define BID_FS_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum bid_passthrough {
	BID_PASSTHROUGH_AUTO = 0,
	BID_PASSTHROUGH_ON,
	BID_PASSTHROUGH_OFF,
};

enum bid_sandbox_use {
	BID_SANDBOX_AUTO = 0, /* as far as the kernel allows */
	BID_SANDBOX_ON,
	BID_SANDBOX_OFF,
};

struct bid_options {
	char store[PATH_MAX];
	bool store_named; /* STORE is an argument, not the default */
	char mountpoint[PATH_MAX];
	bool fake; /* -f: check, but do not mount */
	bool foreground;
	bool allow_other;
	bool nonempty;
	bool offline;
	bool read_only; /* ro */
	bool owner_only; /* with allow_other: others cannot reach each store, and read no file here; no option sets this */
	unsigned debug_view; /* view=debug */
	unsigned strict; /* errors=strict */
	unsigned require_signed; /* require=signed */
	enum bid_passthrough passthrough;
	enum bid_sandbox_use sandbox;
	unsigned wait_ms; /* 0 waits for ever */
	unsigned max_threads; /* FUSE threads, at least one */
	unsigned busy_poll_us; /* busy poll of a thread before it sleeps; 0 for none */
	unsigned miss_rate; /* cache misses a second of each other user; 0 for no limit */
	uint64_t max_size; /* bytes of one artifact; 0 for no limit */
	uint64_t cache_size; /* bytes of downloaded and derived files; 0 for no limit */
	uint64_t min_free; /* bytes free on the file system of the store; 0 for no limit */
	unsigned log_level; /* enum bid_log_level */
	char **urls; /* NULL-terminated; NULL without any; owned */
	char **lowers; /* lower stores; as @urls */
	char **links; /* directories for links of lower stores and trees; as @urls */
	char *mount_options; /* comma-separated mount options; owned */
};

/* The next step after parsing. */
enum bid_parse {
	BID_PARSE_MOUNT,
	BID_PARSE_DONE, /* --help or --version was printed */
	BID_PARSE_USAGE, /* an error was printed */
};

/* Parse the command line. The caller releases @options whatever the result. */
enum bid_parse bid_options_parse(int argc, char **argv, struct bid_options *options);

void bid_options_release(struct bid_options *options);

#endif
