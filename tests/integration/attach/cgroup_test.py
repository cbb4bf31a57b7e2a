"""Programs that are attached to a cgroup."""
import os
import socket

from attaching import AttachTest
from system import cgroup, in_cgroup


class CgroupTest(AttachTest):
    def setUp(self):
        super().setUp()
        context = cgroup()
        self.path = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def inside(self, function):
        return lambda: in_cgroup(self.path, function)

    def lives(self, name, program, function):
        """Attached by path, by descriptor and at load, it runs for processes in the cgroup; for others it doesn't."""
        trigger = self.inside(function)
        self.runs_while_attached(name, program, "cgroup", trigger, {"cgroup": self.path})
        directory = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, directory)
        self.runs_while_attached(name, program, "cgroup", trigger, {"targetFileDescriptor": 0}, [directory])
        self.runs_when_attached_at_load(name, program, trigger, {"cgroup": self.path})
        loaded, count = self.load_with_counter(name)
        self.attach(loaded, program, {"cgroup": self.path})
        function()  # this process is not in the cgroup
        self.assertEqual(count(), 0)


def talk_to_itself():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        s.sendto(b"hello", s.getsockname())
        s.recv(16)


class CgroupSkb(CgroupTest):
    def test_nowhere(self):
        loaded = self.load("cgroup_skb")["object"]
        with self.refused("InvalidParameter", parameter="target.cgroup") as refusal:
            self.attach(loaded, "on_ingress")
        self.assertIn("needs a cgroup, as path or descriptor", refusal.error.parameters["reason"])

    def test_ingress(self):
        self.lives("cgroup_skb", "on_ingress", talk_to_itself)

    def test_egress(self):
        self.lives("cgroup_skb", "on_egress", talk_to_itself)


class CgroupSock(CgroupTest):
    def test_create(self):
        self.lives("cgroup_sock", "on_create", lambda: socket.socket(socket.AF_INET).close())


class CgroupConnect(CgroupTest):
    def test_connect4(self):
        def connect():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.connect(("127.0.0.1", 9))
        self.lives("cgroup_connect4", "on_connect", connect)


class CgroupSysctl(CgroupTest):
    def test_read(self):
        def read():
            with open("/proc/sys/kernel/ostype", "rb") as f:
                f.read()
        self.lives("cgroup_sysctl", "on_sysctl", read)


class CgroupDevice(CgroupTest):
    def test_open(self):
        self.lives("cgroup_device", "on_device", lambda: open("/dev/null", "rb").close())


class CgroupTargets(CgroupTest):
    def test_that_do_not_exist(self):
        loaded = self.load("cgroup_sock")["object"]
        for path in ("/no/such/cgroup", "/etc/passwd", ""):
            with self.subTest(path=path), self.refused("InvalidParameter", parameter="target.cgroup"):
                self.attach(loaded, "on_create", {"cgroup": path})
        with self.refused(("InvalidParameter", "AttachFailed")):
            self.attach(loaded, "on_create", {"cgroup": "/tmp"})
        with self.refused("InvalidParameter"):
            self.attach(loaded, "on_create")

    def test_several(self):
        loads = [self.load_with_counter("cgroup_sock") for _ in range(3)]
        for loaded, _ in loads:
            self.attach(loaded, "on_create", {"cgroup": self.path})
        self.inside(lambda: socket.socket(socket.AF_INET).close())()
        for _, count in loads:
            self.assertGreater(count(), 0)
