"""What the attach tests share: the life of one attachment."""
import contextlib
import json
import os
import struct
import unittest

import bpf
from btfd_client import VarlinkError
from harness import DaemonTest, eventually, object_path


# A directory. What is found out of the kernel goes to attach.jsonl there, for tests/vm/attach-table.
RESULTS = os.environ.get("BTFD_TEST_RESULTS")


def note(name, program, outcome, **more):
    """Writes down that program of a test object "works" or is "refused" on this kernel."""
    if RESULTS:
        with open(os.path.join(RESULTS, "attach.jsonl"), "a", encoding="utf-8") as f:
            f.write(json.dumps({"object": name, "program": program, "outcome": outcome, **more}) + "\n")


KERNEL = tuple(int(number) for number in os.uname().release.split("-")[0].split("+")[0].split(".")[:2])


def kernel_has_symbol(name):
    """Whether /proc/kallsyms lists it: a function or variable that only kernels with some feature have."""
    with open("/proc/kallsyms", encoding="utf-8") as f:
        return any(line.split()[2] == name for line in f)


class AttachTest(DaemonTest):
    def needs_kprobes(self):
        if not os.path.exists("/sys/bus/event_source/devices/kprobe/type"):
            self.skipTest("this kernel has no kprobes (CONFIG_KPROBE_EVENTS)")

    def needs_kernel(self, *version):
        if KERNEL < version:
            self.skipTest("that takes Linux %d.%d" % version)

    def map_of(self, loaded, name):
        """A function that gives the values of an array of 64-bit numbers."""
        reply = self.client.call("io.btfd.GetDescriptors", {"objectId": loaded["id"], "maps": [name]})
        return lambda: [struct.unpack("=q", bpf.map_lookup(reply.descriptors[0], struct.pack("=I", i), 8))[0]
                        for i in range(8)]

    def detach(self, link):
        self.client.call("io.btfd.Detach", {"linkId": link["id"]})

    def attach(self, loaded, program, target=None, descriptors=(), **parameters):
        if target is not None:
            parameters["target"] = target
        return self.client.call("io.btfd.Attach", {"objectId": loaded["id"], "program": program, **parameters}, descriptors)

    def load_with_counter(self, name, **parameters):
        """A loaded object, and a function that tells how often its programs ran."""
        reply = self.load(name, wantDescriptors=True, **parameters)
        number = next(m["fileDescriptor"] for m in reply["object"]["maps"] if m["name"] == "counter")
        descriptor = reply.descriptors[number]
        for other in reply.descriptors:
            if other is not descriptor:
                other.close()  # a link that the client holds would stay attached
        return reply["object"], lambda: bpf.counter(descriptor)

    def runs_while_attached(self, name, program, kind, trigger, target=None, descriptors=()):
        """Attaches, triggers, detaches: the program must run in between, and only then. Gives the link."""
        loaded, count = self.load_with_counter(name)
        trigger()
        self.assertEqual(count(), 0, "it ran before it was attached")
        link = self.attach(loaded, program, target, descriptors)["link"]
        self.assertEqual((link["program"], link["kind"]), (program, kind))
        self.assertTrue(link["target"])
        if "kernelId" in link:
            self.assertIn(link["kernelId"], bpf.ids("link"))
        trigger()
        eventually(lambda: count() > 0, "it did not run")  # interfaces take their packets when they like
        self.client.call("io.btfd.Detach", {"linkId": link["id"]})
        before = count()
        trigger()
        self.assertEqual(count(), before, "it ran after it was detached")
        self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})
        section = next(each["section"] for each in loaded["programs"] if each["name"] == program)
        note(name, program, "works", section=section, kind=link["kind"])
        return link

    def runs_when_attached_at_load(self, name, program, trigger, target=None, descriptors=()):
        """The same by one Load; and Unload ends it."""
        with open(object_path(name), "rb") as f:
            reply = self.client.call("io.btfd.Load", {"objectFileDescriptor": 0, "programs": {
                program: {"attach": [target or {}]}}}, [f, *descriptors])
        got = self.client.call("io.btfd.GetDescriptors", {"objectId": reply["object"]["id"], "maps": ["counter"]})
        trigger()
        self.assertGreater(bpf.counter(got.descriptors[0]), 0, "it did not run")
        self.client.call("io.btfd.Unload", {"objectId": reply["object"]["id"]})
        before = bpf.counter(got.descriptors[0])
        trigger()
        self.assertEqual(bpf.counter(got.descriptors[0]), before, "it ran after its object was unloaded")

    def runs_or_says_why_not(self, name, program, kind, trigger, target=None):
        """Where the kernel allows this kind, it must work; where not, the client must get the kernel's reason."""
        try:
            loaded = self.load(name)["object"]
        except VarlinkError as e:
            note(name, program, "refused", reason=e.parameters.get("message"))
            return self.check_reason(e, "io.btfd.LoadFailed")
        try:
            link = self.attach(loaded, program, target)["link"]
        except VarlinkError as e:
            note(name, program, "refused", reason=e.parameters.get("message"))
            return self.check_reason(e, "io.btfd.AttachFailed")
        self.client.call("io.btfd.Detach", {"linkId": link["id"]})
        self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})
        return self.runs_while_attached(name, program, kind, trigger, target)

    @contextlib.contextmanager
    def skipped_where_lacking(self):
        """Where the kernel does not know the kind of program or attachment, the test is skipped with its reason."""
        try:
            yield
        except VarlinkError as e:
            if e.name not in ("io.btfd.LoadFailed", "io.btfd.AttachFailed") or e.parameters["errnoName"] != "EINVAL":
                raise
            raise unittest.SkipTest("this kernel: %s" % e.parameters["message"]) from e

    def check_reason(self, error, name):
        self.assertEqual(error.name, name, error)
        parameters = error.parameters
        self.assertGreater(parameters["errno"], 0)
        self.assertRegex(parameters["errnoName"], "^E[A-Z0-9]+$")
        self.assertIn(parameters["errnoName"], parameters["message"])
        everything = str(parameters)
        self.assertNotIn("ulimit", everything)
        self.assertNotIn("RLIMIT_MEMLOCK", everything)
        if parameters["errnoName"] == "EPERM":
            self.assertRegex(parameters["message"], "lock(ed )?down|CAP_[A-Z]+")
        print("\n    the kernel refuses: %s" % parameters["message"])
