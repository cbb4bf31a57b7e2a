"""Starts private daemons for the tests, and sees that they leave nothing behind.

    class Something(DaemonTest):          # one daemon for the class, stopped and examined at its end
        config = {"log": {"level": "debug"}}
        def test_it(self):
            self.client.call("io.btfd.List")

Environment: BTFD_BIN_DIR, where btfd is; BTFD_BPF_DIR, where the test objects are; BTFD_TEST_SLOW, a factor for all time
limits (sanitizers, slow machines); BTFD_TEST_KEEP=1 keeps each daemon's directory with its log.
"""
import contextlib
import grp
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

import bpf
from btfd_client import Client, ConnectionLost, VarlinkError

SLOW = float(os.environ.get("BTFD_TEST_SLOW") or 1)
BIN_DIR = os.environ.get("BTFD_BIN_DIR", "")
BPF_DIR = os.environ.get("BTFD_BPF_DIR", "")

# Who may call, beside root: members of the configured group. Any group that every system has serves for tests.
GROUP = "users"
GROUP_ID = grp.getgrnam(GROUP).gr_gid
MEMBER_UID, OTHER_MEMBER_UID, STRANGER_UID = 61501, 61502, 61503

SANITIZER_REPORT = re.compile(rb"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|Assertion .* failed")
GRACE = 10  # seconds until what is not freed counts as left behind
_MARK = "BTFD_TEST_DAEMON"


def eventually(condition, what, timeout=10):
    """Waits until condition() is true; its value. Otherwise fails with `what`, which may be a function."""
    deadline = time.monotonic() + timeout * SLOW
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("not within %g s: %s" % (timeout * SLOW, what() if callable(what) else what))
        time.sleep(0.01)


def object_path(name):
    """The path of a test object."""
    return built(BPF_DIR, "BTFD_BPF_DIR", name + ".o", "bpf_objects")


def built(directory, variable, name, target):
    """The path of what the build has made. Where it was not told where that is, tests are skipped; but what should be
    there and is not makes them fail."""
    if not directory:
        raise unittest.SkipTest("%s is not set: it names the build's directory that has %s" % (variable, name))
    path = os.path.join(directory, name)
    if not os.path.exists(path):
        raise AssertionError("no %s: build target %s" % (path, target))
    return path


def object_bytes(name):
    with open(object_path(name), "rb") as f:
        return f.read()


# ---- Processes and what they hold ------------------------------------------------------------------------------------

def _read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:  # the process has ended
        return b""


def processes_marked(mark):
    """Pids of all processes with that mark in their environment; zombies, which have none left, aside."""
    wanted = ("%s=%s" % (_MARK, mark)).encode()
    return {int(pid) for pid in os.listdir("/proc")
            if pid.isdigit() and wanted in _read("/proc/%s/environ" % pid).split(b"\0")}


def held_by(pid):
    """The BPF objects that a process holds descriptors of: {(kind, id)}."""
    found = set()
    try:
        names = os.listdir("/proc/%d/fdinfo" % pid)
    except OSError:
        return found
    kinds = {b"prog_id": "program", b"map_id": "map", b"link_id": "link"}
    for name in names:
        for line in _read("/proc/%d/fdinfo/%s" % (pid, name)).splitlines():
            key, _, value = line.partition(b":")
            if key in kinds:
                found.add((kinds[key], int(value)))
    return found


def held_by_others(marks):
    """The BPF objects that processes without one of these marks hold, and the maps of those programs."""
    ours = set().union(*(processes_marked(mark) for mark in marks))
    found = set()
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) not in ours:
            found |= held_by(int(pid))
    for kind, number in list(found):
        if kind == "program":
            with contextlib.suppress(OSError):
                descriptor = bpf.open_by_id("program", number)
                found |= {("map", m) for m in bpf.program_info(descriptor)["map_ids"]}
                os.close(descriptor)
    return found


def kernel_objects():
    return {(kind, number) for kind in ("program", "map", "link") for number in bpf.ids(kind)}


def new_kernel_objects(before, marks):
    """What is in the kernel that was not there before and is not another process's. So tests, and whatever else loads
    programs on this machine, can run side by side."""
    new = kernel_objects() - before
    return new - held_by_others(marks) if new else new


# ---- The daemon ------------------------------------------------------------------------------------------------------

DEFAULT_CONFIG = {
    "socket": {"group": GROUP, "mode": "0666"},  # mode: strangers reach the daemon, which has to turn them away itself
    "log": {"level": "debug", "target": "stderr"},
}


def merged(base, changes):
    out = dict(base)
    for key, value in changes.items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


class Daemon:
    """A daemon with directories and socket of its own.

    config: changes to DEFAULT_CONFIG. wrapper: a command to run it with (strace, unshare). environment: more variables.
    """

    def __init__(self, config=None, wrapper=(), environment=None, binary=None):
        self.binary = binary or built(BIN_DIR, "BTFD_BIN_DIR", "btfd", "btfd")
        self.wrapper = list(wrapper)
        self.mark = uuid.uuid4().hex
        self.environment = {**os.environ, **(environment or {}), _MARK: self.mark}
        for stray in ("NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "WATCHDOG_USEC", "JOURNAL_STREAM"):
            self.environment.pop(stray, None)
        self.directory = tempfile.mkdtemp(prefix="btfd-test-")
        os.chmod(self.directory, 0o755)  # other users reach the socket
        self.socket_path = os.path.join(self.directory, "socket")
        self.state_directory = os.path.join(self.directory, "state")
        os.mkdir(self.state_directory, 0o700)
        self.log_path = os.path.join(self.directory, "log")
        # bpffs reserves names with a dot.
        self.bpffs = "/sys/fs/bpf/" + os.path.basename(self.directory)
        self.config_path = os.path.join(self.directory, "btfd.json")
        with open(self.config_path, "w", encoding="utf-8") as f:
            json.dump(merged(DEFAULT_CONFIG, config or {}), f, indent=2)
        self.process = None
        self.objects_before = set()

    # ---- Start and stop ----

    def start(self):
        self.objects_before = kernel_objects()
        try:
            self.spawn()
            eventually(self._ready, "the daemon is not ready", timeout=20)
        except BaseException as e:
            log_text = self.log()
            self.kill()
            self.remove()
            if isinstance(e, AssertionError):
                raise AssertionError("%s. Its log:\n%s" % (e, log_text)) from None
            raise
        return self

    def spawn(self, make_bpffs=True):
        """Starts the process without waiting for it to be ready."""
        if make_bpffs:
            os.mkdir(self.bpffs, 0o700)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [*self.wrapper, self.binary, "--config", self.config_path, "--socket", self.socket_path,
                 "--state-dir", self.state_directory, "--bpffs", self.bpffs],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment, start_new_session=True)

    def _ready(self):
        if self.process.poll() is not None:
            raise AssertionError("the daemon ended with status %d before it was ready" % self.process.returncode)
        try:
            with Client(self.socket_path, timeout=5 * SLOW) as client:
                return client.call("org.varlink.service.GetInfo")
        except (OSError, ConnectionLost):
            return None

    def pid(self):
        """The front's pid: the process that was started, or its child if a wrapper stays (strace)."""
        def is_front(pid):
            return os.path.basename(_read("/proc/%d/cmdline" % pid).split(b"\0")[0]) == b"btfd"

        if not is_front(self.process.pid):
            for pid in processes_marked(self.mark):
                if is_front(pid) and self._parent(pid) == self.process.pid:
                    return pid
        return self.process.pid

    @staticmethod
    def _parent(pid):
        fields = _read("/proc/%d/stat" % pid).rpartition(b")")[2].split()
        return int(fields[1]) if fields else 0

    def stop(self):
        """Ends the daemon as the system's would be, and raises AssertionError if that or what it leaves is not right."""
        wrong = []
        if self.process.poll() is None:
            os.kill(self.pid(), signal.SIGTERM)
            try:
                self.process.wait(20 * SLOW)
            except subprocess.TimeoutExpired:
                wrong.append("it did not stop within %g s of SIGTERM" % (20 * SLOW))
        if not wrong and self.process.returncode != 0:
            wrong.append("it ended with status %d" % self.process.returncode)
        wrong += self.remains()
        self.kill()
        whole = _read(self.log_path)
        report = SANITIZER_REPORT.search(whole)
        if report:
            begin = whole.rfind(b"\n", 0, report.start()) + 1
            wrong.append("its log has a report:\n%s\n" % whole[begin:begin + 4000].decode(errors="replace"))
        log_text = self.log()
        self.remove()
        if wrong:
            raise AssertionError("the daemon: %s. Its log:\n%s" % ("; ".join(wrong), log_text))

    def remains(self):
        """In words, what a daemon that has stopped left behind."""
        wrong = []
        left = self._settled(lambda: processes_marked(self.mark))
        if left:
            wrong.append("processes are left: %s" % ", ".join(
                "%d (%s)" % (pid, _read("/proc/%d/comm" % pid).decode().strip()) for pid in sorted(left)))
        left = self._settled(lambda: new_kernel_objects(self.objects_before, [self.mark]))
        if left:
            wrong.append("left in the kernel: %s" % ", ".join(bpf.describe(*thing) for thing in sorted(left)))
        pins = [os.path.join(top, name) for top, _, names in os.walk(self.bpffs) for name in names]
        if pins:
            wrong.append("pins are left: %s" % ", ".join(pins))
        if os.path.lexists(self.socket_path):
            wrong.append("its socket file is left")
        return wrong

    @staticmethod
    def _settled(what_is_left):
        """What stays of a set. The kernel frees asynchronously, processes take a moment to end, and other clients come
        and go: only what is there all the time counts as left."""
        deadline = time.monotonic() + GRACE * SLOW
        left = what_is_left()
        while left and time.monotonic() < deadline:
            time.sleep(0.02)
            left &= what_is_left()
        return left

    def kill(self):
        """Whatever is left of the daemon's processes ends."""
        for pid in processes_marked(self.mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()
        with contextlib.suppress(ChildProcessError):  # orphans became children of this process (a subreaper)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    def remove(self):
        shutil.rmtree(self.bpffs, ignore_errors=True)
        if os.environ.get("BTFD_TEST_KEEP"):
            print("kept %s" % self.directory)
        else:
            shutil.rmtree(self.directory, ignore_errors=True)

    # ---- Looking at it ----

    def client(self, timeout=None):
        return Client(self.socket_path, timeout=60 * SLOW if timeout is None else timeout)

    def log(self, size=8000):
        return _read(self.log_path)[-size:].decode(errors="replace")

    def workers(self):
        """Pids of the worker processes: they carry the name btfd-worker."""
        front = self.pid()
        return [pid for pid in processes_marked(self.mark)
                if pid != front and _read("/proc/%d/comm" % pid).strip() == b"btfd-worker"]

    def busy_worker(self, besides=()):
        """The pid of a worker that is at work (waits for one to be): it uses the processor."""
        def used(pid):
            fields = _read("/proc/%d/stat" % pid).rpartition(b")")[2].split()
            return int(fields[11]) + int(fields[12]) if fields else 0

        before = {}

        def find():
            for pid in self.workers():
                now = used(pid)
                if pid not in besides and now - before.setdefault(pid, now) >= 5:  # 50 ms of processor time
                    return pid
            return None
        return eventually(find, "no worker is busy")

    def held(self):
        """The BPF objects that the daemon's processes hold now: {(kind, id)}."""
        return set().union(*(held_by(pid) for pid in processes_marked(self.mark)))

    def assert_idle(self):
        """Nothing is loaded, and no process of the daemon holds anything of a load that failed or is over."""
        left = self._settled(lambda: new_kernel_objects(self.objects_before, [self.mark]))
        if left:
            held = self.held()
            raise AssertionError("left in the kernel: %s" % ", ".join(
                bpf.describe(*thing) + (" held by the daemon" if thing in held else " held by nobody")
                for thing in sorted(left)))


class DaemonTest(unittest.TestCase):
    """One daemon for all tests of the class; each test has a client of its own and must leave nothing loaded."""
    config = {}
    wrapper = ()
    environment = {}
    daemon = None

    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root, to load BPF programs")
        cls.daemon = Daemon(cls.config, cls.wrapper, cls.environment).start()
        cls.addClassCleanup(cls.daemon.stop)

    def setUp(self):
        self.client = self.daemon.client()
        self.addCleanup(self._finish)

    def _finish(self):
        self.client.close()
        # The stack of cleanups runs from the last to the first: what the test itself registered is done by now.
        if self.daemon.process.poll() is not None:
            self.fail("the daemon died (status %d). Its log:\n%s" % (self.daemon.process.returncode, self.daemon.log()))
        try:
            self.daemon.assert_idle()
        except AssertionError as e:
            self.fail("%s. The daemon's log:\n%s" % (e, self.daemon.log()))

    def connect(self, timeout=None):
        client = self.daemon.client(timeout)
        self.addCleanup(client.close)
        return client

    def load(self, name, client=None, /, **parameters):
        """Loads a test object by descriptor; the whole reply."""
        with open(object_path(name), "rb") as f:
            return (client or self.client).call("io.btfd.Load", {"objectFileDescriptor": 0, **parameters}, [f])

    def load_bytes(self, data, client=None, /, **parameters):
        """Loads an object's bytes through a memfd."""
        with memfd(data) as f:
            return (client or self.client).call("io.btfd.Load", {"objectFileDescriptor": 0, **parameters}, [f])

    @contextlib.contextmanager
    def refused(self, error, **parameters):
        """The block must raise VarlinkError `error` (of io.btfd or org.varlink.service, unless a full name is given; or
        one of several names) with these parameters; the exception is given as a holder's `.error`."""
        holder = type("Refusal", (), {"error": None})()
        names = [full_error_name(name) for name in ([error] if isinstance(error, str) else error)]
        try:
            yield holder
        except VarlinkError as e:
            holder.error = e
            self.assertIn(e.name, names, e)
            for key, value in parameters.items():
                self.assertEqual(e.parameters.get(key), value, e)
        else:
            self.fail("no error; expected %s" % " or ".join(names))


STANDARD_ERRORS = ("InterfaceNotFound", "MethodNotFound", "MethodNotImplemented", "InvalidParameter",
                   "PermissionDenied", "ExpectedMore")


def full_error_name(name):
    if "." in name:
        return name
    return ("org.varlink.service." if name in STANDARD_ERRORS else "io.btfd.") + name


@contextlib.contextmanager
def memfd(data):
    descriptor = os.memfd_create("object", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "w+b", buffering=0) as f:
        view = memoryview(data)
        while view:
            view = view[f.write(view):]
        f.seek(0)
        yield f


class Bystander:
    """Another client that, while something goes on, pings and loads all the time from its own process's threads: it must
    get its answers, and soon. Use as a context; at the end it tells what went wrong as AssertionError."""

    def __init__(self, daemon, test_object="no_btf_needed", longest=5.0):
        self.daemon, self.path, self.longest = daemon, object_path(test_object), longest * SLOW
        self.child = None

    def __enter__(self):
        ready, self.stop_writer = os.pipe()
        self.report, report_writer = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            status = 1
            try:
                os.close(self.stop_writer)
                os.close(self.report)
                with os.fdopen(report_writer, "w") as out:
                    json.dump(self._work(ready), out)
                status = 0
            finally:
                os._exit(status)
        os.close(ready)
        os.close(report_writer)
        return self

    def _work(self, stop):
        import select
        worst, rounds = 0.0, 0
        try:
            with Client(self.daemon.socket_path, timeout=self.longest * 4) as client:
                while rounds == 0 or not select.select([stop], [], [], 0.005)[0]:
                    begin = time.monotonic()
                    client.call("org.varlink.service.GetInfo")
                    with open(self.path, "rb") as f:
                        loaded = client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [f])
                    client.call("io.btfd.Unload", {"objectId": loaded["object"]["id"]})
                    worst = max(worst, time.monotonic() - begin)
                    rounds += 1
        except Exception as e:
            return {"rounds": rounds, "worst": worst, "error": "%s: %s" % (type(e).__name__, e)}
        return {"rounds": rounds, "worst": worst}

    def __exit__(self, kind, *_):
        os.close(self.stop_writer)
        with os.fdopen(self.report) as f:
            text = f.read()
        os.waitpid(self.child, 0)
        if kind is not None:
            return
        report = json.loads(text) if text else {"error": "it died"}
        if "error" in report:
            raise AssertionError("another client was disturbed: %s" % report)
        if report["worst"] > self.longest:
            raise AssertionError("another client had to wait %.1f s (limit %.1f s)" % (report["worst"], self.longest))
        self.rounds, self.worst = report["rounds"], report["worst"]
