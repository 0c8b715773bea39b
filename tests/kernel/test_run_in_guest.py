# SPDX-License-Identifier: Apache-2.0
"""Tests of the host's run in a guest with its file system: verdicts, their reasons, what is kept between two starts, and
that a test that hangs is bounded."""

import contextlib
import io
import os
import sys
import tempfile
import unittest

import kernel_case
import run_in_guest
from run_in_guest import Test, Verdict

SKIPPING = """
import unittest
class Some(unittest.TestCase):
    def test_it(self):
        self.skipTest("there is no 'such' thing")
unittest.main(exit=False, verbosity=2)
raise SystemExit(77)
"""


def python(name, code, **environment):
    return Test(name, [sys.executable, "-B", "-c", code], environment)


class FolderCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.folder = folder.name


class Verdicts(FolderCase):
    def test_the_reason_is_the_line_that_says_it(self):
        said = "Traceback:\n  File x\nAssertionError: 1 != 2\n\nRan 1 test\nFAILED (failures=1)\n"
        self.assertEqual(run_in_guest.reason_of(1, said), "AssertionError: 1 != 2")
        self.assertEqual(run_in_guest.reason_of(1, "x_test.cpp:7: Failure\n  Expected\n"), "x_test.cpp:7: Failure")
        self.assertEqual(run_in_guest.reason_of(77, "test_a ... skipped \"it's old\"\nOK (skipped=1)\n"), "it's old")
        self.assertEqual(run_in_guest.reason_of(9, ""), "it printed nothing")

    def test_a_verdict_is_kept_until_the_program_changes(self):
        program = os.path.join(self.folder, "program")
        with open(program, "w", encoding="ascii") as file:
            file.write("one")
        test = Test("a.test", ["python3", program], {})
        run_in_guest.State(self.folder, False).put(test, Verdict("failed", "why", 2.5), "what it printed")
        self.assertEqual(run_in_guest.State(self.folder, False).get(test), (Verdict("failed", "why", 2.5), "what it printed"))
        self.assertIsNone(run_in_guest.State(self.folder, True).get(test))
        with open(program, "w", encoding="ascii") as file:
            file.write("another")
        self.assertIsNone(run_in_guest.State(self.folder, False).get(test))

    def sum_up(self, verdicts, listed=False, left=0):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = run_in_guest.sum_up([None] * (len(verdicts) + left),
                                         {i: Verdict(word, "", 1) for i, word in enumerate(verdicts)}, listed)
        return status, printed.getvalue()

    def test_what_is_not_run_is_no_success(self):
        self.assertEqual(self.sum_up(["passed", "skipped"])[0], 0)
        self.assertEqual(self.sum_up(["skipped"])[0], 77)
        self.assertEqual(self.sum_up(["passed", "failed"])[0], 1)
        self.assertEqual(self.sum_up(["passed", "skipped"], listed=True)[0], 1)
        status, said = self.sum_up(["passed"], left=2)
        self.assertEqual(status, 1)
        self.assertIn("1 passed, 0 failed, 0 skipped, 2 not run", said)


class Runs(FolderCase):
    """In a guest of their own, with the host's file system."""

    def run_all(self, tests, limit_s=60, total_s=600):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                found = run_in_guest.run_all(tests, run_in_guest.State(self.folder, False), limit_s, total_s)
            except kernel_case.Unavailable as reason:
                self.skipTest(str(reason))
        print(printed.getvalue())
        return {name: (verdict.verdict, verdict.reason) for name, verdict in found.items()}, printed.getvalue()

    def test_verdicts(self):
        here = os.path.abspath(__file__)
        tests = [
            python("reads", f"import os; assert os.path.getsize({here!r}) == {os.path.getsize(here)}; "
                            f"assert os.environ['GIVEN'] == 'a b'; open('/tmp/left', 'x')", GIVEN="a b"),
            python("own_tmp", "import os; assert not os.path.exists('/tmp/left')"),
            python("finds_no_write", f"open({here!r}, 'a')"),
            python("skips", SKIPPING),
            python("hangs", "import time; print('asleep', flush=True); time.sleep(1000)"),
            python("goes_on", "import harness; assert harness.why_no_watchpoints() is None",
                   PYTHONPATH=run_in_guest.END_TO_END)]
        found, printed = self.run_all(tests, limit_s=20)
        self.assertIn("debug registers fire", printed)
        self.assertIn("    asleep", printed)
        self.assertEqual(found, {
            "reads": ("passed", ""), "own_tmp": ("passed", ""), "goes_on": ("passed", ""),
            "finds_no_write": ("failed", f"OSError: [Errno 30] Read-only file system: {here!r}"),
            "skips": ("skipped", "there is no 'such' thing"),
            "hangs": ("failed", "the script was running after 20 s")})
        again, printed = self.run_all(tests)
        self.assertEqual(again, found)
        self.assertNotIn("booted", printed)


if __name__ == "__main__":
    kernel_case.main()
