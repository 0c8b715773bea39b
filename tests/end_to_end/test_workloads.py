# SPDX-License-Identifier: Apache-2.0
"""The workloads themselves: they refuse nonsense, and their truths are what they force."""

import harness
from harness import run, workload


class Workloads(harness.Case):
    def truth(self, name, *arguments):
        result = run([workload(name), *arguments])
        self.assertEqual(result.status, 0, result.stderr)
        self.assertEqual(len(result.stdout.splitlines()), 1)
        return result.truth

    def test_absurd_flags_are_refused(self):
        for name, *arguments in (["ring", "--threads", "1"], ["ring", "--threads", "100000"], ["ring", "--threads"],
                                 ["ring", "--threads", "two"], ["ring", "--seconds", "-1"], ["ring", "--seconds", "nan"],
                                 ["ring", "--colour", "red"], ["ping_pong", "--wait", "forever"],
                                 ["false_sharing", "--stride", "6"], ["mixed", "--true-tenths", "11"]):
            result = run([workload(name), *arguments])
            self.assertEqual((result.status, result.stdout), (2, ""), arguments)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertTrue(result.stderr.startswith(name + ": "), result.stderr)

    def test_ring_passes_to_the_next(self):
        truth = self.truth("ring", "--threads", "4", "--seconds", "0.2")
        for producer in range(5):
            for consumer in range(5):
                if producer == 0 or consumer != producer % 4 + 1:
                    self.assertEqual(truth["matrix"][producer][consumer], 0)
                else:
                    self.assertGreater(truth["matrix"][producer][consumer], 1000)

    def test_mixed_keeps_its_parts(self):
        truth = self.truth("mixed", "--true-tenths", "3", "--seconds", "0.2")
        self.assertAlmostEqual(truth["true"] / (truth["true"] + truth["false"]), 0.3, delta=0.001)

    def test_halo_counts_lines(self):
        truth = self.truth("halo_exchange", "--threads", "3", "--iterations", "10")
        self.assertEqual(truth["matrix"], [[0, 0, 0, 0], [0, 0, 10240, 0], [0, 10240, 0, 10240], [0, 0, 10240, 0]])

    def test_strides_apart_do_not_share(self):
        truth = self.truth("false_sharing", "--stride", "64", "--seconds", "0.05")
        self.assertEqual(truth["false"], 0)

    def test_threads_are_told_apart(self):
        for name in ("ring", "clone_threads", "openmp_reduction"):
            truth = self.truth(name, "--seconds", "0.05")
            self.assertEqual(len(set(truth["tids"])), truth["threads"])


if __name__ == "__main__":
    harness.main()
