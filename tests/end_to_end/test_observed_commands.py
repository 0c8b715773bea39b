# SPDX-License-Identifier: Apache-2.0
"""Commands that are watched from outside, since nothing can be preloaded into them or because that was asked for."""

import contextlib
import os
import signal
import sqlite3
import sys

import harness
from harness import needs_watchpoints

MAX_DISTANCE = 0.35

# A program's view of how it was started.
SELF_PORTRAIT = """
import os
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(sorted(os.environ), sorted(os.listdir("/proc/self/fd")), [status[key] for key in ("TracerPid", "SigBlk", "SigIgn",
      "SigCgt", "SigPnd", "ShdPnd", "Threads", "NoNewPrivs", "Seccomp")])
print(sorted(line.split()[-1] for line in open("/proc/self/maps") if "/" in line))
raise SystemExit(5)
"""


# Executes its arguments where nobody may call ptrace: a filter gives EPERM.
WITHOUT_PTRACE = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, 101), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)]  # load, is it, EPERM, pass
text = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *rule) for rule in rules))
program = ctypes.create_string_buffer(struct.pack("=H6xQ", len(rules), ctypes.addressof(text)))
if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:
    sys.exit("no filter can be set here")
os.execv(sys.argv[1], sys.argv[1:])
"""


class Launched(harness.Case):
    def observe_command(self, program, options, seconds):
        result = self.record([harness.workload(program), "--seconds", str(seconds)], options)
        self.assertEqual((result.status, result.stderr), (0, ""))
        return self.report(result.profile), result.truth

    def check_false_sharing(self, program, options, reason):
        report, truth = self.enough(program, lambda factor: self.observe_command(program, options, 5 * factor))
        self.assertTrue(harness.object_named(report["objects"][0], "counters"), report["objects"][0]["name"])
        self.assertEqual(report["exit_status"], 0)
        self.assertEqual(len(report["processes"]), 1, report["processes"])
        said = {warning["code"]: warning["message"] for warning in report["warnings"]}
        self.assertIn(reason, said["watched_from_outside"])
        return harness.cells_by_truth(report, truth), truth

    @needs_watchpoints
    def test_false_sharing(self):
        self.check_false_sharing("false_sharing", ["--observer"], "--observer")

    @needs_watchpoints
    def test_a_static_program(self):
        self.check_false_sharing("static/false_sharing", [], "statically linked")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_the_matrix(self):
        costs, truth = self.check_false_sharing("false_sharing", ["--observer"], "--observer")
        self.assertLessEqual(harness.matrix_distance(costs, truth), MAX_DISTANCE, costs)

    @needs_watchpoints
    def test_the_command_sees_no_difference(self):
        command = [sys.executable, "-c", SELF_PORTRAIT]
        bare, watched = harness.run(command), self.record(command, ["--observer"])
        self.assertEqual(watched.stdout, bare.stdout)
        self.assertEqual((watched.status, watched.stderr), (bare.status, bare.stderr))
        self.assertEqual(self.report(watched.profile)["exit_status"], 5)

    @needs_watchpoints
    def test_the_briefest_command_is_there(self):
        result = self.record(["/bin/true"], ["--observer"])
        self.assertEqual((result.status, result.stderr), (0, ""))
        report = self.report(result.profile)
        self.assertEqual([(entry["command"], entry["exit_status"]) for entry in report["processes"]], [("/bin/true", 0)])
        self.assertEqual(len(report["threads"]), 1)

    @needs_watchpoints
    def test_it_can_not_be_held(self):
        for command, status, samples in ((["/bin/sh", "-c", "exit 3"], 3, 0),
                                         ([harness.workload("false_sharing"), "--seconds", "2"], 0, 10)):
            result = harness.run([sys.executable, "-c", WITHOUT_PTRACE, harness.CROSSTALK, "record", "-q", "--observer",
                                  "-o", self.path("run.db"), "--", *command])
            self.assertEqual((result.status, result.stderr), (status, ""))
            self.assertGreaterEqual(self.report(self.path("run.db"))["sampling"]["samples"], samples)

    @needs_watchpoints
    def test_what_can_not_be_executed(self):
        data = self.path("data")
        with open(data, "w", encoding="ascii") as file:
            file.write("no program\n")
        for command, status in ((self.path("missing"), 127), (data, 126)):
            self.assert_one_line_error(self.record([command], ["--observer"]), (status,))

    @needs_watchpoints
    def test_children(self):
        command = ["sh", "-c", f"{harness.workload('false_sharing')} --seconds 1 >/dev/null; :"]
        for options, expected in ((["--observer"], 2), (["--observer", "--no-children"], 1)):
            report = self.report(self.record(command, options).profile)
            pids = {entry["pid"] for entry in report["processes"]}
            self.assertEqual(len(pids), expected, report["processes"])

    @needs_watchpoints
    def test_children_that_go_on(self):
        result = self.record(["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!; exit 3"], ["--observer"], timeout=30)
        self.addCleanup(os.kill, int(result.stdout), signal.SIGKILL)
        self.assertEqual(result.status, 3, result.stderr)
        codes = {warning["code"] for warning in self.report(result.profile)["warnings"]}
        self.assertIn("children_left_running", codes)

    @needs_watchpoints
    def test_nothing_is_observed_before_the_delay_is_over(self):
        result = self.record([harness.workload("false_sharing"), "--seconds", "5"], ["--delay", "2"])
        self.assertEqual((result.status, result.stderr), (0, ""))
        with contextlib.closing(sqlite3.connect(f"file:{result.profile}?mode=ro", uri=True)) as database:
            first, last = database.execute("SELECT min(time), max(time) FROM sample").fetchone()
        self.assertGreater(self.report(result.profile)["duration_s"], 4.9)
        self.assertGreater((last - first) * 1e-9, 1)
        self.assertLess((last - first) * 1e-9, 4)

    @needs_watchpoints
    def test_a_delay_that_is_longer_than_the_command(self):
        result = self.record(["/bin/sh", "-c", "exit 4"], ["--delay", "20"], timeout=15)
        self.assertEqual((result.status, result.stderr), (4, ""))
        codes = {warning["code"] for warning in self.report(result.profile)["warnings"]}
        self.assertIn("not_watched", codes)
        self.assertNotIn("children_left_running", codes)


if __name__ == "__main__":
    harness.main()
