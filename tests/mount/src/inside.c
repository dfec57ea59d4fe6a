// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Preloaded into the daemon: at SIGUSR1 it makes the attempts of a hijacked daemon, and writes a line "probe NAME TAGS ERRNO" for
 * each attempt to standard error. The attempts are harmless where they succeed. TAGS name the mechanism that refuses the attempt:
 * "L4", Landlock of version 4 and up; "N", Landlock without passthrough; "S", seccomp; and "R", attempts that only root could make
 * without them. With PROBE_NO_LANDLOCK in the environment, the kernel has no Landlock.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static const char *beside, *store; /* a directory that the daemon must not use, and its store */
static int port, victim; /* a listening socket, and another process of the same user */

static const char *in(const char *dir, const char *name)
{
	static char buf[2][512];
	static int turn;

	turn = !turn;
	snprintf(buf[turn], sizeof(buf[turn]), "%s/%s", dir, name);
	return buf[turn];
}

/* Close the descriptor of an attempt. */
static long shut(long fd)
{
	if (fd >= 0)
		close((int)fd);
	return fd;
}

static long local(const char *name, size_t len, int act(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	long r;

	if (fd < 0)
		return fd;
	memcpy(address.sun_path, name, len);
	r = act(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	shut(fd);
	return r;
}

static long tcp(int to, int act(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((unsigned short)to) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), error;
	long r;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r = fd < 0 ? -1 : act(fd, (struct sockaddr *)&address, sizeof(address));
	error = errno;
	shut(fd);
	errno = error;
	return r;
}

/* Make a setuid program in @store. Returns 0 if that worked. */
static long make_setuid(void)
{
	struct open_how how = { .flags = O_WRONLY | O_CREAT | O_EXCL, .mode = 04755 };
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, in(store, "filled"), &how, sizeof(how));
	struct stat st;
	long r = fd < 0 || write(fd, "x", 1) < 0 || fstat(fd, &st) < 0 ? -1 : 0;

	if (r == 0 && !(st.st_mode & S_ISUID)) {
		errno = EPERM;
		r = -1;
	}
	return r;
}

/* Do @act with one of @store's files, open for reading. */
static long opened(int act(int))
{
	int fd = open(in(store, "mine"), O_RDONLY), error;
	long r = fd < 0 ? -1 : act(fd);

	error = errno;
	shut(fd);
	errno = error;
	return r;
}

static int set_setuid(int fd)
{
	return fchmod(fd, 04755);
}

static int let_all_write(int fd)
{
	return fchmod(fd, 0666);
}

static int give_away(int fd)
{
	return fchown(fd, 1, (gid_t)-1);
}

static int give_to_group(int fd)
{
	return fchown(fd, (uid_t)-1, 1);
}

static int set_xattr(int fd)
{
	return fsetxattr(fd, "user.x", "x", 1, 0);
}

static int set_owner(int fd)
{
	return fcntl(fd, F_SETOWN, victim);
}

static int pair[2];
static const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
static struct rlimit limit;
static char *const nothing[] = { NULL };
static char byte;
static const struct iovec here = { &byte, 1 }, there = { NULL, 1 };
static char abstract[108]; /* the name of an abstract socket, behind a zero byte */

#define PROBES \
	PROBE("write-beside", "L", shut(open(in(beside, "new"), O_WRONLY | O_CREAT, 0600))) \
	PROBE("write-shadow", "L R", shut(open("/etc/shadow", O_WRONLY))) \
	PROBE("write-passwd", "L R", shut(open("/etc/passwd", O_RDWR))) \
	PROBE("write-program", "L R", shut(open("/usr/bin/bashbug", O_WRONLY))) \
	PROBE("truncate", "L3", truncate(in(beside, "file"), 0)) \
	PROBE("read-beside", "L", shut(open(in(beside, "file"), O_RDONLY))) \
	PROBE("list-beside", "L", shut(open(beside, O_RDONLY | O_DIRECTORY))) \
	PROBE("read-process", "L", shut(open(in("/proc/1", "status"), O_RDONLY))) \
	PROBE("open-device", "L", shut(open("/dev/fuse", O_RDWR))) \
	PROBE("make-directory", "L", mkdir(in(beside, "dir"), 0700)) \
	PROBE("make-link", "L", symlink("/etc", in(beside, "etc"))) \
	PROBE("make-pipe", "L", mknod(in(beside, "pipe"), S_IFIFO | 0600, 0)) \
	PROBE("make-pipe-in-store", "L", mknod(in(store, "pipe"), S_IFIFO | 0600, 0)) \
	PROBE("make-socket-in-store", "L", local(in(store, "s"), strlen(store) + 2, bind)) \
	PROBE("remove", "L", unlink(in(beside, "old"))) \
	PROBE("link-out", "L", link(in(store, "mine"), in(beside, "mine"))) \
	PROBE("rename-out", "L", rename(in(store, "mine2"), in(beside, "mine2"))) \
	PROBE("rename-in", "L", rename(in(beside, "theirs"), in(store, "theirs"))) \
	PROBE("execute", "L S", execve(in(beside, "text"), nothing, nothing)) \
	PROBE("execute-at", "N S", syscall(SYS_execveat, AT_FDCWD, in(store, "text"), nothing, nothing, 0)) \
	PROBE("connect", "L4 S", tcp(port, connect)) \
	PROBE("listen", "L4 S", tcp(0, bind)) \
	PROBE("service", "S", local(in(beside, "socket"), strlen(beside) + 7, connect)) \
	PROBE("pair-of-sockets", "S", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair)) \
	PROBE("chmod", "S", chmod(in(beside, "file"), 0755)) \
	PROBE("chmod-at", "S", fchmodat(AT_FDCWD, in(beside, "file"), 0755, 0)) \
	PROBE("chown", "S", chown(in(beside, "file"), geteuid(), getegid())) \
	PROBE("chown-at", "S", fchownat(AT_FDCWD, in(beside, "file"), geteuid(), getegid(), 0)) \
	PROBE("setuid-in-store", "S", chmod(in(store, "mine"), 04755)) \
	PROBE("setuid-by-descriptor", "S", opened(set_setuid)) \
	PROBE("write-for-all-by-descriptor", "S", opened(let_all_write)) \
	PROBE("owner-by-descriptor", "S R", opened(give_away)) \
	PROBE("group-by-descriptor", "S R", opened(give_to_group)) \
	PROBE("setuid-when-made", "S", shut(open(in(store, "made"), O_WRONLY | O_CREAT, 04755))) \
	PROBE("setuid-program", "S R", make_setuid()) \
	PROBE("times", "S", utimensat(AT_FDCWD, in(beside, "file"), times, 0)) \
	PROBE("set-xattr", "S", setxattr(in(beside, "file"), "user.x", "x", 1, 0)) \
	PROBE("set-xattr-by-descriptor", "S", opened(set_xattr)) \
	PROBE("remove-xattr", "S", removexattr(in(beside, "file"), "user.x")) \
	PROBE("limits", "S", prlimit(victim, RLIMIT_CORE, NULL, &limit)) \
	PROBE("priority", "S", setpriority(PRIO_PROCESS, (id_t)victim, 0)) \
	PROBE("owner-of-signals", "S", opened(set_owner)) \
	PROBE("signal-to-thread", "L6 S", syscall(SYS_tgkill, victim, victim, 0)) \
	PROBE("process-descriptor", "S", shut(syscall(SYS_pidfd_open, victim, 0))) \
	PROBE("clone3", "S", syscall(SYS_clone3, NULL, 0)) \
	PROBE("directory", "S", chdir("/")) \
	PROBE("abstract-socket", "L6 S", local(abstract, 1 + strlen(abstract + 1), connect)) \
	PROBE("signal", "L6 S", kill(victim, SIGCONT)) \
	PROBE("trace", "S", ptrace(PTRACE_PEEKDATA, victim, NULL, NULL)) \
	PROBE("read-memory", "L S", process_vm_readv(victim, &here, 1, &there, 1, 0)) \
	PROBE("raw-socket", "S R", shut(socket(AF_PACKET, SOCK_RAW, 0))) \
	PROBE("crypto-socket", "S", shut(socket(AF_ALG, SOCK_SEQPACKET, 0))) \
	PROBE("mount", "L S R", syscall(SYS_mount, "none", beside, "no-such-type", 0, NULL)) \
	PROBE("unmount", "S R", syscall(SYS_umount2, beside, 0)) \
	PROBE("fsopen", "S R", shut(syscall(SYS_fsopen, "no-such-type", 0))) \
	PROBE("chroot", "S R", chroot(in(beside, "none"))) \
	PROBE("unshare", "S", unshare(CLONE_NEWUSER | CLONE_VM)) \
	PROBE("clone", "S", syscall(SYS_clone, CLONE_NEWUSER | CLONE_FS | SIGCHLD, NULL, NULL, NULL, NULL)) \
	PROBE("setns", "S", setns(-1, 0)) \
	PROBE("handle", "S R", syscall(SYS_open_by_handle_at, -1, NULL, 0)) \
	PROBE("module", "S R", syscall(SYS_init_module, NULL, 0, NULL)) \
	PROBE("kexec", "S R", syscall(SYS_kexec_load, 0, 1000, NULL, 0)) \
	PROBE("reboot", "S R", syscall(SYS_reboot, 0, 0, 0, NULL)) \
	PROBE("bpf", "S R", syscall(SYS_bpf, -1, NULL, 0)) \
	PROBE("perf-event", "S R", syscall(SYS_perf_event_open, NULL, -1, -1, -1, 0)) \
	PROBE("userfaultfd", "S", syscall(SYS_userfaultfd, -1)) \
	PROBE("io_uring", "S", syscall(SYS_io_uring_setup, 0, NULL)) \
	PROBE("keys", "S", syscall(SYS_keyctl, -1, 0, 0, 0, 0)) \
	PROBE("setuid", "S", syscall(SYS_setuid, geteuid())) \
	PROBE("setresgid", "S", syscall(SYS_setresgid, -1, -1, -1)) \
	PROBE("clock", "S R", syscall(SYS_clock_settime, CLOCK_MONOTONIC, NULL)) \
	PROBE("host-name", "S R", syscall(SYS_sethostname, NULL, -1)) \
	PROBE("type-ahead", "S", ioctl(STDIN_FILENO, TIOCSTI, "x"))

static void probe_all(int sig)
{
	char line[128];
	int saved = errno;

#define PROBE(name, tags, call) \
	errno = 0; \
	if ((call) >= 0) \
		errno = 0; \
	snprintf(line, sizeof(line), "probe %s %s %d\n", name, tags, errno); \
	if (write(STDERR_FILENO, line, strlen(line)) < 0) \
		abort();
	PROBES
	snprintf(line, sizeof(line), "probed\n");
	if (write(STDERR_FILENO, line, strlen(line)) < 0)
		abort();
	errno = saved;
}

static void lose_landlock(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	/* root may do so without no_new_privs, which children would inherit */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		abort();
}

__attribute__((constructor)) static void prepare(void)
{
	struct sigaction action = { .sa_handler = probe_all, .sa_flags = SA_RESTART };

	beside = getenv("PROBE_BESIDE");
	store = getenv("PROBE_STORE");
	if (!beside || !store)
		return;
	port = atoi(getenv("PROBE_PORT"));
	victim = atoi(getenv("PROBE_VICTIM"));
	snprintf(abstract + 1, sizeof(abstract) - 1, "%s", getenv("PROBE_SOCKET"));
	if (getenv("PROBE_NO_LANDLOCK"))
		lose_landlock();
	sigaction(SIGUSR1, &action, NULL);
}
