# SPDX-License-Identifier: Apache-2.0
"""Programs that mark regions and time them: what a report says of them must be what their own clocks say. Needs no PMU."""

import subprocess

import harness
from harness import workload

# The program's clocks are read around the marks, and it may lose its processor in between.
MAX_OFF_S = 0.03
MAX_OFF = 0.02


def by_path(report):
    return {region["path"]: region for region in report["regions"]}


class Regions(harness.Case):
    @harness.verify("CPU times come from samples")
    def test_times_are_those_of_the_programs_own_clocks(self):
        report, truth = self.observe("regions", "--rounds", "60", options=["--waits", "--event", "task-clock"])
        regions = by_path(report)
        self.assertEqual(set(regions), {"step", "step > compute", "step > sleep", "step > locked", "ticks", "ticks > tick"})
        index = {thread["tid"]: thread["index"] for thread in report["threads"]}
        cpu_of = {}
        for thread in truth["threads"]:
            for path, known in thread["regions"].items():
                found = next(row for row in regions[path]["threads"] if row["thread"] == index[thread["tid"]])
                self.assertEqual(found["entries"], known["entries"], path)
                if path != "ticks > tick":  # which the program does not time
                    self.assertAlmostEqual(found["elapsed_s"], known["elapsed_s"],
                                           delta=MAX_OFF_S + MAX_OFF * known["elapsed_s"], msg=path)
                waits = {name: value for name, value in found["waits"].items() if name != "notes"}
                self.assertAlmostEqual(sum(value or 0 for value in waits.values()), found["elapsed_s"], delta=1e-6)
                cpu_of[path] = cpu_of.get(path, 0) + known["cpu_s"]
        for path in ("step", "step > compute", "step > locked"):
            low, high = regions[path]["cpu_ci95"]
            room = 0.1 * cpu_of[path]  # beyond what sampling alone lets it be off by
            print(f"{path}: CPU time {regions[path]['cpu_s']:.3f} s ({low:.3f}..{high:.3f}), known {cpu_of[path]:.3f} s")
            self.assertGreater(cpu_of[path], low - room)
            self.assertLess(cpu_of[path], high + room)
        sleep = regions["step > sleep"]
        self.assertGreater(sleep["waits"]["blocked"], 0.8 * sleep["elapsed_s"])
        self.assertGreater(regions["step > locked"]["waits"]["lock"], 0)
        # The first thread computes twice as long as the two others: of 2, 1, 1 the mean is two thirds of the greatest.
        self.assertAlmostEqual(regions["step > compute"]["imbalance"], 1 / 3, delta=0.15)

    def test_marks_that_do_not_match_harm_no_others(self):
        report, truth = self.observe("regions", "--do", "misuse")
        regions = by_path(report)
        known = truth["threads"][0]["regions"]["after"]
        self.assertAlmostEqual(regions["after"]["elapsed_s"], known["elapsed_s"], delta=MAX_OFF_S)
        self.assertNotIn("left > after", set(regions), "a region that was jumped out of is over")
        self.assertGreater(regions["left"]["elapsed_s"], 0.015)
        self.assertLess(regions["left"]["elapsed_s"], regions["after"]["elapsed_s"], "it was over before the other began")
        self.assertEqual(max(path.count(">") for path in regions), 31, "32 deep")
        self.assertIn("in the child", set(regions), "a child of fork begins anew")
        self.assertNotIn("in the parent > in the child", set(regions))
        self.assertIn("(unnamed)", set(regions))
        self.assertIn("(unnamed) > open at the end", set(regions))
        codes = {warning["code"] for warning in report["warnings"]}
        self.assertLessEqual({"regions_without_room", "unmatched_regions"}, codes)

    def test_forms(self):
        profile = self.path("r.db")
        harness.run([harness.CROSSTALK, "record", "-q", "-o", profile, "--", workload("regions"), "--rounds", "20"])
        text = harness.run([harness.CROSSTALK, "report", "--view", "regions", profile]).stdout
        self.assertIn("Regions", text)
        self.assertIn("    compute", text)
        csv = harness.run([harness.CROSSTALK, "report", "--view", "regions", "--format", "csv", profile]).stdout
        header, *rows = csv.splitlines()
        self.assertTrue(header.startswith("path,thread,entries,elapsed_s"))
        self.assertEqual(len(rows), 6 * 3)
        whole = self.report(profile)
        self.assertEqual(len(whole["regions"]), 6)

    def test_without_marks_and_from_outside_it_is_said(self):
        profile = self.path("none.db")
        harness.run([harness.CROSSTALK, "record", "-q", "-o", profile, "--", workload("private_only"), "--seconds", "0.3"])
        text = harness.run([harness.CROSSTALK, "report", "--view", "regions", profile]).stdout
        self.assertIn("No observed thread marked a region", text)

    def test_who_is_killed_was_in_its_region_until_then(self):
        profile = self.path("killed.db")
        with subprocess.Popen([harness.CROSSTALK, "record", "-q", "-o", profile, "--", "timeout", "-s", "KILL", "1.5",
                               workload("regions"), "--rounds", "100000"], stdout=subprocess.DEVNULL) as recorder:
            recorder.wait()
        regions = by_path(self.report(profile))
        self.assertGreater(regions["step"]["elapsed_s"], 3.0)


if __name__ == "__main__":
    harness.main()
