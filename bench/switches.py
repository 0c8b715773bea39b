# SPDX-License-Identifier: Apache-2.0
"""The cost of beginning a new profile (record --switch-output), and the recorder's memory over many switches."""

import argparse
import contextlib
import glob
import os
import signal
import sqlite3
import subprocess
import sys
import time

import common
from soak import resident

PROGRAM = [os.path.join(common.WORKLOADS, "false_sharing"), "--threads", "9"]  # and the first thread
INTERVAL_MS = 50
LOOKS = (100, 300, 1000)  # switches after which the recorder's memory is read

EXPLANATION = """## Switches to a new profile

Written by `./dev bench switches`. `record --switch-output {interval}ms` records `false_sharing --threads 9`, which has
ten threads, {rounds} times for {seconds} s each, in turns with one profile of the same length; *a switch takes* the
difference of the recorder's CPU time for each switch, the median of the rounds with its 95 % interval (bootstrap): a file
with its tables, the rows of processes, threads and modules, one look at each thread, and the end of the file before. From
outside, the observer's thread is in the recorder's time. *Late* are samples and trapped accesses that came after their file
was finished, of all rows.

Machine: {machine}; load average {load}.

{costs}

Memory of the recorder after so many switches of {interval} ms, from outside, with `--switch-max-files 5`: all resident
memory, and the anonymous part, which is the recorder's own.

{memory}
"""


def rows(profile, query):
    with contextlib.closing(sqlite3.connect(f"file:{profile}?mode=ro", uri=True)) as database:
        return database.execute(query).fetchall()


def profiles(name):
    return sorted(path for path in glob.glob(glob.escape(name) + "*") if path[-1].isdigit() or path == name)


class Recorded:
    """A recording of the program from outside or inside, with or without switches."""

    def __init__(self, way, folder, seconds, switches):
        name = folder.file("run.db")
        for path in glob.glob(glob.escape(name) + "*"):
            os.unlink(path)
        options = ["-q", "-o", name, *(["--switch-output", f"{INTERVAL_MS}ms"] if switches else [])]
        if way == "outside":
            with running() as process:
                subprocess.run([common.CROSSTALK, "record", *options, "-p", str(process.pid), "--duration", str(seconds)],
                               check=True)
        else:
            subprocess.run([common.CROSSTALK, "record", *options, "--", *PROGRAM, "--seconds", str(seconds)], check=True,
                           stdout=subprocess.DEVNULL)
        files = profiles(name)
        self.files = len(files)
        self.cpu_ms = sum(rows(path, "SELECT value FROM meta WHERE key = 'recorder_cpu_ns'")[0][0] for path in files) / 1e6
        self.rows = sum(sum(rows(path, "SELECT (SELECT count(*) FROM sample), (SELECT count(*) FROM trap)")[0])
                        for path in files)
        self.late = sum(rows(path, "SELECT COALESCE(SUM(count), 0) FROM message WHERE code = 'rows_late'")[0][0]
                        for path in files)


@contextlib.contextmanager
def running():
    with subprocess.Popen([*PROGRAM, "--seconds", "3600"], stdout=subprocess.DEVNULL) as process:
        time.sleep(0.3)
        try:
            yield process
        finally:
            process.kill()


def cost_of(way, folder, rounds, seconds):
    costs, late, all_rows = [], 0, 0
    for number in range(rounds):
        runs = {switches: Recorded(way, folder, seconds, switches) for switches in common.in_turn((False, True), number)}
        costs.append((runs[True].cpu_ms - runs[False].cpu_ms) / (runs[True].files - 1))
        late, all_rows = late + runs[True].late, all_rows + runs[True].rows
    spread = common.median_with_interval(costs)
    return [way, f"{spread.median:.2f} ms ({spread.low:.2f}..{spread.high:.2f})", f"{late} of {all_rows}"]


def memory(folder):
    """Rows of (switches, all resident bytes, anonymous bytes)."""
    name, found = folder.file("long.db"), []
    with running() as process, \
         subprocess.Popen([common.CROSSTALK, "record", "-q", "-o", name, "--switch-output", f"{INTERVAL_MS}ms",
                           "--switch-max-files", "5", "-p", str(process.pid)]) as recorder:
        seen = set()
        while recorder.poll() is None and len(found) < len(LOOKS):
            seen.update(profiles(name))
            if len(seen) > LOOKS[len(found)]:
                found.append([LOOKS[len(found)], *(f"{resident(recorder.pid, field) / 1e6:.1f} MB"
                                                   for field in ("VmRSS", "RssAnon"))])
            time.sleep(INTERVAL_MS / 4000)
        recorder.send_signal(signal.SIGINT)
    if len(found) < len(LOOKS):
        sys.exit("bench: the recorder ended early")
    return found


def main():
    parser = argparse.ArgumentParser(prog="./dev bench switches", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="recordings of each kind (default 7)")
    parser.add_argument("--seconds", type=float, default=5, help="length of each (default 5)")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with common.Folder() as folder:
        costs = common.table(["watched from", "a switch takes", "late"],
                             [cost_of(way, folder, max(options.rounds, 2), options.seconds) for way in ("outside", "inside")])
        grown = common.table(["switches", "resident", "anonymous"], memory(folder))
    print(costs, grown, sep="\n\n")
    common.write_section("overhead.md", "switches", EXPLANATION.format(
        interval=INTERVAL_MS, rounds=options.rounds, seconds=f"{options.seconds:g}", machine=common.machine(),
        load=f"{load:.1f}", costs=costs, memory=grown))


if __name__ == "__main__":
    main()
