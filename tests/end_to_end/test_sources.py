# SPDX-License-Identifier: Apache-2.0
"""Samples of memory events, by an event that every machine has: a page fault has an address, and its number is known."""

import json
import sqlite3
import sys

import harness

# Touches pages for the first time again and again; tells where they are and how often it did.
FAULTING = """
import ctypes, json, mmap, time
size = 4 << 20
memory = mmap.mmap(-1, size)
memory.madvise(mmap.MADV_NOHUGEPAGE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
faults = 0
end = time.monotonic() + 1
while time.monotonic() < end:
    for page in range(0, size, 4096):
        memory[page + 40] = 1
    faults += size // 4096
    ctypes.CDLL(None).madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), 4)
print(json.dumps({"address": address, "size": size, "faults": faults}))
"""
PAGE_FAULTS = "PERF_COUNT_SW_PAGE_FAULTS"
COUNTER, OCCURRENCES = 4, 4  # as docs/profile-schema.md has them


class Sources(harness.Case):
    def record(self, *arguments, **more):
        profile = self.path("run.db")
        result = harness.run([harness.CROSSTALK, "record", "-o", profile, *arguments], **more)
        result.profile = profile
        return result

    def why_no_event(self, result):
        return result.status == 125 and "perf_event_paranoid" in result.stderr

    def test_samples_stand_for_what_happened_where_it_happened(self):
        result = self.record("--budget", "50", "--event", PAGE_FAULTS, "--", sys.executable, "-c", FAULTING)
        if self.why_no_event(result):
            self.skipTest(result.stderr)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertIn("because --event requires it, the command was watched from outside", result.stderr)
        truth = json.loads(result.stdout)
        with sqlite3.connect(result.profile) as database:
            rows = database.execute(
                "SELECT m.source, m.unit, m.weight, s.address % 4096, s.access FROM sample_measurement m "
                "JOIN sample s ON s.rowid = m.sample WHERE s.address >= ? AND s.address < ?",
                (truth["address"], truth["address"] + truth["size"])).fetchall()
            choice = dict(database.execute("SELECT key, value FROM meta"))["source_choice"]
            clock = database.execute("SELECT COUNT(*) FROM sample WHERE rowid NOT IN "
                                     "(SELECT sample FROM sample_measurement)").fetchone()[0]
        self.assertGreater(len(rows), 50)
        for source, unit, _, offset, access in rows:
            self.assertEqual((source, unit, offset), (COUNTER, OCCURRENCES, 40))
            self.assertIn(access, (2, 3), "a store")
        self.assertAlmostEqual(sum(row[2] for row in rows) / truth["faults"], 1, delta=0.15)
        self.assertEqual(choice, "counter: chosen")
        self.assertGreater(clock, 5, "the clock samples, too: it says where the time goes")

    def test_the_report_names_source_and_unit(self):
        result = self.record("-q", "--event", PAGE_FAULTS, "--", sys.executable, "-c", FAULTING)
        if self.why_no_event(result):
            self.skipTest(result.stderr)
        report = harness.run([harness.CROSSTALK, "report", "--format", "json", result.profile])
        self.assertEqual(report.status, 0, report.stderr)
        sampling = json.loads(report.stdout)["sampling"]
        self.assertEqual(sampling["source"], "counter")
        units = {event["name"]: event["unit"] for event in sampling["events"]}
        self.assertEqual(units[PAGE_FAULTS], "occurrences")
        self.assertIn("ns", units.values())

    def test_an_unknown_event_is_refused_in_one_line_with_the_nearest(self):
        result = self.record("--event", "PERF_COUNT_SW_PAGE_FALTS", "--", "true")
        self.assertEqual(result.status, 125)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn("the nearest: " + PAGE_FAULTS, result.stderr)

    def test_why_it_is_the_clock_is_in_the_profile(self):
        result = self.record("-q", "--", "true")
        self.assertEqual(result.status, 0, result.stderr)
        with sqlite3.connect(result.profile) as database:
            choice = dict(database.execute("SELECT key, value FROM meta"))["source_choice"]
        self.assertIn("clock: chosen", choice)

    def test_a_line_says_which_source_and_why_not_a_better_one(self):
        result = self.record("--", "true")
        self.assertEqual(result.status, 0, result.stderr)
        said = [line for line in result.stderr.splitlines() if "samples by " in line]
        self.assertEqual(len(said), 1, result.stderr)
        self.assertRegex(said[0], r"^crosstalk: samples by (a clock(: this machine has no precise memory events \(.+\)|, not by .+: .+"
                                  r"| in place of .+)|.+, with a clock beside.*)$")
        for options in (["-q"], ["--source", "clock"]):
            self.assertNotIn("samples by", self.record(*options, "--", "true").stderr, options)


if __name__ == "__main__":
    harness.main()
