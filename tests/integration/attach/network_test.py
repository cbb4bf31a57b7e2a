"""Programs that are attached to network interfaces, network namespaces and sockets. All of it happens in namespaces of the
test's own."""
import contextlib
import socket
import struct
import unittest

import bpf
from attaching import AttachTest
from harness import eventually
from system import VethPair, run


def send_to(address, port=9, count=3):
    """Sends datagrams that nobody waits for."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for _ in range(count):
            with contextlib.suppress(ConnectionRefusedError):  # of the one before
                s.sendto(b"hello", (address, port))


class InterfaceTest(AttachTest):
    def setUp(self):
        super().setUp()
        self.pair = VethPair()
        self.pair.__enter__()
        self.addCleanup(self.pair.__exit__)
        # Both sides have to have resolved each other's address, so that what is counted below are the datagrams. While the
        # pair is not up yet they are lost, and the next request for the address may be a second away.
        send_to(self.pair.peer_address)
        eventually(self.peer_is_known, "the peer's address is not resolved")

    def peer_is_known(self):
        return "lladdr" in run("ip", "neigh", "show", self.pair.peer_address, "dev", self.pair.name)

    def receive(self):
        """Something arrives at the interface."""
        self.pair.in_peer(lambda: send_to(self.pair.address))

    def transmit(self):
        """Something leaves by the interface."""
        send_to(self.pair.peer_address)

    def tc_kind(self):
        """What a program for tc becomes, if it is not told: it needs Linux 6.6 to be a link."""
        return "tcx" if bpf.has_tcx(socket.if_nametoindex(self.pair.name)) else "tc"


class Xdp(InterfaceTest):
    def test_runs_while_attached(self):
        link = self.runs_while_attached("xdp", "pass", "xdp", self.receive, {"interface": self.pair.name})
        self.assertIn(self.pair.name, link["target"])
        self.assertNotIn("xdp", run("ip", "link", "show", "dev", self.pair.name))

    def test_native(self):
        self.runs_while_attached("xdp", "pass", "xdp", self.receive, {"interface": self.pair.name, "xdpMode": "native"})

    def test_generic(self):
        loaded = self.load("xdp")["object"]
        self.attach(loaded, "pass", {"interface": self.pair.name, "xdpMode": "generic"})
        self.assertIn("xdpgeneric", run("ip", "link", "show", "dev", self.pair.name))
        self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})
        self.runs_while_attached("xdp", "pass", "xdp", self.receive, {"interface": self.pair.name, "xdpMode": "generic"})

    def test_attached_at_load(self):
        self.runs_when_attached_at_load("xdp", "pass", self.receive, {"interface": self.pair.name})

    def test_in_another_namespace(self):
        self.runs_while_attached("xdp", "pass", "xdp", self.transmit,
                                 {"interface": self.pair.peer_name, "networkNamespace": self.pair.namespace})

    def test_in_the_namespace_of_a_process(self):
        with self.pair.process() as pid:
            self.runs_while_attached("xdp", "pass", "xdp", self.transmit,
                                     {"interface": self.pair.peer_name, "networkNamespacePid": pid})

    def test_does_not_leave_the_worker_there(self):
        """What is attached next, by whichever worker, is in the daemon's own namespace again."""
        loaded = self.load("xdp")["object"]
        for _ in range(8):
            link = self.attach(loaded, "pass", {"interface": self.pair.peer_name,
                                                "networkNamespace": self.pair.namespace})["link"]
            self.client.call("io.btfd.Detach", {"linkId": link["id"]})
            with self.refused("InvalidParameter", parameter="target.interface"):
                self.attach(loaded, "pass", {"interface": self.pair.peer_name})

    def test_twice_is_refused_by_the_kernel(self):
        loaded = self.load("xdp")["object"]
        self.attach(loaded, "pass", {"interface": self.pair.name})
        with self.refused("AttachFailed", program="pass") as refusal:
            self.attach(loaded, "pass", {"interface": self.pair.name})
        self.assertIn("another XDP program is attached", refusal.error.parameters["message"])
        self.assertIn("it is program %d 'pass'" % loaded["programs"][0]["kernelId"], refusal.error.parameters["message"])

    def test_offload_is_for_few_drivers(self):
        loaded = self.load("xdp")["object"]
        with self.refused("AttachFailed", program="pass") as refusal:
            self.attach(loaded, "pass", {"interface": self.pair.name, "xdpMode": "offload"})
        self.assertIn("xdpMode native or generic", refusal.error.parameters["message"])

    def test_targets_that_do_not_exist(self):
        loaded = self.load("xdp")["object"]
        for target, field in (({"interface": "no-such-one"}, "interface"), ({"interface": ""}, "interface"),
                              ({"interface": "x" * 1000}, "interface"),
                              ({"interface": self.pair.name, "xdpMode": "fast"}, "xdpMode"),
                              ({"interface": self.pair.name, "networkNamespace": "/run/netns/none"}, "networkNamespace"),
                              ({"interface": self.pair.name, "networkNamespace": "/etc/passwd"}, "networkNamespace"),
                              ({"interface": self.pair.name, "networkNamespace": "/proc/self/ns/mnt"}, "networkNamespace")):
            with self.subTest(target=target), self.refused("InvalidParameter", parameter="target." + field):
                self.attach(loaded, "pass", target)


class Tcx(InterfaceTest):
    def test_ingress(self):
        self.runs_while_attached("tcx", "on_ingress", self.tc_kind(), self.receive, {"interface": self.pair.name})

    def test_egress(self):
        self.runs_while_attached("tcx", "on_egress", self.tc_kind(), self.transmit, {"interface": self.pair.name})

    def test_attached_at_load(self):
        self.runs_when_attached_at_load("tcx", "on_egress", self.transmit, {"interface": self.pair.name})

    def test_in_another_namespace(self):
        self.runs_while_attached("tcx", "on_ingress", self.tc_kind(), self.transmit,
                                 {"interface": self.pair.peer_name, "networkNamespace": self.pair.namespace})

    def test_several(self):
        loads = [self.load_with_counter("tcx") for _ in range(3)]
        for loaded, _ in loads:
            self.attach(loaded, "on_egress", {"interface": self.pair.name})
        self.transmit()
        for _, count in loads:
            self.assertGreater(count(), 0)


class TcForm(InterfaceTest):
    def test_tcx(self):
        if self.tc_kind() == "tcx":
            self.runs_while_attached("tcx", "on_egress", "tcx", self.transmit,
                                     {"interface": self.pair.name, "tcForm": "tcx"})
            return
        loaded = self.load("tcx")["object"]
        with self.refused("AttachFailed", errnoName="EINVAL") as refusal:
            self.attach(loaded, "on_egress", {"interface": self.pair.name, "tcForm": "tcx"})
        self.assertIn("no tcx", refusal.error.parameters["message"])


class Tc(InterfaceTest):
    """SEC("tc") says no direction: the request does."""

    def test_ingress(self):
        self.runs_while_attached("tc", "classify", self.tc_kind(), self.receive,
                                 {"interface": self.pair.name, "direction": "ingress"})

    def test_egress(self):
        self.runs_while_attached("tc", "classify", self.tc_kind(), self.transmit,
                                 {"interface": self.pair.name, "direction": "egress"})

    def test_without_direction(self):
        loaded = self.load("tc")["object"]
        with self.refused("InvalidParameter", parameter="target.direction"):
            self.attach(loaded, "classify", {"interface": self.pair.name})
        with self.refused("InvalidParameter", parameter="target.direction"):
            self.attach(loaded, "classify", {"interface": self.pair.name, "direction": "sideways"})


class SkLookup(AttachTest):
    def look_up(self):
        send_to("127.0.0.1")

    def test_in_the_daemons_namespace(self):
        self.runs_while_attached("sk_lookup", "on_lookup", "netns", self.look_up)

    def test_attached_at_load(self):
        self.runs_when_attached_at_load("sk_lookup", "on_lookup", self.look_up)

    def test_in_a_namespace_by_path(self):
        with VethPair() as pair:
            self.runs_while_attached("sk_lookup", "on_lookup", "netns", lambda: pair.in_peer(self.look_up),
                                     {"networkNamespace": pair.namespace})

    def test_in_a_namespace_by_descriptor(self):
        with VethPair() as pair, open(pair.namespace, "rb") as namespace:
            self.runs_while_attached("sk_lookup", "on_lookup", "netns", lambda: pair.in_peer(self.look_up),
                                     {"targetFileDescriptor": 0}, [namespace])

    def test_in_a_namespace_by_name(self):
        with VethPair() as pair:
            self.runs_while_attached("sk_lookup", "on_lookup", "netns", lambda: pair.in_peer(self.look_up),
                                     {"networkNamespace": pair.namespace_name})

    def test_in_the_namespace_of_a_process(self):
        with VethPair() as pair, pair.process() as pid:
            self.runs_while_attached("sk_lookup", "on_lookup", "netns", lambda: pair.in_peer(self.look_up),
                                     {"networkNamespacePid": pid})

    def test_namespaces_that_are_none(self):
        loaded = self.load("sk_lookup")["object"]
        with self.refused("InvalidParameter", parameter="target.networkNamespacePid"):
            self.attach(loaded, "on_lookup", {"networkNamespacePid": (1 << 22) + 1})
        with self.refused("InvalidParameter", parameter="target.networkNamespace"):
            self.attach(loaded, "on_lookup", {"networkNamespacePid": 1, "networkNamespace": "/proc/self/ns/net"})
        with self.refused("InvalidParameter", parameter="target.networkNamespace"):
            self.attach(loaded, "on_lookup", {"networkNamespace": "/run/netns/none"})
        with self.refused(("InvalidParameter", "AttachFailed")):
            self.attach(loaded, "on_lookup", {"networkNamespace": "/etc/passwd"})
        with open("/dev/null", "rb") as null, self.refused(("InvalidParameter", "AttachFailed")):
            self.attach(loaded, "on_lookup", {"targetFileDescriptor": 0}, [null])


class FlowDissector(AttachTest):
    def dissect(self):
        """A packet without a header that is known yet: the kernel has it dissected to find it."""
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
            s.bind(("lo", 0))
            ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 64, 17, 0, b"\x7f\0\0\1", b"\x7f\0\0\1")
            s.send(b"\0" * 12 + b"\x08\0" + ip + struct.pack("!HHHH", 9, 9, 8, 0))

    def test_in_the_daemons_namespace(self):
        self.runs_while_attached("flow_dissector", "dissect", "netns", self.dissect)

    def test_in_a_namespace_by_path(self):
        with VethPair() as pair:
            self.runs_while_attached("flow_dissector", "dissect", "netns", lambda: pair.in_peer(self.dissect),
                                     {"networkNamespace": pair.namespace})

    def test_attached_at_load(self):
        self.runs_when_attached_at_load("flow_dissector", "dissect", self.dissect)


class SocketFilter(AttachTest):
    def setUp(self):
        super().setUp()
        self.receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(self.receiver.close)
        self.receiver.bind(("127.0.0.1", 0))
        self.receiver.settimeout(5)

    def deliver(self):
        send_to(*self.receiver.getsockname(), count=1)
        self.assertEqual(self.receiver.recv(16), b"hello")

    def test_runs_while_attached(self):
        self.runs_while_attached("socket_filter", "keep", "socket_filter", self.deliver,
                                 {"targetFileDescriptor": 0}, [self.receiver])

    def test_attached_at_load(self):
        self.runs_when_attached_at_load("socket_filter", "keep", self.deliver, {"targetFileDescriptor": 1}, [self.receiver])

    def test_the_client_may_close_its_own(self):
        loaded = self.load("socket_filter")["object"]
        link = self.attach(loaded, "keep", {"targetFileDescriptor": 0}, [self.receiver])["link"]
        self.receiver.close()
        self.client.call("io.btfd.Detach", {"linkId": link["id"]})

    def test_what_is_no_socket(self):
        loaded = self.load("socket_filter")["object"]
        with open("/dev/null", "rb") as null, self.refused(("AttachFailed", "InvalidParameter")):
            self.attach(loaded, "keep", {"targetFileDescriptor": 0}, [null])
        with self.refused("InvalidParameter", parameter="target.targetFileDescriptor"):
            self.attach(loaded, "keep")


class SockmapTest(AttachTest):
    def setUp(self):
        super().setUp()
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        self.near = socket.create_connection(listener.getsockname())
        self.addCleanup(self.near.close)
        self.far, _ = listener.accept()
        self.addCleanup(self.far.close)
        self.far.settimeout(5)

    def put_into(self, reply, the_socket):
        sockets = next(m for m in reply["object"]["maps"] if m["name"] == "sockets")
        bpf.map_update(reply.descriptors[sockets["fileDescriptor"]], struct.pack("=I", 0),
                       struct.pack("=Q", the_socket.fileno()))

    def send(self):
        self.near.sendall(b"hello")
        self.assertEqual(self.far.recv(16), b"hello")

    def counter(self, reply):
        found = next(m for m in reply["object"]["maps"] if m["name"] == "counter")
        return bpf.counter(reply.descriptors[found["fileDescriptor"]])

    def new_connection(self):
        """In place of the one before: what a map had a program for keeps it."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.near.close()
        self.far.close()
        self.near = socket.create_connection(listener.getsockname())
        self.far, _ = listener.accept()
        listener.close()
        self.far.settimeout(5)


class SkMsg(SockmapTest):
    def test_runs_while_attached(self):
        reply = self.load("sk_msg", wantDescriptors=True)
        loaded = reply["object"]
        link = self.attach(loaded, "on_message", {"map": "sockets"})["link"]
        self.assertEqual(link["kind"], "sockmap")
        self.send()
        self.assertEqual(self.counter(reply), 0)
        self.put_into(reply, self.near)
        self.send()
        self.assertGreater(self.counter(reply), 0)
        self.client.call("io.btfd.Detach", {"linkId": link["id"]})
        self.new_connection()
        self.put_into(reply, self.near)
        before = self.counter(reply)
        self.send()
        self.assertEqual(self.counter(reply), before)

    def test_maps_that_do_not_exist(self):
        loaded = self.load("sk_msg")["object"]
        with self.refused("NoSuchName", kind="map", name="socket", nearMisses=["sockets"]):
            self.attach(loaded, "on_message", {"map": "socket"})
        with self.refused("InvalidParameter", parameter="target.map"):
            self.attach(loaded, "on_message")
        with self.refused(("AttachFailed", "InvalidParameter")):
            self.attach(loaded, "on_message", {"map": "counter"})


@unittest.skipIf(bpf.kernel_version() < (5, 15), "Linux 5.10 locks up (seen with 5.10.223, in the middle of this)")
class SkSkb(SockmapTest):
    def test_runs_while_attached(self):
        reply = self.load("sk_skb", wantDescriptors=True)
        loaded = reply["object"]
        parse = self.attach(loaded, "parse", {"map": "sockets"})["link"]
        judge = self.attach(loaded, "judge", {"map": "sockets"})["link"]
        self.assertEqual((parse["kind"], judge["kind"]), ("sockmap", "sockmap"))
        self.put_into(reply, self.far)
        self.send()
        self.assertGreater(self.counter(reply), 0)
        for link in (judge, parse):
            self.client.call("io.btfd.Detach", {"linkId": link["id"]})
        self.new_connection()
        self.put_into(reply, self.far)
        before = self.counter(reply)
        self.send()
        self.assertEqual(self.counter(reply), before)
