# SPDX-License-Identifier: Apache-2.0
"""The first finding about an exchange names what a program's author wrote: a source line, an object and threads."""

import re

import harness
from harness import needs_watchpoints

PROGRAMS = {
    "ping_pong": ["--seconds", "1", "--wait", "yield"],
    "ring": ["--seconds", "1", "--threads", "2"],
    "halo_exchange": ["--iterations", "20000", "--threads", "2"],
    "false_sharing": ["--seconds", "1"],
    "one_writer_many_readers": ["--seconds", "1", "--threads", "2"],
    "migrating_object": ["--seconds", "1", "--threads", "2"],
    "pipeline": ["--seconds", "1", "--threads", "2"],
    "mixed": ["--seconds", "1"],
    "openmp_reduction": ["--seconds", "1", "--threads", "2"],
    "all_to_all": ["--seconds", "1", "--threads", "2"],
    # Its accesses are libc's, in its locks: whose they are is told by the lowest words of stacks.
    "work_stealing": ["--seconds", "1", "--threads", "2"],
    # Its barrier is a variable on main's stack, aligned to lines.
    "reduction_tree": ["--seconds", "1", "--threads", "2"],
    "processes": ["--seconds", "1", "--threads", "2"],
    "clone_threads": [],
    "brief_threads": ["--seconds", "1"],
    "blocks": ["--seconds", "1"],
}
NAMELESS = re.compile(r"memory at |memory that has no name|heap block of |stack of thread|data of |thread-local storage of ")


@harness.verify("how much was seen decides whether the matrix is close")
class FirstFindings(harness.Case):
    @needs_watchpoints
    def test_names_are_the_programs_own(self):
        for name, arguments in PROGRAMS.items():
            with self.subTest(name):
                report, _ = self.observe(name, *arguments)
                finding = next((f for f in report["findings"] if f["object"]), report["findings"][0])
                self.assertRegex(finding["consumer"] or "", rf"^({name}\.cpp|workload\.(cpp|h)|rendezvous\.h|cost_clock\.h):\d+$",
                                 finding["sentence"])
                self.assertNotRegex(finding["object"] or "memory at ", NAMELESS, finding["sentence"])
                self.assertRegex(finding["sentence"], r"^(Threads? \d|\d+ threads)")


if __name__ == "__main__":
    harness.main()
