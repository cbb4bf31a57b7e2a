"""Programs that are attached to functions of the kernel by kprobes."""
import contextlib
import os
import time

from attaching import KERNEL, AttachTest, kernel_has_symbol
from btfd_client import VarlinkError
from system import run


def sleep_once():
    time.sleep(0.001)


class Kprobe(AttachTest):
    def setUp(self):
        super().setUp()
        self.needs_kprobes()

    def test_enter(self):
        self.runs_while_attached("kprobe", "on_sleep", "kprobe", sleep_once)

    def test_return(self):
        self.runs_while_attached("kprobe", "on_sleep_return", "kretprobe", sleep_once)

    def test_attached_at_load(self):
        self.runs_when_attached_at_load("kprobe", "on_sleep", sleep_once)

    def test_by_name(self):
        link = self.runs_while_attached("kprobe", "on_sleep", "kprobe", sleep_once, {"function": "hrtimer_nanosleep"})
        self.assertEqual(link["target"], "hrtimer_nanosleep")

    def test_several_functions(self):
        link = self.runs_while_attached("kprobe", "on_sleep", "kprobe", sleep_once,
                                        {"functions": ["do_nanosleep", "hrtimer_nanosleep"]})
        self.assertEqual(link["target"], "do_nanosleep and 1 more")
        self.assertNotIn("kernelId", link)

    def test_pattern(self):
        self.runs_while_attached("kprobe", "on_sleep", "kprobe", sleep_once, {"pattern": "do_nanoslee?"})

    def test_offset(self):
        loaded, count = self.load_with_counter("kprobe")
        attached = 0
        for offset in range(1, 16):
            try:
                link = self.attach(loaded, "on_sleep", {"offset": offset})["link"]
            except VarlinkError as e:
                self.assertRegex(e.parameters["message"], "EILSEQ.*midst of an instruction")
                continue
            attached += 1
            self.assertEqual(link["target"], "do_nanosleep+%d" % offset)
            before = count()
            sleep_once()
            self.assertGreater(count(), before)
            self.detach(link)
        self.assertIn(attached, range(1, 15))

    def test_cookies(self):
        self.needs_kernel(5, 15)
        loaded = self.load("probe_cookies")["object"]
        counts = self.map_of(loaded, "by_cookie")
        self.attach(loaded, "on_enter", {"functions": ["do_nanosleep", "hrtimer_nanosleep"], "cookies": [2, 3]})
        self.attach(loaded, "on_enter", {"function": "do_nanosleep", "cookie": 5})
        sleep_once()
        self.assertEqual([number for number, count in enumerate(counts()) if count], [2, 3, 5])

    def test_cookies_need_a_kernel_that_has_them(self):
        if KERNEL >= (5, 15):
            self.skipTest("this kernel has them")
        loaded = self.load("kprobe")["object"]
        with self.refused("AttachFailed", errnoName="EOPNOTSUPP") as refusal:
            self.attach(loaded, "on_sleep", {"cookie": 1})
        self.assertIn("no cookies (since Linux 5.15)", refusal.error.parameters["message"])

    def test_function_of_a_module(self):
        with open("/proc/modules", encoding="utf-8") as f:
            if not any(line.startswith("veth ") for line in f):
                self.skipTest("module veth is not loaded")

        def make_pair():
            run("ip", "link", "add", "btfd0", "type", "veth", "peer", "name", "btfd1")
            run("ip", "link", "set", "btfd0", "up")
            run("ip", "link", "delete", "btfd0")

        for function in ("veth:veth_open", "veth_open"):
            with self.subTest(function=function):
                self.runs_while_attached("kprobe", "on_sleep", "kprobe", make_pair, {"function": function})
        loaded = self.load("kprobe")["object"]
        with self.refused("AttachFailed", errnoName="ENOENT") as refusal:
            self.attach(loaded, "on_sleep", {"function": "veth:do_nanosleep"})
        self.assertIn("module veth has none", refusal.error.parameters["message"])

    def test_that_does_not_exist(self):
        loaded = self.load("kprobe")["object"]
        with self.refused("AttachFailed", program="on_sleep", errnoName="ENOENT") as refusal:
            self.attach(loaded, "on_sleep", {"function": "do_nanosleap"})
        self.assertIn("the kernel has no function 'do_nanosleap'", refusal.error.parameters["message"])
        self.assertIn("'do_nanosleep'", refusal.error.parameters["message"])
        for target in ({"function": ""}, {"function": "do_nanosleep\0"}, {"function": "do_*"}, {"function": "a b"},
                       {"offset": -1}, {"function": "do_nanosleep", "pattern": "do_nanosleep"},
                       {"functions": ["do_nanosleep"], "cookies": [1, 2]}, {"cookie": 1, "cookies": [1]}):
            with self.subTest(target=target), self.refused("InvalidParameter"):
                self.attach(loaded, "on_sleep", target)
        with self.refused("InvalidParameter", parameter="target.offset"):
            self.attach(loaded, "on_sleep_return", {"offset": 4})

    def test_where_the_kernel_allows_none(self):
        blacklist = "/sys/kernel/debug/kprobes/blacklist"
        if not os.path.exists(blacklist):
            self.skipTest("debugfs is not mounted")
        with open(blacklist, encoding="utf-8") as f:
            names = {line.split()[1] for line in f}
        name = next(each for each in ("kprobe_int3_handler", "get_kprobe", "do_int3") if each in names)
        loaded = self.load("kprobe")["object"]
        with self.refused("AttachFailed") as refusal:
            self.attach(loaded, "on_sleep", {"function": name})
        self.assertIn("the kernel allows no kprobes in", refusal.error.parameters["message"])

    def test_is_for_no_binary(self):
        loaded = self.load("kprobe")["object"]
        with self.refused("InvalidParameter", parameter="target.binary"):
            self.attach(loaded, "on_sleep", {"binary": "/bin/true", "function": "main"})

    def test_a_failure_leaves_no_probe(self):
        loaded, count = self.load_with_counter("kprobe")
        with self.refused("AttachFailed") as refusal:
            self.attach(loaded, "on_sleep", {"functions": ["do_nanosleep", "no_such_function"]})
        self.assertIn("no function 'no_such_function'", refusal.error.parameters["message"])
        sleep_once()
        self.assertEqual(count(), 0)

    def test_a_dry_run_looks_for_the_function(self):
        self.load("kprobe", dryRun=True, programs={"on_sleep": {"attach": [{}]}})
        with self.refused("AttachFailed", errnoName="ENOENT"):
            self.load("kprobe", dryRun=True, programs={"on_sleep": {"attach": [{"function": "no_such_function"}]}})


class WithoutKprobes(AttachTest):
    def test_the_reason_is_told(self):
        if os.path.exists("/sys/bus/event_source/devices/kprobe/type"):
            self.skipTest("this kernel has kprobes")
        with contextlib.suppress(VarlinkError):
            loaded = self.load("kprobe")["object"]
            with self.refused("AttachFailed") as refusal:
                self.attach(loaded, "on_sleep")
            self.assertIn("CONFIG_KPROBE_EVENTS", refusal.error.parameters["message"])
            return
        self.skipTest("this kernel is locked down")


class KprobeMulti(AttachTest):
    def setUp(self):
        super().setUp()
        self.needs_kprobes()
        # Only kernels with CONFIG_FPROBE have it; others, and those before 5.18, get single probes.
        self.multi = kernel_has_symbol("kprobe_multi_link_handler")

    def kind(self, kind="kprobe"):
        return kind + ".multi" if self.multi else kind

    def test_pattern_of_section(self):
        link = self.runs_while_attached("kprobe_multi", "on_sleep", self.kind(), sleep_once)
        self.assertRegex(link["target"], r"^do_nanosleep\* \(\d+ functions\)$")

    def test_return(self):
        self.runs_while_attached("kprobe_multi", "on_sleep_return", self.kind("kretprobe"), sleep_once)

    def test_functions(self):
        link = self.runs_while_attached("kprobe_multi", "on_sleep", self.kind(), sleep_once,
                                        {"functions": ["do_nanosleep", "hrtimer_nanosleep"]})
        self.assertEqual("kernelId" in link, self.multi)

    def test_attached_at_load(self):
        self.runs_when_attached_at_load("kprobe_multi", "on_sleep", sleep_once, {"pattern": "hrtimer_nano*"})

    def test_cookies(self):
        self.needs_kernel(5, 15)
        loaded = self.load("probe_cookies", programs={"on_enter_several": {"enabled": True}})["object"]
        counts = self.map_of(loaded, "by_cookie")
        self.attach(loaded, "on_enter_several", {"functions": ["do_nanosleep", "hrtimer_nanosleep"], "cookies": [2, 3]})
        self.attach(loaded, "on_enter_several", {"pattern": "do_nanoslee?", "cookie": 5})
        sleep_once()
        self.assertEqual([number for number, count in enumerate(counts()) if count], [2, 3, 5])

    def test_that_does_not_exist(self):
        loaded = self.load("kprobe_multi")["object"]
        with self.refused("AttachFailed", errnoName="ENOENT") as refusal:
            self.attach(loaded, "on_sleep", {"functions": ["do_nanosleep", "do_nanosleap"]})
        self.assertIn("the kernel has no function 'do_nanosleap'", refusal.error.parameters["message"])
        with self.refused("AttachFailed", errnoName="ENOENT") as refusal:
            self.attach(loaded, "on_sleep", {"pattern": "no_such_function*"})
        self.assertIn("is like 'no_such_function*'", refusal.error.parameters["message"])

    def test_what_cannot_be_traced(self):
        if not self.multi:
            self.skipTest("this kernel has no kprobe.multi")
        loaded = self.load("kprobe_multi")["object"]
        with self.refused("AttachFailed") as refusal:
            self.attach(loaded, "on_sleep", {"function": "entry_SYSCALL_64"})
        self.assertIn("cannot be traced by ftrace", refusal.error.parameters["message"])

    def test_too_many_for_single_probes(self):
        loaded = self.load("kprobe")["object"]
        with self.refused("AttachFailed", errnoName="E2BIG") as refusal:
            self.attach(loaded, "on_sleep", {"pattern": "*"})
        self.assertIn("there may be 500", refusal.error.parameters["message"])


class KprobeSession(AttachTest):
    def setUp(self):
        super().setUp()
        self.needs_kprobes()

    def test_runs_twice(self):
        self.needs_kernel(6, 10)
        loaded, count = self.load_with_counter("kprobe_session")
        link = self.attach(loaded, "on_sleep")["link"]
        self.assertEqual(link["kind"], "kprobe.session")
        sleep_once()
        self.assertGreaterEqual(count(), 2)
        self.detach(link)
        before = count()
        sleep_once()
        self.assertEqual(count(), before)

    def test_needs_a_kernel_that_has_it(self):
        if KERNEL >= (6, 10):
            self.skipTest("this kernel has it")
        loaded = self.load("kprobe_session")["object"]
        with self.refused("AttachFailed") as refusal:
            self.attach(loaded, "on_sleep")
        self.assertIn("needs Linux 6.10", refusal.error.parameters["message"])


class Ksyscall(AttachTest):
    def setUp(self):
        super().setUp()
        self.needs_kprobes()

    def test_enter(self):
        self.runs_while_attached("ksyscall", "on_call", "ksyscall", os.getppid)

    def test_return(self):
        self.runs_while_attached("ksyscall", "on_return", "kretsyscall", os.getppid)

    def test_by_name(self):
        self.runs_while_attached("ksyscall", "on_call", "ksyscall", lambda: os.getpgid(0), {"function": "getpgid"})

    def test_that_does_not_exist(self):
        loaded = self.load("ksyscall")["object"]
        with self.refused("AttachFailed", errnoName="ENOENT") as refusal:
            self.attach(loaded, "on_call", {"function": "getpppid"})
        self.assertIn("the kernel has no system call 'getpppid'; did you mean 'getppid'", refusal.error.parameters["message"])
