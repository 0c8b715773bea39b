# SPDX-License-Identifier: Apache-2.0
"""Threads that wait for each other and time it: what is measured of their waits must be what their own clocks say,
by thread, kind and source line, and have its place in where their time went. Needs no PMU."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import time

import harness
from harness import workload

MAX_OFF = 0.03  # of a thread's elapsed time
KINDS = {"mutex": "mutex", "rwlock": "rwlock", "critical": "critical", "ordered": "critical", "barrier": "barrier",
         "team": "team", "region": "team", "tasks": "team", "condition": "condition", "semaphore": "semaphore", "atomic": "futex"}


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


def added_up(waits):
    return sum(value or 0 for name, value in waits.items() if name != "notes")


class Checked(harness.Case):
    program = "waiting"

    def check(self, at, rounds="150"):
        report, truth = self.observe(self.program, "--at", at, "--rounds", rounds, options=["--waits"])
        self.check_that_parts_add_up(report, truth)
        self.truth = truth
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

    def check_that_parts_add_up(self, report, truth):
        """The parts of threads' time add up to their time from beginning to end; those of loops, to their CPU time."""
        with contextlib.closing(sqlite3.connect(self.path("run.db"))) as file:
            rows = file.execute("select tid, begin_ns, end_ns from thread").fetchall()
        lived = {tid: (end - begin) * 1e-9 for tid, begin, end in rows if end}
        known = {thread["tid"]: thread["elapsed_s"] for thread in truth["threads"]}
        waits = {thread["tid"]: thread["waits"] for thread in report["threads"] if thread["waits"]}
        self.assertLessEqual(known.keys(), waits.keys())
        for tid, parts in waits.items():
            if tid in lived:
                self.assertAlmostEqual(added_up(parts), lived[tid], delta=1e-6)
            self.assertGreater(added_up(parts), known.get(tid, 0) * (1 - MAX_OFF), "of which it has timed a part")
        loops = [row for row in report["loops"] if row["waits"]]
        for row in loops:
            self.assertAlmostEqual(added_up(row["waits"]), row["cpu_s"], delta=1e-6)


class Waiting(Checked):
    def test_mutex(self):
        report, place = self.check("mutex")
        self.assertTrue(place["file"].endswith("waiting.cpp"), place)
        finding = next(finding for finding in report["findings"] if finding["kind"] == "wait")
        self.assertEqual(finding["consumer"], f"waiting.cpp:{place['line']}")
        self.assertIn("wait for the mutex", finding["sentence"])

    def test_rwlock(self):
        self.check("rwlock")

    def test_critical_section(self):
        _, place = self.check("critical")
        self.assertIsNotNone(place["loop"])

    def test_ordered_section(self):
        self.check("ordered", "60")

    def test_posix_barrier(self):
        _, place = self.check("barrier")
        self.assertTrue(place["file"].endswith("waiting.cpp"), place)

    @harness.verify("imbalance comes from samples")
    def test_barrier_of_a_team(self):
        """A parallel loop whose threads have unlike work: they are in it equally long, since they wait in it."""
        report, place = self.check("team")
        row = next(row for row in report["loops"] if row["id"] == place["loop"])
        self.assertAlmostEqual(row["waited"]["barrier"], place["waited_s"], delta=1e-6)
        work = [thread["elapsed_s"] - thread["waited_s"] for thread in self.truth["threads"]]
        known = 1 - sum(work) / len(work) / max(work)
        print(f"imbalance: found {row['shape']['imbalance']:.3f}, known {known:.3f}")
        self.assertGreater(row["shape"]["imbalance"], known / 2)
        self.assertLessEqual(row["waits"]["barrier"], row["waited"]["barrier"] + 1e-6)

    def test_end_of_parallel_regions(self):
        self.check("region")

    def test_condition_variable(self):
        self.check("condition")

    def test_semaphore(self):
        self.check("semaphore")

    @harness.verify("whether the library ever sleeps depends on how busy the machine is")
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
            harness.wait_until(lambda: harness.samples_in(profile) > 0)
            time.sleep(1)
            children = subprocess.run(["pgrep", "-P", str(recorder.pid)], capture_output=True, text=True, check=False)
            for pid in children.stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            recorder.wait(timeout=30)
        report = self.report(profile)
        self.assertGreater(sum(waited_by(report, {"barrier"}).values()), 0.2 * report["duration_s"])

    def test_the_profile_says_whether_they_are_measured(self):
        for options, said in (([], 0), (["--waits"], 1)):
            profile = self.path(f"said_{said}.db")
            result = harness.run([harness.CROSSTALK, "record", "-q", *options, "-o", profile, "--", workload("waiting"), "--at",
                                  "mutex", "--rounds", "5"])
            self.assertEqual(result.status, 0, result.stderr)
            with contextlib.closing(sqlite3.connect(profile)) as file:
                rows = file.execute("select value from meta where key = 'config.measure_waits'").fetchall()
            self.assertEqual([int(value) for value, in rows], [said])

    def test_who_waits_for_nobody_has_no_waits(self):
        report, _ = self.observe("private_only", "--seconds", "1", options=["--waits"])
        self.assertEqual([place for place in report["waiting"] if place["kind"] in ("mutex", "team")], [])
        busiest = max(report["threads"], key=lambda thread: thread["samples"])
        self.assertEqual(busiest["waits"]["lock"], 0)

    def test_they_are_measured_on_demand_only(self):
        report, _ = self.observe("waiting", "--at", "mutex", "--rounds", "150")
        self.assertEqual(report["waiting"], [])


class WaitingWithLlvm(Checked):
    """The runtime library tells of its waits (OMPT), where the program has no tool that it tells."""
    program = "waiting_llvm"

    def setUp(self):
        super().setUp()
        if not os.path.exists(workload(self.program)):
            self.skipTest("no clang++ with LLVM's OpenMP was found when this was built")

    def test_critical_section(self):
        _, place = self.check("critical")
        self.assertTrue(place["file"].endswith("waiting.cpp"), place)
        self.assertIsNotNone(place["loop"])

    def test_ordered_section(self):
        self.check("ordered", "60")

    def test_barrier_of_a_team(self):
        report, place = self.check("team")
        row = next(row for row in report["loops"] if row["id"] == place["loop"])
        self.assertAlmostEqual(row["waited"]["barrier"], place["waited_s"], delta=1e-6)

    def test_end_of_parallel_regions(self):
        _, place = self.check("region")
        self.assertTrue(place["file"].endswith("waiting.cpp"), place)

    def test_tasks_are_work_and_not_waiting(self):
        self.check("tasks")

    def test_they_are_measured_on_demand_only(self):
        report, _ = self.observe(self.program, "--at", "team", "--rounds", "20")
        self.assertEqual(report["waiting"], [])


if __name__ == "__main__":
    harness.main()
