# SPDX-License-Identifier: Apache-2.0
"""The IBS module under emulation (emulate=1): what it samples, whom it serves, and that nothing outlives its owner."""

import os
import shutil
import subprocess
import unittest

import debian_kernel
import kernel_case

FOLDER = os.path.join(debian_kernel.ROOT, "kmod")
LOAD = "insmod /modules/crosstalk_ibs.ko emulate=1 || exit 1\n"
UNLOAD = "rmmod crosstalk_ibs || exit 1\n"


class ModuleCase(kernel_case.GuestCase):
    def guest_with(self, *programs):
        guest = self.guest()
        guest.add_module(FOLDER)
        for name in programs:
            guest.add_program(kernel_case.program(name), f"/usr/bin/{name}")
        return guest


class Programs(ModuleCase):
    def check(self, name, checks="", seconds=200):
        """Runs a program's checks, then unloads the module: nothing of a context may be left."""
        guest = self.guest_with(name)
        return self.run_well(guest, f"{LOAD}{name} {checks} || exit 1\n{UNLOAD}", seconds)

    def test_wrong_arguments(self):
        self.check("kmod_arguments")

    def test_samples(self):
        guest = self.guest_with("kmod_sampling", "kmod_follow")
        self.run_well(guest, f"{LOAD}kmod_sampling || exit 1\nkmod_follow || exit 1\n{UNLOAD}", 200)

    def test_lifetime_and_hostile_programs(self):
        programs = ("kmod_lifetime", "kmod_hostile", "kmod_abuse")
        run = "".join(f"{name} || exit 1\n" for name in programs)
        self.run_well(self.guest_with(*programs), LOAD + run + UNLOAD, 200)

    def test_random_calls(self):
        self.check("kmod_fuzz", "60")


class Loading(ModuleCase):
    def test_refused_with_the_reason(self):
        guest = self.guest_with()
        result = guest.run("insmod /modules/crosstalk_ibs.ko && exit 1\nexit 0")
        self.assertEqual(result.status, 0, result.output)
        self.assertIn("crosstalk_ibs: this processor does not offer IBS", result.dmesg)
        self.assertEqual(result.complaints(), [])

    def test_unloading_while_open_is_refused(self):
        guest = self.guest_with("kmod_sampling")
        result = self.run_well(guest, f"""{LOAD}
exec 9<>/dev/crosstalk_ibs
rmmod crosstalk_ibs && exit 1
exec 9>&-
kmod_sampling content &
sleep 0.5
rmmod crosstalk_ibs && exit 1
wait $! || exit 1
{UNLOAD}
for round in 1 2 3 4 5 6 7 8 9 10; do insmod /modules/crosstalk_ibs.ko emulate=1 && rmmod crosstalk_ibs || exit 1; done
test ! -e /dev/crosstalk_ibs
""")
        self.assertEqual(result.dmesg.count("/dev/crosstalk_ibs is ready (emulation)"), 11)

    def test_processors_come_and_go(self):
        guest = self.guest_with("kmod_lifetime", "kmod_sampling")
        self.run_well(guest, f"""{LOAD}
kmod_lifetime two_processes storm & work=$!
for round in 1 2 3 4 5 6 7 8; do
  echo 0 >/sys/devices/system/cpu/cpu1/online && sleep 0.3 && echo 1 >/sys/devices/system/cpu/cpu1/online && sleep 0.3 || exit 1
done
wait $work || exit 1
kmod_sampling content pinned_and_moving || exit 1
{UNLOAD}""", 200)

    def test_sleep(self):
        guest = self.guest_with("kmod_lifetime", "kmod_sampling")
        self.run_well(guest, f"""{LOAD}
kmod_lifetime two_processes storm & work=$!
sleep 1
echo core >/sys/power/pm_test
echo mem >/sys/power/state || exit 1
wait $work || exit 1
kmod_sampling content || exit 1
{UNLOAD}""", 200)


class Sources(unittest.TestCase):
    def test_sparse_has_nothing_to_say(self):
        try:
            headers = debian_kernel.headers()
        except debian_kernel.Unavailable as reason:
            self.skipTest(str(reason))
        if shutil.which("sparse") is None:
            self.skipTest(f"sparse is not installed: {debian_kernel.INSTALL}")
        built = debian_kernel.build_module(FOLDER)
        said = subprocess.run(["make", "-s", "-C", headers, f"M={os.path.dirname(built)}", "C=2", "CF=-D__CHECK_ENDIAN__"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(said.returncode, 0, said.stderr)
        complaints = [line for line in said.stderr.splitlines() if "error:" in line or "warning:" in line]
        self.assertEqual(complaints, [])


if __name__ == "__main__":
    kernel_case.main()
