# SPDX-License-Identifier: Apache-2.0
"""A guest that is up: Debian's kernel, booted by qemu under emulation, which runs one script after another.

A script that does not end is ended in the guest, which goes on. A guest that does not answer, or whose kernel dies, is
lost: that script and all that come after it fail at once, with the last lines of its console.
"""

import collections
import ctypes
import dataclasses
import functools
import mmap
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
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
ANSWER_LIMIT_S = 60  # beyond a script's own limit: to end it, and to copy files
CONSOLE_LINES = 60  # that are told of a lost guest

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
    """A script did not come to its end, or the guest did not: it hung, or its kernel died. The text ends with what was
    printed last."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """The configuration of a guest; tests with equal ones share a guest."""
    processor: str = "amd"
    processors: int = 2
    memory_mb: int = 1024
    root: bool = False  # the host's root file system can be mounted, by the tag "root"

    def __str__(self):
        return f"{self.processor}_{self.processors}"


@dataclasses.dataclass
class Result:
    status: int  # the script's
    output: str  # the script's output, both streams
    dmesg: str   # the kernel's log meanwhile
    files: dict  # name -> bytes, of $RESULTS

    def complaints(self):
        """Lines of the kernel's log that a sound kernel does not write."""
        return [line for line in self.dmesg.splitlines()
                if "ommand line" not in line and re.search(
                    r"WARNING:|BUG:|Oops|Call Trace|detected stall|lockup|hung_task|blocked for more|KASAN|lockdep|"
                    r"general protection|leaked|refcount_t|uaf|bad page", line)]


def check_available(kind):
    """Raises Unavailable, with the remedy, where this machine cannot have such a guest."""
    for needed in (shutil.which(QEMU) or QEMU, BUSYBOX):
        if not os.access(needed, os.X_OK):
            raise Unavailable(f"{needed} is missing: {debian_kernel.INSTALL}")
    with open("/proc/meminfo", encoding="ascii") as file:
        free_mb = int(re.search(r"MemAvailable:\s+(\d+)", file.read()).group(1)) // 1024
    if free_mb < kind.memory_mb:
        raise Unavailable(f"{free_mb} MB of memory are free, a guest takes {kind.memory_mb}: end other programs")


class Machine:
    """Boots when it is made. `boot_s`: how long that took; `boot_log`: what the kernel said meanwhile. `show`: its console is
    printed as it comes."""

    def __init__(self, kind=Kind(), answer_limit_s=ANSWER_LIMIT_S, show=True):
        check_available(kind)
        self.kind, self.present = kind, set()  # `present`: files that earlier scripts brought
        self._answer_limit_s, self._show, self._number, self._lost = answer_limit_s, show, 0, None
        self._console = collections.deque(maxlen=CONSOLE_LINES)
        image, modules = debian_kernel.image(), debian_kernel.sharing_modules()
        # pylint: disable-next=consider-using-with
        self._folder = tempfile.TemporaryDirectory(prefix="crosstalk-guest-")
        self.shared = os.path.join(self._folder.name, "shared")
        os.mkdir(self.shared)
        _write_initramfs(self._folder.name + "/initramfs", modules)
        self._start(image)
        try:
            self._boot()
        except BaseException:
            self.close()
            raise

    def _start(self, image):
        ours, its = socket.socketpair()
        self._control = ours
        shares = {"share": (self.shared, "off"), **({"root": ("/", "on")} if self.kind.root else {})}
        # However this process ends, the guest does not outlive it.
        command = ["setpriv", "--pdeathsig", "KILL", "--", QEMU, "-accel", "tcg,thread=multi",
                   "-cpu", PROCESSORS[self.kind.processor], "-smp", str(self.kind.processors), "-m", str(self.kind.memory_mb),
                   "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                   "-serial", "stdio", "-chardev", f"socket,id=control,fd={its.fileno()}", "-serial", "chardev:control",
                   "-kernel", image, "-initrd", self._folder.name + "/initramfs",
                   "-append", f"{COMMAND_LINE} tsc_early_khz={time_stamp_khz()}"]
        for tag, (path, read_only) in shares.items():
            command += ["-fsdev", f"local,id={tag},path={path},security_model=none,readonly={read_only},multidevs=remap",
                        "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
        # pylint: disable-next=consider-using-with
        self._qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, errors="replace", pass_fds=[its.fileno()])
        its.close()
        self._reader = threading.Thread(target=self._read_console, daemon=True)
        self._reader.start()

    def _read_console(self):
        for line in self._qemu.stdout:
            self._console.append(line)
            if self._show:
                sys.stdout.write(line)
                sys.stdout.flush()

    def _boot(self):
        began = time.monotonic()
        self._expect("up", BOOT_LIMIT_S, f"it had not booted after {BOOT_LIMIT_S} s")
        self.boot_s = time.monotonic() - began
        self.boot_log = self.run("exit 0", {}, 60).dmesg

    def run(self, script, files, seconds):
        """Brings the files ({path: (bytes, mode)}), runs the script, and returns what came of it; GuestError where it did
        not end within `seconds` of its start."""
        if self._lost:
            raise GuestError(f"the guest was lost before: {self._lost}")
        self._number += 1
        folder = os.path.join(self.shared, str(self._number))
        for path, (data, mode) in {**files, "/guest/script": (script.encode(), 0o644)}.items():
            _write(folder + "/files" + path, data, mode)
        self._control.sendall(f"run {self._number} {seconds}\n".encode())
        self._expect(f"done {self._number}", seconds + self._answer_limit_s, f"its script was running after {seconds} s")
        self.present.update(files)
        return self._result(folder, seconds)

    def _result(self, folder, seconds):
        try:
            said = {name: _read(os.path.join(folder, "run", name)).decode(errors="replace")
                    for name in os.listdir(folder + "/run")}
            results = folder + "/results"
            files = {name: _read(os.path.join(results, name)) for name in os.listdir(results)}
            result = Result(int(said["status"]), said["output"], said["dmesg"], files)
        except (OSError, KeyError, ValueError) as error:
            self._lose(f"the results of its script cannot be read ({error})")
        shutil.rmtree(folder)
        if "stuck" in said:
            self._lost = said["stuck"].strip()
        if "late" in said:
            tail = "\n".join(result.output.splitlines()[-CONSOLE_LINES:])
            raise GuestError(f"the script was running after {seconds} s; it printed:\n{tail}")
        return result

    def _expect(self, line, seconds, why):
        """Waits for a line of the guest's."""
        end, got = time.monotonic() + seconds, b""
        while not got.endswith(b"\n"):
            self._control.settimeout(max(0.01, end - time.monotonic()))
            try:
                got += self._control.recv(1) or self._lose("it ended by itself")
            except TimeoutError:
                self._lose(why)
            except OSError:
                self._lose("it ended by itself")
        if got.decode(errors="replace").strip() != line:
            self._lose(f"it answered {got!r} and not {line!r}")

    def _lose(self, why):
        self._qemu.kill()
        self._qemu.wait()
        self._reader.join(5)
        self._lost = f"{why}; its console:\n{''.join(self._console)}"
        raise GuestError(f"the guest was lost: {self._lost}")

    @property
    def lost(self):
        """Why no script can be run any more; None while they can."""
        return self._lost

    def pause(self):
        """Lets it answer no more, as one whose kernel hangs."""
        self._qemu.send_signal(signal.SIGSTOP)

    def close(self):
        self._lost = self._lost or "it was ended"
        self._qemu.kill()
        self._qemu.wait()
        self._reader.join(5)
        self._qemu.stdout.close()
        self._control.close()
        self._folder.cleanup()


def _write_initramfs(path, modules):
    files = Initramfs()
    files.add_file(BUSYBOX, "/usr/bin/busybox")
    files.add("/init", _read(os.path.join(HERE, "init.sh")), 0o755)
    names = [os.path.basename(module).removesuffix(".ko") for module in modules]
    files.add("/guest/modules/order", "".join(name + "\n" for name in names).encode())
    for module in modules:
        files.add("/guest/modules/" + os.path.basename(module), _read(module))
    files.write(path)


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def _write(path, data, mode):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, mode)
