# SPDX-License-Identifier: Apache-2.0
"""crosstalk top: what it prints for programs, what it shows in a terminal, and what is left when it ends."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import harness
from harness import CROSSTALK, needs_events, needs_watchpoints, run, wait_until, workload

PATIENCE_S = 8  # a busy machine may take long to see anything
QUICK = ("--refresh", "0.5", "--window", "0.5")

# What the view shows without measuring: one exchange, in a source that is here.
PICTURE = {
    "schema": "crosstalk.top/1", "sequence": 1, "window_s": 10, "latest_s": 2, "refresh_s": 2, "command": "/bin/example --all",
    "cpu_s": 20, "latest_cpu_s": 4, "processors": 2, "latest_processors": 2, "source": "clock", "method": "watch",
    "watching": "2 of 2 threads sampled", "overhead": {"fraction": 0.01, "budget": 0.03},
    "losses": {"records": 0, "unread_threads": 0},
    "threads": [{"index": index, "pid": 7, "tid": 7 + index, "name": "worker", "cpu_s": 10, "latest_cpu_s": 2}
                for index in range(2)],
    "cells": [{"producer": 0, "consumer": 1, "cost_s": 8, "latest_cost_s": 1.6, "seen": 90, "latest_seen": 20,
               "false_cost_s": 8}],
    "lines": [{"file": __file__, "line": 1, "function": "work", "role": "consumer", "object": "shared_counter",
               "cost_s": 8, "latest_cost_s": 1.6, "seen": 90, "latest_seen": 20,
               "pairs": [{"producer": 0, "consumer": 1, "cost_s": 8, "seen": 90}]}],
    "objects": [{"name": "shared_counter", "label": "shared_counter[3]", "sharing": "false_sharing", "cost_s": 8,
                 "latest_cost_s": 1.6, "gain_s": 4, "seen": 90, "latest_seen": 20,
                 "lines": [{"file": __file__, "line": 1, "function": "work"}],
                 "pairs": [{"producer": 0, "consumer": 1, "cost_s": 8, "seen": 90}]}],
    "findings": [{"sentence": "Threads 0 and 1 exchange `shared_counter`.", "kind": "false_sharing",
                  "object": "shared_counter"}]}


# Two threads share a line of `neighbours` until SIGUSR1, and then one of `others`.
CHANGING = """#include <csignal>
#include <thread>
alignas(64) volatile long neighbours[8], others[8];
volatile sig_atomic_t changed = 0;
void work(int i) {
  for (;;) { if (changed) others[i] = others[i] + 1; else neighbours[i] = neighbours[i] + 1; }
}
int main() {
  std::signal(SIGUSR1, [](int) { changed = 1; });
  std::thread second(work, 1);
  work(0);
}
"""


class Top(harness.Case):
    """Runs it with a TMPDIR of its own, which must be empty afterwards."""

    def setUp(self):
        super().setUp()
        self.scratch = self.path("scratch")
        os.mkdir(self.scratch)
        self.environment = {**os.environ, "TMPDIR": self.scratch, "TERM": "xterm-256color"}

    def start(self, *command):
        """A process that does not outlive the test."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def top(self, *arguments, **more):
        result = run([CROSSTALK, "top", *arguments], env=self.environment, **more)
        self.assertEqual(os.listdir(self.scratch), [])
        return result

    def begin(self, *arguments, **more):
        """It, running, with its output as text."""
        process = subprocess.Popen([CROSSTALK, "top", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=self.environment, **more)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def end(self, process, number=signal.SIGTERM):
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertEqual(os.listdir(self.scratch), [])


def recorders_of(folder):
    """Recorders whose files lie in the folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as words:
                command = words.read().split(b"\0")
            if b"record" in command and any(word.startswith(os.fsencode(folder)) for word in command):
                found.append(int(pid))
        except OSError:
            continue
    return found


class Stream(Top):
    @needs_watchpoints
    def test_what_threads_exchange_is_seen_live(self):
        program = self.start(workload("false_sharing"), "--threads", "2", "--seconds", "600")
        process = self.begin("-p", str(program.pid), "--json")
        numbers, sequences = {}, []
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            picture = json.loads(process.stdout.readline())
            sequences.append(picture["sequence"])
            for thread in picture["threads"]:
                self.assertEqual(numbers.setdefault(thread["tid"], thread["index"]), thread["index"])
            counters = [row for row in picture["objects"] if harness.object_named(row, "counters") and row["cost_s"]]
            if counters and len(sequences) > 1:
                break
        self.end(process)
        self.assertTrue(counters)
        self.assertEqual(sequences, list(range(1, len(sequences) + 1)))
        self.assertEqual((picture["schema"], picture["pids"]), ("crosstalk.top/1", [program.pid]))
        named = {thread["index"]: thread["name"] for thread in picture["threads"]}
        for pair in counters[0]["pairs"]:
            self.assertEqual((named[pair["producer"]], named[pair["consumer"]]), ("false_sharing", "false_sharing"))
        self.assertTrue(any(line["file"].endswith("/false_sharing.cpp") for line in picture["lines"]))
        self.assertTrue(any("count<" in loop["function"] for loop in picture["loops"]))
        self.assertLess(0, picture["window_s"])
        self.assertLessEqual(picture["window_s"], 12)

    @needs_watchpoints
    @harness.verify("what a refresh of two seconds holds is a sample")
    def test_a_change_of_load_is_shown_by_the_next_refresh(self):
        program = self.path("changing")
        with open(self.path("changing.cpp"), "w", encoding="ascii") as source:
            source.write(CHANGING)
        compiled = run(["g++", "-O1", "-g", "-pthread", "-o", program, self.path("changing.cpp")])
        self.assertEqual(compiled.status, 0, compiled.stderr)
        process = self.start(program)
        view = self.begin("-p", str(process.pid), "--json")
        pictures = (json.loads(line) for line in view.stdout)
        next(picture for picture in pictures if picture["sequence"] > 2 and self.first(picture) == "neighbours")
        process.send_signal(signal.SIGUSR1)
        changed = time.time()
        after = next(picture for picture in pictures if picture["time_unix_s"] - picture["latest_s"] >= changed)
        self.end(view)
        latest = {row["name"]: row["latest_cost_s"] or 0 for row in after["objects"]}
        print(f"{after['time_unix_s'] - changed:.1f} s after the change, latest costs in s: {latest}")
        self.assertEqual(self.first(after), "others")
        self.assertFalse(any(cost for name, cost in latest.items() if name.startswith("neighbours")))

    @staticmethod
    def first(picture):
        """The variable that comes first, as the view orders (docs/top-json.md)."""
        def order(row):
            return (row["cost_s"] or 0) / picture["cpu_s"] + (row["latest_cost_s"] or 0) / picture["latest_cpu_s"]
        rows = sorted(picture["objects"], key=order, reverse=True)
        return re.match(r"\w+", rows[0]["name"])[0] if rows and rows[0]["cost_s"] else None

    def test_it_ends_with_the_command(self):
        result = self.top("--json", *QUICK, "--", "sh", "-c", "echo said; echo complained >&2; exec sleep 1.2")
        self.assertEqual((result.status, result.stderr), (0, ""))
        pictures = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertTrue(pictures)
        self.assertTrue(pictures[0]["command"].startswith("sh -c"))

    @needs_events
    def test_it_ends_after_so_many_pictures(self):
        program = self.start("sleep", "600")
        result = self.top("-p", str(program.pid), "--json", "-n", "2", *QUICK)
        self.assertEqual((result.status, result.stderr), (0, ""))
        self.assertEqual([json.loads(line)["sequence"] for line in result.stdout.splitlines()], [1, 2])

    @needs_events
    def test_a_reader_may_go_away(self):
        process = self.begin("-p", str(self.start("sleep", "600").pid), "--json", *QUICK)
        self.assertTrue(process.stdout.readline())
        process.stdout.close()
        self.assertEqual((process.wait(timeout=PATIENCE_S), process.stderr.read()), (0, ""))
        self.assertEqual(os.listdir(self.scratch), [])
        process.stdout = None

    @needs_events
    def test_signals_end_it_and_nothing_is_left(self):
        program = self.start("sleep", "600")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.begin("-p", str(program.pid), "--json", *QUICK)
            self.assertTrue(process.stdout.readline())
            self.end(process, number)
        self.assertEqual(recorders_of(self.scratch), [])

    @needs_events
    def test_a_reader_that_sleeps_does_not_keep_it(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        os.set_blocking(write, False)
        try:
            while os.write(write, bytes(4096)):
                pass
        except BlockingIOError:
            os.set_blocking(write, True)
        process = subprocess.Popen([CROSSTALK, "top", "-p", str(self.start("sleep", "600").pid), "--json", *QUICK],
                                   stdout=write, stderr=subprocess.PIPE, text=True, env=self.environment)
        os.close(write)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        wait_until(lambda: recorders_of(self.scratch))
        time.sleep(1.5)
        self.end(process)

    @needs_events
    def test_a_killed_recorder_is_told(self):
        program = self.start(workload("private_only"), "--seconds", "600")
        process = self.begin("-p", str(program.pid), "--json", *QUICK)
        self.assertTrue(process.stdout.readline())
        (recorder,) = recorders_of(self.scratch)
        os.kill(recorder, signal.SIGKILL)
        _, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (1, "crosstalk: the recorder was killed: nothing more is measured\n"))
        self.assertEqual(os.listdir(self.scratch), [])

    @needs_events
    def test_nothing_outlives_it_when_it_is_killed(self):
        process = self.begin("-p", str(self.start("sleep", "600").pid), "--json", *QUICK)
        self.assertTrue(process.stdout.readline())
        self.assertTrue(recorders_of(self.scratch))
        process.kill()
        wait_until(lambda: not recorders_of(self.scratch) and not os.listdir(self.scratch))

    @needs_events
    def test_its_folder_is_private(self):
        process = self.begin("-p", str(self.start("sleep", "600").pid), "--json", *QUICK)
        self.assertTrue(process.stdout.readline())
        (folder,) = os.listdir(self.scratch)
        self.assertEqual(os.stat(os.path.join(self.scratch, folder)).st_mode & 0o777, 0o700)
        self.end(process)

    def test_what_cannot_be_observed_is_refused_in_a_line(self):
        program = subprocess.Popen(["true"])
        program.wait()
        for arguments in (("-p", str(program.pid)), ("--", "/no/such/program"), ("--from", self.path("absent"))):
            self.assert_one_line_error(self.top("--once", *arguments), (1, 125))
        self.scratch = self.environment["TMPDIR"] = self.path("absent")
        result = run([CROSSTALK, "top", "--once", "true"], env=self.environment)
        self.assert_one_line_error(result)
        self.assertIn("TMPDIR", result.stderr)


class Once(Top):
    @needs_events
    def test_one_picture_as_text(self):
        program = self.start(sys.executable, "-c", "while True: pass")
        result = self.top("-p", str(program.pid), "--once", "-n", "1")
        self.assertEqual((result.status, result.stderr), (0, ""))
        for part in ("crosstalk top", "Who talks to whom", "Objects", "Loops", "Threads", "Findings"):
            self.assertIn(part, result.stdout)
        self.assertNotIn("\x1b", result.stdout)
        self.assertIn(f"0 {os.path.basename(os.path.realpath(sys.executable))}"[:8], result.stdout)

    @needs_events
    def test_without_a_terminal_it_says_what_it_does(self):
        program = self.start("sleep", "600")
        result = self.top("-p", str(program.pid), "-n", "1", *QUICK)
        self.assertEqual(result.status, 0)
        self.assertIn("no terminal", result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn("Who talks to whom", result.stdout)

    def test_a_stored_stream_is_shown(self):
        with open(self.path("seen.jsonl"), "w", encoding="utf-8") as stream:
            for sequence in (1, 2):
                stream.write(json.dumps({**PICTURE, "sequence": sequence}) + "\n")
        result = self.top("--from", self.path("seen.jsonl"), "--once")
        self.assertEqual((result.status, result.stderr), (0, ""))
        self.assertIn("shared_counter[3]", result.stdout)

    def test_what_is_no_stream_is_refused_in_a_line(self):
        for text in ("nothing of that kind\n", "{}\n", json.dumps({**PICTURE, "threads": 3}) + "\n", "{", ""):
            with open(self.path("bad"), "w", encoding="utf-8") as stream:
                stream.write(text)
            self.assert_one_line_error(self.top("--from", self.path("bad"), "--once"), (1,))


class Screen(Top):
    """In a terminal of tmux."""

    def setUp(self):
        super().setUp()
        if not shutil.which("tmux"):
            self.skipTest("tmux is not installed")
        self.server = f"crosstalk-test-{os.getpid()}"
        self.addCleanup(self.tmux, "kill-server")

    def tmux(self, *arguments):
        return run(["tmux", "-L", self.server, "-f", "/dev/null", *arguments]).stdout

    def open(self, command, columns=80, rows=24, **environment):
        """A shell that runs the command in a terminal, and then says its status."""
        settings = {"TMPDIR": self.scratch, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "PS1": "ready ", **environment}
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "env",
                  *[f"{name}={value}" for name, value in settings.items()], "sh", "-i")
        wait_until(lambda: "ready" in self.screen())
        self.press(f"{command}; echo status=$?", "Enter")

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def screen(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def await_text(self, *texts):
        """The screen that has all of them."""
        try:
            return wait_until(lambda: next((shown for shown in [self.screen()] if all(text in shown for text in texts)), None),
                              PATIENCE_S)
        except AssertionError:
            self.fail(f"{texts} is not on the screen:\n{self.screen()}")

    def stored(self):
        """A command that shows a stream with one picture that does not end."""
        stream = self.path("stream")
        if not os.path.exists(stream):
            os.mkfifo(stream)
        self.start(sys.executable, "-c", "import sys, time; pipe = open(sys.argv[1], 'w'); print(sys.argv[2], file=pipe);"
                   "pipe.flush(); time.sleep(600)", stream, json.dumps(PICTURE))
        return f"{CROSSTALK} top --from - < {stream}"

    @needs_watchpoints
    def test_a_running_process(self):
        program = self.start(workload("false_sharing"), "--threads", "2", "--seconds", "600")
        self.open(f"{CROSSTALK} top -p {program.pid}")
        self.await_text("crosstalk top", "false_sharing")
        shown = self.await_text("Who talks to whom", "1 Objects", "counters[")
        lines = shown.splitlines()
        self.assertEqual(len(lines), 24)
        self.assertTrue(all(len(line) <= 80 for line in lines), shown)
        self.press("2")
        self.await_text("source line", "false_sharing.cpp:")
        self.press("s")
        self.await_text("now▼")
        self.press("Enter")
        self.await_text("/false_sharing.cpp", "__atomic_store_n")
        self.press("Escape")
        self.press("h")
        self.await_text("sort by the next column")
        self.press("Escape")
        self.await_text("Who talks to whom")
        self.press("q")
        self.await_text("status=0")
        self.assertEqual(os.listdir(self.scratch), [])
        self.assertEqual(recorders_of(self.scratch), [])

    def test_keys_choose_what_is_shown(self):
        self.open(self.stored())
        self.await_text("example --all", "shared_counter[3]", "40.0 %", "1 worker")
        self.press("m", "Right", "Enter")
        self.await_text("0 worker → 1 worker", "shared_counter[3]")
        self.press("Escape")
        self.press("1", "Enter", "Enter")
        self.await_text("test_top.py", "SPDX-License-Identifier")
        self.press("5", "Enter")
        self.await_text("Threads 0 and 1 exchange `shared_counter`.")
        self.press("1", "/", "xyz", "Enter")
        self.await_text("Nothing fits.", "/xyz")
        self.press("Escape")  # from the object's lines, then from the filter
        self.press("Escape")
        self.await_text("shared_counter[3]")
        self.press("q")
        self.await_text("status=0")

    def test_the_screen_follows_the_terminals_size(self):
        self.open(self.stored())
        self.await_text("shared_counter[3]")
        self.tmux("resize-window", "-x", "120", "-y", "40")
        wait_until(lambda: self.screen().splitlines()[39:] and "q quit" in self.screen().splitlines()[39])
        self.tmux("resize-window", "-x", "60", "-y", "20")
        self.await_text("80 x 24 are needed")
        self.tmux("resize-window", "-x", "80", "-y", "24")
        self.await_text("shared_counter[3]")
        self.press("q")
        self.await_text("status=0")

    def test_the_terminal_is_given_back(self):
        self.open(self.stored())
        self.await_text("shared_counter[3]")
        self.press("C-z")
        self.assertNotIn("Who talks to whom", self.await_text("ready ", "Stopped"))
        self.press("stty -a | grep -o ' icanon'; echo said", "Enter")
        self.await_text(" icanon\nsaid")
        self.press("fg; echo now=$?", "Enter")
        self.await_text("Who talks to whom")
        self.press("C-c")
        self.assertNotIn("Who talks to whom", self.await_text("now=0"))
        self.press("stty -a | grep -o ' echo '; echo done", "Enter")
        self.await_text(" echo\ndone")

    def test_looks(self):
        self.open(self.stored(), LC_ALL="C")
        self.await_text("shared_counter[3]")
        self.assertRegex(self.screen("-e"), r"\x1b\[[0-9;]*[34]8;5;")
        self.assertTrue(self.screen().isascii())
        self.press("q")
        self.await_text("status=0")
        self.press(f"clear; export NO_COLOR=1; {self.stored()}", "Enter")
        self.await_text("shared_counter[3]")
        self.assertIsNone(re.search(r"\x1b\[[0-9;]*[34]8;5;", self.screen("-e")))
        self.press("q")

    def test_a_dumb_terminal_gets_one_picture(self):
        with open(self.path("seen"), "w", encoding="utf-8") as stream:
            stream.write(json.dumps(PICTURE) + "\n")
        self.open(f"{CROSSTALK} top --from {self.path('seen')} 2> {self.path('said')}", TERM="dumb")
        self.await_text("shared_counter[3]", "status=0")
        with open(self.path("said"), encoding="utf-8") as said:
            self.assertIn("one picture is printed", said.read())


if __name__ == "__main__":
    harness.main()
