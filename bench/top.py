# SPDX-License-Identifier: Apache-2.0
"""The CPU time of the live view (crosstalk top) and of its recorder, and how soon the first picture comes."""

import argparse
import contextlib
import os
import pty
import signal
import statistics
import subprocess
import threading
import time

import common

PROGRAMS = ("false_sharing --threads 4", "private_only --threads 4", "ping_pong")
BUDGETS = (3, 1)
SETTLED_S = 5  # after which it is measured

EXPLANATION = """## The live view

Written by `./dev bench top`. `crosstalk top -p` shows a program on a terminal of 80 x 24, with a refresh every 2 s, for
{seconds:g} s after the first {settled} s, {rounds} times. CPU time of a process by its clock, as a part of one processor;
medians with their 95 % intervals (bootstrap).

- *program*: what the program used itself, so that the rest can be judged.
- *view*: analyses of the recorder's files, the window and drawing.
- *recorder*: the recorder's process, most of it taking samples and watching from outside, which the budget limits to its
  part of the program's time.
- *first picture*: from the start of `crosstalk top --json` to its first line.

Machine: {machine}; load average {load:.1f}.

{table}
"""


def cpu_s(pid):
    """CPU time of a process, its ended threads included."""
    return time.clock_gettime(~pid << 3 | 2)


def recorder_of(parent):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat, \
             open(f"/proc/{pid}/cmdline", "rb") as command:
            if stat.read().rsplit(") ", 1)[1].split()[1] == str(parent) and b"record" in command.read().split(b"\0"):
                return int(pid)
    raise SystemExit("bench: there is no recorder")


@contextlib.contextmanager
def running(program):
    name, *arguments = program.split()
    with subprocess.Popen([os.path.join(common.WORKLOADS, name), *arguments, "--seconds", "3600"],
                          stdout=subprocess.DEVNULL) as process:
        time.sleep(0.3)
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def shown(pid, budget):
    """The view on a terminal whose output is read and dropped."""
    view, terminal = pty.fork()
    if view == 0:
        os.environ.update(TERM="xterm-256color", LINES="24", COLUMNS="80")
        os.execv(common.CROSSTALK, [common.CROSSTALK, "top", "-p", str(pid), "--budget", str(budget)])

    def drain():
        with contextlib.suppress(OSError):
            while os.read(terminal, 65536):
                pass
    reader = threading.Thread(target=drain)
    reader.start()
    try:
        yield view
    finally:
        os.kill(view, signal.SIGTERM)
        os.waitpid(view, 0)
        reader.join()
        os.close(terminal)


def first_picture_s(pid):
    begin = time.monotonic()
    with subprocess.Popen([common.CROSSTALK, "top", "-p", str(pid), "--json", "-n", "1"], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        return time.monotonic() - begin


def measure(program, budget, options):
    """Parts of a processor (program, view, recorder), and seconds to the first picture, by round."""
    found = []
    for number in range(options.rounds):
        with running(program) as process:
            first = first_picture_s(process.pid)
            with shown(process.pid, budget) as view:
                time.sleep(SETTLED_S)
                pids = (process.pid, view, recorder_of(view))
                before, begin = [cpu_s(pid) for pid in pids], time.monotonic()
                time.sleep(options.seconds)
                after, passed = [cpu_s(pid) for pid in pids], time.monotonic() - begin
        found.append([(b - a) / passed for a, b in zip(before, after)] + [first])
        print(f"{program}, budget {budget} %: {number + 1}: " + ", ".join(f"{part:.4f}" for part in found[-1]), flush=True)
    return found


def percent(values):
    spread = common.median_with_interval([100 * value for value in values])
    return f"{spread.median:.2f} % ({spread.low:.2f}..{spread.high:.2f})"


def row(program, budget, options):
    own, view, recorder, first = zip(*measure(program, budget, options))
    return [f"`{program}`", f"{budget} %", f"{100 * statistics.median(own):.0f} %", percent(view), percent(recorder),
            f"{statistics.median(first):.2f} s"]


def main():
    parser = argparse.ArgumentParser(prog="./dev bench top", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each kind (default 5)")
    parser.add_argument("--seconds", type=float, default=20, help="that a run is measured (default 20)")
    parser.add_argument("--only", choices=PROGRAMS, help="one of the programs; writes no document")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    rows = [row(program, budget, options) for program in PROGRAMS if options.only in (None, program) for budget in BUDGETS]
    text = common.table(["program", "budget", "program used", "view", "recorder", "first picture"], rows)
    print(text)
    if not options.only:
        common.write_section("overhead.md", "top", EXPLANATION.format(
            seconds=options.seconds, settled=SETTLED_S, rounds=options.rounds, machine=common.machine(), load=load, table=text))


if __name__ == "__main__":
    main()
