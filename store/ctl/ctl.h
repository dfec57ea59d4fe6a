/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the commands of bidctl share: how they were called, how they end, and the store they work on. */
#ifndef BID_CTL_H
#define BID_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/store.h"

#include "ctl/size.h"

/* The exit status; documented in bidctl(1). */
enum ctl_status {
	CTL_DONE = 0,
	CTL_REFUSED = 1, /* not found, or not taken */
	CTL_USAGE = 2,
	CTL_TROUBLE = 3, /* I/O, memory or network */
	CTL_SIGNAL = 128, /* and the number of the signal */
};

/* In which order list lists. */
enum ctl_order { CTL_BY_ID = 0, CTL_BY_PATH, CTL_BY_TIME, CTL_BY_SIZE };

/* The command line, parsed. Strings are argv's. */
struct ctl {
	const char *store; /* --store, or NULL for the default */
	bool json;
	bool verbose;
	bool quiet;
	enum bid_link link; /* add, watch */
	const char *perf_data; /* add, archive, get, missing: a recording instead of operands, or NULL */
	const char *core, *pid; /* get: likewise */
	bool fetch; /* add, archive */
	unsigned jobs; /* add; 0 is one per CPU */
	bool cross; /* add */
	bool running; /* add */
	bool kernel; /* add */
	const char *files_from; /* add: a list of paths, or NULL */
	bool once; /* watch */
	unsigned interval; /* watch: seconds; 0 if not given */
	bool refresh; /* get */
	bool accept; /* get */
	bool offline; /* get, verify */
	const char **urls; /* get, verify: --url, in order; owned by main() */
	size_t n_urls;
	const char **lowers; /* list, show, get, missing, status: --lower, in order; owned by main() */
	size_t n_lowers;
	char **links; /* directories into which links of lower stores and file:// trees may lead; NULL-terminated or NULL, owned */
	const char **paths; /* remove: --path, in order; owned by main() */
	size_t n_paths;
	enum ctl_order order; /* list */
	bool cookies; /* list */
	bool nul; /* list */
	enum bid_kind kind, missing; /* list; none for any */
	const char *output; /* archive: a file, or "-"; mount: options */
	bool deep; /* verify */
	bool repair; /* verify */
	bool dry_run; /* gc */
	bool print; /* probe */
	unsigned guru; /* probe: how often it was given */
	const char *notes; /* probe: a file, or NULL */
	bool undo; /* setup */
	const char *root; /* setup: a directory, or NULL */
	struct ctl_size cache_size, min_free; /* gc */
};

/* Commands: @argv are the operands. All report their errors themselves and return what to exit with. */
typedef enum ctl_status (*ctl_command_fn)(const struct ctl *ctl, int argc, char **argv);

enum ctl_status ctl_add(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_archive(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_doctor(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_gc(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_get(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_list(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_missing(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_mount(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_offline(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_pin(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_probe(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_quarantine(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_remove(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_setup(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_show(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_show_status(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_umount(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_unarchive(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_update(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_verify(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_watch(const struct ctl *ctl, int argc, char **argv);

/* What "add --perf-data" does. */
enum ctl_status ctl_add_perf_data(const struct ctl *ctl);

/* Complain of the command line, with a hint where to read on. Returns CTL_USAGE. */
enum ctl_status ctl_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum ctl_open {
	CTL_READ,
	CTL_READ_ITSELF, /* what is on disk, which a mount that covers the store shows in another form */
	CTL_WRITE,
	CTL_WRITE_IF_POSSIBLE, /* else for reading */
};

/*
 * The path of the store that is meant: --store, or the default. Returns CTL_DONE, or CTL_TROUBLE after an error message.
 */
enum ctl_status ctl_store_path(const struct ctl *ctl, char *ret_path, size_t size);

/*
 * Open it. A default store that does not exist is made for writing, and for reading is an empty one: @ret_store is NULL then. One
 * that was named must exist. With the lower stores of --lower, for which a default store is made, too. Returns CTL_DONE, or
 * CTL_TROUBLE after an error message.
 */
enum ctl_status ctl_open_store(const struct ctl *ctl, enum ctl_open how, struct bid_store **ret_store);

/*
 * The same for a command that looks for what is needed: libdebuginfod's cache is a lower store, too, unless the command line is
 * against it. Not for one that tells what is in the store.
 */
enum ctl_status ctl_open_to_find(const struct ctl *ctl, enum ctl_open how, struct bid_store **ret_store);

static inline void ctl_cleanup_store(struct bid_store **store)
{
	bid_store_free(*store);
}

#define ctl_auto_store __attribute__((cleanup(ctl_cleanup_store)))

/* An id as people write it: with digits in either case, while that of a path has them in lower case. Returns 0 or -EINVAL. */
int ctl_parse_id(const char *text, struct bid_id *ret_id);

/*
 * Which id of @store (NULL is an empty one) does @text name, in full or by its first 7 digits or more? Returns 0, or
 *   -EINVAL	it is neither an id nor such an abbreviation
 *   -ENOENT	no stored id begins like that
 *   -ENOTUNIQ	several do; they were listed as an error message
 *   other	as bid_store_each_id_in()
 */
int ctl_which(struct bid_store *store, const char *text, struct bid_id *ret_id);

/* The same, but a whole id of 16 digits or more need not be stored; or not so that it can be found. */
int ctl_which_whole(struct bid_store *store, const char *text, struct bid_id *ret_id);

/*
 * Find the build that the operand @text names: an id as above, a file, a path of one build of @store, or "kernel". Returns
 * CTL_DONE, or the exit status after an error message.
 */
enum ctl_status ctl_which_build(struct bid_store *store, const char *text, struct bid_id *ret_id);

/*
 * Open the file @path for reading, and find its absolute path without links, for free(3). Returns 0 or a negative errno, and then
 * neither.
 */
int ctl_open_real(const char *path, int *ret_fd, char **ret_real);

/* As bid_elf_identify(), of what is in a compressed module or a kernel image too. */
int ctl_identify(int fd, struct bid_id *ret_id);

/* Report what ctl_which() returned for @text, unless that was done, and give the status to exit with. */
enum ctl_status ctl_which_failed(const char *text, int error);

#endif
