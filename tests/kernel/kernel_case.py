# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests in guests: tests of one kind of guest run in one that was booted once, and are skipped, with the
reason, if no guest is available."""

import atexit
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "end_to_end"))
import harness  # noqa: E402  (found by the path above)
from guest import Guest  # noqa: E402
from machine import GuestError, Kind, Machine, Unavailable  # noqa: E402

PROGRAMS = os.environ.get("CROSSTALK_GUEST_PROGRAMS", "")
AMD, INTEL = Kind("amd"), Kind("intel")
AMD_1, INTEL_1 = Kind("amd", processors=1), Kind("intel", processors=1)

_machines = {}  # kind -> the guest that is up, or why there is none


def guest_kind(kind, last=False):
    """Says of a test which kind of guest it needs; AMD where nothing is said. `last`: what it does to the guest cannot be
    undone, so none runs in that guest after it."""
    def mark(test):
        test.guest_kind, test.last_in_guest = kind, last
        return test
    return mark


def kind_of(case):
    """Returns the kind of guest that a test (a case with its method) shares; None if it shares none."""
    return getattr(_method(case), "guest_kind", AMD) if getattr(case, "shares_guest", False) else None


def is_last(case):
    return getattr(_method(case), "last_in_guest", False)


def _method(case):
    return getattr(case, case._testMethodName)  # pylint: disable=protected-access


def _machine(kind):
    if kind not in _machines:
        try:
            _machines[kind] = Machine(kind)
            print(f"booted {kind} in {_machines[kind].boot_s:.1f} s")
        except (Unavailable, GuestError) as error:
            _machines[kind] = error
    return _machines[kind]


@atexit.register
def _end_machines():
    while _machines:
        _end_machine(next(iter(_machines)))


def _end_machine(kind):
    machine = _machines.pop(kind, None)
    if isinstance(machine, Machine):
        machine.close()


class GuestCase(unittest.TestCase):
    shares_guest = True

    def guest(self):
        """The guest of this test's kind, which may have run other tests."""
        kind = kind_of(self)
        machine = _machine(kind)
        if isinstance(machine, Unavailable):
            self.skipTest(str(machine))
        if isinstance(machine, GuestError):
            self.fail(str(machine))
        if is_last(self):
            self.addCleanup(_end_machine, kind)
        return Guest(machine)

    def own_guest(self, **options):
        """One that no other test uses."""
        try:
            machine = Machine(**options)
        except Unavailable as reason:
            self.skipTest(str(reason))
        self.addCleanup(machine.close)
        return Guest(machine)

    def run_well(self, guest, script, seconds=120):
        """Runs a script that must end with 0 in a kernel that has nothing to complain of."""
        result = guest.run(script, seconds)
        self.assertEqual(result.status, 0, result.output)
        self.assertEqual(result.complaints(), [])
        return result


def program(name):
    return os.path.join(PROGRAMS, name)


main = harness.main
