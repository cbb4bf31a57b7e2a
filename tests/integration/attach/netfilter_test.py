"""Programs of netfilter, beside iptables' and nftables' rules."""
from attaching import AttachTest
from network_test import send_to
from system import VethPair


class Netfilter(AttachTest):
    target = {"hook": "output", "protocolFamily": "ipv4"}

    def send(self):
        send_to("127.0.0.1")

    def test_runs_or_says_why_not(self):
        self.runs_or_says_why_not("netfilter", "on_packet", "netfilter", self.send, self.target)

    def attachable(self):
        """Skips where the kernel has none."""
        with self.skipped_where_lacking():
            loaded = self.load("netfilter")["object"]
            self.attach(loaded, "on_packet", {**self.target, "priority": 4711})
            return loaded

    def test_attached_at_load(self):
        self.attachable()
        self.runs_when_attached_at_load("netfilter", "on_packet", self.send, {**self.target, "priority": -100})

    def test_all_hooks_and_families(self):
        loaded = self.attachable()
        for family in ("ipv4", "ipv6"):
            for hook in ("prerouting", "input", "forward", "output", "postrouting"):
                link = self.attach(loaded, "on_packet", {"hook": hook, "protocolFamily": family})["link"]
                self.assertEqual(link["target"], "%s %s, priority 0" % (family, hook))
        with self.refused("AttachFailed", errnoName="EBUSY") as refusal:
            self.attach(loaded, "on_packet", self.target)
        self.assertIn("has this hook and priority", refusal.error.parameters["message"])

    def test_in_another_namespace(self):
        self.attachable()
        with VethPair() as pair:
            self.runs_while_attached("netfilter", "on_packet", "netfilter", lambda: pair.in_peer(self.send),
                                     {**self.target, "networkNamespace": pair.namespace_name})

    def test_targets_that_make_no_sense(self):
        with self.skipped_where_lacking():
            loaded = self.load("netfilter")["object"]
        for target, field in (({}, "hook"), ({"hook": "output"}, "protocolFamily"),
                              ({**self.target, "hook": "outputs"}, "hook"),
                              ({**self.target, "protocolFamily": "arp"}, "protocolFamily"),
                              ({**self.target, "priority": 1 << 31}, "priority"),
                              ({**self.target, "interface": "lo"}, "interface")):
            with self.subTest(target=target), self.refused("InvalidParameter", parameter="target." + field):
                self.attach(loaded, "on_packet", target)
