# SPDX-License-Identifier: Apache-2.0
"""Reports of workloads that force their communication, against what they force. Writes docs/accuracy.md."""

import argparse
import json
import os
import statistics
import subprocess
import sys

import common
import harness

CASES = [
    ("ping_pong", ["--seconds", "3"]),
    ("ping_pong", ["--seconds", "4", "--wait", "futex", "--lines", "128"]),
    ("ring", ["--seconds", "10", "--threads", "3"]),
    ("ring", ["--seconds", "10", "--threads", "4"]),
    ("halo_exchange", ["--iterations", "220000", "--threads", "2"]),
    ("halo_exchange", ["--iterations", "150000", "--threads", "3"]),
    ("one_writer_many_readers", ["--seconds", "4", "--threads", "3"]),
    ("migrating_object", ["--seconds", "4", "--threads", "2"]),
    ("pipeline", ["--seconds", "4", "--threads", "3"]),
    ("all_to_all", ["--seconds", "4", "--threads", "2", "--lines", "64"]),
    ("all_to_all", ["--seconds", "10", "--threads", "3", "--lines", "64"]),
    ("reduction_tree", ["--seconds", "4", "--threads", "2", "--lines", "1024"]),
    ("reduction_tree", ["--seconds", "10", "--threads", "4", "--lines", "1024"]),
    ("work_stealing", ["--seconds", "4", "--threads", "2"]),
    ("work_stealing", ["--seconds", "8", "--threads", "3"]),
    ("clone_threads", ["--seconds", "3"]),
    ("false_sharing", ["--seconds", "3"]),
    ("false_sharing", ["--seconds", "3", "--stride", "4", "--bytes", "4"]),
    ("openmp_reduction", ["--seconds", "3"]),
    ("mixed", ["--seconds", "8", "--true-tenths", "8"]),
    ("mixed", ["--seconds", "8", "--true-tenths", "5"]),
    ("mixed", ["--seconds", "8", "--true-tenths", "2"]),
    ("private_only", ["--seconds", "3"]),
    ("read_only_sharing", ["--seconds", "3"]),
]

EXPLANATION = """# Accuracy

Written by `./dev bench accuracy`; every figure below is measured, none is typed.

Each workload (tests/workloads/) forces its communication and prints how much there was; the report's costs are
compared with it. Shown are medians of {runs} runs, the worst in brackets.

- *distance*: half the sum of absolute differences between the two matrices, each normalised to a sum of 1
  (0 = equal, 1 = nothing in common). Where a workload synchronises by lines other than its data's, the cells of
  the data's variable are taken.
- *true sharing*: share of the cost found, and the share of communications forced.
- *cost*: all communication found, as a share of the threads' CPU time. Where nothing is communicated it should
  be 0.
- *count*: communications found / forced, where both are known.
- *first*: in how many runs the variable that holds the data came first among the objects (sync aside).

Machine: {machine}.
"""


def observe(name, arguments, profile):
    command = common.recorded([os.path.join(common.WORKLOADS, name), *arguments], profile)
    shown = subprocess.run(command, check=False, capture_output=True, text=True)
    if shown.returncode != 0:
        sys.exit(f"bench: {name} ended with {shown.returncode}: {shown.stderr.strip()}")
    return common.report(profile), json.loads(shown.stdout.strip().splitlines()[-1])


def counted(report, truth):
    """Communications found on the data, or None where the report does not count."""
    total = None
    for entry in report["objects"]:
        if not any(harness.object_named(entry, name) for name in truth["data"]):
            continue
        for cell in entry["cells"]:
            for sort in ("true", "false"):
                count = (cell.get(sort) or {}).get("count")
                total = total if count is None else (total or 0.0) + count
    return total


def compare(report, truth):
    costs = harness.cells_by_truth(report, truth)
    forced = truth["true"] + truth["false"]
    objects = report["objects"]
    if truth["sync"]:
        objects = [entry for entry in objects if any(harness.object_named(entry, name) for name in truth["data"])]
    count = counted(report, truth)
    silent = not truth["object"] or truth["workload"] == "read_only_sharing"
    return {
        "distance": None if silent else harness.matrix_distance(costs, truth),
        "true": None if silent else harness.true_share(costs),
        "forced_true": None if silent else truth["true"] / forced,
        "cost": harness.total_cost(report) / harness.cpu_seconds(report),
        "count": count / forced if count is not None and truth["exact"] and not silent else None,
        "first": None if silent else bool(objects) and harness.object_named(objects[0], truth["object"]),
        "overhead": report["sampling"]["overhead"]["fraction"],
    }


def median_and_worst(values, worst=max, form="{:.3f}"):
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    return f"{form.format(statistics.median(known))} ({form.format(worst(known))})"


def row(name, arguments, results):
    def column(key):
        return [result[key] for result in results]
    forced = column("forced_true")[0]
    first = [value for value in column("first") if value is not None]
    return [
        "`" + " ".join([name, *arguments]) + "`",
        median_and_worst(column("distance")),
        "-" if forced is None else
        median_and_worst(column("true"), lambda known: max(known, key=lambda value: abs(value - forced))) + f" of {forced:.2f}",
        median_and_worst(column("cost"), form="{:.4f}"),
        median_and_worst(column("count"), form="{:.2f}"),
        f"{sum(first)}/{len(first)}" if first else "-",
        median_and_worst(column("overhead")),
    ]


def main():
    parser = argparse.ArgumentParser(prog="./dev bench accuracy", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each workload (default 3)")
    parser.add_argument("--only", default="", help="workloads whose name contains this; writes no document")
    options = parser.parse_args()
    rows = []
    with common.Folder() as folder:
        for name, arguments in CASES:
            if options.only not in name:
                continue
            results = [compare(*observe(name, arguments, folder.file("run.db"))) for _ in range(max(options.runs, 1))]
            rows.append(row(name, arguments, results))
            print(" | ".join(rows[-1]), flush=True)
    text = common.table(["workload", "distance", "true sharing", "cost", "count", "first", "overhead"], rows)
    if not options.only:
        common.write_section("accuracy.md", "communication", EXPLANATION.format(runs=options.runs, machine=common.machine()) + "\n" + text + "\n")


if __name__ == "__main__":
    main()
