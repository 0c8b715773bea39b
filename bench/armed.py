# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of armed watchpoints in programs that switch context and copy: bare, recorded, and recorded without
watchpoints, in turns. Writes docs/overhead.md."""

import argparse
import os
import statistics

import common
import programs

EXPLANATION = """## What armed watchpoints cost programs that switch and copy

Written by `./dev bench armed`. An armed watchpoint makes context switches and copies dearer, the kernel's too, and nobody
runs a handler for that: these are the programs that it would show in. Each round runs a program bare, recorded at
defaults and recorded with `--watchpoints 0`, one after the other, in an order that rotates; {rounds} rounds. Compared is the user +
system time of the program alone, with all that happens inside it; the recorder's own is left out, and is in the table
above. *Start* is part of every recorded run: {start_ms:.0f} ms for a program that does nothing.

- *recorded*, *without watchpoints*: CPU time over that of the same round's bare run: the median, in brackets its 95 %
  interval (bootstrap), and the quartiles of the rounds. The bound is 1.05.
- *self-measured*: the part of its CPU time that the profile says observing took, median.
- *difference*: recorded - 1 - self-measured, in points. The bound is 2 either way.
- *armed*: watches that were opened, and the part of the threads' CPU time that their handlers and what armed watchpoints
  cost took, medians.

Machine: {machine}.
"""


# Runs of about a second: many short ones in turns meet the same machine.
REQUESTS, LOOPS, TRIPS = 100000, 1000, 200000


class Inside:
    """A program of programs.py whose CPU time is weighed inside the recording."""

    def __init__(self, name, command, server=False):
        self.name, self.command, self.server = name, command, server

    def run(self, folder, profile, options=()):
        """CPU seconds of the program, recorded with `options` if there is a `profile`."""
        weight = folder.file("weight.json")
        port = programs.Redis.free_port()
        command = [common.WEIGH, weight, *self.command(folder, port)]
        if profile:
            command = common.recorded(command, profile, options)
        running = common.Weighed(command)
        if self.server:
            programs.Redis.await_server(str(port))
            programs.RedisRun(running, str(port), REQUESTS).finish()
        elif running.finish().status != 0:
            raise RuntimeError(f"{self.name} ended badly")
        return common.read_weight(weight)["cpu_s"]


def switching_programs():
    return [
        Inside("redis-server --io-threads 2", lambda f, port: programs.Redis.command(f, str(port)), server=True),
        Inside("hackbench -T (pipes)", lambda f, port: programs.hackbench(LOOPS)),
        Inside("switching (pipe ping-pong, one processor)", lambda f, port: programs.pipe_ping_pong(TRIPS)),
    ]


# Options by kind of run.
KINDS = {"bare": None, "recorded": (), "without": ("--method", "watch", "--watchpoints", "0")}


def measure(program, folder, rounds):
    """The rounds' CPU seconds by kind, self-measured fractions and numbers of watches."""
    profile = folder.file("profile.db")
    rows = {kind: [] for kind in KINDS}
    rows.update(self=[], armed=[], handlers=[], switches=[])
    program.run(folder, None)  # warms caches
    for index in range(rounds):
        for kind in common.in_turn(KINDS, index):
            rows[kind].append(program.run(folder, profile if KINDS[kind] is not None else None, KINDS[kind] or ()))
            if kind == "recorded":
                report = common.report(profile, "--view", "summary")
                overhead = report["sampling"]["overhead"]
                rows["self"].append(overhead["fraction"])
                rows["armed"].append(report["sampling"]["armed"])
                rows["handlers"].append(overhead["handlers_s"] / report["cpu_s"])
                rows["switches"].append(overhead["switches_s"] / report["cpu_s"])
        bare = rows["bare"][-1]
        print(f"{program.name}: {index + 1}: bare {bare:.2f} s, recorded {rows['recorded'][-1] / bare:.3f}, without "
              f"watchpoints {rows['without'][-1] / bare:.3f}, self-measured {rows['self'][-1]:.4f}", flush=True)
    return rows


def ratio(rows, kind):
    ratios = [cpu / bare for cpu, bare in zip(rows[kind], rows["bare"])]
    quartiles = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return common.median_with_interval(ratios), f"{quartiles[0]:.3f}, {quartiles[2]:.3f}"


def row(program, rows):
    recorded, recorded_quartiles = ratio(rows, "recorded")
    without, without_quartiles = ratio(rows, "without")
    said = statistics.median(rows["self"])
    return [f"`{program.name}`", f"{statistics.median(rows['bare']):.2f} s", f"{recorded}; {recorded_quartiles}",
            f"{without}; {without_quartiles}", f"{100 * said:.2f} %", f"{100 * (recorded.median - 1 - said):+.2f}",
            f"{statistics.median(rows['armed']):.0f}: {100 * statistics.median(rows['handlers']):.2f} % + "
            f"{100 * statistics.median(rows['switches']):.2f} %"]


def main():
    parser = argparse.ArgumentParser(prog="./dev bench armed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=24, help="runs of each kind (default 24)")
    parser.add_argument("--only", default="", help="programs whose name contains this; writes no document")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds} must be at least 1")
    with common.Folder() as folder:
        nothing = Inside("true", lambda f, port: ["/bin/true"])
        start_ms = 1e3 * statistics.median(nothing.run(folder, folder.file("empty.db")) - nothing.run(folder, None)
                                           for _ in range(11))
        rows = [row(program, measure(program, folder, options.rounds)) for program in switching_programs()
                if options.only in program.name]
    text = common.table(["program", "bare", "recorded", "without watchpoints", "self-measured", "difference", "armed"], rows)
    print(f"start: {start_ms:.1f} ms\n{text}")
    if not options.only:
        explanation = EXPLANATION.format(rounds=options.rounds, start_ms=start_ms, machine=common.machine())
        common.write_section("overhead.md", "armed", explanation + "\n" + text + "\n")


if __name__ == "__main__":
    main()
