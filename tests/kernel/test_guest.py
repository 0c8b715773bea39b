# SPDX-License-Identifier: Apache-2.0
"""The basis of tests in guests: status and files come back, leftovers of a script are ended, hangs and dying kernels
are reported, watchpoints trap."""

import json
import threading
import time

import kernel_case
from guest import Guest
from kernel_case import GuestError


class Harness(kernel_case.GuestCase):
    def test_status_and_files_come_back(self):
        guest = self.guest()
        guest.add("/guest/given", b"\0binary\xff" * 5000)
        result = guest.run("cp /guest/given $RESULTS/back; grep -c ^processor /proc/cpuinfo; uname -r; exit 7")
        self.assertEqual(result.status, 7)
        self.assertEqual(result.files, {"back": b"\0binary\xff" * 5000})
        processors, release = result.output.split()
        self.assertEqual(processors, "2")
        self.assertRegex(release, r"-amd64$")
        self.assertIn("Linux version", guest.machine.boot_log)
        self.assertEqual(result.complaints(), [])

    def test_a_hanging_script_is_ended_and_the_guest_goes_on(self):
        guest = self.guest()
        with self.assertRaisesRegex(GuestError, "the script was running after 2 s; it printed:\n(.|\n)*going to sleep"):
            guest.run("echo going to sleep; sleep 4321 & sleep 4321", seconds=2)
        self.assertEqual(guest.run("ps | grep 'sleep [4]'; true").output, "")

    def test_what_a_script_leaves_is_taken_away(self):
        guest = self.guest()
        guest.run("""sleep 4321 & echo 0 >/sys/devices/system/cpu/cpu1/online
            echo 2 >/proc/sys/kernel/perf_event_paranoid; echo 1 >/proc/sys/kernel/yama/ptrace_scope""")
        found = guest.run("""ps | grep 'sleep [4]'; cat /sys/devices/system/cpu/online
            cat /proc/sys/kernel/perf_event_paranoid /proc/sys/kernel/yama/ptrace_scope""")
        self.assertEqual(found.output.split(), ["0-1", "3", "0"])


class Lost(kernel_case.GuestCase):
    """A guest that is lost fails the script that it ran, and all that come after it, at once."""
    shares_guest = False

    def check(self, guest, script, told):
        with self.assertRaisesRegex(GuestError, told):
            guest.run(script, seconds=4)
        began = time.monotonic()
        with self.assertRaisesRegex(GuestError, f"lost before: {told}"):
            Guest(guest.machine).run("true")
        self.assertLess(time.monotonic() - began, 1)

    def test_a_hanging_guest_is_told(self):
        guest = self.own_guest(answer_limit_s=3)
        pause = threading.Timer(2, guest.machine.pause)
        pause.start()
        self.addCleanup(pause.join)
        self.check(guest, "echo about to hang; sleep 4321", "its script was running after 4 s; its console:(.|\n)*about to hang")

    def test_a_dying_kernel_is_told(self):
        self.check(self.own_guest(), "echo c >/proc/sysrq-trigger", "it ended by itself; its console:(.|\n)*Kernel panic")


class Watchpoints(kernel_case.GuestCase):
    def test_four_on_another_thread_trap(self):
        guest = self.guest()
        guest.add_program(kernel_case.program("watchpoints"), "/usr/bin/watchpoints")
        result = self.run_well(guest, "watchpoints")
        found = json.loads(result.output)
        self.assertEqual(found["opened"], [True, True, True, True, False])  # there are four registers
        self.assertEqual(found["loads"], [100] * 4)
        self.assertEqual(found["stores"], [100] * 4)
        self.assertEqual(found["addresses_right"], True)


if __name__ == "__main__":
    kernel_case.main()
