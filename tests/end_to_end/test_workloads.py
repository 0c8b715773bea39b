# SPDX-License-Identifier: Apache-2.0
"""The workloads themselves: they refuse nonsense, and their truths are what they force."""

import os

import harness
from harness import run, workload


LINES_OF_A_RACK = 128
LINES_OF_AN_ARRAY = 1024
COUNTED = {  # those whose exact counts are known, with what makes them short
    "ping_pong": ["--seconds", "0.1", "--wait", "yield", "--lines", "3"],
    "ring": ["--seconds", "0.1"],
    "pipeline": ["--seconds", "0.1"],
    "halo_exchange": ["--iterations", "50"],
    "one_writer_many_readers": ["--seconds", "0.1"],
    "migrating_object": ["--seconds", "0.1"],
    "mixed": ["--seconds", "0.1"],
    "all_to_all": ["--seconds", "0.1"],
    "reduction_tree": ["--seconds", "0.1"],
    "work_stealing": ["--seconds", "0.1"],
    "processes": ["--seconds", "0.1", "--wait", "yield"],
}
TIMED = set(COUNTED) - {"ping_pong", "one_writer_many_readers", "processes"}
PROPORTIONAL = {"false_sharing": ["--seconds", "0.1"], "openmp_reduction": ["--seconds", "0.1"]}
SILENT = {"private_only": ["--seconds", "0.1"], "read_only_sharing": ["--seconds", "0.1"]}


def cells(matrix):
    return {(producer, consumer): count for producer, row in enumerate(matrix)
            for consumer, count in enumerate(row) if count != 0}


@harness.together
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
                                 ["false_sharing", "--stride", "6"], ["mixed", "--true-tenths", "11"],
                                 ["false_sharing", "--threads", "11"], ["openmp_reduction", "--threads", "12"],
                                 ["ping_pong", "--threads", "3"], ["ring", "--threads", "2.5"],
                                 ["halo_exchange", "--iterations", "0.5"], ["halo_exchange", "--iterations", "7.5"], ["all_to_all", "--threads", "65"],
                                 ["all_to_all", "--lines", "0"], ["all_to_all", "--posted", "257"],
                                 ["all_to_all", "--posted", "0.5"], ["reduction_tree", "--threads", "1"],
                                 ["work_stealing", "--threads", "1e9"], ["processes", "--threads", "1"],
                                 ["processes", "--memory", "paper"], ["processes", "--seconds", "0"]):
            result = run([workload(name), *arguments])
            self.assertEqual((result.status, result.stdout), (2, ""), arguments)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertTrue(result.stderr.startswith(name + ": "), result.stderr)

    def test_all_run_with_two_to_sixty_four_threads(self):
        for name, short in {**COUNTED, **PROPORTIONAL, **SILENT}.items():
            for threads in ("2", "64"):
                truth = self.truth(name, "--threads", threads, *short)
                main_takes_part = name == "openmp_reduction"
                self.assertEqual(truth["threads"], int(threads) + (0 if main_takes_part else 1), name)
                self.assertEqual(len(set(truth["tids"])), truth["threads"], name)
                self.assertEqual(truth["exact"], name not in PROPORTIONAL, name)

    def test_a_matrix_is_the_sum_of_true_and_false(self):
        for name, short in COUNTED.items():
            truth = self.truth(name, *short)
            both = [[a + b for a, b in zip(*rows)] for rows in zip(truth["true_matrix"], truth["false_matrix"])]
            self.assertEqual(truth["matrix"], both, name)
            self.assertEqual(truth["true"] + truth["false"], sum(map(sum, both)), name)
            self.assertGreater(truth["true"] + truth["false"], 0, name)
            self.assertTrue(all(truth["matrix"][n][n] == 0 for n in range(truth["threads"])), name)

    def test_what_communicates_is_what_is_timed(self):
        for name, short in {**COUNTED, **PROPORTIONAL, **SILENT}.items():
            truth = self.truth(name, *short)
            self.assertEqual(truth["true_cost"] is not None, name in TIMED, name)
            for sort in ("true", "false") if name in TIMED else ():
                costs = cells(truth[sort + "_cost"])
                # The first thread to take the object takes it from the main thread: that is timed, and no turn of the
                # game.
                first = {(0, 1), (0, 2)} if name == "migrating_object" else set()
                self.assertLessEqual(set(costs) - first, set(cells(truth[sort + "_matrix"])), (name, sort))
                self.assertLess(sum(costs.values()), (truth["threads"] - 1) * truth["seconds"], (name, sort))
            if truth["true"] > 0 and name in TIMED:  # on a busy machine nobody may take over in so short a time
                self.assertGreater(sum(map(sum, truth["true_cost"])), 0, name)

    def test_invalidations_are_known_or_it_is_said_why(self):
        for name, short in {**COUNTED, **PROPORTIONAL, **SILENT}.items():
            truth = self.truth(name, *short)
            self.assertEqual(truth["invalidations"] is None, "invalidations_unknown" in truth, name)
            self.assertEqual(truth["invalidations"] is None, name in PROPORTIONAL or name == "ping_pong", name)

    def test_ping_pong_counts_passes_and_lines(self):
        for wait in ("yield", "futex", "condvar"):
            plain = self.truth("ping_pong", "--seconds", "0.1", "--wait", wait)["matrix"]
            self.assertEqual(plain[1][2] - plain[2][1], 1)  # the first pass and the last are the same player's
            with_lines = self.truth("ping_pong", "--seconds", "0.1", "--wait", wait, "--lines", "7")["matrix"]
            passes = (with_lines[2][1]) // 8
            self.assertEqual((with_lines[1][2], with_lines[2][1]), (passes * 8 + 1, passes * 8))

    def test_ping_pong_of_pairs(self):
        truth = self.truth("ping_pong", "--threads", "4", "--seconds", "0.1", "--wait", "yield")
        self.assertEqual(set(cells(truth["matrix"])), {(1, 2), (2, 1), (3, 4), (4, 3)})

    def test_ring_passes_to_the_next(self):
        for lines, more in ((LINES_OF_A_RACK, []), (4, ["--lines", "4", "--passes", "20", "--wait", "futex"])):
            truth = self.truth("ring", "--threads", "4", "--seconds", "0.2", *more)
            known = cells(truth["matrix"])
            self.assertEqual(set(known), {(1, 2), (2, 3), (3, 4), (4, 1)})
            self.assertEqual(len(set(known.values())), 1)  # all rounds are whole
            lost = cells(truth["invalidations"])
            self.assertEqual({pair: count + lines for pair, count in lost.items()}, known)

    def test_mixed_keeps_its_parts(self):
        truth = self.truth("mixed", "--true-tenths", "3", "--seconds", "0.2")
        both = truth["true"] + truth["false"]
        rounds = both / (2 * LINES_OF_AN_ARRAY)  # whole tens of them but the last, and a first turn that finds nothing
        self.assertAlmostEqual(truth["true"] / both, 0.3, delta=10 / rounds)
        self.assertGreater(rounds, 50)

    def test_mixed_counts_turns(self):
        lines = 1024
        for threads in (2, 3):
            truth = self.truth("mixed", "--threads", str(threads), "--seconds", "0.1")
            turns = set()
            for matrix in (truth["true_matrix"], truth["false_matrix"]):
                known = cells(matrix)
                self.assertEqual(set(known), {(n, n % threads + 1) for n in range(1, threads + 1)})
                # The very first turn on an array finds lines that nobody has stored to.
                turns.add(known[threads, 1] + lines)
                turns.update(known[n, n + 1] for n in range(1, threads))
            self.assertLessEqual(max(turns) - min(turns), lines * 4, turns)
            self.assertEqual({count % lines for count in turns}, {0})

    def test_one_writer_is_heard_by_all(self):
        truth = self.truth("one_writer_many_readers", "--threads", "4", "--seconds", "0.1")
        known = cells(truth["matrix"])
        self.assertEqual(set(known), {(1, 2), (1, 3), (1, 4)})
        self.assertEqual(len(set(known.values())), 1)
        self.assertEqual(truth["invalidations"], truth["matrix"])

    def test_all_to_all_is_even(self):
        truth = self.truth("all_to_all", "--threads", "4", "--lines", "3", "--seconds", "0.1")
        known = cells(truth["matrix"])
        self.assertEqual(set(known), {(i, j) for i in range(1, 5) for j in range(1, 5) if i != j})
        self.assertEqual(len(set(known.values())), 1)
        self.assertEqual(known[1, 2] % 3, 0)
        self.assertEqual({pair: count + 3 for pair, count in cells(truth["invalidations"]).items()}, known)

    def test_all_to_all_posts_a_part(self):
        for posted in (0, 2, 8):
            truth = self.truth("all_to_all", "--threads", "3", "--lines", "8", "--posted", str(posted), "--seconds", "0.1")
            known = cells(truth["matrix"])
            self.assertEqual(len(known), 6 if posted else 0)
            self.assertTrue(all(count % posted == 0 for count in known.values()), known)
            self.assertEqual(truth["data"], ["mail"] if posted else [])

    def test_reduction_tree_goes_to_the_parent(self):
        for threads, tree in ((2, {(2, 1)}), (5, {(2, 1), (3, 1), (4, 3), (5, 1)}),
                              (8, {(2, 1), (3, 1), (4, 3), (5, 1), (6, 5), (7, 5), (8, 7)})):
            truth = self.truth("reduction_tree", "--threads", str(threads), "--lines", "2", "--seconds", "0.1")
            known = cells(truth["matrix"])
            self.assertEqual(set(known), tree)
            self.assertEqual(len(set(known.values())), 1)
            self.assertEqual({(i, j): truth["invalidations"][i][j] + 2 for i, j in tree}, known)

    def test_work_stealing_steals(self):
        truth = self.truth("work_stealing", "--threads", "2", "--seconds", "0.2")
        self.assertGreater(truth["steals"], 0)
        self.assertEqual((truth["steals"] + truth["own"]) % 8, 0)  # batches are whole
        # With two threads, the one that fills the next batch is the one that stole from this one. So a task is
        # communicated once a batch: when it is stolen or, for the up to four that are not, when it is filled again; the
        # last batch is not.
        never_filled_again = truth["steals"] + truth["own"] - truth["true"] / truth["lines"]
        self.assertIn(never_filled_again, range(5))
        known = cells(truth["matrix"])
        self.assertEqual(set(known), {(1, 2), (2, 1)})

    def test_processes_share_at_one_address_or_at_several(self):
        for memory, addresses in (("anonymous", 1), ("memfd", 3), ("file", 3)):
            truth = self.truth("processes", "--memory", memory, "--threads", "3", "--wait", "yield", "--lines", "5",
                               "--seconds", "0.1")
            self.assertEqual(len(set(truth["addresses"])), addresses, memory)
            known, lost = cells(truth["matrix"]), cells(truth["invalidations"])
            self.assertEqual(set(known), {(1, 2), (2, 3), (3, 1)})
            # A baton and five lines a pass; the last round of process 1 goes on as a baton without lines.
            self.assertEqual({pair: 6 * count - 5 for pair, count in lost.items()}, known)

    def test_processes_leave_no_file(self):
        self.assertEqual(run([workload("processes"), "--memory", "file", "--wait", "yield", "--seconds", "0.05"],
                             env={**os.environ, "TMPDIR": self.folder}).status, 0)
        self.assertEqual(os.listdir(self.folder), [])
        lost = run([workload("processes"), "--memory", "file", "--seconds", "0.05"],
                   env={**os.environ, "TMPDIR": self.path("nowhere")})
        self.assertEqual((lost.status, len(lost.stderr.splitlines())), (1, 1), lost.stderr)

    def test_halo_counts_lines(self):
        truth = self.truth("halo_exchange", "--threads", "3", "--iterations", "10")
        self.assertEqual(truth["matrix"], [[0, 0, 0, 0], [0, 0, 10240, 0], [0, 10240, 0, 10240], [0, 0, 10240, 0]])

    def test_shared_lines_are_told_from_others(self):
        truth = self.truth("openmp_reduction", "--threads", "16", "--seconds", "0.05")
        self.assertEqual(set(cells(truth["matrix"])),
                         {(i, j) for i in range(16) for j in range(16) if i != j and i // 8 == j // 8})

    def test_strides_apart_do_not_share(self):
        truth = self.truth("false_sharing", "--stride", "64", "--seconds", "0.05")
        self.assertEqual(truth["false"], 0)

    def test_threads_are_told_apart(self):
        for name in ("ring", "clone_threads", "openmp_reduction"):
            truth = self.truth(name, "--seconds", "0.05")
            self.assertEqual(len(set(truth["tids"])), truth["threads"])


@harness.verify("each access is accounted for by programs that are built for it")
class SecondOpinion(harness.Case):
    """The truths against an account of every access by the definitions (tests/workloads/accountant.cpp)."""

    def check(self, name, *arguments):
        result = run([workload(os.path.join("accounted", name)), *arguments])
        self.assertEqual(result.status, 0, result.stderr)
        truth = result.truth
        self.assertEqual(truth["true_matrix"], truth["accounted_true"])
        self.assertEqual(truth["false_matrix"], truth["accounted_false"])
        if truth["invalidations"] is not None:
            self.assertEqual(truth["invalidations"], truth["accounted_invalidations"])
        return truth

    def check_counts(self, name, *arguments):
        truth = self.check(name, *arguments)
        self.assertGreater(truth["true"] + truth["false"], 100)

    def test_ping_pong(self):
        for wait in ("yield", "futex", "condvar"):
            self.check_counts("ping_pong", "--wait", wait, "--seconds", "0.1")
        self.check_counts("ping_pong", "--wait", "yield", "--lines", "5", "--threads", "4", "--seconds", "0.1")

    def test_ring(self):
        self.check_counts("ring", "--threads", "2", "--seconds", "0.1")
        self.check_counts("ring", "--threads", "5", "--seconds", "0.1")

    def test_pipeline(self):
        self.check_counts("pipeline", "--threads", "2", "--seconds", "0.1")
        self.check_counts("pipeline", "--threads", "4", "--seconds", "0.1")

    def test_halo_exchange(self):
        self.check_counts("halo_exchange", "--threads", "3", "--iterations", "4")

    def test_one_writer_many_readers(self):
        self.check_counts("one_writer_many_readers", "--threads", "4", "--seconds", "0.1")

    def test_migrating_object(self):
        self.check("migrating_object", "--threads", "3", "--seconds", "0.2")

    def test_mixed(self):
        self.check_counts("mixed", "--true-tenths", "3", "--threads", "3", "--seconds", "0.01")
        self.check_counts("mixed", "--true-tenths", "0", "--seconds", "0.01")

    def test_mixed_with_bytes_of_their_own(self):
        self.check_counts("mixed", "--true-tenths", "5", "--threads", "10", "--seconds", "0.01")

    def test_all_to_all(self):
        self.check_counts("all_to_all", "--threads", "4", "--lines", "3", "--seconds", "0.1")
        self.check_counts("all_to_all", "--threads", "3", "--lines", "16", "--posted", "4", "--seconds", "0.1")

    def test_reduction_tree(self):
        self.check_counts("reduction_tree", "--threads", "2", "--seconds", "0.1")
        self.check_counts("reduction_tree", "--threads", "7", "--lines", "3", "--seconds", "0.2")

    def test_work_stealing(self):
        self.check_counts("work_stealing", "--threads", "2", "--seconds", "0.1")
        self.check_counts("work_stealing", "--threads", "5", "--seconds", "0.1")

    def test_processes(self):
        self.check_counts("processes", "--threads", "2", "--wait", "yield", "--seconds", "0.1")
        self.check_counts("processes", "--threads", "4", "--wait", "yield", "--lines", "5", "--seconds", "0.1")

    def test_clone_threads(self):
        self.check_counts("clone_threads", "--seconds", "0.1")

    def test_read_only_sharing(self):
        self.check_counts("read_only_sharing", "--threads", "3", "--seconds", "0.05")

    def test_private_only(self):
        self.assertEqual(self.check("private_only", "--seconds", "0.05", "--kib", "4")["true"], 0)


if __name__ == "__main__":
    harness.main()
