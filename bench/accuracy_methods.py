# SPDX-License-Identifier: Apache-2.0
"""Workloads of two threads that force their communication, recorded in turns by watchpoints and by probes of lines: what
each finds, beside what was forced. `./dev bench accuracy --methods`; writes a section of docs/accuracy.md."""

import contextlib
import os
import sqlite3
import statistics
import subprocess

import accuracy
import common

EXPLANATION = """## By watchpoints and by probes

Written by `./dev bench accuracy --methods`. Each workload of two threads that runs for a time is recorded {runs} times by watchpoints
(`record --method watch`), as often by probes of lines (`--method probe`) and by probes from outside (`--observer`), in turns, all at
defaults. Columns are those of the table at the top:
*distance* of the costs found to those timed or (in *italics*) communications forced, *true sharing* found, of the known share,
*cost* found, of the threads' CPU time, *detections* a second of it. *looks* are the lines watched or probed in a second of it,
*seen* the share of them that saw another thread's access (a watch) or bytes that differ between its two reads (a probe), on any
line; that a value differs from the one that the thread has loaded last is a detection, too. Medians of the runs, with
their 95 % intervals (bootstrap); where nothing was found in any run the distance is 1. Where the load is above the number of
processors, threads seldom run side by side and exchange little that either method could see: rows of nothing say that then, and
no more. A thread that spins while its partner waits for a processor spends its time on the partner's word, which is cost.

Machine: {machine}; load average {load} in the meantime, these programs included.{lacking}
"""


WAYS = {"watch": ("--method", "watch"), "probe": ("--method", "probe"), "probe, outside": ("--method", "probe", "--observer")}


def why_no_watchpoints():
    """A sentence; None where `--method watch` is taken."""
    tried = subprocess.run(common.recorded(["true"], "/dev/null", ("--method", "watch")), check=False, capture_output=True, text=True)
    words = tried.stderr.strip().splitlines()
    return next((line for line in words if "--method watch" in line), None)


def is_compared(arguments):
    """Two threads, for a time: a number of rounds takes as long as the machine has other things to do."""
    threads = arguments[arguments.index("--threads") + 1] if "--threads" in arguments else "2"
    return threads == "2" and "--seconds" in arguments


def looks(profile):
    """(lines watched or probed, those that saw something)"""
    with contextlib.closing(sqlite3.connect(f"file:{profile}?mode=ro", uri=True)) as database:
        made, probed, changed = database.execute(
            "SELECT (SELECT COUNT(*) FROM watch), (SELECT COUNT(*) FROM line_probe), "
            "(SELECT COUNT(*) FROM line_probe WHERE changed != 0)").fetchone()
        if probed:
            return probed, changed
        met = database.execute("SELECT COUNT(DISTINCT watch.id) FROM watch JOIN trap ON trap.watch = watch.id "
                               "WHERE trap.thread != watch.thread").fetchone()[0]
    return made, met


def measure(name, arguments, profile, way):
    report, truth = accuracy.observe(name, arguments, profile, WAYS[way])
    result = accuracy.compare(report, truth)
    made, met = looks(profile)
    result["looks"] = made / accuracy.harness.cpu_seconds(report)
    result["met"] = met / made if made else None
    return result


def cell(results, key, digits):
    known = [result[key] for result in results if result[key] is not None]
    if not known:
        return "-"
    spread = common.median_with_interval(known)
    return f"{spread.median:.{digits}f} ({spread.low:.{digits}f}..{spread.high:.{digits}f})"


COLUMNS = (("distance", 3), ("true", 3), ("cost", 3), ("looks", 0), ("met", 2), ("detections", 0))
NAMES = {"distance": "distance", "true": "true sharing", "cost": "cost", "looks": "looks/s", "met": "seen", "detections": "detections/s"}


def rows(title, results):
    shares = [result["known_true"] for way in results.values() for result in way if result["known_true"] is not None]
    for way, runs in results.items():
        cells = {key: cell(runs, key, digits) for key, digits in COLUMNS}
        if not runs[0]["timed"] and cells["distance"] != "-":
            cells["distance"] = f"*{cells['distance']}*"
        cells["true"] += f" of {statistics.median(shares):.3f}" if shares and cells["true"] != "-" else ""
        yield [f"`{title}`", way, *cells.values()]


def measure_table(runs, only, writes):
    lacking = why_no_watchpoints()
    ways = [way for way in WAYS if not (lacking and way == "watch")]
    table, loads = [], []
    with common.Folder() as folder:
        for name, arguments in accuracy.CASES:
            if only not in name or not is_compared(arguments):
                continue
            results = {way: [] for way in ways}
            for index in range(runs):
                for way in common.in_turn(ways, index):
                    results[way].append(measure(name, arguments, folder.file("run.db"), way))
            loads.append(os.getloadavg()[1])
            for row in rows(" ".join([name, *arguments]), results):
                table.append(row)
                print(" | ".join(row), flush=True)
    text = common.table(["workload", "method", *(NAMES[key] for key, _ in COLUMNS)], table)
    if writes:
        explanation = EXPLANATION.format(runs=runs, machine=common.machine(), load=f"{min(loads):.0f} to {max(loads):.0f}",
                                         lacking=f" Not by watchpoints: {lacking}." if lacking else "")
        common.write_section("accuracy.md", "methods", explanation + "\n" + text + "\n")
