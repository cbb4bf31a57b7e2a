"""Programs that are attached to what the kernel does: tracepoints, iterators, samples."""
import base64
import ctypes
import mmap
import os
import re
import subprocess
import time

import bpf
from attaching import KERNEL, AttachTest
from btfd_client import VarlinkError
from harness import BIN_DIR, built, eventually
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
        if bpf.kernel_version() < (6, 1):
            self.skipTest("iterators take parameters from Linux 6.1 on")
        child = subprocess.Popen(["sleep", "60"])
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        eventually(lambda: open("/proc/%d/comm" % child.pid, encoding="utf-8").read() == "sleep\n", "no exec")
        self.assertEqual(self.iterate({"pid": child.pid}), {child.pid: "sleep"})
        self.assertEqual(self.iterate({"pid": float(child.pid)}), {child.pid: "sleep"})

    def test_prints_one_thread(self):
        self.needs_kernel(6, 1)
        self.assertEqual(set(self.iterate({"tid": os.getpid()})), {os.getpid()})

    def test_parameters_need_a_kernel_that_has_them(self):
        if KERNEL >= (6, 1):
            self.skipTest("this kernel has them")
        loaded = self.load("iter_task")["object"]
        with self.refused("AttachFailed") as refusal:
            self.attach(loaded, "dump_task", {"pid": os.getpid()})
        self.assertIn("since Linux 6.1", refusal.error.parameters["message"])

    def test_goes_through_a_map(self):
        loaded = self.load("iterators")["object"]
        with self.refused("AttachFailed") as refusal:
            self.attach(loaded, "dump_entries")
        self.assertIn("field map names one", refusal.error.parameters["message"])
        link = self.attach(loaded, "dump_entries", {"map": "entries"})["link"]
        self.assertEqual(link["target"], "bpf_map_elem of map entries")
        self.assertEqual(self.client.call("io.btfd.Read", {"linkId": link["id"]})["data"], "entry 0\nentry 1\nentry 2\n")
        with self.refused("InvalidParameter", parameter="target.map"):
            self.attach(loaded, "dump_entries", {"map": "entries", "pid": 1})

    def test_a_process_that_cannot_be(self):
        loaded = self.load("iter_task")["object"]
        for pid in (0, -1, 1 << 31, (1 << 32) + os.getpid(), os.getpid() + 0.5, 1e300):
            with self.subTest(pid=pid), self.refused("InvalidParameter", parameter="target.pid"):
                self.attach(loaded, "dump_task", {"pid": pid})


class Read(AttachTest):
    def setUp(self):
        super().setUp()
        self.loaded, self.count = self.load_with_counter("iter_task")
        self.link = self.attach(self.loaded, "dump_task")["link"]

    def test_runs_the_program(self):
        text = self.client.call("io.btfd.Read", {"linkId": self.link["id"]})["data"]
        self.assertIn("%d " % os.getpid(), text)
        self.assertEqual(self.count(), len(text.splitlines()))
        self.client.call("io.btfd.Read", {"linkId": self.link["id"]})
        self.assertGreater(self.count(), len(text.splitlines()))

    def test_in_base64(self):
        data = self.client.call("io.btfd.Read", {"linkId": self.link["id"], "base64": True})["data"]
        self.assertIn(b"%d " % os.getpid(), base64.b64decode(data))

    def test_in_pieces(self):
        text = "".join(reply["data"] for reply in self.client.stream("io.btfd.Read", {"linkId": self.link["id"]}))
        self.assertIn("%d " % os.getpid(), text)

    def test_with_btfctl(self):
        printed = subprocess.run([built(BIN_DIR, "BTFD_BIN_DIR", "btfctl", "btfctl"), "--socket", self.daemon.socket_path,
                                  "read", str(self.link["id"])], check=True, capture_output=True, text=True)
        self.assertIn("%d " % os.getpid(), printed.stdout)

    def test_only_iterators(self):
        other = self.attach(self.load("tp_btf")["object"], "on_exec")["link"]
        with self.refused("InvalidParameter", parameter="linkId"):
            self.client.call("io.btfd.Read", {"linkId": other["id"]})
        with self.refused("NoSuchLink"):
            self.client.call("io.btfd.Read", {"linkId": 1 << 40})


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
        if bpf.kernel_version() >= (5, 15):  # before, perf events have no links
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
