# SPDX-License-Identifier: Apache-2.0
"""The collector is brought into running processes: what it finds there is right, and it leaves them as they were."""

import array
import collections
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

import harness
import test_attach
from harness import needs_events, needs_watchpoints

# New mappings that are allowed afterwards. Anonymous memory: the library's tables and handler stacks, and the loader's
# allocations.
DORMANT = re.compile(r"^$|/libcrosstalk\.so$|/libZy(dis|core)\.so[.0-9]*$|^/memfd:crosstalk-arena")


def mappings(pid):
    """(path, permissions, bytes) of each."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as lines:
        fields = [line.rstrip("\n").split(maxsplit=5) for line in lines]
    found = collections.Counter()
    for field in fields:
        begin, end = (int(bound, 16) for bound in field[0].split("-"))
        found[field[5] if len(field) > 5 else "", field[1], end - begin] += 1
    return found


def descriptors(pid):
    return {number: os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")}


def signal_state(pid):
    """Returns masks, dispositions and pending signals of each thread."""
    state = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii") as lines:
            state[tid] = [line.split()[1] for line in lines if re.match(r"(SigPnd|ShdPnd|SigBlk|SigIgn|SigCgt):", line)]
    return state


def words_of_modules(pid):
    """Returns the words that a loader fills in, in files of code other than ours, by address; and the range of the
    library, None if it is not there."""
    words, library = {}, None
    with open(f"/proc/{pid}/maps", encoding="utf-8") as lines, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in lines:
            fields = line.rstrip("\n").split(maxsplit=5)
            path = fields[5] if len(fields) > 5 else ""
            begin, end = (int(bound, 16) for bound in fields[0].split("-"))
            if path.endswith("/libcrosstalk.so"):
                library = (min(begin, library[0] if library else begin), end)
            elif path.startswith("/") and not DORMANT.search(path) and "x" not in fields[1] and fields[1] != "---p":
                memory.seek(begin)
                words.update(zip(range(begin, end, 8), array.array("Q", memory.read(end - begin))))
    return words, library


class Injection(test_attach.Attachment):
    def inject(self, pid, *options, **more):
        return self.attach(pid, "--inject", *options, **more)


class KernelThreads(Injection):
    PROGRAM = """
import ctypes, struct, sys, time
polled, call = 2, 425
parameters = bytearray(120)
struct.pack_into("III", parameters, 8, polled, 0, 100)
if ctypes.CDLL(None).syscall(call, 8, (ctypes.c_char * 120).from_buffer(parameters)) < 0:
    sys.exit(77)
print("ready", flush=True)
while True:
    sum(range(1000))
"""

    def test_a_thread_that_polls_an_io_uring_is_none_of_the_program(self):
        process = self.start([sys.executable, "-c", self.PROGRAM])
        if process.stdout.readline() != "ready\n":
            self.skipTest("io_uring: this kernel has none for us")
        result = self.inject(process.pid, "--duration", "1")
        process.kill()
        process.communicate()
        self.assertEqual((result.status, result.stderr), (0, ""))
        self.assertGreater(harness.samples_in(result.profile), 0)


class Sharing(Injection):
    def observe_workload(self, name, arguments, seconds):
        process = self.start([harness.workload(name), "--seconds", str(2 * seconds + 3), *arguments])
        result = self.inject(process.pid, "--duration", str(seconds))
        self.assertEqual((result.status, result.stderr), (0, ""))
        out, err = process.communicate(timeout=120)
        self.assertEqual((process.returncode, err), (0, ""))
        return self.report(result.profile), json.loads(out.strip().splitlines()[-1])

    def check(self, name, *arguments, seconds=4):
        report, truth = self.enough(name, lambda factor: self.observe_workload(name, arguments, factor * seconds))
        costs = harness.cells_by_truth(report, truth)
        self.assertTrue(costs, "no communication was found")
        print(f"{name}: distance {harness.matrix_distance(costs, truth):.3f}, true {harness.true_share(costs)}")
        self.assertLessEqual(harness.matrix_distance(costs, truth), test_attach.MAX_DISTANCE, costs)
        self.check_directions(costs, truth)
        self.assertAlmostEqual(harness.true_share(costs), harness.known_true_share(truth),
                               delta=test_attach.MAX_VERDICT_ERROR)
        self.assertTrue(harness.object_named(report["objects"][0], truth["object"]), report["objects"][0]["name"])
        codes = {warning["code"] for warning in report["warnings"]}
        self.assertIn("brought_in", codes)
        self.assertEqual([each["observation"] for each in report["processes"]], ["injected"])
        self.assertEqual(codes & {"watched_from_outside", "incomplete", "ring_corrupt", "records_lost"}, set())
        self.assertIsNone(report["exit_status"])
        # The threads' earlier use is no part of it.
        self.assertLessEqual(max(thread["cpu_s"] for thread in report["threads"]), report["duration_s"])
        self.assertGreater(sum(loop["self_s"] for loop in report["loops"]),
                           0.8 * sum(thread["cpu_s"] for thread in report["threads"]))

    @needs_watchpoints
    def test_ping_pong(self):
        self.check("ping_pong")

    @harness.verify("how much was seen decides whether the matrix is close")
    @needs_watchpoints
    def test_false_sharing(self):
        self.check("false_sharing")


class Objects(Injection):
    @needs_watchpoints
    def test_heap_blocks_and_new_threads_are_known(self):
        process = self.start([harness.workload("busy_server"), "--seconds", "5"])
        result = self.inject(process.pid, "--duration", "2", "--budget", "20", "--period", "1ms")
        self.assertEqual((result.status, result.stderr), (0, ""))
        with contextlib.closing(sqlite3.connect(f"file:{result.profile}?mode=ro", uri=True)) as database:
            blocks = database.execute("SELECT COUNT(*) FROM block").fetchone()[0]
            threads = database.execute("SELECT COUNT(*) FROM thread").fetchone()[0]
            unbounded = database.execute("SELECT COUNT(*) FROM thread WHERE stack_low = 0").fetchone()[0]
        self.assertGreater(blocks, 5, "a fifth of the samples falls into blocks that are new")
        self.assertGreater(threads, 50, "it starts some hundred a second")
        self.assertEqual(unbounded, 0, "of each thread the stack is known")


    @needs_watchpoints
    def test_blocks_of_a_library_that_is_loaded_meanwhile(self):
        process = self.start([harness.workload("late_library"), "--seconds", "7", "--delay", "2.5"])
        result = self.inject(process.pid, "--duration", "5")
        self.assertEqual((result.status, result.stderr), (0, ""))
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertGreater(json.loads(out)["blocks"], 20)
        with contextlib.closing(sqlite3.connect(f"file:{result.profile}?mode=ro", uri=True)) as database:
            late = database.execute("SELECT COUNT(*) FROM block JOIN module ON site >= module.begin AND site < module.end "
                                    "WHERE path LIKE '%liblate_library.so'").fetchone()[0]
        self.assertGreater(late, 5)
        first = self.report(result.profile)["objects"][0]
        self.assertIn("late_block", first["allocated_at"])


class NothingDiffers(Injection):
    @needs_events
    def test_state_of_the_process(self):
        process = self.start([harness.workload("false_sharing"), "--seconds", "20"])
        before = (descriptors(process.pid), signal_state(process.pid))
        mapped_before = mappings(process.pid)
        mapped = []
        for _ in range(4):
            result = self.inject(process.pid, "--duration", "0.5")
            self.assertEqual((result.status, result.stderr), (0, ""))
            self.assertEqual((descriptors(process.pid), signal_state(process.pid)), before)
            mapped.append(mappings(process.pid))
        self.assertEqual(mapped_before - mapped[0], collections.Counter())
        strange = [path for path, _, _ in mapped[0] - mapped_before if not DORMANT.search(path)]
        self.assertEqual(strange, [])
        size = lambda maps: sum(bytes * count for (_, _, bytes), count in maps.items())
        self.assertEqual(size(mapped[3]), size(mapped[1]), "it grows")

    @needs_events
    def test_tables_of_addresses(self):
        process = self.start([harness.workload("busy_server"), "--seconds", "60"])
        before, _ = words_of_modules(process.pid)
        with subprocess.Popen([harness.CROSSTALK, "record", "-q", "-o", self.path("run.db"), "-p", str(process.pid),
                               "--inject"]) as recorder:
            harness.wait_until(lambda: harness.samples_in(self.path("run.db")) > 0)
            process.send_signal(signal.SIGSTOP)  # the maps that are read stay what they are
            during, (begin, end) = words_of_modules(process.pid)
            process.send_signal(signal.SIGCONT)
            recorder.send_signal(signal.SIGINT)
            self.assertEqual(recorder.wait(timeout=60), 0)
        changed = [place for place, word in during.items() if begin <= word < end]
        self.assertGreater(len(changed), 10, "calls of functions that are stood in for")
        after, _ = words_of_modules(process.pid)
        self.assertEqual({place: after[place] for place in changed}, {place: before[place] for place in changed})
        self.assertEqual([place for place, word in after.items() if begin <= word < end], [])

    @harness.verify("attaches for long")
    @needs_events
    def test_a_busy_server_does_not_notice_it(self):
        process = self.start([harness.workload("busy_server"), "--threads", "16", "--seconds", "25"])
        cycles = 0
        while cycles < 20 and process.poll() is None:
            result = self.inject(process.pid, "--duration", "0.2")
            if "it has ended" not in result.stderr:  # in the midst of the last one
                self.assertEqual((result.status, result.stderr), (0, ""))
                cycles += 1
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertEqual(json.loads(out)["failures"], 0)
        self.assertGreater(cycles, 10)

    @needs_events
    def test_a_recorder_that_is_killed(self):
        process = self.start([harness.workload("busy_server"), "--seconds", "100"])
        for seconds in (0.02, 0.1, 1.5):
            with subprocess.Popen([harness.CROSSTALK, "record", "-q", "-o", self.path("killed.db"), "-p",
                                   str(process.pid), "--inject"], stderr=subprocess.DEVNULL) as recorder:
                time.sleep(seconds)
                recorder.kill()
        result = self.inject(process.pid, "--duration", "1", output="after.db")
        self.assertEqual((result.status, result.stderr), (0, ""))
        self.assertGreater(self.report(result.profile)["sampling"]["samples"], 0)
        process.terminate()
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        self.assertEqual(json.loads(out)["failures"], 0)


@harness.verify("kills at many moments")
class Killed(test_attach.Killed):
    # One that comes while a call of the last one's goes on is refused, or finds its library about to leave.
    def check_recorder(self, ended, said):
        if ended is not None:
            self.assertEqual(ended, 125, said)
            self.assertRegex(said, "^crosstalk: -p .*--inject: ")

    @needs_events
    def test_at_any_moment(self):
        self.kill_recorders("--inject")


class Ends(Injection):
    @needs_events
    def test_the_process_ends(self):
        for seconds in (3, 12, 48):  # a busy machine takes longer to attach than a short program runs
            process = self.start([harness.workload("false_sharing"), "--seconds", str(seconds)])
            result = self.inject(process.pid)
            if not result.stderr.endswith("it has ended\n"):
                break
            process.communicate(timeout=60)
        self.assertEqual((result.status, result.stderr), (0, ""))
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertGreater(self.report(result.profile)["sampling"]["samples"], 0)

    def reasons_at_any_moment(self, command, cycles, latest, ends):
        """Messages about programs that act at some moment of the attachment."""
        said = set()
        for cycle in range(cycles):
            process = self.start(command)
            time.sleep(0.01 + latest * cycle / cycles)
            result = self.inject(process.pid, "--duration", "0.3")
            if result.status != 0:
                self.assert_one_line_error(result, statuses=(125,))
                said.add(result.stderr.split("--inject: ", 1)[-1].split(f"-p {process.pid}: ", 1)[-1].strip())
            if not ends:
                self.assertIsNone(process.poll(), result.stderr)
                process.kill()
            process.communicate()
        return said

    def test_the_process_ends_while_it_is_attached_to(self):
        said = self.reasons_at_any_moment([harness.workload("false_sharing"), "--seconds", "0.25"], 16, 0.3, True)
        self.assertLessEqual(said, {"it has ended", "it has ended and waits for its parent to ask how (a zombie)",
                                    "it is about to end: it has no memory any more"})

    def test_the_process_executes_another_program_while_it_is_attached_to(self):
        chain = self.path("chain.sh")
        with open(chain, "w", encoding="ascii") as script:  # some milliseconds each
            script.write("i=0\nwhile [ $i -lt 3000 ]; do i=$((i+1)); done\nexec sh \"$0\"\n")
        said = self.reasons_at_any_moment(["sh", chain], 6, 0.1, False)
        self.assertEqual(said, {"it has executed another program meanwhile"})

    @needs_events
    def test_an_interrupt_ends_the_attachment(self):
        process = self.start([harness.workload("false_sharing"), "--seconds", "20"])
        before = signal_state(process.pid)
        with subprocess.Popen([harness.CROSSTALK, "record", "-q", "-o", self.path("run.db"), "-p",
                               str(process.pid), "--inject"], stderr=subprocess.PIPE, text=True) as recorder:
            harness.wait_until(lambda: harness.samples_in(self.path("run.db")) > 0)
            recorder.send_signal(signal.SIGINT)
            self.assertEqual((recorder.wait(timeout=60), recorder.stderr.read()), (0, ""))
        self.assertIsNone(process.poll())
        self.assertEqual(signal_state(process.pid), before)
        self.assertGreater(self.report(self.path("run.db"))["sampling"]["samples"], 0)

    @needs_events
    def test_forked_children_are_left_alone(self):
        process = self.start(["/usr/bin/python3", "-c",
                              "import os, time\n"
                              "end = time.monotonic() + 6\n"
                              "while time.monotonic() < end:\n"
                              "    child = os.fork()\n"
                              "    if child == 0:\n"
                              "        caught = [l.split()[1] for l in open('/proc/self/status') if l.startswith('SigCgt')]\n"
                              "        os._exit(int(caught[0], 16) >> 4 & 1 | int(caught[0], 16) >> 31 & 1)\n"
                              "    assert os.waitpid(child, 0)[1] == 0\n"])
        result = self.inject(process.pid, "--duration", "2")
        self.assertEqual((result.status, result.stderr), (0, ""))
        _, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))


@harness.together
class Refusals(Injection):
    def refused(self, pid, word):
        result = harness.run([harness.CROSSTALK, "record", "-q", "-o", self.path("no.db"), "-p", str(pid), "--inject"])
        self.assert_one_line_error(result, statuses=(125,))
        self.assertIn(word, result.stderr)
        self.assertFalse(os.path.exists(self.path("no.db")))

    def test_no_process(self):
        self.refused(2**31 - 1, "no process")
        result = harness.run([harness.CROSSTALK, "record", "--inject", "/bin/true"])
        self.assert_one_line_error(result, statuses=(125,))
        self.assertIn("--inject goes with -p", result.stderr)

    def test_a_static_program(self):
        process = self.start([harness.workload("static/false_sharing"), "--seconds", "20"])
        self.refused(process.pid, "statically linked")

    def test_a_stopped_process(self):
        process = self.start(["/bin/sleep", "30"])
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        self.refused(process.pid, "stopped")
        process.send_signal(signal.SIGCONT)

    def test_a_process_that_waits_where_no_stop_may_disturb_it(self):
        # It sleeps for a time: only the kernel knows how much of it is left.
        process = self.start(["/bin/sleep", "30"])
        self.refused(process.pid, "no thread was found")
        self.assertIsNone(process.poll())

    def test_another_users_process(self):
        if os.geteuid() != 0:
            self.skipTest("only root can start a program as another user")
        process = subprocess.Popen(["/bin/sleep", "30"], user=65534)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.refused(process.pid, "another user (uid 65534)")

    def test_a_program_that_is_observed_already(self):
        with subprocess.Popen([harness.CROSSTALK, "record", "-q", "-o", self.path("first.db"),
                               harness.workload("false_sharing"), "--seconds", "60"], stdout=subprocess.DEVNULL) as first:
            harness.wait_until(lambda: harness.samples_in(self.path("first.db")) > 0)
            with open(f"/proc/{first.pid}/task/{first.pid}/children", encoding="ascii") as children:
                observed = next(pid for pid in children.read().split() if self.name_of(pid) == "false_sharing")
            self.refused(int(observed), "from its start")
            os.kill(int(observed), signal.SIGTERM)
            self.assertEqual(first.wait(timeout=60), -signal.SIGTERM)

    @staticmethod
    def name_of(pid):
        with open(f"/proc/{pid}/comm", encoding="ascii") as name:
            return name.read().strip()


if __name__ == "__main__":
    harness.main()
