"""A real systemd as PID 1, in namespaces of its own, on the host's root file system with an overlay for all writes.

Nothing of it is left behind: mounts live in the private mount namespace, writes in a tmpfs, processes in one cgroup.
Kernel settings are protected from it: /proc/sys is read-only, and systemd's services that set them are masked. The
network is an empty namespace.
"""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time


class CannotRun(Exception):
    """This machine can't boot it; the text says why."""


SYSTEMD = "/lib/systemd/systemd"
# Exit code of the first process inside when the machine is at fault, and not what the test prepares.
CANNOT_MOUNT = 77
# They change what is not namespaced, or wait for hardware.
MASKED = [
    "systemd-sysctl.service",
    "systemd-modules-load.service",
    "systemd-remount-fs.service",
    "systemd-binfmt.service",
    "proc-sys-fs-binfmt_misc.automount",
    "systemd-udevd.service",
    "systemd-udev-trigger.service",
    "timers.target",
    "sys-kernel-config.mount",
    "systemd-timesyncd.service",
]


def cgroup2_root():
    with open("/proc/self/mounts") as mounts:
        for line in mounts:
            fields = line.split()
            if fields[2] == "cgroup2" and "rw" in fields[3].split(","):
                return fields[1]
    raise CannotRun("no writable cgroup2 mount")


class Container:
    """A context that kills and removes all of it at its end."""

    def __init__(self):
        self._cgroup = None
        self._directory = None
        self._process = None
        self._init = None  # the host's pid of the PID 1 within

    def __enter__(self):
        return self

    def boot(self, prepare, log):
        """Starts systemd and waits for its basic.target. `prepare` is a shell script that runs before, with $ROOT, the
        new root directory; `log`, a file, takes its output. Raises CannotRun."""
        if os.geteuid() != 0:
            raise CannotRun("needs root")
        for program in ("unshare", "nsenter", "pivot_root", "mount", "setpriv"):
            if not shutil.which(program):
                raise CannotRun(f"{program} is missing")
        if not os.access(SYSTEMD, os.X_OK):
            raise CannotRun(f"{SYSTEMD} is missing")
        cgroup = os.path.join(cgroup2_root(), f"btfd-test-{os.getpid()}")
        try:
            os.mkdir(cgroup)
        except OSError as error:
            raise CannotRun(f"cannot make a cgroup: {error}")
        self._cgroup = cgroup
        self._directory = tempfile.mkdtemp(prefix="btfd-systemd-")
        # Should this process be killed, unshare is killed, and with it its child, systemd, and with that all of the
        # namespace.
        self._process = subprocess.Popen(
            [
                "sh",
                "-c",
                'echo $$ > "$0/cgroup.procs" && exec "$@"',
                self._cgroup,
                "setpriv",
                "--pdeathsig",
                "KILL",
                "unshare",
                "--mount",
                "--propagation",
                "private",
                "--pid",
                "--fork",
                "--kill-child",
                "--uts",
                "--ipc",
                "--net",
                "--cgroup",
                sys.executable,
                "-B",
                os.path.abspath(__file__),
                self._directory,
                prepare,
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        self._wait_for_basic_target(log)

    def _wait_for_basic_target(self, log):
        def complaint(text):
            log.seek(0)
            return CannotRun(f"{text}: " + log.read().strip().replace("\n", "; "))

        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            if self._process.poll() == CANNOT_MOUNT:
                raise complaint("cannot build the root file system")
            if self._process.returncode is not None:
                raise RuntimeError(complaint("the preparation failed"))
            if self._init is None:
                self._find_init()
            elif self.run("systemctl", "is-active", "--quiet", "basic.target").returncode == 0:
                return
            time.sleep(0.2)
        raise complaint("systemd did not reach basic.target")

    def _find_init(self):
        try:
            with open(f"/proc/{self._process.pid}/task/{self._process.pid}/children") as children:
                for pid in children.read().split():
                    with open(f"/proc/{pid}/comm") as name:
                        if name.read().strip() == "systemd":
                            self._init = int(pid)
        except FileNotFoundError:
            pass  # it has just ended; poll() will tell

    def run(self, *command, text_input=""):
        """Runs a command inside; its subprocess.CompletedProcess, with output."""
        return subprocess.run(
            ["nsenter", "--target", str(self._init), "--all", "--", *command],
            input=text_input,
            text=True,
            capture_output=True,
            timeout=120,
        )

    def path(self, path):
        """Where a file of the inside is for the outside."""
        return f"/proc/{self._init}/root{path}"

    def __exit__(self, *_):
        if self._init is not None:
            # The kernel ends all of the namespace with its PID 1. unshare waits for it, so it goes last.
            os.kill(self._init, signal.SIGKILL)
        if self._process:
            try:
                self._process.wait(5 if self._init is not None else 0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._cgroup:
            self._remove_cgroup()
        if self._directory:
            os.rmdir(self._directory)

    def _remove_cgroup(self):
        for directory, _, _ in os.walk(self._cgroup, topdown=False):
            for _ in range(100):
                try:
                    os.rmdir(directory)
                    break
                except OSError:  # a process in it has not ended yet
                    time.sleep(0.05)
            else:
                raise RuntimeError(f"cannot remove {directory}")


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
        raise OSError(f"{SYSTEMD} is not on the root file system itself")
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
    try:
        root = _mount_root(directory)
    except (OSError, subprocess.CalledProcessError) as error:
        print(error, flush=True)
        sys.exit(CANNOT_MOUNT)
    _configure(root)
    subprocess.run(["sh", "-ec", prepare], check=True, env={**os.environ, "ROOT": root})
    os.makedirs(f"{root}/host", exist_ok=True)
    os.chdir(root)
    subprocess.run(["pivot_root", ".", "host"], check=True)
    os.chroot(".")
    os.chdir("/")
    subprocess.run(["umount", "--lazy", "/host"], check=True)
    _mount("--make-rshared", "/")  # as on a host, where systemd does it itself
    os.execve(
        SYSTEMD,
        ["systemd", "--unit=basic.target", "--log-target=journal"],
        {"container": "btfd-test", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
    )


if __name__ == "__main__":
    _become_systemd(sys.argv[1], sys.argv[2])
