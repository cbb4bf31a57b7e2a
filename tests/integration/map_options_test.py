"""What Load changes of an object's maps, and maps that objects share."""
import contextlib
import os
import socket
import struct

import bpf
from harness import DaemonTest, object_path

NUMA_NODE = 1 << 2  # BPF_F_NUMA_NODE, include/uapi/linux/bpf.h
NO_PREALLOC = 1 << 0
TYPES = {"hash": 1, "array": 2, "percpu_hash": 5, "lru_hash": 9, "array_of_maps": 12}


class MapOptionsTest(DaemonTest):
    def load_with(self, name="map_options", /, **maps):
        """Loads the object with these MapRequests; descriptors of its maps by name."""
        reply = self.reply = self.load(name, maps=maps, wantDescriptors=True)
        return {m["name"]: reply.descriptors[m["fileDescriptor"]] for m in reply["object"]["maps"]}

    def run_program(self):
        bpf.test_run(self.reply.descriptors[self.reply["object"]["programs"][0]["fileDescriptor"]])

    def new_map(self, *form):
        descriptor = bpf.map_create(*form)
        self.addCleanup(os.close, descriptor)
        return descriptor

    @contextlib.contextmanager
    def refused_for(self, field, *texts):
        """The block must be refused for this field of a MapRequest, for a reason that has these texts."""
        with self.refused("InvalidParameter", parameter="maps." + field) as refusal:
            yield
        for text in texts:
            self.assertIn(text, str(refusal.error))


class Form(MapOptionsTest):
    def test_of_another_type(self):
        for name in ("lru_hash", "percpu_hash"):
            info = bpf.map_info(self.load_with(a_hash={"type": name})["a_hash"])
            self.assertEqual(info["type"], TYPES[name])
        self.run_program()

    def test_type_is_told(self):
        self.load_with(a_hash={"type": "lru_hash"})
        self.assertEqual([m["type"] for m in self.reply["object"]["maps"] if m["name"] == "a_hash"], ["lru_hash"])

    def test_types_that_there_are_not(self):
        with self.refused_for("a_hash.type", "lru_hash"):
            self.load_with(a_hash={"type": "lru_hasch"})
        with self.refused_for("a_hash.type"):
            self.load_with(a_hash={"type": "unspec"})

    def test_types_that_a_map_cannot_become(self):
        for name, wanted in (("a_hash", "prog_array"), ("a_hash", "array_of_maps"), ("a_hash", "arena"),
                             ("a_hash", "struct_ops"), ("an_outer", "hash"), (".data.fixed", "hash")):
            with self.subTest(map=name, type=wanted), self.refused_for(name + ".type"):
                self.load_with(**{name: {"type": wanted}})

    def test_a_map_of_maps_of_the_other_kind(self):
        info = bpf.map_info(self.load_with(an_outer={"type": "array_of_maps"})["an_outer"])
        self.assertEqual(info["type"], TYPES["array_of_maps"])

    def test_of_other_flags(self):
        self.assertEqual(bpf.map_info(self.load_with(a_hash={"flags": NO_PREALLOC})["a_hash"])["flags"], NO_PREALLOC)

    def test_flags_that_the_kernel_refuses(self):
        with self.refused("LoadFailed", stage="map", map="a_hash", errnoName="EINVAL"):
            self.load_with(a_hash={"flags": 1 << 31})

    def test_on_a_numa_node(self):
        self.assertEqual(bpf.map_info(self.load_with(a_hash={"numaNode": 0})["a_hash"])["flags"], NUMA_NODE)
        with self.refused("LoadFailed", stage="map", map="a_hash"):
            self.load_with(a_hash={"numaNode": 1 << 20})

    def test_of_other_sizes(self):
        info = bpf.map_info(self.load_with("maps", an_lru_hash={"keySize": 4, "valueSize": 8, "maxEntries": 70})["an_lru_hash"])
        self.assertEqual((info["key_size"], info["value_size"], info["max_entries"]), (4, 8, 70))

    def test_sizes_that_the_programs_do_not_expect(self):
        with self.refused("LoadFailed", stage="program", program="touch") as refusal:
            self.load_with(a_hash={"keySize": 4096})
        self.assertIn("4096", refusal.error.parameters["verifierLog"])

    def test_numbers_that_are_none(self):
        for field in ("keySize", "valueSize", "maxEntries", "flags", "numaNode", "innerMaxEntries"):
            for value in (-1, 1 << 32):
                with self.subTest(field=field, value=value), self.refused_for("an_outer." + field):
                    self.load_with(an_outer={field: value})


class GlobalVariables(MapOptionsTest):
    def test_that_grow(self):
        maps = self.load_with(**{".data.growing": {"valueSize": 8000}})
        growing = maps[".data.growing"]
        self.assertEqual(bpf.map_info(growing)["value_size"], 8000)
        self.run_program()
        self.assertEqual(struct.unpack_from("=QQ", bpf.map_lookup(growing, b"\0" * 4)), (1, 0))

    def test_that_grow_can_be_set(self):
        reply = self.load("map_options", maps={".data.growing": {"valueSize": 80}}, wantDescriptors=True,
                          variables={"growing": list(range(1, 11))})
        growing = next(m for m in reply["object"]["maps"] if m["name"] == ".data.growing")
        value = bpf.map_lookup(reply.descriptors[growing["fileDescriptor"]], b"\0" * 4)
        self.assertEqual(struct.unpack("=10Q", value), tuple(range(1, 11)))

    def test_that_have_grown_are_there_when_a_program_is_attached_later(self):
        with open(object_path("map_options"), "rb") as f:
            loaded = self.client.call("io.btfd.Load", {"objectFileDescriptor": 0,
                                                       "maps": {".data.growing": {"valueSize": 1 << 20}}}, [f])["object"]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            self.client.call("io.btfd.Attach", {"objectId": loaded["id"], "program": "touch",
                                                "target": {"targetFileDescriptor": 0}}, [other])

    def test_cannot_shrink(self):
        with self.refused_for(".data.fixed.valueSize", "8 bytes"):
            self.load_with(**{".data.fixed": {"valueSize": 4}})

    def test_have_one_entry_and_their_own_form(self):
        """libbpf maps as much memory as these say, and would write where something else is."""
        for field, value in (("maxEntries", 1000000), ("maxEntries", 2), ("keySize", 8), ("flags", 0), ("type", "hash")):
            with self.subTest(field=field), self.refused_for(".data.fixed." + field, "global variables"):
                self.load_with(**{".data.fixed": {field: value}})

    def test_are_no_map_of_more_entries(self):
        """As above: also where the map is given."""
        larger = self.new_map(bpf.MAP_TYPE_ARRAY, 4, 8, 100000)
        with open(object_path("map_options"), "rb") as f, \
                self.refused_for(".data.fixed.reuseFileDescriptor", "number of entries", "100000"):
            self.client.call("io.btfd.Load", {"objectFileDescriptor": 0, "maps": {
                ".data.fixed": {"reuseFileDescriptor": 1}}}, [f, larger])


class InnerMaps(MapOptionsTest):
    def put(self, outer, inner):
        key = struct.pack("=I", 0)
        bpf.map_update(outer, key, struct.pack("=I", inner))
        bpf.map_delete(outer, key)  # or it would hold the inner map until the test has ended

    def test_of_another_number_of_entries(self):
        outer = self.load_with(an_outer={"innerMaxEntries": 9})["an_outer"]
        self.put(outer, self.new_map(bpf.MAP_TYPE_ARRAY, 4, 8, 9))
        with self.assertRaises(OSError):
            self.put(outer, self.new_map(bpf.MAP_TYPE_ARRAY, 4, 8, 4))

    def test_as_the_object_has_them(self):
        outer = self.load_with()["an_outer"]
        self.put(outer, self.new_map(bpf.MAP_TYPE_ARRAY, 4, 8, 4))

    def given_inner(self):
        first = self.load("maps")["object"]
        return {"innerMap": {"objectId": first["id"], "map": "an_array"}}

    def test_like_a_map_of_another_object(self):
        outer = self.load_with("map_options_inner", without_inner=self.given_inner())["without_inner"]
        self.put(outer, self.new_map(bpf.MAP_TYPE_ARRAY, 4, 8, 8))
        with self.assertRaises(OSError):
            self.put(outer, self.new_map(bpf.MAP_TYPE_HASH, 4, 8, 8))

    def test_like_a_descriptor(self):
        with open(object_path("map_options_inner"), "rb") as f:
            reply = self.client.call("io.btfd.Load", {
                "objectFileDescriptor": 0, "wantDescriptors": True, "maps": {"without_inner": {"innerMapFileDescriptor": 1}}}, [f, self.new_map(bpf.MAP_TYPE_HASH, 4, 4, 3)])
        outer = next(m for m in reply["object"]["maps"] if m["name"] == "without_inner")
        self.put(reply.descriptors[outer["fileDescriptor"]], self.new_map(bpf.MAP_TYPE_HASH, 4, 4, 3))

    def test_where_there_are_none(self):
        for field in ({"innerMaxEntries": 4}, self.given_inner()):
            with self.subTest(field=field), self.refused_for("a_hash." + next(iter(field)), "no map of maps"):
                self.load_with(a_hash=field)
        with self.refused_for("without_inner.innerMaxEntries", "innerMap"):
            self.load_with("map_options_inner", without_inner={"innerMaxEntries": 4})
        with self.refused_for("an_outer.innerMaxEntries"):
            self.load_with(an_outer={"innerMaxEntries": 4, **self.given_inner()})


class Pins(MapOptionsTest):
    def pins(self):
        with contextlib.suppress(FileNotFoundError):
            return sorted(os.listdir(os.path.join(self.daemon.bpffs, "owners", "0")))
        return []

    def test_by_path_are_shared(self):
        first = self.load_with(a_hash={"pinPath": "shared-state_1"})["a_hash"]
        self.assertEqual(self.pins(), ["shared-state_1"])
        second = self.load_with("maps", an_lru_hash={"pinPath": "other"}, a_hash={"maxEntries": 2})
        third = self.load_with(a_hash={"pinPath": "shared-state_1"})["a_hash"]
        self.assertEqual(bpf.map_info(first)["id"], bpf.map_info(third)["id"])
        self.assertEqual(self.pins(), ["other", "shared-state_1"])
        self.assertIn("an_lru_hash", second)
        for loaded in self.client.call("io.btfd.List")["objects"]:
            self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})
        self.assertEqual(self.pins(), [])

    def test_of_maps_that_the_object_wants_pinned(self):
        self.load_with("pinned_map", pinned_hash={"pinPath": "elsewhere"})
        self.assertEqual(self.pins(), ["elsewhere"])
        self.load_with("pinned_map", pinned_hash={"pinPath": ""})
        self.assertEqual(self.pins(), ["elsewhere"])

    def test_that_hold_another_map(self):
        self.load_with(a_hash={"pinPath": "state"})
        for maps, difference in (({"a_hash": {"pinPath": "state", "maxEntries": 32}}, "number of entries"),
                                 ({"a_hash": {"pinPath": "state", "type": "lru_hash"}}, "type"),
                                 ({"a_hash": {"pinPath": "state", "flags": NO_PREALLOC}}, "flags"),
                                 ({"a_hash": {"pinPath": "state", "valueSize": 16}}, "value size")):
            with self.subTest(maps=maps), self.refused("LoadFailed", stage="map", map="a_hash") as refusal:
                self.load_with(**maps)
            self.assertIn(difference, refusal.error.parameters["message"])

    def test_paths_that_lead_elsewhere(self):
        for path in ("..", ".", "/", "/sys/fs/bpf/state", "../1/state", "a/b", "a.b", "a" * 65, "a\0b", "ä", " "):
            with self.subTest(path=path), self.refused_for("a_hash.pinPath"):
                self.load_with(a_hash={"pinPath": path})
        self.assertEqual(self.pins(), [])

    def test_of_a_load_that_fails(self):
        with self.refused("LoadFailed"):
            self.load_with(a_hash={"pinPath": "state"}, an_outer={"flags": 1 << 31})
        self.assertEqual(self.pins(), [])

    def test_together_with_a_map_that_is_given(self):
        first = self.load("maps")["object"]
        with self.refused_for("a_hash.pinPath"):
            self.load_with(a_hash={"pinPath": "state", "reuseMap": {"objectId": first["id"], "map": "a_hash"}})


class OfAnotherObject(MapOptionsTest):
    def reuse(self, name, object_id, map_name):
        return self.load_with(**{name: {"reuseMap": {"objectId": object_id, "map": map_name}}})

    def test_is_shared(self):
        first = self.load_with()
        object_id = self.reply["object"]["id"]
        second = self.reuse("a_hash", object_id, "a_hash")
        self.assertEqual(bpf.map_info(first["a_hash"])["id"], bpf.map_info(second["a_hash"])["id"])
        self.run_program()
        self.client.call("io.btfd.Unload", {"objectId": object_id})
        self.assertEqual(struct.unpack("=Q", bpf.map_lookup(second["a_hash"], struct.pack("=I", 1))), (50,))

    def test_global_variables_are_shared(self):
        first = self.load_with()
        second = self.reuse(".data.fixed", self.reply["object"]["id"], ".data.fixed")
        self.run_program()
        self.assertEqual(struct.unpack("=Q", bpf.map_lookup(first[".data.fixed"], b"\0" * 4)), (8,))
        self.assertEqual(bpf.map_info(first[".data.fixed"])["id"], bpf.map_info(second[".data.fixed"])["id"])

    def test_instead_of_one_that_is_pinned(self):
        pinned = self.load_with("pinned_map")["pinned_hash"]
        other = self.load_with("pinned_map", pinned_hash={"pinPath": "other"})["pinned_hash"]
        reused = self.load_with("pinned_map", pinned_hash={"reuseMap": {
            "objectId": self.reply["object"]["id"], "map": "pinned_hash"}})["pinned_hash"]
        self.assertEqual(bpf.map_info(reused)["id"], bpf.map_info(other)["id"])
        self.assertNotEqual(bpf.map_info(reused)["id"], bpf.map_info(pinned)["id"])

    def test_that_differs(self):
        first = self.load("maps")["object"]["id"]
        for name, texts in (("an_array", ("type is array", "declares hash")), ("an_lru_hash", ("lru_hash",)),
                            ("a_ringbuf", ("ringbuf",))):
            with self.subTest(map=name), self.refused_for("a_hash.reuseMap", *texts):
                self.reuse("a_hash", first, name)

    def test_that_differs_in_what_the_request_says(self):
        self.load_with()
        object_id = self.reply["object"]["id"]
        with self.refused_for("a_hash.reuseMap", "number of entries is 16", "declares 17"):
            self.load_with(a_hash={"maxEntries": 17, "reuseMap": {"objectId": object_id, "map": "a_hash"}})

    def test_that_is_not_there(self):
        with self.refused("NoSuchObject", objectId=999):
            self.reuse("a_hash", 999, "a_hash")
        self.load_with()
        with self.refused("NoSuchName", kind="map", name="a_hasch", nearMisses=["a_hash"]):
            self.reuse("a_hash", self.reply["object"]["id"], "a_hasch")

    def test_twice_given(self):
        self.load_with()
        with open(object_path("map_options"), "rb") as f, self.refused_for("a_hash.reuseFileDescriptor"):
            self.client.call("io.btfd.Load", {"objectFileDescriptor": 0, "maps": {"a_hash": {
                "reuseFileDescriptor": 1, "reuseMap": {"objectId": self.reply["object"]["id"], "map": "a_hash"}}}}, [f, f])
