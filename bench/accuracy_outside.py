# SPDX-License-Identifier: Apache-2.0
"""Workloads that force their communication, recorded in turns by the collector outside and by the one inside: what each
finds, beside what was forced. `./dev bench accuracy --observer`; writes a section of docs/accuracy.md."""

import os
import statistics

import accuracy
import common

WAYS = {"inside": (), "outside": ("--observer",)}

EXPLANATION = """## From outside, beside from inside

Written by `./dev bench accuracy --observer`. Each workload is recorded {runs} times from outside (`record --observer`) and as often
by the library inside, in turns, both at defaults. Columns are those of the table at the top: *distance* of the costs found to those
timed or (in *italics*) communications forced, *floor* for as many detections, *true sharing* found, of the known share, *cost /
timed*, *detections* a second of the threads' CPU time; medians, the worst in brackets.

Machine: {machine}; load average {load} in the meantime, these programs included.
"""


def distance(results):
    text = accuracy.median_and_worst([result["distance"] for result in results])
    return text if results[0]["timed"] or text == "-" else f"*{text}*"


def median(results, key, form):
    known = [result[key] for result in results if result[key] is not None]
    return form.format(statistics.median(known)) if known else "-"


def row(title, results):
    shares = [result["known_true"] for way in WAYS for result in results[way] if result["known_true"] is not None]
    known = statistics.median(shares) if shares else 0
    cells = [f"`{title}`"]
    for way in WAYS:
        cells += [distance(results[way]), median(results[way], "floor", "{:.3f}")]
    cells += [accuracy.median_and_worst([result["true"] for result in results[way]],
                                        lambda found: max(found, key=lambda share: abs(share - known))) for way in WAYS]
    cells.append(f"{known:.3f}" if shares else "-")
    for key, form in (("of_timed", "{:.2f}"), ("detections", "{:.0f}"), ("cost", "{:.4f}")):
        cells += [median(results[way], key, form) for way in WAYS]
    return cells


HEADER = ["workload", "distance inside", "floor", "distance outside", "floor", "true inside", "true outside", "of", "cost / timed inside",
          "outside", "detections/s inside", "outside", "cost inside", "outside"]


def measure_table(runs, only, writes):
    rows, loads = [], []
    with common.Folder() as folder:
        for name, arguments in accuracy.CASES:
            if only not in name:
                continue
            results = {way: [] for way in WAYS}
            for index in range(runs):
                for way in common.in_turn(WAYS, index):
                    report, truth = accuracy.observe(name, arguments, folder.file("run.db"), WAYS[way])
                    results[way].append(accuracy.compare(report, truth))
            loads.append(os.getloadavg()[1])
            rows.append(row(" ".join([name, *arguments]), results))
            print(" | ".join(rows[-1]), flush=True)
    text = common.table(HEADER, rows)
    print(text)
    if writes:
        explanation = EXPLANATION.format(runs=runs, machine=common.machine(), load=f"{min(loads):.0f} to {max(loads):.0f}")
        common.write_section("accuracy.md", "outside", explanation + "\n" + text + "\n")
