# SPDX-License-Identifier: Apache-2.0
"""Workloads that force their communication: the matrix, the verdict, the variable and the lines must be right."""

import contextlib
import os
import sqlite3
import unittest

import harness
from harness import needs_watchpoints

# Properties that hold on a small machine with other users, whose scheduling shifts the waits: the right pairs,
# directions and verdicts. `./dev bench accuracy` measures how close the figures come on a quiet machine.
MAX_DISTANCE = 0.25
MAX_VERDICT_ERROR = 0.10
MAX_MIXED_VERDICT_ERROR = 0.20
LOAD, STORE = 1, 2  # AccessKind (base/registers.h)
LEAST_WATCHES = 20
FIRST_LINES = 2
NEXT_LINES = 2  # a sample may be charged to the statement that follows within the same loop


class Communication(harness.Case):
    def check(self, name, *arguments, distance=MAX_DISTANCE):
        """For `./dev verify` alone: the overhead is the ratio of two measured times."""
        report = self.check_matrix(name, *arguments, distance=distance)
        self.assertLess(report["sampling"]["overhead"]["fraction"], 0.05)

    def check_matrix(self, name, *arguments, distance=MAX_DISTANCE):
        report, truth = self.observe_enough(name, *arguments)
        costs = harness.cells_by_truth(report, truth)
        self.assertTrue(costs, f"no communication was found on {truth['data'] if truth['sync'] else 'any line'}")
        found = harness.matrix_distance(costs, truth)
        print(f"{name}: distance {found:.3f}, true share {harness.true_share(costs)}")
        self.assertLessEqual(found, distance, costs)
        self.check_directions(costs, truth)
        known_share = harness.known_true_share(truth)
        allowed = MAX_VERDICT_ERROR if known_share in (0.0, 1.0) else MAX_MIXED_VERDICT_ERROR
        self.assertAlmostEqual(harness.true_share(costs), known_share, delta=allowed)
        self.check_object(report, truth)
        self.check_lines(report, truth)
        return report

    def check_object(self, report, truth):
        """The variable comes first; among the data's, where there are others that synchronise."""
        names = truth["data"] if truth["sync"] else None
        objects = [entry for entry in report["objects"]
                   if names is None or any(harness.object_named(entry, name) for name in names)]
        self.assertTrue(objects, "no object is named")
        if len(truth["data"]) == 1:
            self.assertTrue(harness.object_named(objects[0], truth["object"]),
                            f"first is {objects[0]['name']}, not {truth['object']}")

    def check_lines(self, report, truth):
        """The first line of each role, among those of the workload's data, is the one the truth names."""
        for role in ("producer", "consumer"):
            lines = [(os.path.basename(row["file"] or ""), row["line"]) for row in report["lines"]
                     if row["role"] == role]
            self.assertTrue(lines, f"no {role} line")
            known = truth[role + "_line"]
            wanted = {(truth["file"], line) for line in range(known - 1, known + NEXT_LINES + 1)}
            among = lines if truth["sync"] else lines[:FIRST_LINES]
            self.assertTrue(wanted & set(among), f"{role}: {lines[:5]}, not {truth['file']}:{known}")

    @needs_watchpoints
    def test_ping_pong(self):
        self.check_matrix("ping_pong", "--seconds", "3")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_ping_pong_on_futexes(self):
        # Nearly all its time is the kernel's: few samples have an address, and costs are known roughly.
        self.check("ping_pong", "--seconds", "4", "--wait", "futex", "--lines", "128", distance=0.4)

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_ring(self):
        # Its threads yield without pause: their watchpoints are opened for each watch.
        self.check("ring", "--seconds", "8", "--threads", "3")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_halo_exchange(self):
        self.check("halo_exchange", "--iterations", "220000", "--threads", "2")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_halo_exchange_of_three(self):
        self.check("halo_exchange", "--iterations", "150000", "--threads", "3")

    @needs_watchpoints
    def test_false_sharing(self):
        self.check_matrix("false_sharing", "--seconds", "3")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_false_sharing_of_small_counters(self):
        self.check("false_sharing", "--seconds", "3", "--stride", "4", "--bytes", "4")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_false_sharing_at_both_ends_of_a_line(self):
        self.check("false_sharing", "--seconds", "3", "--stride", "56")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_one_writer_many_readers(self):
        self.check("one_writer_many_readers", "--seconds", "4", "--threads", "3")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_migrating_object(self):
        self.check("migrating_object", "--seconds", "4", "--threads", "2")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_pipeline(self):
        self.check("pipeline", "--seconds", "4", "--threads", "3")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_all_to_all(self):
        # The program does not force which of the two waits longer for the other's letters: it differs between
        # processors.
        self.check("all_to_all", "--seconds", "4", "--threads", "2", "--lines", "64", distance=0.4)

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_all_to_all_of_three(self):
        # The threads yield at their barriers and are watchable for a part of the time.
        self.check("all_to_all", "--seconds", "10", "--threads", "3", "--lines", "64", distance=0.35)

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_reduction_of_two(self):
        self.check("reduction_tree", "--seconds", "4", "--threads", "2", "--lines", "1024")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_work_stealing(self):
        self.check("work_stealing", "--seconds", "4", "--threads", "2")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_mixed(self):
        self.check("mixed", "--seconds", "8", "--true-tenths", "5")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_mixed_of_three(self):
        # A watch covers two of the three threads' words: whose was the third store shows in the line's state.
        report, truth = self.observe_enough("mixed", "--seconds", "6", "--threads", "3", "--true-tenths", "0")
        costs = harness.cells_by_truth(report, truth)
        strangers = sum(cost for (producer, consumer, _), cost in costs.items()
                        if producer is None or consumer is None or truth["matrix"][producer][consumer] == 0)
        print(f"mixed of three: {strangers / sum(costs.values()):.3f} between threads that do not communicate")
        self.assertLess(strangers, 0.05 * sum(costs.values()), costs)
        self.check_directions(costs, truth)
        self.assertLessEqual(harness.matrix_distance(costs, truth), MAX_DISTANCE, costs)

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_mostly_false(self):
        self.check("mixed", "--seconds", "8", "--true-tenths", "2")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_openmp_reduction(self):
        self.check("openmp_reduction", "--seconds", "3")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_clone_threads(self):
        self.check("clone_threads", "--seconds", "3")


class Silence(harness.Case):
    """Programs without communication get none reported. To tell one sample in a thousand (two threads meet in the C
    library as they start and end), the runs take some thousand samples."""

    MAX_SHARE = 0.001  # of CPU time
    MOST_UNDETECTED, MANY_WATCHES = 0.5, 1000  # of CPU time, with so many watches; samples alone exclude nothing

    def check(self, name, *arguments):
        report, _ = self.observe(name, *arguments)
        self.assertGreater(report["sampling"]["samples"], 100)
        self.assertGreater(report["sampling"]["armed"], LEAST_WATCHES, "no lines were watched: nothing could be seen")
        touched = [(entry["name"], entry["cells"]) for entry in report["objects"] if entry["cells"]]
        self.assertLess(harness.total_cost(report), self.MAX_SHARE * harness.cpu_seconds(report), touched)
        undetected = report["communication"]["undetected"]
        self.assertEqual(undetected["evidence"], "watched", undetected)
        if report["sampling"]["armed"] >= self.MANY_WATCHES:
            self.assertLess(undetected["at_most_s"], self.MOST_UNDETECTED * harness.cpu_seconds(report), undetected)

    @needs_watchpoints
    def test_private_only(self):
        self.check("private_only", "--seconds", "6")

    @needs_watchpoints
    def test_read_only_sharing(self):
        self.check("read_only_sharing", "--seconds", "6")

    @needs_watchpoints
    def test_counters_in_lines_of_their_own(self):
        self.check("false_sharing", "--seconds", "6", "--stride", "64")


class Partners(harness.Case):
    """`record --partner` says which samples begin a watch."""

    def watched(self, partner, workload="ping_pong"):
        """(AccessKind, suspected) of the sample of each watch; of several recordings until something was watched."""
        for _ in range(5):
            result = self.record([harness.workload(workload), "--seconds", "2"], ("--partner", partner))
            self.assertEqual(result.status, 0, result.stderr)
            with contextlib.closing(sqlite3.connect(f"file:{result.profile}?mode=ro", uri=True)) as database:
                watched = database.execute("SELECT sample_access, suspected FROM watch").fetchall()
            if watched:
                return watched
        return []

    @needs_watchpoints
    def test_next_store_watches_loads(self):
        kinds = {kind for kind, _ in self.watched("next-store")}
        self.assertTrue(kinds)
        self.assertFalse(kinds - {LOAD, LOAD | STORE})

    @needs_watchpoints
    def test_next_access_watches_stores(self):
        # Threads of mixed spend their time on atomic additions; those of ping_pong on loads alone.
        kinds = {kind for kind, _ in self.watched("next-access", "mixed")}
        self.assertTrue(kinds)
        self.assertFalse(kinds - {STORE, LOAD | STORE})

    @needs_watchpoints
    def test_board_watches_what_another_thread_was_seen_at(self):
        self.assertEqual({suspected for _, suspected in self.watched("board")}, {1})


class Proportions(harness.Case):
    @needs_watchpoints
    def test_cost_is_a_part_of_cpu_time(self):
        report, _ = self.observe_enough("false_sharing", "--seconds", "3")
        share = harness.total_cost(report) / harness.cpu_seconds(report)
        self.assertGreater(share, 0.05)  # threads that take turns on one processor share less than they could
        self.assertLessEqual(share, 1.0)

    @needs_watchpoints
    def test_no_cell_is_its_own_partner(self):
        report, _ = self.observe("ring", "--seconds", "4")
        for view in ("cells", "cores", "invalidations"):
            cells = report["communication"][view]
            if view == "cells" and not cells:  # of threads that took turns on one core, `cores` has none either
                self.skipTest("nothing was seen on this busy machine")
            for cell in cells:
                self.assertNotEqual(cell["producer"], cell["consumer"], view)


if __name__ == "__main__":
    harness.main()
