# SPDX-License-Identifier: Apache-2.0
"""Mapped, resident, locked and dumped memory of a recorded program beyond a bare one."""

import argparse
import os
import resource
import statistics
import subprocess
import sys

import common

PROGRAM = os.path.join(common.WORKLOADS, "footprint")

EXPLANATION = """## Memory of a recorded program

Written by `./dev bench footprint`. A program whose threads only count looks at itself after a second
(`/proc/self/status`), bare and recorded, {runs} runs each, medians: address space, resident memory, and what is locked
when it has called `mlockall(MCL_CURRENT | MCL_FUTURE)` first. *Core* is the disk space of the core dump of an `abort()`{core}.

Machine: {machine}.

"""


def figures(threads, mode, profile):
    """[VmSize, VmRSS, VmLck] in kB of one run; `profile` None: bare."""
    command = [PROGRAM, str(threads), *([mode] if mode else [])]
    shown = subprocess.run(command if profile is None else common.recorded(command, profile), check=False,
                           capture_output=True, text=True)
    words = shown.stdout.split()
    if len(words) != 3:
        sys.exit(f"bench: {' '.join(command)} failed: {shown.stderr.strip()}")
    return [int(word) for word in words]


def core_kb(threads, profile, folder):
    """Disk space of a core dump; None where the system does not leave it in the working directory."""
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as file:
        if file.read().strip() != "core":
            return None
    command = [PROGRAM, str(threads), "core"]
    unlimited = resource.getrlimit(resource.RLIMIT_CORE)[1]
    subprocess.run(command if profile is None else common.recorded(command, profile), check=False, cwd=folder,
                   capture_output=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE,
                                                                              (unlimited, unlimited)))
    dumps = [entry for entry in os.scandir(folder) if entry.name == "core" or entry.name.startswith("core.")]
    sizes = [entry.stat().st_blocks // 2 for entry in dumps]
    for entry in dumps:
        os.unlink(entry.path)
    return sizes[0] if sizes else None


def measured(threads, profile, folder, runs):
    """VmSize, VmRSS, VmLck when locked, and core of a program with `threads` threads beside the first."""
    plain = [figures(threads, "", profile) for _ in range(runs)]
    locked = [figures(threads, "lock", profile) for _ in range(runs)]
    dumps = [size for size in (core_kb(threads, profile, folder) for _ in range(runs)) if size is not None]
    return [statistics.median(run[0] for run in plain), statistics.median(run[1] for run in plain),
            statistics.median(run[2] for run in locked), statistics.median(dumps) if dumps else None]


def cells(bare, seen):
    return ["not known" if a is None or b is None else f"{a:.0f} / {b:.0f} kB ({b - a:+.0f})"
            for a, b in zip(bare, seen)]


def main():
    parser = argparse.ArgumentParser(prog="./dev bench footprint", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each kind (default 3)")
    options = parser.parse_args()
    runs = max(options.runs, 1)
    rows, dumped = [], True
    with common.Folder() as folder:
        for threads in (0, 15, 63):
            bare = measured(threads, None, folder.path, runs)
            seen = measured(threads, folder.file("run.db"), folder.path, runs)
            dumped = dumped and seen[3] is not None
            rows.append([threads + 1, *cells(bare, seen)])
    text = common.table(["threads", "address space", "resident", "locked", "core"], rows)
    print(text)
    core = "" if dumped else "; here they go elsewhere (`kernel.core_pattern`)"
    common.write_section("overhead.md", "footprint", EXPLANATION.format(
        runs=runs, core=core, machine=common.machine()) + text + "\n")


if __name__ == "__main__":
    main()
