"""Programs that run before or after others."""
import socket
import struct
import unittest

import bpf
from attaching import AttachTest
from btfd_client import VarlinkError
from cgroup_test import CgroupTest
from harness import object_path
from network_test import InterfaceTest, send_to
from system import NetkitPair


class OrderTest:
    """Objects that are called by numbers, and note who runs. Subclasses say what is attached where."""
    program = None

    def setUp(self):
        super().setUp()
        reply = self.load("order", wantDescriptors=True)
        runs = next(m["fileDescriptor"] for m in reply["object"]["maps"] if m["name"] == "runs")
        self.runs = reply.descriptors[runs]
        for descriptor in reply.descriptors:
            if descriptor is not self.runs:
                descriptor.close()

    def add(self, name, **place):
        """Loads and attaches; the link."""
        with open(object_path("order"), "rb") as f:
            loaded = self.client.call("io.btfd.Load", {
                "objectFileDescriptor": 0, "variables": {"name": name}, "maps": {"runs": {"reuseFileDescriptor": 1}},
                "programs": {self.program: {"attach": [{**self.target(), **place}]}}}, [f, self.runs])
        program = next(p["kernelId"] for p in loaded["object"]["programs"] if p["name"] == self.program)
        return {**loaded["object"]["links"][0], "kernelProgramId": program}

    def order(self):
        bpf.map_update(self.runs, struct.pack("=I", 0), bytes(68))
        self.trigger()
        count, *names = struct.unpack("=17I", bpf.map_lookup(self.runs, struct.pack("=I", 0)))
        return names[:count]

    def check_order(self):
        first = self.add(1)
        second = self.add(2)
        self.assertEqual(self.order(), [1, 2])
        self.add(3, before={"linkId": second["id"]})
        self.assertEqual(self.order(), [1, 3, 2])
        self.add(4, after={"kernelLinkId": first["kernelId"]})
        self.assertEqual(self.order(), [1, 4, 3, 2])
        self.add(5, before={})
        self.add(6, after={})
        self.assertEqual(self.order(), [5, 1, 4, 3, 2, 6])

    def check_refusals(self):
        link = self.add(1)
        loaded = self.load("order")["object"]
        target = self.target()
        with self.refused("InvalidParameter", parameter="target.before.linkId"):
            self.attach(loaded, self.program, {**target, "before": {"linkId": 99999}})
        with self.refused("InvalidParameter", parameter="target.after.linkId"):
            self.attach(loaded, self.program, {**target, "after": {"linkId": link["id"], "kernelLinkId": 1}})
        with self.refused("InvalidParameter", parameter="target.after"):
            self.attach(loaded, self.program, {**target, "before": {}, "after": {}})
        with self.refused("InvalidParameter", parameter="target.after.kernelLinkId"):
            self.attach(loaded, self.program, {**target, "after": {"kernelLinkId": -1}})
        with self.refused("InvalidParameter", parameter="programs.%s.attach[0].before.linkId" % self.program):
            self.load("order", programs={self.program: {"attach": [{**target, "before": {"linkId": 99999}}]}})
        with self.refused("AttachFailed", errnoName="ENOENT"):
            self.attach(loaded, self.program, {**target, "after": {"kernelLinkId": 0x7fffffff}})


class TcxOrder(OrderTest, InterfaceTest):
    program = "on_packet"

    def setUp(self):
        super().setUp()
        if self.tc_kind() != "tcx":
            self.skipTest("this kernel has no tcx")

    def target(self):
        return {"interface": self.pair.name}

    def trigger(self):
        send_to(self.pair.peer_address, count=1)

    def test_order(self):
        self.check_order()

    def test_by_program(self):
        self.add(1)
        other = self.add(2)
        self.add(3, before={"kernelProgramId": other["kernelProgramId"]})
        self.assertEqual(self.order(), [1, 3, 2])

    def test_refusals(self):
        self.check_refusals()

    def test_is_not_for_filters(self):
        loaded = self.load("order")["object"]
        with self.refused("InvalidParameter", parameter="target.before"):
            self.attach(loaded, "on_packet", {**self.target(), "tcForm": "tc", "before": {}})
        with self.refused("InvalidParameter", parameter="target.priority"):
            self.attach(loaded, "on_packet", {**self.target(), "priority": 1, "before": {}})


class CgroupOrder(OrderTest, CgroupTest):
    program = "on_create"

    def setUp(self):
        super().setUp()
        try:
            link = self.add(1, before={})
        except VarlinkError as e:
            self.assertEqual((e.name, e.parameters["errnoName"]), ("io.btfd.AttachFailed", "EINVAL"))
            raise unittest.SkipTest("this kernel does not order the programs of cgroups") from e
        self.client.call("io.btfd.Detach", {"linkId": link["id"]})

    def target(self):
        return {"cgroup": self.path}

    def trigger(self):
        self.inside(lambda: socket.socket(socket.AF_INET).close())()

    def test_order(self):
        self.check_order()

    def test_refusals(self):
        self.check_refusals()


class Netkit(AttachTest):
    def setUp(self):
        super().setUp()
        self.pair = NetkitPair()
        try:
            self.pair.__enter__()
        except RuntimeError as e:
            raise unittest.SkipTest("this kernel has no netkit: %s" % e) from e
        self.addCleanup(self.pair.__exit__)

    def transmit(self):
        send_to(self.pair.peer_address)

    def receive(self):
        self.pair.in_peer(lambda: send_to(self.pair.address))

    def test_primary(self):
        self.runs_while_attached("netkit", "on_primary", "netkit", self.transmit, {"interface": self.pair.name})

    def test_peer(self):
        self.runs_while_attached("netkit", "on_peer", "netkit", self.receive, {"interface": self.pair.name})

    def test_by_direction(self):
        self.runs_while_attached("tc", "classify", "netkit", self.transmit,
                                 {"interface": self.pair.name, "direction": "primary"})

    def test_order(self):
        first, second = (self.load_with_counter("netkit") for _ in range(2))
        link = self.attach(first[0], "on_primary", {"interface": self.pair.name})["link"]
        self.attach(second[0], "on_primary", {"interface": self.pair.name, "before": {"linkId": link["id"]}})
        self.transmit()
        self.assertGreater(first[1](), 0)
        self.assertGreater(second[1](), 0)

    def test_elsewhere(self):
        loaded = self.load("netkit")["object"]
        with self.refused("AttachFailed", errnoName="EACCES") as refusal:
            self.attach(loaded, "on_peer", {"interface": self.pair.peer_name, "networkNamespace": self.pair.namespace})
        self.assertIn("by the primary", refusal.error.parameters["message"])
        with self.refused("AttachFailed", errnoName="ENXIO") as refusal:
            self.attach(loaded, "on_peer", {"interface": "lo"})
        self.assertIn("no netkit device", refusal.error.parameters["message"])
