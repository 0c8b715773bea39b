# SPDX-License-Identifier: Apache-2.0
"""Names in imported recordings are those of the files that were recorded, or there are none."""

import json
import os
import shutil
import struct
import subprocess
import unittest

import make_recording
from make_recording import file_of, record, sized, text
from test_import import Case

IP, TID, TIME, ID, CPU, PERIOD = (1 << bit for bit in (0, 1, 2, 6, 7, 8))
MS = 1_000_000
BASE = 0x7F0000000000
SOURCE = """
volatile unsigned long sink;
#define F(n, e) __attribute__((noinline, aligned(4096))) void n(unsigned long k) { for (unsigned long i = 0; i < k; i++) sink += e; }
F(early, i * 7) F(one, i * i) F(between, i * k) F(two, i * 3)
"""
# As lld and mold lay files out: the code's address is not its offset in the file.
LAYOUT = """
SECTIONS { . = SIZEOF_HEADERS; .hash : {*(.hash)} .gnu.hash : {*(.gnu.hash)} .dynsym : {*(.dynsym)} .dynstr : {*(.dynstr)}
 .rela.dyn : {*(.rela.dyn)} .note.gnu.build-id : {*(.note.gnu.build-id)} .eh_frame : {*(.eh_frame)}
 . = ALIGN(0x1000); .text 0x3000 : AT(0x1000) { *(.text .text.*) }
 . = ALIGN(0x1000); .dynamic : {*(.dynamic)} .got : {*(.got*)} .data : {*(.data*)} .bss : {*(.bss*) *(COMMON)} }
"""


def attribute(kind=1, config=0):  # the clock of the processor
    packed = struct.pack("<IIQQQQQ", kind, 112, config, MS, IP | TID | TIME | ID | CPU | PERIOD, 0, 1 << 18)
    return packed + bytes(112 - len(packed))


def identity(when):
    return make_recording.IDENTITY.pack(100, 100, when, 1, 0, 0)


def comm(name):
    return record(3, 1 << 13, struct.pack("<II", 100, 100) + text(name) + identity(1))


def mapping(begin, size, offset, name, when=1, build_id=None, protection=5):
    inode = os.stat(name).st_ino if os.path.exists(name) else 77
    who = struct.pack("<BBH20s", len(build_id), 0, 0, build_id) if build_id else struct.pack("<IIQQ", 8, 1, inode, 0)
    return record(10, 2 | (0x4000 if build_id else 0),
                  struct.pack("<IIQQQ", 100, 100, begin, size, offset) + who + struct.pack("<II", protection, 2) +
                  text(name) + identity(when))


def sample(address, when, period=MS):
    return record(9, 2, struct.pack("<QIIQQIIQ", address, 100, 100, when, 1, 0, 0, period))


def code_of(path):
    """Offset, address and size of the segment of code of an ELF file."""
    with open(path, "rb") as file:
        head = file.read(64)
        at, = struct.unpack_from("<Q", head, 32)
        each, count = struct.unpack_from("<HH", head, 54)
        for i in range(count):
            file.seek(at + i * each)
            kind, flags, offset, address, _, _, size, _ = struct.unpack("<IIQQQQQQ", file.read(56))
            if kind == 1 and flags & 1:
                return offset, address, size
    raise AssertionError(path)


class Identity(Case):
    def build(self, name, *options, source=SOURCE):
        path = str(self.folder / name)
        (self.folder / "source.c").write_text(source)
        (self.folder / "layout.ld").write_text(LAYOUT)
        subprocess.run(["gcc", "-O1", "-g", "-shared", "-fPIC", "-nostdlib", "-o", path, str(self.folder / "source.c"),
                        *options], check=True, capture_output=True)
        return path

    def symbols(self, path):
        lines = subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout.splitlines()
        return {line.split()[2]: int(line.split()[0], 16) for line in lines if len(line.split()) == 3}

    def map_code(self, path, name=None, **more):
        offset, address, size = code_of(path)
        low, high = address & ~4095, (address + size + 4095) & ~4095
        return mapping(BASE + low, high - low, offset & ~4095, name or path, **more)

    def imported(self, *records, features=None, events=None, status=0):
        recording = self.folder / "perf.data"
        recording.write_bytes(file_of(events or [("cpu-clock", attribute())], comm("program") + b"".join(records),
                                      features or {}))
        return self.crosstalk("import", "-q", recording, "-o", self.profile, status=status)

    def shares(self, *options):
        report = json.loads(self.crosstalk("report", "--format", "json", self.profile, *options).stdout)
        return {function["function"]: function["share"] for function in report["functions"]}

    def samples(self, symbols, one=60, two=30):
        return b"".join([sample(BASE + symbols["one"] + 8, 100 + i) for i in range(one)] +
                        [sample(BASE + symbols["two"] + 8, 300 + i) for i in range(two)])

    def test_build_ids_that_were_filled_up_or_cut(self):
        for build_id in ("1122334455667788", "0102030405060708090a0b0c0d0e0f10", "ab" * 20, "cd" * 32):
            path = self.build("lib.so", "-Wl,--build-id=0x" + build_id)
            of_perf = bytes.fromhex(build_id)[:20]
            for recorded in {of_perf, of_perf.ljust(20, b"\0")}:
                self.imported(self.map_code(path, build_id=recorded), self.samples(self.symbols(path)))
                self.assertIn("one", self.shares(), build_id)

    def test_another_build_has_no_names(self):
        path = self.build("lib.so", "-Wl,--build-id=0x1122334455667788")
        self.imported(self.map_code(path, build_id=b"\x11\x22\x33\x44\x55\x66\x77\x89"), self.samples(self.symbols(path)))
        self.assertNotIn("one", self.shares())

    def test_a_file_that_was_replaced_by_an_equal_one(self):
        path = self.build("lib.so", "-Wl,--build-id=0x1122334455667788")
        for build_id, known in ((bytes.fromhex("1122334455667788"), True), (None, False)):
            self.imported(self.map_code(path, name=path + " (deleted)", build_id=build_id),
                          self.samples(self.symbols(path)))
            self.assertEqual("one" in self.shares(), known)

    def test_a_file_that_comes_below_the_sysroot_says_where_its_code_lies(self):
        for build_id in ("0x1122334455667788", "none"):
            path = self.build("lib.so", "-Wl,--build-id=" + build_id, "-Wl,-T," + str(self.folder / "layout.ld"))
            offset, address, _ = code_of(path)
            self.assertNotEqual(offset, address)
            symbols = self.symbols(path)
            self.imported(self.map_code(path, name="/opt/app/lib.so"), self.samples(symbols))
            self.assertNotIn("one", self.shares())
            root = self.folder / "root"
            (root / "opt/app").mkdir(parents=True, exist_ok=True)
            os.rename(path, root / "opt/app/lib.so")
            shares = self.shares("--sysroot", root)
            self.assertAlmostEqual(shares["one"], 2 / 3, places=3)
            self.assertEqual(set(shares), {"one", "two"})

    def test_code_that_was_put_over_a_file_is_not_the_files(self):
        path = self.build("lib.so", "-Wl,--build-id=0x1122334455667788")
        symbols = self.symbols(path)
        self.imported(self.map_code(path, build_id=bytes.fromhex("1122334455667788")),
                      self.samples(symbols, one=10, two=0),
                      mapping(BASE + symbols["one"], 4096, 0, "//anon", when=200, protection=7),
                      b"".join(sample(BASE + symbols["one"] + 8, 300 + i) for i in range(50)),
                      b"".join(sample(BASE + symbols["two"] + 8, 400 + i) for i in range(40)))
        shares = self.shares()
        self.assertAlmostEqual(shares["one"], 0.1, places=3)
        self.assertAlmostEqual(shares["two"], 0.4, places=3)
        self.assertAlmostEqual(shares["[unknown]"], 0.5, places=3)

    def test_another_architecture_has_no_names_of_ours(self):
        path = self.build("lib.so", "-Wl,--build-id=none")
        self.imported(self.map_code(path), self.samples(self.symbols(path)), features={6: sized("aarch64")})
        self.assertNotIn("one", self.shares())

    def test_another_host_has_no_names_of_files_that_nothing_identifies(self):
        path = self.build("lib.so", "-Wl,--build-id=none")
        recorded = self.map_code(path), self.samples(self.symbols(path))
        self.imported(*recorded, features={3: sized("somewhere-else")})
        self.assertNotIn("one", self.shares())
        self.assertIn("one", self.shares("--sysroot", "/"))
        self.imported(*recorded, features={3: sized(os.uname().nodename)})
        self.assertIn("one", self.shares())

    def test_a_file_that_was_replaced_since_gives_no_names(self):
        path = self.build("lib.so", "-Wl,--build-id=none")
        recorded = self.map_code(path), self.samples(self.symbols(path))
        shutil.copy(path, path + ".new")
        os.rename(path + ".new", path)
        self.imported(*recorded, features={3: sized(os.uname().nodename)})
        self.assertNotIn("one", self.shares())
        text = self.crosstalk("report", self.profile).stdout
        self.assertIn("another file than was recorded", " ".join(text.split()))
        self.imported(*recorded, features={3: sized("somewhere-else")})
        self.assertIn("one", self.shares("--sysroot", "/"), "the user has chosen that file")

    def test_events_without_time_have_shares_of_their_own(self):
        path = self.build("lib.so", "-Wl,--build-id=none")
        self.imported(self.map_code(path), self.samples(self.symbols(path)),
                      events=[("instructions:u", attribute(kind=0, config=1))])
        report = json.loads(self.crosstalk("report", "--format", "json", self.profile).stdout)
        self.assertEqual(report["sampling"]["shares_of"], "instructions:u")
        for row in report["functions"] + report["loops"]:
            self.assertAlmostEqual(row["share"], 2 / 3 if row["function"] == "one" else 1 / 3, places=3)
            self.assertEqual((row["self_s"], row["kernel_s"]), (None, None))
        self.assertIsNone(report["cpu_s"])
        self.assertIn("67 % of the event instructions:u", " ".join(each["sentence"] for each in report["findings"]))
        text = self.crosstalk("report", self.profile).stdout
        self.assertNotIn("CPU time", text.split("Threads")[0])
        self.assertEqual(report["communication"]["undetected"]["at_most_s"], 0, "there is one thread")

    def test_a_part_of_a_copy_and_empty_features_are_read_as_far_as_they_go(self):
        path = self.build("lib.so", "-Wl,--build-id=none")
        self.imported(self.map_code(path), self.samples(self.symbols(path)), features={8: b""})
        self.assertIn("one", self.shares())
        whole = (self.folder / "perf.data").read_bytes()
        for part in (len(whole) - 20, len(whole) // 2):
            (self.folder / "part.data").write_bytes(whole[:part])
            self.crosstalk("import", "-q", self.folder / "part.data", "-o", self.profile)
            self.assertEqual([code for code, in self.rows("SELECT code FROM message WHERE code = 'recording_cut_off'")],
                             ["recording_cut_off"])


if __name__ == "__main__":
    unittest.main()
