# SPDX-License-Identifier: Apache-2.0
"""Heap blocks of one allocation site: told apart where they are used differently, one row where they are used alike."""

import harness
from harness import needs_watchpoints

ENOUGH = 300  # communications seen: threads that others keep off the processors meet too seldom to be judged


def seen(row):
    return sum(cell[sort]["seen"] for cell in row["cells"] for sort in ("true", "false"))


class Blocks(harness.Case):
    def rows(self, *arguments, least_blocks=2):
        for seconds in ("2", "4", "8"):
            report, truth = self.observe("blocks", *arguments, "--seconds", seconds)
            place = f"allocated at blocks.cpp:{truth['line']} in "
            rows = [row for row in report["objects"] if place in row["name"]]
            if sum(map(seen, rows)) >= ENOUGH and sum(row["blocks"] for row in rows) >= least_blocks:
                break
        self.assertTrue(rows, [row["name"] for row in report["objects"]])
        for row in rows:
            self.assertTrue(row["name"].startswith("Node "), row["name"])
            self.assertEqual(row["field"], "exchanged")
        return report, rows

    @needs_watchpoints
    def test_alike_blocks_are_one_row(self):
        _, rows = self.rows("--use", "alike", "--blocks", "6")
        self.assertEqual(len(rows), 1, [row["name"] for row in rows])
        self.assertEqual((rows[0]["blocks"], rows[0]["site"]), (6, None))

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_a_block_that_costs_nearly_all_is_named(self):
        report, rows = self.rows("--use", "hot", "--blocks", "12", "--hot", "5", least_blocks=5)
        costliest = max(rows, key=lambda row: row["cost_s"])
        self.assertGreater(costliest["cost_s"], 0.7 * sum(row["cost_s"] for row in rows))
        self.assertEqual(costliest["blocks"], 1)
        self.assertRegex(costliest["name"], r"^Node #\d+ of \d+ allocated at ")
        self.assertEqual(costliest["site"], "Node allocated at " + costliest["name"].split(" allocated at ")[1])
        sentences = [finding["sentence"] for finding in report["findings"]]
        self.assertTrue(any("`Node.exchanged " in sentence for sentence in sentences), sentences)

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_blocks_of_pairs_of_threads_are_told_apart(self):
        _, rows = self.rows("--use", "pairs", "--blocks", "2")
        self.assertEqual(sorted(row["name"].split(" ")[1] for row in rows), ["#1", "#2"], [row["name"] for row in rows])
        threads = [{end for cell in row["cells"] for end in (cell["producer"], cell["consumer"])} for row in rows]
        self.assertEqual([len(pair) for pair in threads], [2, 2])
        self.assertFalse(threads[0] & threads[1])


if __name__ == "__main__":
    harness.main()
