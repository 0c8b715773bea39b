# SPDX-License-Identifier: Apache-2.0
"""Threads appear under the names that they have, not under those they were born with."""

import harness


class ThreadNames(harness.Case):
    def test_renamed_threads_have_their_last_names(self):
        report, truth = self.observe("renamed_threads")
        names = {str(thread["tid"]): thread["name"] for thread in report["threads"]}
        self.assertEqual(names, truth["names"])

    def test_an_exec_renames_no_thread_of_the_program_before(self):
        """The second program cannot be observed, so that the thread is taken for that of the first to its end."""
        result = self.record(["bash", "-c", f"sleep 0.3; exec '{harness.workload('unobservable')}/static' 2"])
        self.assertEqual(result.status, 3, result.stderr)
        self.assertIn("bash", [thread["name"] for thread in self.report(result.profile)["threads"]])


if __name__ == "__main__":
    harness.main()
