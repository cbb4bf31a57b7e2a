"""Programs that are attached to functions and probes of programs and libraries."""
import ctypes
import os
import re
import subprocess

from attaching import KERNEL, AttachTest

PYTHON = "/usr/bin/python3"


def mapped(name):
    """The path of a library that this process has mapped."""
    with open("/proc/self/maps", encoding="utf-8") as f:
        return re.search(r"\S+/%s[.-]\S*so\S*" % name, f.read()).group()


def call():
    ctypes.CDLL(None).getppid()


def call_both():
    ctypes.CDLL(None).getppid()
    ctypes.CDLL(None).getuid()


class Uprobe(AttachTest):
    def target(self, function="getppid", **more):
        return {"binary": mapped("libc"), "function": function, **more}

    def test_enter(self):
        link = self.runs_while_attached("uprobe", "on_call", "uprobe", call, self.target())
        self.assertEqual(link["target"], mapped("libc") + ":getppid")

    def test_return(self):
        self.runs_while_attached("uprobe", "on_return", "uretprobe", call, self.target())

    def test_attached_at_load(self):
        self.runs_when_attached_at_load("uprobe", "on_call", call, self.target())

    def test_of_one_process(self):
        self.runs_while_attached("uprobe", "on_call", "uprobe", call, self.target(pid=os.getpid()))
        loaded, count = self.load_with_counter("uprobe")
        self.attach(loaded, "on_call", self.target(pid=self.daemon.pid()))
        call()
        self.assertEqual(count(), 0)

    def test_of_a_library_by_name(self):
        self.runs_while_attached("uprobe", "on_call", "uprobe", call, {"binary": "libc.so.6", "function": "getppid"})

    def test_by_offset_in_the_file(self):
        library, address = mapped("libc"), ctypes.cast(ctypes.CDLL(None).getppid, ctypes.c_void_p).value
        with open("/proc/self/maps", encoding="utf-8") as f:
            for line in f:
                begin, end, start = (int(n, 16) for n in re.match(r"(\w+)-(\w+) \S+ (\w+)", line).groups())
                if begin <= address < end:
                    offset = address - begin + start
        self.runs_while_attached("uprobe", "on_call", "uprobe", call, {"binary": library, "offset": offset})

    def test_several_functions(self):
        target = {"binary": mapped("libc"), "functions": ["getppid", "getuid"]}
        self.runs_while_attached("uprobe", "on_call", "uprobe", call, target)

    def test_cookies(self):
        self.needs_kernel(5, 15)
        loaded = self.load("probe_cookies")["object"]
        counts = self.map_of(loaded, "by_cookie")
        self.attach(loaded, "on_call", {"binary": mapped("libc"), "functions": ["getppid", "getuid"], "cookies": [2, 3]})
        self.attach(loaded, "on_call", self.target(cookie=5))
        call_both()
        self.assertEqual([number for number, count in enumerate(counts()) if count], [2, 3, 5])

    def test_needs_to_know_where(self):
        loaded = self.load("uprobe")["object"]
        # Never a kernel function for a program that is for binaries, nor the file's first byte for want of a function.
        for target, missing in (({}, "binary"), ({"function": "do_nanosleep"}, "binary"),
                                ({"binary": mapped("libc")}, "function")):
            with self.subTest(target=target), self.refused("InvalidParameter", parameter="target." + missing):
                self.attach(loaded, "on_call", target)

    def test_says_what_is_not_there(self):
        loaded = self.load("uprobe")["object"]
        for target, why in (({"binary": "no_such_library.so", "function": "f"}, "where programs and libraries are looked for"),
                            (self.target("no_such_function"), "has no function 'no_such_function'"),
                            (self.target("getpppid"), "did you mean 'getppid'"),
                            ({"binary": mapped("libc"), "pattern": "no_such_function*"}, "no function in its symbol table")):
            with self.subTest(target=target), self.refused("AttachFailed") as refusal:
                self.attach(loaded, "on_call", target)
            self.assertIn(why, refusal.error.parameters["message"])
        for target in ({"binary": "/no/such/file", "function": "f"}, {"binary": "/dev/null", "function": "f"},
                       self.target(pattern="get*"), self.target(offset=-1), self.target(pid=0)):
            with self.subTest(target=target), self.refused("InvalidParameter"):
                self.attach(loaded, "on_call", target)


class UprobeMulti(AttachTest):
    """Kernels before 6.6 get single probes."""
    def kind(self, kind="uprobe"):
        return kind + ".multi" if KERNEL >= (6, 12) else kind

    def test_functions(self):
        link = self.runs_while_attached("uprobe_multi", "on_call", self.kind(), call,
                                        {"binary": mapped("libc"), "functions": ["getuid", "getppid"]})
        self.assertEqual("kernelId" in link, KERNEL >= (6, 12))

    def test_return(self):
        self.runs_while_attached("uprobe_multi", "on_return", self.kind("uretprobe"), call,
                                 {"binary": mapped("libc"), "function": "getppid"})

    def test_pattern(self):
        link = self.runs_while_attached("uprobe_multi", "on_call", self.kind(), call,
                                        {"binary": mapped("libc"), "pattern": "getpp?d", "pid": os.getpid()})
        self.assertRegex(link["target"], r"getpp\?d \(1 functions\) in process \d+$")

    def test_cookies(self):
        self.needs_kernel(5, 15)
        loaded = self.load("probe_cookies", programs={"on_call_several": {"enabled": True}})["object"]
        counts = self.map_of(loaded, "by_cookie")
        libc = mapped("libc")
        self.attach(loaded, "on_call_several", {"binary": libc, "functions": ["getppid", "getuid"], "cookies": [2, 3]})
        self.attach(loaded, "on_call_several", {"binary": libc, "pattern": "getppi?", "cookie": 5})
        call_both()
        self.assertEqual([number for number, count in enumerate(counts()) if count], [2, 3, 5])

    def test_session(self):
        target = {"binary": mapped("libc"), "function": "getppid"}
        loaded, count = self.load_with_counter("uprobe_multi", programs={"on_both": {"enabled": True}})
        if KERNEL < (6, 13):
            with self.refused("AttachFailed") as refusal:
                self.attach(loaded, "on_both", target)
            self.assertIn("needs Linux 6.13", refusal.error.parameters["message"])
            return
        link = self.attach(loaded, "on_both", target)["link"]
        self.assertEqual(link["kind"], "uprobe.session")
        call()
        self.assertEqual(count(), 2)
        self.detach(link)
        call()
        self.assertEqual(count(), 2)


class UprobeOfContainer(AttachTest):
    """A process with mounts of its own, in which there is a library that others do not see."""
    SCRIPT = """if True:
        import ctypes, os, shutil, sys
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.unshare(0x20000) == 0, ctypes.get_errno()  # CLONE_NEWNS
        assert libc.mount(b"none", b"/", None, 0x44000, None) == 0, ctypes.get_errno()  # MS_REC | MS_PRIVATE
        assert libc.mount(b"none", b"/mnt", b"tmpfs", 0, None) == 0, ctypes.get_errno()
        shutil.copy(sys.argv[1], "/mnt/real.so")
        os.symlink("/mnt/real.so", "/mnt/btfd_only_here.so")
        library = ctypes.CDLL("/mnt/btfd_only_here.so")
        print("ready", flush=True)
        for line in sys.stdin:
            library.zlibVersion()
            print("done", flush=True)
    """

    def setUp(self):
        super().setUp()
        os.makedirs("/mnt", exist_ok=True)
        import zlib  # noqa: F401, for its library
        self.child = subprocess.Popen([PYTHON, "-c", self.SCRIPT, mapped("libz")], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end)
        self.assertEqual(self.child.stdout.readline(), "ready\n")

    def end(self):
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()

    def trigger(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        self.assertEqual(self.child.stdout.readline(), "done\n")

    def test_its_files_are_found(self):
        # The library is named by a link to an absolute path, which must not be followed to one of the daemon's.
        link = self.runs_while_attached("uprobe", "on_call", "uprobe", self.trigger, {
            "binary": "/mnt/btfd_only_here.so", "function": "zlibVersion", "rootOf": self.child.pid})
        self.assertEqual(link["target"], "/mnt/btfd_only_here.so of process %d:zlibVersion" % self.child.pid)

    def test_those_of_others_are_not(self):
        loaded = self.load("uprobe")["object"]
        target = {"binary": "/mnt/btfd_only_here.so", "function": "zlibVersion"}
        for more in ({}, {"rootOf": os.getpid()}, {"rootOf": (1 << 22) + 1}):
            with self.subTest(more=more), self.refused("InvalidParameter", parameter="target.binary"):
                self.attach(loaded, "on_call", {**target, **more})


class Usdt(AttachTest):
    """With the probes of Debian's Python: gc__start, with the generation, and gc__done. Each has a semaphore."""
    SCRIPT = """if True:
        import gc, sys
        gc.disable()
        for line in sys.stdin:
            gc.collect(int(line))
            print("done", flush=True)
    """

    def setUp(self):
        super().setUp()
        with open(PYTHON, "rb") as f:
            if b"gc__start" not in f.read():
                self.skipTest("the system's Python has no USDT probes")
        self.child = subprocess.Popen([PYTHON, "-c", self.SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end)
        self.trigger()

    def end(self):
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()

    def trigger(self, generation=1):
        self.child.stdin.write("%d\n" % generation)
        self.child.stdin.flush()
        self.assertEqual(self.child.stdout.readline(), "done\n")

    def target(self, name="gc__start", **more):
        return {"binary": PYTHON, "provider": "python", "name": name, "pid": self.child.pid, **more}

    def test_runs_while_attached(self):
        link = self.runs_while_attached("usdt", "on_probe", "usdt", self.trigger, self.target())
        self.assertIn(":python:gc__start", link["target"])

    def test_attached_at_load(self):
        self.runs_when_attached_at_load("usdt", "on_probe", self.trigger, self.target())

    def test_each_attachment_has_its_own_specification(self):
        loaded = self.load("usdt", programs={"on_probe": {"attach": [self.target(cookie=1)]}})["object"]
        counts, arguments = self.map_of(loaded, "by_cookie"), self.map_of(loaded, "arguments")
        other = self.attach(loaded, "on_probe", self.target("gc__done", cookie=2))["link"]
        self.trigger(generation=2)
        self.assertEqual((counts()[1], counts()[2], arguments()[1]), (1, 1, 2))
        self.detach(loaded["links"][0])
        third = self.attach(loaded, "on_probe", self.target(cookie=3))["link"]
        self.trigger(generation=0)
        self.assertEqual((counts()[1], counts()[2], counts()[3], arguments()[3]), (1, 2, 1, 0))
        self.detach(other)
        self.detach(third)
        self.trigger()
        self.assertEqual(counts()[1:4], [1, 2, 1])

    def test_what_detached_attachments_had_is_used_again(self):
        loaded = self.load("usdt")["object"]
        counts = self.map_of(loaded, "by_cookie")
        for _ in range(6):  # the object has room for four
            link = self.attach(loaded, "on_probe", self.target(cookie=1))["link"]
            self.trigger()
            self.detach(link)
        self.assertEqual(counts()[1], 6)

    def test_there_is_room_for_so_many(self):
        loaded = self.load("usdt")["object"]
        # The same place may be attached to once only where the kernel has no cookies.
        names = ["gc__start", "gc__done", "audit", "line", "import__find__load__start"]
        for name in names[:4]:
            self.attach(loaded, "on_probe", self.target(name, cookie=1))
        with self.refused("AttachFailed", errnoName="E2BIG") as refusal:
            self.attach(loaded, "on_probe", self.target(names[4]))
        self.assertIn("BPF_USDT_MAX_SPEC_CNT", refusal.error.parameters["message"])

    def test_says_what_is_not_there(self):
        loaded = self.load("usdt")["object"]
        for target, why in ((self.target("gc__strat"), "did you mean 'python:gc__start'"),
                            (self.target(binary=mapped("libz")), "has no USDT probes")):
            with self.subTest(target=target), self.refused("AttachFailed", errnoName="ENOENT") as refusal:
                self.attach(loaded, "on_probe", target)
            self.assertIn(why, refusal.error.parameters["message"])
        with self.refused("InvalidParameter", parameter="target.name"):
            self.attach(loaded, "on_probe", {"binary": PYTHON, "provider": "python"})
        with self.refused("AttachFailed"):
            self.load("usdt", dryRun=True, programs={"on_probe": {"attach": [self.target("gc__strat")]}})
        self.load("usdt", dryRun=True, programs={"on_probe": {"attach": [self.target()]}})
