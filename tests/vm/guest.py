#!/usr/bin/env python3
"""Within a virtual machine: runs test files one after the other, and says at the end what became of each.

usage: guest.py RESULTS FILE[:CLASS[,CLASS...]]...

Each file is run as ctest does: Python tests by tests/python/run.py, differential/run-verdicts by itself. RESULTS gets a line of JSON for each: {"file", "status": "passed",
"failed" or "skipped", "seconds"}. Exit status: 0; 1 if one failed; 77 if all were skipped.
"""
import json
import os
import subprocess
import sys
import time

SKIPPED = 77
RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../python/run.py")
NAMES = {0: "passed", SKIPPED: "skipped"}


def command(test):
    path, _, classes = test.partition(":")
    if path.endswith("run-verdicts"):
        build = os.path.dirname(os.environ["BTFD_BIN_DIR"])
        return [sys.executable, path, "--build", build, "--objects", os.environ["BTFD_OBJECTS"]]
    return [sys.executable, RUN, path, *filter(None, classes.split(","))]


def main():
    results = []
    for each in sys.argv[2:]:
        print("######## %s" % each, flush=True)
        begin = time.monotonic()
        status = subprocess.call(command(each))
        results.append({"file": each, "status": NAMES.get(status, "failed"), "seconds": round(time.monotonic() - begin, 1)})
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        f.writelines(json.dumps(result) + "\n" for result in results)
    print("######## Linux %s" % os.uname().release)
    for result in results:
        print("%(status)-8s %(seconds)7.1f s  %(file)s" % result)
    if all(result["status"] == "skipped" for result in results):
        return SKIPPED
    return 1 if any(result["status"] == "failed" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
