# SPDX-License-Identifier: Apache-2.0
"""Compares what crosstalkd finds in one interval of a service at its small budget with what an ordinary recording of ten
seconds finds of the same process."""

import dataclasses
import glob
import json
import os
import subprocess
import time

import common

LEAST_SHARE = 0.05  # of the ten seconds' cost, for a row of the table
EXPLANATION = """## Findings of one interval

Written by `./dev bench continuous --findings`. Each program is recorded for 10 s by `crosstalk record -p PID`, and then by
`crosstalkd` for one interval of {interval} s at its budget of 1 %. Listed is each object with {least:.0%} of the cost or more in
either, and what it takes of the CPU time, in per cent, with 95 % intervals. *Found*: the other recording names it, too.

| program | object | of 10 s | of the interval | found |
|---|---|---|---|---|
{rows}

{sum}

Machine: {machine}.
"""


@dataclasses.dataclass
class Share:
    """The part of a recording's CPU time that an object takes."""

    name: str
    percent: float
    low: float
    high: float

    def __str__(self):
        return f"{self.percent:.2f} ({self.low:.2f}..{self.high:.2f})"


def objects(profile):
    """Shares by name, and the names that have enough of the cost to be listed."""
    done = subprocess.run([common.CROSSTALK, "report", "--format", "json", profile], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    cpu_s = sum(thread["cpu_s"] or 0 for thread in report["threads"])
    rows = report["objects"]
    cost_s = sum(row["cost_s"] for row in rows)
    shares, listed = {}, []
    for row in rows:
        if row["cost_s"] <= 0 or row["name"] in shares:
            continue
        low, high = row["cost_ci95"]
        shares[row["name"]] = Share(row["name"], 100 * row["cost_s"] / cpu_s, 100 * low / cpu_s, 100 * high / cpu_s)
        if row["cost_s"] >= LEAST_SHARE * cost_s:
            listed.append(row["name"])
    return shares, listed


def recorded_for_ten_seconds(folder, pid):
    profile = folder.file("ten.db")
    subprocess.run([common.CROSSTALK, "record", "-q", "-o", profile, "--duration", "10", "-p", str(pid)], check=True)
    return objects(profile)


def recorded_by_the_daemon(folder, daemon, interval):
    """The shares of the first whole interval, as `objects` gives them."""
    profiles = os.path.join(folder.file("state"), "services", "server", "server.db.*")
    try:
        daemon.await_recording()
        for _ in range(4 * interval):
            whole = [path for path in sorted(glob.glob(profiles)) if not path.endswith(("-wal", "-shm"))
                     and not os.path.exists(path + "-wal")]
            if whole:
                return objects(whole[0])
            time.sleep(1)
        raise RuntimeError("the daemon finished no interval")
    finally:
        daemon.stop()


def compare(title, pid, folder, daemon_of, interval):
    """Rows of the table; how many objects were listed, and how many of them both found."""
    ten, of_ten = recorded_for_ten_seconds(folder, pid)
    continuous, of_continuous = recorded_by_the_daemon(folder, daemon_of(folder, pid), interval)
    names = of_ten + [name for name in of_continuous if name not in of_ten]
    rows = [f"| {title} | `{name}` | {ten.get(name, '-')} | {continuous.get(name, '-')} | "
            f"{'yes' if name in ten and name in continuous else 'no'} |" for name in names]
    return rows, len(names), sum(name in ten and name in continuous for name in names)


class Workload:
    def __init__(self, name):
        self.title = f"`{name}`"
        self.process = subprocess.Popen([os.path.join(common.WORKLOADS, name), "--seconds", "3600"], stdout=subprocess.DEVNULL)

    def stop(self):
        self.process.kill()
        self.process.wait()


def section(servers, daemon_of, interval):
    """The section's text. `servers`: makers, given a folder; `daemon_of`: starts a daemon, given a folder and a pid."""
    rows, listed, both = [], 0, 0
    for maker in servers:
        with common.Folder() as folder:
            server = maker(folder)
            try:
                time.sleep(1)
                found = compare(server.title, server.process.pid, folder, daemon_of, interval)
            finally:
                server.stop()
        rows, listed, both = rows + found[0], listed + found[1], both + found[2]
        print("\n".join(found[0]))
    return EXPLANATION.format(interval=interval, least=LEAST_SHARE, rows="\n".join(rows), machine=common.machine(),
                              sum=f"{both} of {listed} objects are in both.")
