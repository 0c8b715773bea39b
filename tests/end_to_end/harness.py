# SPDX-License-Identifier: Apache-2.0
"""Records workloads with the built crosstalk and compares its reports with the truth that they print.

Paths come from the environment (set by CMake): CROSSTALK (the command), CROSSTALK_COLLECTOR (libcrosstalk.so),
CROSSTALK_WORKLOADS (folder). A test that needs what the machine does not give is skipped with the remedy: the
process then ends with 77. There are no retries: run lengths are chosen so that none are needed.
"""

import contextlib
import ctypes
import dataclasses
import functools
import json
import math
import os
import platform
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from zeros import zeros_by_default

CROSSTALK = os.environ.get("CROSSTALK", "crosstalk")
COLLECTOR = os.environ.get("CROSSTALK_COLLECTOR", "")
WORKLOADS = os.environ.get("CROSSTALK_WORKLOADS", "")
SKIPPED = 77
LEAST_OF_EVENLY = 0.5  # of what each direction would have if all had as much: those with more must be found,
LEAST_OF_KNOWN = 0.2   # with at least such a part of what is known of them


# A test run behind nohup(1) or in the background ignores some of these, and programs inherit that.
for _number, _usual in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler),
                        (signal.SIGQUIT, signal.SIG_DFL)):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, _usual)


@dataclasses.dataclass
class Run:
    status: int  # as a shell has it: 128 + N for signal N
    stdout: str
    stderr: str
    profile: str = ""

    @property
    def truth(self):
        return json.loads(self.stdout.strip().splitlines()[-1])


def workload(name):
    return os.path.join(WORKLOADS, name)


def shell_status(returncode):
    return 128 - returncode if returncode < 0 else returncode


def run(command, timeout=120, **options):
    """Runs a command to its end; its whole process group goes down with a timeout."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="replace", start_new_session=True, **options) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return Run(shell_status(process.returncode), out, err)


def wait_until(condition, seconds=60):
    """Until condition() holds, however slow the machine is: then its value. Nobody waits longer than `seconds`."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"what is waited for has not come within {seconds} s")
        time.sleep(0.02)
    return value


def samples_in(profile):
    """How many a recording that goes on has written; 0 before it has begun."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{profile}?mode=ro", uri=True)) as database:
            return database.execute("SELECT COUNT(*) FROM sample").fetchone()[0]
    except sqlite3.Error:
        return 0


def verify(reason):
    """Above a test, or a class of tests: `./dev verify` runs it and `./dev test` does not, for this reason. CMake reads
    the decorator (cmake/python_tests.cmake)."""
    def decorate(test):
        test.verified_because = reason
        return test
    return decorate


def sleeps(test):
    """Above a test that waits nearly all of its time: it runs beside as many others as processors can
    (cmake/python_tests.cmake)."""
    return test


def together(case):
    """Above a class of tests: they run in one process and share what setUpClass() makes (cmake/python_tests.cmake)."""
    return case


# ---- what the machine gives ---------------------------------------------------------------------------------

SILENT = -1  # it can be set, and nothing is reported
DEAD_SWITCH = "CROSSTALK_TEST_DEAD_WATCHPOINTS"  # docs/testing.md: crosstalk leads its watchpoints astray


def _open_watchpoint():
    """errno of opening a data breakpoint with `sigtrap` on a word of this process, or SILENT; 0 when it works."""
    if platform.machine() != "x86_64":
        return 38
    word = ctypes.c_uint64(0)
    flags = (1 << 5) | (1 << 6) | (1 << 36) | (1 << 37)  # exclude_kernel, exclude_hv, remove_on_exec, sigtrap
    attributes = bytearray(128)
    struct.pack_into("=IIQQQQQ", attributes, 0, 5, 128, 0, 1, 0, 0, (1 << 0) | flags)  # PERF_TYPE_BREAKPOINT, disabled
    struct.pack_into("=IIQQ", attributes, 48, 0, 3, ctypes.addressof(word), 8)  # bp_type read+write, address, length
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(298, (ctypes.c_char * 128).from_buffer(attributes), 0, -1, -1, 8)
    if fd < 0:
        return ctypes.get_errno()
    os.close(fd)
    struct.pack_into("=QQQQ", attributes, 16, 0, 0, 0, (1 << 5) | (1 << 6))  # counted only, at once
    fd = libc.syscall(298, (ctypes.c_char * 128).from_buffer(attributes), 0, -1, -1, 8)
    word.value = 1
    fired = fd >= 0 and os.read(fd, 8) != bytes(8)
    if fd >= 0:
        os.close(fd)
    return 0 if fired and not os.environ.get(DEAD_SWITCH) else SILENT


@functools.lru_cache(maxsize=None)
def why_no_watchpoints():
    """None when watchpoints work, else why not and the remedy."""
    error = _open_watchpoint()
    if error == 0:
        return None
    if error == SILENT:
        return "they can be set here, but do not fire: the host of this virtual machine keeps debug exceptions to itself"
    try:
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as setting:
            paranoid = int(setting.read())
    except OSError:
        return "this kernel has no perf events"
    if paranoid > 2 and os.geteuid() != 0:
        return f"kernel.perf_event_paranoid is {paranoid}; sudo sysctl kernel.perf_event_paranoid=2"
    return f"watchpoints cannot be opened: {os.strerror(error)} (kernel.perf_event_paranoid is {paranoid})"


def watchpoints_are_silent():
    """They can be set here, and do not fire."""
    return _open_watchpoint() == SILENT


def needs_watchpoints(test):
    @functools.wraps(test)
    def wrapper(self):
        reason = why_no_watchpoints()
        if reason:
            self.skipTest("watchpoints: " + reason)
        test(self)
    return wrapper


def why_no_events():
    """None when events of perf can be opened on other processes, even where watchpoints do not fire; else why not."""
    return None if watchpoints_are_silent() else why_no_watchpoints()


def needs_events(test):
    @functools.wraps(test)
    def wrapper(self):
        reason = why_no_events()
        if reason:
            self.skipTest("perf events: " + reason)
        test(self)
    return wrapper


def fault_of_what_is_left(profile):
    """Checks a killed recorder's output: no file, or a readable profile. Returns the fault; empty if there is none."""
    if not os.path.exists(profile):
        return ""
    try:
        with contextlib.closing(sqlite3.connect(profile)) as database:
            begun = database.execute("PRAGMA user_version").fetchone()[0] != 0
            sound = database.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.Error as error:
        begun, sound = True, str(error)
    if sound != "ok":
        return f"profile: {sound}"
    shown = run([CROSSTALK, "report", "-i", profile, "--format", "json"]) if begun else Run(0, "", "")
    return "" if shown.status == 0 else f"the profile is not read: {shown.stderr.strip()}"


# ---- reports against truth ------------------------------------------------------------------------------------

def cells_of_data(report, truth):
    """All cells; where the workload synchronises by lines of their own, those of the variables that hold data."""
    if not truth["sync"]:
        return report["communication"]["cells"]
    return [cell for entry in report["objects"] if any(object_named(entry, name) for name in truth["data"])
            for cell in entry["cells"]]


def cells_by_truth(report, truth, figure="cost_s"):
    """Cost, or another figure, by (producer, consumer, sort) in the truth's thread indices, of cells_of_data()."""
    index_of_tid = {tid: index for index, tid in enumerate(truth["tids"])}
    index = {thread["index"]: index_of_tid.get(thread["tid"]) for thread in report["threads"]}
    costs = {}
    for cell in cells_of_data(report, truth):
        for sort in ("true", "false"):
            key = (index.get(cell["producer"]), index.get(cell["consumer"]), sort)
            costs[key] = costs.get(key, 0.0) + (cell.get(sort, {}).get(figure) or 0.0)
    return costs


def longer(arguments, factor):
    """The arguments of a workload, for a run `factor` times as long."""
    lengths = {"--seconds", "--iterations"}
    return [str(int(value) * factor) if before in lengths else value for before, value in zip(("", *arguments), arguments)]


def had_no_processor(report):
    """The share of a processor that the threads had, if it is too small to judge by; else None."""
    share = cpu_seconds(report) / report["duration_s"]
    return f"its threads had {share:.0%} of one processor" if share < 0.25 else None


def too_little(report, truth):
    """None where a run can be judged by its report: its threads had the processors for a good part of the time, the costs
    found on its data are known to within half of themselves, and there is less that no watch saw. Else what was missing.
    """
    widest = 0.5
    if why := had_no_processor(report):
        return why
    sides = [cell[sort] for cell in cells_of_data(report, truth) for sort in ("true", "false")
             if (cell.get(sort) or {}).get("cost_s")]
    cost = sum(side["cost_s"] for side in sides)
    off = math.sqrt(sum(((side["cost_ci95"][1] - side["cost_ci95"][0]) / 2) ** 2 for side in sides))
    if off >= widest * cost:
        return f"its costs of {cost:.3f} s are known to within {off:.3f} s"
    unseen = (report["communication"].get("unseen") or {}).get("true_limit_s", 0.0)
    return None if unseen < widest * cost else f"beside its costs of {cost:.3f} s, up to {unseen:.3f} s were not seen"


def object_named(entry, name):
    """`(anonymous namespace)::ball`, `ball` and `ball[3]` are all the variable `ball`."""
    bare = entry["name"].split("[")[0].split(".")[0].rsplit("::", 1)[-1]
    return bare == name


def is_timed(truth):
    """The workload's threads have timed what communication costs them (tests/workloads/cost_clock.h)."""
    return truth.get("true_cost") is not None and sum(map(sum, truth["true_cost"] + truth["false_cost"])) > 0


def known_costs(truth, sort):
    """Rows of producers: what the workload has timed; else how often its threads communicate, which has the same shape
    as long as all communications cost alike."""
    return truth[sort + ("_cost" if is_timed(truth) else "_matrix")]


def known_matrix(truth):
    """As known_costs(), of both sorts."""
    if not is_timed(truth):
        return truth["matrix"]
    return [[sum(cells) for cells in zip(*rows)] for rows in zip(known_costs(truth, "true"), known_costs(truth, "false"))]


def of_timed(costs, truth):
    """The cost found, of the one timed; None where the workload does not time itself."""
    return sum(costs.values()) / sum(map(sum, known_matrix(truth))) if is_timed(truth) else None


def known_true_share(truth):
    """Share of true sharing in the cost timed, else in the communications forced; None where there are none."""
    true, false = ((sum(map(sum, truth[sort + "_cost"])) for sort in ("true", "false")) if is_timed(truth) else
                   (truth["true"], truth["false"]))
    return true / (true + false) if true + false > 0 else None


def matrix_distance(costs, truth, matrix=None):
    """Half the sum of absolute differences of the two matrices, each normalised to a sum of 1: 0..1. `matrix`: to compare with
    in place of known_matrix()."""
    found, known = {}, {}
    for (producer, consumer, _), cost in costs.items():
        found[producer, consumer] = found.get((producer, consumer), 0.0) + cost
    for producer, row in enumerate(matrix or known_matrix(truth)):
        for consumer, cost in enumerate(row):
            known[producer, consumer] = float(cost)
    found_sum, known_sum = sum(found.values()), sum(known.values())
    if found_sum <= 0 or known_sum <= 0:
        return 1.0
    return 0.5 * sum(abs(found.get(key, 0.0) / found_sum - known.get(key, 0.0) / known_sum)
                     for key in set(found) | set(known))


def true_share(costs):
    total = sum(costs.values())
    return sum(cost for (_, _, sort), cost in costs.items() if sort == "true") / total if total > 0 else None


def cpu_seconds(report):
    return sum(thread["cpu_s"] or 0.0 for thread in report["threads"])


def total_cost(report):
    return sum(cell[sort].get("cost_s") or 0.0 for cell in report["communication"]["cells"]
               for sort in ("true", "false") if cell.get(sort))


class Case(unittest.TestCase):
    """A test with a folder of its own, in which profiles are written."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="crosstalk-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def record(self, command, options=(), output="run.db", **more):
        """Records quietly; stderr of the result is the command's own."""
        profile = self.path(output)
        result = run([CROSSTALK, "record", "-q", "-o", profile, *options, "--", *command], **more)
        result.profile = profile
        return result

    def report(self, profile, *options):
        result = run([CROSSTALK, "report", "-i", profile, "--format", "json", *options])
        self.assertEqual(result.status, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(zeros_by_default(report), [])
        return report

    def observe(self, name, *arguments, options=()):
        """Records a workload; returns its report and its truth."""
        result = self.record([workload(name), *arguments], options)
        self.assertEqual(result.status, 0, result.stderr)
        return self.report(result.profile), result.truth

    def observe_enough(self, name, *arguments, options=()):
        """As observe; again, and longer, while there is too little to judge by."""
        return self.enough(name, lambda factor: self.observe(name, *longer(arguments, factor), options=options))

    def enough(self, name, observe):
        """The report and the truth that observe(FACTOR) gives; of longer runs while there is too little to judge by: threads
        that yield get next to nothing of processors that are busy with others' work, and a handful of samples says nothing.
        Skips the test where the longest run had hardly a processor, either, as others' work takes them all."""
        for factor in (1, 2, 4):
            report, truth = observe(factor)
            why = too_little(report, truth)
            if why is None:
                break
            print(f"{name}: {why}")
        if had_no_processor(report) and os.getloadavg()[0] > len(os.sched_getaffinity(0)):
            self.skipTest(f"this machine is too busy: {why}")
        return report, truth

    def check_directions(self, costs, truth):
        """Each direction of note is found: a matrix of two threads that lacks one of them is only half wrong."""
        found, known = {}, known_matrix(truth)
        for (producer, consumer, _), cost in costs.items():
            found[producer, consumer] = found.get((producer, consumer), 0.0) + cost
        pairs = {(i, j): known[i][j] for i in range(len(known)) for j in range(len(known)) if known[i][j] > 0}
        self.assertTrue(pairs)
        evenly = sum(pairs.values()) / len(pairs)
        for pair, cost in pairs.items():
            if cost >= LEAST_OF_EVENLY * evenly:
                self.assertGreater(found.get(pair, 0.0) / sum(found.values()),
                                   LEAST_OF_KNOWN * cost / sum(pairs.values()), (pair, found, pairs))

    def assert_one_line_error(self, result, statuses=(1, 2, 125, 126, 127)):
        self.assertIn(result.status, statuses, result.stderr)
        lines = [line for line in result.stderr.splitlines() if line]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertTrue(lines[0].startswith("crosstalk: "), result.stderr)


def main():
    """Like unittest.main(), but a run in which everything was skipped ends with 77."""
    program = unittest.main(module="__main__", exit=False, verbosity=2)
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.testsRun == 0:
        print("no test was run", file=sys.stderr)
        sys.exit(1)
    sys.exit(SKIPPED if len(result.skipped) == result.testsRun else 0)
