"""The surroundings of a test: namespaces of its own, other users, cgroups, network interfaces.

Whatever is set up here goes away with the test's process, however that ends.
"""
import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import tempfile
import traceback

_libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
PR_SET_CHILD_SUBREAPER = 36


def _check(result, what):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, "%s: %s" % (what, os.strerror(code)))


def unshare(flags):
    _check(_libc.unshare(flags), "unshare")


def set_namespace(path, kind):
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc.setns(descriptor, kind), "setns %s" % path)
    finally:
        os.close(descriptor)


def mount(source, target, kind, flags=0):
    _check(_libc.mount(source.encode(), target.encode(), kind.encode() if kind else None, ctypes.c_ulong(flags), None),
           "mount %s on %s" % (kind, target))


def mounts():
    """(mount point, type) of all that is mounted, in the order of mounting."""
    with open("/proc/self/mounts", encoding="utf-8") as f:
        return [(fields[1], fields[2]) for fields in (line.split() for line in f)]


def enter_private_namespaces():
    """Gives this process a mount and a network namespace of its own, with what the daemon expects of a running system:
    a bpffs, tracefs and securityfs where they belong, and a loopback interface that is up."""
    unshare(CLONE_NEWNS | CLONE_NEWNET)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    for path, kind in (("/sys/fs/bpf", "bpf"), ("/sys/kernel/tracing", "tracefs"),
                       ("/sys/kernel/security", "securityfs")):
        if (path, kind) not in mounts():
            with contextlib.suppress(OSError):  # a kernel without it: the test that needs it will say so
                mount(kind, path, kind)
    os.makedirs("/run/netns", exist_ok=True)
    mount("tmpfs", "/run/netns", "tmpfs")  # names of network namespaces are files, which would outlive this process
    run("ip", "link", "set", "lo", "up")
    # What the daemon leaves behind becomes a child of this process, where the harness finds it.
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(*command, **options):
    """Runs a command that must succeed; what it printed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(command), done.stdout.strip()))
    return done.stdout


# ---- Processes -------------------------------------------------------------------------------------------------------

def in_child(function, before=None):
    """Runs function in a forked child, after before(), and returns its result (anything that JSON can carry). An
    exception there is an AssertionError here, with the traceback."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            try:
                if before:
                    before()
                answer = {"result": function()}
                status = 0
            except BaseException:  # whatever it is, the parent reports it
                answer = {"traceback": traceback.format_exc()}
            with os.fdopen(writer, "w") as f:
                json.dump(answer, f)
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as f:
        text = f.read()
    os.waitpid(child, 0)
    answer = json.loads(text) if text else {"traceback": "the child died"}
    if "traceback" in answer:
        raise AssertionError("in the child process:\n" + answer["traceback"])
    return answer["result"]


def as_user(uid, gid, groups, function):
    """Runs function in a child process of that user."""
    def become():
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    return in_child(function, become)


# ---- Cgroups ---------------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def cgroup():
    """A new cgroup (v2), as the path of its directory."""
    points = [point for point, kind in mounts() if kind == "cgroup2"]
    root = points[0] if points else tempfile.mkdtemp(prefix="btfd-cgroup.")
    if not points:
        mount("cgroup2", root, "cgroup2")
    path = tempfile.mkdtemp(prefix="btfd-test.", dir=root)
    try:
        yield path
    finally:
        os.rmdir(path)


def in_cgroup(path, function):
    """Runs function in a child process that is in that cgroup."""
    def enter():
        with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write(str(os.getpid()))
    return in_child(function, enter)


# ---- Network ---------------------------------------------------------------------------------------------------------

class VethPair:
    """Two connected interfaces: one here, its peer in a network namespace of its own (so that what is sent there is not
    short-cut over the loopback). The namespace's path is `namespace`."""

    def __init__(self, name="btfd0", address="10.99.0.1", peer_address="10.99.0.2"):
        self.name, self.peer_name = name, name + "p"
        self.address, self.peer_address = address, peer_address
        self.namespace_name = "btfd-%d-%s" % (os.getpid(), name)
        self.namespace = "/run/netns/" + self.namespace_name

    def __enter__(self):
        run("ip", "netns", "add", self.namespace_name)
        try:
            self.add()
            run("ip", "addr", "add", self.address + "/24", "dev", self.name)
            run("ip", "link", "set", self.name, "up")
            for command in (("addr", "add", self.peer_address + "/24", "dev", self.peer_name),
                            ("link", "set", self.peer_name, "up"), ("link", "set", "lo", "up")):
                run("ip", "-n", self.namespace_name, *command)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        run("ip", "netns", "del", self.namespace_name)
        subprocess.run(["ip", "link", "del", self.name], stderr=subprocess.DEVNULL, check=False)

    def add(self):
        run("ip", "link", "add", self.name, "type", "veth", "peer", "name", self.peer_name, "netns", self.namespace_name)

    @contextlib.contextmanager
    def process(self):
        """A process in the peer's network namespace, as its pid."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(reader)
                set_namespace(self.namespace, CLONE_NEWNET)
                os.close(writer)
                signal.pause()
            finally:
                os._exit(1)
        try:
            os.close(writer)
            os.read(reader, 1)  # its end says that the child is there
            os.close(reader)
            yield child
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def in_peer(self, function):
        """Runs function in a child process in the peer's network namespace."""
        return in_child(function, lambda: set_namespace(self.namespace, CLONE_NEWNET))


class NetkitPair(VethPair):
    """The same of netkit. RuntimeError where the kernel has none."""

    def __init__(self):
        super().__init__("btfd1", "10.98.0.1", "10.98.0.2")

    def add(self):
        def links():
            return {link["ifname"] for link in json.loads(run("ip", "-j", "link", "show"))}

        before = links()
        run("ip", "link", "add", self.name, "type", "netkit")  # older ip(8) cannot name the peer
        peer, = links() - before - {self.name}
        run("ip", "link", "set", peer, "name", self.peer_name, "netns", self.namespace_name)


def tool(name):
    return shutil.which(name)
