"""What one client can make the daemon take or say: names, descriptions, lists, logs and descriptors have bounds, and past
them there is an error that says so, with nothing left of the request.
"""
import os
import subprocess
import tempfile

from btfd_client import ConnectionLost, VarlinkError
from harness import DaemonTest, eventually, object_bytes, object_path

LABELS = {"key%02d%s" % (i, "k" * 50): "v" * 256 for i in range(64)}  # 20 KB
DESCRIPTOR_LIMIT = 253


class BoundedNames(DaemonTest):
    def rewritten(self, name, *options):
        """A test object after llvm-objcopy has been at it."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "object.o")
            for tool in ("llvm-objcopy-19", "llvm-objcopy"):
                try:
                    subprocess.run([tool, *options, object_path(name), path], check=True)
                except FileNotFoundError:
                    continue
                with open(path, "rb") as f:
                    return f.read()
        return self.skipTest("needs llvm-objcopy")

    def test_of_programs_have_511_bytes_at_most(self):
        for length in (511, 512, 100_000):
            data = self.rewritten("raw_tracepoint", "--strip-debug", "--redefine-sym", "on_exec=" + "q" * length)
            with self.subTest(length=length):
                if length > 511:
                    with self.refused("InvalidObject") as refusal:
                        self.load_bytes(data)
                    self.assertIn("longer than 511 bytes", refusal.error.parameters["message"])
                else:
                    loaded = self.load_bytes(data)["object"]
                    self.assertEqual(loaded["programs"][0]["name"], "q" * length)

    def test_of_sections_have_511_bytes_at_most(self):
        section = "raw_tp/" + "s" * 505
        data = self.rewritten("raw_tracepoint", "--rename-section", "raw_tp/sched_process_exec=" + section)
        with self.refused("InvalidObject") as refusal:
            self.load_bytes(data)
        self.assertIn("longer than 511 bytes", refusal.error.parameters["message"])

    def test_that_turn_the_direction_of_text_are_refused(self):
        with self.refused("InvalidParameter", parameter="name"):
            self.load("no_btf_needed", name="a\u202eb")
        with self.refused("InvalidParameter", parameter="labels.team"):
            self.load("no_btf_needed", labels={"team": "\u2066net"})

    def test_of_a_tracepoint_have_no_nul(self):
        with self.refused("InvalidParameter", parameter="programs.on_exec.attach[0].tracepoint"):
            self.load("raw_tracepoint", programs={"on_exec": {"attach": [{"tracepoint": "sched_switch\0 and more"}]}})

    def test_cannot_make_log_lines(self):
        with self.refused("NoSuchName"):
            self.load("no_btf_needed", programs={"x\nforged line\x1b[2J": {}})
        lines = self.daemon.log().splitlines()
        self.assertTrue(any("x\\x0aforged line\\x1b[2J" in line for line in lines), lines)
        self.assertFalse(any(line.startswith("forged") for line in lines), lines)


class BoundedLists(DaemonTest):
    def many(self, count, **parameters):
        for _ in range(count):
            self.load("no_btf_needed", **parameters)

    def test_with_more_have_an_object_a_reply(self):
        self.many(3, name="wanted")
        self.many(2, name="other")
        everything = self.client.call("io.btfd.List")["objects"]
        self.assertEqual(len(everything), 5)
        replies = list(self.client.stream("io.btfd.List"))
        self.assertEqual([reply["objects"] for reply in replies], [[o] for o in everything])
        self.assertEqual([reply.continues for reply in replies], [True] * 4 + [False])
        replies = list(self.client.stream("io.btfd.List", {"name": "wanted"}))
        self.assertEqual([reply["objects"] for reply in replies], [[o] for o in everything if o["name"] == "wanted"])
        replies = list(self.client.stream("io.btfd.List", {"name": "nobody"}))
        self.assertEqual([(reply["objects"], reply.continues) for reply in replies], [([], False)])

    def test_that_take_more_than_an_answer_need_more(self):
        self.many(250, labels=LABELS)
        self.many(1, name="small")
        with self.refused("LimitExceeded", limit="answerBytes", maximum=4 << 20) as refusal:
            self.client.call("io.btfd.List")
        self.assertIn("'more'", refusal.error.parameters["message"])
        self.assertEqual(len(self.client.call("io.btfd.List", {"name": "small"})["objects"]), 1)
        # Far more than is queued for a client that does not read; others are served meanwhile.
        slow = self.connect()
        slow.send("io.btfd.List", {}, more=True)
        self.assertEqual(len(list(self.connect().stream("io.btfd.List"))), 251)
        ids = []
        while True:
            reply = slow.receive()
            ids += [o["id"] for o in reply["objects"]]
            if not reply.continues:
                break
        self.assertEqual(ids, sorted(ids))
        self.assertEqual(len(ids), 251)

    def test_end_though_objects_go_meanwhile(self):
        other = self.connect()
        for _ in range(200):
            self.load("no_btf_needed", other, labels=LABELS)
        self.client.send("io.btfd.List", {}, more=True)
        first = self.client.receive()
        self.assertTrue(first.continues)
        other.close()
        last = first
        while last.continues:
            last = self.client.receive()
        eventually(lambda: not self.client.call("io.btfd.List")["objects"], "objects are still listed")

    def test_have_labels_within_the_bounds_of_a_load(self):
        with self.refused("InvalidParameter", parameter="labels"):
            self.client.call("io.btfd.List", {"labels": {str(i): "x" for i in range(65)}})
        with self.refused("InvalidParameter", parameter="labels.a"):
            self.client.call("io.btfd.List", {"labels": {"a": "x" * 257}})


class BoundedLogs(DaemonTest):
    config = {"limits": {"verifierLogBytes": 8 << 20}}

    def test_of_all_programs_together_are_bounded(self):
        """A log that is cut is the end of the whole one."""
        logs = self.load("bench_hundred", verifierLogLevel=2)["verifierLogs"]
        self.assertEqual(len(logs), 100)
        for log in logs.values():
            self.assertIn("processed ", log)
            self.assertLessEqual(len(log), (8 << 20) // 100)


class BoundedMessages(DaemonTest):
    config = {"limits": {"messageBytes": 2 << 20}}

    def test_of_a_client(self):
        self.client.call("io.btfd.List", {"name": "x" * ((2 << 20) - 1000)})
        with self.assertRaises((ConnectionLost, OSError)):
            self.client.call("io.btfd.List", {"name": "x" * (2 << 20)})

    def test_of_the_daemon(self):
        for _ in range(60):
            self.load("no_btf_needed", labels=LABELS)
        with self.refused("LimitExceeded", limit="answerBytes", maximum=1 << 20):
            self.client.call("io.btfd.List")
        self.assertEqual(len(list(self.client.stream("io.btfd.List"))), 60)


class BoundedDescriptors(DaemonTest):
    def test_that_do_not_fit_an_answer(self):
        loaded = self.load("raw_tracepoint")["object"]
        reply = self.client.call("io.btfd.GetDescriptors",
                                 {"objectId": loaded["id"], "programs": ["on_exec"] * DESCRIPTOR_LIMIT})
        self.assertEqual(len(reply["descriptors"]), DESCRIPTOR_LIMIT)
        for count in (DESCRIPTOR_LIMIT + 1, 60_000):
            with self.refused("LimitExceeded", limit="descriptors", maximum=DESCRIPTOR_LIMIT):
                self.client.call("io.btfd.GetDescriptors", {"objectId": loaded["id"], "programs": ["on_exec"] * count})


class DescriptorsRunOut(DaemonTest):
    """The daemon may have 64 descriptors, and each object takes four of them."""
    wrapper = ["prlimit", "--nofile=64:64"]

    def fill(self):
        """Loads objects until the daemon has no room for another; ids of those that are loaded."""
        ids = []
        while True:
            try:
                ids.append(self.load("raw_tracepoint", deadlineMs=10_000)["object"]["id"])
            except VarlinkError as e:
                self.assertIn(e.name, ("io.btfd.LimitExceeded", "io.systemd.System"), e)
                self.assertEqual(e.parameters.get("limit", "descriptors"), "descriptors")
                self.assertEqual(e.parameters.get("errnoName", "EMFILE"), "EMFILE")
                return ids

    def test_the_request_fails_and_nothing_else(self):
        workers = sorted(self.daemon.workers())
        ids = self.fill()
        self.assertGreater(len(ids), 3)
        self.assertEqual([o["id"] for o in self.client.call("io.btfd.List")["objects"]], ids)
        limit = {"limit": "descriptors", "maximum": 64}
        with self.refused("LimitExceeded", **limit) as refusal:
            for _ in range(64):
                self.client.call("io.btfd.Attach", {"objectId": ids[0], "program": "on_exec", "deadlineMs": 10_000})
        self.assertIn("RLIMIT_NOFILE", refusal.error.parameters["message"])
        for i in ids[:-1]:
            self.client.call("io.btfd.Unload", {"objectId": i})
        # A load that has no room for its client's descriptors leaves nothing.
        link = self.client.call("io.btfd.Attach", {"objectId": ids[-1], "program": "on_exec"})["link"]
        self.client.call("io.btfd.Detach", {"linkId": link["id"]})
        self.client.call("io.btfd.Unload", {"objectId": ids[-1]})
        self.load("raw_tracepoint", wantDescriptors=True)
        self.assertEqual(sorted(self.daemon.workers()), workers)

    def test_an_object_whose_descriptors_cannot_be_sent_does_not_stay(self):
        """With as much room as it takes, and less: something does not fit at each step of a load."""
        workers = sorted(self.daemon.workers())
        refused = 0
        for taken in range(8):
            ids = self.fill()
            for i in ids[:2]:
                self.client.call("io.btfd.Unload", {"objectId": i})
            idle = [self.connect() for _ in range(taken)]
            for client in idle:
                client.call("org.varlink.service.GetInfo")
            before = [o["id"] for o in self.client.call("io.btfd.List")["objects"]]
            try:
                loaded = [self.load("raw_tracepoint", wantDescriptors=True)["object"]["id"]]
            except VarlinkError as e:
                refused += 1
                loaded = []
                self.assertIn(e.name, ("io.btfd.LimitExceeded", "io.systemd.System"), e)
            after = [o["id"] for o in self.client.call("io.btfd.List")["objects"]]
            self.assertEqual(after, before + loaded)
            for client in idle:
                client.close()
            for i in after:
                self.client.call("io.btfd.Unload", {"objectId": i})
        self.assertGreater(refused, 0)
        self.assertEqual(sorted(self.daemon.workers()), workers)
