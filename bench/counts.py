# SPDX-License-Identifier: Apache-2.0
"""Counts of communications against programs that force a known number of them. Writes a section of docs/accuracy.md."""

import argparse
import collections
import json
import os
import re
import statistics
import subprocess
import sys

import common
import harness

CASES = [
    ("ping_pong", ["--seconds", "3"]),
    ("ping_pong", ["--seconds", "3", "--wait", "yield"]),
    ("ping_pong", ["--seconds", "3", "--wait", "futex"]),
    ("ping_pong", ["--seconds", "4", "--wait", "futex", "--lines", "128"]),
    ("ring", ["--seconds", "10", "--threads", "3"]),
    ("ring", ["--seconds", "10", "--threads", "4"]),
    ("halo_exchange", ["--iterations", "40000", "--threads", "2"]),
    ("halo_exchange", ["--iterations", "30000", "--threads", "3"]),
    ("one_writer_many_readers", ["--seconds", "3", "--threads", "3"]),
    ("migrating_object", ["--seconds", "3", "--threads", "2"]),
    ("pipeline", ["--seconds", "3", "--threads", "3"]),
    ("all_to_all", ["--seconds", "3", "--threads", "2", "--lines", "64"]),
    ("all_to_all", ["--seconds", "4", "--threads", "3", "--lines", "64"]),
    ("reduction_tree", ["--seconds", "4", "--threads", "2", "--lines", "1024"]),
    ("reduction_tree", ["--seconds", "8", "--threads", "4", "--lines", "1024"]),
    ("work_stealing", ["--seconds", "3", "--threads", "2"]),
    ("work_stealing", ["--seconds", "6", "--threads", "3"]),
    ("mixed", ["--seconds", "4", "--true-tenths", "5"]),
]

OFF = 0.2  # a count that is given may be off by so much

EXPLANATION = """## Counts

Written by `./dev bench counts`: up to {runs} runs of each workload at default settings, whose number of communications
by pair of threads is forced and printed. Compared are the amounts of the variables that hold the data.

- *counted*: amounts (a pair of threads, true sharing) with a count, of those that were forced.
- *found / forced*: of an amount that was counted; the median over all runs, and the worst.
- *held*: of them, how many have the forced number within their 95 % interval.
- *half width*: median half width of these intervals, of the count.
- *why not*: the reason that most amounts without a count give.

The last row is of all amounts of all workloads; in it, *why not* says how many of the counted are off by more than 20 %.

Machine: {machine}.

"""


def record(name, arguments, stem):
    """Leaves the profile in `stem`.db and what the workload printed in `stem`.json."""
    command = common.recorded([os.path.join(common.WORKLOADS, name), *arguments], stem + ".db")
    shown = subprocess.run(command, check=False, capture_output=True, text=True)
    if shown.returncode != 0:
        sys.exit(f"bench: {name} ended with {shown.returncode}: {shown.stderr.strip()}")
    with open(stem + ".json", "w", encoding="utf-8") as file:
        file.write(shown.stdout.strip().splitlines()[-1])


def recordings(folder, name, arguments):
    """The stems of a workload's profiles in `folder`."""
    begin = "_".join([name, *(argument.strip("-") for argument in arguments)]) + "."
    return os.path.join(folder, begin), sorted(os.path.join(folder, entry[:-5]) for entry in os.listdir(folder)
                                               if entry.startswith(begin) and entry.endswith(".json"))


def evaluate(stem):
    with open(stem + ".json", encoding="utf-8") as file:
        return list(amounts(common.report(stem + ".db"), json.load(file)))


def merged(cells):
    """One amount from those of several objects: a list of (count, low, high), or the first reason for none."""
    for cell in cells:
        if cell["seen"] and cell["count"] is None:
            return None, cell["count_unknown"]
    known = [cell for cell in cells if cell["seen"]]
    if not known:
        return None, "none was seen"
    return [sum(values) for values in zip(*((cell["count"], *cell["count_ci95"]) for cell in known))], None


def amounts(report, truth, sort="true"):
    """(forced, (count, low, high) or None, reason) for each pair that is forced to share truly, or falsely."""
    index_of_tid = {tid: index for index, tid in enumerate(truth["tids"])}
    index = {thread["index"]: index_of_tid.get(thread["tid"]) for thread in report["threads"]}
    cells = collections.defaultdict(list)
    for entry in report["objects"]:
        if any(harness.object_named(entry, name) for name in truth["data"]):
            for cell in entry["cells"]:
                cells[index.get(cell["producer"]), index.get(cell["consumer"])].append(cell[sort])
    for producer, row in enumerate(truth[sort + "_matrix"]):
        for consumer, forced in enumerate(row):
            if forced > 0:
                yield (forced, *merged(cells[producer, consumer]))


def row(name, arguments, seen):
    ratios = [count[0] / forced for forced, count, _ in seen if count]
    held = sum(count[1] <= forced <= count[2] for forced, count, _ in seen if count)
    widths = [(count[2] - count[1]) / 2 / count[0] for _, count, _ in seen if count]
    reasons = collections.Counter(reason for _, _, reason in seen if reason)
    return ["`" + " ".join([name, *arguments]) + "`", f"{len(ratios)}/{len(seen)}",
            f"{statistics.median(ratios):.3f} ({max(ratios, key=lambda ratio: abs(ratio - 1)):.3f})" if ratios else "-",
            f"{held}/{len(ratios)}" if ratios else "-", f"{statistics.median(widths):.3f}" if widths else "-",
            reasons.most_common(1)[0][0] if reasons else ""]


def total_row(seen):
    total = row("all", [], seen)
    counted = [(forced, count) for forced, count, _ in seen if count]
    off = sum(abs(count[0] / forced - 1) > OFF for forced, count in counted)
    return [*total[:-1], f"{off} of {len(counted)} are off by more than {OFF:.0%}"]


def work(options, folder):
    for name, arguments in CASES:
        if re.search(options.only, " ".join([name, *arguments])):
            begin, known = recordings(folder, name, arguments)
            for run in range(len(known), len(known) + options.runs):
                record(name, arguments, f"{begin}{run:03d}")
    if options.only and options.keep:
        return
    rows, most, everything = [], 0, []
    for name, arguments in CASES:
        _, stems = recordings(folder, name, arguments)
        most = max(most, len(stems))
        if stems:
            seen = [amount for stem in stems for amount in evaluate(stem)]
            everything += seen
            rows.append(row(name, arguments, seen))
            print(" | ".join(rows[-1]), flush=True)
    if not options.only:
        rows.append(total_row(everything))
        text = common.table(["workload", "counted", "found / forced", "held", "half width", "why not"], rows)
        common.write_section("accuracy.md", "counts", EXPLANATION.format(runs=most, machine=common.machine()) + text)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench counts", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each workload (default 3)")
    parser.add_argument("--only", default="", help="workloads whose command matches this regular "
                        "expression; writes no document")
    parser.add_argument("--keep", default="", help="a folder for the profiles: with --only they are only recorded, "
                        "without it all that are there count")
    options = parser.parse_args()
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
        work(options, options.keep)
        return
    with common.Folder() as folder:
        work(options, folder.path)


if __name__ == "__main__":
    main()
