# SPDX-License-Identifier: Apache-2.0
"""`crosstalk report --view memory` of imported recordings: the figures of recordings whose truth is known, those that
perf makes of the same files, and those of real recordings."""

import collections
import csv
import io
import json
import re
import shutil
import statistics
import subprocess
import sys
import unittest

import make_recording
from test_import import Case, RECORDINGS, main, printed, recordings

ROUNDS = make_recording.ROUNDS
REMOTE = ROUNDS // make_recording.REMOTE_EVERY
SECOND_STORES = ROUNDS // make_recording.SECOND_WRITER_EVERY
PERIOD = make_recording.PERIOD


class MemoryCase(Case):
    def memory(self):
        text = self.crosstalk("report", "--view", "memory", "--format", "json", self.profile).stdout
        return json.loads(text)["memory"]

    def text(self):
        return self.crosstalk("report", "--view", "memory", self.profile).stdout

    def table(self):
        text = self.crosstalk("report", "--view", "memory", "--format", "csv", self.profile).stdout
        return list(csv.DictReader(io.StringIO(text)))


class Sharing(MemoryCase):
    def setUp(self):
        super().setUp()
        self.recording = self.folder / "sharing.data"
        self.recording.write_bytes(make_recording.sharing())
        self.crosstalk("import", "-q", self.recording, "-o", self.profile)

    def test_totals_and_data_sources(self):
        memory = self.memory()
        own = collections.Counter(level for i, level in zip(range(ROUNDS), self.own_levels()))
        totals = memory["totals"]
        self.assertEqual((totals["loads"], totals["stores"]), (2 * ROUNDS + REMOTE, ROUNDS + SECOND_STORES))
        self.assertEqual((totals["hitm_local"], totals["hitm_remote"]), (ROUNDS, REMOTE))
        self.assertEqual((totals["store_hits"], totals["store_misses"], totals["store_unknown"]),
                         (ROUNDS, SECOND_STORES, 0))
        self.assertEqual(totals["locked"], SECOND_STORES)
        found = {**own, "l3": own["l3"] + ROUNDS, "remote_cache": REMOTE}
        self.assertEqual(totals["found"], found)
        self.assertEqual({row["level"]: row["samples"] for row in memory["sources"]}, found)
        self.assertEqual(totals["accesses"], PERIOD * totals["samples"])
        self.assertEqual(totals["hitm"], PERIOD * (ROUNDS + REMOTE))
        remote = next(row for row in memory["sources"] if row["level"] == "remote_cache")
        self.assertEqual((remote["latency"]["median"], remote["latency"]["samples"]), (900, REMOTE))
        cycles = PERIOD * (sum(300 + i % 100 for i in range(ROUNDS)) + 900 * REMOTE +
                           sum(10 + i % 6 for i in range(ROUNDS)))
        self.assertEqual(totals["cost_cycles"], cycles)
        self.assertAlmostEqual(totals["cost_s"], cycles / 2e9, places=9)

    @staticmethod
    def own_levels():
        while True:
            yield from (level for level in make_recording.LOADS if "hitm" not in level)

    def test_the_shared_line(self):
        memory = self.memory()
        self.assertEqual(len(memory["shared_lines"]), 1)
        line = memory["shared_lines"][0]
        self.assertEqual((line["address"], line["hitm_share"], line["nodes"]), (make_recording.HOT_LINE, 1, [0, 1]))
        self.assertEqual(line["figures"]["samples"], 2 * ROUNDS + REMOTE + SECOND_STORES)
        tids = {thread["index"]: thread["tid"] - 100
                for thread in json.loads(self.crosstalk("report", "--format", "json", self.profile).stdout)["threads"]}
        rows = {(row["offset"], row["instruction"]): row for row in line["offsets"]}
        self.assertEqual(sorted(rows), [(8, 0x400110), (8, 0x400120), (16, 0x400120)])
        loads = rows[8, 0x400110]
        self.assertEqual(sorted(tids[thread] for thread in loads["threads"]), [1, 2])
        self.assertEqual((loads["nodes"], loads["processors"]), ([0, 1], 2))
        self.assertEqual(loads["hitm_remote_latency"], 900)
        self.assertEqual(loads["hitm_local_latency"], 349)
        self.assertEqual([tids[thread] for thread in rows[16, 0x400120]["threads"]], [3])
        self.assertEqual(rows[16, 0x400120]["figures"]["store_misses"], SECOND_STORES)
        self.assertEqual(rows[8, 0x400120]["figures"]["store_hits"], ROUNDS)

    def test_who_communicates(self):
        memory = self.memory()
        report = json.loads(self.crosstalk("report", "--format", "json", self.profile).stdout)
        self.assertEqual(report["communication"]["cells"], [], "nothing was watched")
        tids = {thread["index"]: thread["tid"] - 100 for thread in report["threads"]}
        pairs = {(tids[pair["producer"]], tids[pair["consumer"]]): pair for pair in memory["sampled_sharing"]["pairs"]}
        self.assertEqual(memory["sampled_sharing"]["unattributed_samples"], 0)
        for consumer, samples in ((1, ROUNDS), (2, REMOTE)):
            both = pairs[0, consumer]["hitm_samples"], pairs[3, consumer]["hitm_samples"]
            self.assertAlmostEqual(sum(both), samples)
            # Thread 3 stores a quarter as often.
            self.assertAlmostEqual(both[1] / samples, 0.2, delta=0.02)
            self.assertAlmostEqual(pairs[0, consumer]["hitm"], PERIOD * both[0])
            self.assertAlmostEqual(pairs[0, consumer]["overlapping_samples"], both[0])
            self.assertEqual(pairs[3, consumer]["overlapping_samples"], 0)
        self.assertEqual(pairs[0, 1]["hitm_remote_samples"], 0)
        self.assertAlmostEqual(pairs[0, 2]["hitm_remote_samples"], pairs[0, 2]["hitm_samples"])

    def test_the_other_formats(self):
        rows = self.table()
        parts = collections.Counter(row["part"] for row in rows)
        self.assertEqual((parts["total"], parts["shared_line"], parts["shared_offset"]), (1, 1, 3))
        total = next(row for row in rows if row["part"] == "total")
        self.assertEqual(int(total["hitm_local"]), ROUNDS)
        text = self.text()
        self.assertIn("not comparable with figures of watched lines", text)
        self.assertIn("cpu/mem-loads,ldlat=30/P samples only loads that take 30 cycles and more", text)
        self.assertIn("0x7f0000001000", text)
        refused = self.crosstalk("report", "--view", "memory", "--thread", "0", self.profile, status=125)
        self.assertIn("leave --thread", refused.stderr)

    def perf_c2c(self):
        """Returns perf's output for the recording."""
        if shutil.which("perf") is None:
            self.skipTest("perf is not there")
        done = subprocess.run(["perf", "c2c", "report", "--stdio", "-i", self.recording], capture_output=True, text=True,
                              timeout=60, restore_signals=False)  # it writes to an addr2line that has ended
        if "Trace Event Information" not in done.stdout:
            self.skipTest("perf does not report: " + done.stderr[:200])
        return done.stdout

    def compare(self, text, mine, least):
        """`least`: how many figures perf names as we do; other versions of it have other names for some."""
        theirs = {name: float(value) for name, value in re.findall(r"^  (\S.*?) +: +([\d.]+)%?$", text, re.MULTILINE)}
        for names in mine:
            parts = names.split(" + ")
            if all(part in theirs for part in parts):
                # Percentages are printed with one digit behind the point.
                self.assertAlmostEqual(mine[names], sum(theirs[part] for part in parts), delta=0.051, msg=names)
                least -= len(parts)
        self.assertLessEqual(least, 0, "perf names few of these figures")

    def test_perf_c2c_has_the_same_totals(self):
        """All figures but two: hits of a peer's cache on another node, which we count with other hits there, and
        samples outside of what perf has seen mapped."""
        text = self.perf_c2c().split("Global Shared Cache Line Event Information")[0]
        totals = self.memory()["totals"]
        found = collections.Counter(totals["found"])
        remote_hits = found["remote_cache"] - totals["hitm_remote"]
        misses = {"Local DRAM": found["local_memory"], "Remote DRAM": found["remote_memory"],
                  "Remote cache (HIT)": remote_hits, "Remote cache (HITM)": totals["hitm_remote"]}
        self.compare(text, {
            "Total records": totals["samples"], "Locked Load/Store Operations": totals["locked"],
            "Load Operations": totals["loads"], "Loads - uncacheable": found["uncached"], "Loads - IO": found["io"],
            "Loads - Miss": sum(totals["missed"].values()),
            "Loads - no mapping + Store - no mapping": totals["without_address"],
            "Load Fill Buffer Hit": found["line_fill_buffer"], "Load L1D hit": found["l1"], "Load L2D hit": found["l2"],
            "Load LLC hit": found["l3"], "Load Local HITM": totals["hitm_local"],
            "Load Remote HITM": totals["hitm_remote"], "Load Remote HIT": remote_hits,
            "Load Local DRAM": found["local_memory"], "Load Remote DRAM": found["remote_memory"],
            # By what other caches answered of memory's lines; ours are by that or by where, not by both.
            "Load MESI State Exclusive + Load MESI State Shared": found["local_memory"] + found["remote_memory"],
            "Load LLC Misses": sum(misses.values()),
            "Load access blocked by data": totals["blocked_data"],
            "Load access blocked by address": totals["blocked_address"], "Load HIT Local Peer": found["peer_cache"],
            **{f"LLC Misses to {where}": 100 * count / sum(misses.values()) for where, count in misses.items()},
            "Store Operations": totals["stores"], "Store L1D Hit": totals["store_hits"],
            "Store L1D Miss": totals["store_misses"],
            "Store - uncacheable + Store No available memory level": totals["store_unknown"],
            "Unable to parse data source": totals["samples"] - totals["loads"] - totals["stores"]}, 28)

    def test_perf_c2c_has_the_same_shared_lines(self):
        text = self.perf_c2c().split("Global Shared Cache Line Event Information")[1]
        memory = self.memory()
        shared, found = memory["shared_totals"], collections.Counter(memory["shared_totals"]["found"])
        self.compare(text, {
            "Total Shared Cache Lines": memory["rows"]["shared_lines"], "Load HITs on shared lines": shared["loads"],
            "Fill Buffer Hits on shared lines": found["line_fill_buffer"], "L1D hits on shared lines": found["l1"],
            "L2D hits on shared lines": found["l2"], "LLC hits on shared lines": found["l3"],
            "Load hits on peer cache or nodes": found["peer_cache"], "Locked Access on shared lines": shared["locked"],
            "Blocked Access on shared lines": shared["blocked_data"] + shared["blocked_address"],
            "Store HITs on shared lines": shared["stores"], "Store L1D hits on shared lines": shared["store_hits"],
            "Store No available memory level": shared["store_unknown"], "Total Merged records": shared["samples"]}, 11)

    @staticmethod
    def perf_table(text, title, begin):
        """The words of the table's rows that begin so."""
        table = text.split(title)[1]
        return [line.split() for line in table.splitlines() if re.match(begin, line)]

    def test_perf_c2c_has_the_same_table_of_lines(self):
        begin = r" +\d+ +0x[0-9a-f]+ +\S+ +\d+ +[\d.]+%"
        rows = self.perf_table(self.perf_c2c(), "Shared Data Cache Line Table", begin)
        line = self.memory()["shared_lines"][0]
        of, found = line["figures"], collections.Counter(line["figures"]["found"])
        self.assertEqual(len(rows), 1)
        if len(rows[0]) != 23:
            self.skipTest("this perf has other columns")
        _, address, _, _, share, *counts = rows[0]
        self.assertEqual((int(address, 16), float(share.rstrip("%"))), (line["address"], 100 * line["hitm_share"]))
        self.assertEqual([int(count) for count in counts], [
            of["hitm_local"] + of["hitm_remote"], of["hitm_local"], of["hitm_remote"], of["samples"], of["loads"],
            of["stores"], of["store_hits"], of["store_misses"], of["store_unknown"], found["line_fill_buffer"],
            found["l1"], found["l2"], found["l3"] - of["hitm_local"], of["hitm_local"],
            found["remote_cache"] - of["hitm_remote"], of["hitm_remote"], found["local_memory"], found["remote_memory"]])

    def test_perf_c2c_has_the_same_table_of_offsets(self):
        rows = self.perf_table(self.perf_c2c(), "Shared Cache Line Distribution Pareto", r" +[\d.]+% +[\d.]+% ")
        line = self.memory()["shared_lines"][0]
        whole = line["figures"]
        mine = {(row["offset"], row["instruction"]): row for row in line["offsets"]}
        self.assertEqual(len(rows), len(mine))
        parts = ("hitm_remote", "hitm_local", "store_hits", "store_misses", "store_unknown")
        for words in rows:
            shares = [float(word.rstrip("%")) for word in words[:5]]
            offset, _, _, code, remote, local, load, records, processors = words[5:14]
            row = mine[int(offset, 16), int(code, 16)]
            of = row["figures"]
            for share, part in zip(shares, parts):
                self.assertAlmostEqual(share, 100 * (of[part] or 0) / (whole[part] or 1), delta=0.006, msg=part)
            self.assertEqual((of["samples"], row["processors"]), (int(records), int(processors)))
            # perf has means of each kind of load, in whole cycles; we have their medians, and the mean of all.
            hitm = [of["hitm_remote"] or 0, of["hitm_local"] or 0]
            loads = [*hitm, of["loads"] - sum(hitm)]
            cycles = sum(count * int(mean) for count, mean in zip(loads, (remote, local, load)))
            if of["loads"] > 0:
                self.assertAlmostEqual(of["latency"]["mean"], cycles / of["loads"], delta=0.5)
            else:
                self.assertEqual((cycles, of["latency"]), (0, None))


def quantile(values, part):
    return sorted(values)[max(1, -(-len(values) * part // 100)) - 1]


class Real(MemoryCase):
    def imported(self, name):
        path = recordings() / name
        self.crosstalk("import", "-q", path, "-o", self.profile)
        return printed(path), self.memory()

    def check_loads(self, theirs, memory):
        totals = memory["totals"]
        latencies = [int(sample["weight"]) for sample in theirs]
        self.assertEqual((totals["samples"], totals["loads"], totals["stores"]), (len(theirs), len(theirs), 0))
        self.assertEqual(totals["latency"], {"samples": len(latencies), "median": quantile(latencies, 50),
                                             "p90": quantile(latencies, 90),
                                             "mean": statistics.fmean(latencies), "max": max(latencies)})
        self.assertEqual(totals["accesses"], sum(int(sample["period"]) for sample in theirs))
        self.assertEqual(totals["hitm"], 0)
        self.assertEqual(totals["snoop"], {"none": len(theirs)})
        self.assertEqual(sum(row["figures"]["samples"] for row in memory["lines"]), len(theirs))
        self.assertEqual(sum(row["figures"]["samples"] for row in memory["objects"]), len(theirs))
        self.assertIn("Accesses by source line", self.text())
        self.assertTrue(self.table())

    def test_load_latencies_with_weights_in_parts(self):
        theirs, memory = self.imported("pebs-load-latency-weight-struct.data")
        self.check_loads(theirs, memory)
        self.assertEqual(memory["totals"]["found"], {"l1": 4, "line_fill_buffer": 5, "l2": 1, "l3": 4})
        self.assertEqual(memory["totals"]["locked"], 2)
        self.assertEqual(memory["totals"]["translation"], {"l1_or_l2": 13, "walk": 1})
        self.assertIn("64 cycles and more", " ".join(memory["limits"]))

    def test_loads_of_an_old_perf(self):
        theirs, memory = self.imported("pebs-mem-load-2015.data")
        self.check_loads(theirs, memory)
        self.assertEqual(memory["totals"]["found"], {"l1": 14})
        self.assertEqual(memory["totals"]["locked"], 1)

    def test_what_perf_prints_of_data_sources(self):
        if shutil.which("perf") is None:
            self.skipTest("perf is not there")
        words = {"L1": "l1", "L2": "l2", "L3": "l3", "LFB/MAB": "line_fill_buffer"}
        for name in ("pebs-load-latency-weight-struct.data", "pebs-mem-load-2015.data"):
            _, memory = self.imported(name)
            text = subprocess.run(["perf", "script", "-i", recordings() / name, "-F", "data_src"], capture_output=True,
                                  text=True, timeout=60, check=True).stdout
            levels = collections.Counter(words[level] for level in re.findall(r"\|LVL (\S+) ", text))
            self.assertEqual(memory["totals"]["found"], levels)
            self.assertEqual(memory["totals"]["locked"], text.count("|LCK Yes"))

    def test_recordings_without_loads_and_stores_say_so(self):
        for name in RECORDINGS:
            if not name.startswith("pebs"):
                with self.subTest(recording=name):
                    _, memory = self.imported(name)
                    self.assertIn("no sample of the recording is of a load or a store", memory["unknown"])
                    self.assertIn("no sample of the recording", self.text())


if __name__ == "__main__":
    main()
