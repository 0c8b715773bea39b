# SPDX-License-Identifier: Apache-2.0
"""The command's contract: statuses, files, words, and what happens when things go wrong."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import time

import harness
from harness import CROSSTALK, run, workload


@harness.together
class Statuses(harness.Case):
    def status_of(self, *command):
        return run([CROSSTALK, "record", "-q", "-o", self.path("s.db"), "--", *command]).status

    def test_statuses_are_passed_on(self):
        for status in (0, 1, 7, 125, 126, 127, 255):
            self.assertEqual(self.status_of("sh", "-c", f"exit {status}"), status)

    def test_death_by_signal(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT):
            self.assertEqual(self.status_of("sh", "-c", f"kill -{int(number)} $$"), 128 + number)

    def test_command_not_found(self):
        self.assertEqual(self.status_of("no-such-command-anywhere"), 127)

    def test_command_not_executable(self):
        path = self.path("data")
        with open(path, "w", encoding="ascii") as file:
            file.write("no program\n")
        self.assertEqual(self.status_of(path), 126)

    def test_bad_option(self):
        result = run([CROSSTALK, "record", "--no-such-option", "--", "true"])
        self.assertEqual(result.status, 125)
        self.assertTrue(result.stderr.startswith("crosstalk: "), result.stderr)

    def test_bad_value(self):
        for option, value in (("--period", "minus"), ("--budget", "-1"), ("--watchpoints", "9")):
            result = run([CROSSTALK, "record", "-o", self.path("v.db"), option, value, "--", "true"])
            self.assert_one_line_error(result, (125,))

    def test_output_that_can_not_be_written(self):
        result = run([CROSSTALK, "record", "-o", "/proc/no/such/place.db", "--", "echo", "ran"])
        self.assert_one_line_error(result, (125,))
        self.assertEqual(result.stdout, "", "the command must not have been started")

    def test_static_program(self):
        source = self.path("static.c")
        with open(source, "w", encoding="ascii") as file:
            file.write("int main(void) { return 0; }\n")
        if run(["gcc", "-static", "-o", self.path("static"), source]).status != 0:
            self.skipTest("no static C library to build a static program with")
        result = run([CROSSTALK, "record", "-o", self.path("x.db"), "--", self.path("static")])
        if harness.why_no_events():
            self.assert_one_line_error(result, (125,))
            return
        self.assertEqual((result.status, result.stdout), (0, ""))
        self.assertEqual(result.stderr.count(f"{self.path('static')} is statically linked, so it was watched from "
                                             "outside"), 1, result.stderr)

    def test_help_and_version(self):
        for words in (["--help"], ["record", "--help"], ["report", "--help"], ["--version"]):
            result = run([CROSSTALK, *words])
            self.assertEqual((result.status, result.stderr), (0, ""), words)
            self.assertIn("crosstalk", result.stdout)


class Recordings(harness.Case):
    """A recording inside a recording: its profile is empty, and says why."""

    def inside(self, *options):
        result = run([CROSSTALK, "record", "-q", *options, "-o", self.path("outer.db"), "--",
                      CROSSTALK, "record", "-o", self.path("inner.db"), "--", "sh", "-c", "exit 7"])
        self.assertEqual(result.status, 7, result.stderr)
        self.assertIn("is itself being recorded", result.stderr)
        self.assertNotIn("perf events", result.stderr)
        codes = {warning["code"] for warning in self.report(self.path("inner.db"))["warnings"]}
        self.assertIn("recorded_itself", codes)
        self.assertFalse(codes & {"not_observed", "perf_forbidden", "watchpoints_unavailable"}, codes)

    def test_the_outer_one_has_the_command(self):
        self.inside()
        names = [thread["name"] for thread in self.report(self.path("outer.db"))["threads"]]
        self.assertIn("sh", names)

    def test_nor_has_the_inner_one_where_the_outer_follows_no_children(self):
        self.inside("--no-children")


@harness.together
class Words(harness.Case):
    """stdout and stderr are the command's."""

    COMMAND = ["sh", "-c", "echo out; echo err >&2"]

    def test_the_start_counts_as_overhead(self):
        result = self.record(["true"])
        report = self.report(result.profile)
        self.assertEqual(report["sampling"]["traps"], 0)
        self.assertGreater(report["sampling"]["overhead"]["handlers_s"], 50e-6 * (1 + report["sampling"]["samples"]))

    def test_quiet(self):
        result = run([CROSSTALK, "record", "-q", "-o", self.path("q.db"), "--", *self.COMMAND])
        self.assertEqual((result.stdout, result.stderr), ("out\n", "err\n"))

    def test_own_words(self):
        result = run([CROSSTALK, "record", "-o", self.path("w.db"), "--", *self.COMMAND])
        self.assertEqual(result.stdout, "out\n")
        own = [line for line in result.stderr.splitlines() if line != "err"]
        self.assertTrue(own)
        for line in own:
            self.assertTrue(line.startswith("crosstalk: "), line)
            self.assertNotIn("\x1b", line, "no terminal, no colours")
            self.assertNotIn("\r", line)

    def test_closed_output(self):
        result = run(["sh", "-c", f"'{CROSSTALK}' record -q -o '{self.path('c.db')}' -- true >&-"])
        self.assertEqual(result.status, 0, result.stderr)

    def test_report_into_a_closed_pipe(self):
        self.record(["true"], output="p.db")
        result = run(["bash", "-o", "pipefail", "-c", f"'{CROSSTALK}' report '{self.path('p.db')}' | true"])
        self.assertNotIn("terminate", result.stderr)

    def test_standard_input_is_the_commands(self):
        process = subprocess.run([CROSSTALK, "record", "-q", "-o", self.path("i.db"), "--", "cat"], input="through\n",
                                 capture_output=True, text=True, check=False)
        self.assertEqual(process.stdout, "through\n")


@harness.together
class Files(harness.Case):
    def test_default_name(self):
        result = run([CROSSTALK, "record", "-q", "--", "true"], cwd=self.folder)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertEqual(os.listdir(self.folder), ["crosstalk.db"])
        self.assertEqual(run([CROSSTALK, "report"], cwd=self.folder).status, 0)

    def test_rotation(self):
        for word in ("one", "two", "three"):
            self.record(["echo", word], output="r.db")
        self.assertEqual(sorted(os.listdir(self.folder)), ["r.db", "r.db.old"])
        self.assertIn("three", self.report(self.path("r.db"))["command"])
        self.assertIn("two", self.report(self.path("r.db.old"))["command"])

    def test_folders_are_made(self):
        result = self.record(["true"], output="a/b/c.db")
        self.assertTrue(os.path.exists(result.profile))

    def test_names_expand(self):
        run([CROSSTALK, "record", "-q", "-o", self.path("%h-%p.db"), "--", "true"])
        (name,) = os.listdir(self.folder)
        self.assertRegex(name, rf"^{os.uname().nodename}-[0-9]+\.db$")

    def test_sqlite_opens_it(self):
        result = self.record([workload("false_sharing"), "--seconds", "0.5"])
        with sqlite3.connect(f"file:{result.profile}?mode=ro", uri=True) as database:
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchone(), ("ok",))
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        self.assertTrue(tables)

    def test_profile_of_a_killed_recorder(self):
        profile = self.path("k.db")
        with subprocess.Popen([CROSSTALK, "record", "-o", profile, "--", workload("false_sharing"), "--seconds", "4"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as recorder:
            harness.wait_until(lambda: harness.samples_in(profile) > 50)
            recorder.kill()
            out, _ = recorder.communicate(timeout=30)
        self.assertEqual(json.loads(out)["workload"], "false_sharing", "the command goes on without its recorder")
        report = self.report(profile)
        self.assertIsNone(report["exit_status"])
        self.assertGreater(report["sampling"]["samples"], 50)
        self.assertTrue(report["warnings"])

    def test_interrupt_ends_the_recording_in_order(self):
        profile = self.path("c.db")
        with subprocess.Popen([CROSSTALK, "record", "-q", "-o", profile, "--", workload("false_sharing"), "--seconds",
                               "60"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True) as recorder:
            harness.wait_until(lambda: harness.samples_in(profile) > 50)
            os.killpg(recorder.pid, signal.SIGINT)  # as a terminal does
            recorder.communicate(timeout=20)
        self.assertEqual(recorder.returncode, -signal.SIGINT)
        self.assertGreater(self.report(profile)["sampling"]["samples"], 50)

    def test_disk_full(self):
        """A failure during the run is a warning: the command goes on and its status is passed on. An empty profile has
        room; the recorded rows do not."""
        size = os.path.getsize(self.record(["true"]).profile) + (64 << 10)
        script = (f"mount -t tmpfs -o size={size} none '{self.folder}' && "
                  f"exec '{CROSSTALK}' record -o '{self.path('full.db')}' -- "
                  f"'{workload('false_sharing')}' --seconds 2")
        if os.geteuid() != 0 or run(["unshare", "-m", "mount", "-t", "tmpfs", "none", self.folder]).status != 0:
            self.skipTest("a small file system can only be mounted by root with CAP_SYS_ADMIN")
        result = run(["unshare", "-m", "sh", "-c", script])
        self.assertEqual(result.status, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["workload"], "false_sharing")
        self.assertIn("has only", result.stderr)


@harness.together
class Refusals(harness.Case):
    def damaged(self, change):
        result = self.record([workload("false_sharing"), "--seconds", "0.5"])
        with open(result.profile, "rb") as file:
            data = bytearray(file.read())
        with open(self.path("bad.db"), "wb") as file:
            file.write(change(data))
        return run([CROSSTALK, "report", self.path("bad.db")])

    def test_no_file(self):
        self.assert_one_line_error(run([CROSSTALK, "report", self.path("none.db")]))

    def test_empty_file(self):
        self.assert_one_line_error(self.damaged(lambda data: b""))

    def test_truncated_file(self):
        self.assert_one_line_error(self.damaged(lambda data: data[:len(data) // 2]))

    def test_text_file(self):
        self.assert_one_line_error(self.damaged(lambda data: b"This is no database.\n" * 400))

    def test_another_database(self):
        path = self.path("other.db")
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE fruit (name TEXT)")
        self.assert_one_line_error(run([CROSSTALK, "report", path]))

    def test_flipped_bytes_never_crash(self):
        source = random.Random(1)

        def flip(data):
            for _ in range(200):
                data[source.randrange(100, len(data))] ^= 1 << source.randrange(8)
            return data
        for _ in range(5):
            result = self.damaged(flip)
            self.assertLess(result.status, 128, result.stderr)

    def test_bad_view_and_format(self):
        self.record(["true"])
        for option in (["--view", "nonsense"], ["--format", "nonsense"], ["--by", "nonsense"]):
            self.assert_one_line_error(run([CROSSTALK, "report", self.path("run.db"), *option]))


@harness.together
class Report(harness.Case):
    def test_head(self):
        report, truth = self.observe("false_sharing", "--seconds", "1")
        self.assertTrue(report["schema"].startswith("crosstalk.report/"))
        for name in ("command", "exit_status", "duration_s", "machine", "processes", "threads", "warnings", "sampling",
                     "communication", "loops"):
            self.assertIn(name, report)
        self.assertEqual(report["exit_status"], 0)
        self.assertAlmostEqual(report["duration_s"], truth["seconds"], delta=0.5)
        for thread in report["threads"]:
            self.assertEqual({"index", "pid", "tid", "name", "cpu_s"} - set(thread), set())

    def test_views_in_every_format(self):
        result = self.record([workload("false_sharing"), "--seconds", "1"])
        for view in ("summary", "matrix", "lines", "objects", "loops", "threads"):
            for kind in ("text", "json", "csv"):
                shown = run([CROSSTALK, "report", result.profile, "--view", view, "--format", kind])
                self.assertEqual(shown.status, 0, shown.stderr)
                self.assertTrue(shown.stdout.strip(), (view, kind))
                if kind == "json":
                    json.loads(shown.stdout)

    def test_same_profile_same_report(self):
        result = self.record([workload("ring"), "--seconds", "1"])
        self.assertEqual(run([CROSSTALK, "report", result.profile]).stdout,
                         run([CROSSTALK, "report", result.profile]).stdout)

    def test_doctor(self):
        result = run([CROSSTALK, "doctor"])
        self.assertIn(result.status, (0, 1), result.stderr)
        self.assertIn("watchpoint", result.stdout.lower())


if __name__ == "__main__":
    harness.main()
