# SPDX-License-Identifier: Apache-2.0
"""Time and peak memory of a report or an export of a large profile, made by replaying a real one until it is large
enough."""

import argparse
import os
import shutil
import sqlite3
import statistics
import sys

import common
import programs


EXPLANATION = """## Reports of large profiles

Written by `./dev bench report`: a recorded profile, its samples, watches, traps and stacks repeated until there are
{samples:,} samples, then reported {runs} times a format. `pigz` is a program whose threads hardly communicate; those of
`mixed` do hardly anything else, and traps are most of its profile, the more so with a doubled budget.

Machine: {machine}.

"""

OF_EXPORTS = """## Exports of large profiles

Written by `./dev bench report --exports`: the same profiles, exported {runs} times a form, beside their JSON report.
The difference is mostly the unpacking and unwinding of stacks, of which a report needs some only. *CPU time* is user
and system time, in which other programs on the machine do not count. Stacks are copied by elapsed time, and samples
taken by CPU time: profiles that are recorded beside other programs, as these were, have more stacks a sample.

Machine: {machine}.

"""


def columns(database, table):
    return [row[1] for row in database.execute(f"PRAGMA table_info({table})")]


def replay(database, table, changes, names, last):
    """Appends the first `last` rows of a table once more, some columns changed by an expression."""
    chosen = ", ".join(changes.get(name, name) for name in columns(database, table))
    database.execute(f"INSERT INTO {table} SELECT {chosen} FROM {table} WHERE {last}", names)


def largest(database, table, column):
    return database.execute(f"SELECT COALESCE(MAX({column}), 0) FROM {table}").fetchone()[0]


def enlarge(path, samples):
    """Repeats samples, watches, traps and stacks, each round later by the length of the run."""
    with sqlite3.connect(path) as database:
        present = database.execute("SELECT COUNT(*) FROM sample").fetchone()[0]
        if present == 0:
            sys.exit("bench: the recorded profile has no samples to replay")
        first, end = database.execute("SELECT MIN(time), MAX(time) FROM sample").fetchone()
        stacks, watches = largest(database, "stack", "id"), largest(database, "watch", "id")
        rows = {table: largest(database, table, "rowid") for table in ("sample", "trap")}
        rounds = -(-samples // present)
        for number in range(1, rounds):
            names = {"later": number * (end - first), "watches": number * watches, "stacks": number * stacks}
            stack, watch, time = "stack + :stacks", "watch + :watches", "time + :later"
            replay(database, "stack", {"id": "id + :stacks"}, names, f"id <= {stacks}")
            replay(database, "sample", {"time": time, "watch": watch, "stack": stack}, names, f"rowid <= {rows['sample']}")
            replay(database, "watch", {"id": "id + :watches", "time": time, "close_time": "close_time + :later",
                                       "sample_stack": "sample_stack + :stacks"}, names, f"id <= {watches}")
            replay(database, "watch_word", {"watch": watch}, names, f"watch <= {watches}")
            replay(database, "trap", {"watch": watch, "time": time, "stack": stack}, names, f"rowid <= {rows['trap']}")
        for column in ("cpu_ns", "samples", "traps", "armed", "handlers_ns", "switches_ns", "switches",
                       "handler_samples_ns"):
            database.execute(f"UPDATE thread SET {column} = {column} * ?", (rounds,))
        database.execute("UPDATE thread SET end_ns = end_ns + ? WHERE end_ns IS NOT NULL", ((rounds - 1) * (end - first),))
        return {table: database.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
                for table in ("sample", "watch", "trap", "stack")}


def recorded_programs(folder):
    """Name, command and options of `crosstalk record` for each program."""
    programs.sample_data(folder.file("data.tar"), 200_000_000)
    mixed = [os.path.join(common.WORKLOADS, "mixed"), "--threads", "3"]
    return [("pigz -p 4", ["pigz", "-p", "4", "-k", "-c", folder.file("data.tar")], ()),
            ("mixed --threads 3", mixed, ()),
            ("mixed --threads 3, --budget 6", mixed, ("--budget", "6"))]


def commands(folder, options):
    """Each with its name, but for the profile."""
    reports = [(kind, ["report", "--format", kind]) for kind in ("text", "json")]
    if not options.exports:
        return reports
    return [("report, json", reports[1][1]),
            ("export, pprof", ["export", "-o", folder.file("out.pb.gz")]),
            ("export, collapsed", ["export", "-o", folder.file("out.folded")])]


def measured(name, path, options, folder):
    """Enlarges the profile; its size in words, and a row of the table for each command."""
    counts = enlarge(path, options.samples)
    size = ", ".join(f"{count:,} rows of {table}" for table, count in counts.items())
    size = f"`{name}`: {size}; {os.path.getsize(path) / 1e6:.0f} MB"
    print(size)
    rows = []
    for kind, command in commands(folder, options):
        weights = [common.weigh([common.CROSSTALK, *command, "-i", path]) for _ in range(max(options.runs, 1))]
        for weight in weights:
            if weight.status != 0:
                sys.exit(f"bench: crosstalk {command[0]} ended with {weight.status}")
        times = [w.cpu_s if options.exports else w.seconds for w in weights]
        rows.append([f"`{name}`", kind, f"{statistics.median(times):.2f} s",
                     f"{max(w.peak_bytes for w in weights) / 1e6:.0f} MB"])
    return size, rows


def main():
    parser = argparse.ArgumentParser(prog="./dev bench report", description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000, help="samples in the profile (default 1000000)")
    parser.add_argument("--runs", type=int, default=3, help="reports made (default 3)")
    parser.add_argument("--profile", help="a recorded profile to replay; default: fresh ones of pigz and of mixed")
    parser.add_argument("--exports", action="store_true", help="measure exports instead")
    options = parser.parse_args()
    rows, notes = [], []
    with common.Folder() as folder:
        path = folder.file("large.db")
        if options.profile:
            shutil.copyfile(options.profile, path)
            size, rows = measured(os.path.basename(options.profile), path, options, folder)
            notes.append(size + ".")
        for name, command, how in [] if options.profile else recorded_programs(folder):
            weight = common.weigh(common.recorded(command, path, how))
            a_minute = os.path.getsize(path) / 1e6 / weight.seconds * 60
            size, of_program = measured(name, path, options, folder)
            rows += of_program
            notes.append(f"{size}. A recording on this machine takes {a_minute:.1f} MB a minute.")
    heads = ["program", "command" if options.exports else "format", "CPU time, median" if options.exports else "time, median",
             "peak memory"]
    text = "\n\n".join([common.table(heads, rows), *notes])
    print(text)
    common.write_section("overhead.md", "export" if options.exports else "report",
                         (OF_EXPORTS if options.exports else EXPLANATION).format(
                             samples=options.samples, runs=options.runs, machine=common.machine()) + text)


if __name__ == "__main__":
    main()
