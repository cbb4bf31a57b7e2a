"""systemd's varlinkctl, as people use it from a shell."""
import base64
import json
import os
import platform
import re
import subprocess

import foreign
from harness import SLOW, DaemonTest, object_bytes, object_path


class Varlinkctl(DaemonTest):
    @classmethod
    def setUpClass(cls):
        cls.program = foreign.fetch("varlinkctl")
        super().setUpClass()
        cls.address = "unix:" + cls.daemon.socket_path

    def start(self, *arguments, **options):
        return subprocess.Popen([self.program, "--no-pager", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, **options)

    def run_it(self, *arguments, status=0, text_in=None, **options):
        process = self.start(*arguments, stdin=subprocess.PIPE, **options)
        out, err = process.communicate(text_in, timeout=60 * SLOW)
        self.assertEqual(process.returncode == 0, status == 0, "%s\n%s" % (out, err))
        return out if status == 0 else out + err

    def call(self, method, parameters, *options, **more):
        return json.loads(self.run_it("-j", *options, "call", self.address, method, json.dumps(parameters), **more))

    def test_info(self):
        out = self.run_it("info", self.address)
        for text in ("btfd", "io.btfd", "org.varlink.service", "io.systemd.service"):
            self.assertIn(text, out)

    def test_list_interfaces(self):
        out = self.run_it("list-interfaces", self.address)
        self.assertTrue({"io.btfd", "org.varlink.service", "io.systemd.service"} <= set(out.split()))

    def test_list_methods(self):
        out = self.run_it("list-methods", self.address).split()
        for method in ("io.btfd.Load", "io.btfd.Monitor", "org.varlink.service.GetInfo", "io.systemd.service.Ping"):
            self.assertIn(method, out)

    def test_introspect(self):
        out = self.run_it("introspect", self.address, "io.btfd")
        self.assertRegex(out, r"method Load\(")
        self.assertIn("error WorkerLost", out)
        for interface in self.run_it("list-interfaces", self.address).split():
            self.run_it("introspect", self.address, interface)

    def test_finds_our_interface_files_valid(self):
        """All of them, by systemd's own parser."""
        for interface in self.run_it("list-interfaces", self.address).split():
            text = self.client.call("org.varlink.service.GetInterfaceDescription", {"interface": interface})
            self.run_it("validate-idl", "/dev/stdin", text_in=text["description"])

    def test_list(self):
        self.assertEqual(self.call("io.btfd.List", {}), {"objects": []})
        loaded = self.load("tp_btf", name="seen", labels={"by": "varlinkctl"})["object"]
        self.assertEqual(self.call("io.btfd.List", {"labels": {"by": "varlinkctl"}}), {"objects": [dict(loaded)]})

    def test_describe_kernel(self):
        self.assertEqual(self.call("io.btfd.DescribeKernel", {})["release"], platform.release())

    def test_load_inline(self):
        text = base64.b64encode(object_bytes("tp_btf")).decode()
        loaded = self.call("io.btfd.Load", {"object": text, "name": "inline"})["object"]
        self.assertEqual((loaded["name"], loaded["programs"][0]["name"]), ("inline", "on_exec"))

    def test_load_by_descriptor(self):
        if "--push-fd" not in self.run_it("--help"):
            self.skipTest("this varlinkctl has no --push-fd")
        with open(object_path("tp_btf"), "rb") as f:
            loaded = self.call("io.btfd.Load", {"objectFileDescriptor": 0, "programs": {"on_exec": {"attach": [{}]}}},
                               "--push-fd=%d" % f.fileno(), pass_fds=[f.fileno()])["object"]
        self.assertEqual([link["kind"] for link in loaded["links"]], ["tp_btf"])

    def test_descriptors_for_a_command(self):
        """--exec gives the descriptors that came with the reply to a command."""
        if "--exec" not in self.run_it("--help"):
            self.skipTest("this varlinkctl has no --exec")
        loaded = self.load("tp_btf")["object"]
        out = self.run_it("--exec", "call", self.address, "io.btfd.GetDescriptors", json.dumps(
            {"objectId": loaded["id"], "maps": ["counter"]}), "--", "sh", "-c", "cat /proc/self/fdinfo/3")
        self.assertRegex(out, r"map_id:\s+%d\b" % loaded["maps"][0]["kernelId"])

    def test_errors_are_shown(self):
        out = self.run_it("call", self.address, "io.btfd.Unload", '{"objectId": 4711}', status=1)
        self.assertIn("io.btfd.NoSuchObject", out)
        out = self.run_it("call", self.address, "io.btfd.Unload", '{"objectId": "x"}', status=1)
        self.assertIn("objectId", out)
        self.assertIn("Invalid argument", out)  # its words for org.varlink.service.InvalidParameter
        out = self.run_it("call", self.address, "io.btfd.Monitor", "{}", status=1)
        self.assertIn("'more' flag", out)

    def test_monitor(self):
        process = self.start("-j", "--more", "call", self.address, "io.btfd.Monitor", "{}")
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        decoder, text = json.JSONDecoder(), ""

        def next_event():
            nonlocal text
            while True:
                text = text.lstrip("\x1e \n")
                try:
                    value, end = decoder.raw_decode(text)
                    text = text[end:]
                    return value["event"]
                except ValueError:
                    data = os.read(process.stdout.fileno(), 65536).decode()
                    self.assertTrue(data, "varlinkctl ended")
                    text += data
        self.assertEqual(next_event()["kind"], "subscribed")
        loaded = self.load("tp_btf", name="watched")["object"]
        event = next_event()
        self.assertEqual((event["kind"], event["objectId"], event["objectName"]), ("loaded", loaded["id"], "watched"))

    def test_oneway(self):
        self.run_it("--oneway", "call", self.address, "io.btfd.Unload", '{"objectId": 4711}')

    def test_ping(self):
        self.assertEqual(self.call("io.systemd.service.Ping", {}), {})

    def test_is_the_newer_one(self):
        """The system's own may be too old to tell us anything."""
        version = re.search(r"systemd (\d+)", self.run_it("--version"))
        self.assertGreaterEqual(int(version.group(1)), 257)
