"""Descriptors whose close(2) blocks, for as long as their sender likes: nobody else has to wait for that.

The last close of a TCP socket that lingers waits for a peer that does not read. Each close of a file on FUSE waits for the
answer to FLUSH, in a state that not even SIGKILL ends.
"""
import contextlib
import ctypes
import os
import select
import signal
import socket
import struct
import unittest

from btfd_client import Client
from harness import SLOW, Bystander, Daemon, DaemonTest, eventually, object_path

FOREVER = 3600


def lingering(test):
    """A socket whose close blocks until the end of the test."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        peer, _ = listener.accept()
    test.addCleanup(peer.close)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, FOREVER))
    near.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            near.send(bytes(65536))
    return near


def send_the_last(test, client, data, before=()):
    """Sends data, at least two bytes, with a lingering socket of which only the daemon has a descriptor in the end."""
    near = lingering(test)
    client.send_raw(data[:1], [*before, near])
    near.close()  # not the last one: it is on its way, or there
    client.send_raw(data[1:])


class Lingering(DaemonTest):
    """Another client pings and loads all the time, and does not wait."""
    config = {"workers": {"count": 2}}

    def others_do_not_wait(self):
        with Bystander(self.daemon) as others:
            pass
        self.assertGreater(others.rounds, 0)
        self.client.call("io.btfd.List")

    def test_of_a_call_that_takes_none(self):
        client = self.connect()
        send_the_last(self, client, b'{"method":"io.btfd.List"}\0')
        with self.refused("InvalidParameter", parameter="fileDescriptors"):
            client.receive()
        self.others_do_not_wait()

    def test_of_half_a_message(self):
        client = self.connect()
        send_the_last(self, client, b'{"met')
        client.close()
        self.others_do_not_wait()

    def test_of_what_is_no_message(self):
        client = self.connect()
        send_the_last(self, client, b"garbage\0")
        self.assertTrue(client.at_end())
        self.others_do_not_wait()

    def test_unread_when_the_connection_ends(self):
        client = self.connect()
        client.send("io.btfd.Monitor", {}, more=True)
        client.receive()
        send_the_last(self, client, b'{"method":"io.btfd.List"}\0')
        client.close()
        self.others_do_not_wait()

    def test_beside_an_object(self):
        for name in ("no_btf_needed", "tp_btf"):
            for _ in range(4):
                client = self.connect()
                with open(object_path(name), "rb") as f:
                    send_the_last(self, client, b'{"method":"io.btfd.Load","parameters":{"objectFileDescriptor":0}}\0',
                                  [f])
                client.receive()
        self.others_do_not_wait()

    def filtered(self):
        """A client with a filter on a lingering socket, and the object's id."""
        client = self.connect()
        with open(object_path("socket_filter"), "rb") as f:
            send_the_last(self, client, b'{"method":"io.btfd.Load","parameters":{"objectFileDescriptor":0,"programs":'
                                        b'{"keep":{"attach":[{"targetFileDescriptor":1}]}}}}\0', [f])
        return client, client.receive()["object"]["id"]

    def test_of_socket_filters_that_are_unloaded(self):
        for client, loaded in [self.filtered() for _ in range(12)]:
            client.call("io.btfd.Unload", {"objectId": loaded}, timeout=10 * SLOW)
        self.others_do_not_wait()

    def test_of_socket_filters_whose_session_ends(self):
        for client, _ in [self.filtered() for _ in range(12)]:
            client.close()
        eventually(lambda: not self.client.call("io.btfd.List")["objects"], "the sessions do not end")
        self.others_do_not_wait()

    def test_more_than_there_are_threads(self):
        """What is closed after them has to wait, but not those who are served."""
        client = self.connect()
        for _ in range(40):
            send_the_last(self, client, b'{"method":"io.btfd.List"}\0')
            with self.refused("InvalidParameter"):
                client.receive()
        self.others_do_not_wait()


class Stop(unittest.TestCase):
    def test_does_not_wait_for_a_close(self):
        daemon = Daemon().start()
        self.addCleanup(daemon.kill)
        with daemon.client() as client:
            send_the_last(self, client, b'{"method":"io.btfd.List"}\0')
            client.receive_raw()
            send_the_last(self, client, b'{"met')
            daemon.stop()


# ---- FUSE ------------------------------------------------------------------------------------------------------------

FUSE_LOOKUP, FUSE_GETATTR, FUSE_OPEN, FUSE_FLUSH, FUSE_INIT = 1, 3, 14, 25, 26
FUSE_ROOT, FILE = 1, 2
ENOSYS = 38


def _attributes(node):
    mode = 0o40777 if node == FUSE_ROOT else 0o100666
    return struct.pack("<6Q10I", node, 4096, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def _answer(operation, node):
    """What the file system says (linux/fuse.h); None for nothing ever, which is what it is for."""
    if operation == FUSE_FLUSH:
        return None
    body = {
        FUSE_INIT: lambda: struct.pack("<4I2H2I2H8I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, *[0] * 8),
        FUSE_LOOKUP: lambda: struct.pack("<4Q2I", FILE, 0, 100, 100, 0, 0) + _attributes(FILE),
        FUSE_GETATTR: lambda: struct.pack("<Q2I", 100, 0, 0) + _attributes(node),
        FUSE_OPEN: lambda: struct.pack("<Q2I", 1, 0, 0),
    }.get(operation)
    return (0, body()) if body else (-ENOSYS, b"")


def _serve(device):
    while True:
        request = os.read(device, 1 << 20)
        _, operation, unique, node = struct.unpack_from("<2I2Q", request)
        answer = _answer(operation, node)
        if answer:
            error, body = answer
            os.write(device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)


@contextlib.contextmanager
def fuse(directory):
    """A file system on directory with a file whose closes never end, before the end of the context."""
    try:
        device = os.open("/dev/fuse", os.O_RDWR)
    except OSError as e:
        raise unittest.SkipTest("/dev/fuse cannot be used: %s" % e.strerror) from None
    os.makedirs(directory, exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    options = "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % device
    if libc.mount(b"btfd-test", directory.encode(), b"fuse", 0, options.encode()):
        os.close(device)
        raise unittest.SkipTest("FUSE cannot be mounted: %s" % os.strerror(ctypes.get_errno()))
    server = os.fork()
    if server == 0:
        try:
            _serve(device)
        finally:
            os._exit(1)
    os.close(device)
    try:
        yield os.path.join(directory, "file")
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)  # with it, all that waits for its answers ends
        libc.umount2(directory.encode(), 2)  # MNT_DETACH


class Fuse(DaemonTest):
    """Another client pings and loads all the time, and does not wait."""
    config = {"workers": {"count": 2}}

    def setUp(self):
        super().setUp()
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.path = self.stack.enter_context(fuse(os.path.join(self.daemon.directory, "fuse")))

    @contextlib.contextmanager
    def sender(self, send):
        """A process that calls send(client, file), and stays. Its own close of the file waits, too."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                file = os.open(self.path, os.O_RDONLY)
                client = Client(self.daemon.socket_path, timeout=60 * SLOW)
                send(client, file)
                os.write(writer, b"x")
                signal.pause()
            finally:
                os._exit(1)
        os.close(writer)
        try:
            sent = select.select([reader], [], [], 60 * SLOW)[0] and os.read(reader, 1)
            self.assertEqual(sent, b"x", "the client could not send")
            yield
        finally:
            os.close(reader)
            os.kill(child, signal.SIGKILL)
            self.stack.close()  # the file system's end lets the client end
            os.waitpid(child, 0)

    def test_of_a_call_that_takes_none(self):
        with self.sender(lambda client, file: client.send("io.btfd.List", {}, [file])):
            with Bystander(self.daemon) as others:
                pass
            self.assertGreater(others.rounds, 0)

    def test_beside_an_object(self):
        """A worker cannot close it, and not die either: its job is answered, and others are done by other workers."""
        def send(client, file):
            with open(object_path("no_btf_needed"), "rb") as f:
                client.send("io.btfd.Load", {"objectFileDescriptor": 0, "deadlineMs": 500}, [f, file])
            try:
                client.receive()
            except Exception as e:
                assert "DeadlineExceeded" in str(e), e
            else:
                raise AssertionError("it was loaded")
        with self.sender(send):
            with Bystander(self.daemon) as others:
                pass
            self.assertGreater(others.rounds, 0)

    def test_while_workers_are_forked(self):
        """Half a message holds it where a worker would inherit it, and have to close it."""
        with self.sender(lambda client, file: client.send_raw(b'{"met', [file])):
            eventually(lambda: any(os.readlink("/proc/%d/fd/%s" % (self.daemon.pid(), fd)) == self.path
                                   for fd in os.listdir("/proc/%d/fd" % self.daemon.pid())), "the file did not arrive")
            killed = self.daemon.workers()
            for worker in killed:
                os.kill(worker, signal.SIGKILL)
            eventually(lambda: not set(killed) & set(self.daemon.workers()), "the killed workers are still there")
            with Bystander(self.daemon) as others:
                pass
            self.assertGreater(others.rounds, 0)
