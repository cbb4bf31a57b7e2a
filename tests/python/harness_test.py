"""Tests of the tests' own tools: what the harness claims to notice, it notices."""
import os
import struct
import tempfile
import time
import unittest

import bpf
import harness
import system
from btfd_client import Client, ConnectionLost, VarlinkError
from harness import Daemon, eventually

STAND_IN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stand_in.py")


def stand_in(*faults):
    return Daemon(environment={"STAND_IN": ",".join(faults)}, binary=STAND_IN)


@unittest.skipUnless(os.geteuid() == 0, "needs root, to load BPF programs")
class HarnessNotices(unittest.TestCase):
    def change(self, name, value):
        """Another value for a variable of the harness, for this test."""
        self.addCleanup(setattr, harness, name, getattr(harness, name))
        setattr(harness, name, value)

    def check(self, fault, says):
        self.change("GRACE", 0.5)
        daemon = stand_in(fault).start()
        if fault == "ignores-sigterm":
            self.change("SLOW", 0.05)
        with self.assertRaisesRegex(AssertionError, says):
            daemon.stop()
        self.assertFalse(os.path.exists(daemon.bpffs))
        self.assertFalse(os.path.exists(daemon.directory))
        # Those that were killed are still there until their parent has noticed.
        eventually(lambda: not harness.processes_marked(daemon.mark), "processes are left")

    def test_nothing_where_nothing_is_wrong(self):
        daemon = stand_in().start()
        self.assertEqual(len(daemon.held()), 1)
        daemon.stop()

    def test_pins_and_what_they_hold(self):
        self.check("keeps-pin", r"left in the kernel: map .*pins are left: .*/kept")

    def test_processes(self):
        self.check("keeps-child", r"processes are left: [0-9]+ \(sleep\)")

    def test_the_socket_file(self):
        self.check("keeps-socket", "socket file is left")

    def test_the_exit_status(self):
        self.check("bad-status", "ended with status 3")

    def test_that_it_does_not_stop(self):
        self.check("ignores-sigterm", "did not stop within")

    def test_reports_of_sanitizers(self):
        self.check("sanitizer-report", "ERROR: AddressSanitizer")

    def test_a_start_that_fails_and_shows_the_log(self):
        daemon = stand_in("dies-at-start")
        with self.assertRaisesRegex(AssertionError, "status 1 before it was ready.*does not feel like it"):
            try:
                daemon.start()
            except AssertionError as e:
                raise AssertionError(str(e).replace("\n", " ")) from None
        self.assertFalse(os.path.exists(daemon.directory))

    def test_what_is_held_after_a_load(self):
        daemon = stand_in().start()
        self.addCleanup(daemon.stop)
        self.change("GRACE", 0.2)
        with self.assertRaisesRegex(AssertionError, "left in the kernel: map .* held by the daemon"):
            daemon.assert_idle()

    def test_but_not_what_others_load_meanwhile(self):
        daemon = stand_in().start()
        other = bpf.map_create(bpf.MAP_TYPE_ARRAY, 4, 8, 1)
        self.addCleanup(os.close, other)
        daemon.stop()

    def test_failures_of_a_bystander(self):
        daemon = stand_in().start()  # its answer to Load has no object
        self.addCleanup(daemon.stop)
        with self.assertRaisesRegex(AssertionError, "another client was disturbed: .*KeyError"):
            with tempfile.NamedTemporaryFile(suffix=".o") as f:
                self.change("BPF_DIR", os.path.dirname(f.name))
                with harness.Bystander(daemon, test_object=os.path.basename(f.name)[:-2]):
                    time.sleep(0.2)

    def test_exceptions_in_children(self):
        def fail():
            raise ValueError("on purpose")
        with self.assertRaisesRegex(AssertionError, "ValueError: on purpose"):
            system.in_child(fail)
        self.assertEqual(system.in_child(lambda: {"a": [1]}), {"a": [1]})

    def test_who_a_child_is(self):
        self.assertEqual(system.as_user(harness.MEMBER_UID, 65534, [harness.GROUP_ID], lambda: list(os.getresuid())
                                        + os.getgroups()), [harness.MEMBER_UID] * 3 + [harness.GROUP_ID])


@unittest.skipUnless(os.geteuid() == 0, "needs root, to load BPF programs")
class ClientReceives(unittest.TestCase):
    def setUp(self):
        daemon = stand_in().start()
        self.addCleanup(daemon.stop)
        self.client = Client(daemon.socket_path, timeout=10)
        self.addCleanup(self.client.close)

    def test_each_descriptor_with_its_own_message(self):
        counts = [0, 3, 0, 1, 253, 2, 0, 0, 1] * 10
        self.client.send("test.Pipes", {"counts": counts}, more=True)
        time.sleep(0.2)  # so that the replies are there before any is read
        for i, count in enumerate(counts):
            reply = self.client.receive()
            self.assertEqual((reply["count"], len(reply.descriptors), reply.continues), (count, count, True))
            for k, descriptor in enumerate(reply.descriptors):
                self.assertEqual(os.read(descriptor.fileno(), 16), b"%d" % (100 * i + k))
        self.assertFalse(self.client.receive().continues)

    def test_and_closes_them(self):
        before = len(os.listdir("/proc/self/fd"))
        for reply in self.client.stream("test.Pipes", {"counts": [5, 5]}):
            pass
        del reply
        eventually(lambda: len(os.listdir("/proc/self/fd")) == before, "descriptors stay open")

    def test_errors(self):
        with self.assertRaises(VarlinkError) as raised:
            self.client.call("test.Fail")
        self.assertEqual((raised.exception.name, raised.exception.parameters), ("test.Failed", {"why": "asked to"}))

    def test_the_end_of_the_connection(self):
        with self.assertRaises(ConnectionLost):
            self.client.call("test.HalfAReply")
        self.assertTrue(self.client.at_end())

    def test_no_reply(self):
        with self.assertRaises(TimeoutError):
            self.client.receive(timeout=0.1)
        self.assertFalse(self.client.at_end(timeout=0.1))
        self.assertEqual(self.client.call("any.Method")["method"], "any.Method")


@unittest.skipUnless(os.geteuid() == 0, "needs root, for maps")
class Bpf(unittest.TestCase):
    def test_maps(self):
        descriptor = bpf.map_create(bpf.MAP_TYPE_HASH, 4, 8, 3)
        self.addCleanup(os.close, descriptor)
        info = bpf.map_info(descriptor)
        self.assertEqual((info["key_size"], info["value_size"], info["max_entries"]), (4, 8, 3))
        self.assertIn(info["id"], bpf.ids("map"))
        self.assertIsNone(bpf.map_lookup(descriptor, b"key."))
        bpf.map_update(descriptor, b"key.", struct.pack("=Q", 9))
        self.assertEqual(bpf.map_lookup(descriptor, b"key."), struct.pack("=Q", 9))
