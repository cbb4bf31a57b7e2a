"""All hooks of cgroups that are called for sockets, each with a call that the kernel has to ask it about."""
import contextlib
import socket

from cgroup_test import CgroupTest

FAMILIES = {"4": (socket.AF_INET, ("127.0.0.1", 0)), "6": (socket.AF_INET6, ("::1", 0)), "_unix": (socket.AF_UNIX, "")}


@contextlib.contextmanager
def bound(family, kind=socket.SOCK_DGRAM):
    """A socket that has an address."""
    number, address = FAMILIES[family]
    with socket.socket(number, kind) as s:
        s.bind(address)  # "" of Unix sockets: the kernel chooses an abstract name
        yield s


def bind(family):
    with bound(family):
        pass


def connect(family):
    with bound(family) as peer, socket.socket(peer.family, socket.SOCK_DGRAM) as s:
        s.connect(peer.getsockname())


def send(family):
    with bound(family) as peer, socket.socket(peer.family, socket.SOCK_DGRAM) as s:
        s.sendto(b"hello", peer.getsockname())


def receive(family):
    with bound(family) as s:
        s.sendto(b"hello", s.getsockname())
        s.settimeout(20)
        s.recvfrom(16)


def peer_name(family):
    with bound(family) as peer, socket.socket(peer.family, socket.SOCK_DGRAM) as s:
        s.connect(peer.getsockname())
        s.getpeername()


def own_name(family):
    with bound(family) as s:
        s.getsockname()


def create():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()


def get_option():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)


def set_option():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def connect_tcp():
    with bound("4", socket.SOCK_STREAM) as listener:
        listener.listen()
        socket.create_connection(listener.getsockname()).close()


HOOKS = {"bind": (bind, "4 6"), "connect": (connect, "4 6 _unix"), "sendmsg": (send, "4 6 _unix"),
         "recvmsg": (receive, "4 6 _unix"), "getpeername": (peer_name, "4 6 _unix"),
         "getsockname": (own_name, "4 6 _unix"), "post_bind": (bind, "4 6")}
TRIGGERS = {hook + family: lambda trigger=trigger, family=family: trigger(family)
            for hook, (trigger, families) in HOOKS.items() for family in families.split()}
TRIGGERS.update(sock_create=create, sock_release=create, getsockopt=get_option, setsockopt=set_option, sock_ops=connect_tcp)


class CgroupSocketHooks(CgroupTest):
    def runs(self, program):
        trigger = self.inside(TRIGGERS[program])
        with self.skipped_where_lacking():
            loaded, count = self.load_with_counter("cgroup_all", programs={program: {"enabled": True}})
            link = self.attach(loaded, program, {"cgroup": self.path})["link"]
        self.assertEqual((link["program"], link["kind"]), (program, "cgroup"))
        TRIGGERS[program]()  # this process is not in the cgroup
        self.assertEqual(count(), 0)
        trigger()
        self.assertGreater(count(), 0, "it did not run")
        self.client.call("io.btfd.Detach", {"linkId": link["id"]})
        before = count()
        trigger()
        self.assertEqual(count(), before, "it ran after it was detached")


for _program in TRIGGERS:
    setattr(CgroupSocketHooks, "test_" + _program, lambda self, program=_program: self.runs(program))
