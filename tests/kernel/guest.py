# SPDX-License-Identifier: Apache-2.0
"""One test's use of a guest, which may be up already, and which other tests may use before and after.

    guest = Guest(machine)
    guest.add_program("build/release/driver/crosstalk")      # with its libraries, at the same path
    guest.add_module("tests/kernel/modules/emulated_pmu")    # built, and put into /modules
    result = guest.run("insmod /modules/emulated_pmu.ko && crosstalk doctor", seconds=60)
    result.status, result.output, result.dmesg, result.files["name"]

The script runs in busybox's shell. Its files in $RESULTS come back as `files`. After it, all processes that it started have
ended, its modules are unloaded, and settings are as before; files stay.
"""

import os
import stat

import debian_kernel
import initramfs


class Guest:
    def __init__(self, machine):
        self.machine = machine
        self._files = {}  # path -> (data, mode)

    def add(self, path, data, mode=0o644):
        self._files[_real(path)] = (data, mode)

    def add_file(self, host, path=None):
        self._add_same(path or os.path.abspath(host),
                       lambda: (_read(host), stat.S_IMODE(os.stat(host).st_mode) | 0o400))

    def add_program(self, host, path=None):
        """With all that it loads, without debugging information."""
        self._add_same(path or os.path.abspath(host), lambda: (initramfs.stripped(host), 0o755))
        for library in initramfs.libraries_of(host):
            self._add_same(library, lambda library=library: (initramfs.stripped(library), 0o755))

    def add_module(self, folder, extra=()):
        """Builds a module from its sources; /modules/NAME.ko in the guest."""
        built = debian_kernel.build_module(folder, extra)
        self._add_same("/modules/" + os.path.basename(built), lambda: (_read(built), 0o644))

    def _add_same(self, path, content):
        """A file of the host's, which is not brought twice."""
        path = _real(path)
        if path not in self.machine.present:
            self._files[path] = content()

    def run(self, script, seconds=120):
        """Runs the script, and returns what came of it; GuestError where it did not end within `seconds`."""
        return self.machine.run(script, self._files, seconds)


def _real(path):
    """Through /lib -> usr/lib, as in the guest."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def _read(path):
    with open(path, "rb") as file:
        return file.read()
