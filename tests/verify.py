# SPDX-License-Identifier: Apache-2.0
"""Runs the tests that take statistics, guests or hours, in groups: `./dev verify [GROUP...]` prints a line for each.

A group that passed is not run again on the same sources, so that a run which was stopped goes on; --again forgets that.
The output of a group is in build/verify/GROUP.log. A group that this machine cannot run says why and counts as skipped.
"""

import argparse
import collections
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "end_to_end"))
import harness  # noqa: E402  (after its folder is known)

FOLDER = ROOT / "build" / "verify"
SKIPPED = 77  # exit status of what this machine cannot run


@dataclasses.dataclass(frozen=True)
class Group:
    name: str
    proves: str
    command: str  # of a shell, in the project's folder
    figures: str = ""  # pattern of the lines of its output that hold figures; its groups are printed
    needs: tuple = ()  # programs without which it cannot run
    watchpoints: bool = False  # it can say nothing where debug registers do not fire


CTEST = "ctest --output-on-failure --test-dir build/"
CTEST_FIGURES = r"^(\d+% tests passed, .*)$"

GROUPS = [
    Group("statistics", "recordings agree with what programs count and time themselves",
          "./dev build release all && " + CTEST + "release -L verify -LE 'kernel|hostile|unit|packaging'", CTEST_FIGURES),
    Group("estimates", "unit tests whose truth needs many runs",
          "./dev build release all && " + CTEST + "release -L unit -L verify && CROSSTALK_TEST_STEPS=15000 " + CTEST +
          "release -R unit.in_target_plain", CTEST_FIGURES),
    Group("hostile", "each program of the catalogue behaves recorded as it does bare",
          "./dev build release all && " + CTEST + "release -L hostile", CTEST_FIGURES),
    Group("probes", "the same where lines are probed, as debug registers do not fire",
          "./dev build release all && CROSSTALK_TEST_DEAD_WATCHPOINTS=1 " + CTEST + "release -L hostile", CTEST_FIGURES),
    Group("threads", "unit tests of what threads share, under the thread sanitizer", "./dev sanitize threads",
          r"^(\d+ passed, .*)$"),
    Group("guests", "Debian's kernel under emulation: the module, memory events, counters, recordings",
          "./dev deps kernel && ./dev build release all && " + CTEST + "release -L kernel", CTEST_FIGURES,
          needs=("qemu-system-x86_64",)),
    Group("registers", "tests that need debug registers which fire, in a guest whose registers do",
          "./dev deps kernel && ./dev build release all && python3 -B tests/kernel/run_in_guest.py",
          r"^(\d+ passed.*)$", needs=("qemu-system-x86_64",)),
    Group("packages", "the packages in a bare Debian, and the daemon under systemd in a guest",
          "./dev deps kernel && ./dev package && ./dev build release crosstalk crosstalk_preload false_sharing && "
          + CTEST + "release -L packaging", CTEST_FIGURES, needs=("qemu-system-x86_64",)),
    Group("lint", "clang-tidy, manual pages, who includes whom", "./dev lint", r"^(lint: .*)$"),
    Group("fuzz", "each reader of bytes, for a minute, by libFuzzer", "./dev fuzz 60",
          r"^(stat::number_of_executed_units:.*)$"),
    Group("estimators", "estimators against simulated truth", "./dev bench estimators --runs 60 ping_pong mixed ticks",
          r"^(\|.*\|)$"),
    Group("accuracy", "reports against what workloads force", "./dev bench accuracy --table --quick", r"^(\|.*\|)$", watchpoints=True),
    Group("advice", "programs as found and as advised", "./dev bench advice --runs 3 --print", r"^(\|.*\|)$",
          watchpoints=True),
    Group("overhead", "recorded against bare runs", "./dev bench overhead --pairs 10 --turns 4 --only pigz", r"^(\|.*\|)$"),
    Group("rooflines", "places and roofs of programs that count their own work, and roofs against likwid-bench",
          "./dev bench rooflines --print --quick", r"^(rooflines: .*)$"),
    Group("soak", "the recorder's memory does not grow", "./dev soak 600", r"^(.*MB.*)$"),
    Group("soak-daemon", "a server under the daemon: nothing grows, no answer is wrong", "./dev soak-daemon 600", r"^(.*MB.*)$"),
]


def sources_hash() -> str:
    """Hashes all tracked files as they are in the folder: other sources are tested again."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True,
                           capture_output=True).stdout.split(b"\0")
    result = hashlib.sha256()
    for name in sorted(filter(None, names)):
        path = ROOT / os.fsdecode(name)
        if path.is_file() and not name.startswith((b"docs/", b"man/")):
            result.update(name + b"\0" + path.read_bytes())
    return result.hexdigest()


def lacking(group: Group) -> str:
    missing = [program for program in group.needs if shutil.which(program) is None]
    if missing:
        return f"there is no {', '.join(missing)} here"
    why = harness.why_no_watchpoints() if group.watchpoints else None
    return f"watchpoints: {why}" if why else ""


def figures_of(group: Group, log: pathlib.Path) -> str:
    """Returns the figures in its output, on one line."""
    if not group.figures:
        return ""
    found = re.findall(group.figures, log.read_text(errors="replace"), flags=re.MULTILINE)
    return " / ".join(found[-3:])[:300]


def run(group: Group) -> tuple[str, str, float]:
    """Runs a group; returns its verdict, what there is to say, and the seconds it took."""
    why = lacking(group)
    if why:
        return "skipped", why, 0.0
    log = FOLDER / f"{group.name}.log"
    begin = time.monotonic()
    with open(log, "wb") as output:
        status = subprocess.run(["bash", "-c", group.command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output,
                                stderr=subprocess.STDOUT, check=False).returncode
    seconds = time.monotonic() - begin
    said = figures_of(group, log)
    if status == SKIPPED:
        lines = log.read_text(errors="replace").strip().splitlines()
        return "skipped", lines[-1] if lines else "it did not say why", seconds
    if status != 0:
        return "failed", f"{said}; see {log.relative_to(ROOT)}".lstrip("; "), seconds
    return "passed", said, seconds


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev verify", description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="only these (default: all)")
    parser.add_argument("--again", action="store_true", help="run also what has passed on these sources")
    parser.add_argument("--list", action="store_true", help="name the groups")
    wanted = parser.parse_args()
    names = [group.name for group in GROUPS]
    if wanted.list:
        for group in GROUPS:
            print(f"{group.name:12} {group.proves}")
        return 0
    unknown = [name for name in wanted.groups if name not in names]
    if unknown:
        print(f"dev verify: '{unknown[0]}' is no group; there are: {', '.join(names)}", file=sys.stderr)
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    state_file = FOLDER / "state.json"
    sources = sources_hash()
    try:
        state = json.loads(state_file.read_text())
    except (OSError, ValueError):
        state = {}
    if wanted.again or state.get("sources") != sources:
        state = {"sources": sources, "passed": {}}
    counts: collections.Counter = collections.Counter()
    for group in GROUPS:
        if wanted.groups and group.name not in wanted.groups:
            continue
        if group.name in state["passed"]:
            verdict, said, seconds = "passed", state["passed"][group.name], 0.0
        else:
            verdict, said, seconds = run(group)
        if verdict == "passed":
            state["passed"][group.name] = said
            state_file.write_text(json.dumps(state, indent=1))
        counts[verdict] += 1
        print(f"{verdict:8} {group.name:12} {seconds:6.0f} s  {said}", flush=True)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
