# SPDX-License-Identifier: Apache-2.0
"""Recorded against bare runs of real programs, in turns: A B A B ... Writes docs/overhead.md."""

import argparse
import sys

import common
import programs

EXPLANATION = """# Overhead

Written by `./dev bench overhead`; every figure below is measured, none is typed.

Each program runs bare and under `crosstalk record` in turns, {pairs} pairs, after one run of each that does not
count. A ratio is recorded / bare of one pair; shown are the median and, in brackets, the quartiles.

- *run time*: what a user waits (for the server: the time its load generator took).
- *CPU time*: user + system of the whole process tree; in recorded runs the recorder's own is within.
- *self-measured*: what the profile says observing has cost, as a fraction of the threads' CPU time
  (`sampling.overhead.fraction`); the budget was the default.
- *difference*: CPU ratio - 1 - self-measured: what the profile does not account for (the recorder's own work,
  caches, noise).
- *memory*: the largest peak resident size of one process in the tree, recorded - bare.

Machine: {machine}.
"""


def measure(program, folder, pairs):
    rows = {"bare": [], "time": [], "cpu": [], "self": [], "memory": []}
    profile = folder.file("profile.db")
    program.prepare(folder)
    for index in range(pairs + 1):
        bare, bare_seconds = program.run(folder, None)
        observed, observed_seconds = program.run(folder, profile)
        if index == 0:
            continue  # warms caches
        fraction = common.report(profile, "--view", "summary")["sampling"]["overhead"]["fraction"]
        rows["bare"].append(bare_seconds)
        rows["time"].append(observed_seconds / bare_seconds)
        rows["cpu"].append(observed.cpu_s / bare.cpu_s)
        rows["self"].append(fraction if fraction is not None else float("nan"))
        rows["memory"].append(observed.peak_bytes - bare.peak_bytes)
        print(f"{program.name}: pair {index}: time {rows['time'][-1]:.3f}, CPU {rows['cpu'][-1]:.3f}, "
              f"self-measured {rows['self'][-1]:.4f}", flush=True)
    return {name: common.spread(values) for name, values in rows.items()}


def row(program, result):
    difference = result["cpu"].median - 1 - result["self"].median
    return [f"`{program.name}`", program.threads, f"{result['bare'].median:.2f} s", result["time"], result["cpu"],
            f"{100 * result['self'].median:.2f} %", f"{100 * difference:+.2f} %",
            f"{result['memory'].median / 1e6:+.1f} MB"]


def main():
    parser = argparse.ArgumentParser(prog="./dev bench overhead", description=__doc__)
    parser.add_argument("--pairs", type=int, default=7, help="pairs of runs (default 7)")
    parser.add_argument("--only", default="", help="programs whose name contains this; writes no document")
    options = parser.parse_args()
    if options.pairs < 1:
        parser.error(f"--pairs {options.pairs} is less than 1")
    rows, absent = [], []
    with common.Folder() as folder:
        for program in programs.all_programs():
            if options.only not in program.name:
                continue
            if not program.available():
                absent.append(program.name)
                continue
            rows.append(row(program, measure(program, folder, options.pairs)))
    text = common.table(["program", "threads", "bare", "run time ratio", "CPU time ratio", "self-measured",
                         "difference", "memory"], rows)
    print(text)
    if absent:
        print("not installed and left out: " + ", ".join(absent), file=sys.stderr)
    if not options.only:
        common.write_document("overhead.md",
                              EXPLANATION.format(pairs=options.pairs, machine=common.machine()) + "\n" + text + "\n")


if __name__ == "__main__":
    main()
