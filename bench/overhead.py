# SPDX-License-Identifier: Apache-2.0
"""Recorded against bare runs of real programs, at the same time and in turns. Writes docs/overhead.md."""

import argparse
import statistics
import sys

import common
import programs

EXPLANATION = """# Overhead

Written by `./dev bench overhead`; every figure below is measured, none is typed.

Machines that others use too change their speed by tens of percent within seconds, so a program is run both ways:

- *together*, {pairs} times: bare and recorded at the same time, so that both meet the same machine. *CPU time* is
  recorded / bare of each such pair: the median and, in brackets, its 95 % interval (bootstrap). Control: *bare / bare*
  is the same for two bare runs, and shows how far to believe it.
  Programs that spin, or that hang on which processors their threads meet, cannot be run so; their CPU time is of
  runs in turns, at least {alone} times, by lower quartiles. If two `hackbench` run at the same time, the later one
  switches context up to twice as often, recorded or not; one after the other, they do alike.
- *in turns*, {turns} times, every second pair in reverse order: *run time* is what a user waits (for the server: what its
  load took), recorded / bare of the lower quartiles, with the bootstrap's 95 % interval.

User + system time of the whole process tree is compared; in recorded runs the recorder's own is within, and so is
the fixed cost of a recording: {start_ms:.0f} ms of CPU time for a program that does nothing (bare: {bare_ms:.0f} ms).

- *bare*: CPU time of a bare run, median.
- *self-measured*: what the profile says observing has cost, as a fraction of the threads' CPU time
  (`sampling.overhead.fraction`), median; the budget was the default. Handlers are timed; signals, context switches and
  copies while watchpoints are armed are charged at calibrated prices (docs/reasons.md, "What armed watchpoints cost").
- *difference*: CPU ratio - 1 - self-measured: what the profile does not account for (the recorder and its start,
  caches, threads that spin while another is observed, noise).
- *memory*: the largest peak resident size of one process in the tree, recorded - bare, median.

Machine: {machine}.
"""

IN_TURNS = """
The programs that run in turns, pair by pair: *median ratio* is of the pairs' CPU time, recorded / bare, with its 95 %
interval (bootstrap). The aim is an upper bound of {aim} at most. An interval that reaches more than a point from its
median leaves it undecided.
"""
AIM = 1.03


def together(program, folder, paths):
    """Results by index, of runs at the same time; the second of `paths` starts first."""
    runs = {index: program.start(folder, paths[index]) for index in reversed(range(len(paths)))}
    return [runs[index].finish()[0] for index in range(len(paths))]


def add_profile(rows, profile, results):
    fraction = common.report(profile, "--view", "summary")["sampling"]["overhead"]["fraction"]
    rows["bare_cpu"].append(results[None][0].cpu_s)
    rows["memory"].append(results[profile][0].peak_bytes - results[None][0].peak_bytes)
    rows["self"].append(fraction if fraction is not None else float("nan"))


def measure(program, folder, pairs, turns):
    profile = folder.file("profile.db")
    program.prepare(folder)
    program.start(folder, None).finish()  # warms caches
    rows = {name: [] for name in ("bare_cpu", "cpu", "control", "self", "memory", "bare_s", "observed_s",
                                 "bare_turn", "observed_turn")}
    for index in range(0 if program.alone else pairs):
        paths = (None, profile) if index % 2 == 0 else (profile, None)
        weights = dict(zip(paths, together(program, folder, paths)))
        rows["cpu"].append(weights[profile].cpu_s / weights[None].cpu_s)
        add_profile(rows, profile, {path: (weight, 0) for path, weight in weights.items()})
        if index % 2 == 0:
            first, second = together(program, folder, (None, None))
            rows["control"].append(first.cpu_s / second.cpu_s)
        print(f"{program.name}: together {index + 1}: CPU {rows['cpu'][-1]:.3f}, self-measured "
              f"{rows['self'][-1]:.4f}, control {rows['control'][-1]:.3f}", flush=True)
    for index in range(max(pairs + turns, program.alone) if program.alone else turns):
        order = (None, profile) if index % 2 == 0 else (profile, None)
        results = {path: program.start(folder, path).finish() for path in order}
        rows["bare_s"].append(results[None][1])
        rows["observed_s"].append(results[profile][1])
        rows["bare_turn"].append(results[None][0].cpu_s)
        rows["observed_turn"].append(results[profile][0].cpu_s)
        add_profile(rows, profile, results)
    return rows


def row(program, result):
    cpu = (common.undisturbed_ratio(result["observed_turn"], result["bare_turn"]) if program.alone
           else common.median_with_interval(result["cpu"]))
    self_measured = statistics.median(result["self"])
    return [f"`{program.name}`", program.threads, f"{statistics.median(result['bare_cpu']):.2f} s", cpu,
            f"{statistics.median(result['control']):.3f}" if result["control"] else "in turns", f"{100 * self_measured:.2f} %",
            f"{100 * (cpu.median - 1 - self_measured):+.2f} %",
            common.undisturbed_ratio(result["observed_s"], result["bare_s"]) if result["bare_s"] else "-",
            f"{statistics.median(result['memory']) / 1e6:+.1f} MB"]


def verdict(ratio):
    if max(ratio.high - ratio.median, ratio.median - ratio.low) > 0.01 and ratio.low <= AIM:
        return "undecided"
    return "reached" if ratio.high <= AIM else "missed"


def row_of_pairs(program, result):
    ratios = [observed / bare for observed, bare in zip(result["observed_turn"], result["bare_turn"])]
    ratio = common.median_with_interval(ratios)
    return [f"`{program.name}`", len(ratios), ratio, verdict(ratio)]


def start_costs(folder, runs=11):
    """CPU time in ms of a program that does nothing: recorded, bare."""
    empty = ["/bin/true"]
    return [1e3 * statistics.median(common.weigh(command).cpu_s for _ in range(runs))
            for command in (common.recorded(empty, folder.file("empty.db")), empty)]


def main():
    parser = argparse.ArgumentParser(prog="./dev bench overhead", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10, help="pairs of runs at the same time (default 10)")
    parser.add_argument("--turns", type=int, default=6, help="pairs of runs in turns (default 6)")
    parser.add_argument("--only", default="", help="programs whose name contains this; writes no document")
    options = parser.parse_args()
    if options.pairs < 1 or options.turns < 0:
        parser.error(f"--pairs {options.pairs} must be at least 1 and --turns {options.turns} at least 0")
    rows, rows_of_pairs, absent = [], [], []
    with common.Folder() as folder:
        start_ms, bare_ms = start_costs(folder)
        for program in programs.all_programs():
            if options.only not in program.name:
                continue
            if not program.available():
                absent.append(program.name)
                continue
            result = measure(program, folder, options.pairs, options.turns)
            rows.append(row(program, result))
            if program.alone:
                rows_of_pairs.append(row_of_pairs(program, result))
    text = common.table(["program", "threads", "bare", "CPU time", "bare / bare", "self-measured", "difference",
                         "run time", "memory"], rows) + "\n"
    if rows_of_pairs:
        text += IN_TURNS.format(aim=AIM) + "\n" + common.table(["program", "pairs", "median ratio", "aim"], rows_of_pairs) + "\n"
    print(text)
    if absent:
        print("not installed and left out: " + ", ".join(absent), file=sys.stderr)
    if not options.only:
        alone = min(program.alone for program in programs.all_programs() if program.alone)
        explanation = EXPLANATION.format(pairs=options.pairs, turns=options.turns, alone=max(options.pairs + options.turns, alone),
                                         machine=common.machine(), start_ms=start_ms, bare_ms=bare_ms)
        common.write_section("overhead.md", "programs", explanation + "\n" + text)


if __name__ == "__main__":
    main()
