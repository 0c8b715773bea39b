# SPDX-License-Identifier: Apache-2.0
"""Thousands of threads of a millisecond are sampled as often as their time deserves, and found to do what they do."""

import json
import re

import harness
from harness import needs_watchpoints

TICK_S = 0.004  # of most kernels; a period that is no shorter is the POSIX timer's


class BriefThreads(harness.Case):
    def observe_lives(self, *options, seconds=4):
        recorded = self.record([harness.workload("brief_threads"), "--life", "0.001", "--seconds", str(seconds)], options)
        self.assertEqual(recorded.status, 0, recorded.stderr)
        return self.report(recorded.profile), json.loads(recorded.stdout)

    @harness.verify("shares come from samples")
    def test_samples_stand_for_all_of_their_time(self):
        report, truth = self.observe_lives("--period", "8ms", seconds=8)
        self.assertGreater(truth["threads"], 200)
        sampled_s = sum(row["self_s"] for row in report["functions"])
        print(f"{truth['threads']} threads, {truth['cpu_s']} s, samples stand for {sampled_s:.3f} s")
        self.assertAlmostEqual(sampled_s / truth["cpu_s"], 1, delta=0.3)
        cpu_s = sum(thread["cpu_s"] or 0 for thread in report["threads"])
        self.assertAlmostEqual(cpu_s / truth["cpu_s"], 1, delta=0.25, msg="a thread's time is not its sample's")

    @harness.verify("shares come from samples")
    def test_their_loops_have_their_shares(self):
        # Ticks of the kernel are when such threads begin and are preempted: clocks that go by them see one loop or the
        # other, on a busy machine above all.
        report, truth = self.observe_lives(seconds=8)
        shares = {name: max((row["share"] for row in report["loops"] if name in row["function"]), default=0)
                  for name in ("count_until", "compute_until")}
        all_s = report["cpu_s"]  # with what it takes to make threads, to begin and to end
        counting, computing = truth["counting_s"] / all_s, truth["computing_s"] / all_s
        print(f"counting {counting:.3f}, computing {computing:.3f}, loops {shares}; {truth}, program {all_s} s")
        self.assertTrue(0.25 < counting < 0.9, f"{truth}: the workload does not do what it is made for")
        self.assertAlmostEqual(shares["count_until"], counting, delta=0.15, msg=truth)
        self.assertAlmostEqual(shares["compute_until"], computing, delta=0.15, msg=truth)
        # To begin and to end takes a part of a millisecond (docs/overhead.md); a storm of interrupts takes all of it.
        self.assertTrue(0 < report["sampling"]["overhead"]["fraction"] < 0.2, report["sampling"]["overhead"])

    @harness.verify("shares come from samples")
    def test_a_finer_clock_keeps_no_thread_from_its_work(self):
        bare = harness.run([harness.workload("brief_threads"), "--life", "0.001", "--seconds", "2"])
        recorded = self.record([harness.workload("brief_threads"), "--life", "0.001", "--seconds", "2"],
                               ["--period", "2ms", "--budget", "50"])
        threads = [json.loads(result.stdout)["threads"] for result in (bare, recorded)]
        self.assertGreater(threads[1], 0.25 * threads[0], threads)

    def test_who_was_not_sampled_is_said(self):
        report, truth = self.observe_lives()
        said = [warning["message"] for warning in report["warnings"] if warning["code"] == "unsampled_threads"]
        self.assertEqual(len(said), 1, report["warnings"])
        count = int(re.match(r"(\d+) threads", said[0]).group(1))
        self.assertTrue(truth["threads"] * 0.5 < count < truth["threads"], said)
        self.assertIn("stand for them", said[0])
        self.assertIn("(they began in live(); threads are made in main() at brief_threads.cpp:", said[0])
        routines = [thread["start_routine"] or "" for thread in report["threads"] if thread["samples"] == 0]
        self.assertGreater(sum("live" in routine for routine in routines), 0.99 * len(routines))
        everything = json.dumps([report["findings"], report["warnings"]])
        self.assertNotIn("record for longer", everything, "the program has ended")

    @harness.verify("shares come from samples")
    @needs_watchpoints
    def test_their_communication_is_found(self):
        report, _ = self.observe_lives()
        counters = next((entry for entry in report["objects"] if harness.object_named(entry, "counters")), None)
        self.assertIsNotNone(counters, report["findings"])
        cost_s = sum(cell["false"]["cost_s"] for cell in counters["cells"])
        cpu_s = sum(thread["cpu_s"] or 0 for thread in report["threads"])
        print(f"cost {cost_s:.3f} s of {cpu_s:.3f} s")
        self.assertGreater(cost_s, 0.03 * cpu_s)
        self.assertLess(cost_s, 0.6 * cpu_s)


if __name__ == "__main__":
    harness.main()
