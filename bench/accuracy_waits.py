# SPDX-License-Identifier: Apache-2.0
"""Waits that the library measures and that are sampled from outside, beside those that the program's own clocks have.
`./dev bench accuracy --waits`; writes a section of docs/accuracy.md."""

import os
import statistics

import accuracy
import common

WAYS = {"inside": ("--waits",), "outside": ("--waits", "--observer")}
KINDS = {"mutex": "mutex", "rwlock": "rwlock", "barrier": "barrier", "condition": "condition", "semaphore": "semaphore",
         "atomic": "futex"}
ROUNDS = "600"

EXPLANATION = """## Waits, measured and sampled

Written by `./dev bench accuracy --waits`. `tests/workloads/waiting.cpp` (two threads that work and wait for each other, at one kind of
place at a time, {rounds} rounds) is recorded {runs} times by the library inside (`record --waits`), which measures each wait, and as
often from outside (`record --waits --observer`), which looks at threads about every 10 ms and finds them asleep. The program's own
clocks have the time from call to return, *known*. A thread that is woken is *ready* until it gets a processor, which is no sleep:
from outside, what is found is less than what is known by that time at most. Times are of all threads together, in % of
their elapsed time; medians, the worst difference from *known* in brackets. *interval* is half of that which the report gives, *held*
the runs in which known times, or these less the time ready, lie within it.

Machine: {machine}; load average {load} in the meantime, these programs included.
"""


def compare(report, truth, kind):
    """Shares of elapsed time: known, found, half of the interval, ready."""
    elapsed = sum(thread["elapsed_s"] for thread in truth["threads"])
    places = [place for place in report["waiting"] if place["kind"] == kind]
    by_tid = {thread["tid"]: thread["waits"] for thread in report["threads"]}
    ready = sum(by_tid[thread["tid"]]["runnable"] or 0 for thread in truth["threads"] if thread["tid"] in by_tid)
    half = sum((place["waited_ci95"][1] - place["waited_ci95"][0]) / 2 for place in places if place.get("waited_ci95"))
    return {"known": sum(thread["waited_s"] for thread in truth["threads"]) / elapsed,
            "found": sum(place["waited_s"] for place in places) / elapsed, "half": half / elapsed, "ready": ready / elapsed}


def percent(value):
    return f"{100 * value:.1f} %"


def cells(results):
    worst = max(results, key=lambda result: abs(result["found"] - result["known"]))
    found = statistics.median(result["found"] for result in results)
    return [percent(statistics.median(result["known"] for result in results)),
            f"{percent(found)} ({100 * (worst['found'] - worst['known']):+.1f})"]


def held(result):
    return result["known"] - result["ready"] - result["half"] <= result["found"] <= result["known"] + result["half"]


def row(at, results):
    inside, outside = results["inside"], results["outside"]
    return [at, *cells(inside), *cells(outside), percent(statistics.median(result["half"] for result in outside)),
            percent(statistics.median(result["ready"] for result in outside)),
            f"{sum(map(held, outside))} of {len(outside)}"]


HEADER = ["at", "known", "inside", "known", "outside", "interval", "ready", "held"]


def measure_table(runs, only, writes):
    rows, loads = [], []
    with common.Folder() as folder:
        for at, kind in KINDS.items():
            if only not in at:
                continue
            results = {way: [] for way in WAYS}
            for index in range(runs):
                for way in common.in_turn(WAYS, index):
                    report, truth = accuracy.observe("waiting", ["--at", at, "--rounds", ROUNDS], folder.file("run.db"), WAYS[way])
                    results[way].append(compare(report, truth, kind))
            loads.append(os.getloadavg()[0])
            rows.append(row(at, results))
            print(" | ".join(rows[-1]), flush=True)
    text = common.table(HEADER, rows)
    print(text)
    if writes:
        explanation = EXPLANATION.format(runs=runs, rounds=ROUNDS, machine=common.machine(),
                                         load=f"{min(loads):.1f} to {max(loads):.1f}")
        common.write_section("accuracy.md", "waits", explanation + "\n" + text + "\n")
