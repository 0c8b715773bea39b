# SPDX-License-Identifier: Apache-2.0
"""Runs a program under the emulator with the counting plugin and gives its reference (docs/reference.md)."""

import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile

SCHEMA = "crosstalk.reference/1"
EMULATOR = "qemu-x86_64"
TOP = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILT = os.environ.get("CROSSTALK_REFERENCE", os.path.join(TOP, "build", "release", "tests", "reference"))

X86_64 = 62         # e_machine
PT_INTERP = 3
REFUSED, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127


class ReferenceError(Exception):
    """One line for people, and the exit status that goes with it."""

    def __init__(self, message, status=REFUSED):
        super().__init__(message)
        self.status = status


def built(name):
    path = os.path.join(BUILT, name)
    if not os.path.exists(path):
        raise ReferenceError(f"{path} is not there; build it with ./dev build")
    return path


def emulator():
    path = shutil.which(EMULATOR)
    if path is None:
        raise ReferenceError(f"{EMULATOR} is not installed; install Debian's package qemu-user (./dev deps test)")
    return path


def program_headers(head):
    """Types of an ELF file's program headers, from its first bytes."""
    (offset,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    ends = (offset + n * size for n in range(count))
    return [struct.unpack_from("<I", head, at)[0] for at in ends if at + 4 <= len(head)]


def check_binary(path):
    """Raises for what the emulator or crosstalk cannot run: no x86-64 program, or a static one."""
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise ReferenceError(f"{path} cannot be read: {error.strerror}", NOT_EXECUTABLE) from error
    if head[:4] != b"\x7fELF" or len(head) < 64:
        raise ReferenceError(f"{path} is no ELF program; for a script, give its interpreter and then the script")
    (machine,) = struct.unpack_from("<H", head, 18)
    if head[4] != 2 or machine != X86_64:
        raise ReferenceError(f"{path} is for another architecture (ELF machine {machine}, "
                             f"{32 * head[4]} bits); the reference runs x86-64 programs")
    if PT_INTERP not in program_headers(head):
        raise ReferenceError(f"{path} is linked statically, so crosstalk cannot record it; link it dynamically")


def find_program(name):
    path = shutil.which(name)
    if path is not None:
        return path
    if os.path.sep in name and os.path.exists(name):
        raise ReferenceError(f"{name} cannot be executed: it is no executable file", NOT_EXECUTABLE)
    raise ReferenceError(f"there is no program '{name}'", NOT_FOUND)


def plugin_options(raw, quantum, seed, memory_mib):
    return f"{built('libcrosstalk_reference_plugin.so')},out={raw},quantum={quantum},seed={seed},memory={memory_mib << 20}"


def emulated(command, raw, quantum, seed, memory_mib, heap):
    """The command line that runs `command` under the emulator."""
    preload = built("libcrosstalk_reference_heap.so")
    already = os.environ.get("LD_PRELOAD")
    notes = ["-E", "LD_PRELOAD=" + (preload if not already else f"{preload}:{already}")] if heap else []
    # "max": every extension that the emulator has, so that libraries choose the code that they choose on processors
    # of today.
    return [emulator(), "-cpu", "max", *notes, "-plugin", plugin_options(raw, quantum, seed, memory_mib), *command]


def why_no_counts(name, raw, returncode):
    """The line that explains a run without counts."""
    noted = ""
    if os.path.exists(raw):
        with open(raw, encoding="utf-8", errors="replace") as file:
            noted = file.readline().rstrip("\n")
    if noted.startswith("error "):
        return noted[len("error "):]
    if returncode == -signal.SIGILL:
        return (f"{name} executed an instruction that the emulated processor does not know (AVX-512 or newer?); "
                "build or run it without")
    if returncode < 0:
        return (f"{name} was ended by signal {-returncode} ({signal.Signals(-returncode).name}), which leaves no counts; "
                "a reference needs a program that ends by itself")
    return (f"{name} ended with status {returncode} and left no counts; a program that replaces itself (exec) "
            "has to be given as what it becomes; an emulator that refuses the plugin has said so above")


def make_reference(command, quantum=100, seed=1, memory_mib=4096, heap=True, rows=1000, timeout=None, stdout=None):
    """Runs `command` and returns its reference (a dictionary). `stdout`: where the program's goes."""
    command = [find_program(command[0]), *command[1:]]
    check_binary(command[0])
    with tempfile.TemporaryDirectory(prefix="crosstalk-reference-") as folder:
        raw, meaning = os.path.join(folder, "raw"), os.path.join(folder, "json")
        line = emulated(command, raw, quantum, seed, memory_mib, heap)
        with subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=stdout) as process:
            try:
                returncode = process.wait(timeout)
            except subprocess.TimeoutExpired as error:
                process.kill()
                raise ReferenceError(f"{command[0]} did not end within {timeout} s; give it less to do") from error
            except BaseException:
                process.kill()
                raise
        resolver = built("crosstalk-reference-resolve")
        resolved = subprocess.run([resolver, raw, meaning, str(rows)], check=False, capture_output=True, text=True)
        if resolved.returncode != 0:
            raise ReferenceError(why_no_counts(command[0], raw, returncode))
        with open(meaning, encoding="utf-8") as file:
            result = json.load(file)
    result["command"] = command
    result["exit_status"] = 128 - returncode if returncode < 0 else returncode
    return result


def load_reference(path):
    try:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
    except OSError as error:
        raise ReferenceError(f"the reference {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ReferenceError(f"{path} is no reference: it is not JSON ({error})") from error
    if not isinstance(result, dict) or result.get("schema") != SCHEMA:
        found = result.get("schema") if isinstance(result, dict) else None
        raise ReferenceError(f"{path} is no reference: its schema is {found!r}, not '{SCHEMA}'")
    return result
