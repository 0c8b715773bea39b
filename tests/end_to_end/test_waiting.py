# SPDX-License-Identifier: Apache-2.0
"""Threads that wait for each other and time it: what is measured of their waits must be what their own clocks say,
by thread, kind and source line, and have its place in where their time went. Needs no PMU."""

import os
import signal
import subprocess
import time

import harness
from harness import workload

MAX_OFF = 0.03  # of a thread's elapsed time
KINDS = {"mutex": "mutex", "rwlock": "rwlock", "critical": "critical", "barrier": "barrier", "team": "team",
         "region": "team", "condition": "condition", "semaphore": "semaphore", "atomic": "futex"}


def waited_by(report, kinds):
    """Seconds by kernel thread id, at places of those kinds."""
    tid_of = {thread["index"]: thread["tid"] for thread in report["threads"]}
    sums = {}
    for place in report["waiting"]:
        if place["kind"] in kinds:
            for thread in place["threads"]:
                tid = tid_of[thread["thread"]]
                sums[tid] = sums.get(tid, 0) + thread["waited_s"]
    return sums


class Waiting(harness.Case):
    def check(self, at, rounds="150"):
        report, truth = self.observe("waiting", "--at", at, "--rounds", rounds, options=["--waits"])
        found = waited_by(report, {KINDS[at]})
        by_tid = {thread["tid"]: thread for thread in report["threads"]}
        for thread in truth["threads"]:
            off = (found.get(thread["tid"], 0) - thread["waited_s"]) / thread["elapsed_s"]
            accounted = by_tid[thread["tid"]]["waits"][truth["class"]]
            print(f"{at}: found {found.get(thread['tid'], 0):.4f} s, known {thread['waited_s']:.4f} s of "
                  f"{thread['elapsed_s']:.3f} s: off by {off:+.2%}; accounted for {accounted:.4f} s")
            self.assertLess(abs(off), MAX_OFF)
            self.assertAlmostEqual(accounted, found.get(thread["tid"], 0), delta=1e-6)
            waits = by_tid[thread["tid"]]["waits"]
            self.assertTrue(all((value or 0) >= 0 for name, value in waits.items() if name != "notes"), waits)
        place = next(place for place in report["waiting"] if place["kind"] == KINDS[at])
        return report, place

    def test_mutex(self):
        _, place = self.check("mutex")
        self.assertTrue(place["file"].endswith("waiting.cpp"), place)

    def test_rwlock(self):
        self.check("rwlock")

    def test_critical_section(self):
        _, place = self.check("critical")
        self.assertIsNotNone(place["loop"])

    def test_posix_barrier(self):
        _, place = self.check("barrier")
        self.assertTrue(place["file"].endswith("waiting.cpp"), place)

    def test_barrier_of_a_team(self):
        """A parallel loop whose threads have unlike work."""
        report, place = self.check("team")
        row = next(row for row in report["loops"] if row["id"] == place["loop"])
        self.assertAlmostEqual(row["waited"]["barrier"], place["waited_s"], delta=1e-6)

    def test_end_of_parallel_regions(self):
        self.check("region")

    def test_condition_variable(self):
        self.check("condition")

    def test_semaphore(self):
        self.check("semaphore")

    def test_atomic_wait(self):
        """The library yields some times before it sleeps, which is no call that can be measured."""
        report, truth = self.observe("waiting", "--at", "atomic", "--rounds", "150", options=["--waits"])
        found = waited_by(report, {"futex"})
        for thread in truth["threads"]:
            print(f"atomic: found {found.get(thread['tid'], 0):.4f} s, known {thread['waited_s']:.4f} s")
            self.assertLess(found.get(thread["tid"], 0), thread["waited_s"] + MAX_OFF * thread["elapsed_s"])
        self.assertGreater(sum(found.values()), 0)

    def test_who_waits_when_the_process_is_killed_has_waited_until_then(self):
        profile = self.path("killed.db")
        sleeper = workload("waiting")
        with subprocess.Popen([harness.CROSSTALK, "record", "-q", "--waits", "-o", profile, "--", sleeper, "--at", "barrier",
                               "--rounds", "100000"], stdout=subprocess.DEVNULL) as recorder:
            time.sleep(2)
            children = subprocess.run(["pgrep", "-P", str(recorder.pid)], capture_output=True, text=True, check=False)
            for pid in children.stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            recorder.wait(timeout=30)
        report = self.report(profile)
        self.assertGreater(sum(waited_by(report, {"barrier"}).values()), 0.2 * report["duration_s"])

    def test_who_waits_for_nobody_has_no_waits(self):
        report, _ = self.observe("private_only", "--seconds", "1", options=["--waits"])
        self.assertEqual([place for place in report["waiting"] if place["kind"] in ("mutex", "team")], [])
        waits = next(thread["waits"] for thread in report["threads"] if thread["samples"] > 20)
        self.assertEqual(waits["lock"], 0)

    def test_they_are_measured_on_demand_only(self):
        report, _ = self.observe("waiting", "--at", "mutex", "--rounds", "150")
        self.assertEqual(report["waiting"], [])


if __name__ == "__main__":
    harness.main()
