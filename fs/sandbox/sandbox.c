// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/default_stores.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "sandbox/syscalls.h"

/*
 * landlock(7), of which the C library has no functions, and Debian 12 a header of Linux 6.1: include/uapi/linux/landlock.h, with
 * the version of Landlock after each newer name.
 */
enum {
	FS_EXECUTE = 1 << 0,
	FS_WRITE_FILE = 1 << 1,
	FS_READ_FILE = 1 << 2,
	FS_READ_DIR = 1 << 3,
	FS_REMOVE_DIR = 1 << 4,
	FS_REMOVE_FILE = 1 << 5,
	FS_MAKE_CHAR = 1 << 6,
	FS_MAKE_DIR = 1 << 7,
	FS_MAKE_REG = 1 << 8,
	FS_MAKE_SOCK = 1 << 9,
	FS_MAKE_FIFO = 1 << 10,
	FS_MAKE_BLOCK = 1 << 11,
	FS_MAKE_SYM = 1 << 12,
	FS_REFER = 1 << 13, /* 2 */
	FS_TRUNCATE = 1 << 14, /* 3 */
	FS_IOCTL_DEV = 1 << 15, /* 5 */

	NET_BIND_TCP = 1 << 0, /* 4 */
	NET_CONNECT_TCP = 1 << 1, /* 4 */

	SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0, /* 6 */
	SCOPE_SIGNAL = 1 << 1, /* 6 */

	FS_OF_VERSION_2 = (FS_REFER << 1) - 1,
	FS_OF_FILES = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,

	CREATE_RULESET_VERSION = 1 << 0,
	RULE_PATH_BENEATH = 1,

	/* the sets that a rule here has */
	ALLOW_READ = FS_READ_FILE | FS_READ_DIR,
	ALLOW_WRITE = FS_WRITE_FILE | FS_TRUNCATE,
	ALLOW_CHANGE = FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG | FS_MAKE_SYM | FS_REFER,
};

/* An older kernel accepts the longer structure if the unknown rest is zero. */
struct ruleset_attributes {
	uint64_t handled_access_fs;
	uint64_t handled_access_net; /* 4 */
	uint64_t scoped; /* 6 */
};

struct path_beneath_attributes {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

struct bid_sandbox {
	bool by_syscalls; /* seccomp is available */
	bool network; /* there are remote servers */
	mode_t shared; /* S_IWGRP and S_IWOTH, if others may write the store */
	struct bid_owner *owners; /* owners of the stores; owned */
	size_t n_owners, room;
	bool passthrough; /* the mode is possible */
	int ruleset; /* owned; -1 without Landlock */
	int version; /* version of Landlock */
	char state[64];
	char reason[192];
};

/*
 * Files of the libraries, some of which they open late: NSS modules and their configuration, certificates, locales. Services
 * replace the files with names of hosts, so that only their directories can be allowed.
 */
static const char *const system_paths[] = {
	"/etc",
	"/usr",
	"/lib",
	"/lib32",
	"/lib64",
	"/proc/sys",
	"/sys/devices/system/cpu",
	"/dev/random",
	"/dev/urandom",
	"/run/systemd/resolve",
	"/run/NetworkManager",
	"/run/resolvconf",
	"/run/nscd",
	"/var/cache/nscd",
	"/var/lib/sss",
	"/var/lib/ca-certificates",
};

static void add_reason(struct bid_sandbox *sandbox, const char *reason)
{
	size_t len = strlen(sandbox->reason);

	snprintf(sandbox->reason + len, sizeof(sandbox->reason) - len, "%s%s", len ? "; " : "", reason);
}

/* Allow the bits @access to the file, or to all files below the directory, at @fd. A later mount on it is not covered. */
static int allow_fd(const struct bid_sandbox *sandbox, int fd, uint64_t access)
{
	struct path_beneath_attributes rule = { .allowed_access = access, .parent_fd = fd };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= FS_OF_FILES;
	if (sandbox->version < 3)
		rule.allowed_access &= ~(uint64_t)FS_TRUNCATE;
	if (syscall(SYS_landlock_add_rule, sandbox->ruleset, RULE_PATH_BENEATH, &rule, 0) == 0)
		return 0;
	/* pipes and the like are not restricted */
	return errno == EBADFD ? 0 : -errno;
}

/* Allow @access to @path, if it exists. */
static int allow_path(const struct bid_sandbox *sandbox, const char *path, uint64_t access)
{
	bid_auto_fd int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? 0 : allow_fd(sandbox, fd, access);
}

/* Allow a file and its directory, because a replaced file is another one. A home directory is not allowed. */
static int allow_file(const struct bid_sandbox *sandbox, const char *path)
{
	bid_auto_free char *copy = strdup(path);
	const char *home = getenv("HOME"), *dir;
	struct stat st, homes;
	int r;

	if (!copy)
		return -ENOMEM;
	r = allow_path(sandbox, path, ALLOW_READ);
	dir = dirname(copy);
	if (r < 0 || strcmp(dir, "/") == 0 || stat(dir, &st) < 0)
		return r;
	if (home && stat(home, &homes) == 0 && homes.st_dev == st.st_dev && homes.st_ino == st.st_ino)
		return 0;
	return allow_path(sandbox, dir, ALLOW_READ);
}

static bool is_empty(int dir)
{
	bid_auto_fd int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bid_auto_dir DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	unsigned n = 0;

	if (!entries)
		return false;
	bid_steal_fd(&fd);
	while (n < 3 && readdir(entries))
		n++;
	return n < 3;
}

/*
 * Allow reading the tree at @path. A tree on another file system may be mounted later or again, where a rule of now does not
 * hold, and a look at it may wait for another machine: reading is not restricted then.
 */
static int allow_tree(const struct bid_sandbox *sandbox, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_XDEV };
	bid_auto_fd int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd >= 0 && !is_empty(fd))
		return allow_fd(sandbox, fd, ALLOW_READ);
	return allow_path(sandbox, "/", ALLOW_READ);
}

static int allow_for_servers(void *user, const char *path, bool tree)
{
	return tree ? allow_tree(user, path) : allow_file(user, path);
}

/* The directory of a library may have more that it loads later. A backtrace reads the program. */
static int allow_library(struct dl_phdr_info *info, size_t size, void *user)
{
	return *info->dlpi_name == '/' ? allow_file(user, info->dlpi_name) : 0;
}

static int allow_system(const struct bid_sandbox *sandbox)
{
	int r = dl_iterate_phdr(allow_library, (void *)sandbox);

	for (size_t i = 0; i < sizeof(system_paths) / sizeof(system_paths[0]) && r == 0; i++)
		r = allow_path(sandbox, system_paths[i], ALLOW_READ);
	if (r == 0)
		r = allow_path(sandbox, "/proc/self/exe", ALLOW_READ);
	if (r == 0)
		r = allow_path(sandbox, "/dev/null", ALLOW_READ | ALLOW_WRITE);
#ifdef __SANITIZE_ADDRESS__ /* the sanitizer reads files of its options at the end */
	if (r == 0)
		r = allow_path(sandbox, "/", ALLOW_READ);
#endif
	return r;
}

/* Let fchown(2) give files to the owner of the store at @path. */
static int allow_owner(struct bid_sandbox *sandbox, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return 0;
	if (bid_array_grow(sandbox->owners, sandbox->n_owners, sandbox->room) < 0)
		return -ENOMEM;
	sandbox->owners[sandbox->n_owners++] = (struct bid_owner){ st.st_uid, st.st_gid };
	return 0;
}

/* Let fchown(2) give files to the owners of all stores, and lock files of @store to the writers of its private directory. */
static int allow_owners(struct bid_sandbox *sandbox, const struct bid_options *options, struct bid_store *store)
{
	int r = allow_owner(sandbox, bid_store_path(store));
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/.bidfs", bid_store_path(store));
	if (r == 0 && stat(path, &st) == 0) {
		sandbox->shared = st.st_mode & (S_IWGRP | S_IWOTH);
		r = allow_owner(sandbox, path);
	}
	for (char **lower = options->lowers; lower && *lower && r == 0; lower++)
		if (bid_store_lower_path(*lower, path, sizeof(path)) > 0)
			r = allow_owner(sandbox, path);
	return r;
}

static int allow_stores(const struct bid_sandbox *sandbox, const struct bid_options *options, struct bid_store *store)
{
	/* with passthrough the kernel opens executables for readers by the rules of the daemon */
	uint64_t served = ALLOW_READ | (sandbox->passthrough ? FS_EXECUTE : 0);
	uint64_t change = bid_store_writable(store) ? ALLOW_WRITE | ALLOW_CHANGE : 0;
	int r = allow_path(sandbox, bid_store_path(store), served | change);
	for (char **lower = options->lowers; lower && *lower && r == 0; lower++) {
		char path[PATH_MAX];

		/* an open store is not mounted again */
		if (bid_store_lower_path(*lower, path, sizeof(path)) > 0)
			r = allow_path(sandbox, path, served);
	}
	for (char **dir = options->links; dir && *dir && r == 0; dir++)
		r = allow_path(sandbox, *dir, served);
	return r;
}

/*
 * Make a ruleset that allows no files, no TCP ports to listen on or, without servers, to connect to, no signals to other processes,
 * and no abstract sockets of theirs, as far as the kernel supports that. Returns the version of Landlock; -EOPNOTSUPP if it is
 * switched off, -ENOSYS if there is none, or version 1, which forbids all links between directories.
 */
static int make_ruleset(struct bid_sandbox *sandbox)
{
	struct ruleset_attributes attributes = { .handled_access_fs = FS_OF_VERSION_2 };
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);

	if (version < 2)
		return version < 0 ? -errno : -ENOSYS;
	if (version >= 3)
		attributes.handled_access_fs |= FS_TRUNCATE;
	if (version >= 4)
		attributes.handled_access_net = sandbox->network ? NET_BIND_TCP : NET_BIND_TCP | NET_CONNECT_TCP;
	if (version >= 5)
		attributes.handled_access_fs |= FS_IOCTL_DEV;
	if (version >= 6)
		attributes.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
	/* the descriptor is close-on-exec */
	sandbox->ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
	return sandbox->ruleset < 0 ? -errno : (int)version;
}

static int prepare_landlock(struct bid_sandbox *sandbox, const struct bid_options *options, struct bid_store *store,
			    const struct bid_servers *servers)
{
	int r = make_ruleset(sandbox);

	if (r == -ENOSYS) {
		add_reason(sandbox, "the landlock of the kernel does not allow links (needs Linux 5.19)");
		return 0;
	}
	if (r < 0) {
		add_reason(sandbox, "landlock is switched off in this kernel (see 'lsm=' of its command line)");
		return 0;
	}
	sandbox->version = r;
	r = allow_stores(sandbox, options, store);
	if (r == 0)
		r = allow_system(sandbox);
	if (r == 0)
		r = bid_servers_each_path(servers, allow_for_servers, sandbox);
	return r;
}

static int prepare_sandbox(struct bid_sandbox *sandbox, const struct bid_options *options, struct bid_store *store,
			   const struct bid_servers *servers)
{
	const char *obstacle = bid_syscalls_obstacle();
	int r;

	sandbox->network = bid_servers_are_remote(servers);
	if (obstacle)
		add_reason(sandbox, obstacle);
	sandbox->by_syscalls = !obstacle;
	r = allow_owners(sandbox, options, store);
	return r == 0 ? prepare_landlock(sandbox, options, store, servers) : r;
}

int bid_sandbox_new(const struct bid_options *options, struct bid_store *store, const struct bid_servers *servers, bool passthrough,
		    struct bid_sandbox **ret_sandbox)
{
	struct bid_sandbox *sandbox = calloc(1, sizeof(*sandbox));
	int r = 0;

	if (!sandbox)
		return -ENOMEM;
	sandbox->ruleset = -1;
	sandbox->passthrough = passthrough;
	snprintf(sandbox->state, sizeof(sandbox->state), "none");
	if (options->sandbox == BID_SANDBOX_OFF)
		add_reason(sandbox, "switched off by sandbox=off");
	else
		r = prepare_sandbox(sandbox, options, store, servers);
	if (r < 0) {
		bid_error("%s: cannot prepare the sandbox", strerror(-r));
	} else if (options->sandbox == BID_SANDBOX_ON && *sandbox->reason) {
		bid_error("%s: cannot mount with 'sandbox=on'", sandbox->reason);
		r = -EOPNOTSUPP;
	}
	if (r < 0) {
		bid_sandbox_free(sandbox);
		return r;
	}
	*ret_sandbox = sandbox;
	return 0;
}

bool bid_sandbox_confines(const struct bid_sandbox *sandbox)
{
	return sandbox->ruleset >= 0 || sandbox->by_syscalls;
}

/*
 * Keep the capabilities over files, and with passthrough CAP_SYS_ADMIN. Without CAP_FSETID a write clears the setuid bit, which
 * openat2(2) could set past the filter.
 */
static int drop_capabilities(bool passthrough)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	uint32_t kept = 1U << CAP_CHOWN | 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH | 1U << CAP_FOWNER |
			1U << CAP_SYS_RESOURCE;

	if (passthrough)
		kept |= 1U << CAP_SYS_ADMIN;
	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	data[0].permitted &= kept;
	data[0].effective &= kept;
	data[1].permitted = data[1].effective = 0;
	data[0].inheritable = data[1].inheritable = 0;
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int restrict_process(struct bid_sandbox *sandbox)
{
	int r = 0;

	/* the daemon forked since bid_sandbox_new() */
	if (sandbox->ruleset >= 0)
		r = allow_path(sandbox, "/proc/self", ALLOW_READ);
	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = -errno;
	if (r == 0 && sandbox->ruleset >= 0 && syscall(SYS_landlock_restrict_self, sandbox->ruleset, 0) < 0)
		r = -errno;
	if (r == 0)
		r = drop_capabilities(sandbox->passthrough);
	if (r == 0 && sandbox->by_syscalls)
		r = bid_syscalls_restrict(&(struct bid_syscalls_allowed){ .network = sandbox->network,
									  .any_owner = geteuid() != 0,
									  .owners = sandbox->owners,
									  .n_owners = sandbox->n_owners,
									  .shared = sandbox->shared });
	return r;
}

int bid_sandbox_enter(struct bid_sandbox *sandbox)
{
	int r = bid_sandbox_confines(sandbox) ? restrict_process(sandbox) : 0;

	if (r < 0) {
		bid_error("%s: cannot enter the sandbox - add '-o sandbox=off' to do without", strerror(-r));
		return r;
	}
	bid_close(sandbox->ruleset);
	if (sandbox->ruleset >= 0)
		snprintf(sandbox->state, sizeof(sandbox->state), "landlock %d%s", sandbox->version,
			 sandbox->by_syscalls ? ", seccomp" : "");
	else if (sandbox->by_syscalls)
		snprintf(sandbox->state, sizeof(sandbox->state), "seccomp");
	sandbox->ruleset = -1;
	return 0;
}

const char *bid_sandbox_state(const struct bid_sandbox *sandbox)
{
	return sandbox->state;
}

const char *bid_sandbox_reason(const struct bid_sandbox *sandbox)
{
	return sandbox->reason;
}

void bid_sandbox_free(struct bid_sandbox *sandbox)
{
	if (!sandbox)
		return;
	bid_close(sandbox->ruleset);
	free(sandbox->owners);
	free(sandbox);
}
