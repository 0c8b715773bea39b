# SPDX-License-Identifier: Apache-2.0
"""Shares of CPU time and rates of loops that time and count themselves, against the report's."""

import argparse
import contextlib
import os
import sqlite3

import common
import harness
import test_loop_rates


EXPLANATION = """## CPU time a loop

Written by `./dev bench loops`. A program of {threads} threads runs some loops, {seconds:g} s of CPU time a thread, and times
each with its own clocks (`tests/workloads/loops.cpp`); the report's share of all threads' CPU time is compared.

Machine: {machine}.

"""


def shares(folder, threads, seconds):
    profile = folder.file("loops.db")
    truth = common.observe([os.path.join(common.WORKLOADS, "loops"), "--threads", str(threads), "--seconds", str(seconds)],
                           profile)
    report = common.report(profile)
    for loop in truth["loops"]:
        found = sum(row["cpu_s"] for row in report["loops"] if row["depth"] == 1 and row["function"]
                    and loop["function"] == row["function"].split("::")[-1].split("(")[0])
        yield loop, found / harness.cpu_seconds(report), loop["cpu_s"] / truth["cpu_s"]


RATES = """## Rates of loops

Written by `./dev bench loops`. Loops of {shapes} shapes count their own iterations and time themselves, {seconds:g} s of CPU
time in all (`tests/workloads/loop_rates.cpp`); the report's rates, which rest on no counter of the processor, are
compared. An interval is the report's 95 % interval of the iterations; behind an amount that rests on walks (iterations
that were interpreted ahead of samples), half of its own. `-`: how much it is, is not fixed by what is written there.
Walks took {walk_share:.2f} % of the CPU time: {walks} of them, {step_ns:.0f} ns an instruction.

Machine: {machine}.

"""


def difference(rates, name, known):
    if rates[name] is None:
        return rates["reasons"][name]
    if not known:
        return f"{rates[name]:g}"
    low, high = rates["ci95"][name]
    doubt = f" (+-{50 * (high - low) / rates[name]:.1f} %, {rates['walks']} walks)" if name in rates["walked"] else ""
    return f"{100 * (rates[name] / known - 1):+.2f} %{doubt}"


def rate_rows(folder, seconds):
    profile = folder.file("rates.db")
    truth = common.observe([os.path.join(common.WORKLOADS, "loop_rates"), "--seconds", str(seconds)], profile)
    report = common.report(profile)
    for loop in truth["loops"]:
        rates = test_loop_rates.rates_of(report, loop)
        if rates is None:
            yield [loop["function"], "", "no samples", "", "", ""]
            continue
        known = loop["iterations"] / loop["cpu_s"]
        interval = rates["ci95"].get("iterations_per_s")
        yield [loop["function"], f"{known:.4g}", difference(rates, "iterations_per_s", known),
               f"{100 * (interval[0] / known - 1):+.1f}..{100 * (interval[1] / known - 1):+.1f} %" if interval else "",
               *(difference(rates, name + "_per_s", loop[name] * known) if loop[name] >= 0 else "-"
                 for name in ("flops", "bytes"))]


def walk_costs(profile):
    """Returns the share of all CPU time in %, the number, and the CPU time of one interpreted instruction in ns."""
    with contextlib.closing(sqlite3.connect(f"file:{profile}?mode=ro", uri=True)) as database:
        walks, cost_ns, instructions = database.execute(
            "SELECT count(*), total(cost_ns), total(instructions) FROM lookahead").fetchone()
        cpu_ns, = database.execute("SELECT total(cpu_ns) FROM thread").fetchone()
    return {"walk_share": 100 * cost_ns / max(cpu_ns, 1), "walks": walks, "step_ns": cost_ns / max(instructions, 1)}


def measure_rates(seconds):
    with common.Folder() as folder:
        rows = list(rate_rows(folder, seconds))
        costs = walk_costs(folder.file("rates.db"))
    text = common.table(["loop", "iterations/s", "found", "interval", "flops/s", "bytes/s"], rows)
    print(text)
    common.write_section("accuracy.md", "loop-rates", RATES.format(shapes=len(rows), seconds=seconds,
                                                                   machine=common.machine(), **costs) + text)


def main():
    parser = argparse.ArgumentParser(prog="./dev bench loops", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs (default 3)")
    parser.add_argument("--threads", type=int, default=2, help="threads (default 2)")
    parser.add_argument("--seconds", type=float, default=4, help="CPU time of each thread (default 4)")
    parser.add_argument("--rate-seconds", type=float, default=20, help="CPU time for the rates (default 20)")
    options = parser.parse_args()
    rows, worst = [], 0.0
    with common.Folder() as folder:
        for run in range(max(options.runs, 1)):
            for loop, found, known in shares(folder, options.threads, options.seconds):
                rows.append([run + 1, loop["function"], f"{loop['line_begin']}-{loop['line_end']}", f"{known:.4f}",
                             f"{found:.4f}", f"{100 * (found - known):+.2f}"])
                worst = max(worst, abs(found - known))
    text = common.table(["run", "loop", "lines", "known share", "found share", "difference, points"], rows)
    text += f"\n\nLargest difference: {100 * worst:.2f} percentage points.\n"
    print(text)
    common.write_section("accuracy.md", "loops", EXPLANATION.format(
        threads=options.threads, seconds=options.seconds, machine=common.machine()) + text)
    measure_rates(options.rate_seconds)


if __name__ == "__main__":
    main()
