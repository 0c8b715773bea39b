# SPDX-License-Identifier: Apache-2.0
"""Counts the unit tests of a build by what their programs have left (GoogleTest's XML): count_tests.py FOLDER.

Prints `PASSED FAILED SKIPPED`, and behind it a line for each reason that tests were skipped for, with their number. A
program that died has left nothing: ctest says so.
"""

import collections
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def count(folder: pathlib.Path) -> tuple[int, int, collections.Counter]:
    """Returns how many passed, how many failed, and how many were skipped for which reason."""
    passed = failed = 0
    skipped: collections.Counter = collections.Counter()
    for path in sorted(folder.glob("*.xml")):
        for case in ElementTree.parse(path).iter("testcase"):
            if case.get("status") != "run":
                continue  # another shard's, or filtered out
            skip = case.find("skipped")
            if case.find("failure") is not None:
                failed += 1
            elif skip is not None:
                # "FILE:LINE", then what the test said.
                said = (skip.get("message") or "").splitlines()
                skipped[" ".join(said[1:]).strip() or "no reason was given"] += 1
            else:
                passed += 1
    return passed, failed, skipped


if __name__ == "__main__":
    passed_all, failed_all, skipped_all = count(pathlib.Path(sys.argv[1]))
    print(passed_all, failed_all, sum(skipped_all.values()))
    for reason, number in skipped_all.most_common():
        print(f"{number} skipped: {reason}")
