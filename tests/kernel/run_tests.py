# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of all test_*.py that share a kind of guest, in one guest.

    run_tests.py amd_2 | amd_1 | intel_2 | intel_1   those of this kind
    run_tests.py none                                those that need no guest, or one of their own
    run_tests.py --list                              how many there are of each

It prints how long each took, and ends with one line for each test that failed and one for each that was skipped; its
status is 77 where all were skipped.
"""

import glob
import os
import signal
import sys
import time
import unittest

import kernel_case
from kernel_case import harness

KINDS = {str(kind): kind for kind in (kernel_case.AMD, kernel_case.AMD_1, kernel_case.INTEL, kernel_case.INTEL_1)}


class Results(unittest.TextTestResult):
    def startTest(self, test):
        super().startTest(test)
        self._began = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        self.stream.writeln(f"{test.id()}: {time.monotonic() - self._began:.1f} s")


def all_tests():
    names = sorted(os.path.basename(path).removesuffix(".py")
                   for path in glob.glob(os.path.join(kernel_case.HERE, "test_*.py")))
    return list(_cases(unittest.defaultTestLoader.loadTestsFromNames(names)))


def _cases(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from _cases(test)
        else:
            yield test


def tests_of(name):
    """In the order in which they are to run."""
    return sorted((test for test in all_tests() if str(kernel_case.kind_of(test)).lower() == name), key=kernel_case.is_last)


def error_of(text):
    """Returns the first line of a traceback's error, which may have many."""
    lines = text.strip().splitlines()
    last_place = max((at for at, line in enumerate(lines) if line.startswith("  File ")), default=-1)
    return next((line for line in lines[last_place + 1:] if line[:1].strip()), lines[-1])


def run(name):
    tests = tests_of(name)
    if not tests:
        sys.exit(f"no test is of the kind {name}; there are: {', '.join([*KINDS, 'none'])}")
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Results).run(unittest.TestSuite(tests))
    for test, reason in result.skipped:
        print(f"skipped {test.id()}: {reason}")
    bad = [*result.failures, *result.errors]
    for test, text in bad:
        print(f"FAILED {test.id()}: {error_of(text)}")
    print(f"{name}: {result.testsRun - len(bad) - len(result.skipped)} passed, {len(bad)} failed, {len(result.skipped)} skipped")
    if bad or result.unexpectedSuccesses:
        return 1
    return harness.SKIPPED if len(result.skipped) == result.testsRun else 0


def main(arguments):
    if arguments == ["--list"]:
        for name in (*KINDS, "none"):
            print(name, len(tests_of(name)))
        return 0
    if len(arguments) != 1:
        sys.exit(__doc__.strip())
    return run(arguments[0])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # guests are ended, and their folders taken away
    sys.exit(main(sys.argv[1:]))
