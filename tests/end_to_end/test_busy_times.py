# SPDX-License-Identifier: Apache-2.0
"""Loops that are limited by one unit each and count their own work: their work and waits must be found, and on
a calibrated machine busy times and classes; without a calibration the report says what to do. Needs a timer and no PMU."""

import contextlib
import fcntl
import json
import os
import shutil
import sqlite3
import tempfile
import time

import harness

MAX_ERROR = 0.03   # of operations and bytes a second
TUNED = 0.85  # of elapsed time that a unit is busy: it limits the loop
MOST_BUSY = 1.05
MOST_UNSTEADY = 0.025  # standard error of what the unit reached beside the loop, whose own is about as large
CLASS_OF = {"memory": "in_memory", "l3": "in_l3", "l2": "in_l2", "l1d": "in_l1d", "fpu": "in_l2_fpu"}
LEAST_WAIT = 0.8   # of the time, of loops that do nothing but wait for one thing
MAX_AGE_S = 3600  # of the calibration that tests share
FAR_BYTES = 256 << 20  # of each array of the workload that is to be beyond the caches; it chases through twice as much


def row_of(report, function):
    rows = [row for row in report["loops"] if function == (row["function"] or "").split("::")[-1].split("(")[0]]
    return max(rows, key=lambda row: (row["depth"], row["cpu_s"]))


def calibrated(case):
    """This machine is calibrated for the tests of a class; what the machine file says. One calibration serves all tests of
    a run, which are processes of their own: it takes half a minute, and two at once would disturb each other."""
    folder = tempfile.TemporaryDirectory()
    case.addClassCleanup(folder.cleanup)
    os.environ["XDG_CONFIG_HOME"] = folder.name
    own = os.path.join(folder.name, "crosstalk", "machine.json")
    os.mkdir(os.path.dirname(own))
    common = os.path.join(os.environ["CROSSTALK_WORKLOADS"], "calibration.json")
    with open(common + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_recent(common):
            result = harness.run([harness.CROSSTALK, "calibrate", "--quick", "-q", "-o", common])
            assert result.status == 0, result.stderr
        shutil.copy(common, own)
    return machine_file()


def is_recent(file):
    return os.path.exists(file) and os.path.getmtime(file) > max(time.time() - MAX_AGE_S,
                                                                  os.path.getmtime(harness.CROSSTALK))


def machine_file():
    with open(os.path.join(os.environ["XDG_CONFIG_HOME"], "crosstalk", "machine.json"), encoding="utf-8") as file:
        return json.load(file)


def available_bytes():
    with open("/proc/meminfo", encoding="utf-8") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable"))


def figures_of(machine, peak):
    """Returns the entries of a machine file for the unit that was measured beside a loop."""
    if peak["unit"] == "fpu":
        wanted = {"width": peak["width"], "precision": "double", "operation": "fma"}
        return [figure for figure in machine["flops"] if wanted.items() <= figure.items()]
    wanted = {"level": peak["unit"], "traffic": peak["traffic"]}
    return [figure for figure in machine["bandwidths"] if wanted.items() <= figure.items()]


def set_peak(profile, peak):
    """Sets the profile's machine to the peak measured while the program ran: other guests of a shared machine took
    another part of it during calibration. Returns the calibrated peak by scope."""
    with contextlib.closing(sqlite3.connect(profile)) as database, database:
        machine = json.loads(database.execute("SELECT value FROM meta WHERE key = 'machine'").fetchone()[0])
        before = {}
        for figure in figures_of(machine, peak):
            before[figure["scope"]] = figure["value"]
            cores = len({processor["core"] for processor in machine["processors"]})
            per_s = peak["per_s"] * (1 if figure["scope"] == "one_core" else cores)
            # All that goes with the value: it may have been refused, and what the file says of it must not contradict it.
            figure.update(value=per_s, median=per_s, spread=0, tries=1, disturbed=0, theoretical=None, refused="")
        database.execute("UPDATE meta SET value = ? WHERE key = 'machine'", [json.dumps(machine)])
    return before


class LimitedLoops(harness.Case):
    """Loops that are made so that nothing but one unit can limit them, on a calibrated machine."""

    def check_limit(self, unit, variants, function, *arguments):
        """`variants`: the program with vectors of one length or another; the best of them reaches what the unit can do."""
        busy, classes = {}, {}
        for program in variants:
            result = self.record([harness.workload(program), "--only", function, "--peak", "1", *arguments])
            self.assertEqual(result.status, 0, result.stderr)
            peak = result.truth["peak"]
            if peak["error"] > MOST_UNSTEADY:
                self.skipTest(f"what the machine can do changes too much meanwhile: +-{100 * peak['error']:.1f} % of the mean")
            before = set_peak(result.profile, peak)
            report = self.report(result.profile)
            row = row_of(report, function)
            self.assertIsNotNone(row["busy"], report["warnings"])
            self.assertIsNotNone(row["busy"][unit], row["busy"]["reasons"])
            busy[program], classes[program] = row["busy"][unit]["of_effective"], row["class"]
            print(f"{program} {function}: {unit} busy for {busy[program]:.3f} of the time at {peak['per_s']:.4g}/s "
                  f"({peak['traffic']} {peak['width']}); calibrated: {before}; {row['class']}, {row['class_evidence']}")
            self.assertLess(busy[program], MOST_BUSY)
        best = max(busy, key=busy.get)
        self.assertGreater(busy[best], TUNED)
        self.assertEqual(classes[best], CLASS_OF[unit], busy)


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

    @harness.verify("rates come from samples")
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
                self.assertAlmostEqual(row["performance"]["flops"], row["rates"]["flops_per_s"] * row["cpu_s"],
                                       delta=1e-6 * row["performance"]["flops"])
                self.assertLessEqual(row["performance"]["elapsed_s"], row["cpu_s"])
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
            kinds = rows["multiply_adds"]["performance"]["flops_by_kind"]
            self.assertEqual([kind["operation"] for kind in kinds], ["fma"])
            self.assertAlmostEqual(kinds[0]["per_s"], rows["multiply_adds"]["rates"]["flops_per_s"], delta=1)
            kinds = rows["chained_sum"]["performance"]["flops_by_kind"]
            self.assertEqual([(kind["width"], kind["operation"]) for kind in kinds], [("scalar", "add"), ("scalar", "mul")])
            self.assertAlmostEqual(kinds[0]["per_s"], kinds[1]["per_s"], delta=1)
            self.assertIn("chain", " ".join(remedy["title"] for remedy in rows["chained_sum"]["advice"]))
            self.assertIn("indices", " ".join(remedy["title"] for remedy in rows["chase"]["advice"]))


@harness.verify("compares measured times with what the machine can do")
class CalibratedBusyTimes(LimitedLoops):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        calibrated(cls)

    def observed(self, function, *arguments):
        report, truth = self.observe("busy_loops", "--seconds", "4", "--only", function, *arguments)
        row = row_of(report, function)
        print(function, row["class"], row["class_evidence"])
        return row, truth["loops"][0]

    def peak(self, **entry):
        """Returns the peak in the machine file. Other guests of a shared machine may have kept the calibration from
        reaching the peak, or take some of it from the program: this figure is compared with nothing else."""
        return next(figure["value"] for figure in machine_file()["flops"] if entry.items() <= figure.items())

    def largest_cache(self):
        return max(cache["bytes"] for cache in machine_file()["caches"])

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

    def test_multiply_adds_in_registers_reach_what_the_units_can_do(self):
        self.check_limit("fpu", ["busy_loops"], "multiply_adds", "--seconds", "3")

    def test_a_triad_beyond_the_caches_reaches_what_memory_can_do(self):
        far = max(FAR_BYTES, self.largest_cache())  # of each of three arrays; twice as much is chased through
        if available_bytes() < 9 * far:  # and four times the caches are measured beside it
            self.skipTest("too little memory for arrays that no cache holds")
        self.check_limit("memory", ["busy_loops"], "far_triad", "--seconds", "8", "--visit", "0.3", "--far", str(far >> 20))

    def test_a_triad_in_the_second_level_reaches_what_that_can_do(self):
        self.check_limit("l2", ["busy_loops"], "near_triad", "--seconds", "3")

    def test_a_triad_beyond_the_caches_keeps_memory_busy(self):
        # In a visit of a second many samples lie, also where a busy machine delays most of them.
        row, loop = self.observed("far_triad", "--visit", "1")
        if 3 * FAR_BYTES < 1.5 * self.largest_cache():
            self.skipTest("the caches are as large as the data")
        known = loop["memory_bytes"] * loop["iterations"] / loop["cpu_s"]
        if row["rates"]["iterations_per_s"] is None:
            reason = row["rates"]["reasons"]["iterations_per_s"]
            self.assertIn("cannot be told", reason)  # its samples are there, but the machine disturbs their clock
            self.skipTest(reason)
        found = row["busy"]["memory"]
        print(f"memory: found {found['per_s']:.4g} B/s, known {known:.4g}; busy {found['of_effective']:.3f}")
        self.assertAlmostEqual(found["per_s"], known, delta=MAX_ERROR * known)
        self.assertEqual([entry["class"] for entry in row["application_classes"]], ["high_bf_direct"])

    def test_a_chain_of_additions_keeps_nothing_busy(self):
        row, _ = self.observed("chained_sum")
        self.assertEqual(row["class"], "under_tuned")
        self.assertGreater(row["waits"]["fpu"], LEAST_WAIT * row["cpu_s"])

    def test_a_chase_through_pointers_waits_for_memory(self):
        row, _ = self.observed("chase")
        # If the last cache could hold much of the data, it also gets a part of the waits.
        far = ["memory", "l3"] if self.largest_cache() > 2 * FAR_BYTES / 8 else ["memory"]
        if any(figure["value"] is None for figure in machine_file()["latencies"]):
            far.append("data")  # from which level is not told by latencies that a busy machine has spoiled
        self.assertGreater(sum(row["waits"][level] or 0 for level in far), LEAST_WAIT * row["cpu_s"])
        self.assertTrue(all(row["busy"][unit]["of_effective"] < 0.1 for unit in ("memory", "l3", "l2", "l1d", "fpu")))
        self.assertEqual(row["class"], "under_tuned")
        self.assertEqual([entry["class"] for entry in row["application_classes"]], ["high_bf_indirect"])


if __name__ == "__main__":
    harness.main()
