# SPDX-License-Identifier: Apache-2.0
"""`crosstalk export`: what other programs read is what the report says."""

import collections
import os
import pathlib
import pty
import shutil
import sqlite3
import struct
import sys
import tempfile
import time

import harness
import pprof_file
from harness import CROSSTALK, run, workload

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "perf_import"))
import make_recording  # noqa: E402

KERNEL, NS = "_[k]", 1e9


def bare(name):
    """"fill" of "(anonymous namespace)::Array<int>::fill(int) const"."""
    depth, kept = 0, ""
    for letter in name.replace("(anonymous namespace)::", ""):
        depth += (letter in "<(") - (letter in ">)")
        kept += letter if depth == 0 and letter not in ">)" else ""
    return kept.replace(" const", "").split(" ")[-1].split("::")[-1]


class Case(harness.Case):
    def export(self, profile, *options, name="out.pb.gz", status=0):
        """The exported profile; the last line on standard error is `self.said`."""
        path = self.path(name)
        result = run([CROSSTALK, "export", "-i", profile, "-o", path, *options])
        self.assertEqual(result.status, status, result.stderr)
        self.said = result.stderr
        return pprof_file.Profile(path) if name.endswith(".gz") else pathlib.Path(path).read_text(encoding="utf-8")

    def check_sums(self, exported, report):
        self.assertEqual(exported.types[:2], [("samples", "count"), ("cpu", "nanoseconds")])
        self.assertEqual(exported.default_type, "cpu")
        delta = 0.01 * report["cpu_s"] + 0.01  # samples of threads of some milliseconds stand for more than their time
        self.assertAlmostEqual(exported.sum("cpu") / NS, report["cpu_s"], delta=delta)
        self.assertEqual(exported.sum("samples"), report["sampling"]["samples"])
        for thread in report["threads"]:
            of_thread = exported.sum("cpu", lambda sample: sample.labels["tid"] == str(thread["tid"])) / NS
            self.assertAlmostEqual(of_thread, thread["cpu_s"] or 0.0, delta=delta)

    def check_functions(self, exported, report):
        """The machine code's function of the innermost user code, as the report counts time."""
        times = collections.Counter()
        for sample in exported.samples:
            user = next(location for location in sample.locations if not location.lines[0].function.endswith(KERNEL))
            if user.mapping is None or user.mapping["file"] != harness.COLLECTOR:  # which has no rows
                times[user.lines[-1].function] += sample.values["cpu"] / NS
        theirs = collections.Counter()
        for function in report["functions"]:
            theirs[function["function"]] += function["self_s"]
        for name, seconds in theirs.items():
            self.assertAlmostEqual(times[name], seconds, delta=1e-6, msg=name)

    def check_costs(self, exported, report):
        costs = collections.Counter()
        for sample in exported.samples:
            if sample.values.get("communication"):
                costs[sample.labels["partner_tid"], sample.labels["tid"], sample.labels["sharing"]] += (
                    sample.values["communication"] / NS)
        tids = {thread["index"]: str(thread["tid"]) for thread in report["threads"]}
        theirs = {(tids[cell["producer"]], tids[cell["consumer"]], sort): cell[sort]["cost_s"]
                  for cell in report["communication"]["cells"] for sort in ("true", "false") if cell[sort]["cost_s"]}
        self.assertEqual(set(costs), set(theirs))
        for pair, cost in theirs.items():
            self.assertAlmostEqual(costs[pair], cost, delta=1e-6, msg=pair)
        for entry in report["objects"]:
            of_object = exported.sum("communication", lambda sample: sample.labels.get("object") == entry["name"]) / NS
            self.assertAlmostEqual(of_object, entry["cost_s"], delta=1e-6, msg=entry["name"])


@harness.together
class Computing(Case):
    """A program that computes."""

    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="crosstalk-test-")
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.profile = os.path.join(cls.shared, "run.db")
        cls.began_ns = time.time_ns()
        result = run([CROSSTALK, "record", "-q", "-o", cls.profile, "--", workload("loops"), "--seconds", "1"])
        cls.ended_ns = time.time_ns()
        assert result.status == 0, result.stderr

    def test_sums_and_functions_are_the_report_s(self):
        exported, report = self.export(self.profile), self.report(self.profile)
        self.check_sums(exported, report)
        self.check_functions(exported, report)
        self.assertNotIn(("communication", "nanoseconds"), exported.types)
        self.assertEqual({sample.labels["process"] for sample in exported.samples}, {"loops"})
        self.assertEqual({sample.labels["pid"] for sample in exported.samples}, {str(report["processes"][0]["pid"])})

    def test_the_recording_is_described(self):
        exported, report = self.export(self.profile), self.report(self.profile)
        self.assertTrue(self.began_ns <= exported.time_ns <= self.ended_ns)
        self.assertAlmostEqual(exported.duration_ns / NS, report["duration_s"], delta=1e-6)
        self.assertEqual(exported.period, 4_000_000)
        self.assertIn(report["command"], exported.comments[0])
        self.assertIn(f"source {report['sampling']['source']}, method ", exported.comments[1])

    def test_samples_without_a_stack_take_the_callers_of_others(self):
        exported, alone = self.export(self.profile), self.export(self.profile, "--own-stacks")
        origins = {sample.labels["callers"] for sample in alone.samples}
        self.assertLessEqual(origins, {"sampled", "unknown"})
        with sqlite3.connect(self.profile) as database:
            copied = database.execute("SELECT count(stack) FROM sample").fetchone()[0]
        self.assertEqual(alone.sum("samples", lambda sample: sample.labels["callers"] == "sampled"), copied)
        self.assertEqual(exported.sum("samples", lambda sample: sample.labels["callers"] == "sampled"), copied)
        kernels = [sample for sample in exported.samples if "run_kernels" in " ".join(sample.functions())]
        # On a busy machine, a stack is copied rarely: a kernel may have none.
        with_stack = {sample.functions()[0] for sample in kernels if sample.labels["callers"] == "sampled"}
        self.assertTrue(with_stack)
        known = exported.sum("cpu", lambda sample: sample.functions()[0] in with_stack)
        self.assertGreater(sum(sample.values["cpu"] for sample in kernels), 0.9 * known)
        self.assertEqual(alone.sum("cpu"), exported.sum("cpu"))

    def test_the_same_profile_gives_the_same_bytes(self):
        self.export(self.profile, name="one.pb.gz")
        self.export(self.profile, name="two.pb.gz")
        one, two = (pathlib.Path(self.path(name)).read_bytes() for name in ("one.pb.gz", "two.pb.gz"))
        self.assertEqual(one, two)
        piped = run(["sh", "-c", f"'{CROSSTALK}' export --format pprof -o - '{self.profile}' | cmp - '{self.path('one.pb.gz')}'"])
        self.assertEqual((piped.status, piped.stdout, piped.stderr), (0, "", ""))

    def test_folded_lines_have_the_same_time(self):
        exported = self.export(self.profile)
        for options in ((), ("--by", "thread")):
            text = self.export(self.profile, *options, name="out.folded")
            rows = [line.rsplit(" ", 1) for line in text.splitlines()]
            self.assertAlmostEqual(sum(int(count) for _, count in rows), exported.sum("cpu") / 1000, delta=len(rows))
            self.assertEqual([frames for frames, _ in rows], sorted({frames for frames, _ in rows}))
            threads = {frames.split(";", 1)[0] for frames, _ in rows}
            if options:
                self.assertEqual(threads, {f"loops (tid {sample.labels['tid']})" for sample in exported.samples
                                           if sample.values["cpu"] >= 1000})
        theirs = {";".join(reversed(sample.functions())) for sample in exported.samples if sample.values["cpu"] >= 1000}
        mine = {line.rsplit(" ", 1)[0] for line in self.export(self.profile, name="out.folded").splitlines()}
        self.assertEqual(mine, theirs)

    def test_communication_that_is_not_there_is_said(self):
        self.assertEqual(self.export(self.profile, "--value", "communication", name="out.folded"), "")
        self.assertRegex(self.said, r"^crosstalk: warning: .* has no known cost of communication.*\n$")

    def test_where_it_cannot_be_written(self):
        for options, status, words in (
                (["-o", self.path("none/out.pb.gz")], 1, "cannot be written: No such file or directory"),
                (["-o", self.folder, "--format", "pprof"], 1, "cannot be written: Is a directory"),
                (["-o", "/dev/full", "--format", "pprof"], 1, "cannot be written: No space left on device"),
                (["-o", self.path("out.svg")], 125, "ends in none of"),
                ([], 125, "the form is not known"),
                (["--format", "pprof", "--by", "thread"], 125, "--by is of --format collapsed")):
            result = run([CROSSTALK, "export", "-i", self.profile, *options])
            self.assert_one_line_error(result, (status,))
            self.assertIn(words, result.stderr)
        self.assertEqual(os.listdir(self.folder), [], "nothing is left behind")
        full = run(["sh", "-c", f"exec '{CROSSTALK}' export --format pprof '{self.profile}' >/dev/full"])
        self.assert_one_line_error(full, (1,))

    def test_a_device_stays_a_device(self):
        self.assertEqual(run([CROSSTALK, "export", "-o", "/dev/null", "--format", "pprof", self.profile]).status, 0)
        self.assertFalse(os.path.isfile("/dev/null"))

    def test_a_terminal_gets_no_packed_bytes(self):
        child, terminal = pty.fork()
        if child == 0:
            os.execv(CROSSTALK, [CROSSTALK, "export", "--format", "pprof", "-o", "-", self.profile])
        text = b""
        while True:
            try:
                piece = os.read(terminal, 4096)
            except OSError:  # its other end is closed
                break
            if not piece:
                break
            text += piece
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 125)
        self.assertIn(b"standard output is a terminal", text)


class Communicating(Case):
    @harness.needs_watchpoints
    def test_costs_are_the_report_s(self):
        report, _ = self.observe("mixed", "--seconds", "1")
        exported = self.export(self.path("run.db"))
        self.check_sums(exported, report)
        self.check_costs(exported, report)
        paying = [sample for sample in exported.samples if sample.values.get("communication")]
        self.assertEqual(bool(paying), harness.total_cost(report) > 0)
        for sample in paying:
            self.assertTrue(any("take_turns" in name for name in sample.functions()), sample.functions())
        folded = self.export(self.path("run.db"), "--value", "communication", name="out.folded")
        self.assertAlmostEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()) / 1e6,
                               sum(sample.values["communication"] for sample in paying) / NS, delta=1e-3)

    @harness.needs_watchpoints
    def test_gains_are_the_report_s(self):
        report, _ = self.observe("false_sharing", "--seconds", "1")
        exported = self.export(self.path("run.db"))
        self.check_costs(exported, report)
        totals = report["communication"]["totals"]
        for sort in ("true", "false"):
            gain = totals[sort + "_sharing"]["gain_s"]
            rows = [sample for sample in exported.samples if sample.labels.get("sharing") == sort]
            self.assertEqual({sample.labels.get("gain") for sample in rows} - {None if gain is not None else "unknown"},
                             set())
            if gain is not None and rows:
                self.assertAlmostEqual(sum(sample.values["communication_gain"] for sample in rows) / NS, gain, delta=1e-6)


class Others(Case):
    def test_inlined_functions_are_those_of_addr2line(self):
        """Which reads the same debug information with other code."""
        exported = self.export(self.record([workload("private_only"), "--seconds", "0.5"]).profile)
        mapping = exported.mappings[1]
        self.assertEqual(mapping["file"], workload("private_only"))
        most = 0
        for location in exported.locations.values():
            if location.mapping is not mapping:
                continue
            address = location.address - mapping["begin"] + mapping["offset"]  # of a file whose segments lie so
            told = run(["addr2line", "-ifCe", mapping["file"], hex(address)]).stdout.splitlines()
            lines = [(":0" if name.startswith("??:") else name.rsplit("/", 1)[-1].split()[0], function)
                     for function, name in zip(told[::2], told[1::2])]
            self.assertEqual([f"{line.file.rsplit('/', 1)[-1]}:{line.line}" for line in location.lines],
                             [name for name, _ in lines])
            for line, (_, function) in list(zip(location.lines, lines))[1:]:  # names the first by the symbol table
                self.assertIn(bare(line.function), function)
            most = max(most, len(lines))
        self.assertGreater(most, 1, "nothing was inlined")

    def test_a_profile_without_samples(self):
        result = self.record(["true"])
        with sqlite3.connect(result.profile) as database:
            database.execute("DELETE FROM sample")
            database.execute("UPDATE thread SET samples = 0, cpu_ns = 0")
        exported = self.export(result.profile)
        self.assertEqual(exported.samples, [])
        self.assertRegex(self.said, r"^crosstalk: warning: .* has no samples, so the export has none.*\n$")
        self.assertEqual(self.export(result.profile, name="out.folded"), "")

    def test_a_program_without_symbols(self):
        program = self.path("bare")
        shutil.copy(workload("private_only"), program)
        self.assertEqual(run(["strip", program]).status, 0)
        result = self.record([program, "--seconds", "0.5"])
        exported, report = self.export(result.profile), self.report(result.profile)
        self.check_sums(exported, report)
        self.check_functions(exported, report)
        hottest = max(exported.samples, key=lambda sample: sample.values["cpu"])
        self.assertRegex(hottest.functions()[0], r"^bare\+0x[0-9a-f]+$")
        self.assertEqual(hottest.locations[0].lines[0].line, 0)
        os.remove(program)
        gone = self.export(result.profile)
        self.assertEqual(gone.sum("cpu"), exported.sum("cpu"))
        self.assertEqual(gone.mappings[1]["file"], program)

    def test_processes_have_their_names(self):
        result = self.record(["sh", "-c", f"'{workload('private_only')}' --seconds 0.3; '{workload('loops')}' --seconds 0.3"])
        exported, report = self.export(result.profile), self.report(result.profile)
        self.check_sums(exported, report)
        times = collections.Counter()
        for sample in exported.samples:
            times[sample.labels["process"]] += sample.values["cpu"]
        self.assertGreater(times["private_only"], 0)
        self.assertGreater(times["loops"], 0)

    def test_a_damaged_profile_is_refused_in_a_line(self):
        data = pathlib.Path(self.record(["true"]).profile).read_bytes()
        for name, bad in (("half", data[:len(data) // 2]), ("none", b""), ("text", b"This is no profile.\n" * 400)):
            path = self.path(name + ".db")
            pathlib.Path(path).write_bytes(bad)
            result = run([CROSSTALK, "export", "-i", path, "-o", self.path("out.pb.gz")])
            self.assert_one_line_error(result, (1,))
            self.assertFalse(os.path.exists(self.path("out.pb.gz")))
        self.assert_one_line_error(run([CROSSTALK, "export", "-o", self.path("out.pb.gz"), self.path("missing.db")]), (1,))


def symbols_of(program):
    """Addresses of functions by their names, as the linker placed them."""
    words = (line.split(" ", 2) for line in run(["nm", "-C", program]).stdout.splitlines())
    return {bare(line[2]): int(line[0], 16) for line in words
            if len(line) > 2 and line[0] and line[1] in "tT" and "[" not in line[2]}  # without parts as "[clone .cold]"


class Imported(Case):
    """A recording of perf, made here, of calls that were never made: chase() by divide() by main(), and main() alone."""

    IP, TID, TIME, CPU, PERIOD, CHAIN = (1 << bit for bit in (0, 1, 2, 7, 8, 5))
    USER = (1 << 64) - 512  # PERF_CONTEXT_USER
    BASE = 0x7f0000000000

    def recording(self, samples, config=0, kind=1, name="cpu-clock"):
        """`samples`: chains of addresses in the program, innermost first."""
        program = workload("loops")
        who = make_recording.IDENTITY.pack(100, 100, 0, 0, 1, 0)[:24]
        data = [make_recording.record(3, 1 << 13, struct.pack("<II", 100, 100) + make_recording.text("loops") + who),
                make_recording.record(10, 2, struct.pack("<IIQQQIIQQII", 100, 100, self.BASE, 1 << 20, 0, 8, 1, 77, 0, 5, 2) +
                                      make_recording.text(program) + who)]
        for i, chain in enumerate(samples):
            addresses = [self.USER, *(self.BASE + address for address in chain)]
            body = struct.pack("<QIIQIIQQ", addresses[1], 100, 100, 1_000_000_000 + 1_000_000 * i, 0, 0, 1_000_000,
                               len(addresses)) + struct.pack(f"<{len(addresses)}Q", *addresses)
            data.append(make_recording.record(9, 2, body))
        sample_type = self.IP | self.TID | self.TIME | self.CPU | self.PERIOD | self.CHAIN
        attribute = struct.pack("<IIQQQQQIIQQ", kind, 112, config, 1_000_000, sample_type, 0, 1 << 18, 0, 0, 0, 0)
        attribute += bytes(112 - len(attribute))
        path = self.path("perf.data")
        pathlib.Path(path).write_bytes(make_recording.file_of([(name, attribute)], b"".join(data), {}))
        result = run([CROSSTALK, "import", "-q", path, "-o", self.path("run.db")])
        self.assertEqual(result.status, 0, result.stderr)

    def chains(self):
        symbols = symbols_of(workload("loops"))
        inner = [symbols["chase"] + 4, symbols["divide"] + 5, symbols["main"] + 9]
        return [inner] * 30 + [[symbols["main"] + 1]] * 10

    def check(self, exported, kind):
        by_stack = collections.Counter()
        for sample in exported.samples:
            self.assertEqual(sample.labels["callers"], "sampled")
            by_stack[tuple(bare(location.lines[-1].function) for location in sample.locations)] += sample.values[kind]
        self.assertEqual(by_stack, {("chase", "divide", "main"): 30_000_000, ("main",): 10_000_000})

    def test_chains_of_calls_are_stacks(self):
        self.recording(self.chains())
        exported, report = self.export(self.path("run.db")), self.report(self.path("run.db"))
        self.check(exported, "cpu")
        self.assertAlmostEqual(report["cpu_s"], 0.04)
        self.assertEqual((exported.sum("cpu"), exported.period, exported.time_ns), (40_000_000, 1_000_000, 0))

    def test_events_that_are_no_time_keep_their_name(self):
        self.recording(self.chains(), config=3, kind=0, name="cache-misses")
        exported = self.export(self.path("run.db"))
        self.assertEqual(exported.types, [("samples", "count"), ("cache-misses", "count")])
        self.check(exported, "cache-misses")


if __name__ == "__main__":
    harness.main()
