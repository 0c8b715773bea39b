# SPDX-License-Identifier: Apache-2.0
"""What tests in guests rest on: status and files come back, hangs and dying kernels are told, watchpoints trap."""

import json

import kernel_case
from guest import GuestError


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
        self.assertIn("Linux version", result.dmesg)
        self.assertEqual(result.complaints(), [])

    def test_a_hang_ends_at_the_time_limit(self):
        with self.assertRaisesRegex(GuestError, "its script was running after 4 s; its console:(.|\n)*going to sleep"):
            self.guest().run("echo going to sleep; sleep 1000", seconds=4)

    def test_a_dying_kernel_is_told(self):
        with self.assertRaisesRegex(GuestError, "it ended by itself; its console:(.|\n)*Kernel panic"):
            self.guest().run("echo c >/proc/sysrq-trigger")


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
