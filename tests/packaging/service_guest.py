# SPDX-License-Identifier: Apache-2.0
"""A guest that runs Debian 12 under systemd: Debian's kernel in qemu, a disk made of debian_root's archive, and an agent
that runs scripts, which come by the second serial port.

    with ServiceGuest(packages, prepare) as guest:    # prepare(folder): puts files into the disk's folder
        guest.run("systemctl is-system-running", 60)  # (status, output)

It is emulated, as all guests of the tests are, and takes minutes to boot."""

import base64
import collections
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import debian_root

sys.path.insert(0, str(debian_root.ROOT / "tests" / "kernel"))
import debian_kernel  # noqa: E402
import machine  # noqa: E402
from initramfs import Initramfs  # noqa: E402

BOOT_LIMIT_S = 900
ANSWER_LIMIT_S = 120  # beyond a script's own limit
DISK_MB = 2048
KIND = machine.Kind(memory_mb=1024)

INIT = b"""#!/usr/bin/busybox sh
/usr/bin/busybox --install -s /usr/bin
mount -t devtmpfs devtmpfs /dev
while read -r module; do insmod "/modules/$module.ko"; done </modules/order
mkdir /new
until mount -t ext4 /dev/vda /new; do sleep 1; done
umount /dev
exec switch_root /new /sbin/init
"""
AGENT = """#!/bin/bash
stty -F /dev/ttyS1 raw -echo
exec 3<>/dev/ttyS1
echo up >&3
while read -r -u 3 number seconds script; do
  base64 -d <<<"$script" >/run/agent.script
  timeout --kill-after=5 "$seconds" bash /run/agent.script >/run/agent.output 2>&1 </dev/null 3>&-
  echo "done $number $? $(base64 -w 0 </run/agent.output)" >&3
done
"""
UNIT = """[Unit]
Description=runs the tests' scripts
[Service]
ExecStart=/usr/local/sbin/agent
[Install]
WantedBy=multi-user.target
"""


class ServiceGuest:
    """Boots when it is made; `boot_s`: how long that took."""

    def __init__(self, packages, prepare):
        try:
            machine.check_available(KIND)
            image, modules = debian_kernel.image(), debian_kernel.disk_modules()
        except debian_kernel.Unavailable as reason:
            raise debian_root.Unavailable(str(reason)) from reason
        self._number, self._console = 0, collections.deque(maxlen=machine.CONSOLE_LINES)
        # pylint: disable-next=consider-using-with
        self._folder = tempfile.TemporaryDirectory(prefix="guest-", dir=debian_root.FOLDER)
        try:
            disk = self._make_disk(packages, prepare)
            self._start(image, self._make_initramfs(modules), disk)
            began = time.monotonic()
            self._answer("up", BOOT_LIMIT_S)
            self.boot_s = time.monotonic() - began
        except BaseException:
            self.close()
            raise

    def _make_disk(self, packages, prepare):
        disk = os.path.join(self._folder.name, "disk")
        with debian_root.Folder(packages) as root:
            for path, text, mode in (("usr/local/sbin/agent", AGENT, 0o755), ("etc/systemd/system/agent.service", UNIT, 0o644),
                                     ("etc/hostname", "guest\n", 0o644)):
                target = root.path / path
                target.write_text(text, encoding="ascii")
                target.chmod(mode)
            root.run("systemctl enable agent.service; systemctl mask apt-daily.timer apt-daily-upgrade.timer")
            prepare(root)
            debian_root.said("mke2fs", "-q", "-t", "ext4", "-d", root.path, disk, f"{DISK_MB}M")
        return disk

    def _make_initramfs(self, modules):
        files = Initramfs()
        files.add_file(machine.BUSYBOX, "/usr/bin/busybox")
        files.add("/init", INIT, 0o755)
        files.add("/modules/order", "".join(pathlib.Path(path).stem + "\n" for path in modules).encode())
        for path in modules:
            files.add("/modules/" + os.path.basename(path), pathlib.Path(path).read_bytes())
        path = os.path.join(self._folder.name, "initramfs")
        files.write(path)
        return path

    def _start(self, image, initramfs, disk):
        self._control, its = socket.socketpair()
        command = ["setpriv", "--pdeathsig", "KILL", "--", machine.QEMU, "-accel", "tcg,thread=multi",
                   "-cpu", machine.PROCESSORS[KIND.processor], "-smp", str(KIND.processors),
                   "-m", str(KIND.memory_mb), "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                   "-serial", "stdio", "-chardev", f"socket,id=control,fd={its.fileno()}", "-serial", "chardev:control",
                   "-drive", f"file={disk},if=none,id=disk,format=raw,cache=unsafe", "-device", "virtio-blk-pci,drive=disk",
                   "-kernel", image, "-initrd", initramfs, "-append",
                   f"{machine.COMMAND_LINE} tsc_early_khz={machine.time_stamp_khz()}"]
        # pylint: disable-next=consider-using-with
        self._qemu = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, errors="replace", pass_fds=[its.fileno()])
        its.close()
        self._reader = threading.Thread(target=lambda: self._console.extend(self._qemu.stdout), daemon=True)
        self._reader.start()

    def run(self, script, seconds=60):
        """Runs a script of bash as root; returns its status (124: it took longer) and what it printed."""
        self._number += 1
        encoded = base64.b64encode(script.encode()).decode()
        self._control.sendall(f"{self._number} {seconds} {encoded}\n".encode())
        status, output = (self._answer(f"done {self._number} ", seconds + ANSWER_LIMIT_S).split(" ") + [""])[:2]
        return int(status), base64.b64decode(output).decode(errors="replace")

    def _answer(self, beginning, seconds):
        """The rest of the agent's line, which must begin so."""
        end, got = time.monotonic() + seconds, b""
        while not got.endswith(b"\n"):
            self._control.settimeout(max(0.01, end - time.monotonic()))
            try:
                part = self._control.recv(65536)
            except TimeoutError:
                part = b""
            if not part:
                raise machine.GuestError(f"the guest did not answer within {seconds} s, or ended; its console:\n" + "".join(self._console))
            got += part
        line = got.decode(errors="replace").strip("\r\n")
        if not line.startswith(beginning.strip()):
            raise machine.GuestError(f"it answered {line[:200]!r} and not {beginning!r}; its console:\n" + "".join(self._console))
        return line.removeprefix(beginning).strip()

    def close(self):
        if hasattr(self, "_qemu"):
            self._qemu.kill()
            self._qemu.wait()
            self._reader.join(5)
            self._qemu.stdout.close()
            self._control.close()
        self._folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def copy_program(root, path):
    """Puts a program of the build into the folder's /usr/local/bin."""
    shutil.copy(path, root.path / "usr/local/bin" / os.path.basename(path))
