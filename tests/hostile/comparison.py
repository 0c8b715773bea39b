# SPDX-License-Identifier: Apache-2.0
"""Runs a program of the catalogue bare and recorded and says in what the two runs differ."""

import contextlib
import dataclasses
import functools
import os
import random
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "end_to_end"))
import harness  # noqa: E402  (after its folder is known)

BUILD = os.path.join(HERE, "..", "..", "build", "release")
CROSSTALK = os.environ.get("CROSSTALK") or os.path.abspath(os.path.join(BUILD, "driver", "crosstalk"))
PROGRAMS = os.environ.get("CROSSTALK_HOSTILE") or os.path.abspath(os.path.join(BUILD, "hostile"))
OWN_WORDS = "crosstalk: "

# How a running program is attached to: words of crosstalk record, and whether the recorder is killed at some moment.
WAYS = {"outside": ((), False), "tree": (("--children",), False), "inject": (("--inject",), False),
        "outside_killed": ((), True), "inject_killed": (("--inject",), True)}
LATEST_KILL_S = 0.6


@dataclasses.dataclass(frozen=True)
class Program:
    """One line of the catalogue."""
    name: str  # GROUP.WHAT
    command: str  # as a shell has it, without expansions; @/ stands for the folder of the hostile programs, @HERE/ for this one, @CROSSTALK for the command
    proves: str  # holds in the bare run and must hold in the recorded one
    samples: bool = True  # the profile has to hold samples, or else nothing was proved; False: or says why there are none
    profile: bool = True  # False: nothing is asked of the profile; the recorder is kept from writing it
    traps: bool = False  # it exchanges lines for so long that the profile has to hold traps
    says: str = ""  # crosstalk's message on standard error or in the profile
    options: str = ""  # of crosstalk record
    environment: tuple = ()  # NAME=VALUE
    around: str = ""  # a command that starts the program, or its recording, as its arguments
    own_user: bool = False  # as a user who has no other process (where root runs the tests)
    needs: tuple = ()  # keys of NEEDS
    patience: float = 20  # seconds after which a run is said to hang
    way: str = ""  # a key of WAYS: the program runs already, and is attached to; empty: it is launched by crosstalk record
    wait: float = 0.05  # seconds from its begin until it is attached to


# ---- what a program may need --------------------------------------------------------------------------------

def _succeeds(command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def _executes(small):
    """Is this program there, and does the kernel execute it?"""
    with contextlib.suppress(OSError):
        _succeeds([os.path.join(PROGRAMS, small)])
        return True
    return False


def _reads(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


NEEDS = {
    "root": lambda: os.geteuid() == 0,
    "pid_namespaces": lambda: _succeeds(["unshare", "--pid", "--fork", "true"]),
    "user_namespaces": lambda: _succeeds(["unshare", "--user", "--map-root-user", "true"]),
    "io_uring": lambda: _reads("/proc/sys/kernel/io_uring_disabled") in ("", "0"),
    "core_files": lambda: _reads("/proc/sys/kernel/core_pattern") in ("core", "core.%p", "core.%e.%p"),
    "time_namespaces": lambda: _succeeds(["unshare", "--time", "--monotonic", "1", "true"]),
    "setarch": lambda: _succeeds(["setarch", "-R", "true"]),
    "gdb": lambda: shutil.which("gdb") is not None,
    "python3": lambda: shutil.which("python3") is not None,
    "thirty_two_bits": lambda: _executes("thirty_two_bits"),  # which not every kernel does
    "thirty_two_bits_dynamic": lambda: _executes("thirty_two_bits_dynamic"),
}


@functools.lru_cache(maxsize=None)
def _is_there(need):
    if need in NEEDS:
        return NEEDS[need]()
    return os.path.exists(os.path.join(PROGRAMS, need))  # a program that not every machine can build


def missing(program):
    """Returns the facility that a program needs and the machine lacks; empty: none."""
    return [need for need in program.needs if not _is_there(need)]


# ---- runs ---------------------------------------------------------------------------------------------------

@dataclasses.dataclass
class Run:
    status: int
    stdout: str
    stderr: str
    hung: bool = False


def _kill_session(session):
    """A program may have made process groups of its own."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                if int(fields[3]) == session:
                    os.kill(int(entry), signal.SIGKILL)


def _words(text):
    for name, path in (("@/", PROGRAMS + "/"), ("@HERE/", HERE + "/"), ("@CROSSTALK", CROSSTALK)):
        text = text.replace(name, path)
    return shlex.split(text)


def _run(program, recorder, folder, meanwhile=None):
    """Runs a program behind `recorder`, a list of words that may be empty; calls `meanwhile` with its process id."""
    more = {}
    if program.own_user and os.geteuid() == 0:
        user = 61000 + os.getpid() % 1000
        os.chown(folder, user, user)
        more = {"user": user, "group": user, "extra_groups": []}
    environment = {**os.environ, **dict(setting.split("=", 1) for setting in program.environment)}
    environment = {name: value.replace("@/", PROGRAMS + "/") for name, value in environment.items()}
    command = [*_words(program.around), *recorder, *_words(program.command)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", start_new_session=True, cwd=folder, env=environment, **more) as process:
        try:
            if meanwhile:
                meanwhile(process.pid)
            out, err = process.communicate(timeout=program.patience)
            return Run(harness.shell_status(process.returncode), out, err)
        except subprocess.TimeoutExpired:
            _kill_session(process.pid)
            out, err = process.communicate()
            return Run(-1, out, err, hung=True)


@contextlib.contextmanager
def _folder():
    """A folder for each run, for core files and the like."""
    path = tempfile.mkdtemp(prefix="crosstalk-hostile-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def bare_run(program):
    with _folder() as folder:
        return _run(program, [], folder)


@dataclasses.dataclass
class Recording:
    run: Run  # without crosstalk's words
    words: str  # crosstalk's: what it said, and the messages of the profile
    samples: int = 0
    traps: int = 0
    fault: str = ""  # of the profile
    refused: bool = False  # it was not attached to, and a line says why


def _read_profile(path, recording):
    try:
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as profile:
            recording.samples = profile.execute("SELECT count(*) FROM sample").fetchone()[0]
            recording.traps = profile.execute("SELECT count(*) FROM trap").fetchone()[0]
            for code, text in profile.execute("SELECT code, text FROM message"):
                recording.words += f"{code}: {text}\n"
    except sqlite3.Error as error:
        recording.fault = f"profile: {error}"


class _Attachment:
    """crosstalk record -p, started while the program runs."""

    def __init__(self, program, profile):
        self.program, self.profile, self.recorder = program, profile, None
        words, self.kill = WAYS[program.way]
        self.options = [*words, *shlex.split(program.options)]

    def begin(self, pid):
        time.sleep(self.program.wait)
        self.recorder = subprocess.Popen([CROSSTALK, "record", "-o", self.profile, "-p", str(pid), *self.options],
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                         errors="replace", start_new_session=True)
        if self.kill:
            time.sleep(random.uniform(0, LATEST_KILL_S))
            self.recorder.kill()

    def finish(self, recording):
        try:
            _, said = self.recorder.communicate(timeout=self.program.patience)
        except subprocess.TimeoutExpired:
            self.recorder.kill()
            self.recorder.communicate()
            recording.fault = "the recorder does not end"
            return
        recording.words = said
        if self.kill:
            recording.fault = harness.fault_of_what_is_left(self.profile)
        elif self.recorder.returncode == 125:
            recording.refused = True
        elif self.recorder.returncode != 0:
            recording.fault = f"the recorder ends with {self.recorder.returncode}: {said.strip()}"
        if self.recorder.returncode == 0:
            _read_profile(self.profile, recording)



def _attached_run(program):
    with _folder() as folder, _folder() as place:
        attachment = _Attachment(program, os.path.join(place, "run.db"))
        recording = Recording(_run(program, [], folder, attachment.begin), "")
        attachment.finish(recording)
        return recording


def recorded_run(program):
    if program.way:
        return _attached_run(program)
    with _folder() as folder, _folder() as place:
        if os.geteuid() == 0:
            os.chmod(place, 0o777)
        profile = os.path.join(place, "run.db")
        recorder = [CROSSTALK, "record", "-o", profile, *shlex.split(program.options), "--"]
        run = _run(program, recorder, folder)
        lines = run.stderr.splitlines(keepends=True)
        run.stderr = "".join(line for line in lines if not line.startswith(OWN_WORDS))
        recording = Recording(run, "".join(line for line in lines if line.startswith(OWN_WORDS)))
        if not run.hung:
            _read_profile(profile, recording)
        return recording


# ---- comparison ---------------------------------------------------------------------------------------------

def _first_difference(bare, recorded):
    bare_lines, recorded_lines = bare.splitlines(), recorded.splitlines()
    pairs = [(one, other) for one, other in zip(bare_lines, recorded_lines) if one != other]
    if pairs:
        return f"'{pairs[0][0]}' is '{pairs[0][1]}'" + (f" ({len(pairs)} lines)" if len(pairs) > 1 else "")
    if len(bare_lines) > len(recorded_lines):
        return f"lacks '{bare_lines[len(recorded_lines)]}'"
    return f"has more: '{recorded_lines[len(bare_lines)]}'" if len(bare_lines) < len(recorded_lines) else "line ends"


def explain(bare, other):
    """In what two runs differ; an empty list: in nothing."""
    found = []
    if other.status != bare.status:
        found.append(f"status {bare.status} is {other.status}")
    for what, before, after in (("output", bare.stdout, other.stdout), ("errors", bare.stderr, other.stderr)):
        if before != after:
            found.append(f"{what}: {_first_difference(before, after)}")
    return found


def differences(program, bare, recording):
    """In words; an empty list: nobody noticed that he was observed, and he was."""
    recorded = recording.run
    if bare.hung or bare.status in (2, 98, 99, 126, 127):
        return [f"the bare run itself fails with {bare.status}: {bare.stdout}{bare.stderr}".strip()]
    found = explain(bare, recorded)
    if recorded.hung:
        found[0] = f"does not end within {program.patience:g} s"
    if recording.fault and program.way:
        found.append(recording.fault)
    if recorded.hung or not program.profile or recording.refused or WAYS.get(program.way, ((), False))[1]:
        if program.says and program.says not in recording.words:
            found.append(f"crosstalk does not say '{program.says}'")
        return found
    if recording.fault and not program.way:
        found.append(recording.fault)
    reasons = " ".join(line for line in recording.words.splitlines() if not line.startswith(OWN_WORDS + "wrote "))
    if recording.samples == 0 and (program.samples or not reasons):
        found.append(f"not observed: {reasons or 'nothing says why'}")
    if program.traps and recording.traps == 0 and harness.why_no_watchpoints() is None:
        found.append("not watched: no traps")
    if program.says and program.says not in recording.words:
        found.append(f"crosstalk does not say '{program.says}'")
    return found


def compare(program):
    return differences(program, bare_run(program), recorded_run(program))
