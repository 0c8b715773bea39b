# SPDX-License-Identifier: Apache-2.0
"""What crosstalkd takes: memory of many sessions, CPU time of the daemon, and of recording a service that does little."""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time

import common
from daemon_harness import Client, children_of, cpu_seconds

CROSSTALKD = os.environ.get("CROSSTALKD", os.path.join(common.BUILD, "daemon", "service", "crosstalkd"))

# A process like most of a machine's: some threads, which wake now and then.
TARGET = """
import sys, threading, time
def wake():
    while True:
        time.sleep(0.05)
for _ in range({threads} - 1):
    threading.Thread(target=wake, daemon=True).start()
wake()
"""

EXPLANATION = """## Costs

Written by `./dev bench daemon`. Targets are processes with {threads} threads that wake 20 times a second. CPU times are of
{seconds} s, and given for a minute. Memory is PSS (`/proc/PID/smaps_rollup`): pages that processes share count in parts.

Machine: {machine}; {processes} processes; load average {load}.

{table}

- *Dirty* is each process's own part. A recorder has 1.1 MB of libpfm's tables there, which hold addresses that the
  loader writes; the rest is the heap, SQLite's pages, and what was sampled.
- Rings of perf are the kernel's memory, and in none of these figures: {ring} KiB for each thread that is recorded.
- The daemon looks for processes of services every 5 s, and at profiles every 10 s; without services it wakes every 10 s.
- *Reading* is one `crosstalk report` of each interval for the metrics, at the lowest priority.

The daemon after many sessions and intervals of a script in the place of crosstalk, which ends at once or writes a file of one
line every 50 ms. Its list of profiles takes about 0.7 KiB for each that is kept.

{endurance}
"""

# In the place of crosstalk.
SCRIPT = """#!/bin/sh
for last; do :; done
case "$*" in
report*) echo '{{"schema":"crosstalk.report/1","cpu_s":1}}' ;;
*--switch-output*)
  n=100000
  trap 'exit 0' INT
  while :; do n=$((n + 1)); echo x >"{state}/services/s/s.db.$n"; sleep 0.05; done ;;
*) echo x >"$last" ;;
esac
"""


def memory_kb(pid):
    """PSS and private dirty memory."""
    found = {}
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            found[key] = value.split()[0]
    return int(found["Pss"]), int(found["Private_Dirty"])


class Daemon:
    """With a folder of its own."""

    def __init__(self, folder, configuration="", program=common.CROSSTALK):
        self.folder = folder
        self.socket = folder.file("s")
        with open(folder.file("c.toml"), "w", encoding="ascii") as file:
            file.write(f'[state]\ndirectory = "{folder.file("state")}"\n[metrics]\nport = 0\n{configuration}')
        with open(folder.file("log"), "wb") as log:
            self.process = subprocess.Popen([CROSSTALKD, "--config", folder.file("c.toml"), "--socket", self.socket,
                                             "--program", program], stderr=log)
        self.pid = self.process.pid
        for _ in range(500):
            with contextlib.suppress(OSError):
                Client(self.socket).close()
                return
            time.sleep(0.02)
        sys.exit("bench: crosstalkd does not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def cpu_a_minute(self, seconds):
        """CPU ms of the daemon, of its workers that live on, and of those that it has waited for meanwhile."""
        def own():
            return cpu_seconds(self.pid), {pid: cpu_seconds(pid) for pid in children_of(self.pid)}, waited_for(self.pid)
        before = own()
        time.sleep(seconds)
        after = own()
        workers = sum(cpu - before[1].get(pid, 0) for pid, cpu in after[1].items())
        return [60 / seconds * 1000 * part for part in (after[0] - before[0], workers, after[2] - before[2])]


def waited_for(pid):
    """CPU seconds of a process's children that have ended."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def targets(count, threads):
    processes = [subprocess.Popen([sys.executable, "-c", TARGET.format(threads=threads)]) for _ in range(count)]
    time.sleep(1)
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def row(name, pss, dirty, cpu):
    return [name, f"{pss / 1024:.1f} MB", f"{dirty / 1024:.1f} MB", *(f"{part:.0f} ms" for part in cpu)]


def sessions(folder, pids, seconds, row_name):
    with Daemon(folder) as daemon:
        clients = []
        for pid in pids:
            clients.append(Client(daemon.socket))
            reply, descriptors = clients[-1].ask({"request": "record", "pids": [pid]})
            if reply["reply"] != "started":
                sys.exit(f"bench: {reply}")
            for descriptor in descriptors:
                os.close(descriptor)
        time.sleep(5)
        cpu = daemon.cpu_a_minute(seconds)
        workers = [memory_kb(pid) for pid in children_of(daemon.pid)]
        own = memory_kb(daemon.pid)
        begun = time.monotonic()
        for client in clients:
            client.send({"request": "stop"})
        for client in clients:
            reply, descriptors = client.receive()
            if reply["reply"] != "ended" or len(descriptors) != 1:
                sys.exit(f"bench: {reply}")
            os.close(descriptors[0])
        print(f"{len(pids)} sessions end within {time.monotonic() - begun:.1f} s; a worker has "
              f"{sum(pss for pss, _ in workers) / len(workers) / 1024:.2f} MB, the daemon {own[0] / 1024:.2f} MB", flush=True)
        return row(row_name, own[0] + sum(pss for pss, _ in workers), own[1] + sum(dirty for _, dirty in workers), cpu)


def watching(folder, seconds, configuration, row_name):
    with Daemon(folder, configuration) as daemon:
        time.sleep(8)
        cpu = daemon.cpu_a_minute(seconds)
        figures = [memory_kb(pid) for pid in (daemon.pid, *children_of(daemon.pid))]
        return row(row_name, sum(pss for pss, _ in figures), sum(dirty for _, dirty in figures), cpu)


def state_of(daemon, name):
    with open(f"/proc/{daemon.pid}/status", encoding="ascii") as status:
        anonymous = next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))
    files = len(os.listdir(f"/proc/{daemon.pid}/fd"))
    return [name, files, f"{anonymous / 1024:.2f} MB", len(children_of(daemon.pid))]


def short_sessions(daemon, pid, count):
    with Client(daemon.socket) as client:
        for _ in range(count):
            _, descriptors = client.ask({"request": "record", "pids": [pid]})
            reply, profile = client.receive()
            if reply["reply"] != "ended" or len(profile) != 1:
                sys.exit(f"bench: {reply}")
            for descriptor in (*descriptors, *profile):
                os.close(descriptor)


def endurance(folder, pid, sessions_at, intervals_at):
    """Rows of what the daemon has after so many sessions, then after so many intervals."""
    program, rows, done = folder.file("crosstalk"), [], 0
    with open(program, "w", encoding="ascii") as file:
        file.write(SCRIPT.format(state=folder.file("state")))
    os.chmod(program, 0o755)
    with Daemon(folder, program=program) as daemon:
        for count in sessions_at:
            short_sessions(daemon, pid, count - done)
            done = count
            rows.append(state_of(daemon, f"{count} sessions"))
    with Daemon(folder, '[[service]]\nname = "s"\ncommand = "*def wake*"\n', program) as daemon:
        kept = os.path.join(folder.file("state"), "services", "s")
        for count in intervals_at:
            while not os.path.isdir(kept) or len(os.listdir(kept)) < count:
                time.sleep(0.5)
            rows.append(state_of(daemon, f"{count} intervals, all kept"))
    return rows


def main():
    parser = argparse.ArgumentParser(prog="./dev bench daemon", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="of each measurement (default 120)")
    parser.add_argument("--threads", type=int, default=4, help="of each target (default 4)")
    parser.add_argument("--sessions", type=int, nargs="*", default=[20, 50], help="at once (default 20 50)")
    options = parser.parse_args()
    load, rows = os.getloadavg()[0], []
    service = '[[service]]\nname = "s"\ncommand = "*def wake*"\ninterval = "60s"\n'
    with targets(max(options.sessions, default=1), options.threads) as pids:
        processes = sum(name.isdigit() for name in os.listdir("/proc"))
        for count in options.sessions:
            with common.Folder() as folder:
                rows.append(sessions(folder, pids[:count], options.seconds, f"{count} sessions"))
    with common.Folder() as folder:
        rows.append(watching(folder, options.seconds, "", "no service, no session"))
    with common.Folder() as folder:
        rows.append(watching(folder, options.seconds, service, "a service that does not run"))
    with targets(1, options.threads) as pids, common.Folder() as folder:
        rows.append(watching(folder, options.seconds, service, "a service in intervals of 60 s"))
        with common.Folder() as other:
            lasting = common.table(["after", "descriptors", "anonymous memory", "processes"],
                                   endurance(other, pids[0], (50, 1050, 2050), (100, 1100)))
    table = common.table(["", "memory", "dirty", "the daemon's CPU time", "its workers'", "reading"], rows)
    print(table, lasting, sep="\n\n")
    common.write_section("daemon.md", "costs", EXPLANATION.format(
        threads=options.threads, seconds=f"{options.seconds:g}", machine=common.machine(), processes=processes,
        load=f"{load:.1f}", table=table, ring=132, endurance=lasting))


if __name__ == "__main__":
    main()
