"""What btfctl and the daemon tell of what is loaded: runs of programs, records of ring buffers, entries of maps, instructions."""
import json
import re
import shutil
import subprocess

import bpf
from btfd_client import Client, VarlinkError
from harness import BIN_DIR, GROUP_ID, MEMBER_UID, DaemonTest, built, object_path
from system import as_user

OBJDUMP = shutil.which("llvm-objdump-19") or shutil.which("llvm-objdump")


class ReadingBack(DaemonTest):
    def btfctl(self, *arguments, status=0):
        done = subprocess.run([built(BIN_DIR, "BTFD_BIN_DIR", "btfctl", "btfctl"), "--socket", self.daemon.socket_path,
                               *arguments], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def open(self, name, **parameters):
        reply = self.load(name, wantDescriptors=True, name=name, **parameters)
        for descriptor in reply.descriptors:
            self.addCleanup(descriptor.close)  # a program keeps its maps, and theirs
        self.object_id = reply["object"]["id"]
        self.programs = {p["name"]: reply.descriptors[p["fileDescriptor"]] for p in reply["object"]["programs"]}
        return reply

    def as_member(self, method, **parameters):
        """The error that another user gets."""
        def member():
            with Client(self.daemon.socket_path) as client:
                try:
                    client.call(method, {"objectId": self.object_id, **parameters})
                except VarlinkError as e:
                    return e.name
            return "no error"
        return as_user(MEMBER_UID, 65534, [GROUP_ID], member)


class Statistics(ReadingBack):
    def statistics(self, client=None):
        return (client or self.client).call("io.btfd.Describe", {"objectId": self.object_id, "statistics": True})["statistics"]

    def test_runs_are_counted_while_somebody_asks(self):
        self.open("no_btf_needed")
        before = self.statistics()["keep"]
        for _ in range(3):
            bpf.test_run(self.programs["keep"])
        after = self.statistics()["keep"]
        self.assertEqual(after["runs"] - before["runs"], 3)
        self.assertGreater(after["runTimeNSec"], before["runTimeNSec"])
        self.assertEqual(after["recursionMisses"], 0)

    def test_counting_ends_with_the_connection(self):
        """The next who asks finds what was counted until then."""
        self.open("no_btf_needed")
        with open("/proc/sys/kernel/bpf_stats_enabled") as f:
            if f.read().strip() != "0":
                self.skipTest("somebody has switched the counting on for the whole machine (kernel.bpf_stats_enabled)")
        with self.daemon.client() as other:
            self.statistics(other)
            bpf.test_run(self.programs["keep"])
            counted = self.statistics(other)["keep"]["runs"]
        self.assertEqual(counted, 1)

    def test_only_who_wants_them_gets_them(self):
        self.open("no_btf_needed")
        self.assertNotIn("statistics", self.client.call("io.btfd.Describe", {"objectId": self.object_id}))
        self.assertEqual(self.as_member("io.btfd.Describe", statistics=True), "io.btfd.NotOwner")

    def test_btfctl_shows_rates(self):
        self.open("no_btf_needed")
        shown = self.btfctl("stats", "no_btf_needed", "--interval", "10ms")
        self.assertRegex(shown, r"PROGRAM +RUNS/S")
        self.assertRegex(shown, r"(?m)^keep +0 +- +0\.0 ")
        document = json.loads(self.btfctl("stats", "no_btf_needed", "--interval", "10ms", "--json"))
        self.assertEqual(set(document["statistics"]), {"keep", "pass"})


class Events(ReadingBack):
    def setUp(self):
        super().setUp()
        try:
            self.open("ring_buffers")
        except VarlinkError as e:
            self.skipTest("this kernel has no user ring buffers, which the object has (Linux 6.1): %s" % e)

    record = {"kind": "ENDED", "length": 50, "name": "a record", "number": "9223372036854775808"}

    def test_are_told_by_the_type_that_is_named(self):
        for kind in ("struct record", "record"):
            bpf.test_run(self.programs["emit"])
            shown = self.btfctl("events", "ring_buffers", "records", "--type", kind, "--count", "1")
            self.assertEqual(json.loads(shown), self.record)

    def test_are_told_by_the_only_type_of_their_size(self):
        for _ in range(2):
            bpf.test_run(self.programs["emit"])
        shown = self.btfctl("events", "ring_buffers", "records", "--count", "2")
        self.assertEqual([json.loads(line) for line in shown.splitlines()], [self.record] * 2)

    def test_types_maps_and_objects_that_there_are_not(self):
        self.btfctl("events", "ring_buffers", "records", "--type", "struct rekord", status=4)
        self.btfctl("events", "ring_buffers", "recordz", status=4)
        self.btfctl("events", "ring_buffer", "records", status=4)
        self.btfctl("events", "ring_buffers", "counter", status=1)

    def test_btf_is_the_objects(self):
        reply = self.client.call("io.btfd.GetBtf", {"objectId": self.object_id})
        with open(reply.descriptors[reply["btfFileDescriptor"]].fileno(), "rb", closefd=False) as f:
            f.seek(0)
            self.assertEqual(f.read(2), b"\x9f\xeb")  # BTF_MAGIC
        self.assertEqual(self.as_member("io.btfd.GetBtf"), "io.btfd.NotOwner")


class MapCommands(ReadingBack):
    def test_dump_lookup_update_delete(self):
        self.open("maps")
        self.btfctl("map", "update", "maps", "a_hash", "5", '{"first": 1, "second": 2}')
        self.assertEqual(self.btfctl("map", "lookup", "maps", "a_hash", "5"), '{"first":1,"second":2}\n')
        self.assertEqual(self.btfctl("map", "dump", "maps", "a_hash"), '5  {"first":1,"second":2}\n')
        self.assertEqual(json.loads(self.btfctl("map", "dump", "maps", "a_hash", "--json")),
                         {"key": 5, "value": {"first": 1, "second": 2}})
        self.btfctl("map", "update", "maps", "a_hash", "5", "{}", "--new", status=1)
        self.btfctl("map", "delete", "maps", "a_hash", "5")
        self.btfctl("map", "lookup", "maps", "a_hash", "5", status=4)
        self.btfctl("map", "update", "maps", "a_hash", "five", "{}", status=2)
        self.btfctl("map", "dump", "maps", "a_hasch", status=4)

    def test_dump_of_more_than_a_page(self):
        self.open("maps", maps={"an_array": {"maxEntries": 2500}})
        self.assertEqual(len(self.btfctl("map", "dump", "maps", "an_array").splitlines()), 2500)


def comparable(text):
    """An instruction as both have it: names aside, numbers in decimal, without what is in front of a sign."""
    text = re.sub(r"<[^>]*>", "", text).replace(" ll", "").replace("pc", "")
    text = re.sub(r"0x[0-9a-f]+", lambda number: str(int(number.group(), 16)), text)
    text = re.sub(r"bpf_\w+#", "", text)
    text = re.sub(r"([+-]) ?(\d+)", lambda found: str(int(found.group(1) + found.group(2))) if found.group(1) == "-"
                  else "+" + found.group(2), text)
    return re.sub(r"\s+", " ", text).strip()


class Disassembly(ReadingBack):
    def instructions(self, program):
        reply = self.client.call("io.btfd.Disassemble", {"objectId": self.object_id, "program": program})
        self.assertEqual(reply["instructionsLeftOut"], 0)
        return reply["instructions"]

    def test_lines_names_and_relocations(self):
        self.open("exec_events")
        found = self.instructions("on_exec")
        self.assertEqual([i["number"] for i in found[:1]], [0])
        self.assertTrue(any(i.get("file", "").endswith("exec_events.bpf.c") for i in found))
        self.assertTrue(any("<counter>" in i["text"] for i in found), [i["text"] for i in found])
        self.assertTrue(any("call bpf_map_lookup_elem#1" == i["text"] for i in found))
        self.assertTrue(any("task_struct" in i.get("relocation", "") for i in found))

    def test_functions_that_are_called(self):
        self.open("tail_calls")
        self.assertEqual(self.instructions("second")[-1]["text"], "exit")
        with self.refused("NoSuchName", kind="program", nearMisses=["second"]):
            self.instructions("secund")
        self.assertEqual(self.as_member("io.btfd.Disassemble", program="first"), "io.btfd.NotOwner")

    def test_btfctl_shows_it(self):
        self.open("tail_calls")
        shown = self.btfctl("prog", "tail_calls", "second", "--code")
        self.assertRegex(shown, r"(?m)^; return 42; @ .*tail_calls\.bpf\.c:\d+$")
        self.assertRegex(shown, r"(?m)^ +\d+: b40000002a000000  w0 = 42$")

    def test_is_what_llvm_says(self):
        """On objects without CO-RE relocations, whose instructions nobody changes."""
        if OBJDUMP is None:
            self.skipTest("no llvm-objdump")
        checked = 0
        for name in ("maps", "global_data", "no_btf_needed", "tail_calls", "map_options", "program_options", "sk_skb",
                     "twelve", "symbols"):
            self.open(name)
            listing = subprocess.run([OBJDUMP, "-d", "--no-show-raw-insn", object_path(name)], capture_output=True, text=True,
                                     check=True).stdout
            for program in self.programs:
                body = re.search(r"^[0-9a-f]+ <%s>:\n((?:.+\n)*)" % re.escape(program), listing, re.M).group(1)
                expected = [comparable(line.split(":", 1)[1]) for line in body.splitlines() if ":" in line]
                found = self.instructions(program)
                for theirs, ours in zip(expected, found, strict=True):
                    if ours["text"].startswith("call ") and "#" not in ours["text"]:
                        continue  # a function's name, which they have no number for
                    self.assertEqual(comparable(ours["text"]), theirs, (name, program, ours))
                    checked += 1
        self.assertGreater(checked, 200)
