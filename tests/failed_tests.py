# SPDX-License-Identifier: Apache-2.0
"""Names the failed tests of a JUnit file of ctest's, each with the end of what it printed. A unit test program is one
test to ctest and many to GoogleTest: those of its tests that failed, or that it died in, are named.

`./dev test` runs it last: in a log of many thousand lines, what failed is read at the end or not at all.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

SHOWN_LINES = 12
SHOWN_WIDTH = 400  # characters of a line: some tests print whole reports
REASON = re.compile(r"Error|: Failure$|\*\*\*|terminate|Sanitizer")


def reason_of(printed: list[str]) -> str:
    """The last line that says what went wrong; else the last one."""
    for at in reversed(range(len(printed))):
        if REASON.search(printed[at]):
            detail = printed[at + 1:at + 4] if printed[at].endswith(": Failure") else []
            return " ".join(line.strip() for line in [printed[at], *detail])
    return printed[-1].strip() if printed else "it printed nothing"


def parts(printed: list[str]) -> list[tuple[str, list[str]]]:
    """The failed tests of a program of GoogleTest's, each with what it printed; a program that failed otherwise is one,
    without a name."""
    found: list[tuple[str, list[str]]] = []
    name, begin = "", 0
    for at, line in enumerate(printed):
        if line.startswith("[ RUN      ] "):
            name, begin = line[13:].strip(), at + 1
        elif name and line.startswith(("[       OK ] " + name, "[  SKIPPED ] " + name)):
            name = ""
        elif name and line.startswith("[  FAILED  ] " + name):
            found.append((name, printed[begin:at]))
            name = ""
    if name:  # it died there
        found.append((name, printed[begin:]))
    return found or [("", printed)]


def failures(path: str) -> list[str]:
    """Returns one text for each failed test: the reason in its first line, then the end of its output. A reader of a
    cut log then sees at least the reason."""
    texts = []
    for case in ElementTree.parse(path).iter("testcase"):
        if case.get("status") != "fail":
            continue
        printed = [line[:SHOWN_WIDTH] for line in (case.findtext("system-out") or "").rstrip().splitlines()]
        for name, lines in parts(printed):
            first = f"{case.get('name', '?')}{' ' if name else ''}{name}: {reason_of(lines)}"
            texts.append("\n".join([first] + ["    " + line for line in lines[-SHOWN_LINES:]]))
    return texts


if __name__ == "__main__":
    for text in failures(sys.argv[2]):
        print(f"FAILED: {sys.argv[1]}: {text}")
