# SPDX-License-Identifier: Apache-2.0
"""Loops that time themselves: their shares, places and nesting must be right. Needs a timer and nothing else."""

import os

import harness

MAX_ERROR = 0.03  # of all CPU time


class Recorded(harness.Case):
    """One recording for all that is asked of it."""
    recordings = {}

    def observe_loops(self, *arguments):
        if arguments not in self.recordings:
            self.recordings[arguments] = self.observe("loops", *arguments)
        report, truth = self.recordings[arguments]
        outermost = {}
        for row in report["loops"]:
            if row["depth"] == 1 and row["function"]:
                name = row["function"].split("(anonymous namespace)::")[-1].split("(")[0].rsplit("::", 1)[-1]
                outermost.setdefault(name, []).append(row)
        return report, truth, outermost


@harness.verify("shares come from samples")
class Shares(Recorded):
    def check_shares(self, *arguments):
        report, truth, outermost = self.observe_loops(*arguments)
        self.assertTrue(truth["loops"])
        for loop in truth["loops"]:
            rows = outermost.get(loop["function"], [])
            found = sum(row["cpu_s"] for row in rows) / harness.cpu_seconds(report)
            known = loop["cpu_s"] / truth["cpu_s"]
            print(f"{loop['function']}: found {found:.4f}, known {known:.4f}")
            self.assertAlmostEqual(found, known, delta=MAX_ERROR, msg=loop["function"])

    def test_shares(self):
        self.check_shares("--threads", "2", "--seconds", "4")

    def test_shares_of_one_thread(self):
        self.check_shares("--threads", "1", "--seconds", "4")


@harness.together
class Loops(Recorded):
    def test_places(self):
        _, truth, outermost = self.observe_loops("--threads", "2", "--seconds", "4")
        for loop in truth["loops"]:
            rows = outermost.get(loop["function"], [])
            self.assertTrue(rows, loop["function"])
            row = max(rows, key=lambda each: each["cpu_s"])
            self.assertEqual(os.path.basename(row["file"]), truth["file"])
            self.assertLessEqual(abs(row["line_begin"] - loop["line_begin"]), 1, row)
            self.assertLessEqual(abs(row["line_end"] - loop["line_end"]), 2, row)

    def test_nesting(self):
        report, _, outermost = self.observe_loops("--threads", "2", "--seconds", "4")
        by_id = {row["id"]: row for row in report["loops"]}
        inner = max((row for row in report["loops"] if "multiply" in (row["function"] or "")),
                    key=lambda row: row["depth"])
        self.assertEqual(inner["depth"], 3)
        self.assertEqual(by_id[inner["parent"]]["depth"], 2)
        self.assertEqual(by_id[by_id[inner["parent"]]["parent"]]["id"], outermost["multiply"][0]["id"])

    def test_self_times_add_up(self):
        report, _, _ = self.observe_loops("--threads", "2", "--seconds", "4")
        self.assertLessEqual(sum(row["self_s"] for row in report["loops"]), harness.cpu_seconds(report) * 1.001)
        self.assertTrue(report["loops"])
        for row in report["loops"]:
            self.assertLessEqual(row["self_s"], row["cpu_s"] + 1e-9)

    def test_frames_are_known(self):
        report, _, _ = self.observe_loops("--threads", "2", "--seconds", "4")
        self.assertLess(report["sampling"]["unknown_frames"], 0.01)


if __name__ == "__main__":
    harness.main()
