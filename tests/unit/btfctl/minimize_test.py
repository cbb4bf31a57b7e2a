#!/usr/bin/env python3
"""Runs btfctl btf minimize on the project's own BPF objects: what it writes and says, its exit status, its privileges.

    minimize_test.py BTFCTL DIRECTORY [TEST...]
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BTFCTL = ""
OBJECTS = ""
RUNNING = "/sys/kernel/btf/vmlinux"


@unittest.skipUnless(os.path.exists(RUNNING), "this kernel shows no BTF")
class MinimizeTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        os.chmod(self.directory.name, 0o755)
        self.out = self.path("out.btf")

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def run_btfctl(self, *arguments, status=0, prefix=()):
        # No daemon is there to be asked.
        environment = os.environ | {"BTFD_SOCKET": self.path("socket")}
        done = subprocess.run([*prefix, BTFCTL, *arguments], capture_output=True, env=environment, timeout=60)
        self.assertEqual(done.returncode, status, f"stdout:\n{done.stdout}\nstderr:\n{done.stderr}")
        return done

    def minimize(self, *arguments, **more):
        return self.run_btfctl("btf", "minimize", *arguments, **more)

    def refused(self, *arguments, status=2):
        done = self.minimize(*arguments, status=status)
        self.assertEqual(done.stdout, b"")
        return done.stderr.decode()

    @staticmethod
    def object(name):
        return os.path.join(OBJECTS, name + ".o")

    @staticmethod
    def read(path):
        with open(path, "rb") as file:
            return file.read()

    def test_writes_what_relocates_objects_the_same(self):
        names = ("exec_events", "guarded", "missing_field", "bench_wide500")
        done = self.minimize(*map(self.object, names), "-o", self.out)
        self.assertRegex(done.stdout.decode(), r"^running \(.*\): \d+ types, [\d.]+ KiB\n")
        self.assertIn("missing_field.o: of 2 CO-RE relocations, 1 are poisoned and 0 fail", done.stdout.decode())
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

    def test_has_a_document_for_programs(self):
        document = json.loads(self.minimize(self.object("guarded"), "-o", self.out, "--json").stdout)
        self.assertEqual(document["bytes"], os.path.getsize(self.out))
        self.assertEqual(document["objects"], [
            {"path": self.object("guarded"), "resolvedRelocations": 3, "poisonedRelocations": 3, "failedRelocations": 0},
        ])  # fmt: skip

    def test_leaves_what_was_there_where_it_fails(self):
        with open(self.out, "wb") as file:
            file.write(b"before")
        self.assertIn("is neither BTF", self.refused(self.object("guarded"), "--kernel", self.out, "-o", self.path("new.btf")))
        self.assertIn("is the kernel's BTF", self.refused(self.object("guarded"), "--kernel", self.out, "-o", self.out))
        with tempfile.TemporaryDirectory() as kernel:
            shutil.copy(RUNNING, kernel)
            self.assertIn("is the kernel's BTF", self.refused(self.object("guarded"), "--kernel", kernel, "-o", kernel + "/vmlinux"))
        self.assertIn("is one of the objects", self.refused(self.out, "-o", self.out))
        self.assertIn(self.out + ": not an ELF file", self.refused(self.object("guarded"), self.out, "-o", self.path("new.btf")))
        self.assertIn("ask for nothing", self.refused(self.object("xdp"), "-o", self.out, status=1))
        self.assertIn("Try: btfctl btf minimize --help", self.refused(self.object("xdp")))
        self.assertEqual(self.read(self.out), b"before")
        self.assertEqual(os.listdir(self.directory.name), ["out.btf"])

    def test_a_wrong_command_is_answered_with_a_guess(self):
        done = self.run_btfctl("btf", "minimise", self.object("xdp"), status=2)
        self.assertEqual(done.stderr, b"btfctl btf: there is no command 'minimise'; did you mean minimize?\nTry: btfctl btf --help\n")
        self.assertIn(b"A subcommand is required", self.run_btfctl("btf", status=2).stderr)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv, to become nobody")
    def test_needs_no_privileges(self):
        shutil.copy(self.object("exec_events"), self.directory.name)
        nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs")
        done = self.minimize(self.path("exec_events.o"), "-o", "-", prefix=nobody)
        self.minimize(self.path("exec_events.o"), "-o", self.out)
        self.assertEqual(done.stdout, self.read(self.out))
        self.assertIn(b"types", done.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    BTFCTL, OBJECTS = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
