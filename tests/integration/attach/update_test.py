"""Links that run another program from one packet to the next."""
import os
import signal
import socket

import bpf
from attaching import AttachTest
from btfd_client import Client, VarlinkError
from cgroup_test import talk_to_itself
from harness import GROUP_ID, MEMBER_UID, eventually, object_path
from network_test import InterfaceTest, send_to
from system import CLONE_NEWNET, as_user, cgroup, in_cgroup, run, set_namespace, tool


class UpdateTest(InterfaceTest):
    def update(self, link, loaded, program, client=None):
        return (client or self.client).call("io.btfd.Update", {"linkId": link["id"], "objectId": loaded["id"],
                                                               "program": program})["link"]

    def links_of(self, loaded):
        return self.client.call("io.btfd.Describe", {"objectId": loaded["id"]})["object"]["links"]

    def changes_hands(self, name, program, trigger, target=None):
        """Attached, updated, the old object unloaded, the new one unloaded."""
        (old, old_count), (new, new_count) = self.load_with_counter(name), self.load_with_counter(name)
        link = self.attach(old, program, target)["link"]
        trigger()
        self.assertGreater(old_count(), 0)
        updated = self.update(link, new, program)
        self.assertEqual(updated, link)
        self.assertEqual((self.links_of(old), self.links_of(new)), ([], [updated]))
        before = old_count()
        trigger()
        self.assertEqual(old_count(), before, "the old program still runs")
        self.assertGreater(new_count(), 0, "the new program does not run")
        self.client.call("io.btfd.Unload", {"objectId": old["id"]})
        before = new_count()
        trigger()
        self.assertGreater(new_count(), before, "it ended with the old object")
        self.client.call("io.btfd.Unload", {"objectId": new["id"]})
        self.assertEqual(self.client.call("io.btfd.List")["objects"], [])


class Update(UpdateTest):
    def test_xdp(self):
        self.changes_hands("xdp", "pass", self.receive, {"interface": self.pair.name})

    def test_tc(self):
        self.changes_hands("tc", "classify", self.receive, {"interface": self.pair.name, "direction": "ingress"})

    def test_tc_filter(self):
        self.changes_hands("tc", "classify", self.receive,
                           {"interface": self.pair.name, "direction": "ingress", "tcForm": "tc"})

    def test_cgroup(self):
        with cgroup() as path:
            self.changes_hands("cgroup_skb", "on_egress", lambda: in_cgroup(path, talk_to_itself), {"cgroup": path})

    def test_network_namespace(self):
        self.changes_hands("sk_lookup", "on_lookup", lambda: send_to("127.0.0.1"))

    def test_socket_filter(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
            receiver.bind(("127.0.0.1", 0))
            (old, old_count), (new, new_count) = (self.load_with_counter("socket_filter") for _ in range(2))
            link = self.attach(old, "keep", {"targetFileDescriptor": 0}, [receiver])["link"]
            self.update(link, new, "keep")
            send_to(*receiver.getsockname(), count=1)
            self.assertEqual((old_count(), new_count()), (0, 1))
            self.client.call("io.btfd.Detach", {"linkId": link["id"]})

    def test_to_another_program_of_the_same_object(self):
        loaded = self.load("tcx")["object"]
        link = self.attach(loaded, "on_ingress", {"interface": self.pair.name})["link"]
        updated = self.update(link, loaded, "on_egress")
        self.assertEqual(updated, {**link, "program": "on_egress"})
        self.assertEqual(self.links_of(loaded), [updated])

    def test_ends_with_the_session_of_the_new_object(self):
        loaded, count = self.load_with_counter("xdp")
        link = self.attach(loaded, "pass", {"interface": self.pair.name})["link"]
        other = self.connect()
        self.update(link, self.load("xdp", other)["object"], "pass", other)
        other.close()
        eventually(lambda: len(self.client.call("io.btfd.List")["objects"]) == 1, "the session does not end")
        eventually(lambda: link["kernelId"] not in bpf.ids("link"), "the link stays")
        before = count()  # the kernel's own packets, before the update
        self.receive()
        self.assertEqual(count(), before)

    def test_what_does_not_fit(self):
        loaded, tracing = self.load("xdp")["object"], self.load("raw_tracepoint")["object"]
        link = self.attach(loaded, "pass", {"interface": self.pair.name})["link"]
        with self.refused("NoSuchName", kind="program", nearMisses=["pass"]):
            self.update(link, loaded, "pas")
        with self.refused("NoSuchLink"):
            self.update({"id": 99999}, loaded, "pass")
        with self.refused("NoSuchObject"):
            self.update(link, {"id": 99999}, "pass")
        program = tracing["programs"][0]["name"]
        with self.refused("AttachFailed", errnoName="EINVAL") as refusal:
            self.update(link, tracing, program)
        self.assertIn("of the same type", refusal.error.parameters["message"])
        probe = self.attach(tracing, program)["link"]
        with self.refused("AttachFailed") as refusal:
            self.update(probe, tracing, program)
        self.assertIn("updates no links of kind raw_tracepoint", refusal.error.parameters["message"])
        self.assertEqual(self.links_of(loaded), [link])
        self.assertEqual(self.links_of(tracing), [probe])

    def test_a_filter_that_others_have_removed(self):
        if not tool("tc"):
            self.skipTest("needs tc, of iproute2")
        loaded = self.load("tc")["object"]
        link = self.attach(loaded, "classify", {"interface": self.pair.name, "direction": "ingress", "tcForm": "tc"})["link"]
        run("tc", "qdisc", "del", "dev", self.pair.name, "clsact")
        with self.refused("AttachFailed", errnoName="ENOENT"):
            self.update(link, loaded, "classify")


class UpdateWithoutGap(UpdateTest):
    """Packets go to and fro all the time, one after the other, so that none is dropped: each must be seen by one program."""

    def echo(self):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind((self.pair.address, 0))
        child = os.fork()
        if child == 0:
            try:
                while True:
                    server.sendto(*server.recvfrom(16))
            finally:
                os._exit(1)
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(os.kill, child, signal.SIGKILL)
        address = server.getsockname()
        server.close()
        return address

    def ping(self, address, count):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                set_namespace(self.pair.namespace, CLONE_NEWNET)
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                    s.settimeout(20)
                    for _ in range(count):
                        s.sendto(b"hello", address)
                        s.recv(16)
                status = 0
            finally:
                os._exit(status)
        return child

    def without_gap(self, name, program, target):
        packets, updates = 2000, 0
        loads = [self.load_with_counter(name) for _ in range(2)]
        link = self.attach(loads[0][0], program, target)["link"]
        child = self.ping(self.echo(), packets)
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
            updates += 1
            link = self.update(link, loads[updates % 2][0], program)
        self.assertEqual(status, 0, "packets were lost")
        counts = [count() for _, count in loads]
        print("\n    %d updates, %s packets" % (updates, counts))
        self.assertGreater(updates, 1)
        self.assertGreaterEqual(sum(counts), packets)

    def test_xdp(self):
        self.without_gap("xdp", "pass", {"interface": self.pair.name})

    def test_tc(self):
        self.without_gap("tc", "classify", {"interface": self.pair.name, "direction": "ingress"})

    def test_tc_filter(self):
        self.without_gap("tc", "classify", {"interface": self.pair.name, "direction": "ingress", "tcForm": "tc"})


class UpdateOwners(AttachTest):
    def as_member(self, function):
        def call():
            with Client(self.daemon.socket_path) as client:
                try:
                    function(client)
                except VarlinkError as e:
                    return e.name
            return None
        return as_user(MEMBER_UID, 65534, [GROUP_ID], call)

    def test_both_have_to_be_the_callers(self):
        theirs = self.load("sk_lookup")["object"]
        link = self.attach(theirs, "on_lookup")["link"]
        path = object_path("sk_lookup")

        def load(client, **parameters):
            with open(path, "rb") as f:
                return client.call("io.btfd.Load", {"objectFileDescriptor": 0, **parameters}, [f])["object"]

        def take_link(client):
            client.call("io.btfd.Update", {"linkId": link["id"], "objectId": load(client)["id"], "program": "on_lookup"})

        def take_program(client):
            own = load(client, programs={"on_lookup": {"attach": [{}]}})["links"][0]
            client.call("io.btfd.Update", {"linkId": own["id"], "objectId": theirs["id"], "program": "on_lookup"})

        for function in (take_link, take_program):
            self.assertEqual(self.as_member(function), "io.btfd.NotOwner")
        self.assertEqual(self.client.call("io.btfd.Describe", {"objectId": theirs["id"]})["object"]["links"], [link])
