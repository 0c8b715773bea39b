# SPDX-License-Identifier: Apache-2.0
"""Writes the file system that a guest starts with: a cpio archive in the kernel's "newc" format.

Written here and not by cpio(1): device nodes then need no root, and nothing has to be laid out in a folder first.
"""

import os
import re
import stat
import subprocess
import tempfile

# As on the host, whose libraries are found by these paths.
MERGED = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
FOLDERS = ("dev", "etc", "proc", "root", "run", "sys", "tmp", "var/tmp")
CONSOLE = (5, 1)  # the kernel opens it for the first process, before anything is mounted on /dev


class Initramfs:
    def __init__(self):
        self._entries = {}  # path without leading slash -> (mode, data, device)
        for link, target in MERGED.items():
            self._folder(target)
            self._entries[link] = (stat.S_IFLNK | 0o777, target.encode(), (0, 0))
        for folder in FOLDERS:
            self._folder(folder)
        self._entries["dev/console"] = (stat.S_IFCHR | 0o600, b"", CONSOLE)

    def add(self, path, data, mode=0o644):
        """A file with this content (bytes)."""
        folder, name = os.path.split(path)
        folder = os.path.realpath(folder).lstrip("/")  # through /lib -> usr/lib
        self._folder(folder)
        self._entries[os.path.join(folder, name)] = (stat.S_IFREG | mode, data, (0, 0))

    def add_file(self, host, path=None):
        """A file of the host's, at the same path if none is given."""
        with open(host, "rb") as file:
            self.add(path or os.path.abspath(host), file.read(), stat.S_IMODE(os.stat(host).st_mode) | 0o400)

    def add_program(self, host, path=None):
        """A program or a shared library of the host's with all that it loads, without debugging information (half of
        what would have to be unpacked in the guest)."""
        self.add(path or os.path.abspath(host), stripped(host), 0o755)
        for library in libraries_of(host):
            self.add(library, stripped(library), 0o755)

    def _folder(self, path):
        while path and path not in self._entries:
            self._entries[path] = (stat.S_IFDIR | 0o755, b"", (0, 0))
            path = os.path.dirname(path)

    def write(self, path):
        with open(path, "wb") as file:
            for number, name in enumerate(sorted(self._entries), start=1):  # folders before what is in them
                mode, data, device = self._entries[name]
                _write_entry(file, number, name, mode, data, device)
            _write_entry(file, 0, "TRAILER!!!", 0, b"", (0, 0))


def _write_entry(file, number, name, mode, data, device):
    encoded = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (number, mode, 0, 0, links, 0, len(data), 0, 0, *device, len(encoded), 0)
    header = b"070701" + b"".join(b"%08x" % field for field in fields) + encoded
    file.write(header + bytes(-len(header) % 4) + data + bytes(-len(data) % 4))


def libraries_of(program):
    """Paths of the libraries that a program or library loads, and of its loader; none where it is static."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    if said.returncode != 0:
        return []
    return re.findall(r"(?:=> |^\s+)(/\S+) \(0x", said.stdout, re.MULTILINE)


def stripped(path):
    """The content of an ELF file without its debugging information."""
    with open(path, "rb") as file:
        content = file.read()
    if b".debug_info" not in content:
        return content
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["objcopy", "--strip-debug", path, folder + "/stripped"], check=True)
        with open(folder + "/stripped", "rb") as file:
            return file.read()
