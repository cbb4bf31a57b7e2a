"""Kernel BTF is parsed once, when it is needed, and not where it is not."""
import gzip
import lzma
import os
import platform
import struct
import tempfile
import threading
import unittest

from btfd_client import VarlinkError
from harness import Daemon, DaemonTest, memfd, object_bytes, object_path
from system import run, tool

NEED_NO_KERNEL_BTF = ("no_btf_needed", "socket_filter", "xdp", "raw_tracepoint", "global_data", "maps", "optional")
NEED_KERNEL_BTF = ("tp_btf", "exec_events", "iter_task", "bench_one", "bench_many30", "bench_hundred", "bench_wide500")


def describe(client):
    return client.call("io.btfd.DescribeKernel")


class AtStartup(DaemonTest):
    config = {"kernelBtf": {"load": "startup"}}

    def test_is_described(self):
        kernel = describe(self.client)
        spec = kernel["spec"]
        self.assertEqual((kernel["release"], kernel["buildCount"]), (platform.release(), 1))
        self.assertNotIn("reason", kernel)
        self.assertEqual(spec["path"], "/sys/kernel/btf/vmlinux")
        self.assertEqual(spec["bytes"], os.path.getsize("/sys/kernel/btf/vmlinux"))
        self.assertGreater(spec["types"], 10000)
        self.assertTrue(0 < spec["indexedNames"] <= spec["types"])
        self.assertGreater(spec["parseUSec"], 0)
        modules = sorted(name for name in os.listdir("/sys/kernel/btf") if name != "vmlinux")
        self.assertEqual(sorted(m["name"] for m in spec["modules"]), modules)
        self.assertEqual([m["name"] for m in spec["modules"] if m.get("error")], [])

    def test_is_mapped_where_the_kernel_allows_that(self):
        major, minor = (int(part) for part in platform.release().split(".")[:2])
        self.assertEqual(describe(self.client)["spec"]["mapped"], (major, minor) >= (6, 16))

    def test_fifty_different_objects_parse_it_once(self):
        """Bytes appended to an ELF file make another digest, and the same object."""
        for i in range(50):
            with memfd(object_bytes("exec_events") + b"%d" % i) as f:
                loaded = self.client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [f])["object"]
            self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})
        self.assertEqual(describe(self.client)["buildCount"], 1)


class SystemCalls(DaemonTest):
    """Watched from outside: the file is opened once, whatever is loaded, in any process of the daemon."""
    environment = {"ASAN_OPTIONS": "detect_leaks=0"}  # LeakSanitizer is a tracer, and a process has only one

    @classmethod
    def setUpClass(cls):
        if not tool("strace"):
            raise unittest.SkipTest("needs strace")
        cls.trace = tempfile.NamedTemporaryFile(prefix="btfd-strace.")
        cls.addClassCleanup(cls.trace.close)
        cls.wrapper = ["strace", "-f", "-qq", "-y", "-e", "trace=open,openat,openat2,mmap,execve", "-o", cls.trace.name]
        try:
            run("strace", "-f", "-o", "/dev/null", "true")
        except RuntimeError as e:
            raise unittest.SkipTest("strace does not work here: %s" % e)
        super().setUpClass()

    def calls(self, name):
        with open(self.trace.name, encoding="utf-8", errors="replace") as f:
            return [line for line in f if "/sys/kernel/btf/vmlinux" in line and name in line and " = -1 " not in line]

    def test_open_the_file_once(self):
        for i in range(50):
            name = NEED_KERNEL_BTF[i % 3]
            with memfd(object_bytes(name) + b"%d" % i) as f:
                loaded = self.client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [f])["object"]
            self.client.call("io.btfd.Attach", {"objectId": loaded["id"], "program": loaded["programs"][0]["name"]})
            self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})
        self.assertEqual(len(self.calls("open")), 1, self.calls("open"))
        self.assertLessEqual(len(self.calls("mmap")), 1, self.calls("mmap"))


class OnDemand(DaemonTest):
    config = {"kernelBtf": {"load": "on-demand"}, "workers": {"count": 3}}

    @classmethod
    def setUpClass(cls):
        """Each test has its own daemon."""
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root, to load BPF programs")

    def setUp(self):
        self.daemon = self.start_daemon()
        super().setUp()

    def start_daemon(self):
        daemon = Daemon(self.config, self.wrapper, self.environment).start()
        self.addCleanup(daemon.stop)
        return daemon

    def test_nothing_is_built_at_start(self):
        kernel = describe(self.client)
        self.assertEqual(kernel["buildCount"], 0)
        self.assertNotIn("spec", kernel)
        self.assertTrue(kernel["reason"])

    def test_nor_for_loads_that_need_none(self):
        for name in NEED_NO_KERNEL_BTF:
            with self.subTest(name=name):
                self.load(name)
                self.assertEqual(describe(self.client)["buildCount"], 0)

    def test_nor_for_objects_that_are_refused_before(self):
        with self.refused("InvalidObject"):
            self.load_bytes(b"no object")
        self.assertEqual(describe(self.client)["buildCount"], 0)

    def test_but_for_the_first_that_needs_it(self):
        self.load("no_btf_needed")
        self.load("exec_events")
        kernel = describe(self.client)
        self.assertEqual(kernel["buildCount"], 1)
        self.assertGreater(kernel["spec"]["types"], 10000)
        for name in NEED_KERNEL_BTF:
            self.load(name)
        self.assertEqual(describe(self.client)["buildCount"], 1)

    def test_and_told(self):
        events = self.connect().stream("io.btfd.Monitor")
        next(events)
        self.load("tp_btf")
        kinds = {next(events)["event"]["kind"] for _ in range(2)}
        self.assertEqual(kinds, {"kernelSpecBuilt", "loaded"})

    def test_once_for_concurrent_first_loads(self):
        clients = [self.connect() for _ in range(16)]
        results = []

        def load(client, i):
            try:
                results.append(self.load_bytes(object_bytes("exec_events") + b"%d" % i, client)["object"]["id"])
            except VarlinkError as e:
                results.append(e)
        threads = [threading.Thread(target=load, args=(client, i)) for i, client in enumerate(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([r for r in results if not isinstance(r, int)], [])
        self.assertEqual(len(set(results)), 16)
        self.assertEqual(describe(self.client)["buildCount"], 1)

    def test_whether_the_object_is_known_or_not(self):
        """All workers learn of it, those forked before included."""
        self.load("tp_btf")
        for _ in range(12):
            self.load("exec_events", self.connect())
        self.assertEqual(describe(self.client)["buildCount"], 1)


class NoKernelBtf(DaemonTest):
    """A kernel without BTF: an empty directory hides it from the daemon."""
    config = {"kernelBtf": {"load": "on-demand"}}
    wrapper = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$0" "$@"')

    def test_loads_what_needs_none(self):
        for name in NEED_NO_KERNEL_BTF:
            with self.subTest(name=name):
                self.load(name)

    def test_says_so_where_it_is_needed(self):
        for name in NEED_KERNEL_BTF:
            with self.subTest(name=name), self.refused("NoKernelBtf") as refusal:
                self.load(name)
            self.assertIn("/sys/kernel/btf", refusal.error.parameters["message"])

    def test_is_described(self):
        with self.refused("NoKernelBtf"):
            self.load("tp_btf")
        kernel = describe(self.client)
        self.assertNotIn("spec", kernel)
        self.assertTrue(kernel["reason"])


class NoKernelBtfAtStartup(NoKernelBtf):
    """The daemon starts all the same."""
    config = {"kernelBtf": {"load": "startup"}}


class ForeignKernelBtf(DaemonTest):
    """kernelBtf.path on a kernel that shows no BTF, here with a copy of what this one shows."""
    wrapper = NoKernelBtf.wrapper

    @classmethod
    def setUpClass(cls):
        cls.file = tempfile.NamedTemporaryFile(prefix="btfd-vmlinux.")
        cls.addClassCleanup(cls.file.close)
        if not os.path.exists("/sys/kernel/btf/vmlinux"):
            raise unittest.SkipTest("this kernel has no BTF")
        with open("/sys/kernel/btf/vmlinux", "rb") as source:
            cls.file.write(source.read())
        cls.file.flush()
        cls.config = {"kernelBtf": {"path": cls.file.name}}
        super().setUpClass()

    def test_is_used(self):
        self.load("exec_events")
        self.assertEqual(describe(self.client)["spec"]["path"], self.file.name)


class RequestsBtf(DaemonTest):
    """kernelBtfFileDescriptor: relocations are resolved against BTF that the client sends."""

    def load_with(self, btf, name="optional_field", **parameters):
        with open(object_path(name), "rb") as f, memfd(btf) as kernel:
            return self.client.call("io.btfd.Load", {"objectFileDescriptor": 0, "kernelBtfFileDescriptor": 1, "name": name,
                                                     **parameters}, [f, kernel])["object"]

    def pid_record(self, loaded):
        records = self.client.call("io.btfd.Describe", {"objectId": loaded["id"], "relocations": True})["relocations"]
        return next(record for record in records if record["access"].endswith(".pid"))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open("/sys/kernel/btf/vmlinux", "rb") as f:
            cls.running = f.read()

    def test_the_running_kernels_comes_to_the_same(self):
        given = self.load_with(self.running)
        own = self.load("optional_field")["object"]
        self.assertEqual([p["tag"] for p in given["programs"]], [p["tag"] for p in own["programs"]])
        self.assertEqual(self.pid_record(given)["value"], self.pid_record(own)["value"])
        # Its types are not resident, so nothing is said of them that could be wrong.
        self.assertNotIn("targetType", self.pid_record(given))

    def test_may_be_compressed(self):
        self.load_with(gzip.compress(self.running))
        self.load_with(lzma.compress(self.running, preset=0))

    def test_is_what_counts(self):
        for offset in (40, 80):
            self.assertEqual(self.pid_record(self.load_with(minimal_btf("pid", offset)))["value"], offset)

    def test_one_that_lacks_the_field_is_no_error_of_the_running_kernels(self):
        with self.refused("LoadFailed") as refusal:
            self.load_with(minimal_btf("other", 4))
        self.assertIn("has no 'pid'", refusal.error.parameters["message"])

    def test_nothing_of_it_is_kept_for_others(self):
        given = self.load_with(minimal_btf("pid", 40))
        own = self.load("optional_field", name="optional_field")["object"]
        self.assertFalse(own["imageReused"])
        again = self.load_with(minimal_btf("pid", 40))
        self.assertFalse(again["imageReused"])
        self.assertEqual([p["tag"] for p in given["programs"]], [p["tag"] for p in again["programs"]])
        self.assertNotEqual([p["tag"] for p in given["programs"]], [p["tag"] for p in own["programs"]])

    def test_what_is_none_is_refused(self):
        swapped = b"\xeb\x9f" + self.running[2:]
        for name, content in (("empty", b""), ("no BTF", b"x" * 100), ("cut", self.running[:1000]), ("swapped", swapped)):
            with self.subTest(name=name), self.refused("InvalidParameter", parameter="kernelBtfFileDescriptor"):
                self.load_with(content)

    def test_a_descriptor_that_is_none(self):
        with self.refused("InvalidParameter", parameter="kernelBtfFileDescriptor"), \
                open(object_path("optional_field"), "rb") as f:
            self.client.call("io.btfd.Load", {"objectFileDescriptor": 0, "kernelBtfFileDescriptor": 7}, [f])


def minimal_btf(member, offset):
    """BTF with a struct task_struct that has one int."""
    strings = b"\0int\0task_struct\0" + member.encode() + b"\0"
    names = {name: strings.index(b"\0" + name.encode() + b"\0") + 1 for name in ("int", "task_struct", member)}
    types = struct.pack("<IIII", names["int"], 1 << 24, 4, (1 << 24) | 32)
    types += struct.pack("<III", names["task_struct"], (4 << 24) | 1, offset + 4)
    types += struct.pack("<III", names[member], 1, offset * 8)
    header = struct.pack("<HBBIIIII", 0xeb9f, 1, 0, 24, 0, len(types), len(types), len(strings))
    return header + types + strings


class RequestsBtfWithoutAnother(RequestsBtf):
    """On a kernel that has none itself."""
    wrapper = NoKernelBtf.wrapper
    config = {"kernelBtf": {"load": "on-demand"}}

    def test_the_running_kernels_comes_to_the_same(self):
        with self.refused("NoKernelBtf"):
            self.load("optional_field")
        self.assertGreater(self.pid_record(self.load_with(self.running))["value"], 0)

    def test_nothing_of_it_is_kept_for_others(self):
        self.load_with(minimal_btf("pid", 40))
        with self.refused("NoKernelBtf"):
            self.load("optional_field")

    def test_what_needs_the_running_kernels_says_so(self):
        with self.refused("NoKernelBtf"):
            self.load_with(self.running, "tp_btf")
