# SPDX-License-Identifier: Apache-2.0
"""Real recordings, read by us and by perf: each sample the same, field by field.

Without the recordings (recordings.py says where they are), and without perf, the tests are skipped.
"""

import collections
import re
import shutil
import subprocess
import sys
import unittest

from recordings import printed, recordings

FIELDS = {  # as perf script prints them, in its order
    "addr": r"\s+(?P<addr>[0-9a-f]+)",
    "data_src": r"\s+(?P<data_src>[0-9a-f]+) \|OP.*?\|BLK\s+\S+",
    "weight": r"\s+(?P<weight>\d+)",
    "ip": r"\s+(?P<ip>[0-9a-f]+)",
    "dso": r"\s+\((?P<dso>.*)\)",
}


def ours(name):
    return printed(recordings() / name)


def perf(name, fields, *more):
    if shutil.which("perf") is None:
        raise unittest.SkipTest("perf is not there")
    command = ["perf", "script", "--ns", "-i", recordings() / name, "-F", ",".join(fields), *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


def samples_of(text, fields):
    """Returns perf's output, one sample a line."""
    cpu = r"\s+\[(?P<cpu>\d+)\]" if "cpu" in fields else ""
    pattern = re.compile(r"\s*(?P<comm>.+?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)" + cpu +
                         r"\s+(?P<time>[\d.]+):\s+(?P<period>\d+)\s+(?P<event>\S+):" +
                         "".join(FIELDS[field] for field in FIELDS if field in fields) + r"\s*")
    for line in text.splitlines():
        match = pattern.fullmatch(line)
        if match is None:
            raise AssertionError(f"perf prints what is not understood: {line}")
        sample = match.groupdict()
        sample["time"] = sample["time"].replace(".", "").lstrip("0")
        if "cpu" in sample:
            sample["cpu"] = str(int(sample["cpu"]))
        yield sample


TASK = ["comm", "pid", "tid", "time", "period", "event", "ip"]


class Recordings(unittest.TestCase):
    def compare(self, name, fields, count):
        mine = ours(name)
        theirs = list(samples_of(perf(name, fields), fields))
        self.assertEqual(len(theirs), count)
        for field in fields:
            with self.subTest(field=field):
                self.assertEqual([sample[field] for sample in mine], [sample[field] for sample in theirs])
        for field in {"event", "comm", "dso"} & set(fields):
            with self.subTest(total=field):
                self.assertEqual(collections.Counter(sample[field] for sample in mine),
                                 collections.Counter(sample[field] for sample in theirs))

    def test_load_latencies_with_weights_in_parts(self):
        fields = [*TASK, "cpu", "addr", "data_src", "weight", "dso"]
        self.compare("pebs-load-latency-weight-struct.data", fields, 14)
        levels = collections.Counter((int(sample["data_src"], 16) >> 5) & 0x3fff
                                     for sample in ours("pebs-load-latency-weight-struct.data"))
        hit, l1, lfb, l2, l3 = 2, 8, 16, 32, 64  # PERF_MEM_LVL_*
        self.assertEqual(levels, {hit | lfb: 5, hit | l1: 4, hit | l2: 1, hit | l3: 4})
        self.assertEqual(len({sample["tid"] for sample in ours("pebs-load-latency-weight-struct.data")}), 12)

    def test_loads_of_an_old_perf(self):
        self.compare("pebs-mem-load-2015.data", [*TASK, "addr", "data_src", "weight", "dso"], 14)

    def test_two_kinds_of_processors(self):
        self.compare("hybrid-topology.data", [*TASK, "dso"], 7)

    def test_a_pipe(self):
        self.compare("pipe-ctx-switch-6.12.data", [*TASK, "dso"], 9)

    def test_a_compressed_pipe(self):
        self.compare("compressed-pipe.data", [*TASK, "dso"], 8)

    def test_call_chains(self):
        name = "callgraph-3.8.data"
        fields = [*TASK, "cpu"]
        mine = ours(name)
        blocks = perf(name, fields, "--no-inline", "--max-stack", "1000").split("\n\n")
        theirs = [block for block in blocks if block.strip()]
        self.assertEqual(len(theirs), 1768)
        self.assertEqual(len(mine), 1768)
        fields.remove("ip")
        heads = list(samples_of("\n".join(block.splitlines()[0] for block in theirs), fields))
        for field in fields:
            with self.subTest(field=field):
                self.assertEqual([sample[field] for sample in mine], [sample[field] for sample in heads])
        self.assertEqual([sample["chain"].split(",") for sample in mine],
                         [[line.strip() for line in block.splitlines()[1:]] for block in theirs])

    def test_a_compressed_file(self):
        """perf 6.1 refuses it; another recording of the same program on the same machine is the one of the pipe."""
        mine = ours("compressed-file.data")
        self.assertEqual(len(mine), 8)
        self.assertEqual({sample["event"] for sample in mine}, {"cycles:P"})
        self.assertEqual([sample["time"] for sample in mine], sorted(sample["time"] for sample in mine))
        other = ours("compressed-pipe.data")
        self.assertEqual([sample["comm"] for sample in mine], [sample["comm"] for sample in other])
        self.assertEqual([sample["ip"] for sample in mine][0], other[0]["ip"])

    def test_the_second_kind_of_compression(self):
        """perf 6.1 cannot read it."""
        mine = ours("cycles-pipe-compressed2.data")
        self.assertEqual(len(mine), 547)
        self.assertEqual(sum(sample["addr"] != "0" for sample in mine), 257)
        not_available = 0x5080021
        self.assertEqual({int(sample["data_src"], 16) for sample in mine}, {not_available})
        self.assertEqual({sample["event"] for sample in mine}, {"cycles:P"})
        times = [int(sample["time"]) for sample in mine]
        self.assertEqual(times, sorted(times))


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    everything = result.testsRun > 0 and len(result.skipped) == result.testsRun
    sys.exit(77 if everything else not result.wasSuccessful())
