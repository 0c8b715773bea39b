#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs of the catalogue by hand: often, to see rates, or bare only, to see whether they are deterministic."""

import argparse
import collections
import dataclasses
import fnmatch
import sys
import time

import catalogue
import comparison


def selected(patterns):
    if not patterns:
        return catalogue.CATALOGUE
    chosen = [program for program in catalogue.CATALOGUE
              if any(fnmatch.fnmatch(program.name, pattern) for pattern in patterns)]
    if not chosen:
        sys.exit(f"no program is named {' or '.join(patterns)}")
    return chosen


def repeat(program, times, bare_only):
    """Prints how often a program differed, and how; returns that number."""
    bare = comparison.bare_run(program)
    reasons = collections.Counter()
    differing = samples = traps = 0
    begin = time.monotonic()
    for _ in range(times):
        if bare_only:
            again = comparison.bare_run(program)
            found = [] if again == bare else [f"bare runs differ: {comparison.explain(bare, again)}"]
        else:
            recording = comparison.recorded_run(program)
            found = comparison.differences(program, bare, recording)
            samples, traps = samples + recording.samples, traps + recording.traps
        differing += 1 if found else 0
        reasons.update(found)
    observed = "" if bare_only else f", {samples / times:.0f} samples, {traps / times:.0f} traps"
    print(f"{'DIFFERS' if differing else 'same   '} {program.name}: {differing} of {times}"
          f" ({(time.monotonic() - begin) / times:.2f} s{observed})", flush=True)
    for reason, count in reasons.most_common():
        print(f"    {count} x {reason}", flush=True)
    return differing


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("patterns", nargs="*", metavar="NAME", help="names as in the catalogue, * allowed; all without")
    parser.add_argument("-n", "--repeat", type=int, default=1, metavar="N", help="record each so often")
    parser.add_argument("--bare", action="store_true", help="compare bare runs with each other, record nothing")
    parser.add_argument("--options", default="", metavar="WORDS", help="of crosstalk record, beside the program's own")
    parser.add_argument("--way", default="", choices=list(comparison.WAYS), help="attach to the running program, in this way")
    parser.add_argument("--wait", type=float, metavar="S", help="with --way: attached to so many seconds after its start [0.05]")
    parser.add_argument("--list", action="store_true", help="name the programs and what they prove")
    parser.add_argument("--print", action="store_true", help="print what the bare run writes")
    arguments = parser.parse_args()
    differing = 0
    for program in selected(arguments.patterns):
        lacks = comparison.missing(program)
        if arguments.list:
            print(f"{program.name}: {program.proves}")
        elif lacks:
            print(f"left out {program.name}: needs {', '.join(lacks)}")
        elif arguments.print:
            run = comparison.bare_run(program)
            print(f"--- {program.name}: status {run.status}\n{run.stdout}{run.stderr}", end="")
        else:
            if arguments.way:  # brief programs may be over before anything was seen of them
                program = dataclasses.replace(program, way=arguments.way, says="", samples=False, traps=False)
            if arguments.wait is not None:
                program = dataclasses.replace(program, wait=arguments.wait)
            if arguments.options:  # another way to observe has other words
                program = dataclasses.replace(program, options=f"{program.options} {arguments.options}", says="")
            differing += repeat(program, arguments.repeat, arguments.bare) > 0
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
