#!/usr/bin/env python3
"""Runs btfctl relocate on the project's own BPF objects: what it writes and says, its exit status, its privileges.

    relocate_test.py BTFCTL DIRECTORY [TEST...]
"""

import json
import os
import shutil

from offline_case import AS_NOBODY, RUNNING, OfflineCase, becomes_nobody, main, needs_kernel_btf


@needs_kernel_btf
class RelocateTest(OfflineCase):
    def setUp(self):
        super().setUp()
        self.out = self.path("out.o")

    def relocate(self, *arguments, given=b"", **more):
        return self.run_btfctl("relocate", *arguments, input=given, **more)

    def refused(self, *arguments, status=2, **more):
        done = self.relocate(*arguments, status=status, **more)
        self.assertEqual(done.stdout, b"")
        return done.stderr.decode()

    def test_writes_an_object_without_relocations(self):
        done = self.relocate(self.object("exec_events"), "-o", self.out)
        self.assertRegex(done.stdout.decode(), r"^exec_events\.o for running \(.*\): [1-9]\d* CO-RE relocations applied\n")
        self.assertIn("still needs the kernel's own BTF for programs whose targets are looked up there: on_exec\n", done.stdout.decode())
        self.assertEqual(done.stderr, b"")
        before, after = self.read(self.object("exec_events")), self.read(self.out)
        self.assertEqual(len(before), len(after))
        self.assertNotEqual(before, after)
        again = self.relocate(self.out, "-o", self.path("again.o"))
        self.assertIn(b": 0 CO-RE relocations applied", again.stdout)
        self.assertEqual(self.read(self.path("again.o")), after)

    def test_takes_one_kernel(self):
        kernel = self.write("one/vmlinux.btf", self.read(RUNNING))
        self.relocate(self.object("bench_wide500"), "-o", self.out)
        for path in (kernel, self.path("one")):
            done = self.relocate(self.object("bench_wide500"), "--kernel", path, "-o", self.path("other.o"))
            self.assertIn(b"bench_wide500.o for one: ", done.stdout)
            self.assertEqual(self.read(self.path("other.o")), self.read(self.out))
        self.write("two/a.btf", self.read(RUNNING))
        self.write("two/b.btf", self.read(RUNNING))
        error = self.refused(self.object("bench_wide500"), "--kernel", self.path("two"), "-o", self.out)
        self.assertIn("holds 2 kernels: name one of ", error)

    def test_tells_of_what_is_poisoned(self):
        done = self.relocate(self.object("missing_field"), "-o", self.out)
        self.assertIn(b"1 CO-RE relocation applied, 1 poisoned\n", done.stdout)
        self.assertIn(b"  poisoned: on_exec: struct task_struct___with_wishes.field_that_no_kernel_has: the kernel's struct "
                      b"task_struct has no 'field_that_no_kernel_has'", done.stdout)  # fmt: skip

    def test_strict_takes_nothing_that_is_poisoned(self):
        self.relocate(self.object("exec_events"), "-o", self.out, "--strict")
        before = self.read(self.out)
        for name in ("missing_field", "guarded"):
            with self.subTest(name=name):
                error = self.refused(self.object(name), "-o", self.out, "--strict", status=1)
                self.assertRegex(error, r"cannot be relocated for running .*: .*the kernel's struct task_struct has no '")
                self.assertEqual(self.read(self.out), before)
        document = json.loads(self.relocate(self.object("guarded"), "-o", self.out, "--strict", "--json", status=1).stdout)
        self.assertEqual(len(document["parameters"]["findings"]), 3)

    def test_has_a_document_for_programs(self):
        document = json.loads(self.relocate(self.object("guarded"), "-o", self.out, "--json").stdout)
        self.assertEqual((document["resolvedRelocations"], document["poisonedRelocations"]), (3, 3))
        self.assertEqual((document["output"], document["kernel"]["path"]), (self.out, RUNNING))
        self.assertEqual(document["findings"][0]["relocation"]["outcome"], "poisoned")
        needs = json.loads(self.relocate(self.object("fentry"), "-o", self.out, "--json").stdout)["needsKernelBtf"]
        self.assertEqual([need["name"] for need in needs], ["on_sleep", "on_sleep_return"])

    def test_works_in_a_pipe(self):
        content = self.read(self.object("bench_wide500"))
        done = self.relocate("-", "-o", "-", given=content)
        self.relocate(self.object("bench_wide500"), "-o", self.out)
        self.assertEqual(done.stdout, self.read(self.out))
        self.assertIn(b"500 CO-RE relocations applied", done.stderr)
        error = json.loads(self.relocate("-", "-o", "-", "--json", given=content, status=2).stdout)
        self.assertIn("both the object and JSON", error["parameters"]["message"])

    def test_writes_over_the_object_only_when_told(self):
        shutil.copy(self.object("bench_wide500"), self.out)
        before = self.read(self.out)
        self.assertIn("say --in-place", self.refused(self.out, "-o", self.path("./out.o")))
        self.assertEqual(self.read(self.out), before)
        self.relocate(self.out, "--in-place")
        self.assertNotEqual(self.read(self.out), before)
        self.assertIn("either -o OUT or --in-place", self.refused(self.out))
        self.assertIn("either -o OUT or --in-place", self.refused(self.out, "--in-place", "-o", self.path("other.o")))
        self.assertIn("no file to write over", self.refused("-", "--in-place"))

    def test_leaves_what_was_there_where_it_fails(self):
        self.write("out.o", b"before")
        kernel = self.write("kernel.btf", b"no BTF")
        self.assertIn("is neither BTF", self.refused(self.object("exec_events"), "--kernel", kernel, "-o", self.out))
        self.assertIn("is the kernel's BTF", self.refused(self.object("exec_events"), "--kernel", kernel, "-o", kernel))
        self.assertIn("not an ELF file", self.refused(kernel, "-o", self.out))
        self.assertIn("cannot write", self.refused(self.object("exec_events"), "-o", self.path("none/out.o"), status=1))
        self.assertEqual(self.read(self.out), b"before")
        self.assertEqual(sorted(os.listdir(self.directory.name)), ["kernel.btf", "out.o"])

    @becomes_nobody
    def test_needs_no_privileges(self):
        shutil.copy(self.object("exec_events"), self.directory.name)
        done = self.relocate(self.path("exec_events.o"), "-o", "-", prefix=AS_NOBODY)
        self.relocate(self.path("exec_events.o"), "-o", self.out)
        self.assertEqual(done.stdout, self.read(self.out))


if __name__ == "__main__":
    main(__doc__)
