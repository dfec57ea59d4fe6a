/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command line of mount.bidfs: a mount helper's, see mount(8), "EXTERNAL HELPERS". */
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
	BID_SANDBOX_AUTO = 0, /* as much as there is */
	BID_SANDBOX_ON,
	BID_SANDBOX_OFF,
};

struct bid_options {
	char store[PATH_MAX];
	bool store_named; /* by the user: it is not the default one */
	char mountpoint[PATH_MAX];
	bool fake; /* -f: check all, mount nothing */
	bool verbose;
	bool foreground;
	bool allow_other;
	bool nonempty;
	bool offline;
	bool read_only; /* ro */
	bool closed; /* with allow_other: others do not get to each store, and read nothing here; not an option of the user */
	unsigned strict; /* errors=strict */
	enum bid_passthrough passthrough;
	enum bid_sandbox_use sandbox;
	unsigned wait_ms; /* 0 is for ever */
	unsigned max_threads; /* that answer the kernel, at least one */
	unsigned busy_poll_us; /* how long they look for a request before they sleep; 0 is not at all */
	unsigned miss_rate; /* misses a second for each other user; 0 is no limit */
	uint64_t max_size; /* bytes; 0 is no limit */
	uint64_t cache_size; /* bytes of what was fetched; 0 is no limit */
	uint64_t min_free; /* bytes on the store's file system; 0 is no limit */
	unsigned log_level; /* enum bid_log_level */
	char **urls; /* NULL-terminated, or NULL if none was given; owned */
	char **lowers; /* directories of lower stores, as urls; owned */
	char **links; /* directories into which links of lower stores and trees may lead, as urls; owned */
	char *kernel; /* comma-separated options for the kernel; owned */
};

/* What there is to do after parsing. */
enum bid_parse {
	BID_PARSE_MOUNT,
	BID_PARSE_DONE, /* --help or --version was answered */
	BID_PARSE_USAGE, /* the error was printed */
};

/* The caller releases @options in any case. */
enum bid_parse bid_options_parse(int argc, char **argv, struct bid_options *options);

void bid_options_release(struct bid_options *options);

#endif
