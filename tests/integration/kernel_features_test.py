"""What objects may have beside programs and plain maps: they load, and work."""
import mmap
import os
import socket
import struct

import bpf
from btfd_client import VarlinkError
from harness import DaemonTest

PROG_RUN = 10  # BPF_PROG_TEST_RUN
ARENA, USER_RINGBUF = 33, 31  # enum bpf_map_type


def kernel_has_map_type(kind, *form):
    """Whether the kernel makes such a map: not if it is older, or if it forbids it."""
    try:
        os.close(bpf.bpf(bpf.MAP_CREATE, struct.pack("=5I", kind, *form))[0])
    except OSError:
        return False
    return True


class KernelFeatures(DaemonTest):
    def parts(self, name, **parameters):
        self.reply = self.load(name, wantDescriptors=True, **parameters)
        loaded = self.reply["object"]
        return ({p["name"]: self.reply.descriptors[p["fileDescriptor"]] for p in loaded["programs"]},
                {m["name"]: self.reply.descriptors[m["fileDescriptor"]] for m in loaded["maps"]})

    def run_syscall_program(self, program):
        bpf.bpf(PROG_RUN, struct.pack("=II", program.fileno(), 0))

    def test_arena(self):
        if not kernel_has_map_type(ARENA, 0, 0, 1, 1 << 10):
            self.skipTest("this kernel has no arenas (Linux 6.9)")
        programs, maps = self.parts("arena")
        self.run_syscall_program(programs["touch"])
        allocated, seen = (struct.unpack_from("=QQ", bpf.map_lookup(maps[".bss"], b"\0" * 4)))
        self.assertEqual({allocated, seen}, {42, 7})

    def test_user_ring_buffer(self):
        if not kernel_has_map_type(USER_RINGBUF, 0, 0, 4096, 0):
            self.skipTest("this kernel has no user ring buffers (Linux 6.1)")
        programs, maps = self.parts("ring_buffers")
        pages = mmap.mmap(maps["orders"].fileno(), mmap.PAGESIZE * 3, offset=mmap.PAGESIZE)
        # Behind the producer's page: records of a header (length, padding) and the data.
        struct.pack_into("=IIQ", pages, mmap.PAGESIZE, 8, 0, 4711)
        struct.pack_into("=Q", pages, 0, 16)
        self.run_syscall_program(programs["drain"])
        pages.close()
        values = struct.unpack_from("=QQQ", bpf.map_lookup(maps[".bss"], b"\0" * 4))
        self.assertEqual(set(values) & {1, 4711}, {1, 4711})

    def test_ring_buffer(self):
        try:
            programs, maps = self.parts("ring_buffers", programs={"drain": {"enabled": False}})
        except VarlinkError as e:
            self.skipTest("this kernel has no user ring buffers, which the object has, too: %s" % e)
        bpf.test_run(programs["emit"])
        with mmap.mmap(maps["records"].fileno(), mmap.PAGESIZE * 3, prot=mmap.PROT_READ, offset=mmap.PAGESIZE) as pages:
            produced, = struct.unpack_from("=Q", pages, 0)
            length, _, number, size, kind, name = struct.unpack_from("=IIQII16s", pages, mmap.PAGESIZE)
        self.assertEqual((produced, length, number, size, kind, name.rstrip(b"\0")), (40, 32, 1 << 63, 50, 7, b"a record"))

    def test_program_array(self):
        programs, _ = self.parts("tail_calls")
        self.assertEqual(bpf.test_run(programs["first"]), 42)

    def test_symbols(self):
        with open("/proc/kallsyms") as symbols:
            expected = next(int(line.split()[0], 16) for line in symbols if line.split()[2] == "kfree")
        programs, maps = self.parts("symbols")
        bpf.test_run(programs["look"])
        limit, address, absent = struct.unpack_from("=QQQ", bpf.map_lookup(maps[".data.first"], b"\0" * 4))
        self.assertEqual((limit, address, absent), (1, expected, 0))

    def test_a_variable_by_its_section_and_name(self):
        programs, _ = self.parts("symbols", variables={".data.first.limit": 11})
        self.assertEqual(bpf.test_run(programs["look"]), 11)
        with self.refused("NoSuchName", kind="variable"):
            self.load("symbols", variables={".data.second.limit": 11})


class ManyParts(DaemonTest):
    """More programs and maps than one message over a Unix socket takes descriptors."""

    def test_are_loaded(self):
        loaded = self.load("many")["object"]
        self.assertEqual((len(loaded["programs"]), len(loaded["maps"])), (400, 301))
        self.assertLessEqual({p["kernelId"] for p in loaded["programs"]}, bpf.ids("program"))

    def test_a_program_is_attached(self):
        """All maps go to the worker again."""
        loaded = self.load("many")["object"]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            link = self.client.call("io.btfd.Attach", {"objectId": loaded["id"], "program": "program_399",
                                                       "target": {"targetFileDescriptor": 0}}, [other])["link"]
        self.assertEqual(link["program"], "program_399")

    def test_descriptors_that_do_not_fit_an_answer(self):
        with self.refused("LimitExceeded", limit="descriptors", maximum=253) as refusal:
            self.load("many", wantDescriptors=True)
        self.assertIn("GetDescriptors", refusal.error.parameters["message"])
        loaded = self.load("many")["object"]
        with self.refused("LimitExceeded", limit="descriptors", maximum=253):
            self.client.call("io.btfd.GetDescriptors", {"objectId": loaded["id"]})
        names = ["program_%d" % i for i in range(400)]
        found = []
        for first in range(0, 400, 200):
            reply = self.client.call("io.btfd.GetDescriptors", {"objectId": loaded["id"], "programs": names[first:first + 200]})
            found += [bpf.program_info(reply.descriptors[d["fileDescriptor"]])["id"] for d in reply["descriptors"]]
        self.assertEqual(found, [p["kernelId"] for p in loaded["programs"]])
