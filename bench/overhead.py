# SPDX-License-Identifier: Apache-2.0
"""Recorded against bare runs of real programs, in turns: A B A B ... Writes docs/overhead.md."""

import argparse
import statistics
import sys

import common
import programs

EXPLANATION = """# Overhead

Written by `./dev bench overhead`; every figure below is measured, none is typed.

Each program runs bare and under `crosstalk record` in turns, {pairs} pairs, every second pair in reverse order, after
one pair that does not count. A ratio is recorded / bare, of the lower quartile of each side's runs: what else runs on
the machine only slows runs, so the faster ones are compared. In brackets: the 95 % interval of that ratio
(bootstrap). The fixed cost of a recording, starting and ending the recorder, is within.

- *bare*: lower quartile of the bare run times.
- *run time*: what a user waits (for the server: the time its load generator took).
- *CPU time*: user + system of the whole process tree; in recorded runs the recorder's own is within.
- *self-measured*: what the profile says observing has cost, as a fraction of the threads' CPU time
  (`sampling.overhead.fraction`), median; the budget was the default.
- *difference*: CPU ratio - 1 - self-measured: what the profile does not account for (the recorder's own work,
  caches, noise).
- *memory*: the largest peak resident size of one process in the tree, recorded - bare, medians.

Machine: {machine}. A recording of a program that does nothing takes {start_ms:.0f} ms of CPU time (bare: {bare_ms:.0f} ms).
"""


def measure(program, folder, pairs):
    """Lists of what each pair gave."""
    rows = {name: [] for name in ("bare_s", "observed_s", "bare_cpu", "observed_cpu", "self", "memory")}
    profile = folder.file("profile.db")
    program.prepare(folder)
    for index in range(pairs + 1):
        order = (None, profile) if index % 2 == 0 else (profile, None)
        results = {path: program.run(folder, path) for path in order}
        if index == 0:
            continue  # warms caches
        (bare, bare_seconds), (observed, observed_seconds) = results[None], results[profile]
        fraction = common.report(profile, "--view", "summary")["sampling"]["overhead"]["fraction"]
        for name, value in (("bare_s", bare_seconds), ("observed_s", observed_seconds), ("bare_cpu", bare.cpu_s),
                            ("observed_cpu", observed.cpu_s), ("memory", observed.peak_bytes - bare.peak_bytes),
                            ("self", fraction if fraction is not None else float("nan"))):
            rows[name].append(value)
        print(f"{program.name}: pair {index}: time {observed_seconds:.3f}/{bare_seconds:.3f}, "
              f"CPU {observed.cpu_s:.3f}/{bare.cpu_s:.3f}, self-measured {rows['self'][-1]:.4f}", flush=True)
    return rows


def row(program, result):
    cpu = common.undisturbed_ratio(result["observed_cpu"], result["bare_cpu"])
    self_measured = statistics.median(result["self"])
    return [f"`{program.name}`", program.threads, f"{common.low_quartile(result['bare_s']):.2f} s",
            common.undisturbed_ratio(result["observed_s"], result["bare_s"]), cpu, f"{100 * self_measured:.2f} %",
            f"{100 * (cpu.median - 1 - self_measured):+.2f} %", f"{statistics.median(result['memory']) / 1e6:+.1f} MB"]


def start_costs(folder, runs=11):
    """CPU time in ms of a program that does nothing: recorded, bare."""
    empty = ["/bin/true"]
    return [1e3 * statistics.median(common.weigh(command).cpu_s for _ in range(runs))
            for command in (common.recorded(empty, folder.file("empty.db")), empty)]


def main():
    parser = argparse.ArgumentParser(prog="./dev bench overhead", description=__doc__)
    parser.add_argument("--pairs", type=int, default=12, help="pairs of runs (default 12)")
    parser.add_argument("--only", default="", help="programs whose name contains this; writes no document")
    options = parser.parse_args()
    if options.pairs < 1:
        parser.error(f"--pairs {options.pairs} is less than 1")
    rows, absent = [], []
    with common.Folder() as folder:
        start_ms, bare_ms = start_costs(folder)
        for program in programs.all_programs():
            if options.only not in program.name:
                continue
            if not program.available():
                absent.append(program.name)
                continue
            rows.append(row(program, measure(program, folder, options.pairs)))
    text = common.table(["program", "threads", "bare", "run time ratio", "CPU time ratio", "self-measured",
                         "difference", "memory"], rows)
    print(text)
    if absent:
        print("not installed and left out: " + ", ".join(absent), file=sys.stderr)
    if not options.only:
        explanation = EXPLANATION.format(pairs=options.pairs, machine=common.machine(), start_ms=start_ms, bare_ms=bare_ms)
        common.write_document("overhead.md", explanation + "\n" + text + "\n")


if __name__ == "__main__":
    main()
