# SPDX-License-Identifier: Apache-2.0
"""A machine of our own: Debian's kernel, booted by qemu under emulation with a file system made of the host's files.

    guest = Guest()
    guest.add_program("build/release/driver/crosstalk")      # with its libraries, at the same path
    guest.add_module("tests/kernel/modules/emulated_pmu")    # built, and put into /modules
    result = guest.run("insmod /modules/emulated_pmu.ko && crosstalk doctor", seconds=60)
    result.status, result.output, result.dmesg, result.files["name"]

The script is busybox's shell's. What it puts into $RESULTS comes back as `files`. The console is printed as it comes.
"""

import ctypes
import dataclasses
import functools
import io
import mmap
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

import debian_kernel
from debian_kernel import Unavailable
from initramfs import Initramfs

HERE = os.path.dirname(os.path.abspath(__file__))
QEMU = "qemu-system-x86_64"
BUSYBOX = "/bin/busybox"
BOOT_LIMIT_S = 200  # some seconds, but for a host that does much else

# Processors that the kernel and crosstalk take for these. Emulated ones have no performance monitoring unit. Five-level
# page tables cost time and give nothing.
PROCESSORS = {
    "amd": "max,la57=off,vendor=AuthenticAMD,family=25,model=17",
    "intel": "max,la57=off,vendor=GenuineIntel,family=6,model=85",
}
# A fault in the kernel ends the guest at once. Emulated processors may stand still for seconds where the host is busy:
# its watchdogs are given time. Isolated page tables would make each system call flush the emulator's tables.
COMMAND_LINE = ("console=ttyS0 quiet panic=-1 oops=panic mitigations=off tsc=reliable no_timer_check "
                "random.trust_cpu=on watchdog_thresh=60 softlockup_all_cpu_backtrace=1 rcupdate.rcu_cpu_stall_timeout=120")


@functools.lru_cache(maxsize=None)
def time_stamp_khz():
    """How fast this processor's time stamp counter runs, which is the guest's, too. A guest that had to find out by the
    emulated timers, on a busy host, would be wrong by a factor of ten, and all its times with it."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("0f31 48c1e220 4809d0 c3"))  # rdtsc; rax |= rdx << 32; ret
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))

    def both():  # the two that were read in the quickest succession
        tries = []
        for _ in range(20):
            before, ticks, after = time.monotonic_ns(), read(), time.monotonic_ns()
            tries.append((after - before, ticks, before))
        return min(tries)[1:]
    first_ticks, first_ns = both()
    time.sleep(0.1)
    last_ticks, last_ns = both()
    return (last_ticks - first_ticks) * 1_000_000 // (last_ns - first_ns)


class GuestError(Exception):
    """The guest did not come to its end: it hung, or its kernel died. The text ends with the console's last lines."""


@dataclasses.dataclass
class Result:
    status: int    # the script's
    output: str    # what the script wrote, both streams
    dmesg: str
    files: dict    # name -> bytes, of $RESULTS
    boot_s: float  # until the script was started

    def complaints(self):
        """Lines of the kernel's log that a sound kernel does not write."""
        return [line for line in self.dmesg.splitlines()
                if "ommand line" not in line and re.search(r"WARNING:|BUG:|Oops|Call Trace|detected stall|lockup|hung_task|blocked for more|KASAN|lockdep|"
                             r"general protection|leaked|refcount_t|uaf|bad page", line)]


class Guest:
    def __init__(self, processor="amd", processors=2, memory_mb=1024):
        self._machine = ["-cpu", PROCESSORS[processor], "-smp", str(processors), "-m", str(memory_mb)]
        self._image = debian_kernel.image()
        self._files = Initramfs()
        for needed in (shutil.which(QEMU) or QEMU, BUSYBOX):
            if not os.access(needed, os.X_OK):
                raise Unavailable(f"{needed} is missing: {debian_kernel.INSTALL}")
        self._files.add_file(BUSYBOX, "/usr/bin/busybox")
        with open(os.path.join(HERE, "init.sh"), "rb") as file:
            self._files.add("/init", file.read(), 0o755)

    def add(self, path, data, mode=0o644):
        self._files.add(path, data, mode)

    def add_file(self, host, path=None):
        self._files.add_file(host, path)

    def add_program(self, host, path=None):
        self._files.add_program(host, path)

    def add_module(self, folder, extra=()):
        """Builds a module from its sources; /modules/NAME.ko in the guest."""
        built = debian_kernel.build_module(folder, extra)
        self._files.add_file(built, "/modules/" + os.path.basename(built))

    def run(self, script, seconds=120):
        """Boots, runs the script, and returns what came of it; GuestError where it did not end within `seconds` of its
        start."""
        self._files.add("/guest/script", script.encode())
        with tempfile.TemporaryDirectory(prefix="crosstalk-guest-") as folder:
            self._files.write(folder + "/initramfs")
            console, boot_s, why = self._boot(folder, seconds)
            try:
                with open(folder + "/results", "rb") as file:
                    return _result(file.read(), boot_s)
            except (OSError, EOFError, KeyError, ValueError, tarfile.TarError) as error:
                tail = "\n".join(console.splitlines()[-60:])
                raise GuestError(f"no results from the guest: {why}; its console:\n{tail}") from error

    def _boot(self, folder, seconds):
        """Returns what the console said, how long it took to the script's start, and how the guest ended."""
        command = [QEMU, "-accel", "tcg", *self._machine, "-nodefaults", "-no-user-config", "-no-reboot",
                   "-display", "none", "-serial", "stdio", "-serial", f"file:{folder}/results",
                   "-kernel", self._image, "-initrd", folder + "/initramfs",
                   "-append", f"{COMMAND_LINE} tsc_early_khz={time_stamp_khz()}"]
        began, boot_s, lines = time.monotonic(), None, []
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace") as qemu:
            limit = Limit(qemu, BOOT_LIMIT_S, "it had not booted")
            try:
                for line in qemu.stdout:
                    if boot_s is None and line.startswith("guest: up"):
                        boot_s = time.monotonic() - began
                        limit.cancel()
                        limit = Limit(qemu, seconds, "its script was running")
                    lines.append(line)
                    sys.stdout.write(line)
                    sys.stdout.flush()
            except BaseException:
                qemu.kill()
                raise
            finally:
                limit.cancel()
        return "".join(lines), boot_s, limit.why


class Limit:
    """Ends a process after so many seconds. `why`: how the process ended."""

    def __init__(self, process, seconds, doing):
        self.why = "it ended by itself"
        self._timer = threading.Timer(seconds, self._end, (process, f"{doing} after {seconds} s"))
        self._timer.start()

    def _end(self, process, why):
        self.why = why
        process.kill()

    def cancel(self):
        self._timer.cancel()


def _result(archive, boot_s):
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as files:
        content = {entry.name: files.extractfile(entry).read() for entry in files if entry.isfile()}
    prefix = "results/"
    return Result(int(content["status"]), content["output"].decode(errors="replace"),
                  content["dmesg"].decode(errors="replace"),
                  {name[len(prefix):]: data for name, data in content.items() if name.startswith(prefix)}, boot_s)
