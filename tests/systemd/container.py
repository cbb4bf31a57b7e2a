"""A real systemd as PID 1, in namespaces of its own, on the host's root file system with an overlay that takes all writes.

Nothing of it is left behind: mounts live in the private mount namespace, writes in a tmpfs, processes in one cgroup. Kernel
settings are protected from it: /proc/sys is read-only, and systemd's services that set them are masked. The network is an
empty namespace.
"""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time


class CannotRun(Exception):
    """This machine can't boot it; the text says why."""


SYSTEMD = "/lib/systemd/systemd"
# They change what is not namespaced, or wait for hardware.
MASKED = [
    "systemd-sysctl.service", "systemd-modules-load.service", "systemd-remount-fs.service", "systemd-binfmt.service",
    "proc-sys-fs-binfmt_misc.automount", "systemd-udevd.service", "systemd-udev-trigger.service", "timers.target",
    "sys-kernel-config.mount", "systemd-timesyncd.service",
]


def cgroup2_root():
    with open("/proc/self/mounts") as mounts:
        for line in mounts:
            fields = line.split()
            if fields[2] == "cgroup2" and "rw" in fields[3].split(","):
                return fields[1]
    raise CannotRun("no writable cgroup2 mount")


class Container:
    """Boots systemd; `prepare` is a shell command that runs before, with $ROOT, the new root directory."""

    def __init__(self, prepare, log):
        self._cgroup = None
        self._directory = None
        self._process = None
        if os.geteuid() != 0:
            raise CannotRun("needs root")
        for program in ("unshare", "nsenter", "pivot_root", "mount", "setpriv"):
            if not shutil.which(program):
                raise CannotRun(f"{program} is missing")
        if not os.access(SYSTEMD, os.X_OK):
            raise CannotRun(f"{SYSTEMD} is missing")
        self._log = log
        self._cgroup = os.path.join(cgroup2_root(), f"btfd-test-{os.getpid()}")
        try:
            os.mkdir(self._cgroup)
        except OSError as error:
            raise CannotRun(f"cannot make a cgroup: {error}")
        self._directory = tempfile.mkdtemp(prefix="btfd-systemd-")
        self._process = subprocess.Popen(
            ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', self._cgroup,
             "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net",
             "--cgroup", sys.executable, os.path.abspath(__file__), self._directory, prepare],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self._init = self._wait_for_init()

    def _wait_for_init(self):
        """The host's pid of the PID 1 within, once systemd has reached basic.target."""
        children = f"/proc/{self._process.pid}/task/{self._process.pid}/children"
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                self._log.seek(0)
                raise CannotRun("systemd did not boot: " + self._log.read().strip().replace("\n", "; "))
            pids = open(children).read().split()
            if pids and open(f"/proc/{pids[0]}/comm").read().strip() == "systemd":
                self._init = int(pids[0])
                if self.run("systemctl", "is-active", "--quiet", "basic.target").returncode == 0:
                    return self._init
            time.sleep(0.2)
        self._log.seek(0)
        raise CannotRun("systemd did not reach basic.target: " + self._log.read().strip())

    def run(self, *command, **options):
        """Runs a command inside; like subprocess.run with its output captured."""
        return subprocess.run(["nsenter", "--target", str(self._init), "--all", "--", *command],
                              text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=120, **options)

    def path(self, path):
        """Where a file of the inside is for the outside."""
        return f"/proc/{self._init}/root{path}"

    def stop(self):
        """Kills everything in it and removes what the host knew of it."""
        if self._process:
            self._process.kill()
        if self._cgroup and os.path.isdir(self._cgroup):
            for directory, _, _ in os.walk(self._cgroup, topdown=False):
                for attempt in range(100):
                    try:
                        os.rmdir(directory)
                        break
                    except OSError:
                        self._kill_cgroup()
                        time.sleep(0.05)
                else:
                    raise RuntimeError(f"cannot remove {directory}")
        if self._process:
            self._process.wait()
        if self._directory:
            os.rmdir(self._directory)

    def _kill_cgroup(self):
        try:
            with open(f"{self._cgroup}/cgroup.kill", "w") as kill:
                kill.write("1")
        except OSError:  # before Linux 5.14; the PID namespace ends with its PID 1 anyway
            pass


def _mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def _mount_devices(dev):
    _mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", dev)
    os.umask(0)
    numbers = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
    for name, (major, minor) in numbers.items():
        os.mknod(f"{dev}/{name}", 0o666 | stat.S_IFCHR, os.makedev(major, minor))
    for name in ("shm", "pts"):
        os.mkdir(f"{dev}/{name}")
    os.umask(0o022)
    _mount("-t", "tmpfs", "tmpfs", f"{dev}/shm")
    _mount("-t", "devpts", "-o", "newinstance,ptmxmode=0666", "devpts", f"{dev}/pts")
    os.symlink("pts/ptmx", f"{dev}/ptmx")
    os.symlink("/proc/self/fd", f"{dev}/fd")


def _mount_root(directory):
    _mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", directory)
    for name in ("upper", "work", "root"):
        os.mkdir(f"{directory}/{name}")
    root = f"{directory}/root"
    _mount("-t", "overlay", "-o", f"lowerdir=/,upperdir={directory}/upper,workdir={directory}/work", "overlay", root)
    if not os.access(root + SYSTEMD, os.X_OK):
        sys.exit(f"{SYSTEMD} is not on the root file system itself")
    _mount("-t", "proc", "proc", f"{root}/proc")
    _mount("--bind", f"{root}/proc/sys", f"{root}/proc/sys")
    _mount("-o", "remount,bind,ro", f"{root}/proc/sys")
    _mount("-t", "sysfs", "sysfs", f"{root}/sys")
    _mount("-t", "cgroup2", "cgroup2", f"{root}/sys/fs/cgroup")
    # As systemd mounts it on a host.
    _mount("-t", "bpf", "-o", "nosuid,nodev,noexec,relatime,mode=700", "bpf", f"{root}/sys/fs/bpf")
    for kind, place in (("securityfs", "/sys/kernel/security"), ("tracefs", "/sys/kernel/tracing")):
        if os.path.isdir(root + place):
            subprocess.run(["mount", "-t", kind, kind, root + place], check=False)
    _mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", f"{root}/run")
    _mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", f"{root}/tmp")
    _mount_devices(f"{root}/dev")
    return root


def _configure(root):
    """No file systems to mount, none of the host's enabled services, no changes to the kernel's settings."""
    open(f"{root}/etc/fstab", "w").close()
    units = f"{root}/etc/systemd/system"
    shutil.rmtree(units, ignore_errors=True)
    os.makedirs(units)
    for unit in MASKED:
        os.symlink("/dev/null", f"{units}/{unit}")


def _become_systemd(directory, prepare):
    root = _mount_root(directory)
    _configure(root)
    subprocess.run(["sh", "-ec", prepare], check=True, env={**os.environ, "ROOT": root})
    os.makedirs(f"{root}/host", exist_ok=True)
    os.chdir(root)
    subprocess.run(["pivot_root", ".", "host"], check=True)
    os.chroot(".")
    os.chdir("/")
    subprocess.run(["umount", "--lazy", "/host"], check=True)
    os.execve(SYSTEMD, ["systemd", "--unit=basic.target", "--log-target=journal"],
              {"container": "btfd-test", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"})


if __name__ == "__main__":
    _become_systemd(sys.argv[1], sys.argv[2])
