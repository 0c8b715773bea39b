# SPDX-License-Identifier: Apache-2.0
"""What the tests in guests share: a case that is skipped, with the reason, where no guest can be had."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "end_to_end"))
import harness  # noqa: E402  (found by the path above)
from guest import Guest, Unavailable  # noqa: E402

PROGRAMS = os.environ.get("CROSSTALK_GUEST_PROGRAMS", "")


class GuestCase(unittest.TestCase):
    def guest(self, **machine):
        try:
            return Guest(**machine)
        except Unavailable as reason:
            self.skipTest(str(reason))

    def run_well(self, guest, script, seconds=120):
        """Runs a script that must end with 0 in a kernel that has nothing to complain of."""
        result = guest.run(script, seconds)
        print(f"booted in {result.boot_s:.1f} s")
        self.assertEqual(result.status, 0, result.output)
        self.assertEqual(result.complaints(), [])
        return result


def program(name):
    return os.path.join(PROGRAMS, name)


main = harness.main
