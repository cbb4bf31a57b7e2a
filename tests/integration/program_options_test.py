"""How Load loads programs otherwise than their sections say, and what it tells them of the kernel's configuration."""
import socket
import struct

import bpf
from harness import DaemonTest
from system import VethPair, cgroup

CGROUP_SKB, XDP, SOCKET_FILTER = 8, 6, 1  # enum bpf_prog_type, include/uapi/linux/bpf.h
STRICT_ALIGNMENT = 1 << 0  # BPF_F_STRICT_ALIGNMENT


class ProgramOptions(DaemonTest):
    def load_with(self, name="program_options", /, **programs):
        self.reply = self.load(name, programs=programs, wantDescriptors=True)
        return {p["name"]: p for p in self.reply["object"]["programs"]}

    def kernel_type(self, program):
        return bpf.program_info(self.reply.descriptors[program["fileDescriptor"]])["type"]

    def test_another_type(self):
        for wanted in ("cgroup_skb", "cgroup/skb", "cgroup_skb/egress"):
            with self.subTest(type=wanted):
                program = self.load_with(**{"pass": {"type": wanted}})["pass"]
                self.assertEqual((program["type"], self.kernel_type(program)), ("cgroup_skb", CGROUP_SKB))

    def test_another_type_is_attached_as_such(self):
        with cgroup() as directory:
            loaded = self.load("program_options", programs={"pass": {
                "type": "cgroup_skb/egress", "attach": [{"cgroup": directory}]}})["object"]
            self.assertEqual([link["kind"] for link in loaded["links"]], ["cgroup"])
            link = self.client.call("io.btfd.Attach", {"objectId": loaded["id"], "program": "pass",
                                                       "target": {"cgroup": directory}})["link"]
            self.assertEqual(link["kind"], "cgroup")

    def test_another_attach_type(self):
        """The kernel takes no program for a place that its type has none for."""
        program = self.load_with("xdp", **{"pass": {"expectedAttachType": "xdp_cpumap"}})["pass"]
        self.assertEqual(self.kernel_type(program), XDP)
        with self.refused("LoadFailed", program="pass", errnoName="EINVAL"):
            self.load_with(**{"pass": {"type": "cgroup_skb", "expectedAttachType": "cgroup_inet4_connect"}})

    def test_types_that_there_are_not(self):
        with self.refused("InvalidParameter", parameter="programs.pass.type") as refusal:
            self.load_with(**{"pass": {"type": "cgroup_skp"}})
        self.assertIn("cgroup_skb", str(refusal.error))
        for field, value in (("type", "unspec"), ("type", "tracing"), ("type", ""), ("type", "fentry/do_exit"),
                             ("expectedAttachType", "xdp_cpu_map"), ("flags", -1), ("flags", 1 << 32),
                             ("boundToInterface", "no-such-if"), ("boundToInterface", "lo\0")):
            with self.subTest(field=field, value=value), \
                    self.refused("InvalidParameter", parameter="programs.pass." + field):
                self.load_with(**{"pass": {field: value}})

    def test_flags(self):
        self.load_with()
        with self.refused("LoadFailed", program="misaligned") as refusal:
            self.load_with(misaligned={"flags": STRICT_ALIGNMENT})
        self.assertIn("misaligned", refusal.error.parameters["verifierLog"])
        with self.refused("LoadFailed", program="misaligned", errnoName="EINVAL"):
            self.load_with(misaligned={"flags": 1 << 31})

    def test_verifier_log_of_one_program(self):
        self.load_with(misaligned={"verifierLogLevel": 4})
        self.assertEqual(list(self.reply["verifierLogs"]), ["misaligned"])
        self.assertIn("processed ", self.reply["verifierLogs"]["misaligned"])
        with self.refused("InvalidParameter", parameter="programs.pass.verifierLogLevel"):
            self.load_with(**{"pass": {"verifierLogLevel": 8}})

    def test_verifier_log_of_all_programs_but_one(self):
        reply = self.load("program_options", verifierLogLevel=4, programs={"pass": {"verifierLogLevel": 0}})
        self.assertEqual(list(reply["verifierLogs"]), ["misaligned"])

    def test_bound_to_an_interface(self):
        with VethPair() as pair:
            try:
                program = self.load_with("device_bound", ask={"boundToInterface": pair.name})["ask"]
            except Exception as e:
                if "bpf_xdp_metadata_rx_timestamp" in str(e) or "EINVAL" in str(e):
                    self.skipTest("this kernel's veth has no metadata for programs (Linux 6.3): %s" % e)
                raise
            self.client.call("io.btfd.Attach", {"objectId": self.reply["object"]["id"], "program": "ask",
                                                "target": {"interface": pair.name}})
            with self.refused("AttachFailed"):
                self.client.call("io.btfd.Attach", {"objectId": self.reply["object"]["id"], "program": "ask",
                                                    "target": {"interface": "lo", "xdpMode": "generic"}})
        self.assertEqual(program["type"], "xdp")

    def test_that_is_not_bound_gets_no_metadata(self):
        with self.refused("LoadFailed"):
            self.load_with("device_bound")


class Kconfig(DaemonTest):
    def seen_with(self, **kconfig):
        reply = self.load("kconfig", kconfig=kconfig, wantDescriptors=True)
        bpf.test_run(reply.descriptors[reply["object"]["programs"][0]["fileDescriptor"]])
        maps = {m["name"]: reply.descriptors[m["fileDescriptor"]] for m in reply["object"]["maps"]}
        wide, hz, module, text, flag = struct.unpack_from("=QiI16s?", bpf.map_lookup(maps[".data.seen"], b"\0" * 4))
        self.object = reply["object"]
        return {"wide": wide, "hz": hz, "module": module, "text": text.rstrip(b"\0").decode(), "flag": flag}

    given = {"CONFIG_BTFD_FLAG": "y", "CONFIG_BTFD_MODULE": "m", "CONFIG_BTFD_TEXT": '"some text"',
             "CONFIG_BTFD_WIDE": "0xfedcba9876543210", "CONFIG_HZ": "12345"}

    def test_values_that_are_given(self):
        self.assertEqual(self.seen_with(**self.given), {
            "wide": 0xfedcba9876543210, "hz": 12345, "module": 2, "text": "some text", "flag": True})

    def test_the_kernels_own_values(self):
        try:
            seen = self.seen_with()
        except Exception as e:
            if "config" in str(e):
                self.skipTest("this kernel does not show its configuration: %s" % e)
            raise
        self.assertGreater(seen["hz"], 0)
        self.assertEqual(self.seen_with(CONFIG_BTFD_FLAG="y"), {**seen, "flag": True})
        self.assertEqual(seen["text"], "")

    def test_a_program_is_attached_later(self):
        """Also where the kernel has no value for what the object cannot be without."""
        self.seen_with(**self.given)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            self.client.call("io.btfd.Attach", {"objectId": self.object["id"], "program": "look",
                                                "target": {"targetFileDescriptor": 0}}, [other])

    def test_names_that_the_object_does_not_have(self):
        with self.refused("NoSuchName", kind="variable", name="CONFIG_BTFD_FLACK") as refusal:
            self.seen_with(CONFIG_BTFD_FLACK="y")
        self.assertEqual(refusal.error.parameters["nearMisses"][0], "CONFIG_BTFD_FLAG")
        with self.refused("NoSuchName", kind="variable"):
            self.load("no_btf_needed", kconfig={"CONFIG_HZ": "1"})

    def test_values_that_are_none(self):
        for name, value in (("CONFIG_HZ", ""), ("CONFIG_HZ", "1\nCONFIG_BTFD_FLAG=y"), ("CONFIG_HZ", "1" * 1025),
                            ("CONFIG_HZ=1\nCONFIG_X", "y"), ("HZ", "1"), ("CONFIG_" + "X" * 300, "y")):
            with self.subTest(name=name[:20], value=value[:20]), self.refused("InvalidParameter") as refusal:
                self.seen_with(**{name: value})
            self.assertTrue(refusal.error.parameters["parameter"].startswith("kconfig"), refusal.error)

    def test_values_of_another_type(self):
        for name, value in (("CONFIG_HZ", "y"), ("CONFIG_BTFD_FLAG", "250"), ("CONFIG_BTFD_TEXT", "y"),
                            ("CONFIG_HZ", '"text"'), ("CONFIG_HZ", "99999999999")):
            with self.subTest(name=name, value=value), self.refused(("LoadFailed",)) as refusal:
                self.seen_with(**{**self.given, name: value})
            self.assertIn(name, refusal.error.parameters["message"])
