"""What btfctl check says of other people's objects is what comes of loading them, on the kernel that runs."""
import glob
import json
import os
import subprocess
import unittest

from btfd_client import VarlinkError
from harness import BIN_DIR, SLOW, DaemonTest, built

# Below it: objects, as tests/tools/fetch-bpf-objects leaves them.
OBJECTS = os.environ.get("BTFD_OBJECTS") or os.path.join(
    os.environ.get("BTFD_CACHE") or os.path.expanduser("~/.cache/btfd"), "objects", "bookworm")


def objects():
    return sorted(glob.glob(OBJECTS + "/**/*.o", recursive=True))


@unittest.skipUnless(os.path.exists("/sys/kernel/btf/vmlinux"), "this kernel shows no BTF")
@unittest.skipUnless(objects(), "there are no objects below %s: run tests/tools/fetch-bpf-objects" % OBJECTS)
class CheckOfOthers(DaemonTest):
    def refusal(self, path):
        """Why it does not load, or None."""
        try:
            with open(path, "rb") as f:
                self.client.call("io.btfd.Load", {"objectFileDescriptor": 0, "dryRun": True}, [f])
        except VarlinkError as error:
            return error
        return None

    def test_agrees_with_the_kernel(self):
        done = subprocess.run([built(BIN_DIR, "BTFD_BIN_DIR", "btfctl", "btfctl"), "check", "--json", *objects()],
                              capture_output=True, text=True, timeout=120 * SLOW, check=False)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        judged = json.loads(done.stdout)["objects"]
        self.assertEqual([each["path"] for each in judged], objects())
        counts = {}
        for each in judged:
            report, refusal = each["reports"][0], self.refusal(each["path"])
            key = (report["verdict"], "refused" if refusal else "loaded")
            counts[key] = counts.get(key, 0) + 1
            with self.subTest(object=each["path"]):
                if report["verdict"] in ("loads", "warning"):
                    # What no BTF tells: lockdown, what only the verifier finds out, and sizes of maps that the object leaves to
                    # the program that it belongs to.
                    self.assertTrue(refusal is None or refusal.parameters.get("errnoName") == "EPERM"
                                    or "verifierLog" in refusal.parameters or refusal.parameters.get("stage") == "map", refusal)
                elif report["verdict"] == "fails":
                    self.assertIsNotNone(refusal, report["findings"])
        print("\n    " + ", ".join("%s, %s: %d" % (*key, count) for key, count in sorted(counts.items())))
