// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * All other system calls fail with ENOSYS, as on an older kernel, for which the C library and libcurl have fallbacks. A filter does
 * not see memory behind pointers. Therefore attributes change by descriptor alone; mount.bidfs(8), SANDBOX, has the effect on files
 * outside of the store.
 */
#include "sandbox/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41 /* Linux 5.17; the C library names its mappings */
#endif

/* names, because libseccomp or the architecture may lack some */
static const char *const allowed[] = {
	/* data of open files */
	"read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2", "lseek", "_llseek",
	"copy_file_range", "sendfile", "sendfile64", "fallocate", "ftruncate", "ftruncate64", "fsync", "fdatasync", "syncfs",
	"sync_file_range", "readahead", "fadvise64", "fadvise64_64", "flock", "close", "close_range", "dup", "dup2", "dup3", "pipe",
	"pipe2", "memfd_create", "getdents", "getdents64",
	/* names, as far as Landlock allows */
	"openat2", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "getcwd", "rmdir", "unlink", "unlinkat", "rename",
	"renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "umask",
	/* read attributes */
	"stat", "stat64", "lstat", "lstat64", "fstat", "fstat64", "newfstatat", "fstatat64", "statx", "statfs", "statfs64",
	"fstatfs", "fstatfs64", "getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr",
	/* wait */
	"poll", "ppoll", "ppoll_time64", "select", "_newselect", "pselect6", "pselect6_time64", "epoll_create", "epoll_create1",
	"epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd", "eventfd2", "timerfd_create", "timerfd_settime",
	"timerfd_settime64", "timerfd_gettime", "timerfd_gettime64", "futex", "futex_time64", "futex_waitv", "wait4", "waitid",
	"pause", "restart_syscall",
	/* libcurl wakes its threads by these */
	"sendto", "recvfrom",
	/* memory */
	"mmap", "mmap2", "munmap", "mprotect", "mremap", "madvise", "mincore", "msync", "mlock", "munlock", "brk", "membarrier",
	/* threads and the process */
	"exit", "exit_group", "set_robust_list", "get_robust_list", "rseq", "set_tid_address", "sched_yield", "sched_getaffinity",
	"sched_getparam", "sched_getscheduler", "getpid", "gettid", "getppid", "getuid", "getuid32", "geteuid", "geteuid32",
	"getgid", "getgid32", "getegid", "getegid32", "getgroups", "getgroups32", "getresuid", "getresuid32", "getresgid",
	"getresgid32", "getpgrp", "getsid", "capget", "getrlimit", "ugetrlimit", "setrlimit", "getrusage", "times", "getcpu",
	"getrandom", "uname", "sysinfo", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigreturn", "rt_sigsuspend",
	"rt_sigtimedwait", "rt_sigtimedwait_time64", "rt_sigpending", "sigaltstack", "clock_gettime", "clock_gettime64",
	"clock_getres", "clock_getres_time64", "clock_nanosleep", "clock_nanosleep_time64", "nanosleep", "gettimeofday", "time",
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* LeakSanitizer stops all threads at the end */
	"ptrace", "clone", "prctl", "personality", "kill", "open", "openat"
#endif
};

/* For servers, with socket(2). */
static const char *const network_calls[] = { "connect",	 "bind",    "getsockopt", "setsockopt", "getsockname", "getpeername",
					     "shutdown", "sendmsg", "recvmsg",	  "sendmmsg",	"recvmmsg" };

/* The argument @index of a call has @value in the bits @mask. */
struct check {
	const char *name;
	unsigned index;
	uint64_t mask, value;
};

enum {
	SPECIAL = S_ISUID | S_ISGID | S_ISVTX,
	TYPE = 0xf, /* type of a socket, without flags */
	NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP,
	BACKING_OPEN = _IOC(_IOC_WRITE, 229, 1, 16), /* FUSE_DEV_IOC_BACKING_OPEN, Linux 6.9 */
	BACKING_CLOSE = _IOC(_IOC_WRITE, 229, 2, 4),
};

#define LOW UINT32_MAX /* the bits of an int */

/* A call is allowed if one of its checks holds. */
static const struct check checks[] = {
	/* no setuid file */
	{ "open", 2, SPECIAL, 0 },
	{ "openat", 3, SPECIAL, 0 },
	{ "mkdir", 1, SPECIAL, 0 },
	{ "mkdirat", 2, SPECIAL, 0 },
	/* a descriptor, without a name */
	{ "utimensat", 1, UINT64_MAX, 0 },
	{ "utimensat_time64", 1, UINT64_MAX, 0 },
	/* threads of this process; clone3(2) has its flags in memory, so the C library falls back to clone(2) */
	{ "clone", 0, CLONE_THREAD | NAMESPACES, CLONE_THREAD },
	{ "prctl", 0, LOW, PR_SET_NAME },
	{ "prctl", 0, LOW, PR_GET_NAME },
	{ "prctl", 0, LOW, PR_SET_VMA },
	{ "prlimit64", 0, LOW, 0 },
	/* connected for good */
	{ "socketpair", 1, TYPE, SOCK_STREAM },
	{ "ioctl", 1, LOW, FICLONE },
	{ "ioctl", 1, LOW, BACKING_OPEN },
	{ "ioctl", 1, LOW, BACKING_CLOSE },
	{ "ioctl", 1, LOW, FIONREAD },
	{ "ioctl", 1, LOW, FIONBIO },
	{ "ioctl", 1, LOW, TCGETS },
	/* without F_SETOWN the signal goes to this process */
	{ "fcntl", 1, LOW, F_SETSIG },
	{ "fcntl", 1, LOW, F_SETLEASE },
	{ "fcntl", 1, LOW, F_DUPFD },
	{ "fcntl", 1, LOW, F_DUPFD_CLOEXEC },
	{ "fcntl", 1, LOW, F_GETFD },
	{ "fcntl", 1, LOW, F_SETFD },
	{ "fcntl", 1, LOW, F_GETFL },
	{ "fcntl", 1, LOW, F_SETFL },
	{ "fcntl", 1, LOW, F_GETLK },
	{ "fcntl", 1, LOW, F_SETLK },
	{ "fcntl", 1, LOW, F_SETLKW },
	{ "fcntl", 1, LOW, F_OFD_GETLK },
	{ "fcntl", 1, LOW, F_OFD_SETLK },
	{ "fcntl", 1, LOW, F_OFD_SETLKW },
	{ "fcntl", 1, LOW, F_ADD_SEALS },
	{ "fcntl", 1, LOW, F_GET_SEALS },
};

/* For servers. No local sockets, which lead to services of the system. */
static const struct check network_checks[] = {
	{ "socket", 0, LOW, AF_INET },
	{ "socket", 0, LOW, AF_INET6 },
};

static void filter_free(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

const char *bid_syscalls_obstacle(void)
{
	/* a kernel with filters refuses NULL with EFAULT */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) < 0 && errno == EFAULT ? NULL : "the kernel has no seccomp filters";
}

static int allow_calls(scmp_filter_ctx filter, const char *const *names, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		int number = seccomp_syscall_resolve_name(names[i]);

		r = number == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
	}
	return r;
}

static int allow_checked(scmp_filter_ctx filter, const struct check *list, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		int number = seccomp_syscall_resolve_name(list[i].name);

		if (number != __NR_SCMP_ERROR)
			r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 1,
					     SCMP_CMP(list[i].index, SCMP_CMP_MASKED_EQ, list[i].mask, list[i].value));
	}
	return r;
}

static int allow_network(scmp_filter_ctx filter)
{
	int r = allow_calls(filter, network_calls, sizeof(network_calls) / sizeof(network_calls[0]));

	if (r == 0)
		r = allow_checked(filter, network_checks, sizeof(network_checks) / sizeof(network_checks[0]));
	/* the C library reads the addresses of this machine */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_MASKED_EQ, LOW, AF_NETLINK),
				     SCMP_A2(SCMP_CMP_MASKED_EQ, LOW, NETLINK_ROUTE));
	return r;
}

/* Allow fchown(2) to @uid and @gid; -1 keeps the present one. */
static int allow_owner(scmp_filter_ctx filter, uid_t uid, gid_t gid)
{
	static const char *const names[] = { "fchown", "fchown32" };
	int r = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && r == 0; i++) {
		int number = seccomp_syscall_resolve_name(names[i]);

		if (number != __NR_SCMP_ERROR)
			r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 2, SCMP_CMP(1, SCMP_CMP_MASKED_EQ, LOW, uid),
					     SCMP_CMP(2, SCMP_CMP_MASKED_EQ, LOW, gid));
	}
	/* two stores have one owner */
	return r == -EEXIST ? 0 : r;
}

/*
 * fchmod(2) and fchown(2) need a descriptor for reading, and the daemon of root can open most files of the system. Therefore files
 * go only to owners of stores, and get no bits for other writers.
 */
static int allow_attributes(scmp_filter_ctx filter, const struct bid_syscalls_allowed *more)
{
	static const char *const any[] = { "fchown", "fchown32" };
	mode_t refused = SPECIAL | ((S_IWGRP | S_IWOTH) & ~more->shared);
	int r = allow_checked(filter, &(struct check){ "fchmod", 1, refused, 0 }, 1);

	if (r == 0 && more->any_owner)
		return allow_calls(filter, any, sizeof(any) / sizeof(any[0]));
	for (size_t i = 0; i < more->n_owners && r == 0; i++) {
		r = allow_owner(filter, more->owners[i].uid, more->owners[i].gid);
		if (r == 0)
			r = allow_owner(filter, more->owners[i].uid, (gid_t)-1);
	}
	return r;
}

static int add_rules(scmp_filter_ctx filter, const struct bid_syscalls_allowed *more)
{
	/* calls of other architectures have other numbers */
	int r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));

	if (r == 0)
		r = allow_calls(filter, allowed, sizeof(allowed) / sizeof(allowed[0]));
	if (r == 0)
		r = allow_checked(filter, checks, sizeof(checks) / sizeof(checks[0]));
	if (r == 0)
		r = allow_attributes(filter, more);
	/* abort(3) and pthread_kill(3) */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				     SCMP_A0(SCMP_CMP_MASKED_EQ, LOW, (uint64_t)getpid()));
	return r == 0 && more->network ? allow_network(filter) : r;
}

int bid_syscalls_restrict(const struct bid_syscalls_allowed *more)
{
	bid_cleanup(filter_free) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int r;

	if (!filter)
		return -ENOMEM;
	r = add_rules(filter, more);
	/* filtered calls are rare in a read or an open; the mitigation would slow down all code */
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return r < 0 ? r : seccomp_load(filter);
}
