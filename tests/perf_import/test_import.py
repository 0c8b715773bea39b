# SPDX-License-Identifier: Apache-2.0
"""`crosstalk import`: what is in the profile is what is in the recording, and the report says what is not."""

import collections
import gzip
import json
import os
import pathlib
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import make_recording

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "perf_data"))
from recordings import printed, recordings  # noqa: E402

CROSSTALK = os.environ["CROSSTALK"]
RECORDINGS = {  # and how many samples there are
    "callgraph-3.8.data": 1768,
    "compressed-file.data": 8,
    "compressed-pipe.data": 8,
    "cycles-pipe-compressed2.data": 547,
    "hybrid-topology.data": 7,
    "pebs-load-latency-weight-struct.data": 14,
    "pebs-mem-load-2015.data": 14,
    "pipe-ctx-switch-6.12.data": 9,
}
IN_KERNEL, ACCESSES, CYCLES = 1, 1, 3
UNKNOWN_CPU = 65535


def number(text, base=10):
    """As columns of a profile have it: unsigned in signed, 0 as nothing."""
    value = 0 if text == "-" else int(text, base)
    return (value - (1 << 64) if value >= 1 << 63 else value) or None


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.profile = self.folder / "run.db"

    def crosstalk(self, *arguments, status=0):
        done = subprocess.run([CROSSTALK, *arguments], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def made(self, samples):
        path = self.folder / "perf.data"
        path.write_bytes(make_recording.recording(samples))
        return path

    def report(self):
        return json.loads(self.crosstalk("report", "--format", "json", self.profile).stdout)

    def rows(self, sql):
        database = sqlite3.connect(self.profile)
        self.addCleanup(database.close)
        return database.execute(sql).fetchall()


SAMPLES = """
  SELECT tid, sample.time + base.value, sample.address, sample.cpu, flags & 1,
         coalesce(weight, sample.cpu_ns), latency_cycles, data_source, ip, unit,
         (SELECT path FROM module WHERE module.process = thread.process AND ip >= begin AND ip < end
            AND loaded_ns <= sample.time + base.value
            AND (unloaded_ns IS NULL OR unloaded_ns > sample.time + base.value) ORDER BY loaded_ns DESC LIMIT 1)
  FROM sample JOIN thread ON thread.id = sample.thread JOIN meta base ON base.key = 'time_base_ns'
       LEFT JOIN sample_measurement ON sample_measurement.sample = sample.rowid ORDER BY sample.rowid"""


EVENTS = """
  SELECT event.name, call_chain.addresses FROM sample
         LEFT JOIN sample_measurement ON sample_measurement.sample = sample.rowid
         LEFT JOIN event ON event.id = sample_measurement.event
         LEFT JOIN call_chain ON call_chain.id = sample_measurement.call_chain ORDER BY sample.rowid"""
IN_PAGE = 0xfff


def calls_of(packed):
    """As docs/profile-schema.md says it."""
    addresses, number, shift, previous = [], 0, 0, 0
    for byte in packed or b"":
        number |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            previous = (previous + (number >> 1 if number % 2 == 0 else ~(number >> 1))) % (1 << 64)
            addresses.append(previous)
            number = shift = 0
    return addresses


def user_calls(chain):
    """The printer has addresses of files where there are some, which agree within a page, and does not say which high
    ones are the kernel's: frame pointers that are none lead to such places in user mode, too."""
    words = [int(text, 16) for text in chain.split(",") if text not in ("", "-")]
    return [word & IN_PAGE for word in words if 0 < word < 1 << 63]


class Recordings(Case):
    def check_events(self, theirs, report):
        for (name, calls), sample in zip(self.rows(EVENTS), theirs):
            self.assertEqual(name, sample["event"])
            low = [address & IN_PAGE for address in calls_of(calls) if address < 1 << 63]
            self.assertEqual(low, user_calls(sample["chain"]))
        counts = collections.Counter(sample["event"] for sample in theirs)
        told = {event["name"]: event["samples"] for event in report["sampling"]["events"] if event["samples"]}
        self.assertEqual(told, counts)

    def check(self, name):
        path = recordings() / name
        self.crosstalk("import", "-q", path, "-o", self.profile)
        theirs = printed(path)
        mine = self.rows(SAMPLES)
        self.assertEqual(len(theirs), RECORDINGS[name])
        self.assertEqual(len(mine), len(theirs))
        for row, sample in zip(mine, theirs):
            tid, when, address, cpu, in_kernel, weight, latency, source, ip, _, module = row
            self.assertEqual((tid, when), (int(sample["tid"]), int(sample["time"])))
            self.assertEqual(address, number(sample["addr"], 16))
            self.assertEqual(cpu, UNKNOWN_CPU if sample["cpu"] == "-" else int(sample["cpu"]))
            self.assertEqual(weight, int(sample["period"]))
            self.assertEqual((latency, source), (number(sample["weight"]), number(sample["data_src"], 16)))
            if not in_kernel:
                self.assertEqual(ip or None, number(sample["ip"], 16))
                self.assertEqual(module if module else "", sample["dso"] if sample["dso"].startswith("/") and
                                 not sample["dso"].startswith("//") else "")
        counts = collections.Counter(int(sample["tid"]) for sample in theirs)
        self.assertEqual(dict(self.rows("SELECT tid, sum(samples) FROM thread GROUP BY tid HAVING sum(samples) > 0")), counts)
        report = self.report()
        self.assertEqual(report["sampling"]["samples"], len(theirs))
        self.assertEqual(report["communication"]["cells"], [])
        self.assertIsNone(report["sampling"]["overhead"]["fraction"])
        self.check_events(theirs, report)
        codes = [warning["code"] for warning in report["warnings"]]
        self.assertIn("imported", codes)
        self.assertLessEqual(codes.count("missing_symbols"), 4)
        self.check_absent(report)
        self.crosstalk("report", self.profile)
        return report

    def check_absent(self, report):
        """Data that perf's recording lacks is not 0."""
        sampling = report["sampling"]
        self.assertEqual(set(sampling["settings"].values()), {None})
        self.assertEqual(set(sampling["overhead"].values()), {None})
        self.assertIn("recording of perf", sampling["settings_unknown"])
        self.assertEqual(self.rows("SELECT key FROM meta WHERE key LIKE 'config.%'"), [])
        self.crosstalk("report", "--format", "csv", self.profile)

    def test_load_latencies_with_weights_in_parts(self):
        report = self.check("pebs-load-latency-weight-struct.data")
        self.assertEqual({row[9] for row in self.rows(SAMPLES)}, {ACCESSES})
        self.assertEqual([(event["name"], event["unit"], event["samples"]) for event in report["sampling"]["events"]],
                         [("MEM_TRANS_RETIRED.LOAD_LATENCY:ldlat=64:precise=2:mh:mg:pinned", "accesses", 14),
                          ("dummy:HG", "occurrences", 0)])  # by which perf itself records what is mapped
        self.assertEqual(report["machine"]["cpu_model"], "Intel(R) Xeon(R) Platinum 8173M CPU @ 2.00GHz")

    def test_loads_of_an_old_perf(self):
        self.check("pebs-mem-load-2015.data")
        self.assertEqual({row[9] for row in self.rows(SAMPLES)}, {ACCESSES})

    def test_two_kinds_of_processors(self):
        self.check("hybrid-topology.data")

    def test_a_pipe(self):
        self.check("pipe-ctx-switch-6.12.data")

    def test_a_compressed_pipe(self):
        self.check("compressed-pipe.data")

    def test_a_compressed_file(self):
        self.check("compressed-file.data")

    def test_the_second_kind_of_compression(self):
        self.check("cycles-pipe-compressed2.data")

    def test_cycles_are_time_at_the_nominal_frequency(self):
        report = self.check("callgraph-3.8.data")
        cycles = sum(row[5] for row in self.rows(SAMPLES))
        self.assertEqual({row[9] for row in self.rows(SAMPLES)}, {CYCLES})
        seconds = sum(thread["cpu_s"] or 0 for thread in report["threads"])
        self.assertAlmostEqual(seconds, cycles / 1.6e9, delta=0.001 * seconds)
        self.assertIn("times_from_cycles", [warning["code"] for warning in report["warnings"]])


SANITIZED = os.environ.get("CROSSTALK_SANITIZED") == "1"


class Made(Case):
    def test_loads_and_stores(self):
        self.crosstalk("import", self.made(30_000), "-o", self.profile)
        rows = self.rows("SELECT access, count(*), sum(access_offset = 0) FROM sample GROUP BY access")
        self.assertEqual(rows, [(1, 22_500, 22_500), (2, 7_500, 7_500)])
        self.assertEqual(self.rows("SELECT DISTINCT source, unit, weight FROM sample_measurement"), [(1, 1, 1000)])
        times = [row[0] for row in self.rows("SELECT time FROM sample ORDER BY rowid")]
        self.assertEqual(times, sorted(times))
        self.assertEqual(self.rows("SELECT name, count(*) FROM thread GROUP BY name"), [("program", 8)])
        self.assertEqual(self.rows("SELECT begin, end, bias, path FROM module"),
                         [(0x400000, 0x410000, 0, "/nowhere/program")])

    def test_standard_input(self):
        with open(self.made(1000), "rb") as recording:
            done = subprocess.run([CROSSTALK, "import", "-", "-o", self.profile], stdin=recording, check=False)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.rows("SELECT count(*) FROM sample"), [(1000,)])

    def test_many_samples_are_all_there(self):
        samples = 100_000 if SANITIZED else 1_000_000
        path = self.made(samples)
        begin = time.monotonic()
        self.crosstalk("import", "-q", path, "-o", self.profile)
        seconds = time.monotonic() - begin
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{seconds:.2f} s, {usage.ru_utime + usage.ru_stime:.2f} s of CPU time, "
              f"{usage.ru_maxrss / 1024:.0f} MiB", file=sys.stderr)
        self.assertEqual(self.rows("SELECT count(*) FROM sample"), [(samples,)])
        if not SANITIZED:  # which takes several times the memory
            self.assertLess(usage.ru_maxrss, 1 << 20)

    def test_a_recording_that_was_cut_off_is_imported_as_far_as_it_goes(self):
        whole = bytearray(make_recording.recording(1000))
        whole[48:56] = bytes(8)  # the size of the data, which perf writes at its end
        path = self.folder / "perf.data"
        path.write_bytes(whole[:10_000])
        done = self.crosstalk("import", path, "-o", self.profile)
        self.assertIn("perf did not end in an orderly way", done.stderr)
        self.assertGreater(self.rows("SELECT count(*) FROM sample")[0][0], 50)
        self.assertIn("incomplete_profile", [warning["code"] for warning in self.report()["warnings"]])


class Refused(Case):
    def refuse(self, path, *words, status=1):
        done = self.crosstalk("import", path, "-o", self.profile, status=status)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in ("crosstalk: ", *words):
            self.assertIn(word, done.stderr)

    def test_a_file_that_is_not_there(self):
        self.refuse(self.folder / "nothing", "No such file")
        self.assertFalse(self.profile.exists())

    def test_a_file_of_another_kind(self):
        path = self.folder / "text"
        path.write_text("this is no recording of perf, but long enough to be one")
        self.refuse(path, "does not begin with PERFILE2")
        path.write_bytes(gzip.compress(b"PERFILE2" + bytes(range(200))))
        self.refuse(path, "it is packed; unpack it first: gunzip")
        self.refuse(self.folder, "is a directory")
        self.refuse("/dev/null", "no regular file")
        self.assertFalse(self.profile.exists())

    def test_damage_is_named_and_the_profile_that_was_there_stays(self):
        self.crosstalk("import", "-q", self.made(100), "-o", self.profile)
        before = self.profile.read_bytes()
        damaged = bytearray(make_recording.recording(100))
        at = damaged.index(make_recording.SAMPLE.pack(9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)[:4] + b"\x02\x40", 240)
        damaged[at + 6] = 24  # its size
        path = self.folder / "damaged.data"
        path.write_bytes(damaged)
        self.refuse(path, f"at offset {at:#x}, record SAMPLE")
        self.assertEqual(self.profile.read_bytes(), before)
        self.assertEqual([file.name for file in self.folder.glob("run.db*")], ["run.db"])

    def test_slips_are_corrected(self):
        done = self.crosstalk("improt", status=125)
        self.assertIn("did you mean 'import'?", done.stderr)
        done = self.crosstalk("import", "--ouput", "x", "y", status=125)
        self.assertIn("did you mean '--output'?", done.stderr)
        self.crosstalk("import", status=125)


def main():
    result = unittest.main(exit=False).result
    everything = result.testsRun > 0 and len(result.skipped) == result.testsRun
    sys.exit(77 if everything else not result.wasSuccessful())


if __name__ == "__main__":
    main()
