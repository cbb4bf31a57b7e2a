"""What btfctl check says of an object is what comes of loading it, on the kernel that runs."""
import contextlib
import glob
import gzip
import json
import os
import platform
import socket
import tempfile
import subprocess
import unittest

from btfd_client import VarlinkError
from harness import BIN_DIR, BPF_DIR, MEMBER_UID, SLOW, DaemonTest, built, memfd, object_bytes, object_path

# Refused by the verifier, for reasons that no BTF tells; or accepted only after longer than a test should take.
NO_BTF_TELLS = {"verifier_reject", "no_license", "slow_verify", "slow_verify_many", "device_bound"}
# Lack what their loader has to give them.
INCOMPLETE = {"map_options_inner"}
# Without BTF, which its maps need; without programs.
UNREADABLE = {"no_debug", "no_section"}


def check(*arguments, prefix=()):
    return subprocess.run([*prefix, built(BIN_DIR, "BTFD_BIN_DIR", "btfctl", "btfctl"), "check", *arguments],
                          capture_output=True, text=True, timeout=60 * SLOW)


def names():
    found = {os.path.basename(path)[:-2] for path in glob.glob(os.path.join(BPF_DIR, "*.o"))}
    return sorted(found - UNREADABLE - INCOMPLETE)


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


RUNNING = "/sys/kernel/btf/vmlinux"


@unittest.skipUnless(os.path.exists(RUNNING), "this kernel shows no BTF")
class CheckMethod(DaemonTest):
    """io.btfd.Check."""

    def check(self, objects, kernels=None, client=None, /, **parameters):
        """Checks the test objects of these names on kernels: a path, or bytes of BTF, by name; the whole reply."""
        with contextlib.ExitStack() as stack:
            descriptors = [stack.enter_context(open(object_path(name), "rb")) for name in objects]
            parameters["objects"] = [{"objectFileDescriptor": i, "name": name} for i, name in enumerate(objects)]
            if kernels is not None:
                parameters["kernels"] = []
                for name, content in kernels.items():
                    parameters["kernels"].append({"btfFileDescriptor": len(descriptors), "name": name})
                    descriptors.append(stack.enter_context(memfd(content) if isinstance(content, bytes) else open(content, "rb")))
            return (client or self.client).call("io.btfd.Check", parameters, descriptors)

    def test_on_the_running_kernel(self):
        answer = self.check(["exec_events", "missing_helper"])
        self.assertEqual(answer["verdict"], "fails")
        [kernel] = answer["kernels"]
        self.assertEqual((kernel["name"], kernel["path"]), ("running (%s)" % platform.release(), RUNNING))
        good, bad = answer["objects"]
        self.assertEqual([report["verdict"] for report in good["reports"]], ["loads"])
        [report] = bad["reports"]
        self.assertEqual((report["verdict"], report["kernel"], report["findingsLeftOut"]), ("fails", kernel["name"], 0))
        self.assertEqual(report["findings"], [{"severity": "error", "topic": "helper", "program": "on_exec", "name": "number 99999",
                                               "message": "the kernel has no helper number 99999"}])

    def test_says_what_btfctl_says(self):
        answer = self.check(names(), allRelocations=True)
        done = check("--json", *(object_path(name) for name in names()))
        document = json.loads(done.stdout)
        self.assertEqual(answer["verdict"], document["verdict"])
        for mine, its in zip(answer["objects"], document["objects"], strict=True):
            with self.subTest(object=mine["name"]):
                for report in its["reports"]:
                    del report["relocations"][1000:]
                self.assertEqual(mine["reports"], its["reports"])

    def test_on_kernels_that_are_sent(self):
        with open(RUNNING, "rb") as f:
            content = f.read()
        answer = self.check(["exec_events"], {"file": RUNNING, "gzip": gzip.compress(content, 1), "cut": content[:-100]})
        self.assertEqual([kernel["name"] for kernel in answer["kernels"]], ["file", "gzip", "cut"])
        self.assertIn("damaged", answer["kernels"][2]["error"])
        self.assertEqual([(report["kernel"], report["verdict"]) for report in answer["objects"][0]["reports"]],
                         [("file", "loads"), ("gzip", "loads")])

    def test_records_of_all_relocations_on_demand(self):
        for wanted in (False, True):
            [object] = self.check(["exec_events"], allRelocations=wanted)["objects"]
            [report] = object["reports"]
            self.assertGreater(report["resolvedRelocations"], 3)
            self.assertEqual(len(report["relocations"]), report["resolvedRelocations"] if wanted else 0)

    def test_loads_nothing(self):
        self.check(names())
        self.assertEqual(self.client.call("io.btfd.List")["objects"], [])

    def test_objects_that_are_none(self):
        bad = sorted(glob.glob(os.path.join(BPF_DIR, "bad", "*.o")))
        self.assertGreater(len(bad), 5)
        before = self.daemon.workers()
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(open(path, "rb")) for path in [*bad, object_path("tp_btf")]]
            answer = self.client.call("io.btfd.Check", {"objects": [{"objectFileDescriptor": i} for i in range(len(files))]}, files)
        self.assertIn("error", {key for object in answer["objects"] for key in object})
        self.assertEqual([report["verdict"] for report in answer["objects"][-1]["reports"]], ["loads"])
        self.assertEqual(answer["objects"][-1]["name"], "object %d" % len(bad))
        self.assertEqual(self.daemon.workers(), before)

    def test_descriptors_that_are_no_files(self):
        ours, theirs = socket.socketpair()
        reader, writer = os.pipe()
        with ours, theirs, open(reader, "rb"), open(writer, "wb"), open("/dev/zero", "rb") as zero, open(object_path("tp_btf"), "rb") as good:
            for descriptor in (ours.fileno(), reader, zero.fileno()):
                answer = self.client.call(
                    "io.btfd.Check", {"objects": [{"objectFileDescriptor": 0}], "kernels": [{"btfFileDescriptor": 1}]},
                    [descriptor, good])
                self.assertIn("regular file", answer["objects"][0]["error"])
                answer = self.client.call(
                    "io.btfd.Check", {"objects": [{"objectFileDescriptor": 0}], "kernels": [{"btfFileDescriptor": 1}]},
                    [good, descriptor])
                self.assertIn("no regular file", answer["kernels"][0]["error"])

    def test_a_kernel_that_changes_while_it_is_read(self):
        with open(RUNNING, "rb") as f:
            content = f.read()
        before = self.daemon.workers()
        with tempfile.NamedTemporaryFile() as kernel:
            kernel.write(content)
            kernel.flush()
            writer = os.fork()
            if writer == 0:
                while True:
                    os.truncate(kernel.name, 100)
                    with open(kernel.name, "r+b") as again:
                        again.write(content)
            try:
                for _ in range(20):
                    self.assertEqual(len(self.check(["tp_btf"], {"changing": kernel.name})["kernels"]), 1)
            finally:
                os.kill(writer, 9)
                os.waitpid(writer, 0)
        self.assertEqual(self.daemon.workers(), before)

    def test_bad_parameters(self):
        cases = (
            ({}, "objects"),
            ({"objects": []}, "objects"),
            ({"objects": [{}]}, "objects[0].objectFileDescriptor"),
            ({"objects": [{"objectFileDescriptor": 7}]}, "objects[0].objectFileDescriptor"),
            ({"objects": [{"objectFileDescriptor": 0}, {"objectFileDescriptor": 0}]}, "objects[1].objectFileDescriptor"),
            ({"objects": [{"objectFileDescriptor": 0}], "kernels": [{"btfFileDescriptor": -1}]}, "kernels[0].btfFileDescriptor"),
            ({"objects": [{"objectFileDescriptor": 0}], "kernels": [{"btfFileDescriptor": 1, "modules": [{"btfFileDescriptor": 0}]}]},
             "kernels[0].modules[0].btfFileDescriptor"),
            ({"objects": [{"objectFileDescriptor": 0, "name": "a\u202eb"}]}, "objects[0].name"),
            ({"objects": [{"objectFileDescriptor": 0, "name": "n" * 257}]}, "objects[0].name"),
            ({"objects": [{"objectFileDescriptor": 0}], "kernels": [{"btfFileDescriptor": 1, "name": "\x1b[2J"}]}, "kernels[0].name"),
            ({"objects": [{"objectFileDescriptor": 0}],
              "kernels": [{"btfFileDescriptor": 1, "modules": [{"btfFileDescriptor": 2, "name": "a\nb"}]}]},
             "kernels[0].modules[0].name"),
            ({"objects": [{"objectFileDescriptor": 0}], "deadlineMs": 0}, "deadlineMs"),
            ({"objects": [{"objectFileDescriptor": 0}], "surprise": 1}, "surprise"),
        )
        for parameters, field in cases:
            with self.subTest(parameters=parameters), open(object_path("tp_btf"), "rb") as f, open(RUNNING, "rb") as kernel:
                with self.refused("InvalidParameter", parameter=field):
                    self.client.call("io.btfd.Check", parameters, [f, kernel])

    def test_an_answer_has_a_limit(self):
        many = {"kernel %d" % i: RUNNING for i in range(25)}
        with self.refused("LimitExceeded", limit="answerBytes"):
            self.check(["bench_hundred"], many, allRelocations=True)
        self.assertEqual(len(self.check(["bench_hundred"], many)["kernels"]), 25)

    def test_a_request_has_a_deadline(self):
        many = {"kernel %d" % i: RUNNING for i in range(200)}
        with self.refused("DeadlineExceeded", deadlineMs=1):
            self.check(["bench_hundred"] * 50, many, deadlineMs=1)


@unittest.skipUnless(os.path.exists(RUNNING), "this kernel shows no BTF")
class CheckOnDemand(DaemonTest):
    config = {"kernelBtf": {"load": "on-demand"}}

    def builds(self):
        return self.client.call("io.btfd.DescribeKernel")["buildCount"]

    def test_builds_the_running_kernels_spec_only_if_that_is_asked_about(self):
        with memfd(object_bytes("exec_events")) as f, open(RUNNING, "rb") as kernel:
            self.client.call("io.btfd.Check", {"objects": [{"objectFileDescriptor": 0}], "kernels": [{"btfFileDescriptor": 1}]},
                             [f, kernel])
            self.assertEqual(self.builds(), 0)
            answer = self.client.call("io.btfd.Check", {"objects": [{"objectFileDescriptor": 0}]}, [f])
            self.assertEqual(answer["verdict"], "loads")
            self.assertEqual(self.builds(), 1)
