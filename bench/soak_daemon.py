# SPDX-License-Identifier: Apache-2.0
"""A loaded server under continuous mode, while recorders attach and leave every few seconds, by the daemon, from
outside and with the collector brought in, beside a service whose threads churn and one that forks all the time. The
memory and the descriptors of the daemon and of the server must not grow, every answer of the server must be right, and
the daemon must remove old profiles. Ends with 1 where anything of that was not so."""

import argparse
import os
import statistics
import subprocess
import sys
import time

import common
import continuous
from attach import RedisServer
from soak import resident

ALLOWED_PER_HOUR = 4 << 20  # of the daemon's anonymous memory, as of a recorder's (soak.py)
LARGEST = 64 << 20          # of all profiles
CONFIGURATION = """[state]
directory = "{state}"
max_size = "{largest}M"
[metrics]
port = 0
[[service]]
name = "redis"
command = "redis-server*:{port}*"
interval = "5s"
[[service]]
name = "churn"
executable = "*/thread_churn"
interval = "5s"
[[service]]
name = "forks"
command = "*fork-storm*"
interval = "7s"
"""
FORKS = "while :; do for i in 1 2 3 4 5 6 7 8; do /bin/true; done; sleep 0.05; done # fork-storm"


class SoakedDaemon(continuous.Daemon):
    def __init__(self, folder, port):
        self.socket, self.state = folder.file("socket"), folder.file("state")
        with open(folder.file("crosstalkd.toml"), "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(state=self.state, largest=LARGEST >> 20, port=port))
        self.log = folder.file("log")
        self.process = subprocess.Popen([continuous.daemon_program(), "--config", folder.file("crosstalkd.toml"), "--socket",
                                         self.socket, "--program", common.CROSSTALK], stderr=open(self.log, "w", encoding="utf-8"))


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def bytes_below(folder):
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names
               if os.path.exists(os.path.join(at, name)))


def attach(pid, way, folder, socket):
    """A recording of a second. Its complaint; empty: none."""
    run = subprocess.run([common.CROSSTALK, "record", "-q", "-o", folder.file("run.db"), "-p", str(pid), "--duration", "1", *way],
                         capture_output=True, text=True, check=False, timeout=120,
                         env={**os.environ, "CROSSTALK_SOCKET": socket})
    busy = "no thread was found within" in run.stderr or "take the whole budget" in run.stderr
    return "" if run.returncode == 0 or busy else f"{' '.join(way)}: {run.returncode} {run.stderr.strip()[-200:]}"


def growth_per_hour(rows, column):
    seconds = rows[-1][0]

    def fifth(number):
        return statistics.median(row[column] for row in rows if number / 5 <= row[0] / seconds <= (number + 1) / 5)
    return (fifth(4) - fifth(1)) / (seconds * 3 / 5) * 3600


def soak(arguments, folder):
    """(rows of measurements, complaints)."""
    server = RedisServer(folder)
    port = server.process.args[server.process.args.index("--port") + 1]
    daemon = SoakedDaemon(folder, port)
    others = [subprocess.Popen([os.path.join(common.WORKLOADS, "thread_churn"), "--seconds", "1e6"], stdout=subprocess.DEVNULL),
              subprocess.Popen(["/bin/sh", "-c", FORKS])]
    wrong, rows, ways, begin = [], [], [["--daemon"], ["--inject"], []], time.monotonic()
    try:
        daemon.await_recording()
        while time.monotonic() - begin < arguments.seconds and not wrong:
            complaint = attach(server.process.pid, ways[len(rows) % 3], folder, daemon.socket)
            wrong += [complaint] if complaint else []
            if daemon.process.poll() is not None or server.process.poll() is not None:
                wrong.append(f"the daemon ended with {daemon.process.poll()}, the server with {server.process.poll()}")
                break
            rows.append((time.monotonic() - begin, resident(daemon.process.pid, "RssAnon"), descriptors(daemon.process.pid),
                         resident(server.process.pid, "RssAnon"), descriptors(server.process.pid), bytes_below(daemon.state)))
            time.sleep(1)
        if daemon.process.poll() is None:
            daemon.stop()
    finally:
        for other in others:
            other.kill()
            other.wait()
    failures, requests = server.failures()
    with open(daemon.log, encoding="utf-8", errors="replace") as log:
        print(f"{requests} answers of the server checked; the daemon's log has {sum(1 for _ in log)} lines")
    return rows, wrong + failures


def judge(rows):
    wrong = []
    daemon_growth, server_growth = growth_per_hour(rows, 1), growth_per_hour(rows, 3)
    print(f"growth an hour: daemon {daemon_growth / 2**20:+.2f} MB, server {server_growth / 2**20:+.2f} MB")
    if daemon_growth > ALLOWED_PER_HOUR:
        wrong.append("the daemon's memory grows")
    if server_growth > ALLOWED_PER_HOUR:
        wrong.append("the server's memory grows")
    for name, column in (("daemon", 2), ("server", 4)):
        early, late = (max(row[column] for row in part) for part in (rows[: len(rows) // 2], rows[len(rows) // 2:]))
        if late > early + 2:
            wrong.append(f"the {name}'s descriptors grow: at most {early}, then {late}")
    if max(row[5] for row in rows) > 1.5 * LARGEST:
        wrong.append(f"the profiles took {max(row[5] for row in rows) / 2**20:.0f} MB")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=1800, help="length of the run [1800]")
    arguments = parser.parse_args()
    if arguments.seconds < 60:
        parser.error("a run of less than 60 s says nothing")
    with common.Folder() as folder:
        rows, wrong = soak(arguments, folder)
    print("seconds  daemon    fds  server    fds  profiles")
    for row in rows[:: max(1, len(rows) // 12)]:
        print(f"{row[0]:7.0f}  {row[1] / 2**20:5.2f} MB {row[2]:4}  {row[3] / 2**20:5.2f} MB {row[4]:4}  {row[5] / 2**20:5.1f} MB")
    wrong += judge(rows) if len(rows) >= 10 else ["too few turns"]
    print("\n".join(wrong) or f"nothing failed in {len(rows)} attachments")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
