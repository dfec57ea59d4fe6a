/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Types shared by the commands of bidctl: options, exit status, opening the store. */
#ifndef BID_CTL_H
#define BID_CTL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/store.h"

/* Exit status, documented in bidctl(1). */
enum ctl_status {
	CTL_DONE = 0,
	CTL_REFUSED = 1, /* missing, or refused */
	CTL_USAGE = 2,
	CTL_TROUBLE = 3, /* I/O, memory or network */
	CTL_SIGNAL = 128, /* plus the number of the signal */
};

/* Order of the rows of "list". */
enum ctl_order { CTL_BY_ID = 0, CTL_BY_PATH, CTL_BY_TIME, CTL_BY_SIZE };

struct ctl_envelope;

/* A parsed size. One of both fields is 0, and both without the option. */
struct ctl_size {
	uint64_t bytes;
	double percent; /* share of the file system */
};

/* Arguments of a repeatable option, in order. Strings belong to argv. */
struct ctl_words {
	const char **at; /* owned by main() */
	size_t n, room;
};

/* The parsed command line. Strings belong to argv. */
struct ctl {
	const char *store; /* --store, or NULL for the default */
	bool json;
	struct ctl_envelope *envelope; /* state of the output; owned by main() */
	bool verbose, quiet, help, version;
	unsigned color, progress; /* words of --color and --progress */
	enum bid_link link; /* add, update, watch */
	const char *perf_data; /* add, archive, get, missing: a recording in place of operands, or NULL */
	const char *core, *pid; /* get; archive: a core file or a process in place of operands, or NULL */
	unsigned jobs; /* add, verify; 0 is one per CPU */
	bool cross; /* add */
	bool running; /* add */
	bool kernel; /* add */
	const char *files_from; /* add: a list of paths, or NULL */
	bool watch; /* status */
	unsigned interval; /* status, watch: seconds; 0 if not given */
	bool refresh; /* get */
	bool accept; /* get */
	unsigned require_signed; /* get; 0 or 1 */
	bool offline; /* doctor, get, verify */
	struct ctl_words urls, lowers;
	char **links; /* directories into which links of lower stores and file:// trees may lead; NULL-terminated or NULL, owned */
	struct ctl_words paths; /* remove: --path */
	enum ctl_order order; /* list */
	bool content_keys; /* list */
	bool nul; /* list */
	const char *format; /* list: a format, or NULL */
	enum bid_kind kind, missing; /* list; none for any */
	unsigned lines; /* log; 0 for all */
	const char *output; /* archive: a file, or "-" */
	struct ctl_words options; /* mount: --options */
	bool deep; /* verify */
	bool repair; /* verify */
	const char *against; /* verify: a list of digests, "packages", or NULL */
	bool dry_run; /* add, update, gc, pin, quarantine, remove, setup */
	bool undo; /* setup */
	const char *root; /* setup: a directory, or NULL */
	struct ctl_size cache_size, min_free; /* gc */
};

/* Commands. @argv holds the operands. Each command reports its own errors and returns the exit status. */
typedef enum ctl_status (*ctl_command_fn)(const struct ctl *ctl, int argc, char **argv);

enum ctl_status ctl_add(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_archive(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_doctor(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_du(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_gc(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_get(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_list(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_log(const struct ctl *ctl, int argc, char **argv);
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
enum ctl_status ctl_unpin(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_unarchive(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_update(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_verify(const struct ctl *ctl, int argc, char **argv);
enum ctl_status ctl_watch(const struct ctl *ctl, int argc, char **argv);

/* Run "add --perf-data". */
enum ctl_status ctl_add_perf_data(const struct ctl *ctl);

/* Print an error message about @subject, a word of the command line. Returns CTL_USAGE; main() prints a hint at the help. */
enum ctl_status ctl_usage(const char *subject, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Return the index of @word among @words (NULL-terminated); or -EINVAL, after an error message that suggests another word. */
int ctl_word(const char *what, const char *word, const char *const *words);

/* Report that bidctl cannot @action, such as "read the store" (NULL: not named), for @subject. Returns CTL_TROUBLE. */
enum ctl_status ctl_trouble(const char *subject, int error, const char *action);

/* Report a lack of memory. Returns CTL_TROUBLE. */
enum ctl_status ctl_no_memory(void);

enum ctl_open {
	CTL_READ,
	CTL_READ_ITSELF, /* the files on disk, which a mount over the store shows in another form */
	CTL_WRITE,
	CTL_WRITE_IF_POSSIBLE, /* for reading, if the store cannot be written */
};

/* Copy the path of the store, --store or the default one, to @ret_path. Returns CTL_DONE, or CTL_TROUBLE after an error message. */
enum ctl_status ctl_store_path(const struct ctl *ctl, char *ret_path, size_t size);

/*
 * Open that store, with the lower stores of --lower. A store named on the command line must exist.
 * An absent default store is created for writing and for --lower; otherwise the call sets @ret_store to NULL, an empty store.
 * Returns CTL_DONE, or after an error message CTL_REFUSED (no such store) or CTL_TROUBLE.
 */
enum ctl_status ctl_open_store(const struct ctl *ctl, enum ctl_open how, struct bid_store **ret_store);

/*
 * Open the store for a command that looks up artifacts: libdebuginfod's cache is a lower store too, unless an option excludes it.
 * Commands that list the store use ctl_open_store().
 */
enum ctl_status ctl_open_to_find(const struct ctl *ctl, enum ctl_open how, struct bid_store **ret_store);

/* Find the store of @ctl, a lower one or the store itself, that denies reading @artifact. */
void ctl_find_denier(const struct ctl *ctl, const struct bid_artifact *artifact, char ret_path[static PATH_MAX]);

static inline void ctl_cleanup_store(struct bid_store **store)
{
	bid_store_free(*store);
}

#define ctl_auto_store __attribute__((cleanup(ctl_cleanup_store)))

/* Parse an id with digits in either case; ids in paths have lower case alone. Returns 0 or -EINVAL. */
int ctl_parse_id(const char *text, struct bid_id *ret_id);

/*
 * Find the id of @store (NULL is an empty one) that @text names, in full or by its first 7 digits or more. Returns 0, or
 *   -EINVAL	@text is neither an id nor such an abbreviation
 *   -ENOENT	no stored id begins like this
 *   -ENOTUNIQ	several ids do; an error message listed them
 *   other	as bid_store_each_id_in()
 */
int ctl_which(struct bid_store *store, const char *text, struct bid_id *ret_id);

/* As ctl_which(), but a whole id of 16 digits or more may be absent from the store, or not findable in it. */
int ctl_which_whole(struct bid_store *store, const char *text, struct bid_id *ret_id);

/*
 * Find the build that the operand @text names: an id as above, a file, a path of one build of @store, or "kernel". @ret_real (NULL:
 * not wanted) receives the path without links of a file, for free(3), and stays as it is for another operand. Returns CTL_DONE, or
 * the exit status after an error message.
 */
enum ctl_status ctl_which_build(struct bid_store *store, const char *text, struct bid_id *ret_id, char **ret_real);

/*
 * Open the file @path for reading, and resolve its absolute path without links, for free(3). Returns 0, or a negative errno and
 * neither of them.
 */
int ctl_open_real(const char *path, int *ret_fd, char **ret_real);

/*
 * Copy the original path of the build @id, "/usr/bin/ls" or "[vdso]", the one that perf's link names. Returns whether the store
 * knows one.
 */
bool ctl_original_path(struct bid_store *store, const struct bid_id *id, char ret_path[static PATH_MAX + 1]);

/* As bid_elf_build_id(), also for a file inside a compressed module or a kernel image. */
int ctl_identify(int fd, struct bid_id *ret_id);

/* Report the @error of ctl_which() for @text, unless ctl_which() did so, and return the exit status. */
enum ctl_status ctl_which_failed(const char *text, int error);

#endif
