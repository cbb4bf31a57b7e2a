"""A virtual machine that runs one command with a kernel of tests/tools/fetch-kernels.

The guest's root is a RAM file system of busybox, what it was given, and the kernel's own file systems (proc, sys, tracefs,
securityfs, bpf, cgroup2). There is no disk, and no network but lo. Kernel messages, the command's output and results each
go over a serial line.
"""
import contextlib
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile

from initramfs import Failed, Initramfs

# PID 1. Few programs, as each takes some 10 ms under emulation.
INIT = r"""#!/usr/bin/busybox sh
mount /dev
cp -a /vm/dev/. /dev
mount -a
ip link set lo up
hostname vm
stty -F /dev/ttyS2 raw
stty -F /dev/ttyS1 $(cat /vm/tty)
if [ ! -s /vm/load ] || modprobe -a $(cat /vm/load) >/dev/ttyS1 2>&1; then
    read begin _ </proc/uptime
    /bin/sh /vm/command </vm/stdin >/dev/ttyS1 2>&1
    status=$?
    read end _ </proc/uptime
    echo $status $begin $end >/vm/status
fi
tar -c -f /dev/ttyS2 -C / vm/status $(cat /vm/out)
poweroff -f
"""
FSTAB = """\
dev /dev devtmpfs noauto 0 0
proc /proc proc defaults 0 0
sysfs /sys sysfs defaults 0 0
devpts /dev/pts devpts defaults 0 0
tmpfs /dev/shm tmpfs defaults 0 0
tracefs /sys/kernel/tracing tracefs defaults 0 0
debugfs /sys/kernel/debug debugfs defaults 0 0
securityfs /sys/kernel/security securityfs defaults 0 0
bpf /sys/fs/bpf bpf defaults 0 0
cgroup2 /sys/fs/cgroup cgroup2 defaults 0 0
"""
TIMED_OUT, BROKEN = 124, 125
# For a guest's memory, besides three times what its root file system holds: packed, unpacked, and what is read of it.
BASE_MEMORY = 512  # MiB


def find_kernel(name, kernels):
    """The directory of a kernel: a path, a name that fetch-kernels made below `kernels`, or the beginning of one that is
    emulated."""
    if os.path.isdir(name):
        return os.path.realpath(name)
    if os.path.isdir(os.path.join(kernels, name)):
        return os.path.realpath(os.path.join(kernels, name))
    begins = re.compile(re.escape(name) + r"(?![0-9])")  # 6.1 is not the beginning of 6.12
    found = {os.path.realpath(path) for path in glob.glob(glob.escape(kernels) + "/*")
             if begins.match(os.path.basename(path)) and os.path.isdir(path + "/modules") and not path.endswith("-uml")}
    if len(found) != 1:
        raise Failed("%s kernel %r in %s%s" % ("more than one" if found else "no bootable", name, kernels,
                                               "".join("\n  " + os.path.basename(path) for path in sorted(found))))
    return found.pop()


class Machine:
    """One boot. Fill `root`, then call run()."""

    def __init__(self, kernel, cpus=1, memory=None, verbose=False):
        self.kernel = kernel
        self.cpus, self.memory, self.verbose = cpus, memory, verbose
        self.root = Initramfs()
        self.root.add_text("etc/fstab", FSTAB)
        self.root.add_text("init", INIT, 0o755)
        self.words = ["console=ttyS0", "loglevel=7" if verbose else "quiet", "oops=panic", "panic=-1", "reboot=t", "no_timer_check"]
        self.load, self.wanted = [], []

    def add_modules(self, load, ready=(), where_there=()):
        """Modules to load before the command, others that modprobe is to find, and such as are loaded if the kernel has them."""
        release = os.path.basename(self.kernel).removesuffix("-uml")
        there = self.root.add_modules(self.kernel, release, [*load, *ready], where_there)
        self.load += [name for name in there if name not in ready]

    def append(self, words):
        """Words for the kernel's command line."""
        self.words += words

    def bring_back(self, guest, host):
        """Copies a file or directory of the guest to this path once the command is over."""
        self.wanted.append((guest.strip("/"), host))

    def run(self, command, environment=(), timeout=300.0, interactive=False):
        """Boots, runs the command in a directory like the current one, and gives its status (128 and the signal's number if it
        was killed), TIMED_OUT for all of it, or BROKEN if the machine failed: a panic or an oops, say. What the command
        prints is printed."""
        root = self.root
        root.add_directory(os.getcwd().strip("/"))
        root.add_text("vm/load", " ".join(self.load))
        root.add_text("vm/tty", "sane" if interactive else "raw")
        root.add_text("vm/out", " ".join(shlex.quote(guest) for guest, _ in self.wanted))
        root.add_link("vm/stdin", "/dev/ttyS1" if interactive else "/dev/null")
        root.add_text("vm/status", "")
        root.add_text("vm/command", "\n".join([
            "export PATH=/usr/sbin:/usr/bin HOME=/root TERM=dumb",
            *("export " + shlex.quote(each) for each in environment),
            "cd " + shlex.quote(os.getcwd()),
            "exec " + " ".join(map(shlex.quote, (["setsid", "-c"] if interactive else []) + list(command))), ""]))
        with tempfile.TemporaryDirectory(prefix="btfd-vm.") as directory:
            return self._boot(directory, timeout, interactive)

    def _boot(self, directory, timeout, interactive):
        archive = self.root.cpio()
        with open(directory + "/initrd", "wb") as f:
            f.write(archive)
        memory = self.memory or BASE_MEMORY + 3 * (len(archive) >> 20)
        with open(directory + "/console", "wb") as console, open(directory + "/results.tar", "wb") as results:
            if os.path.exists(self.kernel + "/linux.uml"):
                command = self._uml(directory, memory, console.fileno(), results.fileno())
            else:
                command = self._qemu(directory, memory)
            process = subprocess.Popen(command, stdin=None if interactive else subprocess.DEVNULL, stderr=console,
                                       pass_fds=(console.fileno(), results.fileno()), start_new_session=not interactive)
        timed_out = False
        try:
            process.wait(None if interactive else timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            self._end(process, interactive)
        status = None if timed_out or process.returncode else self._collect(directory + "/results.tar")
        self._tell(directory + "/console", status, timed_out)
        if status is None:
            return TIMED_OUT if timed_out else BROKEN
        return int(status[0])

    @staticmethod
    def _end(process, interactive):
        if interactive:
            process.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # User-mode Linux is many processes
        process.wait()

    def _uml(self, directory, memory, console, results):
        return [self.kernel + "/linux.uml", "mem=%dM" % memory, "initrd=%s/initrd" % directory, "uml_dir=" + directory,
                "con=null", "ssl0=null,fd:%d" % console, "ssl1=fd:0,fd:1", "ssl2=null,fd:%d" % results, *self.words]

    def _qemu(self, directory, memory):
        image = self.kernel + "/vmlinuz"
        with open(self.kernel + "/config", encoding="ascii") as f:
            if os.path.exists(self.kernel + "/vmlinux") and "CONFIG_PVH=y" in f.read():
                image = self.kernel + "/vmlinux"  # needs no unpacking, which takes seconds under emulation
        # Emulated unless one asks for KVM: a machine may have a /dev/kvm that does not work, as in a guest itself.
        kvm = os.environ.get("BTFD_VM_ACCELERATOR") == "kvm"
        program = shutil.which("qemu-system-x86_64")
        if not program:
            raise Failed("qemu-system-x86_64 is missing: install qemu-system-x86")
        return [
            program, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35",
            # qemu 7.2 gets the flags after cmpxchg16b wrong, and kernels that use it crash.
            "-accel", "kvm" if kvm else "tcg", "-cpu", "max" if kvm else "max,-cx16",
            "-smp", str(self.cpus), "-m", str(memory), "-kernel", image, "-initrd", directory + "/initrd",
            "-chardev", "file,id=c0,path=%s/console" % directory,
            "-chardev", "stdio,id=c1,signal=off", "-chardev", "file,id=c2,path=%s/results.tar" % directory,
            # An interrupt for each: those of ISA serial lines cannot be shared reliably.
            "-device", "isa-serial,chardev=c0,index=0", "-device", "isa-serial,chardev=c1,index=1",
            "-device", "isa-serial,chardev=c2,index=2,irq=5", "-append", " ".join(self.words)]

    def _collect(self, path):
        """Unpacks what the guest sent; the words of its status line, or None."""
        status = None
        try:
            with tarfile.open(path) as archive:
                for member in archive:
                    if member.name == "vm/status":
                        status = archive.extractfile(member).read().decode().split() or None
                    self._unpack(archive, member)
        except (tarfile.TarError, OSError) as error:
            print("vm: results from the guest: %s" % error, file=sys.stderr)
        return status

    def _unpack(self, archive, member):
        for guest, host in self.wanted:
            if ".." in member.name or not (member.name + "/").startswith(guest + "/"):
                continue
            target = host + member.name[len(guest):]
            if member.isdir():
                os.makedirs(target, exist_ok=True)
            elif member.isfile():
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with archive.extractfile(member) as source, open(target, "wb") as f:
                    shutil.copyfileobj(source, f)

    def _tell(self, console, status, timed_out):
        name = os.path.basename(self.kernel)
        if status is None or self.verbose:
            with open(console, "rb") as f:
                lines = f.read().decode(errors="replace").replace("\r", "").splitlines()
            print("\n".join(lines if self.verbose else lines[-40:]), file=sys.stderr)
        if status is None:
            print("vm: %s: %s" % (name, "timeout" if timed_out else "the virtual machine failed"), file=sys.stderr)
        elif self.verbose:
            print("vm: %s: booted in %s s, command over at %s s, status %s" % (name, status[1], status[2], status[0]), file=sys.stderr)


def end_on_sigterm():
    """So that no machine is left behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
