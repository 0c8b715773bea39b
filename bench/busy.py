# SPDX-License-Identifier: Apache-2.0
"""Busy times, work and waits of loops that count and time themselves, against the report's. Writes docs/accuracy.md."""

import argparse
import os
import statistics
import subprocess

import common
import test_busy_times
import test_counted_loops
import test_waiting

EXPLANATION = """## Busy times, work and waits

Written by `./dev bench busy`. The machine is calibrated (`crosstalk calibrate`), and programs of one thread run loops that
count their own work and time themselves ({runs} runs; median, and the range in brackets).

**Loops that one unit limits.** Each runs in turns with the calibration's own kernel of that unit, so that both have the
same part of a machine that others may use as well; `busy` is the report's, of what the kernel reached meanwhile; of what it
had reached when the machine was calibrated it is the last column. `class` is the report's with the former. Vectors are of 32
bytes, `_512`: of 64.

{limits}

**Work.** What the report found, against what the loop has counted.

{work}

**Waits for other threads** (`record --waits`, `tests/workloads/waiting.cpp`): the largest difference between what the report
says and what threads found by their own clocks, of their elapsed time.

{waits}

Machine: {machine}; load average when it began, of other programs: {load:.1f}.
"""

LIMITS = [("busy_loops", "multiply_adds", "fpu", []), ("numeric_loops", "l1_scale", "l1d", []),
          ("numeric_loops_512", "l1_scale", "l1d", []), ("busy_loops", "near_triad", "l2", []),
          ("numeric_loops", "stencil<2>", "l2", []), ("numeric_loops_512", "stencil<2>", "l2", []),
          ("busy_loops", "far_triad", "memory", ["--seconds", "8", "--visit", "0.3"])]
WORK = [("busy_loops", ["--seconds", "12", "--far", "64"]), ("numeric_loops", ["--seconds", "21"]),
        ("source_programs", ["--seconds", "10", "--far", "512"])]


def observe(folder, program, *arguments, options=()):
    """The report and the truth of a run; its machine can do what was measured beside the loop, where that was."""
    profile = folder.file("run.db")
    truth = common.observe([os.path.join(common.WORKLOADS, program), *arguments], profile, options)
    calibrated = test_busy_times.set_peak(profile, truth["peak"]) if "peak" in truth else None
    return common.report(profile), truth, calibrated


def spread(values, unit="", scale=1):
    known = sorted(scale * value for value in values if value is not None)
    if not known:
        return "-"
    missing = "" if len(known) == len(values) else f", not known in {len(values) - len(known)} of {len(values)} runs"
    return f"{statistics.median(known):.1f}{unit} ({known[0]:.1f}..{known[-1]:.1f}{missing})"


def limit_row(folder, runs, program, function, unit, arguments):
    busy, calibrated, classes = [], [], set()
    for _ in range(runs):
        report, truth, before = observe(folder, program, "--only", function, "--peak", "1",
                                        *(arguments or ["--seconds", "3"]))
        row = test_busy_times.row_of(report, function)
        time = row["busy"][unit] if row["busy"] else None
        busy.append(time and time["of_effective"])
        then = before.get("one_core")
        calibrated.append(time and then and time["of_effective"] * truth["peak"]["per_s"] / then)
        classes.add(row["class"] or "-")
        why = "" if time or not row["busy"] else row["busy"]["reasons"].get(unit, "")
        print(program, function, unit, busy[-1], calibrated[-1], row["class"], why, flush=True)
    return [f"`{program} --only '{function}'`", unit, spread(busy, " %", 100), ", ".join(sorted(classes)),
            spread(calibrated, " %", 100)]


def work_rows(folder, runs):
    off = {}
    for program, arguments in WORK:
        for _ in range(runs):
            report, truth, _ = observe(folder, program, *arguments)
            for loop in truth["loops"]:
                rates = test_counted_loops.row_of(report, loop)["rates"]
                for name in ("flops", "bytes"):
                    known = loop[name] * loop["iterations"] / loop["cpu_s"]
                    found = rates[name + "_per_s"]
                    values = off.setdefault((program, loop["function"]), {}).setdefault(name, [])
                    values.append(found / known - 1 if known and found is not None else None)
    return [[f"`{program}`", f"`{function}`", *(spread(values[name], " %", 100) for name in ("flops", "bytes"))]
            for (program, function), values in off.items()]


def wait_rows(folder, runs):
    rows = []
    for at, kind in test_waiting.KINDS.items():
        if at in ("tasks", "atomic"):  # of another program; no call that can be measured
            continue
        off = []
        for _ in range(runs):
            report, truth, _ = observe(folder, "waiting", "--at", at, "--rounds", "60" if at == "ordered" else "150",
                                       options=["--waits"])
            found = test_waiting.waited_by(report, {kind})
            off += [(found.get(thread["tid"], 0) - thread["waited_s"]) / thread["elapsed_s"] for thread in truth["threads"]]
        print(at, off, flush=True)
        rows.append([at, f"{100 * max(off, key=abs):+.2f} points"])
    return rows


def main():
    parser = argparse.ArgumentParser(prog="./dev bench busy", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each (default 3)")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with common.Folder() as folder:
        os.environ["XDG_CONFIG_HOME"] = folder.file("config")
        os.makedirs(folder.file("config"), exist_ok=True)
        subprocess.run([common.CROSSTALK, "calibrate", "-q"], check=True)
        long_vectors = any(figure["width"] == "avx512" and figure["value"]
                           for figure in test_busy_times.machine_file()["flops"])
        limits = [limit_row(folder, options.runs, *limit) for limit in LIMITS
                  if long_vectors or not limit[0].endswith("_512")]
        work = work_rows(folder, options.runs)
        waits = wait_rows(folder, options.runs)
    text = EXPLANATION.format(
        runs=options.runs, machine=common.machine(), load=load,
        limits=common.table(["loop", "unit", "busy", "class", "as calibrated"], limits),
        work=common.table(["program", "loop", "flops/s", "bytes/s"], work),
        waits=common.table(["at", "largest difference"], waits))
    print(text)
    common.write_section("accuracy.md", "busy", text)


if __name__ == "__main__":
    main()
