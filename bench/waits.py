# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of measuring waits (record --waits) in programs that do little but wait: bare, recorded, and
recorded with waits measured, in turns. Writes docs/overhead.md."""

import argparse
import os
import statistics
import subprocess

import common

EXPLANATION = """## Programs that do little but wait for each other

Written by `./dev bench waits`. Two threads, each on a processor of its own, meet all the time: at a mutex that each holds
for a fraction of a microsecond, at a condition variable by which they wake each other, at a barrier of OpenMP. Each round
runs a program bare, recorded at defaults, and recorded with `--waits`, one after the other, in an order that rotates, with
the highest priority of the usual scheduler where that is allowed; {rounds} rounds of {seconds:g} s each, after half a second
that does not count. Programs time themselves: elapsed time and their own CPU time for each time that one thread took the
mutex, that a thread was woken, that both were at the barrier.

- *bare*: elapsed time of bare runs, median.
- *recorded*, *with waits*: elapsed time over that of the bare run of the same round, median, with its 95 % interval
  (bootstrap).
- *CPU time*: the same of the program's CPU time, recorded with waits.
- *measuring*: what runs with waits took more elapsed time than recorded ones of the same round: median of the differences
  for each time, with its interval.

How often a contended mutex changes hands, and how soon one processor sees what the other stored, differs from run to run,
of bare ones too, which is most of these intervals.

Machine: {machine}; load average when it began, of other programs: {load:.1f}.
"""

PROGRAM = os.path.join(common.BUILD, "bench", "wait_often")
WHAT = {"free-mutex": "mutex, one thread: nobody waits", "mutex": "mutex, two threads",
        "condition": "condition variable, two threads", "barrier": "barrier of OpenMP, two threads"}
KINDS = {"bare": None, "recorded": (), "with waits": ("--waits",)}


def run(what, seconds, profile, options):
    """Nanoseconds of elapsed and of CPU time for each time."""
    command = [PROGRAM, what, str(seconds)]
    if options is not None:
        command = common.recorded(command, profile, options)
    elapsed, cpu = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(elapsed), float(cpu)


def measure(what, folder, options):
    found = {kind: [] for kind in KINDS}
    for index in range(options.rounds):
        for kind in common.in_turn(KINDS, index):
            found[kind].append(run(what, options.seconds, folder.file("run.db"), KINDS[kind]))
        print(f"{what}: {index + 1}: " + ", ".join(f"{kind} {times[-1][0]:.1f} ns, CPU {times[-1][1]:.1f} ns"
                                                  for kind, times in found.items()), flush=True)
    return found


def ratio(found, kind, of):
    return common.median_with_interval([observed[of] / bare[of] for observed, bare in zip(found[kind], found["bare"])])


def row(what, found):
    more = common.median_with_interval([waits[0] - recorded[0] for waits, recorded
                                        in zip(found["with waits"], found["recorded"])])
    return [WHAT[what], f"{statistics.median(times[0] for times in found['bare']):.0f} ns", ratio(found, "recorded", 0),
            ratio(found, "with waits", 0), ratio(found, "with waits", 1),
            f"{more.median:+.0f} ns ({more.low:+.0f}..{more.high:+.0f})"]


def take_priority():
    """Uses the normal scheduler, so that the recorder and the program take turns as usual, and other programs get the
    rest."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    except PermissionError:
        print("without priority: figures are noisier")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench waits", description=__doc__)
    parser.add_argument("--rounds", type=int, default=24, help="runs of each kind (default 24)")
    parser.add_argument("--seconds", type=float, default=0.6, help="that a run counts (default 0.6)")
    parser.add_argument("--only", choices=WHAT, help="one of the programs; writes no document")
    options = parser.parse_args()
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("--rounds must be at least 1, and --seconds more than 0")
    load = os.getloadavg()[0]
    take_priority()
    with common.Folder() as folder:
        rows = [row(what, measure(what, folder, options)) for what in WHAT if options.only in (None, what)]
    text = common.table(["program", "bare", "recorded", "with waits", "CPU time", "measuring"], rows)
    print(text)
    if not options.only:
        explanation = EXPLANATION.format(rounds=options.rounds, seconds=options.seconds, machine=common.machine(), load=load)
        common.write_section("overhead.md", "waits", explanation + "\n" + text + "\n")


if __name__ == "__main__":
    main()
