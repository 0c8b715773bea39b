# SPDX-License-Identifier: Apache-2.0
"""Cost of a marked region: begin and end with nothing in it, bare and recorded."""

import argparse
import os
import statistics
import subprocess

import common

EXPLANATION = """## Marked regions

Written by `./dev bench regions`. A C++ program begins and ends a region (`include/crosstalk/region.h`) {marks:,} times,
{runs} runs each in turns; nanoseconds of its own clock for both marks together, least and median. *Recorded*, a mark takes
two looks at the vdso's clock all in all, and the region's name is looked for by its text.

Machine: {machine}.

"""
CASES = [("bare", None, 1), ("recorded", [], 1), ("recorded, 8 regions around it", [], 8)]


def nanoseconds(output):
    return float(output.split()[-1])


def main():
    parser = argparse.ArgumentParser(prog="./dev bench regions", description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="runs of each (default 7)")
    options = parser.parse_args()
    marks = 2_000_000
    program = os.path.join(common.BUILD, "bench", "region_marks")
    found = {name: [] for name, _, _ in CASES}
    with common.Folder() as folder:
        for _ in range(max(options.runs, 1)):
            for name, record, depth in CASES:
                command = [program, str(marks), str(depth)]
                if record is not None:
                    command = common.recorded(command, folder.file("run.db"))
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                found[name].append(nanoseconds(done.stdout))
    text = common.table(["program", "least", "median"],
                        [[name, f"{min(times):.1f} ns", f"{statistics.median(times):.1f} ns"]
                         for name, times in found.items()])
    print(text)
    common.write_section("overhead.md", "regions", EXPLANATION.format(
        marks=marks, runs=options.runs, machine=common.machine()) + text)


if __name__ == "__main__":
    main()
