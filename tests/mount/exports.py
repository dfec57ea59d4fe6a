# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers that export a mount, with the configurations of contrib/."""
import contextlib
import pathlib
import re
import shutil
import signal
import subprocess

import servers
import tools


def end(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)


def filled_in(template, **values):
    """Return a configuration of contrib/ with other values: each `name value` is replaced."""
    text = (tools.ROOT / "contrib" / template).read_text()
    for pattern, value in values.items():
        text, count = re.subn(pattern, value.replace("\\", "\\\\"), text)
        assert count, f"{template} has no {pattern}"
    return text


def team_options():
    """Return the mount options of docs/TEAM.md, without those that name the server, and with a wait of one second."""
    options = re.search(r"ExecStart=\S+ \S+ \S+ -o (\S+)", (tools.ROOT / "docs/TEAM.md").read_text())[1].split(",")
    return [option for option in options if not re.match("url=|cache_size=|wait=|foreground|allow_other", option)] + ["wait=1"]


def team_wait():
    """Return the value of wait= in docs/TEAM.md."""
    return re.search(r",(wait=\d+),", (tools.ROOT / "docs/TEAM.md").read_text())[1]


class Nginx:
    """An nginx with a site of the test: `site(port)` is a server block that listens to 127.0.0.1 and answers `/` with 404."""

    scheme, log_format = "http", "$request $status"

    def __init__(self, workdir):
        self.workdir = pathlib.Path(workdir)
        self.workdir.mkdir()
        self.processes = []
        for _ in range(5):  # another program may take the port before nginx binds it
            port = servers.free_port()
            self.url = f"{self.scheme}://127.0.0.1:{port}"
            self.start(port)
            if tools.wait_until(lambda: self.is_gone() or self.is_ready(), "nginx") and not self.is_gone():
                return
            self.stop()
        raise AssertionError(f"nginx does not start:\n{self.log()}")

    def is_ready(self):
        return servers.http(self.url)[0] == 404

    def is_gone(self):
        """Return whether a process has ended."""
        return any(process.poll() is not None for process in self.processes)

    def places(self):
        """Return the configuration that moves all files of nginx but logs to the test's directory."""
        names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        return "".join(f"{name}_temp_path {self.workdir}/{name};\n" for name in names)

    def start(self, port):
        (self.workdir / "site.conf").write_text(self.site(port))
        (self.workdir / "nginx.conf").write_text(f"""
            daemon off;
            {'user root;' if tools.IS_ROOT else ''}
            worker_processes 4;
            pid {self.workdir}/pid;
            error_log {self.workdir}/error.log;
            events {{ worker_connections 256; }}
            http {{
                log_format test '{self.log_format}';
                access_log {self.workdir}/access.log test;
                {self.places()}
                include {self.workdir}/site.conf;
            }}""")
        self.spawn("nginx.conf")

    def spawn(self, config):
        self.processes.append(subprocess.Popen(["/usr/sbin/nginx", "-p", self.workdir, "-c", self.workdir / config,
                                                "-e", self.workdir / "error.log"], stdin=subprocess.DEVNULL,
                                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def log(self, name="error.log"):
        path = self.workdir / name
        return path.read_text() if path.exists() else ""

    def stop(self):
        while self.processes:
            end(self.processes.pop())


class NginxOverMount(Nginx):
    """The two servers of contrib/nginx: one serves stored files from the mount `here`, the other one waits for downloads."""

    def __init__(self, mount, here, workdir, soon=None):
        """`soon` replaces the shipped time that nginx waits for bidfs; it must stay below wait= of the mount (10 s)."""
        self.mount, self.here = mount, here
        self.soon = {r"(?<=proxy_read_timeout )\ds": soon} if soon else {}
        super().__init__(workdir)

    def start(self, port):
        self.behind = servers.free_port()
        config = filled_in("nginx/bidfs-fetch.conf", **{
            r"127\.0\.0\.1:8003": f"127.0.0.1:{self.behind}", "/run/bidfs(?=;)": str(self.mount), "user www-data;":
            "user root;" if tools.IS_ROOT else "", "/run/bidfs-fetch.pid": f"{self.workdir}/pid-fetch",
            "error_log stderr;": f"error_log {self.workdir}/error.log;", r"http \{": f"http {{ {self.places()}"})
        self.waiting = int(re.search(r"worker_processes (\d+);", config)[1])
        (self.workdir / "fetch.conf").write_text(config)
        self.spawn("fetch.conf")
        super().start(port)

    def is_ready(self):
        return super().is_ready() and servers.http(f"http://127.0.0.1:{self.behind}")[0]

    def site(self, port):
        return filled_in("nginx/bidfs.conf", **{"listen 8002": f"listen 127.0.0.1:{port}", "/run/bidfs-here(?=;)": str(self.here),
                                                "/run/bidfs(?=;)": str(self.mount),
                                                r"127\.0\.0\.1:8003": f"127.0.0.1:{self.behind}", **self.soon})


def unprivileged(config):
    """Let a newer NFS-Ganesha run without CAP_SYS_RESOURCE; older ones do not know these options."""
    if "Release = V4." in tools.run("ganesha.nfsd", "-v").stdout:
        return config
    return config.replace("NFS_CORE_PARAM {", "NFS_CORE_PARAM {\n\tallow_set_io_flusher_fail = true;")


class Ganesha:
    """NFS-Ganesha with contrib/nfs/ganesha.conf over a mount, in a network namespace with its rpcbind, D-Bus and clients."""

    def __init__(self, mount, workdir):
        self.workdir = pathlib.Path(workdir)
        self.workdir.mkdir()
        (self.workdir / "recovery").mkdir()
        config = filled_in("nfs/ganesha.conf", **{"/run/bidfs(?=;)": str(mount)})
        # the test must not write to the system's directories
        config = config.replace("NFSV4 {", f"NFSV4 {{\n\tRecoveryBackend = fs;\n\tRecoveryRoot = {self.workdir}/recovery;")
        (self.workdir / "conf").write_text(unprivileged(config))
        # a /run for the socket of rpcbind; mounts propagate from outside
        self.network = subprocess.Popen(["unshare", "--net", "--mount", "--propagation", "slave", "sh", "-c",
                                         "ip link set lo up && mount -t tmpfs tmpfs /run && echo up && exec sleep infinity"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.processes = [self.network]
        try:
            assert self.network.stdout.readline() == b"up\n", "no network of its own"
            self.spawn("rpcbind", "-f")
            tools.wait_until(lambda: self.run("rpcinfo", "-p", status=None).returncode == 0, "rpcbind")
            self.run("mkdir", "/run/dbus")
            self.spawn("dbus-daemon", "--system", "--nofork", "--nopidfile")
            tools.wait_until(lambda: self.run("busctl", "list", status=None).returncode == 0, "dbus-daemon")
            self.start()
        except BaseException:
            self.stop()
            raise

    def command(self, *argv):
        # enter its root as well: in a chroot, the root of the mount namespace is another directory
        return ["nsenter", f"--target={self.network.pid}", "--net", "--mount", "--root", *map(str, argv)]

    def run(self, *argv, **options):
        return tools.run(*self.command(*argv), **options)

    def spawn(self, *argv):
        process = subprocess.Popen(self.command(*argv), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def start(self):
        self.server = self.spawn("ganesha.nfsd", "-F", "-f", self.workdir / "conf", "-L", self.workdir / "log",
                                 "-p", self.workdir / "pid")
        try:
            # one protocol may be ready before the other
            tools.wait_until(lambda: self.server.poll() is not None or
                             all(self.run("nfs-ls", self.url(version), status=None).returncode == 0 for version in (3, 4)),
                             "NFS-Ganesha")
            assert self.server.poll() is None, "NFS-Ganesha does not start"
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{self.log()}") from None

    def tell(self, method, *arguments):
        """Call a method over D-Bus."""
        return self.run("busctl", "call", "org.ganesha.nfsd", "/org/ganesha/nfsd/ExportMgr", "org.ganesha.nfsd.exportmgr", method,
                        *arguments)

    def release_fd(self):
        self.tell("RemoveExport", "q", 1)

    def take(self):
        self.tell("AddExport", "ss", self.workdir / "conf", "EXPORT(Export_Id=1)")

    def log(self):
        path = self.workdir / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    @staticmethod
    def url(version, name=""):
        """Return the URL for libnfs: the last part is the file, the rest is the export."""
        return f"nfs://127.0.0.1/bid{'/' if name else ''}{name}?version={version}"

    def names(self, version, name=""):
        listed = self.run("nfs-ls", self.url(version, name)).stdout
        return sorted(line.split()[-1] for line in listed.splitlines())

    def cat(self, version, name, status=0):
        return self.run("nfs-cat", self.url(version, name), status=status, text=False).stdout

    def stop(self):
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM if process is not self.network else signal.SIGKILL)
            end(process)
        self.network.stdout.close()


def why_no_nfs():
    """Return what an NFS server lacks here, or None."""
    if not tools.IS_ROOT:
        return "NFS-Ganesha opens by file handles, which needs root"
    wanted = ("ganesha.nfsd", "rpcbind", "nfs-ls", "nfs-cat", "ip", "dbus-daemon", "busctl")
    missing = [name for name in wanted if not shutil.which(name)]
    return f"not installed: {', '.join(missing)}" if missing else None
