# SPDX-License-Identifier: Apache-2.0
"""Counts the tests of a run: count_tests.py RESULTS FOLDER, where RESULTS is ctest's JUnit file.

A test of ctest's that is a program of GoogleTest's counts as the tests in it, by the XML that it has left in FOLDER. Prints
`PASSED FAILED SKIPPED`, and behind it a line for each reason that tests were skipped for, with their number.
"""

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


class Counts:
    def __init__(self):
        self.passed = self.failed = 0
        self.skipped = collections.Counter()

    def add_program(self, results: pathlib.Path) -> None:
        """The tests of a program of GoogleTest's."""
        for case in ElementTree.parse(results).iter("testcase"):
            if case.get("status") != "run":
                continue  # another shard's, or filtered out
            skip = case.find("skipped")
            if case.find("failure") is not None:
                self.failed += 1
            elif skip is not None:
                # "FILE:LINE", then what the test said.
                said = (skip.get("message") or "").splitlines()
                self.skipped[" ".join(said[1:]).strip() or "no reason was given"] += 1
            else:
                self.passed += 1

    def add(self, case: ElementTree.Element, folder: pathlib.Path) -> None:
        """A test of ctest's."""
        results = folder / f"{case.get('name')}.xml"
        before = self.failed
        if results.exists():
            self.add_program(results)
        if case.get("status") == "fail":
            self.failed += self.failed == before  # it died, or is no program of GoogleTest's
        elif results.exists():
            return
        elif case.get("status") == "run":
            self.passed += 1
        else:
            said = case.findtext("system-out") or ""
            reasons = re.findall(r"skipped ['\"](.*?)['\"]$", said, flags=re.MULTILINE)
            self.skipped[reasons[0] if reasons else "no reason was given"] += 1


def main(results: str, folder: str) -> None:
    counts = Counts()
    for case in ElementTree.parse(results).iter("testcase"):
        counts.add(case, pathlib.Path(folder))
    print(counts.passed, counts.failed, counts.skipped.total())
    for reason, number in counts.skipped.most_common():
        print(f"{number} skipped: {reason}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
