# SPDX-License-Identifier: Apache-2.0
"""Loops of numerical programs and the worked programs of the busy-time model's source, which count their own work: what
is found must be that, and the class the one that follows from it on this machine. Needs a timer and no PMU."""

import json
import os

import harness
import test_busy_times

MAX_REGULAR = 0.03    # of operations and bytes a second
MAX_IRREGULAR = 0.15  # if rows differ in length or iterations in their path
IRREGULAR = ("sparse_product", "particle_steps")
TUNED = 0.8           # of elapsed time: a unit that is busy for this part is the loop's limit
CLASS_OF = test_busy_times.CLASS_OF
UNITS = tuple(CLASS_OF)


def row_of(report, loop):
    """The innermost loop of a function; the outermost of one whose loops differ from visit to visit."""
    rows = [row for row in report["loops"] if row["share"] > 0.002 and row["function"]
            and loop["function"] == row["function"].split("::")[-1].split("(")[0]]
    pick = min if loop["function"] in IRREGULAR else max
    depth = pick(row["depth"] for row in rows)
    return max((row for row in rows if row["depth"] == depth), key=lambda row: row["cpu_s"])


class Case(test_busy_times.LimitedLoops):
    def check_work(self, row, loop):
        limit = MAX_IRREGULAR if loop["function"] in IRREGULAR else MAX_REGULAR
        for name in ("flops", "bytes"):
            known = loop[name] * loop["iterations"] / loop["cpu_s"]
            found = row["rates"][name + "_per_s"]
            self.assertIsNotNone(found, f"{name}: {row['rates']['reasons'].get(name + '_per_s')}")
            print(f"{loop['function']} {name}: found {found:.4g}, known {known:.4g}")
            self.assertAlmostEqual(found, known, delta=limit * known)


@harness.verify("rates come from samples")
class CountedLoops(Case):
    def test_work_of_numerical_loops_is_what_they_count(self):
        report, truth = self.observe("numeric_loops", "--seconds", "21")
        for loop in truth["loops"]:
            with self.subTest(loop["function"]):
                self.check_work(row_of(report, loop), loop)


@harness.verify("compares measured times with what the machine can do")
class CalibratedLoops(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.machine = test_busy_times.calibrated(cls)

    def cache(self, level):
        sizes = [cache["bytes"] for cache in self.machine["caches"] if cache["level"] == level]
        return min(sizes) if sizes else None

    def has_long_vectors(self):
        return any(figure["width"] == "avx512" and figure["value"] for figure in self.machine["flops"])

    def observed(self, program, *arguments):
        """With the vectors of either length, as far as the machine has them: rows and truths of loops."""
        for name in self.variants(program):
            report, truth = self.observe(name, *arguments)
            for loop in truth["loops"]:
                if row_of(report, loop)["rates"]["iterations_per_s"] is None:
                    # Its samples are there, but the machine disturbs their clock.
                    self.assertIn("cannot be told", row_of(report, loop)["rates"]["reasons"]["iterations_per_s"])
                    continue
                yield name, row_of(report, loop), loop

    def check_class(self, name, row, loop):
        """How busy a unit is compares what was found with what the calibration reached: other guests of a shared machine
        take from both. So the class is held against the busy times, and those by the loop's own counts."""
        busy = {unit: row["busy"][unit]["of_effective"] for unit in UNITS if row["busy"][unit] is not None}
        print(name, loop["function"], row["class"], busy)
        for unit, amount in (("memory", "memory_bytes"), ("l2", "l2_bytes")):
            if loop[amount] >= 0:
                known = loop[amount] * loop["iterations"] / loop["cpu_s"]
                self.assertIsNotNone(row["busy"][unit], row["busy"]["reasons"].get(unit))
                self.assertAlmostEqual(row["busy"][unit]["per_s"], known, delta=MAX_REGULAR * known, msg=unit)
        most = {unit: row["busy"][unit]["of_effective_most"] for unit in busy}  # if the machine's figures vary
        busiest = max(busy, key=lambda unit: busy[unit] or 0)
        if busy[busiest] < TUNED:
            busiest = max(most, key=lambda unit: most[unit] or 0)
        expected = CLASS_OF[busiest] if most[busiest] >= TUNED else "under_tuned"
        self.assertEqual(row["class"], expected, row["class_evidence"])
        return busiest

    def variants(self, program):
        return [program, program + "_512"][:2 if self.has_long_vectors() else 1]

    def check_work_and_limit(self, unit, program, *arguments):
        """The loop is made so that nothing but the unit can limit it."""
        for name, row, loop in self.observed(program, "--seconds", "3", *arguments):
            with self.subTest(name):
                self.check_work(row, loop)
                self.assertEqual(self.check_class(name, row, loop), unit)
                candidates = [entry["class"] for entry in row["application_classes"]]
                self.assertIn("low_bf_simple", candidates)
                self.assertIn("cache_blocking", candidates)

    def test_a_scaled_copy_in_the_first_level_keeps_it_busy(self):
        for name, row, loop in self.observed("numeric_loops", "--seconds", "3", "--only", "l1_scale"):
            with self.subTest(name):
                self.check_work(row, loop)
                # With shorter vectors, the units that multiply are about as busy.
                self.assertIn(self.check_class(name, row, loop), ("l1d", "fpu"))

    def test_a_stencil_in_the_second_level_keeps_it_busy(self):
        self.check_work_and_limit("l2", "numeric_loops", "--only", "stencil<2>")

    def test_loops_in_the_first_and_second_level_reach_what_those_can_do(self):
        for unit, function in (("l1d", "l1_scale"), ("l2", "stencil<2>")):
            with self.subTest(unit):
                self.check_limit(unit, self.variants("numeric_loops"), function, "--seconds", "3")

    def test_an_unrolled_dot_product_moves_all_its_lines(self):
        for name, row, loop in self.observed("numeric_loops", "--seconds", "3", "--only", "dot_product"):
            with self.subTest(name):
                self.check_class(name, row, loop)

    def test_a_stencil_in_the_third_level_keeps_it_busy(self):
        l2, l3 = self.cache(2), self.cache(3)
        if l3 is None or 1.6 * l2 > 0.7 * l3:
            self.skipTest("what is surely out of L2 is not surely in L3 on this machine")
        kib = int((1.6 * l2 * 0.7 * l3) ** 0.5) // 3 // 4096 * 4
        self.check_work_and_limit("l3", "numeric_loops", "--only", "stencil<3>", "--l3", str(kib))

    def test_steps_that_go_different_ways_may_be_a_complex_body(self):
        report, truth = self.observe("numeric_loops", "--seconds", "4", "--only", "particle_steps")
        row = row_of(report, truth["loops"][0])
        candidates = {entry["class"]: entry["evidence"] for entry in row["application_classes"]}
        self.assertIn("different ways", candidates["low_bf_complex"])

    def test_the_sources_worked_programs_have_the_class_that_its_equation_gives(self):
        far = 1024
        if test_busy_times.available_bytes() < 3 * far << 20 or 2 * far << 20 < 1.6 * (self.cache(3) or 0):
            self.skipTest("too little memory for arrays that no cache holds")
        limits = {}
        for name, row, loop in self.observed("source_programs", "--seconds", "10", "--far", str(far)):
            with self.subTest(name + " " + loop["function"]):
                self.check_work(row, loop)
                limits.setdefault(loop["function"], set()).add(self.check_class(name, row, loop))
                evidence = {entry["class"]: entry["evidence"] for entry in row["application_classes"]}
                if loop["function"] in ("in_memory", "m3_l2_2_f2"):  # 4 and 12 bytes an operation: no machine has as many
                    self.assertIn("no address depends", evidence["high_bf_direct"])
        # Memory moves as much for all but the first, which says what else can be the limit on this machine.
        for name in ("in_memory", "m3_l2_2_f2"):
            self.assertLessEqual(limits.get(name, set()), {"memory"})


if __name__ == "__main__":
    harness.main()
