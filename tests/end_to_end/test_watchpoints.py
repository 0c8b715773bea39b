# SPDX-License-Identifier: Apache-2.0
"""Debug registers that never fire: lines are probed instead, inside of a target and from outside, and every report says
so. Machines have them for real, or by the switch that leads watchpoints to where nobody accesses anything (docs/testing.md)."""

import json
import os
import subprocess
import unittest

import harness
from harness import needs_events, needs_watchpoints

DEAD = {**os.environ, harness.DEAD_SWITCH: "1"}
DEAD_LATER = {**os.environ, harness.DEAD_SWITCH: "later"}
BLIND = "Crosstalk could not watch memory here"
SHARING = ("false_sharing", "--seconds", "2")
HOLDS, UNDECIDED = 1, 2


class DeadWatchpoints(harness.Case):
    """With the switch, so that it is the same everywhere."""

    def check_probed(self, profile):
        """Partners are found where they run side by side for long enough, so no cell is asked for here."""
        report = self.report(profile)
        sampling = report["sampling"]
        self.assertEqual((sampling["method"], sampling["traps"]), ("probe", 0))
        self.assertEqual(sampling["watchpoints"]["self_test"], "never")
        self.assertGreater(sampling["armed"], 10)
        findings = report["findings"]
        self.assertFalse([f for f in findings if f["sentence"].startswith(BLIND)], findings)
        self.assertEqual([f["kind"] for f in findings].count("blind"), 1, findings)
        self.assertIsNone(report["communication"]["unseen"])
        undetected = report["communication"]["undetected"]
        self.assertEqual(undetected["evidence"], "probed", undetected)
        self.assertIn("silent_stores", [blind["code"] for blind in undetected["cannot_see"]])
        self.assertIsNotNone(undetected["at_most_s"])
        self.assertIn("lines_probed", {warning["code"] for warning in report["warnings"]})
        for cell in report["communication"]["cells"]:
            self.assertIsNone(cell["false"]["count"])
            self.assertEqual(cell["true"]["cost_s"] or 0, 0, "each thread stores to a word of its own")

    def recorded(self, *options, output="run.db", program=SHARING):
        profile = self.path(output)
        result = harness.run([harness.CROSSTALK, "record", "-o", profile, *options, "--", harness.workload(program[0]),
                              *program[1:]], env=DEAD)
        self.assertEqual(result.status, 0, result.stderr)
        return profile, [line for line in result.stderr.splitlines() if "watchpoints" in line]

    @needs_events
    def test_lines_of_a_command_are_probed(self):
        profile, said = self.recorded()
        self.assertEqual(len(said), 1, said)
        self.assertIn("lines are read twice", said[0])
        self.check_probed(profile)

    @needs_events
    def test_the_method_that_was_asked_for_is_taken_or_refused(self):
        dead, said = self.recorded("--method", "probe")
        self.assertEqual(said, [], "it was asked for")
        self.assertIn("--method probe", self.report(dead)["sampling"]["method_choice"])
        result = harness.run([harness.CROSSTALK, "record", "-o", self.path("refused.db"), "--method", "watch", "--", "true"], env=DEAD)
        self.assertEqual((result.status, len(result.stderr.splitlines())), (125, 1), result.stderr)
        self.assertIn("--method watch: watchpoints can be set, but", result.stderr)

    @needs_events
    def test_lines_are_probed_from_outside(self):
        profile, said = self.recorded("--observer")
        self.assertEqual(len(said), 1, said)
        self.assertIn("lines are read twice", said[0])
        self.check_probed(profile)

    @needs_events
    def test_so_it_is_of_a_running_process(self):
        for name, how in (("outside", []), ("inside", ["--inject"])):
            with self.subTest(name):
                process = subprocess.Popen([harness.workload(SHARING[0]), "--seconds", "6"], stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                try:
                    profile = self.path(f"{name}.db")
                    result = harness.run([harness.CROSSTALK, "record", "-q", "-o", profile, "-p", str(process.pid), *how,
                                          "--duration", "2"], env=DEAD)
                    if result.status != 0 and "ptrace" in result.stderr:
                        self.skipTest(result.stderr)
                    self.assertEqual(result.status, 0, result.stderr)
                finally:
                    process.kill()
                    process.wait()
                self.check_probed(profile)

    @needs_events
    def test_a_gate_is_undecided(self):
        profile, _ = self.recorded("--observer", program=("private_only", "--seconds", "2"))  # nothing to be seen
        for condition in ("change(cost_s) > 2 %", "cost_s > 2 %", "cost_s of any object > 2 %"):
            result = harness.run([harness.CROSSTALK, "diff", "--fail-if", condition, profile, profile])
            self.assertEqual(result.status, UNDECIDED, result.stderr)
            self.assertIn("undecided: " + condition, result.stderr)
            self.assertIn("may have missed stores of an unchanged value", result.stderr)
        by_time = harness.run([harness.CROSSTALK, "diff", "--fail-if", "cpu_s > 0", profile, profile])
        self.assertEqual(by_time.status, HOLDS, by_time.stderr)

    @needs_events
    def test_the_doctor_says_so(self):
        found = harness.run([harness.CROSSTALK, "doctor", "--format", "json"], env=DEAD)
        self.assertEqual(found.status, 0, found.stderr)
        diagnosis = json.loads(found.stdout)
        self.assertEqual(diagnosis["method"], "probe")
        self.assertEqual(diagnosis["watchpoints"]["self_test"], "never")
        self.assertEqual(set(diagnosis["watchpoints"]["silent"]),
                         {"store", "load", "locked_update", "other_thread", "sigtrap"})
        facility = next(f for f in diagnosis["facilities"] if f["name"] == "watchpoints")
        self.assertFalse(facility["available"])
        self.assertEqual(facility["found"], diagnosis["watchpoints"]["why"])


class ThisMachine(harness.Case):
    """Without the switch."""

    def self_test(self):
        found = harness.run([harness.CROSSTALK, "doctor", "--format", "json"])
        return json.loads(found.stdout)["watchpoints"]

    def test_the_self_test_agrees_with_a_look_of_our_own(self):
        reason = harness.why_no_watchpoints()
        found = self.self_test()
        print(found, reason)
        if reason is None:
            self.assertIn(found["self_test"], ("fires", "partly"), found)
            self.assertGreater(found["registers"], 0)
        elif harness.watchpoints_are_silent():
            self.assertEqual(found["self_test"], "never", found)
        else:
            self.assertEqual(found["self_test"], "not_opened", found)

    @needs_events
    def test_dead_registers_of_the_machine_itself_are_told(self):
        if not harness.watchpoints_are_silent():
            self.skipTest("watchpoints fire here, or cannot be opened")
        result = self.record([harness.workload(SHARING[0]), *SHARING[1:]])
        self.assertEqual(result.status, 0, result.stderr)
        DeadWatchpoints.check_probed(self, result.profile)

    @needs_watchpoints
    def test_watchpoints_that_die_after_their_test_are_found_late(self):
        result = self.record([harness.workload(SHARING[0]), "--seconds", "8"], ["--period", "1ms", "--budget", "20"],
                             env=DEAD_LATER)
        self.assertEqual(result.status, 0, result.stderr)
        report = self.report(result.profile)
        self.assertEqual(report["sampling"]["traps"], 0)
        if report["sampling"]["armed"] < 400:
            self.skipTest(f"only {report['sampling']['armed']} lines could be watched on this busy machine")
        blind = next(f for f in report["findings"] if f["kind"] not in ("loop", "function", "kernel"))
        self.assertTrue(blind["sentence"].startswith(BLIND), report["findings"])
        self.assertIn("watchpoints_silent", {warning["code"] for warning in report["warnings"]})
        self.assertIsNone(report["communication"]["unseen"])
        gate = harness.run([harness.CROSSTALK, "diff", "--fail-if", "cost_s > 2 %", result.profile, result.profile])
        self.assertEqual(gate.status, UNDECIDED, gate.stderr)

    @needs_watchpoints
    def test_where_they_fire_probes_are_taken_if_asked_for(self):
        result = self.record([harness.workload(SHARING[0]), *SHARING[1:]], ["--method", "probe"])
        self.assertEqual(result.status, 0, result.stderr)
        self.assertNotIn("watchpoints", result.stderr)
        report = self.report(result.profile)
        sampling = report["sampling"]
        self.assertEqual((sampling["method"], sampling["method_choice"], sampling["partner"], sampling["traps"]),
                         ("probe", "--method probe asked for it", None, 0))
        self.assertGreater(sampling["armed"], 10)
        self.assertNotIn("lines_probed", {warning["code"] for warning in report["warnings"]})
        for cell in report["communication"]["cells"]:
            self.assertEqual(cell["true"]["cost_s"] or 0, 0, "each thread stores to a word of its own")

    @needs_watchpoints
    def test_where_they_fire_nothing_of_that_is_said(self):
        result = self.record([harness.workload(SHARING[0]), *SHARING[1:]])
        report = self.report(result.profile)
        self.assertGreater(report["sampling"]["traps"], 0)
        self.assertEqual((report["sampling"]["method"], report["sampling"]["partner"]), ("watch", "auto"))
        self.assertFalse([f for f in report["findings"] if f["sentence"].startswith(BLIND)])
        self.assertFalse({w["code"] for w in report["warnings"]} & {"watchpoints_unavailable", "watchpoints_silent"})


if __name__ == "__main__":
    harness.main()
