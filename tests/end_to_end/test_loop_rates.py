# SPDX-License-Identifier: Apache-2.0
"""Loops that count their own iterations: rates must be those, or absent with a reason. Needs a timer and no PMU."""

import json
import shutil
import subprocess

import harness

MAX_ERROR = 0.02       # of iterations a second
MAX_WORK_ERROR = 0.05  # of flops and bytes a second
LEAST_SHAPES = 10      # of loops whose iterations are within MAX_ERROR; the others are within what their interval allows
WIDEST = 0.06          # half of such an interval
WIDEST_WALKED = 0.08   # the same of what iterations that differ were found to do, by some hundred walks
WALKED = ("branches", "with_calls")  # the loop's own code does not fix their work an iteration

# A triad of so few elements that a visit of its loop lasts a microsecond. It tells its own CPU time.
TRIAD = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
__attribute__((noinline)) void triad(double* a, const double* b, const double* c, double s, long n) {
  for (long i = 0; i < n; i++) a[i] = b[i] + s * c[i];
}
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}
int main(int argc, char** argv) {
  long n = atol(argv[1]), calls = atol(argv[2]);
  double *a = calloc(n, 8), *b = calloc(n, 8), *c = calloc(n, 8), begin = now();
  for (long i = 0; i < calls; i++) triad(a, b, c, 1.5, n);
  printf("{\\"flops\\": %g, \\"cpu_s\\": %g}\\n", 2.0 * n * calls, now() - begin);
  return argc > 3 && a[1] > 0;
}
"""


def rates_of(report, loop):
    """Returns the innermost or outermost loop of the function that the truth names."""
    rows = [row for row in report["loops"] if row["share"] > 0.002 and row["function"]
            and loop["function"] == row["function"].split("::")[-1].split("(")[0]]
    if not rows:
        return None
    depth = (min if loop["outermost"] else max)(row["depth"] for row in rows)
    return max((row for row in rows if row["depth"] == depth), key=lambda row: row["cpu_s"])["rates"]


class LoopRates(harness.Case):
    def check(self, rates, name, known, error, widest=WIDEST):
        found = rates[name]
        self.assertIsNotNone(found, f"{name}: {rates['reasons'].get(name)}")
        low, high = rates["ci95"][name]
        print(f"  {name}: found {found:.4g}, known {known:.4g}, 95 % {low:.4g}..{high:.4g}")
        self.assertLessEqual((high - low) / 2, widest * found)
        # One of a dozen 95 % intervals misses more often than not; if widened by half, one in three hundred does.
        self.assertAlmostEqual(found, known, delta=max(error * known, 1.5 * (high - low) / 2))
        return abs(found - known) <= error * known

    @harness.verify("rates come from samples")
    def test_rates_are_those_that_loops_count(self):
        report, truth = self.observe("loop_rates", "--seconds", "20")
        near = 0
        for loop in truth["loops"]:
            with self.subTest(loop["function"]):
                print(loop["function"])
                rates = rates_of(report, loop)
                self.assertIsNotNone(rates)
                iterations = loop["iterations"] / loop["cpu_s"]
                near += self.check(rates, "iterations_per_s", iterations, MAX_ERROR)
                for name in ("flops", "bytes"):
                    if loop[name] >= 0:
                        walked = name + "_per_s" in rates["walked"]
                        self.check(rates, name + "_per_s", loop[name] * iterations, MAX_WORK_ERROR,
                                   WIDEST_WALKED if walked else WIDEST)
                    else:
                        self.assertTrue(rates[name + "_per_s"] is not None or rates["reasons"][name + "_per_s"])
                # Rates that the code does not fix come from lookaheads, and only those.
                self.assertEqual(rates["walks"] > 0, loop["function"] in WALKED)
        self.assertGreaterEqual(near, LEAST_SHAPES)

    @harness.verify("rates come from samples")
    def test_loops_that_numbers_vectors_and_exchanges_decide_on_have_rates(self):
        report, truth = self.observe("loop_rates", "--seconds", "12", "--only", "decided")
        self.assertEqual(len(truth["loops"]), 3)
        for loop in truth["loops"]:
            with self.subTest(loop["function"]):
                print(loop["function"])
                rates = rates_of(report, loop)
                self.assertIsNotNone(rates)
                iterations = loop["iterations"] / loop["cpu_s"]
                self.check(rates, "iterations_per_s", iterations, MAX_ERROR)
                for name in ("flops", "bytes"):
                    self.check(rates, name + "_per_s", loop[name] * iterations, MAX_WORK_ERROR, WIDEST_WALKED)
                self.assertGreater(rates["walks"], 0)

    def test_without_walks_what_the_code_does_not_fix_is_absent(self):
        report, truth = self.observe("loop_rates", "--seconds", "3", "--only", "branches", options=["--no-lookahead"])
        rates = rates_of(report, truth["loops"][0])
        self.assertIsNone(rates["bytes_per_s"])
        self.assertEqual(rates["reasons"]["bytes_per_s"], "its iterations take different ways")
        self.assertEqual(rates["flops_per_s"], 0)
        self.assertEqual((rates["walks"], rates["walked"]), (0, []))

    @harness.verify("rates come from samples")
    def test_a_function_that_is_called_again_and_again_has_rates_however_brief_its_visits(self):
        if shutil.which("gcc") is None:
            self.skipTest("there is no gcc: sudo apt install gcc")
        for level, calls in (("-O1", 1_500_000), ("-O2", 1_500_000), ("-O3", 3_000_000)):
            with self.subTest(level):
                program = self.path("triad")
                subprocess.run(["gcc", level, "-g", "-x", "c", "-", "-o", program], input=TRIAD, text=True, check=True,
                               timeout=60)
                result = self.record([program, "4000", str(calls)])
                self.assertEqual(result.status, 0, result.stderr)
                truth = json.loads(result.stdout)
                report = self.report(result.profile)
                rates = max((row for row in report["loops"] if row["function"] == "triad"),
                            key=lambda row: row["self_s"])["rates"]
                self.assertEqual(rates["basis"], "outer_counter", rates["reasons"])
                self.check(rates, "flops_per_s", truth["flops"] / truth["cpu_s"], MAX_WORK_ERROR)

    @harness.verify("rates come from samples")
    def test_visits_that_beat_with_the_clock_give_no_wrong_rate(self):
        for visit in ("0.0038", "0.0019", "0.003"):
            report, truth = self.observe("loop_rates", "--seconds", "4", "--visit", visit, "--spread", "0", "--only",
                                         "early_exit")
            rates = rates_of(report, truth["loops"][0])
            found = rates["iterations_per_s"]
            print(f"visits of {visit} s: {found or rates['reasons']['iterations_per_s']}")
            if found is not None:
                known = truth["loops"][0]["iterations"] / truth["loops"][0]["cpu_s"]
                self.assertAlmostEqual(found, known, delta=2 * MAX_ERROR * known)


if __name__ == "__main__":
    harness.main()
