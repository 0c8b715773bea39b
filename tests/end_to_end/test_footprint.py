# SPDX-License-Identifier: Apache-2.0
"""A recorded program has the locked memory, the descriptors and nearly the size that it has alone."""

import os
import resource
import shlex
import sqlite3
import tempfile

import harness
from harness import CROSSTALK, run, workload

MB = 1024  # kB


def under(shell_limit, *arguments):
    """A command line that runs the workload under a limit (of `ulimit`)."""
    return ["sh", "-c", f"ulimit {shell_limit} && exec {shlex.quote(workload('footprint'))} " + " ".join(arguments)]


class Footprint(harness.Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.profile = os.path.join(folder.name, "run.db")

    def both(self, command, **options):
        """Returns the program's output, bare and recorded; both must end alike."""
        bare = run(command, **options)
        seen = run([CROSSTALK, "record", "-q", "-o", self.profile, "--", *command], **options)
        self.assertEqual(seen.status, bare.status, seen.stderr)
        return [[int(word) for word in result.stdout.split()] for result in (bare, seen)]

    def rows(self, query):
        with sqlite3.connect(self.profile) as database:
            return database.execute(query).fetchall()

    def messages(self):
        return {row[0] for row in self.rows("SELECT code FROM message")}

    def samples(self):
        return self.rows("SELECT COUNT(*) FROM sample")[0][0]

    def test_locked_memory_is_the_programs_own(self):
        for threads in ("0", "8"):
            bare, seen = self.both([workload("footprint"), threads, "lock"])
            # The variables that name our library may take one more page of the stack.
            self.assertIn(seen[2] - bare[2], (0, os.sysconf("SC_PAGE_SIZE") // 1024))
            self.assertGreater(self.samples(), 0)

    def test_address_space_grows_little(self):
        for threads, most in (("0", 8 * MB), ("63", 24 * MB)):
            bare, seen = self.both([workload("footprint"), threads])
            self.assertLess(seen[0] - bare[0], most)
            self.assertGreater(self.samples(), 0)

    def test_core_dumps_grow_little(self):
        with open("/proc/sys/kernel/core_pattern", encoding="ascii") as file:
            if file.read().strip() != "core":
                self.skipTest("core dumps go elsewhere; sysctl kernel.core_pattern=core")
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        kilobytes = []
        for command in ([], [CROSSTALK, "record", "-q", "-o", self.profile, "--"]):
            run([*command, workload("footprint"), "8", "core"], cwd=self.folder,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)))
            dump = next(os.path.join(self.folder, name) for name in os.listdir(self.folder) if name.startswith("core"))
            kilobytes.append(os.stat(dump).st_blocks // 2)
            os.unlink(dump)
        self.assertLess(kilobytes[1] - kilobytes[0], MB)

    def test_a_limit_of_address_space_leaves_the_program_unobserved(self):
        self.both(under("-v 30000", "0"))
        self.assertIn("processes_without_memory", self.messages())

    def test_a_roomy_limit_of_address_space_does_not(self):
        self.both(under("-v 1000000", "0"))
        self.assertNotIn("processes_without_memory", self.messages())
        self.assertGreater(self.samples(), 0)

    def test_all_descriptors_are_the_programs(self):
        for limit, held in (("-n 512", False), ("-Sn 512", True)):
            bare, seen = self.both(under(limit, "8", "open"))
            self.assertEqual(seen, bare)
            self.assertEqual(seen[1], 0, "the limit was seen raised")
            if harness.why_no_watchpoints() is None:  # nothing else asks for descriptors at the coarse clock
                self.assertEqual("few_descriptors" in self.messages(), not held)
            self.assertGreater(self.samples(), 0)


if __name__ == "__main__":
    harness.main()
