# SPDX-License-Identifier: Apache-2.0
"""Runs tests in a guest whose debug registers fire, where this machine's do not.

    run_in_guest.py --ctest build/release [-R REGEX]   tests of ctest, with their commands and environment
    run_in_guest.py --ctest build/release --listed     those that in_guest.txt expects to pass; any that does not is a fault
    run_in_guest.py [NAME=VALUE...] COMMAND [ARG...]   one test: python3 -B tests/end_to_end/test_diff.py Class.method

The guest has two processors and the host's root file system, which it can only read; /tmp, /var/tmp and /run are its own and
new for each test. Verdicts are kept in build/in_guest/, with what each test printed, for as long as the programs under test
are the same: a second start goes on where the first one stopped. Ends with 0 where all passed, 77 where all were skipped or
no guest can be had, else 1.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import debian_kernel
from guest import Guest
from in_guest_list import expected_to_pass
from machine import GuestError, Kind, Machine, Unavailable

ROOT = debian_kernel.ROOT
END_TO_END = os.path.join(ROOT, "tests", "end_to_end")
KIND = Kind("intel", memory_mb=2048, root=True)
SKIPPED = 77
MOST_BOOTS = 8  # a guest that is lost is replaced so often
OWN_FOLDERS = ("/tmp", "/var/tmp", "/run")
SHOWN_LINES = 12

MOUNT = """
while read -r module; do [ -e "/sys/module/$(echo $module | tr - _)" ] || insmod /guest/modules/$module.ko || exit 1; done </guest/modules/order
mkdir -p /new && mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=524288 root /new || exit 1
for folder in proc sys dev; do mount -o rbind /$folder /new/$folder || exit 1; done
"""
# The root file system itself is replaced, not only this process's: user namespaces cannot be made from a changed root.
ENTER = """
set -e
{keep}
for folder in {own}; do mount -t tmpfs -o mode=1777 tmpfs /new$folder; done
{put_back}
cp /guest/command /new/run/command
mkdir /new/run/home
cd /new
mount -o move . /
exec chroot . /bin/sh /run/command
"""


@dataclasses.dataclass
class Test:
    name: str
    command: list
    environment: dict
    folder: str = ROOT


@dataclasses.dataclass
class Verdict:
    verdict: str  # passed, failed, skipped
    reason: str
    seconds: float


# ---- which tests ----------------------------------------------------------------------------------------------

def tests_of_ctest(build, regex):
    said = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1", *(["-R", regex] if regex else [])],
                          capture_output=True, text=True, check=False)
    if said.returncode != 0:
        sys.exit(f"run_in_guest: ctest cannot list the tests of {build}: {said.stderr.strip().splitlines()[-1:]}; "
                 "./dev build makes them")
    tests = []
    for test in json.loads(said.stdout)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        environment = dict(setting.split("=", 1) for setting in properties.get("ENVIRONMENT", []))
        tests.append(Test(test["name"], test.get("command", []), environment, properties.get("WORKING_DIRECTORY", ROOT)))
    return [test for test in tests if test.command]


def test_of_words(words):
    """From NAME=VALUE... COMMAND [ARG...]."""
    environment = {name: value for name, value in os.environ.items() if name.startswith("CROSSTALK")}
    while words and re.match(r"[A-Za-z_]\w*=", words[0]):
        name, value = words.pop(0).split("=", 1)
        environment[name] = value
    if not words:
        sys.exit(__doc__.strip())
    if os.path.basename(words[0]) in ("python3", "python"):  # not a wrapper of it
        words[0] = sys.executable
    words = [os.path.abspath(word) if os.path.exists(word) else word for word in words]
    return Test(" ".join(words), words, environment, os.getcwd())


# ---- in the guest ---------------------------------------------------------------------------------------------

def enter_script(tests):
    """Makes the host's file system the root, with folders of its own; what is needed of the host's below those is kept."""
    needed = {os.path.realpath(path) for test in tests for path in (ROOT, test.folder, *test.environment.values())
              if path.startswith("/") and os.path.exists(path)}
    folders = sorted({path if os.path.isdir(path) else os.path.dirname(path) for path in needed})
    kept = [path for path in folders if path.startswith(tuple(own + "/" for own in OWN_FOLDERS))]
    keep = "".join(f"mkdir -p /kept/{i} && mount -o bind /new{shlex.quote(path)} /kept/{i}\n" for i, path in enumerate(kept))
    put_back = "".join(f"mkdir -p /new{shlex.quote(path)} && mount -o bind /kept/{i} /new{shlex.quote(path)}\n"
                       for i, path in enumerate(kept))
    return ENTER.format(keep=keep, own=" ".join(OWN_FOLDERS), put_back=put_back)


def command_script(test):
    settings = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "HOME": "/run/home", "LC_ALL": "C.UTF-8",
                **test.environment}
    words = [f"{name}={value}" for name, value in settings.items()] + test.command
    return f"cd {shlex.quote(test.folder)} && exec env -i {shlex.join(words)}\n"


class Runner:
    """Runs tests in a guest, and in another where that is lost."""

    def __init__(self, enter):
        self._enter, self._machine, self._boots = enter, None, 0

    def run(self, test, seconds):
        """(status, what it printed); GuestError where it did not come to its end."""
        guest = self._guest()
        guest.add("/guest/command", command_script(test).encode())
        guest.add("/guest/enter", self._enter.encode())
        result = guest.run("echo 1 >/proc/sys/kernel/perf_event_paranoid; unshare -m sh /guest/enter", seconds)
        return result.status, result.output + "".join(line + "\n" for line in result.complaints())

    def _guest(self):
        if self._machine is None or self._machine.lost:
            if self._boots == MOST_BOOTS:
                raise SystemExit(f"run_in_guest: {MOST_BOOTS} guests were lost; what was lost last: {self._machine.lost}")
            self.close()
            self._boots += 1
            self._machine = Machine(KIND, show=False)
            print(f"guest: booted in {self._machine.boot_s:.0f} s", flush=True)
            mounted = Guest(self._machine).run(MOUNT, 120)
            if mounted.status != 0:
                raise GuestError(f"the host's file system cannot be mounted: {mounted.output}")
        return Guest(self._machine)

    def close(self):
        if self._machine:
            self._machine.close()


def check_registers(runner):
    """Do the guest's debug registers fire?"""
    code = f"import sys; sys.path.insert(0, {END_TO_END!r}); import harness; print(harness.why_no_watchpoints())"
    status, said = runner.run(Test("registers", [sys.executable, "-B", "-c", code], {}), 240)
    if status != 0 or said.strip() != "None":
        raise GuestError(f"watchpoints cannot be tested in the guest: {said.strip()}")
    print("guest: debug registers fire", flush=True)


# ---- verdicts -------------------------------------------------------------------------------------------------

def reason_of(status, said):
    """The line that says why a test failed, or was skipped."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if status == SKIPPED:
        found = re.search(r"skipped ['\"](.*)['\"]", said)
        return found.group(1) if found else (lines or ["it printed nothing"])[-1]
    errors = [line for line in lines if re.match(r"\S*(Error|Exception|TimeoutExpired)\b.*|.*: Failure$", line)]
    return (errors or lines or ["it printed nothing"])[-1][:300]


def judge(runner, test, seconds):
    """Its verdict, and what it printed."""
    began = time.monotonic()
    try:
        status, said = runner.run(test, seconds)
    except GuestError as error:
        said = str(error)
        why = re.sub(r"; it(s console|\x20printed):$", "", said.splitlines()[0])
        return Verdict("failed", why, time.monotonic() - began), said
    verdict = {0: "passed", SKIPPED: "skipped"}.get(status, "failed")
    reason = "" if verdict == "passed" else reason_of(status, said)
    return Verdict(verdict, reason, time.monotonic() - began), said


class State:
    """Verdicts of the programs that are tested, in a file."""

    def __init__(self, folder, again):
        self.folder = folder
        self._path = os.path.join(folder, "verdicts.json")
        self._verdicts = {}
        os.makedirs(folder, exist_ok=True)
        if again:
            return
        try:
            with open(self._path, encoding="utf-8") as file:
                self._verdicts = json.load(file)
        except FileNotFoundError:
            pass
        except ValueError as error:
            sys.exit(f"run_in_guest: {self._path} cannot be read ({error}): --again")

    @staticmethod
    def _stamp(test):
        """Returns the state of the tested files: a verdict does not hold for a rebuilt program."""
        files = sorted({word for word in (*test.command, *test.environment.values()) if os.path.isfile(word)})
        stamps = [(path, os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in files]
        return hashlib.sha256(repr(stamps).encode()).hexdigest()

    def _log(self, test):
        return os.path.join(self.folder, re.sub(r"[^\w.-]+", "_", test.name)[-120:] + ".log")

    def get(self, test):
        """Its verdict, and what it printed; None where it has to be run."""
        entry = self._verdicts.get(test.name)
        if entry is None or entry["of"] != self._stamp(test):
            return None
        with open(self._log(test), encoding="utf-8") as file:
            return Verdict(entry["verdict"], entry["reason"], entry["seconds"]), file.read()

    def put(self, test, verdict, said):
        with open(self._log(test), "w", encoding="utf-8") as file:
            file.write(said)
        self._verdicts[test.name] = {"of": self._stamp(test), **dataclasses.asdict(verdict)}
        with open(self._path + ".new", "w", encoding="utf-8") as file:
            json.dump(self._verdicts, file, indent=1)
        os.replace(self._path + ".new", self._path)


def print_verdict(test, verdict, said, when=""):
    reason = f": {verdict.reason}" if verdict.reason else ""
    print(f"{when}{verdict.verdict} {test.name} ({verdict.seconds:.0f} s){reason}", flush=True)
    if verdict.verdict == "failed":
        print("".join(f"    {line}\n" for line in said.rstrip().splitlines()[-SHOWN_LINES:]), end="", flush=True)


def run_all(tests, state, limit_s, total_s):
    """Verdicts by name; those that the time did not suffice for are left out."""
    end, verdicts = time.monotonic() + total_s, {}
    for test in tests:
        known = state.get(test)
        if known:
            verdicts[test.name] = known[0]
            print_verdict(test, *known, "earlier: ")
    left = [test for test in tests if test.name not in verdicts]
    if not left:
        return verdicts
    runner = Runner(enter_script(tests))
    try:
        check_registers(runner)
        for test in left:
            seconds = min(limit_s, end - time.monotonic())
            if seconds < 10:
                break
            verdict, said = judge(runner, test, int(seconds))
            if seconds < limit_s and verdict.verdict == "failed":
                break  # perhaps for want of time only
            verdicts[test.name] = verdict
            state.put(test, verdict, said)
            print_verdict(test, verdict, said)
    finally:
        runner.close()
    return verdicts


def sum_up(tests, verdicts, listed):
    """Prints how many there are of each; the exit status."""
    count = {kind: sum(verdict.verdict == kind for verdict in verdicts.values()) for kind in ("passed", "failed", "skipped")}
    not_run = len(tests) - len(verdicts)
    print(f"in the guest: {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped"
          + (f", {not_run} not run within the time: start again to go on" if not_run else ""))
    if listed and count["skipped"]:
        print("in the guest: none that is listed may be skipped there: tests/kernel/in_guest.txt")
    if count["failed"] or not_run or (listed and count["skipped"]):
        return 1
    return SKIPPED if count["skipped"] == len(tests) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ctest", metavar="BUILD", help="folder of the build whose tests are run")
    parser.add_argument("-R", dest="regex", help="those whose names match")
    parser.add_argument("--listed", action="store_true", help="those that in_guest.txt expects to pass")
    parser.add_argument("--limit", type=int, default=300, help="seconds for each (default 300)")
    parser.add_argument("--total", type=int, default=7200, help="seconds for all (default 7200)")
    parser.add_argument("--again", action="store_true", help="forget earlier verdicts")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="one test's own settings and command")
    given = parser.parse_args()
    words = given.words[1:] if given.words[:1] == ["--"] else given.words
    if bool(given.ctest) == bool(words):
        parser.error("either --ctest or a command is wanted")
    tests = tests_of_ctest(given.ctest, given.regex) if given.ctest else [test_of_words(words)]
    if given.listed:
        tests = [test for test in tests if expected_to_pass(test.name)]
    if not tests:
        sys.exit("run_in_guest: no test is named so")
    state = State(os.path.join(ROOT, "build", "in_guest"), given.again)
    try:
        verdicts = run_all(tests, state, given.limit, given.total)
    except Unavailable as reason:
        print(f"run_in_guest: no guest: {reason}")
        sys.exit(SKIPPED)
    except GuestError as error:
        sys.exit(f"run_in_guest: {error}")
    sys.exit(sum_up(tests, verdicts, given.listed))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the guest is ended, and its folder taken away
    main()
