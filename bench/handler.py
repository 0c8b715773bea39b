# SPDX-License-Identifier: Apache-2.0
"""The sample handler's own time (signal delivery and arming apart) and how often it finds an address."""

import argparse
import os
import sqlite3
import statistics

import common
import programs

CASES = [
    ("private_only", ["--seconds", "3"]),
    ("read_only_sharing", ["--seconds", "3"]),
    ("loops", ["--seconds", "3"]),
    ("false_sharing", ["--seconds", "3"]),
    ("ping_pong", ["--seconds", "3"]),
    ("migrating_object", ["--seconds", "3"]),
    ("pipeline", ["--seconds", "3"]),
]


EXPLANATION = """## The sample handler

Written by `./dev bench handler`. A sample's handler finds the access that was under way and its address, publishes it on
the bulletin board, copies a piece of the stack now and then, and writes a record; opening and closing watches is apart.
Its CPU time is that of each single sample (`sample.previous_handler` in the profile), {runs} runs of each program.
The *whole sample* adds what the kernel takes to deliver and end the signal with an empty handler: {signal:.1f} us here, the
median of {runs} calibrations, by a POSIX timer.

Machine: {machine}.

"""


def figures(profile):
    """(ns of each sample's handler, share of user-mode samples with an address, calibrated ns of a signal)"""
    with sqlite3.connect(f"file:{profile}?mode=ro", uri=True) as database:
        handlers = [row[0] for row in database.execute(
            "SELECT 100 * previous_handler FROM sample WHERE previous_handler IS NOT NULL")]
        user, known = database.execute(
            "SELECT COUNT(*), COUNT(address) FROM sample WHERE flags & 1 = 0").fetchone()
        signal = database.execute("SELECT value FROM meta WHERE key = 'config.signal_cost_ns'").fetchone()[0]
    return handlers, known / max(user, 1), float(signal)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench handler", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each program (default 3)")
    options = parser.parse_args()
    runs = max(options.runs, 1)
    rows, everything, signals = [], [], []
    with common.Folder() as folder:
        programs.sample_data(folder.file("data.tar"), 120_000_000)
        cases = [([os.path.join(common.WORKLOADS, name), *arguments], " ".join([name, *arguments]))
                 for name, arguments in CASES]
        cases.append((["pigz", "-p", "4", "-k", "-c", folder.file("data.tar")], "pigz -p 4"))
        cases.append((["zstd", "-q", "-T2", "-10", "-c", folder.file("data.tar")], "zstd -T2 -10"))
        for command, name in cases:
            handlers, known = [], []
            for _ in range(runs):
                common.weigh(common.recorded(command, folder.file("run.db")))
                found, share, signal = figures(folder.file("run.db"))
                handlers += found
                known.append(share)
                signals.append(signal)
            everything += handlers
            quartiles = statistics.quantiles(handlers, n=4)
            rows.append([f"`{name}`", len(handlers), f"{quartiles[1] / 1000:.1f} us", f"{quartiles[0] / 1000:.1f} us",
                         f"{quartiles[2] / 1000:.1f} us", f"{100 * statistics.median(known):.1f} %"])
    text = common.table(["program", "samples", "median", "lower quartile", "upper quartile",
                         "user-mode samples with an address"], rows)
    signal = statistics.median(signals) / 1000
    last = (f"\nMedian of all samples: {statistics.median(everything) / 1000:.1f} us; with the signal's delivery "
            f"{statistics.median(everything) / 1000 + signal:.1f} us.\n")
    print(text + last)
    common.write_section("overhead.md", "handler", EXPLANATION.format(
        runs=runs, signal=signal, machine=common.machine()) + text + "\n" + last)


if __name__ == "__main__":
    main()
