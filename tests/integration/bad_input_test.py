"""What clients send by mistake or malice: each gets the right error or meets its limit, and nobody else notices.

Another client loads and pings all the time (Bystander); it must get its answers. And the daemon must not keep a
descriptor or a process of it.
"""
import array
import contextlib
import hashlib
import json
import os
import select
import socket
import subprocess
import tempfile
import threading
import time

import bpf
from btfd_client import Client, ConnectionLost, VarlinkError
from harness import (BPF_DIR, GROUP_ID, MEMBER_UID, SLOW, Bystander, DaemonTest, eventually, memfd, object_bytes,
                     object_path)
from system import as_user

MESSAGE_LIMIT = 16 << 20
GET_INFO = b'{"method":"org.varlink.service.GetInfo"}\0'


def descriptors_of(pid):
    """What its descriptors refer to."""
    found = []
    for name in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found.append(os.readlink("/proc/%d/fd/%s" % (pid, name)))
    return sorted(found)


class Disturbed(DaemonTest):
    """The daemon has another client meanwhile, and at the end as many descriptors and workers as at the beginning."""
    longest = 5.0

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with cls.daemon.client() as client:
            client.call("org.varlink.service.GetInfo")
            client.call("io.btfd.List")
        cls.workers = eventually(cls.daemon.workers, "there are no workers")
        front = cls.daemon.pid()
        cls.descriptors = descriptors_of(front)
        cls.front = front
        cls.addClassCleanup(cls.check_descriptors)
        bystander = Bystander(cls.daemon, longest=cls.longest)
        bystander.__enter__()
        cls.addClassCleanup(bystander.__exit__, None)

    @classmethod
    def check_descriptors(cls):
        eventually(lambda: len(descriptors_of(cls.front)) <= len(cls.descriptors) + 1,
                   lambda: "the daemon has the descriptors %s; at the beginning %s" % (
                       descriptors_of(cls.front), cls.descriptors),
                   timeout=30)  # what clients sent before they left is still done

    def workers_are_the_same(self):
        """No worker died of the input."""
        self.assertEqual(sorted(self.daemon.workers()), sorted(self.workers))

    def still_answers(self, client):
        self.assertIn("io.btfd", client.call("org.varlink.service.GetInfo")["interfaces"])


class Objects(Disturbed):
    """Files that are no BPF objects, or bad ones."""

    def test_bad_objects(self):
        cases = {
            "empty": ("InvalidObject", ""), "not_elf": ("InvalidObject", "ELF"),
            "wrong_machine": ("InvalidObject", ""), "big_endian": ("InvalidObject", "endian"),
            "truncated_header": ("InvalidObject", ""), "truncated_quarter": ("InvalidObject", ""),
            "truncated_half": ("InvalidObject", ""), "truncated_last_byte": ("InvalidObject", ""),
            "no_btf": (("InvalidObject", "LoadFailed"), ""), "no_license": (("InvalidObject", "LoadFailed"), ""),
            "unknown_section": (("InvalidObject", "LoadFailed"), ""),
            "legacy_maps": (("InvalidObject", "LoadFailed"), "maps"),
            "btf_bad_magic": ("InvalidObject", "BTF"), "btf_cut": ("InvalidObject", "BTF"),
            "btf_string_offset_absurd": ("InvalidObject", "BTF"), "btf_ext_bad_magic": ("InvalidObject", "BTF.ext"),
            "btf_ext_cut": ("InvalidObject", "BTF.ext"), "program_cut": (("InvalidObject", "LoadFailed"), ""),
        }
        for name, (error, says) in cases.items():
            with self.subTest(object=name):
                with self.refused(error) as refusal:
                    self.load("bad/" + name)
                self.assertIn(says, refusal.error.parameters["message"])
        known = {name[:-2] for name in os.listdir(os.path.join(BPF_DIR, "bad")) if name.endswith(".o")}
        for name in sorted(known - set(cases)):
            with self.subTest(object=name):  # an error or none, but an answer
                try:
                    self.client.call("io.btfd.Unload", {"objectId": self.load("bad/" + name)["object"]["id"]})
                except VarlinkError as e:
                    self.assertIn(e.name, ("io.btfd.InvalidObject", "io.btfd.LoadFailed"))
        self.workers_are_the_same()

    def test_without_a_license(self):
        with self.refused("LoadFailed", stage="program", program="unlicensed") as refusal:
            self.load("no_license")
        self.assertIn("license", refusal.error.parameters["message"])
        self.assertIn("GPL", refusal.error.parameters["verifierLog"])

    def test_with_a_section_that_no_loader_knows(self):
        with self.refused(("InvalidObject", "LoadFailed")) as refusal:
            self.load("unknown_section")
        self.assertIn("libbpf knows no program type for section 'no_such_program_type'", refusal.error.parameters["message"])

    def test_with_functions_but_no_program(self):
        with self.refused("InvalidObject") as refusal:
            self.load("no_section")
        for words in ("no programs", "SEC(...)", "'forgotten'"):
            self.assertIn(words, refusal.error.parameters["message"])

    def test_compiled_without_debug_information(self):
        with self.refused("InvalidObject") as refusal:
            self.load("no_debug")
        self.assertIn("compile it with -g", refusal.error.parameters["message"])

    def test_for_a_tracepoint_that_does_not_exist(self):
        with self.refused("LoadFailed", stage="program", program="on_exec", errnoName="ESRCH") as refusal:
            self.load("missing_tracepoint")
        self.assertIn("no tracepoint 'sched_process_exek'; did you mean 'sched_process_exec'", refusal.error.parameters["message"])

    def test_with_a_map_that_is_pinned_otherwise(self):
        loaded = self.load("pinned_map")["object"]
        with self.refused("LoadFailed", stage="map", map="pinned_hash") as refusal:
            self.load("pinned_map_other")
        self.assertIn("number of entries is 16, but the object declares 32", refusal.error.parameters["message"])
        self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})

    def test_that_does_not_check_for_null(self):
        with self.refused("LoadFailed", stage="program", program="rejected") as refusal:
            self.load("verifier_reject")
        self.assertIn("may be NULL", refusal.error.parameters["message"])

    def rewritten(self, tool, *options):
        """The smallest test object, after one of LLVM's tools has been at it."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "object.o")
            for name in (tool + "-19", tool):
                try:
                    subprocess.run([name, *options, object_path("socket_filter"), path], check=True)
                except FileNotFoundError:
                    continue
                with open(path, "rb") as f:
                    return f.read()
        return self.skipTest("needs " + tool)

    def small_object(self):
        """A good object without debugging sections: just a few hundred bytes."""
        return self.rewritten("llvm-objcopy", "--strip-debug")

    def test_without_btf(self):
        without = self.rewritten("llvm-objcopy", "--strip-debug", "--remove-section=.BTF", "--remove-section=.BTF.ext",
                                 "--remove-section=.rel.BTF", "--remove-section=.rel.BTF.ext")
        with self.refused(("InvalidObject", "LoadFailed")) as refusal:
            self.load_bytes(without)
        self.assertIn("BTF", refusal.error.parameters["message"])

    def test_truncated_at_every_length(self):
        whole = self.small_object()
        self.load_bytes(whole)
        outcomes = {}
        for length in range(len(whole)):
            try:
                self.load_bytes(whole[:length])
                outcome = "loaded"
            except VarlinkError as e:
                outcome = e.name
            outcomes.setdefault(outcome, []).append(length)
        self.assertEqual(list(outcomes), ["io.btfd.InvalidObject"], {k: v[:10] for k, v in outcomes.items()})
        self.workers_are_the_same()

    def test_with_each_byte_changed(self):
        """Whatever comes of it, it is an answer, and no worker dies of it."""
        whole = self.small_object()
        lost = []
        client = self.connect()
        for position in range(0, len(whole), max(1, len(whole) // 1500)):
            changed = bytearray(whole)
            changed[position] ^= 0xff
            try:
                with memfd(changed) as f:
                    loaded = client.call("io.btfd.Load", {"objectFileDescriptor": 0, "dryRun": True}, [f])
                self.assertEqual(loaded["object"]["id"], 0)
            except VarlinkError as e:
                if e.name not in ("io.btfd.InvalidObject", "io.btfd.LoadFailed", "io.btfd.NoKernelBtf"):
                    lost.append((position, e.name))
        self.assertEqual(lost, [])

    def test_larger_than_the_limit(self):
        with tempfile.TemporaryFile() as f:
            f.truncate((64 << 20) + 1)
            with self.refused("LimitExceeded", maximum=64 << 20) as refusal:
                self.client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [f])
            self.assertIn("objectBytes", refusal.error.parameters["limit"])
            f.truncate(1 << 40)
            with self.refused("LimitExceeded", maximum=64 << 20):
                self.client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [f])

    def test_as_large_as_the_limit(self):
        with tempfile.TemporaryFile() as f:
            f.write(object_bytes("tp_btf"))
            f.truncate(64 << 20)
            self.client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [f])

    def test_that_change_while_they_are_read(self):
        """The file is cut and written again all the time."""
        data = object_bytes("tp_btf")
        with tempfile.NamedTemporaryFile() as f:
            f.write(data * 50)
            f.flush()
            writer = os.fork()
            if writer == 0:
                while True:
                    os.truncate(f.name, 100)
                    with open(f.name, "r+b") as again:
                        again.write(data * 50)
            try:
                for _ in range(200):
                    try:
                        loaded = self.client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [f])["object"]
                        self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})
                    except VarlinkError as e:
                        self.assertIn(e.name, ("io.btfd.InvalidObject", "io.btfd.LoadFailed"))
            finally:
                os.kill(writer, 9)
                os.waitpid(writer, 0)
        self.workers_are_the_same()

    def test_inline_that_is_no_base64(self):
        for text in ("", "A", "AAA", "====", "!!!!", "AAAA\n!", "é", "AAAA" * 10 + "="):
            with self.subTest(text=text), self.refused(("InvalidParameter", "InvalidObject")):
                self.client.call("io.btfd.Load", {"object": text})


class DescriptorKinds(Disturbed):
    """Descriptors of something that is no file with an object."""

    def open(self, path, flags):
        descriptor = os.open(path, flags | os.O_CLOEXEC)
        self.addCleanup(os.close, descriptor)
        return descriptor

    def test_kinds(self):
        directory = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, directory)
        fifo = os.path.join(directory, "fifo")
        os.mkfifo(fifo)
        self.addCleanup(os.unlink, fifo)
        written = os.path.join(directory, "written")
        with open(written, "wb") as f:
            f.write(object_bytes("tp_btf"))
        self.addCleanup(os.unlink, written)
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        ours, theirs = socket.socketpair()
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        epoll = select.epoll()
        self.addCleanup(epoll.close)
        eventfd = os.eventfd(0) if hasattr(os, "eventfd") else reader
        self.addCleanup(lambda: os.close(eventfd) if eventfd != reader else None)
        a_map = bpf.map_create(bpf.MAP_TYPE_ARRAY, 4, 8, 1)
        self.addCleanup(os.close, a_map)
        cases = {
            "directory": self.open(directory, os.O_RDONLY), "pipe to read": reader, "pipe to write": writer,
            "socket": ours.fileno(), "/dev/null": self.open("/dev/null", os.O_RDWR),
            "/dev/zero": self.open("/dev/zero", os.O_RDONLY), "eventfd": eventfd, "epoll": epoll.fileno(),
            "BPF map": a_map, "O_PATH": self.open(object_path("tp_btf"), os.O_PATH),
            "O_PATH of a directory": self.open(directory, os.O_PATH),
            "not open for reading": self.open(written, os.O_WRONLY),
            "FIFO that nobody writes": self.open(fifo, os.O_RDWR),
            "FIFO, not blocking": self.open(fifo, os.O_RDONLY | os.O_NONBLOCK),
            "empty file": self.open(self.empty_file(), os.O_RDONLY),
            "/proc file": self.open("/proc/self/maps", os.O_RDONLY),
            "/sys file": self.open("/sys/kernel/uevent_seqnum", os.O_RDONLY),
            "pidfd": os.pidfd_open(os.getpid()),
        }
        self.addCleanup(os.close, cases["pidfd"])
        for name, descriptor in cases.items():
            with self.subTest(descriptor=name):
                begin = time.monotonic()
                with self.refused(("InvalidObject", "InvalidParameter")):
                    self.client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [descriptor])
                self.assertLess(time.monotonic() - begin, 5 * SLOW)
        self.workers_are_the_same()

    def empty_file(self):
        f = tempfile.NamedTemporaryFile()
        self.addCleanup(f.close)
        return f.name

    def test_indices_that_do_not_exist(self):
        with open(object_path("tp_btf"), "rb") as f:
            for index in (-1, 1, 2, 253, 2**31, 2**32, -2**63, 2**63 - 1):
                with self.subTest(index=index), self.refused("InvalidParameter", parameter="objectFileDescriptor"):
                    self.client.call("io.btfd.Load", {"objectFileDescriptor": index}, [f])
                with self.subTest(map_index=index), self.refused("InvalidParameter"):
                    self.client.call("io.btfd.Load", {"objectFileDescriptor": 0, "maps": {
                        "counter": {"reuseFileDescriptor": index}}}, [f])

    def test_no_descriptor(self):
        with self.refused("InvalidParameter", parameter="objectFileDescriptor"):
            self.client.call("io.btfd.Load", {"objectFileDescriptor": 0})

    def test_one_index_twice(self):
        with open(object_path("tp_btf"), "rb") as f, self.refused(("InvalidParameter", "LoadFailed")):
            self.client.call("io.btfd.Load", {"objectFileDescriptor": 0,
                                              "maps": {"counter": {"reuseFileDescriptor": 0}}}, [f])

    def test_to_a_method_that_takes_none(self):
        front = self.daemon.pid()
        with open("/dev/null", "rb") as null:
            for method, parameters in (("io.btfd.List", {}), ("org.varlink.service.GetInfo", {}),
                                       ("io.btfd.Unload", {"objectId": 1})):
                for _ in range(100):
                    with self.refused("InvalidParameter"):
                        self.client.call(method, parameters, [null] * 10)
        self.assertLess(len(os.listdir("/proc/%d/fd" % front)), len(self.descriptors) + 50)
        self.still_answers(self.client)

    def test_to_a_method_that_does_not_exist(self):
        with open("/dev/null", "rb") as null, self.refused("MethodNotFound"):
            self.client.call("io.btfd.Nothing", {}, [null])
        self.still_answers(self.client)

    def test_as_many_as_one_message_takes(self):
        with open("/dev/null", "rb") as null, open(object_path("tp_btf"), "rb") as f:
            self.client.call("io.btfd.Load", {"objectFileDescriptor": 252}, [null] * 252 + [f])

    def test_more_than_one_message_takes(self):
        """The kernel takes 253 with one sendmsg: the others come with a later part of the message."""
        client = self.connect()
        message = json.dumps({"method": "io.btfd.Load", "parameters": {"objectFileDescriptor": 0}}).encode() + b"\0"
        with open(object_path("tp_btf"), "rb") as f:
            client.send_raw(message[:10], [f] * 253)
            client.send_raw(message[10:], [f] * 253)
        try:
            client.receive()
            self.fail("506 descriptors were taken")
        except (VarlinkError, ConnectionLost):
            pass

    def test_with_the_later_part_of_a_message(self):
        """No client does that: whatever becomes of it, the service goes on."""
        client = self.connect()
        message = json.dumps({"method": "io.btfd.Load", "parameters": {"objectFileDescriptor": 0}}).encode() + b"\0"
        with open(object_path("tp_btf"), "rb") as f:
            client.send_raw(message[:10])
            time.sleep(0.05)
            client.send_raw(message[10:], [f])
        try:
            client.receive()
        except (VarlinkError, ConnectionLost):
            pass

    def test_pipelined(self):
        """Hundreds of calls at once, each with its own descriptor: none gets another's."""
        client, count = self.connect(), 300
        objects = [object_bytes("socket_filter") + b"%d" % i for i in range(count)]

        def send():
            for i, data in enumerate(objects):
                with memfd(data) as f:
                    client.send("io.btfd.Load", {"objectFileDescriptor": 0, "dryRun": True, "name": str(i)}, [f])
                if i % 3 == 0:
                    client.send("org.varlink.service.GetInfo")
        # While replies are read: the socket's buffers don't hold all of it.
        sender = threading.Thread(target=send)
        sender.start()
        self.addCleanup(sender.join)
        for i, data in enumerate(objects):
            loaded = client.receive()["object"]
            self.assertEqual((loaded["name"], loaded["digest"]), (str(i), hashlib.sha256(data).hexdigest()))
            if i % 3 == 0:
                self.assertIn("interfaces", client.receive())

    def test_sent_and_left(self):
        """The client is gone before the daemon looks."""
        for _ in range(50):
            with Client(self.daemon.socket_path) as client, open(object_path("tp_btf"), "rb") as f:
                client.send("io.btfd.Load", {"objectFileDescriptor": 0}, [f] * 100)
        eventually(lambda: not self.owned_by_nobody(), "objects of closed connections are still listed")

    def owned_by_nobody(self):
        listed = self.client.call("io.btfd.List", {})["objects"]
        return [o for o in listed if o["programs"][0]["name"] == "on_exec"]


class Messages(Disturbed):
    """Bytes that are no call."""

    def closes(self, data):
        """The service answers this with the end of the connection, or at most an error before it."""
        client = self.connect()
        try:
            client.send_raw(data)
        except (BrokenPipeError, ConnectionResetError):
            return
        try:
            client.receive(timeout=10 * SLOW)
            self.fail("it was answered")
        except (ConnectionLost, BrokenPipeError):
            return
        except VarlinkError:
            pass
        self.still_answers_or_closed(client)

    def still_answers_or_closed(self, client):
        try:
            self.still_answers(client)
        except (ConnectionLost, BrokenPipeError):
            pass

    def test_that_are_no_calls(self):
        cases = [
            b"\0", b"\0\0\0\0", b"hello\0", b"{}\0", b"[]\0", b"null\0", b"1\0", b'"method"\0', b"{\0", b'{"method"\0',
            b'{"method":}\0', b'{"method":1}\0', b'{"method":null}\0', b'{"method":""}\0', b'{"method":["io.btfd.List"]}\0',
            b'{"parameters":{}}\0', b"GET / HTTP/1.1\r\n\r\n\0", b"\xff\xfe\0", b'{"method":"io.btfd.List\xff"}\0',
            b'{"method":"io.btfd.List","parameters":[]}\0', b'{"method":"io.btfd.List","parameters":"x"}\0',
            b'{"method":"io.btfd.List","parameters":1}\0', b'{"method":"io.btfd.List","oneway":1}\0',
            b'{"method":"io.btfd.List","more":"yes"}\0', b'{"method":"io.btfd.List","more":true,"oneway":true}\0',
            b'{"method":"io.btfd.List"} {}\0', b'{"method":"io.btfd.List"}}\0', b"{'method':'io.btfd.List'}\0",
            b'{"method":"io.btfd.List","parameters":{"name":"\xc3\x28"}}\0',
            b'{"method":"io.btfd.List","parameters":{"name":"\\ud800"}}\0',
            b'{"method":"io.btfd.List","parameters":{"name":"\x01"}}\0',
            b'\xef\xbb\xbf{"method":"io.btfd.List","parameters":NaN}\0',
            b'{"method":"io.btfd.Unload","parameters":{"objectId":01}}\0',
            b'{"method":"io.btfd.Unload","parameters":{"objectId":1e400}}\0',
            b'{"method":"io.btfd.Unload","parameters":{"objectId":--1}}\0',
        ]
        for data in cases:
            with self.subTest(data=data):
                self.closes(data)

    def test_that_are_nested_deeply(self):
        for depth in (65, 1000, 100_000, 3_000_000):
            with self.subTest(depth=depth):
                self.closes(b'{"method":"io.btfd.List","parameters":{"labels":' + b"[" * depth + b"]" * depth + b"}}\0")
                self.closes(b'{"method":"io.btfd.List","parameters":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}\0")
                self.closes(b"[" * depth + b"\0")

    def test_with_very_many_values(self):
        self.closes(b'{"method":"io.btfd.List","parameters":{"labels":[' + b"[]," * 3_000_000 + b"[]]}}\0")
        self.closes(b'{"method":"io.btfd.List","parameters":{' + b",".join(b'"%d":1' % i for i in range(500_000)) + b"}}\0")

    def padded(self, size):
        """A call of exactly that size, without the NUL."""
        begin, end = b'{"method":"org.varlink.service.GetInfo",', b'"parameters":{}}'
        return begin + b" " * (size - len(begin) - len(end)) + end

    def test_as_large_as_the_limit(self):
        client = self.connect()
        client.send_raw(self.padded(MESSAGE_LIMIT) + b"\0")
        self.assertIn("interfaces", client.receive())
        self.still_answers(client)

    def test_larger_than_the_limit(self):
        for size in (MESSAGE_LIMIT + 1, MESSAGE_LIMIT * 2):
            self.closes(self.padded(size) + b"\0")

    def test_without_end(self):
        """Bytes without a NUL: the connection ends when there are too many, not when the memory is used up."""
        client = self.connect()
        block, sent = b" " * (1 << 20), 0
        try:
            while sent < 4 * MESSAGE_LIMIT:
                client.socket.sendall(block)
                sent += len(block)
            self.fail("%d bytes were taken" % sent)
        except (BrokenPipeError, ConnectionResetError):
            pass
        self.assertLessEqual(sent, MESSAGE_LIMIT + (2 << 20))

    def test_with_unknown_fields(self):
        self.closes(b'{"method":"io.btfd.List","surprise":1}\0')

    def test_in_pieces(self):
        client = self.connect()
        for byte in GET_INFO * 3:
            client.socket.sendall(bytes([byte]))
        for _ in range(3):
            self.assertIn("interfaces", client.receive())

    def test_many_at_once(self):
        client = self.connect()
        client.send_raw(GET_INFO * 1000)
        for _ in range(1000):
            self.assertIn("interfaces", client.receive())

    def test_half_a_message(self):
        """It waits for the rest; others don't."""
        clients = [self.connect() for _ in range(20)]
        for client in clients:
            client.send_raw(GET_INFO[:-8])
        time.sleep(0.3)
        self.still_answers(self.client)
        for client in clients[:10]:
            client.send_raw(GET_INFO[-8:])
            self.assertIn("interfaces", client.receive())

    def test_a_good_call_after_a_bad_one_is_not_confused_with_it(self):
        client = self.connect()
        client.send_raw(b'{"method":"io.btfd.Describe","parameters":{"objectId":0}}\0' + GET_INFO)
        with self.refused("NoSuchObject", objectId=0):
            client.receive()
        self.assertIn("interfaces", client.receive())


class Parameters(Disturbed):
    """Calls that are well-formed, and wrong."""

    def test_wrong_types(self):
        values = {"bool": True, "int": 1, "fraction": 1.5, "string": "text", "array": [], "object": {}, "list": [1]}
        right = {
            "objectFileDescriptor": ("int",), "object": ("string",), "name": ("string",), "labels": ("object",),
            "lifetime": (), "programs": ("object",), "maps": ("object",), "variables": ("object",),
            "verifierLogLevel": ("int",), "dryRun": ("bool",), "deadlineMs": ("int",), "wantDescriptors": ("bool",),
        }
        for field, accepted in right.items():
            for kind, value in values.items():
                if kind in accepted:
                    continue
                with self.subTest(field=field, value=value), open(object_path("tp_btf"), "rb") as f:
                    with self.refused("InvalidParameter") as refusal:
                        self.client.call("io.btfd.Load", {"objectFileDescriptor": 0, field: value}, [f])
                    if refusal.error:
                        self.assertTrue(refusal.error.parameters["parameter"].startswith(field), refusal.error)

    def test_wrong_types_inside(self):
        cases = [
            ("programs.on_exec", {"programs": {"on_exec": 1}}), ("programs.on_exec", {"programs": {"on_exec": []}}),
            ("programs.on_exec.enabled", {"programs": {"on_exec": {"enabled": "yes"}}}),
            ("programs.on_exec.attach", {"programs": {"on_exec": {"attach": {}}}}),
            ("programs.on_exec.attach[0]", {"programs": {"on_exec": {"attach": ["x"]}}}),
            ("programs.on_exec.attach[1].cookie", {"programs": {"on_exec": {"attach": [{}, {"cookie": "x"}]}}}),
            ("programs.on_exec.surprise", {"programs": {"on_exec": {"surprise": 1}}}),
            ("maps.counter.maxEntries", {"maps": {"counter": {"maxEntries": "many"}}}),
            ("maps.counter.surprise", {"maps": {"counter": {"surprise": 1}}}),
            ("labels.team", {"labels": {"team": 1}}), ("labels.team", {"labels": {"team": None}}),
            ("surprise", {"surprise": 1}),
        ]
        for path, parameters in cases:
            with self.subTest(parameters=parameters), self.refused("InvalidParameter", parameter=path):
                self.load("tp_btf", **parameters)

    def test_of_other_methods(self):
        cases = [
            ("Unload", {}, "objectId"), ("Unload", {"objectId": "1"}, "objectId"), ("Unload", {"objectId": 1.5}, "objectId"),
            ("Unload", {"objectId": None}, "objectId"), ("Unload", {"objectId": 2**63}, "objectId"),
            ("Unload", {"objectId": 2**64}, "objectId"), ("Unload", {"objectId": 1, "force": True}, "force"),
            ("Describe", {"objectId": [1]}, "objectId"), ("Attach", {"objectId": 1}, "program"),
            ("Attach", {"objectId": 1, "program": 2}, "program"),
            ("Attach", {"objectId": 1, "program": "x", "target": 1}, "target"),
            ("Attach", {"objectId": 1, "program": "x", "target": {"surprise": 1}}, "target.surprise"),
            ("Detach", {"linkId": "all"}, "linkId"), ("List", {"labels": {"a": 1}}, "labels.a"), ("List", {"name": 1}, "name"),
            ("GetDescriptors", {"objectId": 1, "maps": "counter"}, "maps"),
            ("GetDescriptors", {"objectId": 1, "maps": [1]}, "maps[0]"),
            ("GetDescriptors", {"objectId": 1, "links": ["1"]}, "links[0]"),
            ("DescribeKernel", {"surprise": 1}, "surprise"),
            ("Check", {"objects": {}}, "objects"), ("Check", {"objects": [{"objectFileDescriptor": "0"}]}, "objects[0].objectFileDescriptor"),
            ("Check", {"objects": [{"objectFileDescriptor": 0}]}, "objects[0].objectFileDescriptor"),
        ]
        for method, parameters, path in cases:
            with self.subTest(method=method, parameters=parameters), self.refused("InvalidParameter", parameter=path):
                self.client.call("io.btfd." + method, parameters)

    def test_ids_that_do_not_exist(self):
        for number in (0, -1, 2**31, 2**63 - 1, -2**63):
            with self.refused("NoSuchObject", objectId=number):
                self.client.call("io.btfd.Unload", {"objectId": number})
            with self.refused("NoSuchLink", linkId=number):
                self.client.call("io.btfd.Detach", {"linkId": number})

    def test_parameters_may_be_left_out(self):
        for parameters in (b"", b',"parameters":null', b',"parameters":{}', b',"parameters":{"labels":null}'):
            self.client.send_raw(b'{"method":"io.btfd.List"' + parameters + b"}\0")
            self.assertIn("objects", self.client.receive())

    def test_names_that_are_odd(self):
        for name in ("", "\0", "\n", "é", "n" * 100_000, "../../../etc/passwd", "%s%n"):
            with self.subTest(name=name[:20]):
                with self.refused("NoSuchName", kind="program"):
                    self.load("tp_btf", programs={name: {}})
                with self.refused("NoSuchName", kind="map"):
                    self.load("tp_btf", maps={name: {"maxEntries": 1}})
                with self.refused("NoSuchName", kind="variable"):
                    self.load("global_data", variables={name: 1})
                self.assertEqual(self.client.call("io.btfd.List", {"name": name})["objects"], [])

    def test_unknown_methods(self):
        for method, error in (("io.btfd.Nothing", "MethodNotFound"), ("io.btfd.load", "MethodNotFound"),
                              ("io.nothing.Method", "InterfaceNotFound"), ("NoInterface", None), (".", None),
                              ("io.btfd.", None), ("io.btfd.Load.", None), ("é.é", None), ("x" * 100_000, None)):
            with self.subTest(method=method[:20]), self.refused([error] if error else [
                    "MethodNotFound", "InterfaceNotFound", "InvalidParameter"]):
                self.client.call(method)

    def test_oneway_errors_get_no_reply(self):
        for method, parameters in (("io.btfd.Nothing", {}), ("io.btfd.Unload", {"objectId": 0}),
                                   ("io.btfd.Unload", {"surprise": 0}), ("io.nothing.Method", {}), ("io.btfd.Monitor", {})):
            self.client.send(method, parameters, oneway=True)
        self.still_answers(self.client)
        with self.assertRaises(TimeoutError):
            self.client.receive(timeout=0.2)

    def test_oneway_is_carried_out(self):
        with open(object_path("tp_btf"), "rb") as f:
            self.client.send("io.btfd.Load", {"objectFileDescriptor": 0, "name": "oneway"}, [f], oneway=True)
        listed = self.client.call("io.btfd.List", {"name": "oneway"})["objects"]
        self.assertEqual([o["name"] for o in listed], ["oneway"])

    def test_more_where_there_is_just_one_reply(self):
        self.client.send("io.btfd.List", {}, more=True)
        self.assertFalse(self.client.receive().continues)

    def test_upgrade_is_not_offered(self):
        self.client.send("io.btfd.List", {}, upgrade=True)
        with self.refused("MethodNotImplemented"):
            self.client.receive()


class Clients(Disturbed):
    """Clients that behave badly."""
    config = {"limits": {"connections": 700, "connectionsPerUser": 600}}

    def test_that_never_read(self):
        """The daemon stops to read what it cannot answer, instead of keeping all answers in memory."""
        front = self.daemon.pid()

        def resident():
            with open("/proc/%d/statm" % front, encoding="ascii") as f:
                return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        before = resident()
        call = json.dumps({"method": "org.varlink.service.GetInterfaceDescription",
                           "parameters": {"interface": "io.btfd"}}).encode() + b"\0"
        sent = 0
        clients = [self.connect() for _ in range(5)]
        for client in clients:
            client.socket.setblocking(False)
            idle_since = time.monotonic()
            while time.monotonic() - idle_since < 0.3 and sent < 200 << 20:
                try:
                    sent += client.socket.send(call * 500)
                    idle_since = time.monotonic()
                except BlockingIOError:
                    time.sleep(0.01)
        self.assertLess(sent, 200 << 20, "it reads on and on")
        self.assertLess(resident() - before, 64 << 20)
        self.still_answers(self.client)

    def test_that_come_in_hundreds(self):
        clients = [self.connect() for _ in range(500)]
        for client in clients:
            client.send("org.varlink.service.GetInfo")
        for client in clients:
            self.assertIn("interfaces", client.receive())
        for client in clients[:200]:
            with open(object_path("no_btf_needed"), "rb") as f:
                client.send("io.btfd.Load", {"objectFileDescriptor": 0}, [f])
        for client in clients[:200]:
            self.assertGreater(client.receive()["object"]["id"], 0)

    def test_that_come_and_go(self):
        for _ in range(1000):
            Client(self.daemon.socket_path).close()
        for _ in range(200):
            with Client(self.daemon.socket_path) as client:
                client.send_raw(GET_INFO)
        self.still_answers(self.client)

    def test_that_reset_in_mid_reply(self):
        for _ in range(50):
            with Client(self.daemon.socket_path) as client:
                client.send_raw(json.dumps({"method": "org.varlink.service.GetInterfaceDescription",
                                            "parameters": {"interface": "io.btfd"}}).encode() + b"\0" + GET_INFO * 50)
                client.socket.recv(10)
        self.still_answers(self.client)

    def test_that_send_out_of_band_data(self):
        client = self.connect()
        try:
            client.socket.send(b"x", socket.MSG_OOB)
        except OSError:
            self.skipTest("this kernel has no out-of-band data on AF_UNIX sockets")
        try:
            client.send_raw(GET_INFO)
            client.receive(timeout=5 * SLOW)
        except (ConnectionLost, BrokenPipeError, TimeoutError):
            pass
        self.still_answers(self.client)

    def test_that_pass_credentials_and_sockets_to_themselves(self):
        """A socket in its own queue is a loop that only the kernel's garbage collector can end."""
        for _ in range(20):
            client = self.connect()
            ours, theirs = socket.socketpair()
            with ours, theirs:
                ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [ours.fileno(), theirs.fileno()]))])
                with self.refused(("InvalidObject", "InvalidParameter")):
                    client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [theirs])
                with self.refused(("InvalidObject", "InvalidParameter")):
                    client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [client.socket])


class ConnectionLimits(DaemonTest):
    config = {"limits": {"connections": 30, "connectionsPerUser": 10}}

    def member_connects(self, count):
        """How many of a user's connections are served."""
        def connect():
            served, clients = 0, []
            for _ in range(count):
                client = Client(self.daemon.socket_path, timeout=10 * SLOW)
                clients.append(client)
                try:
                    client.call("org.varlink.service.GetInfo")
                    served += 1
                except (ConnectionLost, OSError):
                    pass
            return served
        return as_user(MEMBER_UID, 65534, [GROUP_ID], connect)

    def test_one_user_cannot_take_all(self):
        self.assertEqual(self.member_connects(40), 10)
        self.client.call("org.varlink.service.GetInfo")
        eventually(lambda: self.member_connects(1) == 1, "the closed connections still count")

    def test_those_past_the_limit_are_closed_not_left_waiting(self):
        clients = [self.connect() for _ in range(60)]
        served = 0
        for client in clients:
            try:
                client.call("org.varlink.service.GetInfo", timeout=10 * SLOW)
                served += 1
            except (ConnectionLost, OSError) as e:
                self.assertNotIsInstance(e, TimeoutError)
        self.assertLessEqual(served, 30)
        self.assertGreater(served, 0)
        for client in clients:
            client.close()
        eventually(self.answers, "no connection is taken any more")

    def answers(self):
        try:
            with self.daemon.client() as client:
                return client.call("org.varlink.service.GetInfo")
        except (ConnectionLost, OSError):
            return None
