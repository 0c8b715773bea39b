# SPDX-License-Identifier: Apache-2.0
"""Attaches to servers under load, and leaves them, again and again, from outside and with the collector brought in: no
request may fail, no server may end, and nothing of it may differ afterwards. Says for how long it was kept waiting.
Ends with 1 where anything of that was not so."""

import argparse
import dataclasses
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
import time

import common
from programs import Redis

WAYS = {"outside": [], "inject": ["--inject"]}
PAUSES = re.compile(r"stopped (\d+) times, for ([\d.]+) ms at most; calls took ([\d.]+) ms")
NOT_NOW = "no thread was found within"  # at a point where a library can be loaded: refused, and nothing was changed


def state(pid):
    """Returns a process's own view: descriptors, signal dispositions, masks."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        fields = dict(line.rstrip("\n").split(":", 1) for line in status)
    return {**{key: fields[key].strip() for key in ("TracerPid", "SigBlk", "SigIgn", "SigCgt")},
            "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}


class Client(threading.Thread):
    """Increments a counter of redis's; each answer must be one more than the last. Notes how long each took."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.over, self.failed, self.took_s, self.last = int(port), False, [], [], 0

    def run(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port)) as server:
                answers = server.makefile("rb")
                while not self.over:
                    begin = time.monotonic()
                    server.sendall(b"INCR counted\r\n")
                    answer = answers.readline()
                    self.took_s.append(time.monotonic() - begin)
                    self.last += 1
                    if answer != b":%d\r\n" % self.last:
                        self.failed.append(repr(answer))
                    time.sleep(0.001)
        except OSError as error:
            self.failed.append(str(error))

    def take(self):
        taken, self.took_s = self.took_s, []
        return taken


class RedisServer:
    """redis-server with I/O threads, under redis-benchmark's load and a client of ours that counts."""

    name = "redis"
    pause_ms = 50

    def __init__(self, folder):
        port = str(Redis.free_port())
        self.process = subprocess.Popen(Redis.command(folder, port), stdout=subprocess.DEVNULL)
        Redis.await_server(port)
        self.load = subprocess.Popen(["redis-benchmark", "-p", port, "-q", "-l", "-c", "20", "-P", "4", "-t", "set,get"],
                                     stdout=open(folder.file("load"), "w+", encoding="utf-8"), stderr=subprocess.STDOUT)
        self.said = folder.file("load")
        self.client = Client(port)
        self.client.start()

    @property
    def title(self):
        return "`redis-server --io-threads 2`, `redis-benchmark -c 20 -P 4`"

    def waits_ms(self):
        return [1000 * took for took in self.client.take()]

    def failures(self):
        """Ends all; what went wrong, in words."""
        found = [] if self.process.poll() is None else [f"redis-server ended with {self.process.returncode}"]
        found += [] if self.load.poll() is None else [f"redis-benchmark ended with {self.load.returncode}"]
        self.client.over = True
        self.client.join(timeout=10)
        found += self.client.failed[:3]
        self.load.terminate()
        self.load.wait()
        with open(self.said, encoding="utf-8", errors="replace") as said_file:
            said = [line for line in re.split("[\r\n]", said_file.read()) if "rror" in line]
        self.process.terminate()
        status = self.process.wait(timeout=60)
        return found + said[:3] + ([] if status == 0 else [f"redis-server ends with {status}"]), self.client.last


class BusyServer:
    """tests/workloads/busy_server.cpp, which checks itself and notes for how long its threads stood still."""

    def __init__(self, _folder):
        self.process = subprocess.Popen([os.path.join(common.WORKLOADS, "busy_server"), "--seconds", "100000", "--threads",
                                         "16", "--idle", str(self.idle)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1)

    @property
    def title(self):
        return f"`busy_server --threads 16" + (f" --idle {self.idle}`" if self.idle else "`")

    def waits_ms(self):
        return []

    def failures(self):
        ended = self.process.poll()
        self.process.terminate()
        out, err = self.process.communicate(timeout=120)
        found = [line for line in err.splitlines() if line][:3]
        if ended is not None or self.process.returncode != 0:
            return found + [f"it ended with {self.process.returncode}"], 0
        done = json.loads(out)
        return found + ([f"{done['failures']} failures"] if done["failures"] else []), done["operations"]


class SmallServer(BusyServer):
    name, idle, pause_ms = "small", 0, 50


class LargeServer(BusyServer):
    name, idle, pause_ms = "large", 984, 500


SERVERS = {kind.name: kind for kind in (RedisServer, SmallServer, LargeServer)}


@dataclasses.dataclass
class Cycles:
    done: int = 0
    not_now: int = 0
    samples: int = 0
    stop_ms: list = dataclasses.field(default_factory=list)
    call_ms: list = dataclasses.field(default_factory=list)
    waits_ms: list = dataclasses.field(default_factory=list)
    failed: list = dataclasses.field(default_factory=list)


def cycle(pid, way, seconds, folder, cycles):
    command = [common.CROSSTALK, "record", "-v", "-o", folder.file("run.db"), "-p", str(pid), "--duration", str(seconds),
               *WAYS[way]]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if run.returncode == 125 and NOT_NOW in run.stderr:
        cycles.not_now += 1
        return
    wrote = re.search(r"\((\d+) samples", run.stderr)
    if run.returncode != 0 or not wrote:
        cycles.failed.append(f"recorder: {run.returncode} {run.stderr.strip().splitlines()[-1:]}")
        return
    cycles.done += 1
    cycles.samples += int(wrote.group(1))
    pauses = PAUSES.search(run.stderr)
    if pauses:
        cycles.stop_ms.append(float(pauses.group(2)))
        cycles.call_ms.append(float(pauses.group(3)))


def run_cycles(server, way, count, seconds, folder):
    cycles = Cycles()
    server.waits_ms()
    before = state(server.process.pid)
    while cycles.done < count and not cycles.failed and cycles.not_now <= count and server.process.poll() is None:
        cycle(server.process.pid, way, seconds, folder, cycles)
    cycles.waits_ms = server.waits_ms()
    if server.process.poll() is None and state(server.process.pid) != before:
        cycles.failed.append(f"before {before}, after {state(server.process.pid)}")
    return cycles


def spread(values, digits=1):
    return f"{statistics.median(values):.{digits}f} / {max(values):.{digits}f}" if values else "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100, help="of each server and each way [100]")
    parser.add_argument("--seconds", type=float, default=0.3, help="attached in each [0.3]")
    parser.add_argument("--only", default=",".join(SERVERS), help=f"servers, of {', '.join(SERVERS)} [all]")
    parser.add_argument("--ways", default=",".join(WAYS), help="[outside,inject]")
    parser.add_argument("--bounds", action="store_true", help="also fail where a stop or a call took longer than it should")
    arguments = parser.parse_args()
    rows, wrong = [], []
    for name in arguments.only.split(","):
        with common.Folder() as folder:
            server = SERVERS[name](folder)
            time.sleep(3)
            alone = server.waits_ms()
            of_server = []
            for way in arguments.ways.split(","):
                cycles = run_cycles(server, way, arguments.cycles, arguments.seconds, folder)
                of_server += [f"{way}: {what}" for what in cycles.failed]
                if arguments.bounds and max(cycles.stop_ms + cycles.call_ms, default=0) > server.pause_ms:
                    of_server.append(f"{way}: a pause of more than {server.pause_ms} ms")
                rows.append([server.title, way, f"{cycles.done} + {cycles.not_now}", cycles.samples, None, spread(cycles.stop_ms, 2),
                             spread(cycles.call_ms), spread(cycles.waits_ms), spread(alone)])
                print(rows[-1], flush=True)
            failures, requests = server.failures()
            of_server += failures
            for row in rows[-len(arguments.ways.split(",")):]:
                row[4] = f"{len(failures)} of {requests}"
            wrong += [f"{name}: {what}" for what in of_server]
    header = ["server", "way", "cycles + not now", "samples", "failures", "stop, ms", "call, ms", "client waited, ms", "without us"]
    text = common.table(header, rows)
    print(text)
    print("\n".join(wrong) or "nothing failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
