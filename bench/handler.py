# SPDX-License-Identifier: Apache-2.0
"""The sample handler's own time (signal delivery and arming apart), by workload, from profiles' thread table."""

import argparse
import os
import sqlite3
import statistics

import common

CASES = [
    ("private_only", ["--seconds", "3"]),
    ("read_only_sharing", ["--seconds", "3"]),
    ("loops", ["--seconds", "3"]),
    ("false_sharing", ["--seconds", "3"]),
    ("ping_pong", ["--seconds", "3"]),
    ("migrating_object", ["--seconds", "3"]),
    ("pipeline", ["--seconds", "3"]),
]


def handler_ns(profile):
    """(samples, mean nanoseconds of one sample's handler, all handlers' share of CPU time) over all threads."""
    with sqlite3.connect(f"file:{profile}?mode=ro", uri=True) as database:
        samples, sampling, handlers, cpu = database.execute(
            "SELECT SUM(samples), SUM(handler_samples_ns), SUM(handlers_ns), SUM(cpu_ns) FROM thread").fetchone()
    return samples or 0, (sampling or 0) / max(samples or 0, 1), (handlers or 0) / max(cpu or 0, 1)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench handler", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each workload (default 3)")
    options = parser.parse_args()
    rows, medians = [], []
    with common.Folder() as folder:
        for name, arguments in CASES:
            runs = []
            for _ in range(max(options.runs, 1)):
                command = [os.path.join(common.WORKLOADS, name), *arguments]
                common.weigh(common.recorded(command, folder.file("run.db")))
                runs.append(handler_ns(folder.file("run.db")))
            medians.append(statistics.median(run[1] for run in runs))
            rows.append([name, sum(run[0] for run in runs), f"{medians[-1]:.0f}",
                         f"{100 * statistics.median(run[2] for run in runs):.2f} %"])
    print(common.table(["workload", "samples", "sample handler, ns", "all handlers / CPU time"], rows))
    print(f"median over workloads: {statistics.median(medians):.0f} ns ({common.machine()})")


if __name__ == "__main__":
    main()
