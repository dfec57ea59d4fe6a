// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A list of what is refused, not of what is allowed: what libcurl and the C library need is not ours to know, and changes with
 * their versions.
 */
#include "syscalls.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/cleanup.h"

/* By name: libseccomp may be too old for some, and the machine may not have others. */
static const char *const refused[] = {
	/* to start a program, and to get into another process */
	"execve", "execveat", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
#ifndef __SANITIZE_ADDRESS__ /* by which the sanitizer finds leaks */
	"ptrace",
#endif
	/* to see other files under known names, or files without a name */
	"mount", "umount", "umount2", "mount_setattr", "move_mount", "open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount",
	"fspick", "pivot_root", "chroot", "unshare", "setns", "open_by_handle_at", "fanotify_init", "mknod", "mknodat", "quotactl",
	"quotactl_fd", "swapon", "swapoff",
	/* to make calls that a filter does not see */
	"io_uring_setup", "io_uring_enter", "io_uring_register",
	/* to change the kernel, or to look into it */
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "bpf", "perf_event_open",
	"userfaultfd", "syslog", "acct", "iopl", "ioperm", "modify_ldt", "vm86", "vm86old", "personality", "add_key", "request_key",
	"keyctl",
	/* to be somebody else */
	"setuid", "setuid32", "setgid", "setgid32", "setreuid", "setreuid32", "setregid", "setregid32", "setresuid", "setresuid32",
	"setresgid", "setresgid32", "setfsuid", "setfsuid32", "setfsgid", "setfsgid32", "setgroups", "setgroups32", "capset",
	/* to set the machine's clock and name */
	"settimeofday", "stime", "clock_settime", "clock_settime64", "clock_adjtime", "clock_adjtime64", "adjtimex", "sethostname",
	"setdomainname", "vhangup"
};

static const unsigned namespaces[] = { CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
				       CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP };

static void release(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

const char *bid_syscalls_obstacle(void)
{
	/* a filter at no address is refused for that, if there are filters at all */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) < 0 && errno == EFAULT ? NULL : "the kernel has no seccomp filters";
}

static int refuse(scmp_filter_ctx filter, const char *const *names, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		int number = seccomp_syscall_resolve_name(names[i]);

		r = number == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
	}
	return r;
}

/* Refuse calls whose argument @index has @value in its lower 32 bits: the kernel looks at no others. */
static int refuse_value(scmp_filter_ctx filter, int number, unsigned index, unsigned value)
{
	return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 1, SCMP_CMP(index, SCMP_CMP_MASKED_EQ, UINT32_MAX, value));
}

static int refuse_sockets(scmp_filter_ctx filter, bool network)
{
	/* local ones and those of the internet; addresses are looked up with netlink */
	int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_GT, AF_NETLINK));

	if (r == 0 && !network)
		r = refuse_value(filter, SCMP_SYS(socket), 0, AF_INET);
	if (r == 0 && !network)
		r = refuse_value(filter, SCMP_SYS(socket), 0, AF_INET6);
	return r;
}

static int refuse_namespaces(scmp_filter_ctx filter)
{
	/* its flags are in memory, where a filter cannot look; without it, the C library uses clone(2) */
	int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

	for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]) && r == 0; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
				     SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces[i], namespaces[i]));
	return r;
}

int bid_syscalls_refuse(bool network)
{
	bid_cleanup(release) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int r;

	if (!filter)
		return -ENOMEM;
	/* the calls of another architecture that this processor can also run have other numbers */
	r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
	if (r == 0)
		r = refuse(filter, refused, sizeof(refused) / sizeof(refused[0]));
	if (r == 0)
		r = refuse_sockets(filter, network);
	if (r == 0)
		r = refuse_namespaces(filter);
	/* what is typed into the terminal that it was started from */
	if (r == 0)
		r = refuse_value(filter, SCMP_SYS(ioctl), 1, TIOCSTI);
	if (r == 0)
		r = refuse_value(filter, SCMP_SYS(ioctl), 1, TIOCLINUX);
	/* calls that the filter looks at are few in a read or an open; what made those slow, by way of it, is not wanted */
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return r < 0 ? r : seccomp_load(filter);
}
