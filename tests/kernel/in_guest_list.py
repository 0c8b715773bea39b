# SPDX-License-Identifier: Apache-2.0
"""in_guest.txt: which tests are run in a guest whose debug registers fire, and why others are not."""

import os
import re

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "in_guest.txt")
EXPECTED = ("passes", "left out")


def entries(path=PATH):
    """(expected, compiled expression, reason) of each line."""
    found = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip() or line.startswith("#"):
                continue
            expected, expression, reason = ([*(part.strip() for part in line.split("|", 2)), "", ""])[:3]
            if expected not in EXPECTED or not expression or (expected == "left out" and not reason):
                raise ValueError(f"{path}:{number}: {line.strip()!r} is not 'passes | EXPRESSION' "
                                 "or 'left out | EXPRESSION | REASON'")
            found.append((expected, re.compile(expression), reason))
    return found


def entry_of(name, path=PATH):
    """The first line that matches the test's whole name; None where there is none."""
    return next((entry for entry in entries(path) if entry[1].fullmatch(name)), None)


def expected_to_pass(name):
    entry = entry_of(name)
    return entry is not None and entry[0] == "passes"
