# SPDX-License-Identifier: LGPL-2.1-or-later
"""Scripts in namespaces with other devices, mounts and rights than this machine's. They leave nothing behind."""
import tools

NOBODY = 65534


def as_user(user):
    """What to put before a command so that this user runs it, with no right of root's left."""
    return f"setpriv --reuid={user} --regid={user} --clear-groups"


def isolated(script, env, status=0):
    """Run a shell script in its own namespaces of mounts and processes; all that it leaves running is killed."""
    return tools.run("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private",
                     "sh", "-ec", script, env=env, status=status)
