# SPDX-License-Identifier: LGPL-2.1-or-later
"""A container started by systemd, with the built programs installed."""
import pathlib
import signal
import subprocess

import tools

SYSTEMD = pathlib.Path("/lib/systemd/systemd")

# Unmount copies of other tests' mounts, which would keep their daemons alive. All written files are in memory. systemd needs a
# control group of its own.
START = r"""
top=$1 group=$2 build=$3
shift 3
while read -r _ point type _; do
	case $type in fuse.*) umount --lazy --no-canonicalize "$point" || true ;; esac
done </proc/mounts
mount -t tmpfs -o mode=0755 tmpfs "$top"
mkdir "$top/upper" "$top/work" "$top/root" "$top/groups"
mount -t cgroup2 cgroup2 "$top/groups"
mkdir "$top/groups/$group"
echo $$ >"$top/groups/$group/cgroup.procs"
mount -t overlay -o "lowerdir=/,upperdir=$top/upper,workdir=$top/work" overlay "$top/root"
# an image for builds has it, and no unit starts or stops with a package then
rm -f "$top/root/usr/sbin/policy-rc.d"
if [ $# -gt 0 ]; then
	mkdir "$top/root/packages"
	cp "$@" "$top/root/packages"
	chroot "$top/root" sh -c 'dpkg --install /packages/*' >&2
else
	meson install -C "$build" --no-rebuild --quiet --destdir "$top/root" >&2
	# mount(8) looks in no other directory
	ln -s /usr/local/bin/mount.bidfs "$top/root/sbin/mount.bidfs"
	chroot "$top/root" ldconfig
fi
exec unshare --mount --pid --fork --kill-child --uts --ipc --net --cgroup --propagation private sh -euc '
	cd "$1"
	mount -t proc proc proc
	mount -t sysfs sysfs sys
	mount -t cgroup2 cgroup2 sys/fs/cgroup
	mount -t tmpfs -o mode=0755 tmpfs run
	mount -t tmpfs -o mode=0755 tmpfs dev
	for device in null zero full random urandom tty autofs; do
		[ -e "/dev/$device" ] || continue
		: >"dev/$device"
		mount --bind "/dev/$device" "dev/$device"
	done
	# as udev makes it, for all users
	mknod -m 0666 dev/fuse c 10 229
	exec chroot . /usr/bin/env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=basic.target
' sh "$top/root"
"""

# the kernel empties the control groups of systemd a moment after its end
REMOVE = r"""
mount -t cgroup2 cgroup2 "$1"
[ ! -e "$1/$2" ] || find "$1/$2" -depth -type d -exec rmdir {} +
"""


def why_no_container():
    """Return why no container can run here, or None."""
    if not tools.IS_ROOT:
        return "needs root"
    if not SYSTEMD.exists():
        return f"not installed: '{SYSTEMD}'"
    if tools.is_sanitized():
        return "an installed build has no sanitizers"
    return None


class Container:
    """A container with `packages` installed, or with the built programs. The limit of the test ends each wait."""

    def __init__(self, workdir, packages=()):
        self.workdir = workdir / "container"
        self.workdir.mkdir()
        self.group = f"bidfs-test-{self.workdir.parent.name}"
        self.log_path = workdir / "container-log"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-euc", START, "sh",
                                             str(self.workdir), self.group, str(tools.BUILD), *packages],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.init = tools.wait_until(self.find_init, "systemd")
        tools.wait_until(lambda: self.run("systemctl", "is-system-running", status=None).stdout in ("running\n", "degraded\n"),
                         "a running system")

    def find_init(self):
        """Return the pid of the container's init, as this namespace numbers it."""
        assert self.process.poll() is None, self.log_path.read_text(errors="replace")
        children = tools.run("ps", "-o", "pid=,comm=", "--ppid", self.process.pid, status=None).stdout.split()
        return children[0] if children[1:] == ["systemd"] else None

    def run(self, *argv, status=0):
        return tools.run("nsenter", "--all", "--root", "--wd", "-t", self.init, "/usr/bin/env", "-i", "LC_ALL=C.UTF-8",
                         "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", *argv, status=status)

    def property(self, unit, name):
        return self.run("systemctl", "show", f"--property={name}", "--value", unit).stdout.strip()

    def journal(self, unit):
        return self.run("journalctl", "--no-pager", f"--unit={unit}", "--output=cat").stdout

    def end(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        remove = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", REMOVE, "sh", self.workdir, self.group]
        tools.wait_until(lambda: tools.run(*remove, status=None).returncode == 0, "the end of the container")
