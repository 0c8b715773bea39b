# SPDX-License-Identifier: Apache-2.0
"""Code that is made at run time: its names and lines are taken from a jitdump, wherever the process had it mapped."""

import os

import harness
from harness import workload


@harness.together
class CompiledCode(harness.Case):
    def record_in(self, folder, names):
        os.makedirs(folder)
        result = self.record([workload("compiled_code"), "--names", names], cwd=folder)
        self.assertEqual(result.status, 0, result.stderr)
        return self.report(result.profile)

    @staticmethod
    def warnings(report):
        return {warning["code"]: warning["message"] for warning in report["warnings"]}

    def test_names_and_lines_of_a_jitdump(self):
        report = self.record_in(self.path("somewhere"), "dump")
        self.assertEqual(report["functions"][0]["function"], "Counting.count")
        self.assertNotIn("code_without_names", self.warnings(report))
        if harness.why_no_watchpoints() is None:
            pair = report["line_pairs"][0]
            self.assertEqual((pair["consumer"]["function"], pair["consumer"]["file"], pair["consumer"]["line"]),
                             ("Counting.count", "/made/Counting.java", 7))

    def test_without_names_the_report_says_where_they_come_from(self):
        report = self.record_in(self.path("elsewhere"), "none")
        self.assertIn("perf-PID.map", self.warnings(report)["code_without_names"])
        self.assertIn("compiled_code", self.warnings(report)["code_without_names"])


if __name__ == "__main__":
    harness.main()
