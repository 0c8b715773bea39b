# SPDX-License-Identifier: Apache-2.0
"""Running processes are watched from outside: what is found is right, and nothing of them differs."""

import contextlib
import ctypes
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

import harness
from harness import needs_events, needs_watchpoints

MAX_DISTANCE = 0.35
MAX_VERDICT_ERROR = 0.20
STARTED_S = 0.5

# Threads that begin a second after the process, and one that ends. Each tells its number and its own CPU time.
LATE_THREADS = """
import hashlib, json, threading, time
used = {}
def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        hashlib.sha256(bytes(1 << 20)).digest()
    used[threading.get_native_id()] = time.thread_time()
time.sleep(1.5)
threads = [threading.Thread(target=work, args=(seconds,)) for seconds in (0.5, 2.5)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(used))
"""


# Computes, executes itself, computes again, and tells its CPU time before and after.
TWICE = """
import os, sys, time
end = time.thread_time() + 0.5
while time.thread_time() < end: pass
if sys.argv[1:]: os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
print(time.process_time())
"""


# Threads that live for about a millisecond, and then a second in which what was seen can be reviewed. Tells its CPU time.
BRIEF_THREADS = """
import threading, time
def work():
    for _ in range(10000): pass
end = time.monotonic() + 1.5
while time.monotonic() < end:
    threads = [threading.Thread(target=work) for _ in range(10)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
time.sleep(1.5)
print(time.process_time())
"""


# Ends its first thread by a system call, which leaves a zombie: the others go on.
FIRST_THREAD_ENDS = """
import ctypes, hashlib, os, sys, threading, time
def work(end = time.monotonic() + {seconds}):
    while time.monotonic() < end:
        hashlib.sha256(bytes(1 << 20)).digest()
    os._exit(0)
for _ in range(2): threading.Thread(target=work).start()
time.sleep({delay})
ctypes.CDLL(None).syscall(60, 0)
"""


class Attachment(harness.Case):
    def start(self, command):
        """The command, running; it does not outlive the test."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        time.sleep(STARTED_S)
        return process

    def attach(self, pid, *options, output="run.db", **more):
        profile = self.path(output)
        result = harness.run([harness.CROSSTALK, "record", "-q", "-o", profile, "-p", str(pid), *options], **more)
        result.profile = profile
        return result

    def observe_running(self, command, seconds):
        """Attaches to the command for so long; the report, and what the command printed at its own end."""
        process = self.start(command)
        result = self.attach(process.pid, "--duration", str(seconds))
        self.assertEqual(result.status, 0, result.stderr)
        out, err = process.communicate(timeout=120)
        self.assertEqual((process.returncode, err), (0, ""))
        return self.report(result.profile), out


class Sharing(Attachment):
    def observe_workload(self, name, arguments, seconds):
        report, out = self.observe_running([harness.workload(name), "--seconds", str(2 * seconds + 2), *arguments], seconds)
        return report, json.loads(out.strip().splitlines()[-1])

    def check(self, name, *arguments, seconds=4):
        report, truth = self.enough(name, lambda factor: self.observe_workload(name, arguments, factor * seconds))
        costs = harness.cells_by_truth(report, truth)
        self.assertTrue(costs, "no communication was found")
        print(f"{name}: distance {harness.matrix_distance(costs, truth):.3f}, true {harness.true_share(costs)}")
        self.assertLessEqual(harness.matrix_distance(costs, truth), MAX_DISTANCE, costs)
        self.check_directions(costs, truth)
        self.assertAlmostEqual(harness.true_share(costs), harness.known_true_share(truth), delta=MAX_VERDICT_ERROR)
        self.assertTrue(harness.object_named(report["objects"][0], truth["object"]), report["objects"][0]["name"])
        self.assertIn("watched_from_outside", {warning["code"] for warning in report["warnings"]})
        self.assertIsNone(report["exit_status"])
        self.assertEqual([each["observation"] for each in report["processes"]], ["outside"])
        return report

    @needs_watchpoints
    def test_ping_pong(self):
        report = self.check("ping_pong")
        self.assertIn("ping_pong", report["command"])
        self.assertEqual(os.path.basename(report["lines"][0]["file"]), "ping_pong.cpp")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_false_sharing(self):
        report = self.check("false_sharing")
        loop = max(report["loops"], key=lambda row: row["self_s"])
        self.assertEqual(os.path.basename(loop["file"]), "false_sharing.cpp")
        self.assertGreater(loop["share"], 0.8)

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_false_sharing_in_a_static_program(self):
        self.check("static/false_sharing")

    @needs_watchpoints
    def test_nothing_is_found_where_nothing_is_shared(self):
        report, _ = self.observe_running([harness.workload("false_sharing"), "--seconds", "8", "--stride", "64"], 4)
        self.assertGreater(report["sampling"]["armed"], 5)
        self.assertLess(harness.total_cost(report), 0.02 * harness.cpu_seconds(report))


@harness.verify("how much was seen decides whether the matrix is close")
class Mixed(Attachment):
    @needs_watchpoints
    def test_both_sorts_of_sharing(self):
        report, out = self.observe_running([harness.workload("mixed"), "--seconds", "14", "--true-tenths", "5"], 6)
        truth = json.loads(out.strip().splitlines()[-1])
        self.assertTrue([entry for entry in report["objects"]
                         if any(harness.object_named(entry, name) for name in (*truth["data"], *truth["sync"]))])
        index = {thread["index"]: thread["tid"] for thread in report["threads"]}
        pairs = {(index[cell["producer"]], index[cell["consumer"]]) for cell in report["communication"]["cells"]}
        one, other = truth["tids"][1:3]
        self.assertEqual(pairs, {(one, other), (other, one)})


@harness.verify("how much was seen decides whether the matrix is close")
class Several(Attachment):
    """Several processes in one session."""

    def children(self, pid):
        def parent(other):
            try:
                with open(f"/proc/{other}/stat", encoding="utf-8") as stat:
                    return int(stat.read().rpartition(")")[2].split()[1])
            except OSError:
                return 0
        return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and parent(entry) == pid]

    def observe_exchange(self, memory, attach, options, seconds):
        process = self.start([harness.workload("processes"), "--threads", "2", "--memory", memory, "--seconds",
                              str(seconds)])
        result = self.attach(attach(process.pid), *options)
        self.assertEqual(result.status, 0, result.stderr)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        return self.report(result.profile), json.loads(out.strip().splitlines()[-1])

    def check_exchange(self, memory, attach, *options, parent=False):
        report, truth = self.enough(memory, lambda factor: self.observe_exchange(memory, attach, options, 6 * factor))
        costs = harness.cells_by_truth(report, truth)
        print(f"{memory}: distance {harness.matrix_distance(costs, truth):.3f}, true {harness.true_share(costs)}")
        self.assertLessEqual(harness.matrix_distance(costs, truth), MAX_DISTANCE, costs)
        self.check_directions(costs, truth)
        self.assertGreater(harness.true_share(costs), 0.8, costs)
        self.assertEqual([entry["kind"] for entry in report["objects"]], ["shared"])
        self.assertEqual(os.path.basename(report["lines"][0]["file"]), truth["file"])
        self.assertEqual(len(report["processes"]), 3 if parent else 2)
        return report, truth

    def both_children(self, pid):
        pids = self.children(pid)
        self.assertEqual(len(pids), 2)
        return ",".join(map(str, pids))

    @needs_watchpoints
    def test_what_processes_exchange_at_different_addresses(self):
        report, truth = self.check_exchange("memfd", self.both_children)
        self.assertGreater(len(set(truth["addresses"])), 1, truth["addresses"])
        self.assertEqual(report["objects"][0]["name"], "memfd table")

    @needs_watchpoints
    def test_what_processes_exchange_in_a_segment(self):
        report, _ = self.check_exchange("sysv", self.both_children)
        self.assertEqual(report["objects"][0]["name"], "System V segment 0x00000000")

    @needs_watchpoints
    def test_what_the_children_of_a_process_exchange(self):
        self.check_exchange("anonymous", str, "--children", parent=True)

    @needs_watchpoints
    def test_processes_end_one_by_one(self):
        program = harness.workload("false_sharing")
        first, second = (self.start([program, "--seconds", seconds]) for seconds in ("3", "9"))
        result = self.attach(f"{first.pid},{second.pid}")
        self.assertEqual(result.status, 0, result.stderr)
        self.assertEqual([process.wait(timeout=30) for process in (first, second)], [0, 0])
        report = self.report(result.profile)
        self.assertEqual(report["command"], f"{program} --seconds 3 & {program} --seconds 9")
        self.assertEqual({thread["pid"] for thread in report["threads"] if (thread["cpu_s"] or 0) > 0.1},
                         {first.pid, second.pid})
        pid = {thread["index"]: thread["pid"] for thread in report["threads"]}
        cells = report["communication"]["cells"]
        self.assertTrue(cells)
        for cell in cells:  # processes that share no memory
            self.assertEqual(pid[cell["producer"]], pid[cell["consumer"]], cell)
        with contextlib.closing(sqlite3.connect(f"file:{result.profile}?mode=ro", uri=True)) as database:
            ends = dict(database.execute("SELECT pid, end_ns FROM process"))
        self.assertGreater(ends[second.pid] - ends[first.pid], 1e9)

    @needs_watchpoints
    def test_processes_that_are_started_meanwhile(self):
        program = harness.workload("false_sharing")
        process = self.start(["/bin/sh", "-c", f"sleep 2; {program} --seconds 3 & {program} --seconds 9; wait"])
        result = self.attach(process.pid, "--children")
        self.assertEqual(result.status, 0, result.stderr)
        self.assertEqual(process.wait(timeout=30), 0)
        report = self.report(result.profile)
        with contextlib.closing(sqlite3.connect(f"file:{result.profile}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT parent_pid, command, pid FROM process").fetchall()
        parents = [parent for parent, command, _ in rows if command.startswith(program)]
        self.assertEqual(parents, [process.pid] * 2, rows)
        busy = {thread["pid"] for thread in report["threads"] if (thread["cpu_s"] or 0) > 0.1}
        self.assertEqual(busy, {pid for _, command, pid in rows if command.startswith(program)})
        self.assertTrue(report["communication"]["cells"])

    @needs_watchpoints
    def test_children_are_left_alone_without_being_asked_for(self):
        process = self.start(["/bin/sh", "-c", f"sleep 1; {harness.workload('false_sharing')} --seconds 1; :"])
        result = self.attach(process.pid)
        self.assertEqual(result.status, 0, result.stderr)
        report = self.report(result.profile)
        self.assertEqual([entry["pid"] for entry in report["processes"]], [process.pid])
        warning = next(each["message"] for each in report["warnings"] if each["code"] == "watched_from_outside")
        self.assertIn("--children", warning)


class Unharmed(Attachment):
    """A process's own view is the same as without an observer."""

    def facts(self, pid):
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            fields = dict(line.rstrip("\n").split(":", 1) for line in status)
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            mapped = maps.read()
        timers = f"/proc/{pid}/timers"  # each holds a queued signal; SigQ counts those of all processes of the user
        if os.path.exists(timers):
            with open(timers, encoding="ascii") as file:
                mapped += file.read()
        kept = ("TracerPid", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "Threads", "FDSize", "Seccomp")
        return {key: fields.get(key) for key in kept}, mapped, sorted(os.listdir(f"/proc/{pid}/fd"))

    @needs_events
    def test_while_attached_and_after(self):
        process = self.start([harness.workload("false_sharing"), "--seconds", "6"])
        before = self.facts(process.pid)
        with subprocess.Popen([harness.CROSSTALK, "record", "-q", "-o", self.path("run.db"), "-p", str(process.pid),
                               "--duration", "3"], stderr=subprocess.PIPE, text=True) as recorder:
            harness.wait_until(lambda: harness.samples_in(self.path("run.db")) > 0)
            during = self.facts(process.pid)
            self.assertEqual((recorder.wait(timeout=60), recorder.stderr.read()), (0, ""))
        self.assertEqual(during, before)
        self.assertEqual(self.facts(process.pid), before)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)

    @needs_events
    def test_a_recorder_that_is_killed(self):
        process = self.start([harness.workload("false_sharing"), "--seconds", "6"])
        with subprocess.Popen([harness.CROSSTALK, "record", "-q", "-o", self.path("run.db"), "-p",
                               str(process.pid)], stderr=subprocess.DEVNULL) as recorder:
            harness.wait_until(lambda: harness.samples_in(self.path("run.db")) > 0)
            recorder.kill()
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(json.loads(out.strip().splitlines()[-1])["workload"], "false_sharing")
        self.assertGreater(self.report(self.path("run.db"))["sampling"]["samples"], 0)

    @needs_events
    def test_a_recorder_that_stands_still(self):
        # The breakpoints that are set then go on reporting: the kernel switches them off after some accesses.
        process = self.start([harness.workload("false_sharing"), "--seconds", "4"])
        recorder = subprocess.Popen([harness.CROSSTALK, "record", "-q", "--budget", "100", "--period", "100us", "-o",
                                     self.path("run.db"), "-p", str(process.pid)], stderr=subprocess.DEVNULL)
        harness.wait_until(lambda: harness.samples_in(self.path("run.db")) > 0)
        recorder.send_signal(signal.SIGSTOP)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        recorder.send_signal(signal.SIGCONT)
        self.assertEqual(recorder.wait(timeout=60), 0)


class Tracer(contextlib.AbstractContextManager):
    """Traces all threads of a process, as a debugger that lets it run."""

    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17
    ALL_THREADS = 0x40000000  # __WALL

    def __init__(self, pid):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.tids = sorted(map(int, os.listdir(f"/proc/{pid}/task")))

    def ptrace(self, request, tid):
        if self.libc.ptrace(ctypes.c_long(request), ctypes.c_long(tid), None, None) != 0:
            raise OSError(ctypes.get_errno(), f"ptrace {request} of {tid}")

    def __enter__(self):
        for tid in self.tids:
            self.ptrace(self.SEIZE, tid)
        return self

    def __exit__(self, *_):
        for tid in self.tids:  # a thread must be stopped to be released
            self.ptrace(self.INTERRUPT, tid)
            os.waitpid(tid, self.ALL_THREADS)
            self.ptrace(self.DETACH, tid)


class Traced(Attachment):
    """A debugger would be refused the debug registers that we use: as long as one is there, we use none."""

    @needs_watchpoints
    def test_nothing_is_armed_while_a_tracer_is_there(self):
        process = self.start([harness.workload("false_sharing"), "--seconds", "100"])
        with Tracer(process.pid):
            result = self.attach(process.pid, "--duration", "3", output="traced.db")
        self.assertEqual((result.status, result.stderr), (0, ""))
        report = self.report(result.profile)
        self.assertGreater(report["sampling"]["samples"], 5)
        self.assertEqual((report["sampling"]["armed"], report["sampling"]["traps"]), (0, 0))
        said = {warning["code"]: warning["message"] for warning in report["warnings"]}
        self.assertIn(f"(process {os.getpid()})", said["traced"])
        self.assertIn("debug registers are left to a tracer", said["traced"])
        for seconds in (3, 12, 40):  # the longer where processors are busy with others' work
            report = self.report(self.attach(process.pid, "--duration", str(seconds)).profile)
            if report["sampling"]["armed"] > 0:
                break
        self.assertGreater(report["sampling"]["armed"], 0)
        self.assertNotIn("traced", {warning["code"] for warning in report["warnings"]})

    @needs_watchpoints
    def test_a_tracer_comes_meanwhile(self):
        process = self.start([harness.workload("false_sharing"), "--seconds", "60"])
        with subprocess.Popen([harness.CROSSTALK, "record", "-q", "-o", self.path("run.db"), "-p", str(process.pid),
                               "--duration", "9"], stderr=subprocess.PIPE, text=True) as recorder:
            time.sleep(6)
            with Tracer(process.pid):
                came_ns = time.monotonic_ns()
                self.assertEqual((recorder.wait(timeout=60), recorder.stderr.read()), (0, ""))
        with contextlib.closing(sqlite3.connect(f"file:{self.path('run.db')}?mode=ro", uri=True)) as database:
            base = int(database.execute("SELECT value FROM meta WHERE key = 'time_base_ns'").fetchone()[0])
            opened = [base + row[0] for row in database.execute("SELECT time FROM watch")]
            last_sample = base + database.execute("SELECT MAX(time) FROM sample").fetchone()[0]
        if not [time_ns for time_ns in opened if time_ns < came_ns]:
            self.skipTest("no line was watched in 6 s before the tracer came: processors are busy with others' work")
        self.assertGreater(last_sample - came_ns, 1e9)
        self.assertEqual([time_ns - came_ns for time_ns in opened if time_ns > came_ns + 0.5e9], [])


@harness.verify("attaches for long")
class Often(Attachment):
    @needs_events
    def test_a_busy_server_does_not_notice_it(self):
        process = self.start([harness.workload("busy_server"), "--threads", "16", "--seconds", "1000"])
        for _ in range(10):
            result = self.attach(process.pid, "--duration", "0.2")
            self.assertEqual((result.status, result.stderr), (0, ""))
        process.terminate()
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertEqual(json.loads(out)["failures"], 0)


@harness.verify("kills at many moments")
class Killed(Attachment):
    """The recorder is killed at random moments: the server goes on, and what is left of the profile is whole."""

    times = int(os.environ.get("CROSSTALK_TEST_KILLS", "10"))

    def kill_recorders(self, *options):
        moments = random.Random(os.getpid())  # said, so that a failure can be tried again
        print("seed", os.getpid())
        process = self.start([harness.workload("busy_server"), "--threads", "8", "--seconds", "1000"])
        begun = 0
        begin = time.monotonic()
        self.attach(process.pid, *options, "--duration", "0.1", output="before.db")
        latest_s = max(1.2, 1.5 * (time.monotonic() - begin))  # also in the midst of it, where processors are busy
        for index in range(self.times):
            profile = self.path(f"killed-{index}.db")
            with subprocess.Popen([harness.CROSSTALK, "record", "-q", "-o", profile, "-p", str(process.pid), *options],
                                  stderr=subprocess.PIPE, text=True) as recorder:
                moment = moments.uniform(0, latest_s)
                time.sleep(moment)
                ended = recorder.poll()
                recorder.kill()
                said = recorder.stderr.read()
            self.check_recorder(ended, said)
            self.assertIsNone(process.poll(), f"killed after {moment:.3f} s")
            self.assertEqual(harness.fault_of_what_is_left(profile), "", f"killed after {moment:.3f} s")
            begun += os.path.exists(profile)
        result = self.attach(process.pid, *options, "--duration", "1", output="after.db")
        self.assertEqual((result.status, result.stderr), (0, ""))
        self.assertGreater(self.report(result.profile)["sampling"]["samples"], 0)
        process.terminate()
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertEqual(json.loads(out)["failures"], 0)
        self.assertGreater(begun, self.times // 10, "most were killed before they had begun")

    def check_recorder(self, ended, said):
        self.assertIsNone(ended, said)

    @needs_events
    def test_at_any_moment(self):
        self.kill_recorders()


class Ends(Attachment):
    @needs_events
    def test_the_process_ends(self):
        process = self.start([harness.workload("false_sharing"), "--seconds", "2"])
        result = self.attach(process.pid)
        self.assertEqual(result.status, 0, result.stderr)
        out, _ = process.communicate(timeout=60)
        self.assertEqual((process.returncode, json.loads(out.strip().splitlines()[-1])["workload"]),
                         (0, "false_sharing"))
        report = self.report(result.profile)
        self.assertGreater(report["sampling"]["samples"], 0)
        self.assertLess(report["duration_s"], 30)
        with contextlib.closing(sqlite3.connect(f"file:{result.profile}?mode=ro", uri=True)) as database:
            self.assertEqual(database.execute("SELECT COUNT(*) FROM process WHERE end_ns IS NULL").fetchone(), (0,))

    @needs_events
    def test_an_interrupt_ends_the_attachment(self):
        process = self.start([harness.workload("false_sharing"), "--seconds", "30"])
        with subprocess.Popen([harness.CROSSTALK, "record", "-q", "-o", self.path("run.db"), "-p",
                               str(process.pid)], stderr=subprocess.PIPE, text=True) as recorder:
            harness.wait_until(lambda: harness.samples_in(self.path("run.db")) > 0)
            recorder.send_signal(signal.SIGINT)
            self.assertEqual((recorder.wait(timeout=60), recorder.stderr.read()), (0, ""))
        self.assertIsNone(process.poll())
        report = self.report(self.path("run.db"))
        self.assertGreater(report["sampling"]["samples"], 0)
        self.assertNotIn("incomplete", {warning["code"] for warning in report["warnings"]})

    @needs_events
    def test_it_executes_another_program(self):
        process = self.start(["/bin/sh", "-c", f"i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 1; exec "
                              f"{harness.workload('false_sharing')} --seconds 3"])
        result = self.attach(process.pid)
        self.assertEqual(result.status, 0, result.stderr)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        commands = [entry["command"] for entry in self.report(result.profile)["processes"]]
        self.assertTrue(any("false_sharing" in command and "/bin/sh" not in command for command in commands), commands)


class Delay(Attachment):
    @needs_events
    def test_a_delay_before_attaching(self):
        process = self.start([harness.workload("false_sharing"), "--seconds", "5"])
        begin = time.monotonic()
        result = self.attach(process.pid, "--delay", "1.5", "--duration", "1")
        self.assertGreater(time.monotonic() - begin, 2.5)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertGreater(self.report(result.profile)["sampling"]["samples"], 0)
        result = self.attach(process.pid, "--delay", "6", output="late.db")
        self.assertEqual(process.wait(timeout=60), 0)
        self.assert_one_line_error(result, (125,))
        self.assertFalse(os.path.exists(result.profile))


class Threads(Attachment):
    @needs_events
    def test_threads_that_begin_later(self):
        report, out = self.observe_running([sys.executable, "-c", LATE_THREADS], 3.5)
        brief, late = sorted((used, int(tid)) for tid, used in json.loads(out).items())
        seen = {thread["tid"]: thread["cpu_s"] for thread in report["threads"]}
        self.assertEqual(len(seen), 3, report["threads"])
        self.assertAlmostEqual(seen[brief[1]] / brief[0], 1, delta=0.2, msg=report["threads"])
        # The recording may end before it does.
        self.assertGreater(seen[late[1]], brief[0], report["threads"])
        self.assertLess(seen[late[1]], 1.2 * late[0], report["threads"])

    @needs_events
    def test_the_time_of_a_process_that_begins_later_is_counted_once_and_in_full(self):
        process = self.start(["/bin/sh", "-c", 'sleep 1.5; "$0" -c "$1" "$1"; :', sys.executable, TWICE])
        result = self.attach(process.pid, "--children")
        self.assertEqual(result.status, 0, result.stderr)
        used_s = float(process.communicate(timeout=60)[0])
        rows = self.report(result.profile)["threads"]
        found_s = sum(thread["cpu_s"] or 0 for thread in rows if thread["pid"] != process.pid)
        self.assertTrue(0.9 * used_s < found_s < 1.1 * used_s, (found_s, used_s, rows))

    @needs_events
    def test_threads_without_descriptors_are_named(self):
        process = self.start([sys.executable, "-c", "import threading, time\n"
                              "for _ in range(100): threading.Thread(target=time.sleep, args=(6,)).start()"])
        harness.wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) > 100)
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        result = self.attach(process.pid, "--duration", "1", preexec_fn=few)
        self.assertEqual(result.status, 0, result.stderr)
        codes = {warning["code"] for warning in self.report(result.profile)["warnings"]}
        self.assertIn("threads_not_watched", codes)
        self.assertNotIn("brief_threads_missed", codes)


class FirstThread(Attachment):
    """A process goes on when its first thread has ended; by its number the kernel then shows neither memory nor mappings."""

    def addresses(self, profile):
        with contextlib.closing(sqlite3.connect(f"file:{profile}?mode=ro", uri=True)) as database:
            base = int(database.execute("SELECT value FROM meta WHERE key = 'time_base_ns'").fetchone()[0])
            return [(base + time_ns, address) for time_ns, address in database.execute("SELECT time, address FROM sample")]

    def check_after(self, process, profile, from_ns):
        self.assertEqual((process.wait(timeout=60), process.stderr.read()), (0, ""))
        addresses = [address for time_ns, address in self.addresses(profile) if time_ns > from_ns]
        known = [address for address in addresses if address is not None]
        self.assertGreater(len(addresses), 3)
        self.assertGreater(len(known), 0.2 * len(addresses))
        self.assertTrue([path for path in self.modules(profile) if "libcrypto" in path or "python" in path])
        rows = self.report(profile)["processes"]
        self.assertIn("hashlib", rows[0]["command"])

    def modules(self, profile):
        with contextlib.closing(sqlite3.connect(f"file:{profile}?mode=ro", uri=True)) as database:
            return [path for path, in database.execute("SELECT path FROM module")]

    @needs_events
    def test_it_has_ended_before(self):
        process = self.start([sys.executable, "-c", FIRST_THREAD_ENDS.format(seconds=4, delay=0)])
        result = self.attach(process.pid, "--duration", "2")
        self.assertEqual((result.status, result.stderr), (0, ""))
        self.check_after(process, result.profile, 0)

    @needs_events
    def test_it_ends_meanwhile(self):
        begin_ns = time.monotonic_ns()
        process = self.start([sys.executable, "-c", FIRST_THREAD_ENDS.format(seconds=10, delay=2.5)])
        result = self.attach(process.pid, "--duration", "7")
        self.assertEqual((result.status, result.stderr), (0, ""))
        self.check_after(process, result.profile, begin_ns + int(3.5e9))


class Unmet(harness.Case):
    """The profile says how much of the CPU time it has nothing of."""

    def check_times(self, command, options, truth_of):
        recorded = self.record(command, options)
        self.assertEqual(recorded.status, 0, recorded.stderr)
        truth = truth_of(recorded.stdout)
        report = self.report(recorded.profile)
        told = report["cpu_s"] + report["unobserved_cpu_s"]
        self.assertGreater(told, 0.8 * truth, report["unobserved_cpu_s"])
        self.assertLess(told, 1.25 * truth + 0.1, report["unobserved_cpu_s"])
        said = "cpu_time_unobserved" in {warning["code"] for warning in report["warnings"]}
        text = harness.run([harness.CROSSTALK, "report", "-i", recorded.profile, "--color", "never"]).stdout
        if report["unobserved_cpu_s"] > 0.1 * truth:
            self.assertTrue(said)
            self.assertIn("CPU time observed", text.splitlines()[1])
        return report

    @needs_events
    def test_threads_that_come_and_go(self):
        self.check_times([sys.executable, "-c", BRIEF_THREADS], ("--observer",), float)

    @needs_events
    def test_nothing_is_unmet_where_threads_stay(self):
        report = self.check_times([sys.executable, "-c", TWICE], ("--observer",), float)
        self.assertLess(report["unobserved_cpu_s"], 0.1)

    @needs_events
    def test_it_is_not_known_of_programs_with_the_library(self):
        recorded = self.record([sys.executable, "-c", TWICE])
        self.assertIsNone(self.report(recorded.profile)["unobserved_cpu_s"])


@harness.verify("compares measured costs")
class Budget(Attachment):
    @needs_events
    def test_threads_that_switch_all_the_time(self):
        # A clock costs some microseconds at each of their context switches: a tenth of their time and more.
        report, _ = self.observe_running([harness.workload("ring"), "--seconds", "11", "--threads", "3"], 8)
        self.assertGreater(report["sampling"]["samples"], 10)
        self.assertLess(report["sampling"]["overhead"]["fraction"], 0.05)
        self.assertIn("starts_perhaps_missed", {warning["code"] for warning in report["warnings"]})


    @harness.verify("what a sample costs on a busy machine decides how many there are")
    @needs_events
    def test_samples_are_as_many_as_the_budget_affords_from_the_first_second_on(self):
        for command in (["private_only", "--threads", "1"], ["switching", "--iterations", "100000000"]):
            process = self.start([harness.workload(command[0]), *command[1:]])
            result = self.attach(process.pid, "--duration", "3")
            self.assertEqual(result.status, 0, result.stderr)
            report = self.report(result.profile)
            sampled = sum(thread["samples"] for thread in report["threads"])
            self.assertGreater(sampled / report["cpu_s"], 80, command)
            self.assertLess(report["sampling"]["overhead"]["fraction"], 0.05, command)


@harness.together
class Refusals(Attachment):
    def refused(self, pid, word):
        result = harness.run([harness.CROSSTALK, "record", "-o", self.path("no.db"), "-p", str(pid)])
        self.assert_one_line_error(result, statuses=(125,))
        self.assertIn(word, result.stderr)
        self.assertFalse(os.path.exists(self.path("no.db")))

    def test_no_process(self):
        self.refused(2**31 - 1, "no process")
        self.refused("x", "process id")

    def test_one_of_several(self):
        process = self.start(["/bin/sleep", "30"])
        self.refused(f"{process.pid},{2**31 - 1}", f"-p {2**31 - 1}: there is no process")

    def test_a_zombie(self):
        with subprocess.Popen(["/bin/true"]) as process:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            self.refused(process.pid, "zombie")

    @unittest.skipUnless(os.path.exists("/proc/2/status"), "kernel threads are not to be seen here")
    def test_a_thread_of_the_kernel(self):
        self.refused(2, "kernel")

    def test_a_command_that_gets_rights(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        program = shutil.copy("/bin/true", self.path("program"))
        os.chmod(self.folder, 0o777)
        os.chmod(program, 0o4755)
        record = [harness.CROSSTALK, "record", "-q", "-o", self.path("run.db"), "--", program]
        result = harness.run(record, user=65534, group=65534)
        self.assert_one_line_error(result, statuses=(125,))
        self.assertIn("set-user-ID", result.stderr)
        self.assertFalse(os.path.exists(self.path("run.db")))
        if harness.why_no_watchpoints() is None:
            result = harness.run(record)
            self.assertEqual((result.status, result.stderr), (0, ""))

    def test_another_users_process(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        process = self.start(["/bin/sleep", "30"])
        os.chmod(self.folder, 0o777)
        result = harness.run([harness.CROSSTALK, "record", "-o", self.path("no.db"), "-p", str(process.pid)],
                             user=65534, group=65534)
        self.assert_one_line_error(result, statuses=(125,))
        self.assertIn("-p", result.stderr)


if __name__ == "__main__":
    harness.main()
