# SPDX-License-Identifier: Apache-2.0
"""record --switch-output: each file is a complete profile of its interval, and together they have what one would have."""

import contextlib
import glob
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import harness
from harness import CROSSTALK, needs_events, run, workload

# Two threads that use the processor and one that sleeps. Each tells its number and its own CPU time. They begin once
# there is the file that is named.
PROGRAM = """
import hashlib, json, os, sys, threading, time
used = {}
def work(end):
    while time.monotonic() < end: hashlib.sha256(bytes(1 << 20)).digest()
def rest(end):
    while time.monotonic() < end: time.sleep(0.02)
def run(what):
    while sys.argv[2:] and not os.path.exists(sys.argv[2]): time.sleep(0.02)
    what(time.monotonic() + float(sys.argv[1]))
    used[threading.get_native_id()] = time.thread_time()
threads = [threading.Thread(target=run, args=(what,)) for what in (work, work, rest)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(used))
"""

# By column, rows of a file that refer to rows which it lacks.
COLUMNS = (("sample", "thread", "thread"), ("thread", "process", "process"), ("module", "process", "process"),
           ("trap", "watch", "watch"), ("sample", "watch", "watch"), ("sample", "stack", "stack"),
           ("watch", "sample_stack", "stack"), ("process", "modules_of", "process"), ("thread_creation", "stack", "stack"),
           ("sampled_wait", "thread", "thread"), ("sampled_wait", "stack", "stack"))
REFERENCES = "SELECT " + ", ".join(
    f"(SELECT count(*) FROM {table} WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT id FROM {other}))"
    for table, column, other in COLUMNS)
NONE_LACKING = [(0,) * len(COLUMNS)]


def rows(profile, query):
    with contextlib.closing(sqlite3.connect(f"file:{profile}?mode=ro", uri=True)) as database:
        return database.execute(query).fetchall()


def meta(profile):
    return dict(rows(profile, "SELECT key, value FROM meta"))


def finished(name):
    return [path for path in sorted(glob.glob(glob.escape(name) + ".*"))
            if re.fullmatch(r".*\.[0-9]{17}", path) and not os.path.exists(path + "-wal")]


class Switching(harness.Case):
    def switched(self, command, *options, interval="300ms"):
        name = self.path("run.db")
        result = run([CROSSTALK, "record", "-o", name, "--switch-output", interval, *options, *command])
        self.assertFalse(os.path.exists(name))
        self.assertFalse(glob.glob(name + ".*-wal"))
        return result, finished(name)

    def check_files(self, files):
        """They follow each other without a gap, are complete, and none claims more time than its interval has."""
        self.assertGreaterEqual(len(files), 3)
        end = None
        lost = [path for path in files if rows(path, "SELECT * FROM message WHERE code = 'records_lost'")]
        for path in files:
            facts = meta(path)
            self.assertEqual(facts["complete"], 1)
            self.assertIn(end, (None, facts["begin_ns"]))
            end = facts["end_ns"]
            if not lost:
                self.assertEqual(rows(path, REFERENCES), NONE_LACKING, path)
            report = self.report(path)
            self.assertAlmostEqual(report["duration_s"], (end - facts["begin_ns"]) / 1e9, places=6)
            for thread in report["threads"]:
                self.assertLessEqual(thread["cpu_s"] or 0, report["duration_s"] + 1e-6, (path, thread))
            self.assertGreater(report["recorder"]["cpu_s"] if "recorder" in report else facts["recorder_cpu_ns"], 0)

    def by_thread(self, files):
        """CPU time of each thread, by its number, and the sums over all rows."""
        used = {}
        for path in files:
            for tid, cpu_ns in rows(path, "SELECT tid, cpu_ns FROM thread"):
                used[tid] = used.get(tid, 0) + cpu_ns / 1e9
        return used

    def check_sums(self, files, truth):
        used = self.by_thread(files)
        for tid, cpu_s in truth.items():
            self.assertAlmostEqual(used[int(tid)], cpu_s, delta=0.05 + 0.1 * cpu_s, msg=(used, truth))
        sampled = sum(rows(path, "SELECT COALESCE(SUM(cpu_ns), 0) FROM sample")[0][0] for path in files) / 1e9
        self.assertAlmostEqual(sampled, sum(truth.values()), delta=0.05 + 0.2 * sum(truth.values()))


class OfACommand(Switching):
    def test_files_add_up_to_one_recording(self):
        command = [sys.executable, "-c", PROGRAM, "1.6"]
        whole = self.record(command, output="whole.db")
        self.check_sums([whole.profile], whole.truth)
        result, files = self.switched(["--", *command])
        self.assertEqual(result.status, 0, result.stderr)
        self.check_files(files)
        self.check_sums(files, result.truth)
        self.assertEqual([meta(path)["exit_status"] for path in files], [None] * (len(files) - 1) + [0])
        last = result.stderr.splitlines()[-1]
        self.assertIn(f"wrote {len(files)} profiles, {files[0]} to {files[-1]} (", last)
        self.assertIn(f"see the last with: crosstalk report {files[-1]}", last)
        ms = [int(os.path.basename(path)[-3:]) for path in files]
        self.assertGreater(len(set(ms)), 1, "names have milliseconds")

    def test_waits_and_regions_are_those_of_the_interval(self):
        result, files = self.switched(["--", workload("regions"), "--rounds", "30"], "--waits")
        self.assertEqual(result.status, 0, result.stderr)
        self.check_files(files)
        entries, elapsed = {}, {}
        for path in files:
            duration_ns = meta(path)["end_ns"] - meta(path)["begin_ns"]
            for name, times, ns in rows(path, "SELECT name, entries, elapsed_ns FROM thread_region JOIN region ON region = id"):
                entries[name] = entries.get(name, 0) + times
                elapsed[name] = elapsed.get(name, 0) + ns / 1e9
                self.assertLessEqual(ns, duration_ns)
            for kind, ns in rows(path, "SELECT kind, waited_ns FROM thread_wait"):
                self.assertLessEqual(ns, duration_ns, kind)
        truth = [thread["regions"]["step"] for thread in result.truth["threads"]]
        self.assertEqual(entries["step"], sum(step["entries"] for step in truth))
        self.assertAlmostEqual(elapsed["step"], sum(step["elapsed_s"] for step in truth), delta=0.1)

    def test_the_oldest_are_removed(self):
        result, files = self.switched(["--", "sleep", "1"], "--switch-max-files", "2", interval="100ms")
        self.assertEqual(result.status, 0, result.stderr)
        self.assertEqual(len(files), 2)
        self.assertRegex(result.stderr, r"wrote [0-9]+ profiles and kept the last 2, ")
        missing = run([CROSSTALK, "report", "-i", self.path("run.db")])
        self.assert_one_line_error(missing, (1,))
        self.assertIn(f"there is no such file, but record --switch-output has made '{files[1]}' and 1 before it", missing.stderr)


class OfRunningProcesses(Switching):
    def start(self, *command):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        time.sleep(0.5)
        return process

    def observations(self, files):
        """A file that ended before the attachment has no process."""
        return {process["observation"] for path in files for process in self.report(path)["processes"]}

    @harness.verify("threads that switch often have a clock for a part of the time only, drawn by chance")
    @needs_events
    def test_from_outside(self):
        name = self.path("run.db")
        process = self.start(sys.executable, "-c", PROGRAM, "1.6", self.path("begin"))
        with subprocess.Popen([CROSSTALK, "record", "-q", "-o", name, "--switch-output", "300ms", "-p",
                               str(process.pid)]) as recorder:
            harness.wait_until(lambda: [path for path in finished(name) if len(rows(path, "SELECT * FROM thread")) == 4])
            with open(self.path("begin"), "w", encoding="ascii"):
                pass
            self.assertEqual(recorder.wait(60), 0)
        files = finished(name)
        self.check_files(files)
        self.check_sums(files, json.loads(process.stdout.read()))
        self.assertEqual(self.observations(files), {"outside"})

    @needs_events
    def test_from_inside(self):
        process = self.start(workload("false_sharing"), "--seconds", "60")
        result, files = self.switched(["-p", str(process.pid), "--inject", "--duration", "1.5"])
        self.assertEqual(result.status, 0, result.stderr)
        self.check_files(files)
        self.assertEqual(self.observations(files), {"injected"})
        self.assertEqual([rows(path, "SELECT COUNT(*) FROM message WHERE code = 'brought_in'") for path in files],
                         [[(1,)]] * len(files))

    @needs_events
    def test_each_has_the_program_that_is_gone(self):
        program = self.path("gone")
        shutil.copy(workload("false_sharing"), program)
        process = self.start(program, "--seconds", "60")
        with subprocess.Popen([CROSSTALK, "record", "-q", "-o", self.path("run.db"), "--switch-output", "300ms",
                               "-p", str(process.pid)]) as recorder:
            harness.wait_until(lambda: finished(self.path("run.db")))
            os.unlink(program)
            before = len(finished(self.path("run.db")))
            harness.wait_until(lambda: len(finished(self.path("run.db"))) >= before + 3)
            recorder.send_signal(signal.SIGINT)
        files = finished(self.path("run.db"))
        kept = [rows(path, "SELECT path FROM kept_file") for path in files]
        self.assertEqual(kept[0], [])
        self.assertEqual(kept[-2:], [[(program,)]] * 2)
        self.assertTrue([row for path in files[before + 1:] for row in self.report(path)["functions"]
                         if row["module"] == program and "+0x" not in row["function"]])


class FullDisk(Switching):
    def test_is_said_once_and_files_go_on_when_there_is_room(self):
        place = self.path("disk")
        os.mkdir(place)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", place], capture_output=True, text=True,
                                 check=False)
        if mounted.returncode != 0:
            self.skipTest("a file system cannot be mounted here (run as root): " + mounted.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", place], check=False)
        name = os.path.join(place, "p.db")
        log = self.path("log")
        with open(log, "w", encoding="utf-8") as stderr, \
             subprocess.Popen([CROSSTALK, "record", "-o", name, "--switch-output", "200ms", "--", "sleep", "60"],
                              stderr=stderr) as recorder:
            self.addCleanup(recorder.kill)

            def said():
                with open(log, encoding="utf-8") as text:
                    return text.read()
            harness.wait_until(lambda: "next switch" in said() or "incomplete" in said())
            time.sleep(0.5)
            full = finished(name)
            for path in full:
                os.unlink(path)
            harness.wait_until(lambda: [path for path in finished(name) if path not in full])
            recorder.send_signal(signal.SIGTERM)
            self.assertEqual(recorder.wait(60), -signal.SIGTERM)
        warnings = [line for line in said().splitlines() if "next switch" in line or "will be incomplete" in line]
        self.assertEqual(len(warnings), 1, said())
        for path in finished(name):
            self.assertEqual(rows(path, REFERENCES), NONE_LACKING, path)


if __name__ == "__main__":
    harness.main()
