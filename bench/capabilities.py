# SPDX-License-Identifier: Apache-2.0
"""What an observer of another user's process may do with which capabilities, call by call and as a whole: `crosstalk
record -p` by an ordinary user with ambient capabilities, at each value of kernel.perf_event_paranoid. Prints Markdown for
docs/daemon.md. Needs root, sets the sysctl while it runs, and puts it back."""

import argparse
import contextlib
import ctypes
import dataclasses
import errno
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import common
import harness

PARANOID = "/proc/sys/kernel/perf_event_paranoid"
OWNER, RECORDER = 61001, 61002  # of the processes, and of the observer
BOTH = ("perfmon", "sys_ptrace")
SUBSETS = ((), ("perfmon",), ("sys_ptrace",), BOTH, (*BOTH, "dac_read_search"), (*BOTH, "checkpoint_restore"),
           (*BOTH, "dac_read_search", "checkpoint_restore"), ("sys_admin",), ("sys_admin", "sys_ptrace"))
LEVELS = (1, 2, 3, 4)
LIBRARIES = {"private": "a library in a folder of mode 0700", "replaced": "a library that was replaced since"}


def name_of(subset):
    return " + ".join(subset).upper().replace("PERFMON + SYS_PTRACE", "both") or "none"


def as_recorder(subset, command):
    """The command, run as an ordinary user who has these capabilities alone."""
    inherited = ",".join(["-all", *(f"+{name}" for name in subset)])
    return ["setpriv", "--reuid", str(RECORDER), "--regid", str(RECORDER), "--clear-groups", "--no-new-privs",
            f"--inh-caps={inherited}", f"--ambient-caps={inherited}", "--", *command]


# ---- the processes that are observed ------------------------------------------------------------------------

@dataclasses.dataclass
class Target:
    what: str
    folder: str
    path: str = ""
    process: subprocess.Popen = None

    def start(self, files, arguments=(), mode=0o755):
        """Starts a copy of the first of these files, in a folder of this mode of its user's. The last one has its code."""
        os.mkdir(self.folder, 0o755)
        program, *_, self.path = copies = [shutil.copy(file, self.folder) for file in (files[0], *files)]
        for path in (self.folder, *copies):
            os.chown(path, OWNER, OWNER)
        os.chmod(self.folder, mode)
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [program, *arguments], stdout=subprocess.DEVNULL, user=OWNER, group=OWNER, extra_groups=[], cwd="/")
        harness.wait_until(lambda: self.path in self.maps())

    def maps(self):
        with open(f"/proc/{self.process.pid}/maps", encoding="utf-8") as file:
            return file.read()

    def replace(self):
        """Puts another file in the place of the one that has the code, as an upgrade does."""
        shutil.copy(sys.executable, self.path + ".new")
        os.rename(self.path + ".new", self.path)


@contextlib.contextmanager
def targets(folder):
    """Programs that differ in who may read their files."""
    sharing = [os.path.join(common.BUILD, "bench", name) for name in ("capabilities_target", "libcapabilities_library.so")]
    made = {name: Target(name, os.path.join(folder, name)) for name in ("open", "kernel", "private", "replaced")}
    try:
        made["open"].start(sharing)
        made["kernel"].start([harness.workload("system_calls")], ["--seconds", "3000"])
        made["private"].start(sharing, mode=0o700)
        made["replaced"].start(sharing)
        made["replaced"].replace()
        yield made
    finally:
        for target in made.values():
            if target.process:
                target.process.kill()
                target.process.wait()


# ---- call by call -------------------------------------------------------------------------------------------

def perf_event(pid, kind, flags, breakpoint_at=0):
    """errno of opening an event on a process; 0: it is opened."""
    attributes = bytearray(128)
    struct.pack_into("=IIQQQQQ", attributes, 0, kind, 128, 1 if kind == 1 else 0, 1_000_000 if kind == 1 else 1, 0, 0, flags)
    if breakpoint_at:
        struct.pack_into("=IIQQ", attributes, 48, 0, 3, breakpoint_at, 8)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(298, (ctypes.c_char * 128).from_buffer(attributes), pid, -1, -1, 8)
    if fd < 0:
        return ctypes.get_errno()
    os.close(fd)
    return 0


def vm_read(pid, address):
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(8)
    here = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    there = (ctypes.c_size_t * 2)(address, 8)
    return 0 if libc.process_vm_readv(pid, here, 1, there, 1, 0) == 8 else ctypes.get_errno()


def opened(path):
    try:
        with open(path, "rb") as file:
            return 0 if file.read(1) else errno.ENODATA
    except OSError as error:
        return error.errno


def try_calls(pid, path, address, mapping):
    """Runs as the recorder: prints {call: errno}."""
    disabled, user_only = 1, 1 << 5 | 1 << 6
    print(json.dumps({
        "perf_event_open, clock of the user mode": perf_event(pid, 1, disabled | user_only),
        "perf_event_open, clock with the kernel": perf_event(pid, 1, disabled),
        "perf_event_open, watchpoint": perf_event(pid, 5, disabled | user_only, address),
        "process_vm_readv": vm_read(pid, address),
        "open /proc/PID/maps": opened(f"/proc/{pid}/maps"),
        "open /proc/PID/mem": 0 if (error := opened(f"/proc/{pid}/mem")) == errno.EIO else error,  # nothing is at 0
        "open /proc/PID/exe": opened(f"/proc/{pid}/exe"),
        "open /proc/PID/root/LIBRARY": opened(f"/proc/{pid}/root{path}"),
        "open /proc/PID/map_files/RANGE": opened(f"/proc/{pid}/map_files/{mapping}")}))


def calls_of(target, subset):
    pid = target.process.pid
    first = next(line.split()[0] for line in target.maps().splitlines() if target.path in line)
    begin = int(first.split("-")[0], 16)
    said = subprocess.run(as_recorder(subset, [sys.executable, "-B", os.path.abspath(__file__), "--calls", str(pid), target.path,
                                               str(begin), first]), check=True, capture_output=True, text=True).stdout
    return json.loads(said)


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|---" * len(head) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def word(error):
    return "yes" if error == 0 else errno.errorcode.get(error, str(error))


def spans(by_level):
    """{level: row} -> [(levels, row)], neighbours with equal rows as one: "2 to 4"."""
    found = []
    for level, row in by_level.items():
        if found and found[-1][1] == row:
            found[-1][0][1:] = [level]
        else:
            found.append(([level], row))
    return [(" to ".join(map(str, levels)), row) for levels, row in found]


def print_calls(made, levels):
    """A row for each call, a column for each set of capabilities. A library is told of only if another answer is given for
    it than for one that everybody may read."""
    usual, by_level = {}, {}
    for level in levels:
        set_paranoid(level)
        for subset in SUBSETS:
            for call, error in calls_of(made["open"], subset).items():
                if call.startswith("perf_event_open"):
                    by_level.setdefault(call, {}).setdefault(level, []).append(word(error))
                elif level == levels[0]:
                    usual.setdefault(call, []).append(word(error))
    rows = [[f"{call}, paranoid {span}", *row] for call, rows in by_level.items() for span, row in spans(rows)]
    rows += [[call, *row] for call, row in usual.items()]
    set_paranoid(min(2, max(levels)))
    for what, name in LIBRARIES.items():
        there = {}
        for subset in SUBSETS:
            for call, error in calls_of(made[what], subset).items():
                there.setdefault(call, []).append(word(error))
        rows += [[f"{call}, {name}", *row] for call, row in there.items() if call in usual and row != usual[call]]
    table(["call", *map(name_of, SUBSETS)], rows)


# ---- whole recordings -----------------------------------------------------------------------------------------

@dataclasses.dataclass
class Outcome:
    refused: str = ""  # the message
    missing: tuple = ()

    def words(self, expected=()):
        """`expected`: what is missing in any case."""
        if self.refused:
            return "refused: " + re.sub(r"^-p[ \d]*: ([^:(]+).*", r"\1", self.refused).strip()
        missing = [what for what in self.missing if what not in expected]
        return "without " + ", ".join(missing) if missing else "all"


def record(chosen, subset, folder, seconds):
    """Records these targets together, and reports as the same user with the same capabilities, as crosstalkd does."""
    own = tempfile.mkdtemp(dir=folder)
    os.chown(own, RECORDER, RECORDER)
    profile = os.path.join(own, "crosstalk.db")
    pids = ",".join(str(target.process.pid) for target in chosen)
    environment = {**os.environ, "HOME": own}
    done = subprocess.run(as_recorder(subset, [common.CROSSTALK, "record", "-q", "-o", profile, "--duration", str(seconds), "--period", "1ms",
                                         "--budget", "20", "-p", pids]),
                          capture_output=True, text=True, check=False, env=environment, cwd=own)
    if done.returncode != 0:
        return Outcome(refused=done.stderr.strip().removeprefix("crosstalk: "))
    said = subprocess.run(as_recorder(subset, [common.CROSSTALK, "report", "--format", "json", profile]),
                          capture_output=True, text=True, check=True, env=environment, cwd=own).stdout
    report = json.loads(said)
    shutil.rmtree(own)
    unknown = report["sampling"]["unknown_frames"]
    there = {"communication": report["communication"]["cells"],
             "names of functions": unknown is not None and unknown < 0.1,
             "source lines": any(loop["file"] for loop in report["loops"]),
             "call stacks": any(thread["start_routine"] for thread in report["threads"]),
             "the kernel": any((thread["kernel_share"] or 0) > 0.2 for thread in report["threads"])}
    return Outcome(missing=tuple(what for what, found in there.items() if not found))


def print_recordings(made, folder, levels, seconds):
    rows = {subset: [] for subset in SUBSETS}
    for level in levels:
        set_paranoid(level)
        for subset, row in rows.items():
            row.append(record([made["open"], made["kernel"]], subset, folder, seconds).words())
    table(["capabilities", *(f"paranoid {level}" for level in levels)], [[name_of(subset), *row] for subset, row in rows.items()])
    set_paranoid(min(2, max(levels)))
    subsets = SUBSETS[3:7]
    rows = [[name, *(record([made[what]], subset, folder, seconds).words(["the kernel"]) for subset in subsets)]
            for what, name in LIBRARIES.items()]
    table(["the program's code is in", *map(name_of, subsets)], rows)


def set_paranoid(level):
    with open(PARANOID, "w", encoding="ascii") as file:
        file.write(str(level))


def main():
    if sys.argv[1:2] == ["--calls"]:
        pid, path, address, mapping = sys.argv[2:]
        try_calls(int(pid), path, int(address), mapping)
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", type=lambda text: [int(level) for level in text.split(",")], default=list(LEVELS),
                        help="values of kernel.perf_event_paranoid (default 1,2,3,4)")
    parser.add_argument("--seconds", type=int, default=4, help="of each recording (default 4; an emulated machine needs more)")
    wanted = parser.parse_args()
    if os.geteuid() != 0:
        print("bench capabilities: only root may change users and kernel.perf_event_paranoid; sudo ./dev bench capabilities")
        return harness.SKIPPED
    with open(PARANOID, encoding="ascii") as file:
        before = file.read().strip()
    folder = tempfile.mkdtemp(prefix="crosstalk-capabilities-")
    os.chmod(folder, 0o755)
    try:
        with targets(folder) as made:
            time.sleep(1)
            print(f"Linux {platform.release()}\n")
            print_calls(made, wanted.levels)
            print_recordings(made, folder, wanted.levels, wanted.seconds)
    finally:
        set_paranoid(before)
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
