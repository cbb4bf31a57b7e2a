"""Reading and changing the entries of a loaded object's maps, as JSON."""
import os
import socket
import struct

import bpf
from btfd_client import Client, VarlinkError
from harness import GROUP_ID, MEMBER_UID, DaemonTest
from system import as_user

CPUS = os.cpu_count()
PROTOCOL = socket.htons(0x0004)  # ETH_P_802_2: what the kernel takes a packet of zeros for


class MapAccess(DaemonTest):
    def setUp(self):
        super().setUp()
        self.object_id = None

    def open(self, name="maps", **parameters):
        reply = self.load(name, wantDescriptors=True, **parameters)
        self.object_id = reply["object"]["id"]
        self.maps = {m["name"]: reply.descriptors[m["fileDescriptor"]] for m in reply["object"]["maps"]}
        self.programs = {p["name"]: reply.descriptors[p["fileDescriptor"]] for p in reply["object"]["programs"]}

    def call(self, method, name, **parameters):
        """The method's reply; parameters key and value are the entry's, and a reply's entry is given instead of it."""
        entry = {field: parameters.pop(field) for field in ("key", "value") if field in parameters}
        if entry:
            parameters["entry"] = entry
        reply = self.client.call("io.btfd.Map" + method, {"objectId": self.object_id, "map": name, **parameters})
        return reply["entry"] if "entry" in reply else reply

    def test_entries_are_told_by_their_types(self):
        self.open()
        bpf.test_run(self.programs["touch_all"])
        entries = self.call("Dump", "a_hash")["entries"]
        self.assertEqual(entries, [{"key": 0, "value": {"first": 50, "second": PROTOCOL}}])
        self.assertEqual(self.call("Dump", "an_array")["entries"], [{"key": i, "value": 0} for i in range(8)])
        self.assertEqual(self.call("Lookup", "a_hash", key=0), {"key": 0, "value": {"first": 50, "second": PROTOCOL}})

    def test_entries_are_changed(self):
        self.open()
        self.call("Update", "a_hash", key=7, value={"first": "18446744073709551615", "second": 1})
        self.assertEqual(struct.unpack("=QII", bpf.map_lookup(self.maps["a_hash"], struct.pack("=I", 7))), (2**64 - 1, 1, 0))
        self.call("Update", "a_hash", key=7, value={"second": 2})
        self.assertEqual(self.call("Lookup", "a_hash", key=7)["value"], {"first": "18446744073709551615", "second": 2})
        self.call("Delete", "a_hash", key=7)
        self.assertIsNone(bpf.map_lookup(self.maps["a_hash"], struct.pack("=I", 7)))

    def test_conditions(self):
        self.open()
        with self.refused("NoSuchKey", map="a_hash"):
            self.call("Update", "a_hash", key=7, value={"first": 1}, condition="existing")
        self.call("Update", "a_hash", key=7, value={"first": 1}, condition="new")
        with self.refused("MapFailed", map="a_hash", errnoName="EEXIST"):
            self.call("Update", "a_hash", key=7, value={"first": 2}, condition="new")
        self.call("Update", "a_hash", key=7, value={"first": 3}, condition="existing")
        self.assertEqual(self.call("Lookup", "a_hash", key=7)["value"]["first"], 3)

    def test_what_is_not_there(self):
        self.open()
        for method in ("Lookup", "Delete"):
            with self.refused("NoSuchKey", map="a_hash") as refusal:
                self.call(method, "a_hash", key=4711)
            self.assertIn("4711", refusal.error.parameters["message"])
        with self.refused("NoSuchName", kind="map", nearMisses=["a_hash"]):
            self.call("Dump", "a_hasch")
        self.object_id = 999
        with self.refused("NoSuchObject"):
            self.call("Dump", "a_hash")

    def test_keys_and_values_that_do_not_fit(self):
        self.open()
        for key, value in (("x", {}), (-1, {}), (2**32, {}), (0, 5), (0, {"third": 1}), (0, {"first": -1}), (None, {})):
            with self.subTest(key=key, value=value), self.refused("InvalidVariable"):
                self.call("Update", "a_hash", key=key, value=value)
        self.assertEqual(self.call("Dump", "a_hash")["entries"], [])

    def test_entries_are_asked_for_by_what_the_method_needs(self):
        self.open()
        for method, entry, field in (("Lookup", {}, "key"), ("Lookup", {"key": 0, "value": {}}, "value"), ("Update", {"key": 0}, "value"),
                                     ("Update", {"value": {}}, "key"), ("Delete", {"key": 0, "kee": 0}, "kee")):
            with self.subTest(method=method, entry=entry), self.refused("InvalidParameter", parameter="entry." + field):
                self.client.call("io.btfd.Map" + method, {"objectId": self.object_id, "map": "a_hash", "entry": entry})

    def test_of_each_cpu(self):
        self.open()
        values = list(range(10, 10 + CPUS))
        self.call("Update", "a_percpu_array", key=1, value=values)
        self.assertEqual(self.call("Lookup", "a_percpu_array", key=1)["value"], values)
        self.assertEqual(self.call("Dump", "a_percpu_array")["entries"],
                         [{"key": 0, "value": [0] * CPUS}, {"key": 1, "value": values}])
        for value in (5, [1] * (CPUS + 1)):
            with self.refused("InvalidParameter", parameter="entry.value"):
                self.call("Update", "a_percpu_array", key=1, value=value)

    def test_page_by_page(self):
        self.open(maps={"an_array": {"maxEntries": 2500}, "an_lru_hash": {"maxEntries": 10000}})
        found, after, pages = [], {}, 0
        while True:
            reply = self.call("Dump", "an_array", **after)
            found += [entry["key"] for entry in reply["entries"]]
            pages += 1
            if "next" not in reply:
                break
            after = {"after": reply["next"]}
        self.assertEqual((found, pages), (list(range(2500)), 3))
        reply = self.call("Dump", "an_array", limit=2)
        self.assertEqual(len(reply["entries"]), 2)
        self.assertEqual(self.call("Dump", "an_array", limit=1, after=reply["next"])["entries"][0]["key"], 2)
        for after in ("zz", "0", "0000000000"):
            with self.refused("InvalidParameter", parameter="after"):
                self.call("Dump", "an_array", after=after)

    def test_global_variables(self):
        self.open("global_data", variables={"data_u64": 2**64 - 1, "data_color": "BLUE"})
        data = self.call("Lookup", ".data", key=0)["value"]
        self.assertEqual((data["data_u64"], data["data_color"], data["data_text"]), ("18446744073709551615", "BLUE", "unchanged"))
        self.call("Update", ".data", key=0, value={"data_u8": 200, "data_shape": {"label": "new"}})
        changed = self.call("Lookup", ".data", key=0)["value"]
        self.assertEqual(changed, {**data, "data_u8": 200, "data_shape": {**data["data_shape"], "label": "new"}})
        with self.refused("MapFailed", map=".rodata", errnoName="EPERM"):
            self.call("Update", ".rodata", key=0, value={"rodata_u32": 1})
        with self.refused("InvalidVariable"):
            self.call("Update", ".data", key=0, value={"data_u9": 1})

    def test_global_variables_that_have_grown(self):
        self.open("map_options", maps={".data.growing": {"valueSize": 40}}, variables={"growing": [5, 6]})
        self.assertEqual(self.call("Lookup", ".data.growing", key=0)["value"], {"growing": [5, 6, 0, 0, 0]})

    def test_without_types_they_are_hexadecimal(self):
        self.open("map_options", maps={"a_hash": {"valueSize": 16}})
        self.call("Update", "a_hash", key=1, value="000102030405060708090a0b0c0d0e0f")
        self.assertEqual(self.call("Dump", "a_hash")["entries"], [{"key": 1, "value": "000102030405060708090a0b0c0d0e0f"}])
        for value in ("00", "zz" * 16, 5):
            with self.refused("InvalidParameter", parameter="entry.value"):
                self.call("Update", "a_hash", key=1, value=value)

    def test_maps_of_other_things(self):
        """What would be a descriptor to bpf(2) is a number here: of the worker's own."""
        self.open()
        inner = bpf.map_info(self.maps["an_inner"])["id"]
        self.assertEqual(self.call("Lookup", "an_outer", key=0)["value"], inner)
        for method, name, parameters in (("Update", "an_outer", {"key": 0, "value": 3}), ("Delete", "an_outer", {"key": 0}),
                                         ("Dump", "a_ringbuf", {}), ("Lookup", "a_ringbuf", {"key": 0})):
            with self.subTest(method=method, map=name), self.refused("InvalidParameter", parameter="map"):
                self.call(method, name, **parameters)

    def test_of_another_owner(self):
        """Others see the object, not what is in it."""
        self.open()

        def member():
            found = []
            with Client(self.daemon.socket_path) as client:
                for method, more in (("Dump", {}), ("Lookup", {"entry": {"key": 0}}),
                                     ("Update", {"entry": {"key": 0, "value": {}}}), ("Delete", {"entry": {"key": 0}})):
                    try:
                        client.call("io.btfd.Map" + method, {"objectId": self.object_id, "map": "a_hash", **more})
                        found.append("no error")
                    except VarlinkError as e:
                        found.append(e.name)
            return found
        self.assertEqual(as_user(MEMBER_UID, 65534, [GROUP_ID], member), ["io.btfd.NotOwner"] * 4)
