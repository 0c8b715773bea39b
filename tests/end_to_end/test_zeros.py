# SPDX-License-Identifier: Apache-2.0
"""A figure that nothing measured is null in a report, and the check for that finds one that is 0."""

import copy

import harness

WAITS = dict.fromkeys(("committing", "fpu", "l1d", "l2", "l3", "memory", "data", "frontend", "branch", "lock", "barrier",
                       "condition", "io", "blocked", "runnable", "kernel"))
LOOP = {"id": 1, "function": "work", "samples": 10, "counters": None, "waited": None, "kernel_s": 0.0,
        "waits": {**WAITS, "fpu": 0.0, "data": 0.5, "unattributed": 0.0, "notes": []},
        "threads": [{"thread": 0, "waiting_s": None}],
        "busy": {"memory": None, "fpu": {"seconds": 0.0}, "reasons": {}},
        "rates": {"flops_per_s": 0.0, "bytes_per_s": None}, "performance": {"lines": {"l2": None, "l3": None, "memory": None}}}
REPORT = {"machine": {"calibration": None}, "filter": None, "waits": None, "waits_measured": False, "counters": None,
          "threads": [{"index": 0, "cpu_s": 1.0, "kernel_share": 0.0,
                       "waits": {**WAITS, "fpu": 0.0, "data": 0.5, "blocked": 0.0, "kernel": 0.0, "unattributed": 0.5}}],
          "loops": [LOOP],
          "regions": [{"path": "all", "cpu_s": 1.0, "samples": 10, "waits": {**WAITS, "blocked": 0.0}, "threads": []}]}


class ZerosByDefault(harness.unittest.TestCase):
    def faults_with(self, change):
        report = copy.deepcopy(REPORT)
        change(report)
        return harness.zeros_by_default(report)

    def test_a_measured_zero_is_none(self):
        self.assertEqual(harness.zeros_by_default(REPORT), [])

    def test_each_class_that_nothing_measured_is_found(self):
        for name in ("committing", "frontend", "branch", "l2", "memory", "lock", "io", "runnable"):
            self.assertEqual(self.faults_with(lambda report, name=name: report["threads"][0]["waits"].update({name: 0.0})),
                             [f"thread 0: {name} is 0, and nothing measured it"])
        for name in ("committing", "frontend", "branch", "l3", "barrier", "io", "blocked", "runnable"):
            self.assertEqual(self.faults_with(lambda report, name=name: report["loops"][0]["waits"].update({name: 0.0})),
                             [f"loop 1 (work): {name} is 0, and nothing measured it"])
        self.assertEqual(len(self.faults_with(lambda report: report["regions"][0]["waits"].update({"branch": 0.0}))), 1)
        self.assertEqual(len(self.faults_with(lambda report: report["loops"][0].update(samples=0))), 1)

    def test_busy_times_and_waits_of_loops(self):
        self.assertEqual(self.faults_with(lambda report: report["loops"][0]["busy"].update(memory={"seconds": 0.0})),
                         ["loop 1 (work), busy memory: seconds is 0, and nothing measured it"])
        self.assertEqual(self.faults_with(lambda report: report["loops"][0]["threads"][0].update(waiting_s=0.0)),
                         ["loop 1 (work), thread 0: waiting_s is 0, and nothing measured it"])

    def test_a_view_without_a_part_does_not_say_what_that_measured(self):
        report = {name: part for name, part in REPORT.items() if name not in ("loops", "counters", "regions")}
        self.assertEqual(harness.zeros_by_default(report), [])


if __name__ == "__main__":
    harness.main()
