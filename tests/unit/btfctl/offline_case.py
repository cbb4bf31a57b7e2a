"""What the tests of btfctl's commands that need neither daemon nor privileges have in common."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

RUNNING = "/sys/kernel/btf/vmlinux"
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs")

needs_kernel_btf = unittest.skipUnless(os.path.exists(RUNNING), "this kernel shows no BTF")
becomes_nobody = unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv, to become nobody")


class OfflineCase(unittest.TestCase):
    """Runs btfctl on the project's own BPF objects, and in a directory of its own."""

    btfctl = ""
    objects = ""

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        os.chmod(self.directory.name, 0o755)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def write(self, name, content):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    @staticmethod
    def read(path):
        with open(path, "rb") as file:
            return file.read()

    def object(self, name):
        return os.path.join(self.objects, name + ".o")

    def run_btfctl(self, *arguments, status=0, prefix=(), **more):
        # No daemon is there to be asked.
        environment = os.environ | {"BTFD_SOCKET": self.path("socket")}
        done = subprocess.run([*prefix, self.btfctl, *arguments], capture_output=True, env=environment, timeout=60, **more)
        self.assertEqual(done.returncode, status, f"stdout:\n{done.stdout}\nstderr:\n{done.stderr}")
        return done


def main(usage):
    """Runs the tests of the script that calls it, whose arguments are BTFCTL DIRECTORY [TEST...]."""
    if len(sys.argv) < 3:
        sys.exit(usage)
    OfflineCase.btfctl, OfflineCase.objects = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
