# SPDX-License-Identifier: Apache-2.0
"""Measures what crosstalkd costs a loaded key-value server that it keeps recorded: the CPU time of the server, the
daemon, its recorder and its reports, for as many requests as a bare run serves. Writes a section of docs/overhead.md.
With --findings, compares what one interval finds with what a recording of ten seconds finds; a section of
docs/accuracy.md."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import common
import continuous_findings
from programs import Redis

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
LIMIT = 1.015
EXPLANATION = """## Recorded all the time by the daemon

Written by `./dev bench continuous`. `redis-server --io-threads 2` serves {requests} requests of `redis-benchmark -c 20 -P 4`,
bare and while `crosstalkd` keeps it recorded (budget 1 %, intervals of {interval} s). Compared is the CPU time during the load:
bare that of the server, else that of the server, the daemon, its recorder and its reports together. Pairs in turns, every
second one in reverse order; the recording has begun before the load.

| pairs | CPU time, recorded / bare | 95 % interval | daemon and workers, of the bare CPU time | control: bare / bare |
|---|---|---|---|---|
| {pairs} | {ratio.median:.4f} | {ratio.low:.4f}..{ratio.high:.4f} | {own:.4f} | {control.low:.4f}..{control.high:.4f} |

The goal is an upper bound of {limit}: {verdict}.

Machine: {machine}.
"""


def daemon_program():
    beside = os.path.join(common.BUILD, "daemon", "service", "crosstalkd")
    return os.environ.get("CROSSTALKD", beside if os.path.exists(beside) else shutil.which("crosstalkd"))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def cpu_s(pid, with_children):
    """CPU time of a process, of the children that it has waited for, and of those that run."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    own = sum(int(field) for field in fields[11:15 if with_children else 13]) * TICK_S
    return own + (sum(cpu_s(child, True) for child in children(pid)) if with_children else 0)


class Daemon:
    """crosstalkd, which watches one service."""

    def __init__(self, folder, interval, selection):
        self.socket = folder.file("socket")
        with open(folder.file("crosstalkd.toml"), "w", encoding="utf-8") as file:
            file.write(f'[state]\ndirectory = "{folder.file("state")}"\n[metrics]\nport = 0\n'
                       f'[[service]]\nname = "server"\n{selection}\ninterval = "{interval}s"\n')
        self.process = subprocess.Popen([daemon_program(), "--config", folder.file("crosstalkd.toml"), "--socket", self.socket,
                                         "--program", common.CROSSTALK], stderr=open(folder.file("log"), "w", encoding="utf-8"))

    def ask(self, *words):
        return subprocess.run([common.CROSSTALK, "service", *words], capture_output=True, text=True, check=False,
                              env={**os.environ, "CROSSTALK_SOCKET": self.socket})

    def await_recording(self):
        for _ in range(300):
            answer = self.ask("--format", "json")
            if answer.returncode == 0 and json.loads(answer.stdout)["services"][0]["recording"]:
                return
            time.sleep(0.1)
        raise RuntimeError("the daemon records nothing")

    def stop(self):
        self.process.terminate()
        if self.process.wait(timeout=30) != 0:
            raise RuntimeError(f"crosstalkd ended with {self.process.returncode}")


class Server:
    title = "`redis-server --io-threads 2`"

    def __init__(self, folder):
        self.port = str(Redis.free_port())
        self.process = subprocess.Popen(Redis.command(folder, self.port), stdout=subprocess.DEVNULL)
        Redis.await_server(self.port)

    def load(self, requests):
        done = subprocess.run(["redis-benchmark", "-p", self.port, "-q", "-n", str(requests), "-c", "20", "-P", "4", "-t",
                               "set,get"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"redis-benchmark ended with {done.returncode}")

    def stop(self):
        self.process.terminate()
        if self.process.wait(timeout=30) != 0:
            raise RuntimeError(f"redis-server ended with {self.process.returncode}")


def run(arguments, recorded):
    """CPU time of the server, and of the daemon with its workers, during the load."""
    with common.Folder() as folder:
        server = Server(folder)
        daemon = Daemon(folder, arguments.interval, f'command = "redis-server*:{server.port}*"') if recorded else None
        try:
            server.load(20000)  # both are warm
            if daemon:
                daemon.await_recording()
                time.sleep(1)
            pids = [(server.process.pid, False)] + ([(daemon.process.pid, True)] if daemon else [])
            before = [cpu_s(*pid) for pid in pids]
            server.load(arguments.requests)
            spent = [cpu_s(*pid) - begin for pid, begin in zip(pids, before)]
            if daemon and arguments.keep:
                daemon.stop()
                shutil.copytree(folder.file("state"), arguments.keep, dirs_exist_ok=True)
            return spent[0], spent[1] if recorded else 0.0
        finally:
            if daemon and daemon.process.poll() is None:
                daemon.stop()
            server.stop()


class LoadedServer(Server):
    """Under load until it is stopped."""

    def __init__(self, folder):
        super().__init__(folder)
        self.clients = subprocess.Popen(["redis-benchmark", "-p", self.port, "-q", "-l", "-c", "20", "-P", "4", "-t", "set,get"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self):
        self.clients.kill()
        self.clients.wait()
        super().stop()


def write_findings(arguments):
    interval = arguments.interval

    def daemon_of(folder, pid):
        executable = os.readlink(f"/proc/{pid}/exe")
        return Daemon(folder, interval, f'executable = "{executable}"')
    servers = [LoadedServer] + [lambda _, name=name: continuous_findings.Workload(name)
                                for name in ("busy_server", "false_sharing", "mixed", "pipeline", "work_stealing")]
    text = continuous_findings.section(servers, daemon_of, interval)
    if getattr(arguments, "print"):
        print(text)
    else:
        common.write_section("accuracy.md", "continuous-findings", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=30, help="pairs of runs [30]")
    parser.add_argument("--requests", type=int, default=1500000, help="requests of each kind and run [1500000]")
    parser.add_argument("--interval", type=int, help="seconds of an interval [10; of --findings 60]")
    parser.add_argument("--print", action="store_true", help="print the section, do not write it")
    parser.add_argument("--keep", help="folder for the profiles of the recorded runs")
    parser.add_argument("--findings", action="store_true", help="compare what is found")
    arguments = parser.parse_args()
    arguments.interval = arguments.interval or (60 if arguments.findings else 10)
    if arguments.findings:
        write_findings(arguments)
        return
    bare, together, own = [], [], []
    for index in range(arguments.pairs):
        for recorded in (False, True) if index % 2 == 0 else (True, False):
            server_s, daemon_s = run(arguments, recorded)
            (together if recorded else bare).append(server_s + daemon_s)
            own += [daemon_s] if recorded else []
        print(f"pair {index + 1}: bare {bare[-1]:.2f} s, recorded {together[-1]:.2f} s, of which daemon and workers {own[-1]:.2f} s",
              file=sys.stderr)
    ratio = common.median_with_interval([a / b for a, b in zip(together, bare)])
    halves = [a / b for a, b in zip(bare[0::2], bare[1::2])] or [1.0]
    verdict = ("reached" if ratio.high <= LIMIT else "undecided, because the interval is wider than 1 %"
               if ratio.high - ratio.low > 0.01 and ratio.low <= LIMIT else "not reached")
    text = EXPLANATION.format(requests=2 * arguments.requests, interval=arguments.interval, pairs=arguments.pairs, ratio=ratio,
                              own=statistics.median(d / b for d, b in zip(own, bare)), control=common.median_with_interval(halves),
                              limit=LIMIT, verdict=verdict, machine=common.machine())
    if getattr(arguments, "print"):
        print(text)
    else:
        common.write_section("overhead.md", "continuous", text)


if __name__ == "__main__":
    main()
