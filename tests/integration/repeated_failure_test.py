"""Loads that fail in the middle, again and again: nothing of them is left, in the kernel or in the daemon."""
import contextlib
import os

import bpf
from harness import DaemonTest, eventually
from system import run

ROUNDS = 100


def descriptors(pid):
    """How many a process has open, and what they are of: numbers of pipes and sockets aside."""
    found = {}
    for name in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(FileNotFoundError):
            kind = os.readlink("/proc/%d/fd/%s" % (pid, name)).partition("[")[0]
            found[kind] = found.get(kind, 0) + 1
    return found


class RepeatedFailures(DaemonTest):
    config = {"workers": {"count": 2}}

    def state(self):
        pins = sorted(os.path.join(top, name) for top, below, names in os.walk(self.daemon.bpffs) for name in below + names)
        return {
            "held": sorted(self.daemon.held()),
            "pins": pins,
            "descriptors": {pid: descriptors(pid) for pid in [self.daemon.pid(), *self.daemon.workers()]},
            "objects": self.client.call("io.btfd.List")["objects"],
            "lo": "xdp" in run("ip", "link", "show", "dev", "lo"),
        }

    def leaves_nothing(self, fail):
        for _ in range(3):
            fail()  # so that all that is made once, such as the image that is kept of an object, is there
        eventually(lambda: self.state() == self.state(), "the daemon does not come to rest")
        before = self.state()
        ids = {kind: bpf.ids(kind) for kind in ("program", "map", "link")}
        for _ in range(ROUNDS):
            fail()
        eventually(lambda: self.state() == before, lambda: "%s instead of %s" % (self.state(), before))
        for process in set(before["descriptors"]):
            self.assertTrue(os.path.exists("/proc/%d" % process), "a process of the daemon was replaced")
        # Others on this machine may load and drop what they like: only what is the daemon's counts.
        new = {(kind, number) for kind, numbers in ids.items() for number in set(bpf.ids(kind)) - set(numbers)}
        self.assertEqual(new & self.daemon.held(), set())

    def test_a_program_in_the_middle(self):
        def fail():
            with self.refused("LoadFailed", program="seventh", errnoName="EACCES"):
                self.load("twelve", programs={"seventh": {"enabled": True}})
        self.leaves_nothing(fail)

    def test_an_attachment_after_the_load(self):
        generic = {"interface": "lo", "xdpMode": "generic"}

        def fail():
            with self.refused("AttachFailed", program="twelfth"):
                self.load("twelve", programs={"first": {"attach": [generic]}, "twelfth": {"attach": [generic]}})
        self.leaves_nothing(fail)

    def test_a_pin_with_other_parameters(self):
        self.load("pinned_map")

        def fail():
            with self.refused("LoadFailed", stage="map"):
                self.load("pinned_map_other")
        self.leaves_nothing(fail)

    def test_a_map(self):
        def fail():
            with self.refused("LoadFailed", stage="map", map="counter"):
                self.load("twelve", maps={"counter": {"maxEntries": 0xffffffff}})
        self.leaves_nothing(fail)

    def test_a_relocation(self):
        def fail():
            with self.refused("LoadFailed"):
                self.load("missing_field")
        self.leaves_nothing(fail)

    def test_an_attachment_of_what_is_loaded(self):
        loaded = self.load("twelve", programs={"first": {"attach": [{"interface": "lo", "xdpMode": "generic"}]}})["object"]

        def fail():
            with self.refused("AttachFailed"):
                self.client.call("io.btfd.Attach", {"objectId": loaded["id"], "program": "second",
                                                    "target": {"interface": "lo", "xdpMode": "generic"}})
        self.leaves_nothing(fail)
