# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of recording programs that allocate much: bare, recorded, and recorded with all blocks listed, in turns.
Writes docs/overhead.md."""

import argparse
import os
import shutil
import statistics
import subprocess

import common

EXPLANATION = """## Programs that do little but allocate

Written by `./dev bench allocation`. Each allocation enters its block into a table, from which objects have their names.
What that takes is a quarter of the budget at most: beyond it, small blocks are left out, the smallest first. Each round
runs a program bare, recorded at defaults, and recorded with `--heap-threshold 1`, which lists all blocks whatever it
takes, one after the other, in an order that rotates, at real-time priority where that is allowed; {rounds} rounds.

- *bare*: CPU time of a bare run, median. Programs marked + time themselves and leave out their first half second, in
  which a recording starts and finds its threshold; of the others it is the user + system time of the whole run.
- *recorded*, *all listed*: CPU time over that of bare runs, of the lower quartiles, with its 95 % interval (bootstrap).
- *left out*: blocks of fewer bytes were left out, at the most; median of the rounds.

Machine: {machine}.
"""

ALLOCATING = os.path.join(common.WORKLOADS, "allocating")
PYTHON = """import time
def fill(times):
    for i in range(times):
        {str(k): [k, float(k)] for k in range(1000)}
fill(2000)
begin = time.process_time()
fill(4000)
print(time.process_time() - begin)
"""
SOURCE = """#include <map>
#include <regex>
#include <string>
#include <iostream>
int main() { std::map<std::string, std::regex> all; std::cout << all.size(); }
"""
ROWS = ("create table t(a integer primary key, b text, c text); create index i on t(b); "
        "with recursive n(x) as (select 1 union all select x + 1 from n where x < 400000) "
        "insert into t select x, hex(x * 7919 % 400009), 'row ' || x from n; select count(*), max(b) from t;")


class Timed:
    """A program that prints the CPU seconds that count."""

    def __init__(self, name, command):
        self.name, self.command = name + " +", command

    def run(self, folder, profile, options):
        command = self.command(folder)
        if profile:
            command = common.recorded(command, profile, options)
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


class Whole:
    """A program whose CPU time is weighed inside the recording."""

    def __init__(self, name, command):
        self.name, self.command = name, command

    def run(self, folder, profile, options):
        weight = folder.file("weight.json")
        command = [common.WEIGH, weight, *self.command(folder)]
        if profile:
            command = common.recorded(command, profile, options)
        subprocess.run(command, check=True, capture_output=True)
        return common.read_weight(weight)["cpu_s"]


def compilation(folder):
    source = folder.file("source.cpp")
    with open(source, "w", encoding="ascii") as file:
        file.write(SOURCE)
    return ["g++", "-O1", "-c", "-o", folder.file("source.o"), source]


def programs():
    """Rounds of `allocating` are about 0.6 s of warming and 1.2 s that count."""
    every = [
        Timed("std::map<std::string, int>, 2 threads", lambda folder: [ALLOCATING, "map", "2", "35", "70"]),
        Timed("malloc(32) and free(), 1 thread", lambda folder: [ALLOCATING, "churn", "1", "200", "400"]),
        Timed("python3: dictionaries", lambda folder: ["/usr/bin/python3", "-c", PYTHON]),
        Whole("g++ -O1: <map> and <regex>", compilation),
    ]
    if shutil.which("sqlite3"):
        every.append(Whole("sqlite3: 400,000 rows in memory", lambda folder: ["sqlite3", ":memory:", ROWS]))
    return every


# The options of a kind of run.
KINDS = {"bare": None, "recorded": (), "all listed": ("--heap-threshold", "1")}


def bytes_left_out(profile):
    """The highest threshold that the profile tells of."""
    texts = [warning["message"] for warning in common.report(profile, "--view", "summary")["warnings"]
             if warning["code"] == "small_blocks_unnamed"]
    return max((int(text.split()[3]) for text in texts), default=0)


def measure(program, folder, rounds):
    profile = folder.file("profile.db")
    rows = {kind: [] for kind in KINDS}
    left_out = []
    program.run(folder, None, ())  # warms caches
    for index in range(rounds):
        for kind in common.in_turn(KINDS, index):
            options = KINDS[kind]
            rows[kind].append(program.run(folder, None if options is None else profile, options))
            if kind == "recorded":
                left_out.append(bytes_left_out(profile))
        print(f"{program.name}: {index + 1}: " + ", ".join(f"{kind} {rows[kind][-1]:.3f} s" for kind in KINDS), flush=True)
    return rows, left_out


def row(program, rows, left_out):
    below = statistics.median(left_out)
    return [program.name, f"{statistics.median(rows['bare']):.2f} s",
            *(common.undisturbed_ratio(rows[kind], rows["bare"]) for kind in ("recorded", "all listed")),
            f"below {below:.0f} bytes" if below else "none"]


def take_priority():
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        print("without real-time priority: figures are noisier")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench allocation", description=__doc__)
    parser.add_argument("--rounds", type=int, default=12, help="runs of each kind (default 12)")
    parser.add_argument("--only", default="", help="programs whose name contains this; writes no document")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds} must be at least 1")
    take_priority()
    with common.Folder() as folder:
        rows = [row(program, *measure(program, folder, options.rounds)) for program in programs()
                if options.only in program.name]
    text = common.table(["program", "bare", "recorded", "all listed", "left out"], rows)
    print(text)
    if not options.only:
        explanation = EXPLANATION.format(rounds=options.rounds, machine=common.machine())
        common.write_section("overhead.md", "allocation", explanation + "\n" + text + "\n")


if __name__ == "__main__":
    main()
