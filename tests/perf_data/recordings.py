# SPDX-License-Identifier: Apache-2.0
"""Real recordings, which are not part of the project, and what perf_data_print_samples prints of any recording."""

import os
import pathlib
import subprocess
import unittest

PRINTER = os.environ["CROSSTALK_PERF_PRINTER"]
COLUMNS = "comm pid tid cpu time period event ip addr data_src weight dso chain".split()


def recordings():
    """Folder of the recordings: shared/perfdata beside the project, or $CROSSTALK_PERFDATA; without it the test is
    skipped."""
    named = os.environ.get("CROSSTALK_PERFDATA")
    places = [pathlib.Path(named)] if named else [
        parent / "shared" / "perfdata" for parent in pathlib.Path(__file__).resolve().parents]
    for place in places:
        if place.is_dir():
            return place
    raise unittest.SkipTest("there are no recordings; CROSSTALK_PERFDATA may say where")


def printed(path):
    """The samples of a recording, in the order of their times: COLUMNS -> text."""
    done = subprocess.run([PRINTER, path], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return [dict(zip(COLUMNS, line.split("\t"))) for line in done.stdout.splitlines()]
