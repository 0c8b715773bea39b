# SPDX-License-Identifier: Apache-2.0
"""Threads that wait for each other and time it: what is measured of their waits must be what their own clocks say,
by thread, kind and source line, and have its place in where their time went. Needs no PMU."""

import contextlib
import glob
import json
import linecache
import os
import signal
import sqlite3
import subprocess
import sys
import time
from unittest import mock

import harness
from harness import needs_events, workload

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


class FromOutside(harness.Case):
    """Looks at threads find them asleep on futexes: for how long, in which call, and on which object."""

    def recorded(self, at, rounds):
        report, truth = self.observe("waiting", "--at", at, "--rounds", rounds, options=["--observer", "--waits"])
        self.check_times(at, report, truth, [1] * len(truth["threads"]))
        return next(place for place in report["waiting"] if place["kind"] == KINDS[at])

    def check_times(self, at, report, truth, parts, awake=False):
        """`parts`: of each thread's time, that were observed. Time that a thread is ready to run is no sleep, so it may miss from
        what is found; `awake`: so may time on the processor."""
        found = waited_by(report, {KINDS[at]})
        places = [place for place in report["waiting"] if place["kind"] == KINDS[at]]
        by_tid = {thread["tid"]: thread for thread in report["threads"]}
        ready = [by_tid[thread["tid"]]["waits"]["runnable"] or 0 for thread in truth["threads"]]
        if not places and sum(ready) > sum(part * thread["elapsed_s"] for part, thread in zip(parts, truth["threads"])) / 2:
            self.skipTest("this machine is too busy: threads that wait are ready to run, not asleep")
        self.assertTrue(places, report["waiting"])
        for place in places:
            low, high = place["waited_ci95"]
            self.assertLessEqual(low, place["waited_s"])
            self.assertLessEqual(place["waited_s"], high)
            self.assertGreater(place["looks"], 0)
            self.assertIsNone(place["count"])
        unsure_s = sum(place["waited_ci95"][1] - place["waited_s"] for place in places)
        for thread, part, ready_s in zip(truth["threads"], parts, ready):
            mine, known_s = found.get(thread["tid"], 0), part * thread["waited_s"]
            slack_s = unsure_s + MAX_OFF * part * thread["elapsed_s"]
            print(f"{at}: found {mine:.3f} s, known {known_s:.3f} s of {part * thread['elapsed_s']:.3f} s, +-{unsure_s:.3f} s; "
                  f"ready to run for {ready_s:.3f} s")
            self.assertLess(mine, known_s + slack_s)
            if not awake:
                self.assertGreater(mine, known_s - slack_s - ready_s)

    def check_place(self, place, code, name):
        self.assertIn(code, linecache.getline(place["file"], place["line"]), place)
        self.assertTrue(any(harness.object_named({"name": each["object"]}, name) for each in place["objects"]), place["objects"])

    @needs_events
    def test_mutex(self):
        report, truth = self.observe("waiting", "--at", "mutex", "--rounds", "600", options=["--observer", "--waits"])
        self.check_times("mutex", report, truth, [1, 1])
        place = next(place for place in report["waiting"] if place["kind"] == "mutex")
        self.check_place(place, "a_mutex.lock()", "a_mutex")
        self.assertIn("mutex", place["through"])
        if place["waited_s"] < 0.1 * sum(thread["elapsed_s"] for thread in truth["threads"]):
            return  # on a busy machine threads are ready to run, not asleep
        finding = next(finding for finding in report["findings"] if finding["kind"] == "wait")
        self.assertIn("a_mutex", finding["object"])
        self.assertIn("asleep (sampled from outside)", finding["sentence"])
        self.assertEqual(finding["consumer"], f"waiting.cpp:{place['line']}")

    @needs_events
    def test_rwlock(self):
        """The function that takes it jumps there, so that the call is its caller's."""
        self.check_place(self.recorded("rwlock", "600"), "wait();", "a_rwlock")

    @needs_events
    def test_posix_barrier(self):
        self.check_place(self.recorded("barrier", "400"), "pthread_barrier_wait(&a_barrier)", "a_barrier")

    @needs_events
    def test_condition_variable(self):
        self.check_place(self.recorded("condition", "600"), "a_condition.wait(lock)", "a_condition")

    @needs_events
    def test_semaphore(self):
        self.check_place(self.recorded("semaphore", "600"), "sem_wait(", "turns")

    @needs_events
    def test_end_of_parallel_regions(self):
        """GNU's library jumps to this wait. The thread that begins the regions is known to wait at their ends."""
        with mock.patch.dict(os.environ, {"OMP_WAIT_POLICY": "passive"}):
            report, truth = self.observe("waiting", "--at", "region", "--rounds", "600", options=["--observer", "--waits"])
        first = truth["threads"][0]
        by_tid = {thread["tid"]: thread for thread in report["threads"]}
        ready_s = by_tid[first["tid"]]["waits"]["runnable"] or 0
        found_s = waited_by(report, {"team"}).get(first["tid"], 0)
        print(f"found {found_s:.3f} s, known {first['waited_s']:.3f} s; ready to run for {ready_s:.3f} s")
        if ready_s > first["elapsed_s"] / 2:
            self.skipTest("this machine is too busy: threads that wait are ready to run, not asleep")
        slack_s = MAX_OFF * first["elapsed_s"]
        self.assertLess(found_s, first["waited_s"] + slack_s)
        self.assertGreater(found_s, first["waited_s"] - slack_s - ready_s)
        place = next(place for place in report["waiting"] if place["kind"] == "team")
        self.assertIn("GOMP_parallel", place["through"])

    @needs_events
    def test_atomic_wait(self):
        """The library yields some times before it sleeps: of that, looks see nothing."""
        report, truth = self.observe("waiting", "--at", "atomic", "--rounds", "600", options=["--observer", "--waits"])
        self.check_times("atomic", report, truth, [1, 1], awake=True)
        place = next(place for place in report["waiting"] if place["kind"] == "futex" and place["line"])
        self.assertTrue(place["file"].endswith("waiting.cpp"), place)

    @needs_events
    def test_a_running_program(self):
        """What is found in the time of the attachment is what the threads' own clocks say of all of their time."""
        with subprocess.Popen([workload("waiting"), "--at", "mutex", "--rounds", "1500"], stdout=subprocess.PIPE,
                              text=True) as process:
            self.addCleanup(process.kill)
            time.sleep(0.5)
            profile = self.path("run.db")
            result = harness.run([harness.CROSSTALK, "record", "-q", "--waits", "-o", profile, "-p", str(process.pid),
                                  "--duration", "3"])
            self.assertEqual(result.status, 0, result.stderr)
            truth = json.loads(process.communicate(timeout=120)[0])
        report = self.report(profile)
        self.check_times("mutex", report, truth, [report["duration_s"] / thread["elapsed_s"] for thread in truth["threads"]])
        self.check_place(next(place for place in report["waiting"] if place["kind"] == "mutex"), "a_mutex.lock()", "a_mutex")

    @harness.verify("looks that are told as a profile ends may be in the next one")
    @needs_events
    def test_each_of_several_profiles_has_its_own(self):
        """Two threads are asleep all the time: in each profile for as long as it lasts, or a little less."""
        program = ("import threading, time\n"
                   "go = threading.Semaphore(0)\n"
                   "two = [threading.Thread(target=go.acquire) for _ in range(2)]\n"
                   "[thread.start() for thread in two]\n"
                   "time.sleep(3)\n"
                   "go.release(2)\n"
                   "[thread.join() for thread in two]\n")
        result = harness.run([harness.CROSSTALK, "record", "-q", "--observer", "--waits", "--switch-output", "600ms", "-o",
                              self.path("several.db"), "--", sys.executable, "-c", program])
        self.assertEqual(result.status, 0, result.stderr)
        inner = sorted(glob.glob(self.path("several.db.*")))[1:-1]
        self.assertGreater(len(inner), 1)
        for profile in inner:
            report = self.report(profile)
            waited = sum(place["waited_s"] for place in report["waiting"])
            print(f"{waited:.3f} s of {report['duration_s']:.3f} s")
            self.assertGreater(waited, 0)
            self.assertLess(waited, 3 * report["duration_s"])

    @needs_events
    def test_crowds_are_looked_at_seldom(self):
        """Few looks fall on each of many threads: the time before the first and after the last one counts, too."""
        program = ("import threading, time\n"
                   "go, begin = threading.Semaphore(0), time.monotonic()\n"
                   "crowd = [threading.Thread(target=go.acquire) for _ in range(100)]\n"
                   "[thread.start() for thread in crowd]\n"
                   "time.sleep(1)\n"
                   "go.release(100)\n"
                   "[thread.join() for thread in crowd]\n"
                   "print(time.monotonic() - begin)\n")
        profile = self.path("crowd.db")
        result = harness.run([harness.CROSSTALK, "record", "-q", "--observer", "--waits", "-o", profile, "--", sys.executable, "-c", program])
        self.assertEqual(result.status, 0, result.stderr)
        report = self.report(profile)
        waited = sum(place["waited_s"] for place in report["waiting"])
        low = sum(place["waited_ci95"][0] for place in report["waiting"])
        lived = 100 * float(result.stdout)
        print(f"found {waited:.1f} s, from {low:.1f} s, of 100 s to {lived:.1f} s")
        self.assertGreater(waited, 60)
        self.assertLess(low, lived)

    @needs_events
    def test_who_waits_for_nobody_has_no_waits(self):
        report, _ = self.observe("private_only", "--seconds", "1", options=["--observer", "--waits"])
        for place in report["waiting"]:
            self.assertIn("join", place["through"] or "", "of the thread that made the others")
        busiest = max(report["threads"], key=lambda thread: thread["samples"])
        self.assertIsNone(busiest["waits"]["lock"])
        self.assertNotIn("wait", {finding["kind"] for finding in report["findings"]})

    @needs_events
    def test_they_are_looked_at_on_demand_only(self):
        report, _ = self.observe("waiting", "--at", "mutex", "--rounds", "150", options=["--observer"])
        self.assertEqual(report["waiting"], [])
        with contextlib.closing(sqlite3.connect(self.path("run.db"))) as file:
            self.assertEqual(file.execute("select count(*) from sampled_wait").fetchone(), (0,))


if __name__ == "__main__":
    harness.main()
