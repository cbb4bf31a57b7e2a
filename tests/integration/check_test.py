"""What btfctl check says of an object is what comes of loading it, on the kernel that runs."""
import glob
import json
import os
import subprocess
import unittest

from btfd_client import VarlinkError
from harness import BIN_DIR, BPF_DIR, MEMBER_UID, SLOW, DaemonTest, built, object_path

# Refused by the verifier, for reasons that no BTF tells; or accepted only after longer than a test should take.
NO_BTF_TELLS = {"verifier_reject", "no_license", "slow_verify", "slow_verify_many"}
# Not for this machine; without BTF, which its maps need; without programs.
UNREADABLE = {"big_endian", "no_debug", "no_section"}


def check(*arguments, prefix=()):
    return subprocess.run([*prefix, built(BIN_DIR, "BTFD_BIN_DIR", "btfctl", "btfctl"), "check", *arguments],
                          capture_output=True, text=True, timeout=60 * SLOW)


def names():
    found = {os.path.basename(path)[:-2] for path in glob.glob(os.path.join(BPF_DIR, "*.o"))}
    return sorted(found - UNREADABLE)


@unittest.skipUnless(os.path.exists("/sys/kernel/btf/vmlinux"), "this kernel shows no BTF")
class CheckAndLoad(DaemonTest):
    def verdicts(self):
        done = check("--json", *(object_path(name) for name in names()))
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return {os.path.basename(each["path"])[:-2]: each["reports"][0] for each in json.loads(done.stdout)["objects"]}

    def loads(self, name):
        """Whether it does, and why not."""
        try:
            self.load(name, dryRun=True)
        except VarlinkError as error:
            return False, error
        return True, None

    def test_agree(self):
        verdicts = self.verdicts()
        self.assertGreater(len(verdicts), 30)
        for name, report in verdicts.items():
            if name in NO_BTF_TELLS:
                continue
            with self.subTest(object=name):
                loads, error = self.loads(name)
                if error is not None and error.parameters.get("errnoName") == "EPERM":
                    continue  # by lockdown: no BTF tells that either
                if report["verdict"] != "unknown":
                    self.assertEqual(report["verdict"] != "fails", loads, (report["findings"], error))

    def test_agree_on_what_is_no_object(self):
        for name in UNREADABLE:
            with self.subTest(object=name):
                done = check(object_path(name))
                self.assertEqual(done.returncode, 2, done.stdout)
                loads, error = self.loads(name)
                self.assertFalse(loads)
                self.assertEqual(error.name, "io.btfd.InvalidObject")
                self.assertIn(error.parameters["message"], done.stderr)

    def test_both_verdicts_occur(self):
        verdicts = {name: report["verdict"] for name, report in self.verdicts().items()}
        self.assertEqual({verdicts[name] for name in ("exec_events", "guarded", "maps", "optional", "tp_btf")}, {"loads"})
        for name in ("missing_field", "missing_field_in_function", "missing_helper", "missing_kernel_function", "missing_targets"):
            self.assertEqual(verdicts[name], "fails", name)

    def test_needs_no_privileges(self):
        done = check("--json", object_path("exec_events"), object_path("missing_field"),
                     prefix=["setpriv", "--reuid=%d" % MEMBER_UID, "--regid=%d" % MEMBER_UID, "--clear-groups"])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([each["reports"][0]["verdict"] for each in json.loads(done.stdout)["objects"]], ["loads", "fails"])
