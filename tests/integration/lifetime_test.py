"""How long objects stay, whose they are, that failed loads leave nothing, and what Monitor tells of all that."""
import contextlib
import json
import os
import socket
import threading
import time
import unittest

import bpf
import harness
from btfd_client import Client, VarlinkError
from harness import GROUP_ID, MEMBER_UID, OTHER_MEMBER_UID, SLOW, STRANGER_UID, DaemonTest, eventually, object_bytes, object_path
from system import as_user, run


class Session(DaemonTest):
    def test_ends_with_the_connection(self):
        client = self.connect()
        loaded = self.load("tp_btf", client, programs={"on_exec": {"attach": [{}]}})["object"]
        self.assertEqual(len(self.client.call("io.btfd.List")["objects"]), 1)
        client.close()
        eventually(lambda: not self.client.call("io.btfd.List")["objects"], "the object is still listed")
        self.daemon.assert_idle()
        self.assertNotIn(loaded["programs"][0]["kernelId"], bpf.ids("program"))

    def test_is_one_connection_not_one_user(self):
        first, second = self.connect(), self.connect()
        self.load("tp_btf", first)
        kept = self.load("tp_btf", second)["object"]["id"]
        first.close()
        eventually(lambda: [o["id"] for o in self.client.call("io.btfd.List")["objects"]] == [kept],
                   "the other connection's object is still there, or the wrong one is gone")

    def test_ends_when_the_client_is_killed(self):
        child = os.fork()
        if child == 0:
            client = self.daemon.client()
            self.load("tp_btf", client)
            os.kill(os.getpid(), 9)
        os.waitpid(child, 0)
        eventually(lambda: not self.client.call("io.btfd.List")["objects"], "the object is still listed")

    def test_ends_during_a_load(self):
        client = self.connect()
        with open(object_path("slow_verify_many"), "rb") as f:
            client.send("io.btfd.Load", {"objectFileDescriptor": 0}, [f])
        self.daemon.busy_worker()
        client.close()
        begin = time.monotonic()
        self.daemon.assert_idle()
        self.load("no_btf_needed")
        self.assertEqual(len(self.client.call("io.btfd.List")["objects"]), 1)
        self.assertLess(time.monotonic() - begin, 10 * SLOW)

    def test_that_only_stops_sending_gets_its_answers(self):
        client = self.connect()
        with open(object_path("tp_btf"), "rb") as f:
            client.send("io.btfd.Load", {"objectFileDescriptor": 0}, [f])
        client.socket.shutdown(socket.SHUT_WR)
        self.assertEqual(client.receive()["object"]["programs"][0]["name"], "on_exec")

    def test_many_at_once(self):
        clients = [self.connect() for _ in range(20)]
        for client in clients:
            self.load("tp_btf", client, programs={"on_exec": {"attach": [{}]}})
        self.assertEqual(len(self.client.call("io.btfd.List")["objects"]), 20)
        for client in clients:
            client.close()
        eventually(lambda: not self.client.call("io.btfd.List")["objects"], "objects are still listed")

    def test_another_connection_of_the_user_may_unload(self):
        loaded = self.load("tp_btf", self.connect())["object"]
        self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})
        self.assertEqual(self.client.call("io.btfd.List")["objects"], [])


class AllOrNothing(DaemonTest):
    """Each failure must leave nothing: that is checked after every test."""

    def nothing_is_listed(self):
        self.assertEqual(self.client.call("io.btfd.List")["objects"], [])
        self.daemon.assert_idle()

    def test_a_later_program_fails(self):
        with self.refused("LoadFailed", stage="program", program="never_valid", errnoName="EACCES") as refusal:
            self.load("optional", programs={"never_valid": {"enabled": True}})
        self.assertRegex(refusal.error.parameters["message"],
                         r"in instruction \d+, r\d = \*\(u32 \*\)\(r\d \+0\), of .+: return \*\(int\*\)bpf_map_lookup_elem")
        self.nothing_is_listed()

    def test_a_target_does_not_exist(self):
        with self.refused("InvalidParameter", parameter="programs.pass.attach[0].interface") as refusal:
            self.load("no_btf_needed", programs={"pass": {"attach": [{"interface": "no-such-one"}]}})
        self.assertIn("no-such-one", refusal.error.parameters["reason"])
        self.nothing_is_listed()

    def test_a_later_attachment_fails(self):
        """The kernel takes just one XDP program an interface."""
        generic = {"interface": "lo", "xdpMode": "generic"}
        with self.refused("AttachFailed", program="pass") as refusal:
            self.load("xdp", programs={"pass": {"attach": [generic, generic]}})
        self.assertIn("lo", refusal.error.parameters["message"])
        self.assertIn(refusal.error.parameters["errnoName"], refusal.error.parameters["message"])
        self.assertNotIn("xdp", run("ip", "link", "show", "dev", "lo"))
        self.nothing_is_listed()

    def test_an_attachment_fails_by_what_is_there_already(self):
        self.load("xdp", programs={"pass": {"attach": [{"interface": "lo", "xdpMode": "generic"}]}})
        with self.refused("AttachFailed", program="pass"):
            self.load("xdp", programs={"pass": {"attach": [{"interface": "lo", "xdpMode": "generic"}]}})
        self.assertEqual(len(self.client.call("io.btfd.List")["objects"]), 1)

    def test_a_relocation_fails(self):
        with self.refused("LoadFailed") as refusal:
            self.load("missing_field")
        self.assertIn("field_that_no_kernel_has", refusal.error.parameters["message"])
        relocation, = refusal.error.parameters["relocations"]
        self.assertEqual((relocation["program"], relocation["kind"], relocation["outcome"], relocation["candidates"]),
                         ("on_exec", "byte_off", "poisoned", 1))
        self.assertEqual(relocation["access"], "struct task_struct___with_wishes.field_that_no_kernel_has")
        self.nothing_is_listed()

    def test_a_relocation_in_a_called_function_fails(self):
        with self.refused("LoadFailed", program="on_exec") as refusal:
            self.load("missing_field_in_function")
        self.assertIn("struct task_struct___misspelled.real_parnt", refusal.error.parameters["message"])
        self.assertIn("it has 'real_parent'", refusal.error.parameters["message"])
        relocation, = refusal.error.parameters["relocations"]
        self.assertEqual((relocation["program"], relocation["outcome"]), ("parent_of", "poisoned"))

    def test_relocations_that_cannot_be_done(self):
        """All of them are named, before the kernel is asked; those of a program that is left out do not matter."""
        with self.refused("LoadFailed", stage="relocation", program="on_exec") as refusal:
            self.load("bad/relocation_of_wrong_value")
        relocations = refusal.error.parameters["relocations"]
        self.assertGreater(len(relocations), 1)
        for relocation in relocations:
            self.assertEqual((relocation["outcome"], relocation["program"]), ("failed", "on_exec"))
            self.assertIn("does not hold the value", relocation["reason"])
        self.assertIn("and %d more" % (len(relocations) - 1), refusal.error.parameters["message"])
        self.load("bad/relocation_of_wrong_value", programs={"on_exec": {"enabled": False}})

    def test_a_variable_fails(self):
        with self.refused("InvalidVariable"):
            self.load("global_data", variables={"data_u32": 1, "data_u8": 1000})
        self.nothing_is_listed()

    def test_an_attachment_of_a_loaded_object_fails(self):
        target = {"interface": "lo", "xdpMode": "generic"}
        first = self.load("xdp", programs={"pass": {"attach": [target]}})["object"]
        second = self.load("xdp")["object"]
        with self.refused("AttachFailed", program="pass"):
            self.client.call("io.btfd.Attach", {"objectId": second["id"], "program": "pass", "target": target})
        self.assertEqual(self.client.call("io.btfd.List")["objects"], [first, second])


class Ownership(DaemonTest):
    def as_member(self, function, uid=MEMBER_UID):
        return as_user(uid, 65534, [GROUP_ID], lambda: self._with_client(function))

    def _with_client(self, function):
        with Client(self.daemon.socket_path, timeout=30 * SLOW) as client:
            return function(client)

    def error_of(self, client, method, parameters=None, descriptors=()):
        try:
            client.call(method, parameters, descriptors)
        except VarlinkError as e:
            return [e.name, e.parameters]
        return None

    def test_names_of_pinned_maps_lead_nowhere_else(self):
        """libbpf joins directory and name: with a slash in it, a map would be pinned, or found, outside the owner's own."""
        good = object_bytes("pinned_map")
        self.load_bytes(good)  # so that the directory exists
        for name in (b"../0/victim", b"./././././x", b"a/b/c/d/e/f", b"..........."):
            with self.subTest(name=name), self.refused("InvalidObject") as refusal:
                self.load_bytes(good.replace(b"pinned_hash", name))
            self.assertIn("pinned", refusal.error.parameters["message"])
            self.assertEqual(os.listdir(os.path.join(self.daemon.bpffs, "owners")), ["0"])
            self.assertEqual(os.listdir(os.path.join(self.daemon.bpffs, "owners", "0")), ["pinned_hash"])

    def test_a_member_of_the_group_loads(self):
        """And the object is theirs, and gone with their connection."""
        def member(client):
            loaded = self.load("tp_btf", client, programs={"on_exec": {"attach": [{}]}}, wantDescriptors=True)
            listed = client.call("io.btfd.List")["objects"]
            client.call("io.btfd.Unload", {"objectId": loaded["object"]["id"]})
            return [loaded["object"]["ownerUid"], len(loaded.descriptors), len(listed)]
        self.assertEqual(self.as_member(member), [MEMBER_UID, 3, 1])

    def test_by_primary_group_too(self):
        result = as_user(MEMBER_UID, GROUP_ID, [], lambda: self._with_client(
            lambda client: len(client.call("io.btfd.List")["objects"])))
        self.assertEqual(result, 0)

    def test_a_member_may_look_but_not_touch_what_is_anothers(self):
        loaded = self.load("tp_btf", programs={"on_exec": {"attach": [{}]}})["object"]
        link = loaded["links"][0]["id"]

        def member(client):
            return {
                "list": [o["id"] for o in client.call("io.btfd.List")["objects"]],
                "describe": client.call("io.btfd.Describe", {"objectId": loaded["id"]})["object"]["id"],
                "unload": self.error_of(client, "io.btfd.Unload", {"objectId": loaded["id"]}),
                "attach": self.error_of(client, "io.btfd.Attach", {"objectId": loaded["id"], "program": "on_exec"}),
                "detach": self.error_of(client, "io.btfd.Detach", {"linkId": link}),
                "descriptors": self.error_of(client, "io.btfd.GetDescriptors", {"objectId": loaded["id"]}),
            }
        found = self.as_member(member)
        self.assertEqual((found["list"], found["describe"]), ([loaded["id"]], loaded["id"]))
        for method in ("unload", "attach", "detach", "descriptors"):
            with self.subTest(method=method):
                name, parameters = found[method] or ("no error", {})
                self.assertEqual((name, parameters.get("ownerUid")), ("io.btfd.NotOwner", 0))
        self.assertEqual(self.client.call("io.btfd.Describe", {"objectId": loaded["id"]})["object"], loaded)

    def test_members_among_each_other(self):
        """Neither of two users has a right to the other's object; root has to all."""
        with self.background_member(MEMBER_UID) as loaded:
            name, parameters = self.as_member(
                lambda client: self.error_of(client, "io.btfd.Unload", {"objectId": loaded["id"]}), OTHER_MEMBER_UID)
            self.assertEqual((name, parameters["ownerUid"]), ("io.btfd.NotOwner", MEMBER_UID))
            self.client.call("io.btfd.GetDescriptors", {"objectId": loaded["id"]})
            self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})

    def test_maps_are_not_shared_between_owners(self):
        """Not even with root: its programs would trust what that user's write."""
        def reuse(client, object_id, field="reuseMap"):
            with open(object_path("tp_btf"), "rb") as f:
                return self.error_of(client, "io.btfd.Load", {"objectFileDescriptor": 0, "maps": {
                    "counter": {field: {"objectId": object_id, "map": "counter"}}}}, [f])
        ours = self.load("tp_btf")["object"]["id"]
        with self.background_member(MEMBER_UID) as loaded:
            for field in ("reuseMap", "innerMap"):
                with self.subTest(field=field):
                    name, parameters = self.as_member(lambda client: reuse(client, ours, field))
                    self.assertEqual((name, parameters["ownerUid"]), ("io.btfd.NotOwner", 0))
                    name, parameters = reuse(self.client, loaded["id"], field)
                    self.assertEqual((name, parameters["ownerUid"]), ("io.btfd.NotOwner", MEMBER_UID))
            self.assertIsNone(self.as_member(lambda client: reuse(client, loaded["id"])))

    @contextlib.contextmanager
    def background_member(self, uid):
        """A client of that user holds a loaded object, which is given."""
        reader, writer = os.pipe()
        stop_reader, stop_writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(stop_writer)
                os.setgroups([GROUP_ID])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(uid, uid, uid)
                with Client(self.daemon.socket_path) as client:
                    os.write(writer, json.dumps(self.load("tp_btf", client)["object"]).encode())
                    os.close(writer)
                    os.read(stop_reader, 1)
            finally:
                os._exit(0)
        os.close(writer)
        os.close(stop_reader)
        try:
            with os.fdopen(reader) as f:
                yield json.loads(f.read())
        finally:
            os.close(stop_writer)
            os.waitpid(child, 0)

    def test_strangers_are_turned_away(self):
        """From everything but nothing: not even a look."""
        def stranger(client):
            error = self.error_of(client, "io.btfd.List")
            return [error, client.at_end(timeout=5 * SLOW)]
        error, closed = as_user(STRANGER_UID, 65534, [], lambda: self._with_client(stranger))
        self.assertEqual(error and error[0], "org.varlink.service.PermissionDenied")
        self.assertIn("members of group '%s'" % harness.GROUP, error[1]["message"])
        for method in ("org.varlink.service.GetInfo", "io.btfd.DescribeKernel", "io.btfd.Load", "io.btfd.NoSuchMethod"):
            with self.subTest(method=method):
                error = as_user(STRANGER_UID, 65534, [], lambda method=method: self._with_client(
                    lambda client: self.error_of(client, method)))
                self.assertEqual(error and error[0], "org.varlink.service.PermissionDenied")

    def test_the_socket_belongs_to_the_group(self):
        status = os.stat(self.daemon.socket_path)
        self.assertEqual((status.st_uid, status.st_gid, status.st_mode & 0o777), (0, GROUP_ID, 0o666))


class SocketMode(DaemonTest):
    config = {"socket": {"mode": "0660"}}

    def test_keeps_strangers_from_connecting(self):
        self.assertEqual(os.stat(self.daemon.socket_path).st_mode & 0o777, 0o660)

        def connect():
            try:
                Client(self.daemon.socket_path).close()
                return "connected"
            except PermissionError:
                return "refused"
        self.assertEqual(as_user(STRANGER_UID, 65534, [], connect), "refused")
        self.assertEqual(as_user(MEMBER_UID, 65534, [GROUP_ID], connect), "connected")


class Monitor(DaemonTest):
    def watch(self):
        """Events as they come, the first of which must be `subscribed`."""
        events = self.connect().stream("io.btfd.Monitor")
        self.assertEqual(next(events)["event"]["kind"], "subscribed")
        return (reply["event"] for reply in events)

    def test_tells_an_objects_life(self):
        events = self.watch()
        begin = time.time()
        loaded = self.load("tp_btf", name="watched")["object"]
        link = self.client.call("io.btfd.Attach", {"objectId": loaded["id"], "program": "on_exec"})["link"]
        self.client.call("io.btfd.Detach", {"linkId": link["id"]})
        self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})
        for kind, link_id in (("loaded", None), ("attached", link["id"]), ("detached", link["id"]), ("unloaded", None)):
            event = next(events)
            self.assertEqual((event["kind"], event["objectId"], event["objectName"], event["uid"], event.get("linkId")),
                             (kind, loaded["id"], "watched", 0, link_id))
            self.assertTrue(begin - 1 <= event["atUSec"] / 1e6 <= time.time() + 1)
            self.assertTrue(event["message"])

    def test_tells_what_failed(self):
        events = self.watch()
        with self.refused("LoadFailed"):
            self.load("verifier_reject", name="bad")
        event = next(events)
        self.assertEqual((event["kind"], event["objectName"], event["uid"]), ("loadFailed", "bad", 0))

    def test_tells_what_failed_by_its_file_and_why(self):
        events = self.watch()
        with self.refused("InvalidParameter"):
            self.load("tp_btf", programs={"on_exec": {"attach": [{"interface": "lo"}]}})
        event = next(events)
        self.assertEqual((event["kind"], event["objectName"]), ("loadFailed", "tp_btf"))
        for words in ("could not load 'tp_btf'", "programs.on_exec.attach[0].interface", "has no use for it"):
            self.assertIn(words, event["message"])
            self.assertIn(words, self.daemon.log())

    def test_tells_what_could_not_be_attached_and_why(self):
        events = self.watch()
        loaded = self.load("xdp", name="filter")["object"]
        self.assertEqual(next(events)["kind"], "loaded")
        for error, parameters, words in (
                ("InvalidParameter", {"program": "pass", "target": {"interface": "no-such-if"}},
                 ("program 'pass'", "target.interface", "no-such-if")),
                ("NoSuchName", {"program": "path"}, ("program 'path'", "the object has no program 'path'"))):
            with self.subTest(error=error):
                with self.refused(error):
                    self.client.call("io.btfd.Attach", {"objectId": loaded["id"], **parameters})
                event = next(events)
                self.assertEqual((event["kind"], event["objectId"], event["objectName"], event["uid"]),
                                 ("attachFailed", loaded["id"], "filter", 0))
                self.assertIn("of object %d 'filter'" % loaded["id"], event["message"])
                self.assertIn("user 0 (pid %d) %s" % (os.getpid(), event["message"]), self.daemon.log())
                for word in words:
                    self.assertIn(word, event["message"])
        self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})

    def test_tells_what_the_kernel_refuses_to_attach(self):
        events = self.watch()
        with self.refused("AttachFailed"):
            self.load("xdp", name="filter", programs={"pass": {"attach": [{"interface": "lo"}, {"interface": "lo"}]}})
        event = next(events)
        self.assertEqual((event["kind"], event["objectName"], event["uid"]), ("loadFailed", "filter", 0))
        self.assertIn("cannot attach program 'pass'", event["message"])
        self.assertIn(event["message"], self.daemon.log())
        loaded = self.load("xdp", name="filter", programs={"pass": {"attach": [{"interface": "lo"}]}})["object"]
        self.assertEqual(next(events)["kind"], "loaded")
        with self.refused("AttachFailed"):
            self.client.call("io.btfd.Attach", {"objectId": loaded["id"], "program": "pass", "target": {"interface": "lo"}})
        event = next(events)
        self.assertEqual((event["kind"], event["objectId"]), ("attachFailed", loaded["id"]))
        self.assertIn(event["message"], self.daemon.log())
        self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})

    def test_tells_the_end_of_a_session(self):
        events = self.watch()
        client = self.connect()
        loaded = self.load("tp_btf", client, programs={"on_exec": {"attach": [{}]}})["object"]
        client.close()
        kinds = []
        while "unloaded" not in kinds:
            event = next(events)
            self.assertEqual(event["objectId"], loaded["id"])
            kinds.append(event["kind"])
        self.assertEqual(kinds[0], "loaded")

    def test_tells_every_subscriber(self):
        watchers = [self.watch() for _ in range(10)]
        loaded = self.load("tp_btf")["object"]
        for events in watchers:
            event = next(events)
            self.assertEqual((event["kind"], event["objectId"]), ("loaded", loaded["id"]))

    def test_needs_more(self):
        with self.refused("ExpectedMore"):
            self.client.call("io.btfd.Monitor")
        self.client.call("io.btfd.List")

    def test_a_subscriber_that_leaves(self):
        self.watch()
        client = self.connect()
        client.send("io.btfd.Monitor", more=True)
        client.receive()
        client.close()
        self.load("tp_btf")

    def test_a_subscriber_that_does_not_read(self):
        """Loses events, and is told so; nobody else waits for it."""
        idle = self.connect()
        idle.send("io.btfd.Monitor", more=True)
        self.assertEqual(idle.receive()["event"]["kind"], "subscribed")
        reader = self.watch()
        lost = threading.Event()
        seen = []

        def read():
            for event in reader:
                seen.append(event["kind"])
                if lost.is_set() and len(seen) >= self.rounds:
                    return
        self.rounds = 6000
        thread = threading.Thread(target=read)
        thread.start()
        worker = self.connect()
        for i in range(0, self.rounds, 100):
            for k in range(100):
                worker.send("io.btfd.Load", {"object": "AAAA", "name": "n" * 60})
            for k in range(100):
                with self.refused("InvalidObject"):
                    worker.receive()
        lost.set()
        worker.send("io.btfd.Load", {"object": "AAAA"})
        with self.refused("InvalidObject"):
            worker.receive()
        thread.join(20 * SLOW)
        self.assertFalse(thread.is_alive(), "the reader got %d events" % len(seen))
        self.assertGreaterEqual(seen.count("loadFailed"), self.rounds)
        kinds = [idle.receive()["event"]["kind"] for _ in range(500)]  # makes room
        self.assertEqual(set(kinds), {"loadFailed"})
        worker.send("io.btfd.Load", {"object": "AAAA"})
        with self.refused("InvalidObject"):
            worker.receive()
        while kinds[-1] != "eventsLost":
            kinds.append(idle.receive()["event"]["kind"])
        self.assertLess(len(kinds), self.rounds)


class Introspection(DaemonTest):
    def test_info(self):
        info = self.client.call("org.varlink.service.GetInfo")
        self.assertTrue({"io.btfd", "org.varlink.service", "io.systemd.service"} <= set(info["interfaces"]))
        self.assertTrue(info["version"] and info["product"] and info["vendor"])

    def test_descriptions(self):
        for interface in self.client.call("org.varlink.service.GetInfo")["interfaces"]:
            text = self.client.call("org.varlink.service.GetInterfaceDescription", {"interface": interface})["description"]
            self.assertIn("interface %s\n" % interface, text)

    def test_is_the_contract(self):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../proto-less-ipc/io.btfd.varlink")
        with open(source, encoding="utf-8") as f:
            expected = f.read()
        text = self.client.call("org.varlink.service.GetInterfaceDescription", {"interface": "io.btfd"})["description"]
        self.assertEqual(text.strip(), expected.strip())

    def test_what_there_is_not(self):
        with self.refused("InterfaceNotFound", interface="io.nothing"):
            self.client.call("org.varlink.service.GetInterfaceDescription", {"interface": "io.nothing"})
        with self.refused("InterfaceNotFound", interface="io.nothing"):
            self.client.call("io.nothing.Method")
        with self.refused("MethodNotFound", method="io.btfd.Lode"):
            self.client.call("io.btfd.Lode")

    def test_service_interface(self):
        self.client.call("io.systemd.service.Ping")
        level = self.client.call("io.systemd.service.GetLogLevel")["level"]
        self.client.call("io.systemd.service.SetLogLevel", {"level": 4})
        self.assertEqual(self.client.call("io.systemd.service.GetLogLevel")["level"], 4)
        self.client.call("io.systemd.service.SetLogLevel", {"level": level})


class TwoDaemons(unittest.TestCase):
    def test_do_not_share_a_socket(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to load BPF programs")
        first = harness.Daemon().start()
        self.addCleanup(first.stop)
        second = harness.Daemon()
        second.socket_path = first.socket_path
        self.addCleanup(second.remove)
        second.spawn()
        self.addCleanup(second.kill)
        eventually(lambda: second.process.poll() is not None, "the second daemon goes on")
        self.assertNotEqual(second.process.returncode, 0)
        self.assertIn(first.socket_path, second.log())
        with first.client() as client:
            client.call("org.varlink.service.GetInfo")

    def test_do_not_share_a_bpffs_directory(self):
        """The second would remove the pins of the first as those of a daemon that is gone."""
        if os.geteuid() != 0:
            self.skipTest("needs root, to load BPF programs")
        first = harness.Daemon().start()
        self.addCleanup(first.stop)
        with first.client() as client, open(harness.object_path("pinned_map"), "rb") as f:
            client.call("io.btfd.Load", {"objectFileDescriptor": 0}, [f])
            pins = os.listdir(os.path.join(first.bpffs, "owners", "0"))
            self.assertEqual(pins, ["pinned_hash"])
            second = harness.Daemon()
            self.addCleanup(second.remove)
            second.bpffs = first.bpffs
            second.spawn(make_bpffs=False)
            self.addCleanup(second.kill)
            eventually(lambda: second.process.poll() is not None, "the second daemon goes on")
            self.assertNotEqual(second.process.returncode, 0)
            self.assertIn(first.bpffs, second.log())
            self.assertEqual(os.listdir(os.path.join(first.bpffs, "owners", "0")), pins)
