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


PROBED = [
    ("private_only", ["--seconds", "3"]),
    ("false_sharing", ["--seconds", "3"]),
    ("ping_pong", ["--seconds", "3"]),
    ("mixed", ["--seconds", "3"]),
]
WAYS = {"probe": ("--method", "probe"), "none": ("--method", "watch", "--watchpoints", "0")}  # both follow nothing else

PROBES = """## The probe

Written by `./dev bench handler --probes`. Where lines are probed (`record --method probe`), half of the samples read their line
twice. What a probe takes is the time in handlers apart from sampling, for each line probed or given up, less what is apart where
nothing is probed, {runs} runs of each program, in turns, without lookaheads: medians, with the least and the most. *Wanted* is the
mean of the gaps between two reads, which are drawn from 256 ns to 16 us; the rest are the reads by `process_vm_readv`, the look
whether the page is there, waiting for others' handlers, the record, and caches that are cold for all of it.

Machine: {machine}; load average {load}.

"""


def time_apart(profile):
    """(us of handlers' time apart from sampling, samples, probes made, probes given up, mean us of their gaps)"""
    with sqlite3.connect(f"file:{profile}?mode=ro", uri=True) as database:
        meta = dict(database.execute("SELECT key, value FROM meta"))
        delivery = {1: meta["config.signal_cost_ns"], 2: meta["config.perf_sample_cost_ns"]}
        apart, samples = 0, 0
        for handlers, sampling, count, clock in database.execute("SELECT handlers_ns, handler_samples_ns, samples, clock FROM thread"):
            apart += handlers - sampling - count * delivery.get(clock, 0)
            samples += count
        made, gap = database.execute("SELECT COUNT(*), IFNULL(AVG(gap_ns), 0) FROM line_probe").fetchone()
    given_up = sum(meta["probes." + why] for why in ("unreadable", "in_handlers", "beside_another", "went_on"))
    return apart / 1000, samples, made, given_up, gap / 1000


def probe_row(name, arguments, runs, profile):
    command = [os.path.join(common.WORKLOADS, name), *arguments]
    took, gaps, counts, idle = [], [], [], []
    for index in range(runs):
        for way in common.in_turn(WAYS, index):
            common.weigh(common.recorded(command, profile, ("--no-lookahead", *WAYS[way])))
            apart, samples, made, given_up, gap = time_apart(profile)
            if way == "none":
                idle.append(apart / max(samples, 1))
            elif made + given_up:
                took.append((apart, samples, made + given_up))
                gaps.append(gap)
                counts.append((made, given_up))
    rest = statistics.median(idle)
    each = [(apart - rest * samples) / probes for apart, samples, probes in took]
    made, given_up = (sum(column) for column in zip(*counts))
    return [f"`{' '.join([name, *arguments])}`", made, given_up, f"{statistics.median(each):.1f} us ({min(each):.1f}..{max(each):.1f})",
            f"{statistics.median(gaps):.1f} us"]


def probes(runs, folder):
    rows = [probe_row(name, arguments, runs, folder.file("run.db")) for name, arguments in PROBED]
    return PROBES.format(runs=runs, machine=common.machine(), load=f"{os.getloadavg()[1]:.0f}") + common.table(["program", "probes", "given up", "a probe takes", "wanted"], rows) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="./dev bench handler", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each program (default 3)")
    parser.add_argument("--probes", action="store_true", help="only what probes of lines take")
    options = parser.parse_args()
    runs = max(options.runs, 1)
    rows, everything, signals = [], [], []
    with common.Folder() as folder:
        of_probes = probes(runs, folder)
        print(of_probes)
        common.write_section("overhead.md", "probe", of_probes)
        if options.probes:
            return
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
