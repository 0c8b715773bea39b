# SPDX-License-Identifier: Apache-2.0
"""Names the failed tests of a JUnit file of ctest's, each with the end of what it printed.

`./dev test` runs it last: in a log of many thousand lines, what failed is read at the end or not at all.
"""

import sys
import xml.etree.ElementTree as ElementTree

SHOWN_LINES = 25


def failures(path: str) -> list[str]:
    """Returns one text for each failed test."""
    texts = []
    for case in ElementTree.parse(path).iter("testcase"):
        if case.get("status") != "fail":
            continue
        printed = (case.findtext("system-out") or "").rstrip().splitlines()[-SHOWN_LINES:]
        texts.append("\n".join([case.get("name", "?")] + ["    " + line for line in printed]))
    return texts


if __name__ == "__main__":
    for text in failures(sys.argv[2]):
        print(f"FAILED: {sys.argv[1]}: {text}")
