# SPDX-License-Identifier: Apache-2.0
"""Time and peak memory of importing a large recording of perf, whose samples are made (tests/perf_import)."""

import argparse
import os
import statistics
import sys

import common

sys.path.insert(0, os.path.join(common.TOP, "tests", "perf_import"))
import make_recording  # noqa: E402

LONGEST_S, MOST_BYTES = 5, 1e9

EXPLANATION = """## Importing large recordings of perf

Written by `./dev bench imports`: a perf.data file with {samples:,} samples of loads and stores of {threads} threads, with
address, latency and data source, as `tests/perf_import/make_recording.py` makes it ({megabytes:.0f} MB), is imported {runs}
times by `crosstalk import`. Wanted are at most {longest} s and {most:.0f} GB for a million samples.

Machine: {machine}; load average of the last minute before the first import: {load:.1f}.

"""


def spread(values, form):
    return f"{form(statistics.median(values))} ({form(min(values))}..{form(max(values))})"


def measured(path, profile, runs):
    weights = []
    for _ in range(runs):
        weights.append(common.weigh([common.CROSSTALK, "import", "-q", path, "-o", profile]))
        if weights[-1].status != 0:
            sys.exit(f"bench: the import ended with {weights[-1].status}")
    return weights


def main():
    parser = argparse.ArgumentParser(prog="./dev bench imports", description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000, help="samples in the recording (default 1000000)")
    parser.add_argument("--runs", type=int, default=5, help="imports made (default 5)")
    options = parser.parse_args()
    runs = max(options.runs, 1)
    load = os.getloadavg()[0]
    with common.Folder() as folder:
        path, profile = folder.file("perf.data"), folder.file("run.db")
        with open(path, "wb") as file:
            file.write(make_recording.recording(options.samples))
        weights = measured(path, profile, runs)
        sizes = os.path.getsize(path) / 1e6, os.path.getsize(profile) / 1e6
    seconds, peaks = [w.seconds for w in weights], [w.peak_bytes for w in weights]
    text = common.table(["samples", "time, median (range)", "CPU time", "peak memory", "profile"], [[
        f"{options.samples:,}", spread(seconds, lambda s: f"{s:.2f} s"),
        spread([w.cpu_s for w in weights], lambda s: f"{s:.2f} s"), spread(peaks, lambda b: f"{b / 1e6:.0f} MB"),
        f"{sizes[1]:.0f} MB"]])
    print(text)
    if max(seconds) > LONGEST_S or max(peaks) > MOST_BYTES:
        print(f"bench: more than {LONGEST_S} s or {MOST_BYTES / 1e9:.0f} GB", file=sys.stderr)
    common.write_section("overhead.md", "imports", EXPLANATION.format(
        samples=options.samples, threads=make_recording.THREADS, megabytes=sizes[0], runs=runs, longest=LONGEST_S,
        most=MOST_BYTES / 1e9, machine=common.machine(), load=load) + text)


if __name__ == "__main__":
    main()
