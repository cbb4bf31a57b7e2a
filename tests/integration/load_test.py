"""Load and its options, and what the other methods say of what was loaded."""
import base64
import ctypes
import hashlib
import os
import struct
import tempfile
import time

import bpf
from btfd_client import VarlinkError
from harness import SLOW, DaemonTest, memfd, object_bytes, object_path
from system import cgroup, run


class Load(DaemonTest):
    def test_by_descriptor_of_a_file(self):
        before = time.time()
        reply = self.load("no_btf_needed")
        loaded = reply["object"]
        self.assertGreater(loaded["id"], 0)
        self.assertTrue(loaded["name"])
        self.assertEqual((loaded["labels"], loaded["ownerUid"], loaded["lifetime"]), ({}, 0, "session"))
        self.assertEqual(loaded["digest"], hashlib.sha256(object_bytes("no_btf_needed")).hexdigest())
        self.assertTrue(before - 1 <= loaded["loadedAtUSec"] / 1e6 <= time.time() + 1, loaded["loadedAtUSec"])
        self.assertGreater(loaded["loadDurationUSec"], 0)
        self.assertEqual([(p["name"], p["section"], p["type"]) for p in loaded["programs"]],
                         [("keep", "socket", "socket_filter"), ("pass", "xdp", "xdp")])
        self.assertEqual([(m["name"], m["type"], m["keySize"], m["valueSize"], m["maxEntries"]) for m in loaded["maps"]],
                         [("counter", "array", 4, 8, 1)])
        self.assertEqual(loaded["links"], [])
        self.assertNotIn("verifierLogs", reply)
        self.assertEqual(reply.descriptors, [])
        self.assertTrue({p["kernelId"] for p in loaded["programs"]} <= bpf.ids("program"))
        self.assertTrue({m["kernelId"] for m in loaded["maps"]} <= bpf.ids("map"))
        for program in loaded["programs"]:
            descriptor = bpf.open_by_id("program", program["kernelId"])
            info = bpf.program_info(descriptor)
            os.close(descriptor)
            self.assertEqual((info["tag"], info["name"]), (program["tag"], program["name"]))

    def test_by_descriptor_of_a_memfd(self):
        self.assertEqual(self.load_bytes(object_bytes("tp_btf"))["object"]["programs"][0]["name"], "on_exec")

    def test_by_descriptor_of_a_sealed_memfd(self):
        import fcntl
        descriptor = os.memfd_create("sealed", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self.addCleanup(os.close, descriptor)
        os.write(descriptor, object_bytes("tp_btf"))
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK
                    | fcntl.F_SEAL_GROW)
        self.client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [descriptor])

    def test_whatever_the_descriptors_position(self):
        with memfd(object_bytes("tp_btf")) as f:
            f.seek(1000)
            self.client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [f])
            self.assertEqual(f.tell(), 1000)

    def test_by_a_descriptor_that_is_not_the_first(self):
        with open("/dev/null", "rb") as null, open(object_path("tp_btf"), "rb") as f:
            self.client.call("io.btfd.Load", {"objectFileDescriptor": 2}, [null, null, f, null])

    def test_inline(self):
        loaded = self.client.call("io.btfd.Load", {"object": base64.b64encode(object_bytes("tp_btf")).decode()})["object"]
        self.assertEqual(loaded["digest"], hashlib.sha256(object_bytes("tp_btf")).hexdigest())

    def test_of_every_kind_of_map(self):
        loaded = self.load("maps")["object"]
        found = {m["name"]: (m["type"], m["keySize"], m["valueSize"], m["maxEntries"]) for m in loaded["maps"]}
        self.assertEqual({name: found[name] for name in ("a_hash", "an_array", "a_percpu_array", "an_lru_hash", "an_outer")},
                         {"a_hash": ("hash", 4, 16, 16), "an_array": ("array", 4, 8, 8),
                          "a_percpu_array": ("percpu_array", 4, 8, 2), "an_lru_hash": ("lru_hash", 8, 8, 32),
                          "an_outer": ("array_of_maps", 4, 4, 2)})
        self.assertEqual(found["a_ringbuf"], ("ringbuf", 0, 0, 4096))

    def test_relocates_against_the_kernel(self):
        loaded = self.load("exec_events", programs={"on_exec": {"attach": [{}]}}, wantDescriptors=True)
        maps = {m["name"]: loaded.descriptors[m["fileDescriptor"]] for m in loaded["object"]["maps"]}
        run("true")
        self.assertGreaterEqual(bpf.counter(maps["counter"]), 1)

    def test_twice_gives_two_objects(self):
        first, second = self.load("tp_btf")["object"], self.load("tp_btf")["object"]
        self.assertNotEqual(first["id"], second["id"])
        self.assertNotEqual(first["programs"][0]["kernelId"], second["programs"][0]["kernelId"])
        self.assertEqual(first["digest"], second["digest"])

    def test_does_not_depend_on_the_file_afterwards(self):
        """What was loaded is what was in the file at that time, however often it is attached later."""
        with memfd(object_bytes("tp_btf")) as f:
            loaded = self.client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [f])["object"]
            f.truncate(0)
        link = self.client.call("io.btfd.Attach", {"objectId": loaded["id"], "program": "on_exec"})["link"]
        self.client.call("io.btfd.Detach", {"linkId": link["id"]})


class NameAndLabels(DaemonTest):
    def test_are_kept_and_select(self):
        ids = {}
        for name, labels in (("one", {"team": "a", "stage": "prod"}), ("two", {"team": "a"}), ("three", {"team": "b"})):
            loaded = self.load("no_btf_needed", name=name, labels=labels)["object"]
            self.assertEqual((loaded["name"], loaded["labels"]), (name, labels))
            ids[name] = loaded["id"]

        def listed(**parameters):
            return [o["id"] for o in self.client.call("io.btfd.List", parameters)["objects"]]
        self.assertEqual(listed(), sorted(ids.values()))
        self.assertEqual(listed(labels={"team": "a"}), sorted([ids["one"], ids["two"]]))
        self.assertEqual(listed(labels={"team": "a", "stage": "prod"}), [ids["one"]])
        self.assertEqual(listed(labels={"team": "c"}), [])
        self.assertEqual(listed(labels={"absent": "a"}), [])
        self.assertEqual(listed(labels={}), sorted(ids.values()))
        self.assertEqual(listed(name="three"), [ids["three"]])
        self.assertEqual(listed(name="three", labels={"team": "a"}), [])

    def test_name_of_64_bytes(self):
        for name in ("n" * 64, "é" * 32, "with space", "a/b:c"):
            self.assertEqual(self.load("no_btf_needed", name=name)["object"]["name"], name)

    def test_without_a_name_that_of_the_file_serves(self):
        data = object_bytes("no_btf_needed")
        with tempfile.NamedTemporaryFile(prefix="probe", suffix=".bpf.o") as f:
            f.write(data)
            f.flush()
            loaded = self.client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [f])["object"]
            self.assertEqual(loaded["name"], os.path.basename(f.name).removesuffix(".bpf.o"))
        for name in ("line\nbreak.o", "n" * 65):
            with tempfile.TemporaryDirectory() as at, open(os.path.join(at, name), "w+b") as f:
                f.write(data)
                f.flush()
                loaded = self.client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [f])["object"]
                self.assertEqual(loaded["name"], "object")

    def test_names_that_are_refused(self):
        for name in ("", "n" * 65, "é" * 33, "line\nbreak", "nul\0", "tab\t", "\x7f", "\x1b[31m", "\u0085"):
            with self.subTest(name=name), self.refused("InvalidParameter", parameter="name"):
                self.load("no_btf_needed", name=name)

    def test_labels_that_are_too_much(self):
        for labels in ({"key": "v" * 1_000_000}, {"k" * 1_000_000: "value"}, {str(i): "" for i in range(50_000)}):
            with self.refused(("InvalidParameter", "LimitExceeded")) as refusal:
                self.load("no_btf_needed", labels=labels)
            self.assertLess(len(str(refusal.error.parameters)), 5000)


class Programs(DaemonTest):
    def names(self, loaded):
        return [p["name"] for p in loaded["programs"]]

    def test_that_are_optional_are_not_loaded(self):
        self.assertEqual(self.names(self.load("optional")["object"]), ["always"])

    def test_that_are_enabled(self):
        loaded = self.load("optional", programs={"on_request": {"enabled": True}})["object"]
        self.assertEqual(self.names(loaded), ["always", "on_request"])

    def test_that_are_disabled(self):
        loaded = self.load("no_btf_needed", programs={"pass": {"enabled": False}})["object"]
        self.assertEqual(self.names(loaded), ["keep"])

    def test_that_are_there_by_default_may_be_enabled(self):
        self.assertEqual(self.names(self.load("tp_btf", programs={"on_exec": {"enabled": True}})["object"]), ["on_exec"])

    def test_that_do_not_exist(self):
        with self.refused("NoSuchName", kind="program", name="on_exek", nearMisses=["on_exec"]):
            self.load("tp_btf", programs={"on_exek": {"enabled": True}})

    def test_that_are_attached_at_load(self):
        reply = self.load("tp_btf", programs={"on_exec": {"attach": [{}]}}, wantDescriptors=True)
        link, = reply["object"]["links"]
        self.assertEqual((link["program"], link["kind"]), ("on_exec", "tp_btf"))
        self.assertIn(link["kernelId"], bpf.ids("link"))
        self.assertIn("sched_process_exec", link["target"])
        counter = reply.descriptors[reply["object"]["maps"][0]["fileDescriptor"]]
        before = bpf.counter(counter)
        run("true")
        self.assertGreater(bpf.counter(counter), before)

    def test_that_are_attached_twice_at_load(self):
        loaded = self.load("tp_btf", programs={"on_exec": {"attach": [{"cookie": 1}, {"cookie": 2}]}})["object"]
        self.assertEqual(len({link["id"] for link in loaded["links"]}), 2)

    def test_that_are_not_to_be_loaded_cannot_be_attached(self):
        with self.refused(("InvalidParameter", "NoSuchName")):
            self.load("no_btf_needed", programs={"pass": {"enabled": False, "attach": [{"interface": "lo"}]}})


class Maps(DaemonTest):
    def by_name(self, reply):
        return {m["name"]: m for m in reply["object"]["maps"]}

    def test_with_other_numbers_of_entries(self):
        reply = self.load("maps", maps={"a_hash": {"maxEntries": 1000}, "an_array": {"maxEntries": 9},
                                        "a_ringbuf": {"maxEntries": 65536}}, wantDescriptors=True)
        for name, entries in (("a_hash", 1000), ("an_array", 9), ("a_ringbuf", 65536)):
            found = self.by_name(reply)[name]
            self.assertEqual(found["maxEntries"], entries)
            self.assertEqual(bpf.map_info(reply.descriptors[found["fileDescriptor"]])["max_entries"], entries)

    def test_that_the_kernel_refuses(self):
        with self.refused("LoadFailed", stage="map", map="an_array", errnoName="EINVAL"):
            self.load("maps", maps={"an_array": {"maxEntries": 0}})

    def test_with_absurd_numbers_of_entries(self):
        for entries in (-1, 1 << 32, 1 << 62):
            with self.subTest(entries=entries), self.refused("InvalidParameter", parameter="maps.a_hash.maxEntries"):
                self.load("maps", maps={"a_hash": {"maxEntries": entries}})

    def test_that_do_not_exist(self):
        with self.refused("NoSuchName", kind="map", name="a_hasch", nearMisses=["a_hash"]):
            self.load("maps", maps={"a_hasch": {"maxEntries": 1}})

    def reuse(self, descriptor, name="a_hash"):
        with open(object_path("maps"), "rb") as f:
            return self.client.call("io.btfd.Load", {"objectFileDescriptor": 0, "wantDescriptors": True,
                                                     "maps": {name: {"reuseFileDescriptor": 1}}}, [f, descriptor])

    def new_map(self, *form):
        descriptor = bpf.map_create(*form)
        self.addCleanup(os.close, descriptor)
        return descriptor

    def test_that_are_the_clients(self):
        ours = self.new_map(bpf.MAP_TYPE_HASH, 4, 16, 16)
        reply = self.reuse(ours)
        self.assertEqual(self.by_name(reply)["a_hash"]["kernelId"], bpf.map_info(ours)["id"])
        program = reply.descriptors[reply["object"]["programs"][0]["fileDescriptor"]]
        self.assertIsNone(bpf.map_lookup(ours, struct.pack("=I", 0)))
        bpf.test_run(program)
        # The packet's 64 bytes without its Ethernet header, which a socket filter does not see.
        self.assertEqual(struct.unpack("=Q", bpf.map_lookup(ours, struct.pack("=I", 0))[:8]), (50,))
        self.client.call("io.btfd.Unload", {"objectId": reply["object"]["id"]})
        self.assertIsNotNone(bpf.map_lookup(ours, struct.pack("=I", 0)))

    def test_that_are_another_objects(self):
        first = self.load("maps", wantDescriptors=True)
        shared = self.by_name(first)["a_hash"]
        second = self.reuse(first.descriptors[shared["fileDescriptor"]])
        self.assertEqual(self.by_name(second)["a_hash"]["kernelId"], shared["kernelId"])

    def test_that_do_not_fit(self):
        for form in ((bpf.MAP_TYPE_HASH, 4, 4, 16), (bpf.MAP_TYPE_HASH, 8, 16, 16), (bpf.MAP_TYPE_ARRAY, 4, 16, 16)):
            with self.subTest(form=form), self.refused(("LoadFailed", "InvalidParameter")):
                self.reuse(self.new_map(*form))

    def test_that_are_no_maps(self):
        with open("/dev/null", "rb") as null, self.refused(("InvalidParameter", "LoadFailed")):
            self.reuse(null)


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int32), ("y", ctypes.c_int32)]


class Shape(ctypes.Structure):
    _fields_ = [("label", ctypes.c_char * 8), ("corner", Point), ("path", Point * 2), ("color", ctypes.c_int32),
                ("filled", ctypes.c_bool)]


class Seen(ctypes.Structure):
    """struct seen of global_data.bpf.c."""
    _fields_ = [("data_u8", ctypes.c_uint8), ("data_s8", ctypes.c_int8), ("data_u16", ctypes.c_uint16),
                ("data_s16", ctypes.c_int16), ("data_u32", ctypes.c_uint32), ("data_s32", ctypes.c_int32),
                ("data_u64", ctypes.c_uint64), ("data_s64", ctypes.c_int64), ("data_bool", ctypes.c_bool),
                ("data_text", ctypes.c_char * 16), ("data_color", ctypes.c_int32), ("data_wide_color", ctypes.c_uint64),
                ("data_array", ctypes.c_uint32 * 4), ("data_shape", Shape), ("bss_u64", ctypes.c_uint64),
                ("bss_text", ctypes.c_char * 8), ("bss_point", Point), ("rodata_u32", ctypes.c_uint32),
                ("rodata_bool", ctypes.c_bool), ("rodata_text", ctypes.c_char * 8), ("rodata_point", Point),
                ("custom_u32", ctypes.c_uint32)]


def plain(value):
    """A ctypes value as Python's own."""
    if isinstance(value, ctypes.Structure):
        return {name: plain(getattr(value, name)) for name, _ in value._fields_}
    if isinstance(value, ctypes.Array):
        return [plain(element) for element in value]
    return value.decode() if isinstance(value, bytes) else value


class Variables(DaemonTest):
    initial = {
        "data_u8": 1, "data_s8": -1, "data_u16": 2, "data_s16": -2, "data_u32": 3, "data_s32": -3, "data_u64": 4,
        "data_s64": -4, "data_bool": True, "data_text": "unchanged", "data_color": 7, "data_wide_color": 0x123456789abc,
        "data_array": [10, 20, 30, 40],
        "data_shape": {"label": "square", "corner": {"x": 1, "y": 2}, "path": [{"x": 3, "y": 4}, {"x": 5, "y": 6}],
                       "color": 0, "filled": True},
        "bss_u64": 0, "bss_text": "", "bss_point": {"x": 0, "y": 0}, "rodata_u32": 100, "rodata_bool": False,
        "rodata_text": "fixed", "rodata_point": {"x": 7, "y": 8}, "custom_u32": 77,
    }

    def seen_with(self, variables):
        """What the program sees of all variables when these are given."""
        reply = self.load("global_data", wantDescriptors=True, **({} if variables is None else {"variables": variables}))
        loaded = reply["object"]
        bpf.test_run(reply.descriptors[loaded["programs"][0]["fileDescriptor"]])
        seen = next(m for m in loaded["maps"] if m["name"] == "seen")
        value = bpf.map_lookup(reply.descriptors[seen["fileDescriptor"]], struct.pack("=I", 0))
        self.assertEqual(len(value), ctypes.sizeof(Seen))
        self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})
        return plain(Seen.from_buffer_copy(value))

    def test_are_the_objects_own_where_none_is_given(self):
        self.assertEqual(self.seen_with(None), self.initial)
        self.assertEqual(self.seen_with({}), self.initial)

    def test_of_every_type(self):
        cases = [
            ("data_u8", 0, 0), ("data_u8", 255, 255), ("data_s8", -128, -128), ("data_s8", 127, 127),
            ("data_u16", 65535, 65535), ("data_s16", -32768, -32768), ("data_u32", 2**32 - 1, 2**32 - 1),
            ("data_s32", -2**31, -2**31), ("data_u64", 2**64 - 1, 2**64 - 1), ("data_s64", -2**63, -2**63),
            ("data_s64", 2**63 - 1, 2**63 - 1), ("data_bool", False, False),
            ("data_text", "", ""), ("data_text", "fifteen letters", "fifteen letters"), ("data_text", "é", "é"),
            ("data_color", "BLUE", -3), ("data_color", "RED", 0), ("data_color", 7, 7),
            ("data_wide_color", "WIDE_SMALL", 1), ("data_array", [1, 2, 3, 4], [1, 2, 3, 4]),
            ("bss_u64", 5, 5), ("bss_text", "abc", "abc"), ("bss_point", {"x": -1, "y": 9}, {"x": -1, "y": 9}),
            ("rodata_u32", 4000000000, 4000000000), ("rodata_bool", True, True), ("rodata_text", "new", "new"),
            ("rodata_point", {"x": 1, "y": -1}, {"x": 1, "y": -1}), ("custom_u32", 78, 78),
            ("data_shape", {"label": "line", "corner": {"x": -5, "y": 0}, "path": [{"x": 1, "y": 1}, {"x": 2, "y": 2}],
                            "color": "GREEN", "filled": False},
             {"label": "line", "corner": {"x": -5, "y": 0}, "path": [{"x": 1, "y": 1}, {"x": 2, "y": 2}], "color": 7,
              "filled": False}),
        ]
        for name, given, expected in cases:
            with self.subTest(variable=name, value=given):
                self.assertEqual(self.seen_with({name: given}), {**self.initial, name: expected})

    def test_all_together(self):
        given = {name: value for name, value in self.initial.items()}
        given.update(data_u8=9, rodata_u32=1, bss_u64=3, custom_u32=5)
        self.assertEqual(self.seen_with(given), given)

    def test_a_struct_with_only_some_members_keeps_the_others(self):
        self.assertEqual(self.seen_with({"data_shape": {"corner": {"y": 50}}})["data_shape"],
                         {**self.initial["data_shape"], "corner": {"x": 1, "y": 50}})

    def test_values_that_do_not_fit(self):
        cases = [
            ("data_u8", 256), ("data_u8", -1), ("data_s8", 128), ("data_s8", -129), ("data_u32", 2**32),
            ("data_s32", 2**31), ("data_u64", -1), ("data_u64", 2**64), ("data_u64", 1e300), ("data_s64", 2**63), ("data_u32", 1.5),
            ("data_u32", "three"), ("data_u32", [1]), ("data_u32", {}), ("data_bool", 2),
            ("data_bool", "true"), ("data_text", "seventeen letters"), ("data_text", 5), ("data_text", {}),
            ("data_color", "PINK"), ("data_color", 1.5), ("data_color", 2**40), ("data_array", [1, 2, 3, 4, 5]),
            ("data_array", "1234"), ("data_array", 1), ("data_array", [1, "x", 3, 4]),
            ("bss_point", {"z": 1}), ("bss_point", [1, 2]), ("bss_point", 1), ("bss_point", {"x": "far"}),
        ]
        for name, value in cases:
            with self.subTest(variable=name, value=value), self.refused("InvalidVariable") as refusal:
                self.load("global_data", variables={name: value})
            if refusal.error:
                self.assertTrue(refusal.error.parameters["variable"].startswith(name), refusal.error)
                self.assertTrue(refusal.error.parameters["type"], refusal.error)

    def test_that_do_not_exist(self):
        with self.refused("NoSuchName", kind="variable", name="data_u31") as refusal:
            self.load("global_data", variables={"data_u31": 1})
        self.assertIn("data_u32", refusal.error.parameters["nearMisses"])

    def test_of_an_object_without_any(self):
        with self.refused("NoSuchName", kind="variable", name="counter", nearMisses=[]):
            self.load("tp_btf", variables={"counter": 1})

    def test_in_their_map(self):
        """Read back where the kernel has them: the map of .data."""
        reply = self.load("global_data", variables={"data_u64": 0x1122334455667788}, wantDescriptors=True)
        data = next(m for m in reply["object"]["maps"] if m["name"].endswith(".data"))
        value = bpf.map_lookup(reply.descriptors[data["fileDescriptor"]], struct.pack("=I", 0))
        self.assertIn(struct.pack("=Q", 0x1122334455667788), value)


class OtherOptions(DaemonTest):
    def test_verifier_log(self):
        # At level 1 the kernel keeps only the last path, of which nothing is left once a program is accepted.
        for level, expected in ((1, "processed "), (2, "R0"), (4, "stack depth "), (5, "stack depth "), (6, "R0")):
            with self.subTest(level=level):
                logs = self.load("no_btf_needed", verifierLogLevel=level)["verifierLogs"]
                self.assertEqual(sorted(logs), ["keep", "pass"])
                for log in logs.values():
                    self.assertIn(expected, log)

    def test_no_verifier_log_at_level_0(self):
        self.assertNotIn("verifierLogs", self.load("no_btf_needed", verifierLogLevel=0))

    def test_levels_that_do_not_exist(self):
        for level in (-1, 8, 1 << 40):
            with self.subTest(level=level), self.refused("InvalidParameter", parameter="verifierLogLevel"):
                self.load("no_btf_needed", verifierLogLevel=level)

    def test_log_of_a_rejected_program_without_asking(self):
        with self.refused("LoadFailed", stage="program", program="rejected", errnoName="EACCES", errno=13) as refusal:
            self.load("verifier_reject")
        self.assertIn("map_value_or_null", refusal.error.parameters["verifierLog"])
        self.assertIn("processed ", refusal.error.parameters["verifierLog"])
        self.assertIn("rejected", refusal.error.parameters["message"])

    def test_log_of_a_rejected_program_with_all_levels(self):
        for level in (1, 2, 4):
            with self.refused("LoadFailed", program="rejected", errnoName="EACCES") as refusal:
                self.load("verifier_reject", verifierLogLevel=level)
            self.assertIn("map_value_or_null", refusal.error.parameters["verifierLog"])

    def test_log_that_is_larger_than_what_is_kept(self):
        """The kernel answers ENOSPC when the buffer is too small: the client must still get the real errno."""
        with self.refused("LoadFailed", errnoName="EACCES") as refusal:
            self.load("verifier_reject", verifierLogLevel=2)
        self.assertLessEqual(len(refusal.error.parameters["verifierLog"]), 1 << 20)

    def test_dry_run(self):
        before = bpf.ids("program")
        reply = self.load("tp_btf", dryRun=True, programs={"on_exec": {"attach": [{}]}}, name="dry")
        self.assertEqual((reply["object"]["id"], reply["object"]["name"], reply["object"]["links"]), (0, "dry", []))
        self.assertEqual(reply["object"]["programs"][0]["name"], "on_exec")
        self.assertEqual(self.client.call("io.btfd.List")["objects"], [])
        self.daemon.assert_idle()
        self.assertNotIn(reply["object"]["programs"][0]["kernelId"], bpf.ids("program") - before)

    def test_dry_run_that_fails(self):
        with self.refused("LoadFailed", program="rejected"):
            self.load("verifier_reject", dryRun=True)

    def why_not(self, name, program, target, descriptors, **parameters):
        """What a Load says of a target: the error without what only a try gives, libbpf's log."""
        with open(object_path(name), "rb") as f:
            try:
                loaded = self.client.call("io.btfd.Load", {
                    "objectFileDescriptor": 0, "programs": {program: {"attach": [target]}}, **parameters}, [f, *descriptors])
            except VarlinkError as e:
                return e.name, {key: value for key, value in e.parameters.items() if key != "libbpfLog"}
        if not parameters:
            self.client.call("io.btfd.Unload", {"objectId": loaded["object"]["id"]})
        return None

    def test_dry_run_says_of_targets_what_a_load_says(self):
        null = open("/dev/null", "rb")
        self.addCleanup(null.close)
        with cgroup() as directory:
            no_directory = open(os.path.join(directory, "cgroup.procs"), "rb")
        self.addCleanup(no_directory.close)
        for name, program, target, descriptors in (
                ("xdp", "pass", {"interface": "no-such-if"}, ()), ("xdp", "pass", {}, ()),
                ("tc", "classify", {"interface": "no-such-if", "direction": "ingress"}, ()),
                ("tcx", "on_ingress", {"interface": "no-such-if"}, ()),
                ("raw_tracepoint", "on_exec", {"tracepoint": "sched_process_exek"}, ()),
                ("tracepoint", "on_exec", {"tracepoint": "sched/sched_process_exek"}, ()),
                ("tracepoint", "on_exec", {"tracepoint": "shed/sched_process_exec"}, ()),
                ("cgroup_skb", "on_ingress", {"cgroup": "/tmp"}, ()),
                ("cgroup_skb", "on_ingress", {"targetFileDescriptor": 1}, (null,)),
                ("sk_lookup", "on_lookup", {"networkNamespace": "/tmp"}, ()),
                ("sk_lookup", "on_lookup", {"targetFileDescriptor": 1}, (null,)),
                ("socket_filter", "keep", {"targetFileDescriptor": 1}, (null,)),
                ("sk_msg", "on_message", {"map": "counter"}, ()), ("sk_msg", "on_message", {"map": "no-such-map"}, ()),
                ("iter_task", "dump_task", {"pid": 0}, ()),
                ("sk_lookup", "on_lookup", {"networkNamespace": "/proc/self/ns/mnt"}, ()),
                ("perf_event", "on_sample", {"perfEvent": {"type": "software", "event": "cpu-clock", "frequency": 10**9}}, ()),
                ("kprobe", "on_sleep", {"function": "no_such_function"}, ()),
                ("kprobe", "on_sleep", {"binary": "/bin/true", "function": "main"}, ()),
                ("cgroup_skb", "on_ingress", {"targetFileDescriptor": 1}, (no_directory,)),
                ("uprobe", "on_call", {"binary": "/no/such/binary", "function": "f"}, ()),
                ("uprobe", "on_call", {}, ())):
            with self.subTest(object=name, target=target):
                real = self.why_not(name, program, target, descriptors)
                self.assertIsNotNone(real)
                self.assertEqual(self.why_not(name, program, target, descriptors, dryRun=True), real)

    def test_dry_run_accepts_targets_that_are_there(self):
        for name, program, target, descriptors in (
                ("xdp", "pass", {"interface": "lo"}, ()), ("raw_tracepoint", "on_exec", {}, ()),
                ("raw_tracepoint", "on_exec", {"tracepoint": "sched_process_exit"}, ()),
                ("tracepoint", "on_exec", {}, ()), ("sk_lookup", "on_lookup", {}, ()),
                ("kprobe", "on_sleep", {}, ()), ("kprobe", "on_sleep", {"function": "do_exit"}, ()),
                ("sk_msg", "on_message", {"map": "sockets"}, ()),
                ("socket_filter", "keep", {"targetFileDescriptor": 1}, (self.client.socket,))):
            if name == "tracepoint" and not os.path.exists("/sys/kernel/tracing/events"):
                continue  # this kernel has no tracefs
            if name == "kprobe" and not os.path.exists("/sys/bus/event_source/devices/kprobe"):
                continue  # this kernel has no kprobes, and a dry run says so as a load does
            with self.subTest(object=name, target=target):
                self.assertIsNone(self.why_not(name, program, target, descriptors, dryRun=True))

    def test_dry_run_with_verifier_log(self):
        self.assertIn("processed ", self.load("tp_btf", dryRun=True, verifierLogLevel=4)["verifierLogs"]["on_exec"])

    def test_deadline(self):
        begin = time.monotonic()
        with self.refused("DeadlineExceeded", deadlineMs=200):
            self.load("slow_verify_many", deadlineMs=200)
        self.assertLess(time.monotonic() - begin, 3 * SLOW)
        self.daemon.assert_idle()

    def test_deadline_that_is_kept(self):
        self.load("no_btf_needed", deadlineMs=int(20000 * SLOW))

    def test_deadlines_that_are_refused(self):
        for deadline in (0, -1, 600001, 1 << 62):
            with self.subTest(deadline=deadline), self.refused(("InvalidParameter", "LimitExceeded")):
                self.load("no_btf_needed", deadlineMs=deadline)

    def test_descriptors(self):
        reply = self.load("tp_btf", wantDescriptors=True, programs={"on_exec": {"attach": [{}]}})
        loaded = reply["object"]
        parts = [("program", loaded["programs"][0]), ("map", loaded["maps"][0]), ("link", loaded["links"][0])]
        self.assertEqual(sorted(part["fileDescriptor"] for _, part in parts), list(range(len(reply.descriptors))))
        for kind, part in parts:
            info = bpf.INFO[kind](reply.descriptors[part["fileDescriptor"]])
            self.assertEqual(info["id"], part["kernelId"])

    def test_no_descriptors_unless_asked_for(self):
        for parameters in ({}, {"wantDescriptors": False}):
            reply = self.load("tp_btf", **parameters)
            self.assertEqual(reply.descriptors, [])
            self.assertNotIn("fileDescriptor", reply["object"]["programs"][0])

    def test_no_descriptors_of_a_dry_run(self):
        reply = self.load("tp_btf", dryRun=True, wantDescriptors=True)
        self.assertEqual(reply.descriptors, [])

    def test_two_sources_of_the_object(self):
        with self.refused("InvalidParameter"):
            self.load("tp_btf", object=base64.b64encode(object_bytes("tp_btf")).decode())

    def test_no_source_of_the_object(self):
        with self.refused("InvalidParameter"):
            self.client.call("io.btfd.Load", {})

    def test_lifetime(self):
        self.assertEqual(self.load("tp_btf", lifetime="session")["object"]["lifetime"], "session")
        with self.refused("InvalidParameter", parameter="lifetime"):
            self.load("tp_btf", lifetime="forever")


class Descriptors(DaemonTest):
    """GetDescriptors."""

    def setUp(self):
        super().setUp()
        self.loaded = self.load("tp_btf", programs={"on_exec": {"attach": [{}, {}]}})["object"]

    def get(self, **names):
        return self.client.call("io.btfd.GetDescriptors", {"objectId": self.loaded["id"], **names})

    def test_all(self):
        reply = self.get()
        self.assertEqual(sorted((d["kind"], d["name"], d.get("linkId")) for d in reply["descriptors"]), sorted(
            [("program", "on_exec", None), ("map", "counter", None)]
            + [("link", "on_exec", link["id"]) for link in self.loaded["links"]], key=str))
        ids = {"program": {self.loaded["programs"][0]["kernelId"]}, "map": {self.loaded["maps"][0]["kernelId"]},
               "link": {link["kernelId"] for link in self.loaded["links"]}}
        self.assertEqual(len(reply.descriptors), 4)
        for entry in reply["descriptors"]:
            info = bpf.INFO[entry["kind"]](reply.descriptors[entry["fileDescriptor"]])
            self.assertIn(info["id"], ids[entry["kind"]])

    def test_some(self):
        reply = self.get(maps=["counter"])
        self.assertEqual([(d["kind"], d["name"]) for d in reply["descriptors"]], [("map", "counter")])
        self.assertEqual(bpf.counter(reply.descriptors[0]) >= 0, True)
        reply = self.get(programs=["on_exec"], links=[self.loaded["links"][1]["id"]])
        self.assertEqual({(d["kind"], d.get("linkId")) for d in reply["descriptors"]},
                         {("program", None), ("link", self.loaded["links"][1]["id"])})

    def test_unknown_names(self):
        with self.refused("NoSuchName", kind="map", name="counters", nearMisses=["counter"]):
            self.get(maps=["counters"])
        with self.refused("NoSuchName", kind="program", name="nothing_alike"):
            self.get(programs=["nothing_alike"])
        with self.refused("NoSuchLink", linkId=999999):
            self.get(links=[999999])

    def test_of_another_objects_link(self):
        other = self.load("tp_btf", programs={"on_exec": {"attach": [{}]}})["object"]
        with self.refused("NoSuchLink", linkId=other["links"][0]["id"]):
            self.get(links=[other["links"][0]["id"]])

    def test_outlive_the_object(self):
        reply = self.get(maps=["counter"])
        self.client.call("io.btfd.Unload", {"objectId": self.loaded["id"]})
        self.assertGreaterEqual(bpf.counter(reply.descriptors[0]), 0)
        reply.descriptors[0].close()


class AfterLoad(DaemonTest):
    """Unload, Attach, Detach, Describe, List."""

    def test_describe_is_what_load_said(self):
        loaded = self.load("tp_btf", name="described", labels={"a": "b"}, programs={"on_exec": {"attach": [{}]}})["object"]
        self.assertEqual(self.client.call("io.btfd.Describe", {"objectId": loaded["id"]})["object"], loaded)
        self.assertEqual(self.client.call("io.btfd.List")["objects"], [loaded])

    def test_attach_and_detach(self):
        reply = self.load("tp_btf", wantDescriptors=True)
        loaded, counter = reply["object"], reply.descriptors[reply["object"]["maps"][0]["fileDescriptor"]]
        run("true")
        self.assertEqual(bpf.counter(counter), 0)
        attached = self.client.call("io.btfd.Attach", {"objectId": loaded["id"], "program": "on_exec",
                                                       "wantDescriptors": True})
        link = attached["link"]
        self.assertEqual(bpf.link_info(attached.descriptors[link["fileDescriptor"]])["id"], link["kernelId"])
        attached.descriptors[0].close()
        described = self.client.call("io.btfd.Describe", {"objectId": loaded["id"]})["object"]
        self.assertEqual([entry["id"] for entry in described["links"]], [link["id"]])
        run("true")
        runs = bpf.counter(counter)
        self.assertGreater(runs, 0)
        self.client.call("io.btfd.Detach", {"linkId": link["id"]})
        runs = bpf.counter(counter)
        run("true")
        self.assertEqual(bpf.counter(counter), runs)
        self.assertEqual(self.client.call("io.btfd.Describe", {"objectId": loaded["id"]})["object"]["links"], [])
        with self.refused("NoSuchLink", linkId=link["id"]):
            self.client.call("io.btfd.Detach", {"linkId": link["id"]})

    def test_attach_what_does_not_exist(self):
        loaded = self.load("tp_btf")["object"]
        with self.refused("NoSuchObject", objectId=999999):
            self.client.call("io.btfd.Attach", {"objectId": 999999, "program": "on_exec"})
        with self.refused("NoSuchName", kind="program", name="on_exek", nearMisses=["on_exec"]):
            self.client.call("io.btfd.Attach", {"objectId": loaded["id"], "program": "on_exek"})

    def test_attach_with_fields_that_the_type_does_not_use(self):
        loaded = self.load("tp_btf")["object"]
        for target in ({"interface": "lo"}, {"cgroup": "/sys/fs/cgroup"}, {"pid": 1}, {"map": "counter"},
                       {"function": "do_exit"}, {"xdpMode": "native"}, {"direction": "ingress"},
                       {"perfEvent": {"type": "software", "event": "cpu-clock"}}):
            field, = target
            with self.subTest(field=field), self.refused("InvalidParameter", parameter="target." + field):
                self.client.call("io.btfd.Attach", {"objectId": loaded["id"], "program": "on_exec", "target": target})

    def test_attach_without_what_the_type_needs(self):
        loaded = self.load("xdp")["object"]
        with self.refused("InvalidParameter"):
            self.client.call("io.btfd.Attach", {"objectId": loaded["id"], "program": "pass"})

    def test_unload_removes_links_too(self):
        loaded = self.load("tp_btf", programs={"on_exec": {"attach": [{}]}})["object"]
        self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})
        self.daemon.assert_idle()
        for method, parameters in (("Unload", {}), ("Describe", {}), ("GetDescriptors", {}), ("Attach", {"program": "x"})):
            with self.refused("NoSuchObject", objectId=loaded["id"]):
                self.client.call("io.btfd." + method, {"objectId": loaded["id"], **parameters})
        with self.refused("NoSuchLink"):
            self.client.call("io.btfd.Detach", {"linkId": loaded["links"][0]["id"]})

    def test_ids_are_not_used_again(self):
        ids = set()
        for _ in range(5):
            loaded = self.load("tp_btf")["object"]
            self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})
            ids.add(loaded["id"])
        self.assertEqual(len(ids), 5)
