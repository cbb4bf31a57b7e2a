"""Programs that are made for a function when they are loaded: fentry and the like, LSM hooks, functions of BPF programs."""
import os
import socket
import tempfile
import time

import bpf
from attaching import AttachTest
from btfd_client import VarlinkError


def sleep_once():
    time.sleep(0.001)


def open_something():
    open("/dev/null", "rb").close()


class FunctionTest(AttachTest):
    def setUp(self):
        super().setUp()
        try:
            self.client.call("io.btfd.Unload", {"objectId": self.load("fentry")["object"]["id"]})
        except VarlinkError as e:
            self.check_reason(e, "io.btfd.LoadFailed")
            self.skipTest("the kernel does not let such programs be loaded: " + e.parameters["message"])

    def runs_once_loaded(self, name, program, kind, trigger, target=None, **parameters):
        """As runs_while_attached, with parameters for Load."""
        loaded, count = self.load_with_counter(name, **parameters)
        link = self.attach(loaded, program, target)["link"]
        self.assertEqual(link["kind"], kind)
        trigger()
        self.assertGreater(count(), 0, "it did not run")
        self.detach(link)
        before = count()
        trigger()
        self.assertEqual(count(), before, "it ran after it was detached")
        return link


class Fentry(FunctionTest):
    def test_enter(self):
        self.runs_while_attached("fentry", "on_sleep", "fentry", sleep_once)

    def test_exit(self):
        self.runs_while_attached("fentry", "on_sleep_return", "fexit", sleep_once)

    def test_attached_at_load(self):
        self.runs_when_attached_at_load("fentry", "on_sleep", sleep_once)

    def test_cookie(self):
        loaded = self.load("fentry")["object"]
        try:
            self.attach(loaded, "on_sleep", {"cookie": 7})
        except VarlinkError as e:
            self.assertIn("cookies of such programs take Linux 5.19", e.parameters["message"])


class FmodRet(FunctionTest):
    def test_runs_while_attached(self):
        self.runs_while_attached("fmod_ret", "on_open", "fmod_ret", open_something)


class MadeFor(FunctionTest):
    def made_for(self, program, function):
        return {program: {"enabled": True, "target": {"function": function}}}

    def test_a_function_that_the_section_leaves_open(self):
        link = self.runs_once_loaded("made_for", "on_enter", "fentry", sleep_once,
                                     programs=self.made_for("on_enter", "do_nanosleep"))
        self.assertEqual(link["target"], "do_nanosleep")

    def test_a_function_instead_of_the_sections(self):
        loaded = self.load("made_for", programs=self.made_for("on_return", "do_nanosleep"))["object"]
        self.assertEqual(loaded["programs"][0]["target"], "do_nanosleep")
        self.runs_once_loaded("made_for", "on_return", "fexit", sleep_once,
                              programs=self.made_for("on_return", "do_nanosleep"))

    def test_attached_at_load(self):
        request = self.made_for("on_enter", "do_nanosleep")
        request["on_enter"]["attach"] = [{}]
        loaded = self.load("made_for", programs=request)["object"]
        self.assertEqual(loaded["links"][0]["target"], "do_nanosleep")

    def test_what_is_not_there(self):
        with self.refused("InvalidParameter", parameter="programs.on_enter.target.function") as refusal:
            self.load("made_for", programs=self.made_for("on_enter", "do_nanosleap"))
        self.assertIn("'do_nanosleep'", str(refusal.error.parameters))
        with self.refused("LoadFailed", program="on_enter") as refusal:
            self.load("made_for", programs={"on_enter": {"enabled": True}})
        self.assertIn("programs.on_enter.target", refusal.error.parameters["message"])

    def test_only_for_programs_that_need_it(self):
        with self.refused("InvalidParameter", parameter="programs.on_exec.target"):
            self.load("tracepoint", programs={"on_exec": {"target": {"function": "do_nanosleep"}}})

    def test_a_program(self):
        traced = self.load("replaceable", wantDescriptors=True)
        filter_program = traced["object"]["programs"][0]
        loaded, count = self.load_with_counter("made_for", programs={"on_enter": {"enabled": True, "target": {
            "objectId": traced["object"]["id"], "program": "filter"}}})
        link = self.attach(loaded, "on_enter")["link"]
        bpf.test_run(traced.descriptors[filter_program["fileDescriptor"]])
        self.assertEqual(count(), 1)
        self.detach(link)
        bpf.test_run(traced.descriptors[filter_program["fileDescriptor"]])
        self.assertEqual(count(), 1)


class Replacement(FunctionTest):
    XDP_DROP, XDP_PASS = 1, 2

    def test_replaces_a_function(self):
        replaced = self.load("replaceable", wantDescriptors=True)
        descriptor = replaced.descriptors[replaced["object"]["programs"][0]["fileDescriptor"]]
        self.assertEqual(bpf.test_run(descriptor), self.XDP_DROP)
        target = {"objectId": replaced["object"]["id"], "program": "filter", "function": "decide"}
        loaded, count = self.load_with_counter("made_for", programs={"replacement": {"enabled": True, "target": target}})
        link = self.attach(loaded, "replacement")["link"]
        self.assertEqual(link["kind"], "freplace")
        self.assertEqual((bpf.test_run(descriptor), count()), (self.XDP_PASS, 1))
        self.detach(link)
        self.assertEqual((bpf.test_run(descriptor), count()), (self.XDP_DROP, 1))

    def test_what_is_not_there(self):
        replaced = self.load("replaceable")["object"]
        target = {"objectId": replaced["id"], "program": "filter"}
        for changed, error in (({"function": "no_such"}, "InvalidParameter"), ({"program": "no_such"}, "NoSuchName"),
                               ({"objectId": 1 << 40}, "NoSuchObject"), ({"objectId": None}, "InvalidParameter")):
            with self.subTest(changed=changed), self.refused(error):
                self.load("made_for", programs={"replacement": {"enabled": True, "target": {**target, **changed}}})
        with self.refused("InvalidParameter", parameter="programs.replacement.target"):
            self.load("made_for", programs={"replacement": {"enabled": True, "target": {"function": "decide"}}})


class Lsm(FunctionTest):
    def setUp(self):
        super().setUp()
        with open("/sys/kernel/security/lsm", encoding="utf-8") as f:
            if "bpf" not in f.read().split(","):
                self.skipTest("BPF is not among this kernel's security modules (lsm= on its command line)")

    def test_hook(self):
        self.runs_while_attached("lsm", "on_file_open", "lsm", open_something)

    def test_sleepable(self):
        self.needs_kernel(5, 11)
        self.runs_once_loaded("lsm", "on_file_open_sleepable", "lsm", open_something,
                              programs={"on_file_open_sleepable": {"enabled": True}})

    def test_made_for_another_hook(self):
        self.runs_once_loaded("lsm", "on_file_open", "lsm", lambda: os.stat("/dev/null"),
                              programs={"on_file_open": {"target": {"function": "inode_getattr"}}})

    def test_of_a_cgroup(self):
        self.needs_kernel(6, 0)
        group = tempfile.mkdtemp(prefix="btfd-", dir="/sys/fs/cgroup")
        self.addCleanup(os.rmdir, group)
        own = open("/proc/self/cgroup", encoding="utf-8").read().split("::")[1].strip()

        def enter(path):
            with open(os.path.join(path, "cgroup.procs"), "w", encoding="utf-8") as f:
                f.write("0")

        enter(group)
        self.addCleanup(enter, "/sys/fs/cgroup" + own)
        self.runs_once_loaded("lsm", "on_socket", "cgroup", lambda: socket.socket().close(), {"cgroup": group},
                              programs={"on_socket": {"enabled": True}})
