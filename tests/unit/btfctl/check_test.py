#!/usr/bin/env python3
"""Runs btfctl check on the project's own BPF objects: what it prints, its exit status, its privileges.

    check_test.py BTFCTL DIRECTORY [TEST...]
"""

import gzip
import json
import lzma
import os
import shutil

from offline_case import AS_NOBODY, RUNNING, OfflineCase, becomes_nobody, main, needs_kernel_btf


@needs_kernel_btf
class CheckTest(OfflineCase):
    def check(self, *arguments, **more):
        return self.run_btfctl("check", *arguments, text=True, **more)

    def test_the_running_kernel_is_the_default(self):
        done = self.check(self.object("exec_events"))
        self.assertRegex(done.stdout, r"^OBJECT +running \(%s\)\nexec_events\.o +loads\n$" % os.uname().release.replace(".", r"\."))
        self.assertEqual(done.stderr, "")

    def test_what_fails_has_its_reasons_below_the_table(self):
        done = self.check(self.object("exec_events"), self.object("missing_field"), self.object("missing_targets"), status=1)
        self.assertRegex(done.stdout, r"missing_field\.o +fails\n")
        self.assertIn("\n\nmissing_field.o\n  fails: on_exec: struct task_struct___with_wishes.field_that_no_kernel_has: "
                      "the kernel's struct task_struct has no 'field_that_no_kernel_has'", done.stdout)
        self.assertIn("  fails: on_entry: the kernel has no function 'function_that_no_kernel_has'", done.stdout)
        self.assertIn("  warning: on_raw_event: it loads, but cannot be attached: the kernel has no tracepoint", done.stdout)

    def test_guarded_code_is_only_told_of_on_demand(self):
        self.assertNotIn("guarded, and not reached", self.check(self.object("guarded")).stdout)
        self.assertIn("guarded, and not reached", self.check(self.object("guarded"), "--verbose").stdout)

    def test_what_is_only_attached_is_looked_at_too(self):
        done = self.check(self.object("tracepoint"), self.object("kprobe"), self.object("kprobe_multi"), self.object("uprobe"))
        self.assertEqual(done.stdout.count("loads\n"), 4)
        self.assertNotIn("\n\n", done.stdout)
        self.assertIn("  note: on_call, on_return: it attaches to a program or library, which is not looked at\n",
                      self.check(self.object("uprobe"), "--verbose").stdout)

    def test_is_a_matrix_of_objects_and_kernels(self):
        content = self.read(RUNNING)
        self.write("kernels/one.btf.gz", gzip.compress(content, 1))
        self.write("kernels/two.btf.xz", lzma.compress(content, preset=0))
        three = self.write("three/vmlinux", content)
        done = self.check(self.object("tp_btf"), self.object("missing_helper"), "--kernel", self.path("kernels"), three, status=1)
        self.assertRegex(done.stdout, r"^OBJECT +one +two +three\ntp_btf\.o +loads +loads +loads\nmissing_helper\.o +fails +fails +fails\n")
        self.assertEqual(done.stdout.count("no helper"), 1)
        self.assertIn("fails on all: ", done.stdout)

    def test_has_a_document_for_programs(self):
        document = json.loads(self.check("--json", self.object("missing_helper"), status=1).stdout)
        self.assertEqual(document["verdict"], "fails")
        self.assertEqual(document["kernels"][0]["path"], RUNNING)
        self.assertNotIn("error", document["kernels"][0])
        report = document["objects"][0]["reports"][0]
        self.assertEqual((report["kernel"], report["verdict"]), (document["kernels"][0]["name"], "fails"))
        self.assertEqual(document["objects"][0]["name"], "missing_helper.o")
        self.assertEqual(report["findings"][0], {
            "severity": "error", "topic": "helper", "program": "on_exec", "name": "number 99999",
            "message": "the kernel has no helper number 99999",
        })  # fmt: skip
        for arguments in ([self.path("none.o")], [self.object("exec_events"), "--kernel", self.path("none.btf")]):
            document = json.loads(self.check("--json", *arguments, status=2).stdout)
            self.assertEqual(document["verdict"], "unknown", "nothing was checked")
        document = json.loads(self.check("--json", self.object("exec_events")).stdout)
        relocations = document["objects"][0]["reports"][0]["relocations"]
        self.assertGreater(len(relocations), 3)
        self.assertEqual({relocation["outcome"] for relocation in relocations}, {"resolved"})

    def test_what_cannot_be_read_does_not_hide_the_rest(self):
        bad_object = self.write("bad.o", b"no object")
        bad_kernel = self.write("bad.btf", b"no BTF")
        done = self.check(bad_object, self.object("tp_btf"), "--kernel", bad_kernel, RUNNING, status=2)
        self.assertRegex(done.stdout, r"\nbad\.o +unreadable\ntp_btf\.o +loads\n")
        self.assertIn("\n  unreadable: " + bad_object + ": not an ELF file", done.stdout)
        self.assertIn(bad_kernel + " is neither BTF nor an ELF file", done.stderr)
        self.assertIn(bad_object + ": not an ELF file", done.stderr)
        document = json.loads(self.check("--json", bad_object, self.path("none.o"), "--kernel", bad_kernel, status=2).stdout)
        self.assertIn("is neither BTF", document["kernels"][0]["error"])
        self.assertIn("not an ELF file", document["objects"][0]["error"])
        self.assertIn("No such file", document["objects"][1]["error"])

    def test_strict_takes_no_warnings(self):
        for name, strict in (("tp_btf", 0), ("guarded", 0), ("guarded_by_version", 1)):
            with self.subTest(name=name):
                self.check(self.object(name))
                self.check(self.object(name), "--strict", status=strict)

    def test_strict_takes_no_kernel_that_lacks_a_module(self):
        kernel = os.path.dirname(self.write("kernel/vmlinux", self.read(RUNNING)))
        self.check(self.object("tp_btf"), "--kernel", kernel, "--strict")
        # A split BTF whose only string begins with no NUL, and that is cut off.
        self.write("kernel/module", bytes.fromhex("9feb 01 00 18000000 00000000 00000000 00000000 02000000") + b"a")
        for arguments, status in (((), 0), (("--strict",), 1)):
            done = self.check(self.object("tp_btf"), "--kernel", kernel, *arguments, status=status)
            self.assertRegex(done.stdout, r"\ntp_btf\.o +loads\n")
            self.assertIn("a module is left out: " + kernel + "/module: ", done.stderr)
        document = json.loads(self.check(self.object("tp_btf"), "--kernel", kernel, "--strict", "--json", status=1).stdout)
        self.assertIn(kernel + "/module: ", document["kernels"][0]["leftOut"][0])

    def test_needs_an_object(self):
        self.assertIn("Try: btfctl check --help", self.check(status=2).stderr)
        self.check("--kernel", RUNNING, status=2)

    @becomes_nobody
    def test_needs_no_privileges(self):
        shutil.copy(self.object("exec_events"), self.directory.name)
        self.assertIn("loads", self.check(self.path("exec_events.o"), prefix=AS_NOBODY).stdout)


if __name__ == "__main__":
    main(__doc__)
