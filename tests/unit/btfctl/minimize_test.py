#!/usr/bin/env python3
"""Runs btfctl btf minimize on the project's own BPF objects: what it writes and says, its exit status, its privileges.

    minimize_test.py BTFCTL DIRECTORY [TEST...]
"""

import json
import os
import shutil
import tempfile

from offline_case import AS_NOBODY, RUNNING, OfflineCase, becomes_nobody, main, needs_kernel_btf


@needs_kernel_btf
class MinimizeTest(OfflineCase):
    def setUp(self):
        super().setUp()
        self.out = self.path("out.btf")

    def minimize(self, *arguments, **more):
        return self.run_btfctl("btf", "minimize", *arguments, **more)

    def refused(self, *arguments, status=2):
        done = self.minimize(*arguments, status=status)
        self.assertEqual(done.stdout, b"")
        return done.stderr.decode()

    def test_writes_what_relocates_objects_the_same(self):
        names = ("exec_events", "guarded", "missing_field", "bench_wide500")
        done = self.minimize(*map(self.object, names), "-o", self.out, status=1)
        self.assertRegex(done.stdout.decode(), r"^running \(.*\): \d+ types, [\d.]+ KiB\n")
        self.assertIn("missing_field.o: of 2 CO-RE relocations, 1 is poisoned and 0 fail on this kernel\n", done.stdout.decode())
        self.assertIn("missing_field.o: fails: on_exec: struct task_struct___with_wishes.field_that_no_kernel_has: ", done.stdout.decode())
        self.assertIn("guarded.o: of 6 CO-RE relocations, 3 are poisoned and 0 fail on this kernel, in code that is not reached",
                      done.stdout.decode())
        self.assertNotIn(b"exec_events", done.stdout)
        self.assertLess(os.path.getsize(self.out), os.path.getsize(RUNNING) / 100)
        for name in names:
            with self.subTest(name=name):
                self.run_btfctl("relocate", self.object(name), "-o", self.path("whole.o"))
                self.run_btfctl("relocate", self.object(name), "--kernel", self.out, "-o", self.path("least.o"))
                self.assertEqual(self.read(self.path("least.o")), self.read(self.path("whole.o")))

    def test_what_is_minimized_stays_as_it_is(self):
        self.minimize(self.object("exec_events"), "-o", self.out)
        self.minimize(self.object("exec_events"), "--kernel", self.out, "-o", self.path("again.btf"))
        self.assertEqual(self.read(self.path("again.btf")), self.read(self.out))

    def test_check_knows_that_it_is_not_a_whole_kernel(self):
        self.minimize(self.object("exec_events"), self.object("tracepoint"), "-o", self.out)
        done = self.run_btfctl("check", self.object("exec_events"), self.object("tracepoint"), "--kernel", self.out)
        self.assertEqual(done.stdout.count(b"unknown: not a whole kernel's BTF"), 2)
        self.assertEqual(len(done.stdout.splitlines()), 3 + 2 * 3, done.stdout.decode())

    def test_has_a_document_for_programs(self):
        document = json.loads(self.minimize(self.object("guarded"), "-o", self.out, "--json").stdout)
        self.assertEqual(document["bytes"], os.path.getsize(self.out))
        self.assertEqual(document["objects"], [
            {"path": self.object("guarded"), "resolvedRelocations": 3, "poisonedRelocations": 3, "failedRelocations": 0, "findings": []},
        ])  # fmt: skip
        arguments = (self.path("none.o"), self.object("missing_field"), "-o", self.out, "--json")
        unread, missing = json.loads(self.minimize(*arguments, status=1).stdout)["objects"]
        self.assertIn("No such file", unread["error"])
        self.assertEqual([finding["topic"] for finding in missing["findings"]], ["relocation"])

    def test_what_cannot_be_read_does_not_stop_the_rest(self):
        bad = self.write("bad.o", b"no object")
        done = self.minimize(bad, self.object("exec_events"), "-o", self.out, status=1)
        self.assertIn(b"an object is left out: " + bad.encode() + b": not an ELF file", done.stderr)
        self.minimize(self.object("exec_events"), "-o", self.path("again.btf"))
        self.assertEqual(self.read(self.path("again.btf")), self.read(self.out))

    def test_tells_of_another_byte_order(self):
        done = self.minimize(self.object("big_endian/exec_events"), "-o", self.out, status=1)
        self.assertIn(b"exec_events.o: fails: the object is big-endian and the kernel is little-endian", done.stdout)
        self.assertTrue(os.path.exists(self.out))

    def test_leaves_what_was_there_where_it_fails(self):
        with open(self.out, "wb") as file:
            file.write(b"before")
        self.assertIn("is neither BTF", self.refused(self.object("guarded"), "--kernel", self.out, "-o", self.path("new.btf")))
        self.assertIn("is the kernel's BTF", self.refused(self.object("guarded"), "--kernel", self.out, "-o", self.out))
        with tempfile.TemporaryDirectory() as kernel:
            shutil.copy(RUNNING, kernel)
            self.assertIn("is the kernel's BTF", self.refused(self.object("guarded"), "--kernel", kernel, "-o", kernel + "/vmlinux"))
        self.assertIn("is one of the objects", self.refused(self.out, "-o", self.out))
        self.assertIn(self.out + ": not an ELF file", self.refused(self.out, self.out, "-o", self.path("new.btf")))
        self.assertIn("ask for nothing", self.refused(self.object("xdp"), "-o", self.out, status=1))
        self.assertIn("Try: btfctl btf minimize --help", self.refused(self.object("xdp")))
        self.assertEqual(self.read(self.out), b"before")
        self.assertEqual(os.listdir(self.directory.name), ["out.btf"])

    def test_a_wrong_command_is_answered_with_a_guess(self):
        done = self.run_btfctl("btf", "minimise", self.object("xdp"), status=2)
        self.assertEqual(done.stderr, b"btfctl btf: there is no command 'minimise'; did you mean minimize?\nTry: btfctl btf --help\n")
        self.assertIn(b"A subcommand is required", self.run_btfctl("btf", status=2).stderr)

    @becomes_nobody
    def test_needs_no_privileges(self):
        shutil.copy(self.object("exec_events"), self.directory.name)
        done = self.minimize(self.path("exec_events.o"), "-o", "-", prefix=AS_NOBODY)
        self.minimize(self.path("exec_events.o"), "-o", self.out)
        self.assertEqual(done.stdout, self.read(self.out))
        self.assertIn(b"types", done.stderr)


if __name__ == "__main__":
    main(__doc__)
