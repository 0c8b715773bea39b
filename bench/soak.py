# SPDX-License-Identifier: Apache-2.0
"""Memory of a recorder whose target makes threads for a long time: it must not grow."""

import argparse
import contextlib
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import common

# Allowed growth of the recorder's memory from the second fifth of a run to the last, relative to an hour. Its caches
# (of SQLite, of the allocator) are full by then.
ALLOWED_PER_HOUR = 4 << 20


def resident(pid, field):
    """Bytes of a field of /proc/PID/status; None when the process is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def watch(recorder, every):
    """(seconds, anonymous bytes, all resident bytes) until it ends."""
    begin, rows = time.monotonic(), []
    while recorder.poll() is None:
        anonymous, whole = resident(recorder.pid, "RssAnon"), resident(recorder.pid, "VmRSS")
        if anonymous and whole:
            rows.append((time.monotonic() - begin, anonymous, whole))
        time.sleep(every)
    return rows


def growth_per_hour(rows):
    """Bytes an hour, from the medians of the second and the last fifth of the run."""
    seconds = rows[-1][0]

    def fifth(number):
        return statistics.median(row[1] for row in rows if number / 5 <= row[0] / seconds <= (number + 1) / 5)
    return (fifth(4) - fifth(1)) / (seconds * 3 / 5) * 3600


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=3600, help="length of the run [3600]")
    parser.add_argument("--rate", type=int, default=100, help="threads a second [100]")
    parser.add_argument("--period", default="4ms", help="of samples [4ms]")
    arguments = parser.parse_args()
    if arguments.seconds < 30:
        parser.error("a run of less than 30 s says nothing")
    with tempfile.TemporaryDirectory(prefix="crosstalk-soak-") as folder:
        profile = os.path.join(folder, "soak.db")
        command = [common.CROSSTALK, "record", "-q", "-o", profile, "--period", arguments.period, "--",
                   os.path.join(common.WORKLOADS, "thread_churn"), "--seconds", str(arguments.seconds), "--rate", str(arguments.rate)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as recorder:
            rows = watch(recorder, max(0.2, arguments.seconds / 600))
            truth = json.loads(recorder.stdout.read())
        if recorder.returncode != 0:
            sys.exit(f"soak: the recording ended with {recorder.returncode}")
        size = os.path.getsize(profile)
        with contextlib.closing(sqlite3.connect(profile)) as database:
            samples = database.execute("SELECT count(*) FROM sample").fetchone()[0]
    print("seconds  anonymous  resident")
    for row in rows[:: max(1, len(rows) // 12)]:
        print(f"{row[0]:7.0f}  {row[1] / 2**20:6.2f} MB  {row[2] / 2**20:6.2f} MB")
    growth = growth_per_hour(rows)
    print(f"{truth['threads']} threads, {samples} samples in {truth['seconds']:.0f} s; the profile has {size / 2**20:.1f} MB")
    print(f"growth of the recorder's own memory: {growth / 2**20:+.2f} MB an hour (allowed: {ALLOWED_PER_HOUR >> 20} MB)")
    if growth > ALLOWED_PER_HOUR:
        sys.exit("soak: the recorder's memory grows")


if __name__ == "__main__":
    main()
