#!/usr/bin/env python3
"""Runs the tests of one file, as ctest wants it.

usage: run.py FILE [CLASS[.test]]...

In a mount and a network namespace of its own, so that nothing stays on the system. Exit status: 0, 1 if a test failed, 77
if all were skipped (the reasons are printed), 2 if there was none.
"""
import faulthandler
import importlib.util
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import system  # noqa: E402


class Result(unittest.TextTestResult):
    """Counts the tests that really ran."""
    ran = 0

    def stopTest(self, test):
        super().stopTest(test)
        if not any(skipped is test for skipped, _ in self.skipped):
            self.ran += 1


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    path, names = os.path.abspath(sys.argv[1]), sys.argv[2:]
    if os.geteuid() == 0:
        system.enter_private_namespaces()
    faulthandler.enable()
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames(names, module) if names else loader.loadTestsFromModule(module)
    count = suite.countTestCases()
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(suite)
    for test, reason in result.skipped:
        print("SKIPPED %s: %s" % (test, reason))
    if not result.wasSuccessful():
        return 1
    if count == 0:
        print("there is no such test")
        return 2
    return 0 if result.ran else 77


if __name__ == "__main__":
    sys.exit(main())
