# SPDX-License-Identifier: Apache-2.0
"""A disk that fills up: the command goes on, and what is said of the profile is what is in it."""

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess

import harness
from harness import CROSSTALK, run, workload


class FullDisk(harness.Case):
    def disk(self, kib):
        """A small file system of its own; the test is skipped where none can be mounted."""
        place = self.path("disk")
        os.mkdir(place)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", place], capture_output=True,
                                 text=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("a file system cannot be mounted here (run as root): " + mounted.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", place], check=False)
        return place

    def record_on(self, place, command, *options):
        return run([CROSSTALK, "record", "-o", os.path.join(place, "p.db"), "--period", "1ms", *options, "--", *command])

    def stored(self, place):
        """Samples and traps in the profile, read from a copy: SQLite needs room beside a log that was left."""
        for name in os.listdir(place):
            if not name.endswith("-shm"):
                shutil.copy(os.path.join(place, name), self.path(name))
        with contextlib.closing(sqlite3.connect(self.path("p.db"))) as profile:
            return [profile.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("sample", "trap")]

    def test_says_what_is_in_the_profile(self):
        place = self.disk(512)
        recorded = self.record_on(place, ["sh", "-c", f"{workload('false_sharing')} --seconds 4 >/dev/null; exit 5"])
        self.assertEqual(recorded.status, 5, recorded.stderr)
        said = re.search(r"has only (\d+) of (\d+) samples and (\d+) of (\d+) accesses trapped: .*full", recorded.stderr)
        self.assertIsNotNone(said, recorded.stderr)
        self.assertNotIn("wrote", recorded.stderr)
        samples, all_samples, traps, _ = (int(number) for number in said.groups())
        self.assertEqual([samples, traps], self.stored(place))
        self.assertLess(samples, all_samples)

    def test_too_small_for_a_profile(self):
        place = self.disk(16)
        with open(os.path.join(place, "p.db"), "w", encoding="ascii") as previous:
            previous.write("what was there")
        recorded = self.record_on(place, ["touch", self.path("started")], "-q")  # no warnings of what the machine lacks
        self.assert_one_line_error(recorded, (125,))
        self.assertFalse(os.path.exists(self.path("started")))
        self.assertEqual(os.listdir(place), ["p.db"])
        with open(os.path.join(place, "p.db"), encoding="ascii") as previous:
            self.assertEqual(previous.read(), "what was there")

    @harness.needs_events
    def test_too_small_for_a_live_view(self):
        shown = run([CROSSTALK, "top", "--once", "--", workload("private_only"), "--seconds", "1"],
                    env={**os.environ, "TMPDIR": self.disk(16)})
        self.assert_one_line_error(shown, (1, 125))
        self.assertIn("No space left on device; name another place by the variable TMPDIR", shown.stderr)


if __name__ == "__main__":
    harness.main()
