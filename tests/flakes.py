# SPDX-License-Identifier: Apache-2.0
"""Repeats the tests of `./dev test` that record a program until each has passed N times in a row: `./dev flakes [N] [REGEX]`.

A busy loop for each processor takes part of the machine meanwhile, as its neighbours do. Each test runs once a round, and
a line is printed after each round. The file build/flakes/passed.json holds, for each test, how often it has passed in a
row and at which commit the row began. A run that was stopped goes on from there, also at a later commit. A failure ends
the row of its test, and the output stays in build/flakes/. The option --again forgets all rows.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
FOLDER = ROOT / "build" / "flakes"
STATE = FOLDER / "passed.json"
RESULT = re.compile(r"^ *\d+/\d+ +Test +#\d+: (\S+) [ .]*(\**)(Passed|Skipped|Failed|Timeout|Exception|Not Run)")


class Rows:
    """How often each test has passed in a row, and since which commit."""

    def __init__(self, commit: str):
        self.commit = commit
        try:
            self.rows = json.loads(STATE.read_text())
        except (OSError, ValueError):
            self.rows = {}

    def add(self, test: str, passed: bool) -> None:
        if passed:
            self.rows.setdefault(test, {"passed": 0, "since": self.commit})["passed"] += 1
        else:
            self.rows.pop(test, None)
        partial = STATE.with_suffix(".new")
        partial.write_text(json.dumps(self.rows, indent=1))
        partial.replace(STATE)

    def passed(self, test: str) -> int:
        return self.rows.get(test, {"passed": 0})["passed"]


def numbers_of_tests(pattern: str) -> dict[str, int]:
    """The tests that match, each with ctest's number of it."""
    listed = json.loads(subprocess.run(["ctest", "--test-dir", str(BUILD), "--show-only=json-v1"], check=True,
                                       capture_output=True).stdout)
    found = {}
    for number, test in enumerate(listed["tests"], start=1):
        labels = next((p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"), [])
        if re.search(pattern, test["name"]) and not {"unit", "verify"} & set(labels):
            found[test["name"]] = number
    return found


def run_round(numbers: list[int], jobs: int, log: pathlib.Path):
    """Runs the tests with these numbers once; yields the name and the verdict of each when it ends."""
    chosen = ",".join(["0", "0", "0"] + [str(n) for n in sorted(numbers)])
    command = ["ctest", "--test-dir", str(BUILD), "-j", str(jobs), "--output-on-failure", "-I", chosen]
    with open(log, "w", encoding="utf-8") as copy, subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace") as running:
        for line in running.stdout:
            copy.write(line)
            if found := RESULT.match(line):
                yield found[1], found[3]


def repeat(times: int, numbers: dict[str, int], jobs: int, rows: Rows) -> tuple[set[str], set[str]]:
    """Runs rounds until each test has its row, has failed or was skipped; returns those that failed and were skipped."""
    failed: set[str] = set()
    skipped: set[str] = set()
    turn = 0
    while left := [n for n in numbers if n not in failed | skipped and rows.passed(n) < times]:
        turn += 1
        begin = time.monotonic()
        log = FOLDER / f"round-{rows.commit}-{time.strftime('%H%M%S')}.log"
        ended = set()
        for test, verdict in run_round([numbers[n] for n in left], jobs, log):
            ended.add(test)
            if verdict == "Skipped":
                skipped.add(test)
                continue
            rows.add(test, verdict == "Passed")
            if verdict != "Passed":
                failed.add(test)
                print(f"  {test}: {verdict}; see {log.relative_to(ROOT)}", flush=True)
        if not failed & ended:
            log.unlink()
        fewest = min((rows.passed(n) for n in left if n not in failed | skipped), default=0)
        print(f"round {turn}: {len(ended)} tests in {time.monotonic() - begin:.0f} s, {len(failed)} failed so far; "
              f"each other one has passed {fewest} times or more", flush=True)
        if not ended:
            raise SystemExit(f"dev flakes: ctest ran no test; see {log.relative_to(ROOT)}")
    return failed, skipped


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev flakes", description=__doc__.splitlines()[0])
    parser.add_argument("times", nargs="?", type=int, default=50, metavar="N", help="passes in a row (default: 50)")
    parser.add_argument("pattern", nargs="?", default=".", metavar="REGEX", help="only tests whose names match")
    parser.add_argument("--again", action="store_true", help="forget what has passed before")
    wanted = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if wanted.again:
        STATE.unlink(missing_ok=True)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, check=True, capture_output=True,
                            text=True).stdout.strip()
    rows = Rows(commit)
    numbers = numbers_of_tests(wanted.pattern)
    processors = len(os.sched_getaffinity(0))
    loops = [subprocess.Popen(["bash", "-c", "while :; do :; done"]) for _ in range(processors)]
    try:
        failed, skipped = repeat(wanted.times, numbers, 2 * int(os.environ.get("JOBS", processors)) + 1, rows)
    finally:
        for loop in loops:
            loop.kill()
    print(f"{len(numbers) - len(failed) - len(skipped)} passed, {len(failed)} failed, {len(skipped)} skipped: "
          f"{wanted.times} times in a row")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
