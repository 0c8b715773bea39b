# SPDX-License-Identifier: Apache-2.0
"""A program that allocates more than the budget allows to list: which blocks have names."""

import sqlite3

import harness
from harness import workload

EARLY, LATE = 52, 53  # bytes of the blocks that it counts in


class Allocating(harness.Case):
    def blocks(self, *options):
        """Sizes of the blocks that samples met by name, and how many lines say that some were left out. The table of
        blocks is hashed: where the addresses of a run put others' blocks on the early one's place, which is one run in
        sixteen, another run is asked."""
        sizes = set()
        for _ in range(4):
            result = self.record([workload("allocating"), "share", "2", "60", "100"], options)
            self.assertEqual(result.status, 0, result.stderr)
            with sqlite3.connect(result.profile) as database:
                sizes = {row[0] for row in database.execute("SELECT bytes FROM block")}
            if EARLY in sizes:
                break
        warnings = [warning["code"] for warning in self.report(result.profile)["warnings"]]
        return sizes, warnings.count("small_blocks_unnamed")

    def test_small_blocks_are_left_out_and_those_from_before_keep_their_names(self):
        sizes, said = self.blocks()
        self.assertEqual(said, 1)
        self.assertIn(EARLY, sizes)
        self.assertNotIn(LATE, sizes)

    def test_all_are_listed_where_the_user_wants_it(self):
        sizes, said = self.blocks("--heap-threshold", "1")
        self.assertEqual(said, 0)
        self.assertIn(EARLY, sizes)
        self.assertIn(LATE, sizes)

    def test_a_limit_of_memory_that_leaves_no_room_for_the_table_is_named(self):
        program = f"ulimit -v 200000; exec {workload('allocating')} map 1 1 20"
        result = self.record(["sh", "-c", program])
        self.assertEqual(result.status, 0, result.stderr)
        codes = {warning["code"] for warning in self.report(result.profile)["warnings"]}
        self.assertIn("blocks_without_memory", codes)


if __name__ == "__main__":
    harness.main()
