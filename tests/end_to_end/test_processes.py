# SPDX-License-Identifier: Apache-2.0
"""Exchange between processes through shared memory."""

import sqlite3

import harness
from harness import workload


MAX_DISTANCE = 0.25  # as between threads: who waits for whom shifts with what else the machine does


class Processes(harness.Case):
    def exchange(self, processes, memory, seconds, *arguments, budget=3):
        report, truth = self.observe_enough("processes", "--threads", str(processes), "--memory", memory, "--wait",
                                            "yield", "--seconds", str(seconds), *arguments,
                                            options=("--budget", str(budget)))
        costs = harness.cells_by_truth(report, truth)
        self.assertLessEqual(harness.matrix_distance(costs, truth), MAX_DISTANCE, costs)
        self.check_directions(costs, truth)
        self.assertGreater(harness.true_share(costs), 0.9, costs)
        self.assertGreater(harness.total_cost(report), 0.05 * harness.cpu_seconds(report))
        self.assertEqual([entry["kind"] for entry in report["objects"]], ["shared"])
        self.assertEqual(max(report["lines"], key=lambda line: line["cost_s"])["file"].rsplit("/", 1)[-1], truth["file"])
        return report, truth

    def check_budget(self, report, budget=3):
        """For `./dev verify` alone: two measured times are compared."""
        self.assertLess(report["sampling"]["overhead"]["fraction"], max(0.05, 1.3 * budget / 100))

    @harness.needs_watchpoints
    def test_two_with_anonymous_memory(self):
        report, _ = self.exchange(2, "anonymous", 4)
        entry = report["objects"][0]
        self.assertEqual(entry["name"], "anonymous shared memory")
        self.assertIn("map_shared", entry["allocated_at"])

    @harness.verify("how much was seen decides whether the matrix is close")
    @harness.needs_watchpoints
    def test_two_that_send_each_other_urgent_signals(self):
        report, truth = self.exchange(2, "anonymous", 4, "--wake", "urgent")
        self.check_budget(report)
        self.assertGreater(min(truth["urged"]), 10, "the program's signals are its own")

    @harness.verify("how much was seen decides whether the matrix is close")
    @harness.needs_watchpoints
    def test_three_with_a_memfd_at_different_addresses(self):
        # Three that yield on two processors switch all the time: within 3 % they are watched too seldom to tell them apart.
        report, truth = self.exchange(3, "memfd", 8, budget=10)
        self.check_budget(report, 10)
        self.assertGreater(len(set(truth["addresses"])), 1, truth["addresses"])
        entry = report["objects"][0]
        self.assertEqual(entry["name"], "memfd table")
        # A word that one process stores to and another reads is one word, whatever addresses they have it at.
        threads = {}
        for row in entry["offsets"]:
            threads.setdefault(row["offset"], set()).add(row["thread"])
        self.assertGreaterEqual(sum(len(of_word) > 1 for of_word in threads.values()), 3, threads)

    @harness.verify("how much was seen decides whether the matrix is close")
    @harness.needs_watchpoints
    def test_two_with_a_file(self):
        report, _ = self.exchange(2, "file", 4)
        self.check_budget(report)
        self.assertIn("/table-", report["objects"][0]["name"])

    @harness.verify("how much was seen decides whether the matrix is close")
    @harness.needs_watchpoints
    def test_two_with_a_segment_at_different_addresses(self):
        report, truth = self.exchange(2, "sysv", 4)
        self.check_budget(report)
        self.assertGreater(len(set(truth["addresses"])), 1, truth["addresses"])
        entry = report["objects"][0]
        self.assertEqual(entry["name"], "System V segment 0x00000000")
        self.assertIn("map_own", entry["allocated_at"])

    @harness.verify("how much was seen decides whether the matrix is close")
    @harness.needs_watchpoints
    def test_who_is_blocked_is_not_disturbed(self):
        """A process is armed from outside: a call in which it is blocked goes on, and no time-out begins anew."""
        report, truth = self.observe("blocked_partner", "--seconds", "6", options=["--period", "1ms"])
        for name, call in truth["calls"].items():
            self.assertGreater(call["calls"], 0, name)
            self.assertEqual(call["interrupted"], 0, name)
            self.assertEqual(call["wrong"], 0, name)
        self.assertTrue(report["communication"]["cells"], report["sampling"])  # lines were watched

    @harness.needs_watchpoints
    def test_processes_that_share_no_memory_exchange_nothing(self):
        program = workload("false_sharing")
        for seconds in (2, 6, 18):  # few watches on a loaded machine
            recorded = self.record(["sh", "-c", f"{program} --seconds {seconds} & {program} --seconds {seconds}; wait"])
            self.assertEqual(recorded.status, 0, recorded.stderr)
            report = self.report(recorded.profile)
            cells = report["communication"]["cells"]
            if cells:
                break
        pid = {thread["index"]: thread["pid"] for thread in report["threads"]}
        self.assertTrue(cells)
        for cell in cells:
            self.assertEqual(pid[cell["producer"]], pid[cell["consumer"]], cell)
        with sqlite3.connect(recorded.profile) as database:
            self.assertEqual(database.execute("SELECT count(*) FROM shared_mapping").fetchone(), (0,))


if __name__ == "__main__":
    harness.main()
