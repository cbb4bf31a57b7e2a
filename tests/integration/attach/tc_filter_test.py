"""Filters of tc: no descriptor keeps them, so that it is the daemon that has to remove them, whatever happens."""
import contextlib
import os
import random
import re
import signal
import time
import unittest

import bpf
from btfd_client import VarlinkError
from harness import SLOW, Daemon, eventually
from network_test import InterfaceTest
from system import run, tool


class TcFilterTest(InterfaceTest):
    def setUp(self):
        if not tool("tc"):
            raise unittest.SkipTest("needs tc, of iproute2")
        super().setUp()
        self.target = {"interface": self.pair.name, "tcForm": "tc", "direction": "ingress"}
        try:
            run("tc", "qdisc", "add", "dev", self.pair.name, "clsact")
        except RuntimeError as e:
            raise unittest.SkipTest("this kernel has no clsact qdisc: %s" % e) from e
        run("tc", "qdisc", "del", "dev", self.pair.name, "clsact")

    def filters(self, direction="ingress"):
        """(priority, handle, program id) of the interface's filters."""
        shown = run("tc", "filter", "show", "dev", self.pair.name, direction)
        return [(int(priority), int(handle, 16), int(number)) for priority, handle, number in
                re.findall(r"pref (\d+) bpf .*handle (0x[0-9a-f]+) .* id (\d+)", shown)]

    def has_qdisc(self):
        return "clsact" in run("tc", "qdisc", "show", "dev", self.pair.name)

    def assert_clean(self):
        self.assertFalse(self.has_qdisc(), "the qdisc is left: %s" % (self.filters() + self.filters("egress")))

    def add_of_another(self, *where):
        """A filter that tc(8) makes, of a program of its own object."""
        reply = self.load("tc", wantDescriptors=True)
        pinned = os.path.join(self.daemon.bpffs, "theirs")
        bpf.pin(reply.descriptors[reply["object"]["programs"][0]["fileDescriptor"]], pinned)
        run("tc", "filter", "replace", "dev", self.pair.name, *where, "bpf", "da", "pinned", pinned)
        os.unlink(pinned)
        return self.program_id(reply["object"])

    def program_id(self, loaded):
        return next(p["kernelId"] for p in loaded["programs"] if p["name"] == "classify")


class TcFilter(TcFilterTest):
    def test_ingress(self):
        link = self.runs_while_attached("tc", "classify", "tc", self.receive, self.target)
        self.assertNotIn("kernelId", link)
        self.assert_clean()

    def test_egress(self):
        self.runs_while_attached("tc", "classify", "tc", self.transmit, {**self.target, "direction": "egress"})
        self.assert_clean()

    def test_section_says_the_direction(self):
        self.runs_while_attached("tcx", "on_egress", "tc", self.transmit, {"interface": self.pair.name, "tcForm": "tc"})
        self.assert_clean()

    def test_attached_at_load(self):
        self.runs_when_attached_at_load("tc", "classify", self.receive, self.target)
        self.assert_clean()

    def test_in_another_namespace(self):
        self.runs_while_attached("tc", "classify", "tc", self.transmit,
                                 {**self.target, "interface": self.pair.peer_name, "networkNamespace": self.pair.namespace})
        self.assertNotIn("clsact", run("ip", "netns", "exec", self.pair.namespace_name, "tc", "qdisc", "show"))

    def test_the_link_says_where_it_is(self):
        loaded = self.load("tc")["object"]
        link = self.attach(loaded, "classify", self.target)["link"]
        self.assertEqual(self.filters(), [(link["priority"], link["handle"], self.program_id(loaded))])
        listed = self.client.call("io.btfd.Describe", {"objectId": loaded["id"]})["object"]["links"]
        self.assertEqual(listed, [link])

    def test_in_a_given_place(self):
        loaded = self.load("tc")["object"]
        link = self.attach(loaded, "classify", {"interface": self.pair.name, "direction": "ingress", "priority": 50,
                                                "handle": 0x17})["link"]
        self.assertEqual((link["kind"], link["priority"], link["handle"]), ("tc", 50, 0x17))
        self.assertEqual(self.filters(), [(50, 0x17, self.program_id(loaded))])
        with self.refused("AttachFailed", errnoName="EEXIST"):
            self.attach(loaded, "classify", {**self.target, "priority": 50, "handle": 0x17})
        other = self.attach(loaded, "classify", {**self.target, "priority": 50})["link"]
        self.assertNotEqual(other["handle"], 0x17)
        self.assertEqual(len(self.filters()), 2)

    def test_places_that_are_none(self):
        loaded = self.load("tc")["object"]
        for field, value in (("priority", 0), ("priority", 65536), ("priority", -1), ("handle", 0), ("handle", 1 << 32),
                             ("tcForm", "fast")):
            with self.subTest(field=field, value=value), self.refused("InvalidParameter", parameter="target." + field):
                self.attach(loaded, "classify", {**self.target, field: value})
        with self.refused("InvalidParameter", parameter="target.priority"):
            self.attach(loaded, "classify", {**self.target, "tcForm": "tcx", "priority": 1})
        self.assert_clean()

    def test_all_run_the_latest_first(self):
        loads = [self.load_with_counter("tcx") for _ in range(3)]
        links = [self.attach(loaded, "on_ingress", {"interface": self.pair.name, "tcForm": "tc"})["link"]
                 for loaded, _ in loads]
        self.assertEqual([link["priority"] for link in links], sorted((link["priority"] for link in links), reverse=True))
        self.receive()
        for _, count in loads:
            self.assertGreater(count(), 0)

    def test_the_qdisc_goes_with_the_last(self):
        loaded = self.load("tc")["object"]
        first = self.attach(loaded, "classify", self.target)["link"]
        second = self.attach(loaded, "classify", {**self.target, "direction": "egress"})["link"]
        self.client.call("io.btfd.Detach", {"linkId": first["id"]})
        self.assertEqual(len(self.filters("egress")), 1)
        self.client.call("io.btfd.Detach", {"linkId": second["id"]})
        self.assert_clean()

    def test_the_qdisc_of_others_stays(self):
        run("tc", "qdisc", "add", "dev", self.pair.name, "clsact")
        self.runs_while_attached("tc", "classify", "tc", self.receive, self.target)
        self.assertTrue(self.has_qdisc())

    def test_the_filters_of_others_stay(self):
        loaded = self.load("tc")["object"]
        self.attach(loaded, "classify", self.target)
        theirs = self.add_of_another("egress", "pref", "9", "protocol", "all")
        self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})
        self.assertEqual(self.filters(), [])
        self.assertEqual([number for _, _, number in self.filters("egress")], [theirs])
        run("tc", "qdisc", "del", "dev", self.pair.name, "clsact")

    def test_what_others_put_in_its_place_stays(self):
        loaded = self.load("tc")["object"]
        link = self.attach(loaded, "classify", {**self.target, "priority": 7})["link"]
        theirs = self.add_of_another("ingress", "pref", "7", "handle", hex(link["handle"]), "protocol", "all")
        self.client.call("io.btfd.Detach", {"linkId": link["id"]})
        self.assertEqual(self.filters(), [(7, link["handle"], theirs)])
        run("tc", "qdisc", "del", "dev", self.pair.name, "clsact")

    def test_what_others_remove_is_no_loss(self):
        loaded = self.load("tc")["object"]
        link = self.attach(loaded, "classify", self.target)["link"]
        run("tc", "qdisc", "del", "dev", self.pair.name, "clsact")
        self.client.call("io.btfd.Detach", {"linkId": link["id"]})
        self.attach(loaded, "classify", self.target)
        run("ip", "link", "del", self.pair.name)
        self.client.call("io.btfd.Unload", {"objectId": loaded["id"]})

    def test_all_or_nothing(self):
        run("tc", "qdisc", "add", "dev", self.pair.name, "clsact")
        theirs = self.add_of_another("egress", "pref", "9", "protocol", "ip")
        with self.refused("AttachFailed", program="classify", errnoName="EINVAL") as refusal:
            self.load("tc", programs={"classify": {"attach": [
                self.target, {**self.target, "direction": "egress"}, {**self.target, "direction": "egress", "priority": 9}]}})
        self.assertIn("of another kind", refusal.error.parameters["message"])
        self.assertEqual([number for _, _, number in self.filters() + self.filters("egress")], [theirs])
        self.assertEqual(len(self.client.call("io.btfd.List")["objects"]), 1)
        run("tc", "qdisc", "del", "dev", self.pair.name, "clsact")

    def test_dry_run(self):
        self.load("tc", dryRun=True, programs={"classify": {"attach": [self.target]}})
        self.assert_clean()


class TcFilterEnds(TcFilterTest):
    def test_with_the_session(self):
        client = self.connect()
        loaded = self.load("tc", client)["object"]
        client.call("io.btfd.Attach", {"objectId": loaded["id"], "program": "classify", "target": self.target})
        self.assertEqual(len(self.filters()), 1)
        client.close()
        eventually(lambda: not self.has_qdisc(), "the filter or its qdisc stays")

    def test_with_a_client_that_does_not_wait(self):
        for _ in range(20):
            with self.subTest():
                client = self.connect()
                loaded = self.load("tc", client)["object"]
                client.send("io.btfd.Attach", {"objectId": loaded["id"], "program": "classify", "target": self.target})
                client.close()
        eventually(lambda: not self.has_qdisc() and not self.client.call("io.btfd.List")["objects"], "something stays")

    def test_with_the_daemon(self):
        with_filter = Daemon(self.config).start()
        self.addCleanup(with_filter.kill)
        client = with_filter.client()
        self.addCleanup(client.close)
        self.load("tc", client, programs={"classify": {"attach": [self.target]}})
        self.assertEqual(len(self.filters()), 1)
        with_filter.stop()
        self.assert_clean()

    def test_nothing_stays_of_a_worker_that_is_killed(self):
        """At any moment while filters are made and removed."""
        loaded = self.load("tc")["object"]
        chance = random.Random(1)
        lost = 0
        for _ in range(60):
            reply = self.while_workers_are_killed(chance, "io.btfd.Attach",
                                                  {"objectId": loaded["id"], "program": "classify", "target": self.target})
            lost += reply is None
            if reply is not None:
                self.while_workers_are_killed(chance, "io.btfd.Detach", {"linkId": reply["link"]["id"]})
            self.assertEqual(self.filters(), [])
        print("\n    %d of 60 were lost" % lost)

    def while_workers_are_killed(self, chance, method, parameters):
        """Calls; the reply, or nothing if the worker was lost."""
        self.client.send(method, parameters)
        time.sleep(chance.uniform(0, 0.004 * SLOW))
        for pid in self.daemon.workers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            return self.client.receive()
        except VarlinkError as e:
            self.assertIn(e.name, ("io.btfd.WorkerLost", "io.btfd.Busy"), e)
            return None
