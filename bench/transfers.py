# SPDX-License-Identifier: Apache-2.0
"""Probes against the exact number of transfers of a counter, over its pace. Writes a section of docs/accuracy.md."""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys

import common

INTERVALS_US = (0.1, 0.3, 1, 3, 10, 30, 100)
DUTIES = (50, 20)  # per cent, at 1 us

EXPLANATION = """## Transfers of a counter, by probes

Written by `./dev bench transfers`. Two threads of `transfers` (tests/workloads) work for a while and add to one counter by `lock
xadd`: an old value that is not a thread's own last result proves that the other one stored in between. So each thread counts
its transfers exactly, and times them. They are recorded for {seconds} s with `--method probe`, {runs} times each; shown are medians.

- *transfers*: counted by the program, a second.
- *timed*: their time in all, without what the program's clock itself takes.
- *found*: of the cost found, how many transfers it is at the program's own time of one; of those counted. *held*: in how many
  of the runs with an interval it holds the timed cost.
- *probes*: lines that were read twice.

{table}

Slope of log(found) over log(timed), of all runs with both: {slope}. Counters of their own (`--counter own`): {placebo} s found
in {runs} runs.

Machine: {machine}; load average {load:.1f} when it began.

"""


def record(folder, seconds, options):
    profile = folder.file("run.db")
    command = common.recorded([os.path.join(common.WORKLOADS, "transfers"), "--seconds", str(seconds), *options], profile,
                              ["--method", "probe"])
    shown = subprocess.run(command, check=False, capture_output=True, text=True)
    if shown.returncode != 0:
        sys.exit(f"bench: transfers ended with {shown.returncode}: {shown.stderr.strip()}")
    return json.loads(shown.stdout.strip().splitlines()[-1]), common.report(profile)


class Run:
    def __init__(self, truth, report):
        self.rate = truth["true"] / truth["seconds"]
        self.timed_s = sum(map(sum, truth["true_cost"])) - truth["true"] * truth["clock_us"] * 1e-6
        total = report["communication"]["totals"]["true_sharing"]
        self.found_s = total["cost_s"] or 0
        interval = total["cost_ci95"]
        self.held = interval[0] <= self.timed_s <= interval[1] if interval else None
        self.looks = report["sampling"]["armed"]


def row(options, runs):
    ratios = [run.found_s / run.timed_s for run in runs if run.timed_s > 0]
    return ["`" + " ".join(options) + "`", f"{statistics.median(run.rate for run in runs):.3g}",
            f"{statistics.median(run.timed_s for run in runs):.3g}",
            f"{statistics.median(ratios):.3f} ({min(ratios):.3f}..{max(ratios):.3f})" if ratios else "-",
            f"{sum(run.held or 0 for run in runs)}/{sum(run.held is not None for run in runs)}", str(round(statistics.median(run.looks for run in runs)))]


def slope(runs):
    """Least squares in logarithms; None: too few runs with both figures."""
    points = [(math.log(run.timed_s), math.log(run.found_s)) for run in runs if run.timed_s > 0 and run.found_s > 0]
    return statistics.linear_regression(*zip(*points)).slope if len(points) > 2 else None


def main():
    parser = argparse.ArgumentParser(prog="./dev bench transfers", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each pace (default 5)")
    parser.add_argument("--seconds", type=float, default=5, help="of each run (default 5)")
    wanted = parser.parse_args()
    load = os.getloadavg()[0]
    cases = [["--interval-us", str(interval)] for interval in INTERVALS_US] + [["--duty", str(duty)] for duty in DUTIES]
    rows, everything = [], []
    with common.Folder() as folder:
        for options in cases:
            runs = [Run(*record(folder, wanted.seconds, options)) for _ in range(wanted.runs)]
            everything += runs
            rows.append(row(options, runs))
            print(" | ".join(rows[-1]), flush=True)
        placebo = sum(Run(*record(folder, wanted.seconds, ["--counter", "own"])).found_s for _ in range(wanted.runs))
    table = common.table(["pace", "transfers", "timed, s", "found", "held", "probes"], rows)
    found = slope(everything)
    common.write_section("accuracy.md", "transfers", EXPLANATION.format(
        seconds=wanted.seconds, runs=wanted.runs, table=table.rstrip("\n"), slope="-" if found is None else f"{found:.2f}",
        placebo=f"{placebo:.3g}", machine=common.machine(), load=load))


if __name__ == "__main__":
    main()
