"""What the daemon says of its command line and its configuration, at the start and when it reads it again."""
import grp
import json
import os
import signal
import subprocess
import tempfile
import unittest

import harness
import system
from harness import DaemonTest, eventually

DEFAULT_GROUP_IS_MISSING = all(entry.gr_name != "btfd" for entry in grp.getgrall())


class CommandLine(unittest.TestCase):
    def run_btfd(self, *arguments):
        binary = harness.built(harness.BIN_DIR, "BTFD_BIN_DIR", "btfd", "btfd")
        return subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=60 * harness.SLOW)

    def check(self, config):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(config, file)
            file.flush()
            return self.run_btfd("--config", file.name, "--check-config")

    def test_mistakes_end_with_2(self):
        for arguments in (["--no-such-option"], ["--socket"], ["surplus"]):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.run_btfd(*arguments).returncode, 2)

    def test_help_lists_the_exit_statuses(self):
        done = self.run_btfd("--help")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"Exit status:\n +0 .*\n +1 .*\n +2 .*\n +71 .*\n +78 ")

    def test_a_group_that_does_not_exist_is_an_error_for_check_and_start(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"socket": {"group": "no-such-group", "path": file.name + ".socket"}}, file)
            file.flush()
            for arguments in (["--check-config"], []):
                with self.subTest(arguments=arguments):
                    done = self.run_btfd("--config", file.name, *arguments)
                    self.assertEqual(done.returncode, 78, done.stderr)
                    self.assertIn("socket.group: the system has no group 'no-such-group'", done.stderr)
                    self.assertFalse(os.path.lexists(file.name + ".socket"))

    def test_no_group_and_one_that_exists_are_none(self):
        for group in ("", harness.GROUP):
            with self.subTest(group=group):
                done = self.check({"socket": {"group": group}})
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_default_group_may_come_later(self):
        done = self.check({})
        self.assertEqual(done.returncode, 0)
        self.assertEqual("the system has no group 'btfd'" in done.stderr, DEFAULT_GROUP_IS_MISSING)


class DefaultGroup(DaemonTest):
    config = {"socket": {"group": "btfd"}}

    def test_may_come_later_and_is_missed_in_the_log(self):
        self.assertEqual("warning: socket.group: the system has no group 'btfd', so only root" in self.daemon.log(),
                         DEFAULT_GROUP_IS_MISSING)


class NoBpffs(DaemonTest):
    """The daemon's directory is no bpffs."""

    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("needs root, to load BPF programs")
        cls.daemon = harness.Daemon(cls.config)
        cls.daemon.bpffs = os.path.join(cls.daemon.directory, "pins")
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.stop)

    def test_is_in_the_log(self):
        self.assertIn("cannot be loaded: %s is not on a bpffs" % self.daemon.bpffs, self.daemon.log())

    def test_refuses_maps_that_are_pinned_and_says_where_and_what_to_do(self):
        with self.refused("LoadFailed", stage="map", map="pinned_hash", errnoName="ENOENT") as refusal:
            self.load("pinned_map")
        for words in ("map 'pinned_hash' cannot be pinned: %s is not on a bpffs" % self.daemon.bpffs, "--bpffs", "restart btfd"):
            self.assertIn(words, refusal.error.parameters["message"])

    def test_loads_what_pins_nothing(self):
        self.client.call("io.btfd.Unload", {"objectId": self.load("tp_btf")["object"]["id"]})

    def test_notices_a_bpffs_that_was_mounted_later(self):
        system.mount("bpf", self.daemon.bpffs, "bpf")
        self.addCleanup(system.run, "umount", self.daemon.bpffs)
        with self.refused("LoadFailed", stage="map", map="pinned_hash") as refusal:
            self.load("pinned_map")
        self.assertIn("there is no %s/owners; restart btfd, which makes it" % self.daemon.bpffs, refusal.error.parameters["message"])


class LackingCapabilities(DaemonTest):
    wrapper = ("setpriv", "--bounding-set", "-perfmon,-net_admin,-sys_admin")

    def test_are_named_in_one_warning_with_what_they_are_for(self):
        warnings = [line for line in self.daemon.log().splitlines() if "CAP_" in line]
        self.assertEqual(len(warnings), 1, warnings)
        for words in ("warning", "CAP_PERFMON", "tracing", "CAP_NET_ADMIN", "network", "CAP_SYS_ADMIN"):
            self.assertIn(words, warnings[0])
        self.assertNotIn("CAP_BPF", warnings[0])


class Reload(DaemonTest):
    def test_no_capability_is_said_to_be_missing(self):
        self.assertNotIn("CAP_", self.daemon.log())

    def reload(self, changes):
        with open(self.daemon.config_path, "w", encoding="utf-8") as file:
            json.dump(harness.merged(harness.DEFAULT_CONFIG, changes), file)
        count = self.daemon.log(1 << 20).count("read the configuration again")
        os.kill(self.daemon.pid(), signal.SIGHUP)
        eventually(lambda: self.daemon.log(1 << 20).count("read the configuration again") > count, "it is not read again")
        return self.daemon.log(1 << 20).split("read the configuration again")[-1]

    def test_names_what_needs_a_restart(self):
        changes = {"limits": {"connections": 100, "deadlineMs": 5000, "connectionsPerUser": 10}, "workers": {"count": 7}}
        self.assertIn("needs a restart: workers.count, limits.connections, limits.connectionsPerUser\n", self.reload(changes))
        self.assertIn("needs a restart: workers.count\n", self.reload({"workers": {"count": 7}}))
        self.assertNotIn("restart", self.reload({"limits": {"deadlineMs": 5000}}))
