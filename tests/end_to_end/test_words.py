# SPDX-License-Identifier: Apache-2.0
"""First sentences of reports, and their words for unknown figures; lines fit, and numbers agree."""

import os
import re
import signal
import subprocess
import sys

import harness
from harness import CROSSTALK, needs_events

COLUMNS = 80
NOT_UTF8 = ("import ctypes, time; ctypes.CDLL(None).prctl(15, b'na\\xc3'); end = time.monotonic() + 0.5\n"
            "while time.monotonic() < end: pass")


class Words(harness.Case):
    def recorded(self, command, *options, output="run.db"):
        """Not quietly: what the recorder says is in stderr."""
        profile = self.path(output)
        result = harness.run([CROSSTALK, "record", "-o", profile, *options, "--", *command])
        self.assertEqual(result.status, 0, result.stderr)
        result.profile = profile
        return result

    def text(self, profile, *options):
        result = harness.run([CROSSTALK, "report", "--no-pager", *options, profile],
                             env={**os.environ, "COLUMNS": str(COLUMNS)})
        self.assertEqual(result.status, 0, result.stderr)
        return result.stdout

    def test_the_first_finding_is_the_system_call(self):
        profile = self.recorded([harness.workload("system_calls"), "--seconds", "2"]).profile
        report = self.report(profile)
        first = report["findings"][0]
        self.assertRegex(first["sentence"], r"^The system call read\(\) takes \d+ % of the CPU time, called by .*pump\(")
        self.assertEqual(first["kind"], "kernel")
        calls = {row["name"]: row for row in report["kernel"]}
        self.assertGreater(calls["read"]["share"], 0.5)
        self.assertIn("pump", calls["read"]["callers"][0]["function"])
        for view in ("loops", "busy"):
            self.assertNotIn("inlined (", self.text(profile, "--view", view), "a system call cannot be inlined")

    def test_no_finding_is_of_the_collector(self):
        report = self.report(self.recorded([harness.workload("allocating"), "churn", "1", "0", "40"]).profile)
        own = [row["function"] for part in ("functions", "loops") for row in report[part]
               if "libcrosstalk" in (row["module"] or "")]
        self.assertEqual(own, [])
        self.assertNotIn("crosstalk::in_target", report["findings"][0]["sentence"])

    def test_the_recorder_and_the_report_say_the_same_overhead(self):
        result = self.recorded([harness.workload("allocating"), "churn", "1", "0", "40"])
        said = float(re.search(r"overhead ([\d.]+) %", result.stderr)[1])
        self.assertAlmostEqual(said, 100 * self.report(result.profile)["sampling"]["overhead"]["fraction"], delta=0.11)

    @needs_events
    def test_a_confined_program_is_to_be_recorded_from_outside(self):
        command = [harness.workload("system_calls"), "--seconds", "1", "--confine", "1"]
        result = self.recorded(command)
        last = result.stderr.strip().splitlines()[-1]
        self.assertRegex(last, r"^crosstalk: (no samples|only \d+ samples?): the program confines itself with seccomp")
        self.assertIn("--observer", last)
        text = self.text(result.profile)
        self.assertIn("--observer", text)
        self.assertNotIn("for longer", text)
        report = self.report(result.profile)
        if not any(thread["samples"] for thread in report["threads"]):
            self.assertIsNone(report["cpu_s"])
            self.assertIn("CPU time not known", text.splitlines()[1])
        outside = self.recorded(command, "--observer", output="outside.db")
        self.assertNotIn("is watched from outside, with", outside.stderr, "who asked for it knows")
        seen = self.report(outside.profile)
        self.assertGreater(seen["sampling"]["samples"], 0.2 * seen["cpu_s"] / 0.004)

    def test_a_short_program_is_said_to_be_short(self):
        result = self.recorded(["/bin/true"])
        self.assertRegex(result.stderr.strip().splitlines()[-1],
                         r"^crosstalk: (no samples|only \d+ samples?): .*crosstalk samples every 4 ms of it\. .*--period")

    @needs_events
    def test_a_stopped_process_is_said_to_be_stopped(self):
        with subprocess.Popen(["sleep", "1000"]) as sleeper:
            os.kill(sleeper.pid, signal.SIGSTOP)
            result = harness.run([CROSSTALK, "record", "-o", self.path("stopped.db"), "-p", str(sleeper.pid), "--observer",
                                  "--duration", "0.2"])
            sleeper.kill()
        self.assertEqual(result.status, 0, result.stderr)
        self.assertIn(f"process {sleeper.pid} is stopped; kill -CONT", result.stderr.strip().splitlines()[-1])

    def test_waiting_for_a_processor_is_no_sleep(self):
        command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), harness.workload("private_only"), "--threads", "3",
                   "--seconds", "2"]
        report = self.report(self.recorded(command).profile)
        working = [thread["waits"] for thread in report["threads"]
                   if thread["samples"] > 20 and thread["waits"] and thread["waits"]["runnable"] is not None]
        self.assertTrue(working, report["threads"])
        for waits in working:
            self.assertLess(waits["blocked"], waits["runnable"], waits)

    def test_lines_fit_the_terminal(self):
        profile = self.recorded([harness.workload("loops"), "--seconds", "1"]).profile
        for view in ("summary", "matrix", "lines", "objects", "loops", "busy", "threads", "regions", "memory"):
            with self.subTest(view):
                for line in self.text(profile, "--view", view).splitlines():
                    self.assertLessEqual(len(line), COLUMNS, line)
                    self.assertFalse("not known: " in line and "…" in line, line)

    def test_csv_is_utf8(self):
        profile = self.recorded([sys.executable, "-c", NOT_UTF8]).profile
        for view in ("threads", "summary", "matrix", "loops"):
            result = subprocess.run([CROSSTALK, "report", profile, "--view", view, "--format", "csv"], check=True,
                                    capture_output=True)
            text = result.stdout.decode("utf-8")
            if view == "threads":
                self.assertIn("na\ufffd", text)

    def test_a_name_that_is_nowhere_fails_a_gate(self):
        profile = self.recorded([harness.workload("private_only"), "--seconds", "1"]).profile
        conditions = ["cpu_s of function ad_up > 1 s", "cpu_s of thread nobody > 1 s"]
        if harness.why_no_watchpoints() is None:  # else no cost is judged
            conditions += ["cost_s of object countres > 1 %", "cost_s of line nowhere.cpp:1 > 1 %"]
        for condition in conditions:
            result = harness.run([CROSSTALK, "diff", "--fail-if", condition, profile, profile])
            self.assertEqual(result.status, 2, condition)
            self.assertIn("neither profile has a '", result.stderr)
        gate = harness.run([CROSSTALK, "diff", "--fail-if", "cpu_s of function *main* > 1 ms", profile, profile])
        self.assertEqual(gate.status, 1, gate.stderr)


if __name__ == "__main__":
    harness.main()
