# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of attaching to running programs from outside (record -p), the recorder's own CPU time included.
Writes a section of docs/overhead.md."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import common
import programs

EXPLANATION = """## Attached to from outside

Written by `./dev bench outside`. A program is started, and a recorder is attached to it (`crosstalk record -p PID`) until it
ends. Nothing of ours is in it, so what observing costs is the recorder's CPU time, and what the kernel's events take from the
program's. Compared is CPU time, that of the attached program and of the recorder together, with that of a bare run.

- *together*, {pairs} times: bare and attached to at the same time, so that both meet the same machine: the median of the
  ratios and its 95 % interval (bootstrap). *Bare / bare* is the same for two bare runs: how far to believe it.
- *in turns*, {turns} times, every second pair in reverse order, where programs spin or hang on which processors their threads
  meet: the ratio of the lower quartiles, with its interval. Control: the same of two halves of the bare runs. `false_sharing`
  runs for a time, so CPU time for each of its additions is compared: threads that hammer on one line and do nothing else.
- *recorder*: its CPU time, of the bare run's, median. It has {start_ms:.0f} ms of it when it is attached to a program that sleeps
  for a second: its start (it measures what signals and watchpoints cost here) and its end.
- *self-measured*: what the profile says observing has cost (`sampling.overhead.fraction`), median; the budget was the default.

Machine: {machine}; load average {load} in the meantime, these programs included.
"""


class Attached:
    """A program that runs, and a recorder that is attached to it; both are weighed."""

    def __init__(self, weighed, profile):
        self.weighed = weighed
        self.recorder = common.Weighed([common.CROSSTALK, "record", "-q", "-o", profile, "-p", str(pid_of(weighed.process.pid))],
                                       stderr=sys.stderr) if profile else None

    def finish(self):
        """(CPU time of the program, of the recorder)."""
        weight = self.weighed.finish()
        if weight.status != 0:
            raise RuntimeError(f"the program ended with {weight.status}")
        if self.recorder is None:
            return weight.cpu_s, 0.0
        own = self.recorder.finish()
        if own.status != 0:
            raise RuntimeError(f"the recorder ended with {own.status}")
        return weight.cpu_s, own.cpu_s


def pid_of(weigher, patience_s=10):
    """The process that bench/weigh.cpp has started, once it is the program."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        with open(f"/proc/{weigher}/task/{weigher}/children", encoding="ascii") as file:
            children = file.read().split()
        if children and os.readlink(f"/proc/{children[0]}/exe") != os.path.realpath(common.WEIGH):
            return int(children[0])
        time.sleep(0.002)
    raise RuntimeError("the program does not start")


class Command:
    """As programs.Program has it: a fixed amount of work."""

    def __init__(self, program, alone=False):
        self.program, self.name, self.alone = program, program.name, alone

    def available(self):
        return self.program.available()

    def prepare(self, folder):
        self.program.prepare(folder)

    def start(self, folder, profile):
        return Attached(self.program.start(folder, None).weighed, profile)


class Server(Command):
    """redis-server: what it took to serve as many requests."""

    class Run:
        def __init__(self, redis, profile):
            self.redis, self.attached = redis, Attached(redis.server, profile)

        def finish(self):
            if self.redis.load.wait() != 0:
                raise RuntimeError(f"redis-benchmark ended with {self.redis.load.returncode}")
            subprocess.run(["redis-cli", "-p", self.redis.port, "shutdown", "nosave"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)
            return self.attached.finish()

    def start(self, folder, profile):
        return self.Run(self.program.start(folder, None), profile)


class Hammering:
    """Threads that only add to neighbouring words, for some seconds: CPU time for each addition."""

    name, alone = "false_sharing --threads 2", True

    def __init__(self, seconds):
        self.seconds = seconds

    def available(self):
        return True

    def prepare(self, folder):
        pass

    class Run:
        def __init__(self, command, profile):
            self.attached = Attached(common.Weighed(command, stdout=subprocess.PIPE, text=True), profile)

        def finish(self):
            said = self.attached.weighed.process.stdout.read()
            counted = json.loads(said.strip().splitlines()[-1])["counted"]
            return tuple(cpu_s / counted * 1e9 for cpu_s in self.attached.finish())

    def start(self, folder, profile):
        return self.Run([os.path.join(common.WORKLOADS, "false_sharing"), "--seconds", str(self.seconds)], profile)


def all_programs():
    known = {program.name.split()[0]: program for program in programs.all_programs()}
    hackbench = programs.Program("hackbench -T (pipes)", "80", ["hackbench"], lambda _: programs.hackbench(12000))
    return [Command(known["pigz"]), Command(known["zstd"]), Server(known["redis-server"], alone=True),
            Command(hackbench, alone=True), Hammering(6)]


class Row:
    def __init__(self, program):
        self.program, self.ratio, self.control = program, [], []
        self.bare, self.attached, self.own, self.self_measured = [], [], [], []

    def add(self, bare, attached, profile):
        self.bare.append(bare)
        self.attached.append(sum(attached))
        self.own.append(attached[1] / bare)
        self.ratio.append(sum(attached) / bare)
        fraction = common.report(profile, "--view", "summary")["sampling"]["overhead"]["fraction"]
        self.self_measured.append(fraction if fraction is not None else float("nan"))
        print(f"{self.program.name}: {self.ratio[-1]:.3f}, recorder {100 * self.own[-1]:.1f} %, self-measured "
              f"{100 * self.self_measured[-1]:.1f} %" + (f", bare / bare {self.control[-1]:.3f}" if self.control else ""), flush=True)

    def cells(self):
        if self.program.alone:
            cpu, half = common.undisturbed_ratio(self.attached, self.bare), len(self.bare) // 2
            control = common.low_quartile(self.bare[:half]) / common.low_quartile(self.bare[half:]) if half else None
        else:
            cpu, control = common.median_with_interval(self.ratio), statistics.median(self.control) if self.control else None
        unit = "ns an addition" if isinstance(self.program, Hammering) else "s"
        return [f"`{self.program.name}`", "in turns" if self.program.alone else "together", f"{statistics.median(self.bare):.2f} {unit}",
                cpu, "-" if control is None else f"{control:.3f}", f"{100 * statistics.median(self.own):.1f} %",
                f"{100 * statistics.median(self.self_measured):.1f} %"]


def together(program, folder, paths):
    """Returns the results of finish(), by index of `paths`; the second starts first."""
    runs = {index: program.start(folder, paths[index]) for index in reversed(range(len(paths)))}
    return [runs[index].finish() for index in range(len(paths))]


def measure(program, folder, pairs, turns):
    row, profile = Row(program), folder.file("profile.db")
    program.prepare(folder)
    program.start(folder, None).finish()  # warms caches
    for index in range(turns if program.alone else pairs):
        paths = common.in_turn((None, profile), index)
        if program.alone:
            results = dict((path, program.start(folder, path).finish()) for path in paths)
        else:
            results = dict(zip(paths, together(program, folder, paths)))
            if index % 2 == 0:
                one, other = (sum(result) for result in together(program, folder, (None, None)))
                row.control.append(one / other)
        row.add(sum(results[None]), results[profile], profile)
    return row.cells()


def start_cost(folder, runs=7):
    """The recorder's CPU time in ms when it watches a program that sleeps for a second."""
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        record = [common.CROSSTALK, "record", "-q", "-o", folder.file("idle.db"), "-p", str(sleeper.pid), "--duration", "1"]
        try:
            weights = [common.weigh(record, stderr=sys.stderr) for _ in range(runs)]
        finally:
            sleeper.kill()
    if any(weight.status != 0 for weight in weights):
        raise RuntimeError("the recorder of a program that sleeps failed")
    return 1e3 * statistics.median(weight.cpu_s for weight in weights)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench outside", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10, help="pairs of runs at the same time [10]")
    parser.add_argument("--turns", type=int, default=16, help="pairs of runs in turns [16]")
    parser.add_argument("--only", default="", help="programs whose name contains this; writes no document")
    options = parser.parse_args()
    if options.pairs < 1 or options.turns < 1:
        parser.error(f"--pairs {options.pairs} and --turns {options.turns} must be at least 1")
    rows, absent, loads = [], [], []
    with common.Folder() as folder:
        start_ms = start_cost(folder)
        for program in all_programs():
            if options.only not in program.name:
                continue
            if not program.available():
                absent.append(program.name)
                continue
            loads.append(os.getloadavg()[1])
            rows.append(measure(program, folder, options.pairs, options.turns))
    text = common.table(["program", "run", "bare", "CPU time", "bare / bare", "recorder", "self-measured"], rows)
    print(f"recorder of a program that sleeps: {start_ms:.0f} ms\n{text}")
    if absent:
        print("not installed and left out: " + ", ".join(absent), file=sys.stderr)
    if not options.only:
        explanation = EXPLANATION.format(pairs=options.pairs, turns=options.turns, start_ms=start_ms, machine=common.machine(),
                                         load=f"{min(loads):.0f} to {max(loads):.0f}")
        common.write_section("overhead.md", "outside", explanation + "\n" + text + "\n")


if __name__ == "__main__":
    main()
