"""Clients that others have written, fetched on first use."""
import os
import subprocess
import unittest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools", "fetch-varlinkctl")


def fetch(client):
    """Where the client is; skips the test where it can't be had."""
    done = subprocess.run([TOOL, client], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise unittest.SkipTest("no %s: %s" % (client, done.stderr.strip()))
    return done.stdout.strip()
