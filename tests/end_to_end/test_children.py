# SPDX-License-Identifier: Apache-2.0
"""Children are followed, however they are made."""

import contextlib
import sqlite3
import sys

import harness
from harness import workload


class Children(harness.Case):
    @staticmethod
    def running(report, name):
        """The processes of a report whose program is the workload `name`."""
        return [process for process in report["processes"]
                if process["command"].split()[0].strip("'\"").endswith("/" + name)]

    def follow(self, how):
        target = [workload("false_sharing"), "--seconds", "2"]
        recorded = self.record([workload("children"), how, "--", *target])
        self.assertEqual(recorded.status, 0, recorded.stderr)
        self.assertEqual(recorded.truth["workload"], "false_sharing")
        report = self.report(recorded.profile)
        child = self.running(report, "false_sharing")
        self.assertEqual(len(child), 1, report["processes"])
        threads = [thread for thread in report["threads"]
                   if thread["pid"] == child[0]["pid"] and thread["name"] == "false_sharing"]
        self.assertEqual(len(threads), 3, threads)
        used_s = sum(thread["cpu_s"] or 0 for thread in threads)
        self.assertGreater(used_s, 0)
        self.assertGreater(used_s, harness.cpu_seconds(report) / 2, "the process that started it has nothing to do")
        return report, child[0]

    def test_the_time_of_a_thread_that_executes_another_program_is_counted_once(self):
        program = """
import os, sys, threading, time
end = time.thread_time() + 0.4
while time.thread_time() < end:
    pass
again = [sys.executable, "-c", sys.argv[1], sys.argv[1], *sys.argv[3:]]
if len(sys.argv) == 2:
    print(time.process_time())
elif sys.argv[2] == "thread":
    threading.Thread(target=os.execv, args=(sys.executable, again)).start()
    threading.Event().wait()
else:
    os.execv(sys.executable, again)
"""
        for words in (["main"], ["main", "main"], ["thread"]):
            with self.subTest(words):
                recorded = self.record([sys.executable, "-c", program, program, *words])
                self.assertEqual(recorded.status, 0, recorded.stderr)
                used_s = float(recorded.stdout)
                found_s = harness.cpu_seconds(self.report(recorded.profile))
                self.assertTrue(0.7 * used_s < found_s < 1.2 * used_s, (found_s, used_s))

    def test_fork(self):
        report, child = self.follow("fork")
        parents = {process["pid"] for process in report["processes"]}
        self.assertIn(child["parent"], parents)

    def test_vfork(self):
        self.follow("vfork")

    def test_spawn(self):
        self.follow("spawn")

    def test_exec(self):
        self.follow("exec")

    def test_failed_execs_of_a_threaded_process_change_nothing(self):
        seconds = 2
        recorded = self.record([workload("exec_attempts"), "failing", str(seconds)])
        self.assertEqual((recorded.status, recorded.stderr), (0, ""))
        self.assertGreater(recorded.truth["attempts"], 20)
        report = self.report(recorded.profile)
        self.assertEqual(len(report["processes"]), 1, report["processes"])
        self.assertEqual(len(report["threads"]), recorded.truth["threads"])
        self.assertEqual([warning["code"] for warning in report["warnings"]
                          if warning["code"] in ("ring_corrupt", "records_lost", "threads_unobserved")], [])
        # Samples come to the end: a tick stands for 4 ms of CPU time or more, and two threads compute all the time.
        with contextlib.closing(sqlite3.connect(recorded.profile)) as profile:
            sampled_s = [row[0] / 1e9 for row in profile.execute(
                "SELECT sum(cpu_ns) FROM sample WHERE time > (SELECT max(end_ns) - min(begin_ns) FROM process) / 2 "
                "GROUP BY thread")]
        computing_s = sorted(thread["cpu_s"] for thread in report["threads"])[-2:]
        self.assertGreater(sum(sampled_s), 0.3 * sum(computing_s))

    def test_exec_of_a_thread_while_another_computes(self):
        target = [workload("false_sharing"), "--seconds", "2"]
        recorded = self.record([workload("exec_attempts"), "thread", "--", *target])
        self.assertEqual((recorded.status, recorded.stderr), (0, ""))
        report = self.report(recorded.profile)
        self.assertEqual([process["pid"] for process in report["processes"]], [report["processes"][0]["pid"]] * 2)
        self.assertGreater(sum(thread["cpu_s"] or 0 for thread in report["threads"]
                               if thread["name"] == "false_sharing"), 0.1)

    def test_fork_without_exec(self):
        recorded = self.record([workload("children"), "plain"])
        self.assertEqual(recorded.status, 0, recorded.stderr)
        report = self.report(recorded.profile)
        self.assertEqual(len(report["processes"]), 2, report["processes"])
        self.assertGreater(sum(thread["cpu_s"] or 0 for thread in report["threads"]), 0.1)

    def test_processes_that_share_memory(self):
        for memory in ("anonymous", "memfd"):
            recorded = self.record([workload("processes"), "--memory", memory, "--threads", "3", "--wait", "yield",
                                    "--seconds", "1"])
            self.assertEqual(recorded.status, 0, recorded.stderr)
            self.assertGreater(recorded.truth["true"], 1000)
            cpu_s = {thread["tid"]: thread["cpu_s"] or 0 for thread in self.report(recorded.profile)["threads"]}
            for tid in recorded.truth["tids"][1:]:
                self.assertGreater(cpu_s.get(tid, 0), 0, memory)  # a yielding thread gets next to nothing on a busy machine

    def test_status_of_a_child_is_passed_on(self):
        recorded = self.record([workload("children"), "fork", "--", "sh", "-c", "exit 7"])
        self.assertEqual(recorded.status, 7)

    def test_no_children(self):
        recorded = self.record([workload("children"), "fork", "--", workload("false_sharing"), "--seconds", "0.5"],
                               ["--no-children"])
        self.assertEqual(recorded.status, 0, recorded.stderr)
        report = self.report(recorded.profile)
        self.assertEqual(self.running(report, "false_sharing"), [])

    def test_pipe_of_shell(self):
        recorded = self.record(["sh", "-c", "seq 200000 | sort -r | tail -n 1"])
        self.assertEqual((recorded.status, recorded.stdout), (0, "1\n"))
        self.report(recorded.profile)


if __name__ == "__main__":
    harness.main()
