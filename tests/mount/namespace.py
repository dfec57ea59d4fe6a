# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scripts in namespaces with other devices, mounts and privileges than this machine's, which leave nothing behind."""
import os
import shutil

import tools

NOBODY = 65534


def as_user(user):
    """Return the command prefix that drops all privileges of root and becomes this user."""
    return f"setpriv --reuid={user} --regid={user} --clear-groups"


def mount_program_of_nobody(workdir, point):
    """Let NOBODY own the mount point, and return the path of a copy of mount.bidfs that NOBODY may run."""
    point.mkdir(exist_ok=True)
    os.chown(point, NOBODY, NOBODY)
    copy = shutil.copyfile(tools.MOUNT_BIDFS, workdir / "mount.bidfs")
    copy.chmod(0o755)
    return copy


def fuse_device(workdir, mode=666):
    """Return shell commands for isolated() that give /dev/fuse this mode. They hide what is in the home directory."""
    return f"mount -t tmpfs -o mode=755 none {workdir}/home; mknod -m {mode} {workdir}/home/fuse c 10 229; " \
        f"mount --bind {workdir}/home/fuse /dev/fuse"


def isolated(script, env, status=0):
    """Run a shell script in new mount and PID namespaces; processes that it leaves running are killed."""
    return tools.run("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private",
                     "sh", "-ec", script, env=env, status=status)
