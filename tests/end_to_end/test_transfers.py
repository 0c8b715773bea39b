# SPDX-License-Identifier: Apache-2.0
"""Probes of a counter whose threads count by `lock xadd` how often the other one was there before."""

import contextlib
import sqlite3

import harness
from harness import needs_events

COUNTER_BYTES = 0xff  # of the counter's line


def changes(profile):
    """The bytes that each probe saw change, where it saw any."""
    with contextlib.closing(sqlite3.connect(f"file:{profile}?mode=ro", uri=True)) as database:
        return [row[0] for row in database.execute("SELECT changed FROM line_probe WHERE changed <> 0")]


@harness.together
class Transfers(harness.Case):
    def recorded(self, counter):
        result = self.record([harness.workload("transfers"), "--seconds", "2", "--counter", counter], ["--method", "probe"],
                             output=counter + ".db")
        self.assertEqual(result.status, 0, result.stderr)
        return result, self.report(result.profile)

    @needs_events
    def test_a_shared_counter(self):
        result, report = self.recorded("shared")
        truth = result.truth
        self.assertEqual(truth["sum"], truth["additions"])
        self.assertGreaterEqual(truth["foreign_stores"], truth["true"])
        seen = changes(result.profile)
        print(f"{truth['true']} transfers, {len(seen)} of {report['sampling']['armed']} probes saw a store")
        self.assertLessEqual(len(seen), truth["foreign_stores"], "each is another store of the other thread")
        for bytes_changed in seen:
            self.assertEqual(bytes_changed & ~COUNTER_BYTES, 0, "nobody stores to the rest of the line")
        workers = {thread["index"] for thread in report["threads"] if thread["tid"] in truth["tids"][1:]}
        for cell in report["communication"]["cells"]:
            self.assertEqual({cell["producer"], cell["consumer"]}, workers, cell)
            self.assertEqual(cell["false"]["cost_s"] or 0, 0, "both add to the same word")

    @needs_events
    def test_counters_of_their_own(self):
        result, report = self.recorded("own")
        self.assertEqual((result.truth["true"], result.truth["foreign_stores"]), (0, 0))
        self.assertEqual(changes(result.profile), [])
        self.assertEqual(report["communication"]["cells"], [])


if __name__ == "__main__":
    harness.main()
