# SPDX-License-Identifier: Apache-2.0
"""Loops that are limited by one unit each and count their own work: their work and waits must be found, and on
a calibrated machine busy times and classes; without a calibration the report says what to do. Needs a timer and no PMU."""

import json
import os
import tempfile

import harness

MAX_ERROR = 0.03   # of operations and bytes a second
TUNED = 0.85  # of elapsed time that a unit is busy: it limits the loop
LEAST_WAIT = 0.8   # of the time, of loops that do nothing but wait for one thing
FAR_BYTES = 256 << 20  # of each array of the workload that is to be beyond the caches; it chases through twice as much


def row_of(report, function):
    rows = [row for row in report["loops"] if function == (row["function"] or "").split("::")[-1].split("(")[0]]
    return max(rows, key=lambda row: (row["depth"], row["cpu_s"]))


class BusyTimes(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory()
        os.environ["XDG_CONFIG_HOME"] = cls.folder.name
        cls.addClassCleanup(cls.folder.cleanup)

    def test_without_a_calibration_the_report_says_so(self):
        report, _ = self.observe("busy_loops", "--seconds", "1", "--only", "multiply_adds", "--far", "1")
        row = row_of(report, "multiply_adds")
        for name in ("busy", "class", "application_classes"):
            self.assertIsNone(row[name])
        self.assertIsNotNone(row["waits"])
        messages = [warning["message"] for warning in report["warnings"] if warning["code"] == "no_calibration"]
        self.assertEqual(len(messages), 1)
        self.assertIn("crosstalk calibrate", messages[0])

    def test_work_and_waits_are_known_without_one(self):
        report, truth = self.observe("busy_loops", "--seconds", "8", "--far", "64")
        rows = {loop["function"]: row_of(report, loop["function"]) for loop in truth["loops"]}
        for loop in truth["loops"]:
            with self.subTest(loop["function"]):
                row = rows[loop["function"]]
                waits = [value or 0 for name, value in row["waits"].items() if name != "notes"]
                self.assertAlmostEqual(sum(waits), row["cpu_s"], delta=1e-6)
                if loop["function"] == "far_triad":  # its visits may be too brief for a rate
                    continue
                for name in ("flops", "bytes"):
                    known = loop[name] * loop["iterations"] / loop["cpu_s"]
                    found = row["rates"][name + "_per_s"]
                    print(f"{loop['function']} {name}: found {found:.4g}, known {known:.4g}")
                    self.assertAlmostEqual(found, known, delta=MAX_ERROR * known)
        for function, wait in (("chase", "data"), ("far_triad", "data"), ("chained_sum", "fpu"), ("multiply_adds", "fpu")):
            with self.subTest(function + " waits"):
                self.assertGreater(rows[function]["waits"][wait], LEAST_WAIT * rows[function]["cpu_s"])
        with self.subTest("shape"):
            self.assertEqual(rows["multiply_adds"]["shape"]["multiply_add_share"], 1)
            self.assertEqual(rows["chained_sum"]["shape"]["simd_share"], 0)
            self.assertIn("chain", " ".join(remedy["title"] for remedy in rows["chained_sum"]["advice"]))
            self.assertIn("indices", " ".join(remedy["title"] for remedy in rows["chase"]["advice"]))


class CalibratedBusyTimes(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        os.environ["XDG_CONFIG_HOME"] = cls.folder.name
        os.mkdir(os.path.join(cls.folder.name, "crosstalk"))
        calibrated = harness.run([harness.CROSSTALK, "calibrate", "--quick", "-q"])
        assert calibrated.status == 0, calibrated.stderr

    def observed(self, function):
        report, truth = self.observe("busy_loops", "--seconds", "4", "--only", function)
        row = row_of(report, function)
        print(function, row["class"], row["class_evidence"])
        return row, truth["loops"][0]

    def peak(self, **entry):
        """Of the machine file. Other guests of a shared machine may have kept the calibration from reaching the most
        that it can do, or take some of it from the program: what is measured here is compared with nothing else."""
        with open(os.path.join(os.environ["XDG_CONFIG_HOME"], "crosstalk", "machine.json"), encoding="utf-8") as file:
            figures = json.load(file)["flops"]
        return next(figure["value"] for figure in figures if entry.items() <= figure.items())

    def largest_cache(self):
        with open(os.path.join(os.environ["XDG_CONFIG_HOME"], "crosstalk", "machine.json"), encoding="utf-8") as file:
            return max(cache["bytes"] for cache in json.load(file)["caches"])

    def test_multiply_adds_in_registers_keep_the_floating_point_units_busy(self):
        row, loop = self.observed("multiply_adds")
        peak = self.peak(width="avx2", precision="double", operation="fma", scope="one_core")
        if peak is None:
            self.skipTest("the calibration was refused: the machine is too busy")
        known = loop["flops"] * loop["iterations"] / loop["cpu_s"] / peak
        print(f"busy: found {row['busy']['fpu']['of_effective']:.3f}, known {known:.3f}")
        self.assertAlmostEqual(row["busy"]["fpu"]["of_effective"], known, delta=MAX_ERROR * known)
        if known >= TUNED:
            self.assertEqual(row["class"], "in_l2_fpu")
        self.assertEqual(row["busy"]["memory"]["seconds"], 0)
        self.assertIn("matrix_multiplication", [entry["class"] for entry in row["application_classes"]])

    def test_a_triad_beyond_the_caches_keeps_memory_busy(self):
        row, loop = self.observed("far_triad")
        if 3 * FAR_BYTES < 1.5 * self.largest_cache():
            self.skipTest("the caches are as large as the data")
        known = loop["memory_bytes"] * loop["iterations"] / loop["cpu_s"]
        if row["rates"]["iterations_per_s"] is None:
            reason = row["rates"]["reasons"]["iterations_per_s"]
            self.assertIn("can not be told", reason)  # its samples are there, but the machine disturbs their clock
            self.skipTest(reason)
        found = row["busy"]["memory"]
        print(f"memory: found {found['per_s']:.4g} B/s, known {known:.4g}; busy {found['of_effective']:.3f}")
        self.assertAlmostEqual(found["per_s"], known, delta=MAX_ERROR * known)

    def test_a_chain_of_additions_keeps_nothing_busy(self):
        row, _ = self.observed("chained_sum")
        self.assertEqual(row["class"], "under_tuned")
        self.assertGreater(row["waits"]["fpu"], LEAST_WAIT * row["cpu_s"])

    def test_a_chase_through_pointers_waits_for_memory(self):
        row, _ = self.observed("chase")
        # Where the last cache could hold much of the data, it is said to have had its part.
        far = ["memory", "l3"] if self.largest_cache() > 2 * FAR_BYTES / 8 else ["memory"]
        self.assertGreater(sum(row["waits"][level] or 0 for level in far), LEAST_WAIT * row["cpu_s"])
        self.assertTrue(all(row["busy"][unit]["of_effective"] < 0.1 for unit in ("memory", "l3", "l2", "l1d", "fpu")))
        self.assertEqual(row["class"], "under_tuned")
        self.assertEqual([entry["class"] for entry in row["application_classes"]], ["high_bf_indirect"])


if __name__ == "__main__":
    harness.main()
