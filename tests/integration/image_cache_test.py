"""Objects are relocated once: the next load takes what was kept, and both can be told what the relocations came to."""
import base64
import os

import bpf
from harness import DaemonTest, memfd, object_bytes
from system import run


def distinct(content, number):
    """The same object with other bytes: of the padding of its e_ident (elf.h)."""
    return content[:9] + number.to_bytes(7, "little") + content[16:]


class ImageCacheTest(DaemonTest):
    def load_as(self, name, content, **options):
        with memfd(content) as f:
            return self.client.call("io.btfd.Load", {"objectFileDescriptor": 0, "name": name, **options}, [f])

    def relocations(self, loaded):
        reply = self.client.call("io.btfd.Describe", {"objectId": loaded["object"]["id"], "relocations": True})
        self.assertEqual(reply["object"], {**loaded["object"], "links": reply["object"]["links"]})
        self.assertEqual(reply["relocationsLeftOut"], 0)
        return reply["relocations"]

    def assert_runs(self, loaded):
        """That the program of exec_events counts once it is attached."""
        reply = self.client.call("io.btfd.GetDescriptors", {"objectId": loaded["object"]["id"], "maps": ["counter"]})
        before = bpf.counter(reply.descriptors[0])
        run("true")
        self.assertGreater(bpf.counter(reply.descriptors[0]), before)


class ImageCache(ImageCacheTest):
    def test_the_second_load_relocates_nothing(self):
        content = object_bytes("exec_events")
        first, second = (self.load_as("twice", content) for _ in range(2))
        self.assertEqual([each["object"]["imageReused"] for each in (first, second)], [False, True])
        self.assertEqual(first["object"]["digest"], second["object"]["digest"])
        self.assertEqual([p["tag"] for p in first["object"]["programs"]], [p["tag"] for p in second["object"]["programs"]])

    def test_what_was_kept_is_attached_at_load_and_later(self):
        content = object_bytes("exec_events")
        self.load_as("attached", content)
        at_load = self.load_as("attached", content, programs={"on_exec": {"attach": [{}]}})
        self.assertTrue(at_load["object"]["imageReused"])
        self.assert_runs(at_load)
        later = self.load_as("attached", content)
        self.client.call("io.btfd.Attach", {"objectId": later["object"]["id"], "program": "on_exec"})
        self.assert_runs(later)

    def test_it_does_not_matter_how_the_object_comes(self):
        content = object_bytes("exec_events")
        self.load_as("comes", content)
        inline = self.client.call("io.btfd.Load", {"object": base64.b64encode(content).decode(), "name": "comes"})
        self.assertTrue(inline["object"]["imageReused"])

    def test_another_object_of_the_same_name_is_another(self):
        content = object_bytes("exec_events")
        self.load_as("name", content)
        self.assertFalse(self.load_as("name", distinct(content, 1))["object"]["imageReused"])
        other = self.load_as("name", object_bytes("tp_btf"))
        self.assertFalse(other["object"]["imageReused"])
        self.assertEqual([p["name"] for p in other["object"]["programs"]], ["on_exec"])

    def test_what_it_has_is_what_the_client_asked_for(self):
        content = object_bytes("optional_field")
        plain = self.load_as("options", content)
        self.assertEqual([p["name"] for p in plain["object"]["programs"]], ["always"])
        other = self.load_as("options", content, programs={"always": {"enabled": True}},
                             maps={"counter": {"maxEntries": 7}})
        self.assertTrue(other["object"]["imageReused"])
        self.assertEqual([m["maxEntries"] for m in other["object"]["maps"] if m["name"] == "counter"], [7])

    def test_an_object_without_relocations_is_not_kept(self):
        # There is nothing to be gained by it.
        for _ in range(2):
            self.assertFalse(self.load_as("plain", object_bytes("no_btf_needed"))["object"]["imageReused"])

    def test_a_refusal_names_the_relocation_also_of_what_was_kept(self):
        content = object_bytes("optional_field")
        enabled = {"on_request": {"enabled": True}}

        def refusal(name):
            with self.refused("LoadFailed", program="on_request") as refused:
                self.load_as(name, content, programs=enabled)
            return refused.error.parameters

        fresh = refusal("never kept")
        self.assertIn("field_that_no_kernel_has", fresh["message"])
        self.load_as("kept", content)
        self.assertTrue(self.load_as("kept", content)["object"]["imageReused"])
        kept = refusal("kept")
        self.assertEqual((kept["message"], kept["relocations"]), (fresh["message"], fresh["relocations"]))

    def test_what_the_daemon_lends_itself_cannot_be_named(self):
        content = object_bytes("exec_events")
        self.load_as("lent", content)
        for field in ({"objectFileDescriptor": 1},
                      {"objectFileDescriptor": 0, "maps": {"counter": {"reuseFileDescriptor": 1}}}):
            with self.subTest(**field), memfd(content) as f, \
                    self.refused("InvalidParameter", reason="index 1 names none of the 1 descriptors that came with the "
                                                            "request"):
                self.client.call("io.btfd.Load", {"name": "lent", **field}, [f])

    def test_describe_has_the_records_of_both(self):
        content = object_bytes("optional_field")
        first, second = (self.load_as("described", content) for _ in range(2))
        self.assertTrue(second["object"]["imageReused"])
        records = self.relocations(first)
        self.assertEqual(self.relocations(second), records)
        by_access = {record["access"]: record for record in records}
        pid = by_access["struct task_struct___with_wishes.pid"]
        self.assertEqual((pid["program"], pid["kind"], pid["outcome"], pid["targetType"], pid["targetBtf"]),
                         ("always", "byte_off", "resolved", "struct task_struct", "vmlinux"))
        self.assertEqual(pid["localValue"], 0)
        self.assertGreater(pid["value"], 0)
        self.assertNotIn("reason", pid)
        wish = by_access["struct task_struct___with_wishes.field_that_no_kernel_has"]
        self.assertEqual((wish["program"], wish["outcome"]), ("on_request", "poisoned"))
        self.assertIn("has no 'field_that_no_kernel_has'", wish["reason"])
        self.assertNotIn("value", wish)

    def test_describe_of_an_object_without_relocations(self):
        self.assertEqual(self.relocations(self.load_as("none", object_bytes("no_btf_needed"))), [])

    def test_describe_without_asking_has_none(self):
        loaded = self.load_as("unasked", object_bytes("exec_events"))
        reply = self.client.call("io.btfd.Describe", {"objectId": loaded["object"]["id"]})
        self.assertEqual(sorted(reply), ["object"])

    def test_others_profit_once_they_have_said_what_they_call_it(self):
        content = object_bytes("exec_events")
        self.load_as("shared", content)
        with self.daemon.client() as other:
            with memfd(content) as f:
                loads = [other.call("io.btfd.Load", {"objectFileDescriptor": 0, "name": "also shared"}, [f])["object"]
                         for _ in range(2)]
        self.assertEqual([each["imageReused"] for each in loads], [False, True])


class ImageCacheBounds(ImageCacheTest):
    config = {"cache": {"maxBytes": 100_000}}

    def test_the_daemon_does_not_grow(self):
        content = object_bytes("exec_events") + bytes(20_000)  # what is behind an ELF file belongs to nothing
        for number in range(50):
            reply = self.load_as("name%d" % number, distinct(content, number))
            self.client.call("io.btfd.Unload", {"objectId": reply["object"]["id"]})
        kept = [os.readlink("/proc/%d/fd/%s" % (self.daemon.process.pid, name))
                for name in os.listdir("/proc/%d/fd" % self.daemon.process.pid)]
        images = [path for path in kept if "memfd:btfd-object" in path]
        self.assertTrue(1 <= len(images) <= 4, kept)


class NoImageCache(ImageCacheTest):
    config = {"cache": {"maxBytes": 0}}

    def test_nothing_is_kept(self):
        content = object_bytes("exec_events")
        for _ in range(3):
            loaded = self.load_as("none", content, programs={"on_exec": {"attach": [{}]}})
            self.assertFalse(loaded["object"]["imageReused"])
        self.assert_runs(loaded)
        self.assertTrue(self.relocations(loaded))
