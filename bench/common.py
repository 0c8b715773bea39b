# SPDX-License-Identifier: Apache-2.0
"""Shared by the benchmarks: running commands and weighing them, medians with spread, tables."""

import dataclasses
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
BUILD = os.environ.get("CROSSTALK_BUILD", os.path.join(TOP, "build", "release"))
CROSSTALK = os.environ.get("CROSSTALK", os.path.join(BUILD, "driver", "crosstalk"))
WORKLOADS = os.environ.get("CROSSTALK_WORKLOADS", os.path.join(BUILD, "workloads"))
WEIGH = os.path.join(BUILD, "bench", "weigh")

sys.path.insert(0, os.path.join(TOP, "tests", "end_to_end"))
os.environ.setdefault("CROSSTALK", CROSSTALK)
os.environ.setdefault("CROSSTALK_WORKLOADS", WORKLOADS)


@dataclasses.dataclass
class Weight:
    """The cost of a run. CPU time and peak memory are those of the whole process tree that was waited for."""
    seconds: float
    cpu_s: float
    peak_bytes: int
    status: int


class Weighed:
    """A command that is being weighed (bench/weigh.cpp); finish() waits for its end."""

    def __init__(self, command, **options):
        handle, self.file = tempfile.mkstemp(prefix="crosstalk-weight-")
        os.close(handle)
        for stream in ("stdin", "stdout", "stderr"):
            options.setdefault(stream, subprocess.DEVNULL)
        self.process = subprocess.Popen([WEIGH, self.file, *command], **options)

    def finish(self):
        self.process.wait()
        try:
            result = read_weight(self.file)
        finally:
            os.unlink(self.file)
        return Weight(status=self.process.returncode, **result)


def in_turn(kinds, index):
    """The kinds of run in the order of round `index`, which rotates: none always comes first."""
    kinds = list(kinds)
    turn = index % len(kinds)
    return kinds[turn:] + kinds[:turn]


def read_weight(path):
    """Reads the result of bench/weigh.cpp."""
    with open(path, encoding="ascii") as file:
        return json.load(file)


def weigh(command, **options):
    return Weighed(command, **options).finish()


def recorded(command, profile, options=()):
    return [CROSSTALK, "record", "-q", "-o", profile, *options, "--", *command]


def observe(command, profile, options=()):
    """Returns a recorded program's own line of JSON."""
    shown = subprocess.run(recorded(command, profile, options), check=True, capture_output=True, text=True)
    return json.loads(shown.stdout)


def report(profile, *options):
    shown = subprocess.run([CROSSTALK, "report", "-i", profile, "--format", "json", *options], check=False,
                           capture_output=True, text=True)
    if shown.returncode != 0:
        sys.exit(f"bench: the report of {profile} failed: {shown.stderr.strip()}")
    return json.loads(shown.stdout)


@dataclasses.dataclass
class Spread:
    median: float
    low: float   # ends of an interval
    high: float

    def __str__(self):
        return f"{self.median:.3f} ({self.low:.3f}..{self.high:.3f})"


def bootstrap(statistic, draws=2000):
    """The 95 % interval of `statistic(choose)`, where choose(values) resamples."""
    source = random.Random(1)
    results = sorted(statistic(lambda values: source.choices(values, k=len(values))) for _ in range(draws))
    return results[draws // 40], results[-1 - draws // 40]


def median_with_interval(values):
    return Spread(statistics.median(values), *bootstrap(lambda choose: statistics.median(choose(values))))


def low_quartile(values):
    return values[0] if len(values) < 2 else statistics.quantiles(values, n=4, method="inclusive")[0]


def undisturbed_ratio(observed, bare):
    """Ratio of the two lower quartiles: what else runs on a machine only ever slows a run, so the faster runs are the
    ones to compare; with its interval."""
    ratio = low_quartile(observed) / low_quartile(bare)
    return Spread(ratio, *bootstrap(lambda choose: low_quartile(choose(observed)) / low_quartile(choose(bare))))


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def machine():
    """One sentence on what the figures were measured on."""
    model, hypervisor = "unknown processor", False
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
            hypervisor |= line.startswith("flags") and " hypervisor" in line
    release = ".".join(platform.release().split("-")[0].split(".")[:2])
    pmu = "with" if os.path.isdir("/sys/bus/event_source/devices/cpu") else "without"
    return (f"{len(os.sched_getaffinity(0))} processors ({model}{', a virtual machine' if hypervisor else ''}), "
            f"{pmu} a PMU, Linux {release}")


def write_section(document, name, text):
    """Replaces the section `name` of docs/`document`, or appends it: each bench writes its own."""
    path = os.path.join(TOP, "docs", document)
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    try:
        with open(path, encoding="utf-8") as file:
            whole = file.read()
    except FileNotFoundError:
        whole = ""
    section = begin + text.rstrip("\n") + "\n" + end
    if begin in whole and end in whole:
        whole = whole[:whole.index(begin)] + section + whole[whole.index(end) + len(end):]
    else:
        whole += ("\n" if whole else "") + section
    with open(path, "w", encoding="utf-8") as file:
        file.write(whole)
    print(f"written to docs/{document}")


class Folder:
    """A folder for profiles and data that goes away with the `with`."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="crosstalk-bench-")
        return self

    def __exit__(self, *unused):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name):
        return os.path.join(self.path, name)
