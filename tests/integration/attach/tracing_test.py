"""Programs that are attached to what the kernel does: tracepoints, iterators, samples, probes."""
import ctypes
import mmap
import os
import re
import subprocess
import time

import bpf
from attaching import AttachTest
from btfd_client import VarlinkError
from harness import eventually
from system import run


def execute():
    run("true")


def sleep_once():
    time.sleep(0.001)


class TpBtf(AttachTest):
    def test_runs_while_attached(self):
        link = self.runs_while_attached("tp_btf", "on_exec", "tp_btf", execute)
        self.assertIn("sched_process_exec", link["target"])

    def test_attached_at_load(self):
        self.runs_when_attached_at_load("tp_btf", "on_exec", execute)

    def test_with_kernel_structures(self):
        """The probe of the README: what it reads through CO-RE is right."""
        reply = self.load("exec_events", wantDescriptors=True, programs={"on_exec": {"attach": [{}]}})
        ring = next(m for m in reply["object"]["maps"] if m["name"] == "events")
        child = subprocess.Popen(["/bin/true"])
        child.wait()
        data = self.read_ring(reply.descriptors[ring["fileDescriptor"]], ring["maxEntries"])
        found = re.search(re.escape(ctypes.c_uint32(child.pid).value.to_bytes(4, "little")
                                    + os.getpid().to_bytes(4, "little") + (0).to_bytes(4, "little") + b"true\0"), data)
        self.assertTrue(found, "no record of pid %d, child of %d, uid 0, 'true'" % (child.pid, os.getpid()))
        self.assertIn(b"/bin/true\0", data[found.start():found.start() + 160])

    @staticmethod
    def read_ring(descriptor, size):
        """The data pages of a ring buffer, as they are: after the consumer's and the producer's page."""
        with mmap.mmap(descriptor.fileno(), size, mmap.MAP_SHARED, mmap.PROT_READ, offset=2 * mmap.PAGESIZE) as pages:
            return pages[:]


class RawTracepoint(AttachTest):
    def test_runs_while_attached(self):
        self.runs_while_attached("raw_tracepoint", "on_exec", "raw_tracepoint", execute)

    def test_by_name(self):
        self.runs_while_attached("raw_tracepoint", "on_exec", "raw_tracepoint", execute, {"tracepoint": "sched_process_exit"})

    def test_attached_at_load(self):
        self.runs_when_attached_at_load("raw_tracepoint", "on_exec", execute)

    def test_that_does_not_exist(self):
        loaded = self.load("raw_tracepoint")["object"]
        with self.refused("AttachFailed", program="on_exec", errnoName="ENOENT"):
            self.attach(loaded, "on_exec", {"tracepoint": "no_such_tracepoint"})
        with self.refused("AttachFailed", program="on_exec", errnoName="ENOENT") as refusal:
            self.attach(loaded, "on_exec", {"tracepoint": "sched_process_exek"})
        self.assertIn("did you mean 'sched_process_exec'", refusal.error.parameters["message"])


class Tracepoint(AttachTest):
    def setUp(self):
        super().setUp()
        if not os.path.exists("/sys/kernel/tracing/events/sched/sched_process_exec/id"):
            self.skipTest("this kernel has no tracefs, or not this tracepoint")

    def test_runs_while_attached(self):
        self.runs_while_attached("tracepoint", "on_exec", "tracepoint", execute)

    def test_by_name(self):
        self.runs_while_attached("tracepoint", "on_exec", "tracepoint", execute, {"tracepoint": "sched/sched_process_exit"})

    def test_attached_at_load(self):
        self.runs_when_attached_at_load("tracepoint", "on_exec", execute)

    def test_that_does_not_exist(self):
        loaded = self.load("tracepoint")["object"]
        with self.refused("AttachFailed", program="on_exec", errnoName="ENOENT"):
            self.attach(loaded, "on_exec", {"tracepoint": "sched/no_such_tracepoint"})
        with self.refused("AttachFailed", program="on_exec", errnoName="ENOENT") as refusal:
            self.attach(loaded, "on_exec", {"tracepoint": "sched/sched_process_exek"})
        self.assertIn("did you mean 'sched_process_exec'", refusal.error.parameters["message"])
        for name in ("sched_process_exec", "", "/", "../../etc/passwd", "sched/../sched/sched_process_exec"):
            with self.subTest(name=name), self.refused(("InvalidParameter", "AttachFailed")):
                self.attach(loaded, "on_exec", {"tracepoint": name})


class Iterator(AttachTest):
    def iterate(self, target=None):
        loaded, count = self.load_with_counter("iter_task")
        reply = self.attach(loaded, "dump_task", target, wantDescriptors=True)
        self.assertEqual(reply["link"]["kind"], "iter")
        self.assertEqual(count(), 0)
        text = bpf.iterate(reply.descriptors[reply["link"]["fileDescriptor"]]).decode()
        lines = [line.split(" ", 1) for line in text.splitlines()]
        self.assertEqual(count(), len(lines))
        reply.descriptors[0].close()
        self.client.call("io.btfd.Detach", {"linkId": reply["link"]["id"]})
        return {int(pid): name for pid, name in lines}

    def test_prints_all_tasks(self):
        found = self.iterate()
        self.assertIn(os.getpid(), found)
        self.assertIn(self.daemon.pid(), found)
        self.assertEqual(found[os.getpid()], open("/proc/self/comm", encoding="utf-8").read().strip())

    def test_prints_one_process(self):
        child = subprocess.Popen(["sleep", "60"])
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        eventually(lambda: open("/proc/%d/comm" % child.pid, encoding="utf-8").read() == "sleep\n", "no exec")
        self.assertEqual(self.iterate({"pid": child.pid}), {child.pid: "sleep"})
        self.assertEqual(self.iterate({"pid": float(child.pid)}), {child.pid: "sleep"})

    def test_a_process_that_cannot_be(self):
        loaded = self.load("iter_task")["object"]
        for pid in (0, -1, 1 << 31, (1 << 32) + os.getpid(), os.getpid() + 0.5, 1e300):
            with self.subTest(pid=pid), self.refused("InvalidParameter", parameter="target.pid"):
                self.attach(loaded, "dump_task", {"pid": pid})


class PerfEvent(AttachTest):
    def burn(self):
        begin = time.process_time()
        while time.process_time() - begin < 0.2:
            pass

    def test_samples_by_frequency(self):
        link = self.runs_while_attached("perf_event", "on_sample", "perf_event", self.burn,
                                        {"perfEvent": {"type": "software", "event": "cpu-clock", "frequency": 1000}})
        if os.cpu_count() > 1:
            self.assertNotIn("kernelId", link)

    def test_samples_by_period(self):
        self.runs_while_attached("perf_event", "on_sample", "perf_event", self.burn,
                                 {"perfEvent": {"type": "software", "event": "task-clock", "period": 1000000,
                                                "pid": os.getpid()}})

    def test_samples_one_processor(self):
        link = self.runs_while_attached("perf_event", "on_sample", "perf_event", self.burn_on_0,
                                        {"perfEvent": {"type": "software", "event": "cpu-clock", "frequency": 1000, "cpu": 0}})
        self.assertIn("kernelId", link)

    def burn_on_0(self):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {0})
        self.burn()
        os.sched_setaffinity(0, allowed)

    def test_all_its_descriptors_are_given(self):
        loaded = self.load("perf_event")["object"]
        link = self.attach(loaded, "on_sample", {"perfEvent": {"type": "software", "event": "cpu-clock", "frequency": 10}})["link"]
        reply = self.client.call("io.btfd.GetDescriptors", {"objectId": loaded["id"], "links": [link["id"]]})
        self.assertEqual(len(reply.descriptors), len(os.sched_getaffinity(self.daemon.pid())))
        self.assertEqual({d["linkId"] for d in reply["descriptors"]}, {link["id"]})

    def test_hardware_events_need_hardware(self):
        loaded = self.load("perf_event")["object"]
        event = {"type": "hardware", "event": "cpu-cycles", "period": 1000000}
        try:
            self.attach(loaded, "on_sample", {"perfEvent": event})
            return  # this machine has performance counters
        except VarlinkError as e:
            self.assertRegex(e.parameters["message"], r"to cpu-cycles each 1000000 events on each CPU: ENOENT \(.*\): .*PMU")

    def test_frequencies_have_a_limit(self):
        loaded = self.load("perf_event")["object"]
        with self.refused("AttachFailed", errnoName="EINVAL") as refusal:
            self.attach(loaded, "on_sample", {"perfEvent": {"type": "software", "event": "cpu-clock", "frequency": 10**9}})
        self.assertIn("perf_event_max_sample_rate", refusal.error.parameters["message"])

    def test_events_that_do_not_exist(self):
        loaded = self.load("perf_event")["object"]
        for event in ({"type": "software", "event": "no-such"}, {"type": "no-such", "event": "cpu-clock"},
                      {"type": "software", "event": "cpu-clock", "frequency": 10, "period": 10},
                      {"type": "software", "event": "cpu-clock", "frequency": -1},
                      {"type": "software", "event": "cpu-clock", "frequency": 10, "cpu": 100000}):
            with self.subTest(event=event), self.refused(("InvalidParameter", "AttachFailed")):
                self.attach(loaded, "on_sample", {"perfEvent": event})


class Fentry(AttachTest):
    def test_enter(self):
        self.runs_or_says_why_not("fentry", "on_sleep", "fentry", sleep_once)

    def test_exit(self):
        self.runs_or_says_why_not("fentry", "on_sleep_return", "fexit", sleep_once)


class Kprobe(AttachTest):
    def test_enter(self):
        self.runs_or_says_why_not("kprobe", "on_sleep", "kprobe", sleep_once)

    def test_return(self):
        self.runs_or_says_why_not("kprobe", "on_sleep_return", "kretprobe", sleep_once)

    def test_by_name(self):
        self.runs_or_says_why_not("kprobe", "on_sleep", "kprobe", sleep_once, {"function": "do_nanosleep"})

    def test_is_for_no_binary(self):
        try:
            loaded = self.load("kprobe")["object"]
        except VarlinkError as e:
            self.check_reason(e, "io.btfd.LoadFailed")
            return
        with self.refused("InvalidParameter", parameter="target.binary"):
            self.attach(loaded, "on_sleep", {"binary": "/bin/true", "function": "main"})

    def test_several(self):
        self.runs_or_says_why_not("kprobe_multi", "on_sleep", "kprobe.multi", sleep_once)


class Lsm(AttachTest):
    def test_hook(self):
        self.runs_or_says_why_not("lsm", "on_file_open", "lsm", lambda: open("/dev/null", "rb").close())


class Uprobe(AttachTest):
    def libc(self):
        with open("/proc/self/maps", encoding="utf-8") as f:
            return re.search(r"\S+/libc[.-]\S*so\S*", f.read()).group()

    def call(self):
        ctypes.CDLL(None).getppid()

    def test_enter(self):
        self.runs_or_says_why_not("uprobe", "on_call", "uprobe", self.call, {"binary": self.libc(), "function": "getppid"})

    def test_return(self):
        self.runs_or_says_why_not("uprobe", "on_return", "uretprobe", self.call,
                                  {"binary": self.libc(), "function": "getppid"})

    def test_of_one_process(self):
        self.runs_or_says_why_not("uprobe", "on_call", "uprobe", self.call,
                                  {"binary": self.libc(), "function": "getppid", "pid": os.getpid()})

    def test_needs_to_know_where(self):
        loaded = self.load("uprobe")["object"]
        # Never a kernel function for a program that is for binaries, nor the file's first byte for want of a function.
        for target, missing in (({}, "binary"), ({"function": "do_nanosleep"}, "binary"), ({"binary": self.libc()}, "function")):
            with self.subTest(target=target), self.refused("InvalidParameter", parameter="target." + missing):
                self.attach(loaded, "on_call", target)

    def test_says_what_is_not_there(self):
        loaded = self.load("uprobe")["object"]
        for target, why in (({"binary": "no_such_library.so", "function": "f"}, "where programs and libraries are looked for"),
                            ({"binary": self.libc(), "function": "no_such_function"}, "has no function 'no_such_function'")):
            with self.subTest(target=target), self.refused("AttachFailed") as refusal:
                self.attach(loaded, "on_call", target)
            self.assertIn(why, refusal.error.parameters["message"])

    def test_that_does_not_exist(self):
        loaded = self.load("uprobe")["object"]
        for target in ({"binary": "/no/such/file", "function": "f"}, {"binary": self.libc(), "function": "no_such_function"}):
            with self.subTest(target=target), self.refused(("AttachFailed", "InvalidParameter")):
                self.attach(loaded, "on_call", target)
