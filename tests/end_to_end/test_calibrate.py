# SPDX-License-Identifier: Apache-2.0
"""`crosstalk calibrate`: the file that it writes, and the profiles that store it. A shared machine may spoil any
figure, which is then absent with a reason; so nothing here depends on the machine's speed. Compared figures differ by a
wide factor on every processor."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import harness

SOON_ENOUGH_S = 60  # it means to take half a minute at most


def figures(machine):
    """All figures, by a name."""
    found = {("frequency", name): row for name, row in machine["frequency"].items() if isinstance(row, dict)}
    for table, keys in (("flops", ("width", "precision", "operation", "scope")),
                        ("bandwidths", ("level", "traffic", "scope")), ("latencies", ("level",)),
                        ("instructions", ("instruction",)), ("chains", ("chain",)),
                        ("accesses", ("level", "width", "loads_to_stores", "threads")),
                        ("flop_latencies", ("width", "precision", "operation")),
                        ("integers", ("width", "element", "operation", "scope")),
                        ("groups", ("level", "width", "fillers")), ("ridges", ("level", "width", "kind")),
                        ("sparse_roofs", ("matrix", "vector", "scope"))):
        for row in machine[table]:
            found[(table, *(row[key] for key in keys))] = row
    for row in machine["kinds"]:
        found[("per_cycle", row["kind"])] = row["per_cycle"]
        found[("buffer", row["kind"])] = row["buffer"]
    for row in machine["sparse_bands"]:
        for which in ("worst", "best"):
            found[(which, row["matrix"], row["row_nonzeros"], row["scope"])] = row[which]
    for pair in machine["pairs"]:
        found[("transfer", pair["a"], pair["b"])] = pair["transfer"]
        found[("contended_add", pair["a"], pair["b"])] = pair["contended_add"]
    return found


class Calibration(unittest.TestCase):
    """In a folder that holds the user's configuration."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="crosstalk-test-")
        self.addCleanup(self.folder.cleanup)
        self.environment = dict(os.environ, XDG_CONFIG_HOME=self.folder.name)
        self.file = os.path.join(self.folder.name, "crosstalk", "machine.json")

    def crosstalk(self, *arguments, **options):
        return harness.run([harness.CROSSTALK, *arguments], env=self.environment, cwd=self.folder.name, **options)

    def calibrate(self, *arguments):
        run = self.crosstalk("calibrate", "--quick", *arguments, timeout=2 * SOON_ENOUGH_S)
        self.assertEqual(run.status, 0, run.stderr)
        return run

    def stored(self):
        with open(self.file, encoding="utf-8") as file:
            return json.load(file)


class Measured(Calibration):
    @harness.verify("measures for half a minute")
    def test_figures_are_complete_and_plausible(self):
        run = self.calibrate("--json")
        machine = json.loads(run.stdout)
        self.assertEqual(machine, self.stored())
        self.assertEqual(machine["schema"], "crosstalk.machine/1")
        self.assertLess(machine["measuring_s"], SOON_ENOUGH_S)
        rows = figures(machine)
        for name, row in rows.items():
            self.assertTrue(row["method"] or row.get("refused"), name)
            self.assertEqual(row["value"] is None, bool(row.get("refused")), name)
            self.assertLessEqual(row["disturbed"], row["tries"], name)
        self.expect_all_kinds(rows)
        self.expect_order({name: row["value"] for name, row in rows.items() if row["value"] is not None})

    def expect_all_kinds(self, rows):
        for which in ("one_core", "all_cores", "after_avx2", "after_avx512"):
            self.assertIn(("frequency", which), rows)  # a processor without such vectors is a reason
        for instruction in ("integer_add", "integer_multiply", "branch_not_taken", "branch_taken"):
            self.assertIn(("instructions", instruction), rows)
        for scope in ("one_core", "all_cores"):
            for precision in ("double", "single"):
                for operation in ("add", "mul"):
                    self.assertIn(("flops", "sse", precision, operation, scope), rows)
            for traffic in ("load", "store", "copy", "triad"):
                for level in ("l1d", "l2", "l3", "memory"):
                    self.assertIn(("bandwidths", level, traffic, scope), rows)
                if traffic != "load":
                    self.assertIn(("bandwidths", "memory", traffic + "_streaming", scope), rows)
        for level in ("l1d", "l2", "l3", "memory"):
            for mix in ("1:0", "2:1", "1:1", "0:1"):
                self.assertIn(("accesses", level, "scalar", mix, 1), rows)
            self.assertIn(("groups", level, "scalar", 0), rows)
            self.assertIn(("ridges", level, "scalar", "integer_add"), rows)
            self.assertIn(("sparse_roofs", level, "l1d", "one_core"), rows)
            self.assertIn(("best", level, 64, "one_core"), rows)
        for kind in ("nop", "integer_add", "scalar", "sse"):
            self.assertIn(("buffer", kind), rows)
        for chain in ("add", "load", "load_add_store", "locked_add", "locked_exchange", "locked_compare",
                      "branch_mispredicted"):
            self.assertIn(("chains", chain), rows)
        if len(os.sched_getaffinity(0)) > 1:
            self.assertTrue(any(name[0] == "transfer" for name in rows))

    def expect_order(self, value):
        """Pairs of figures of which the first is less than the second on any processor, by a factor that no
        disturbance of a best try makes up for."""
        less = [(("latencies", "l1d"), ("latencies", "memory")), (("latencies", "l2"), ("latencies", "memory")),
                (("chains", "add"), ("latencies", "l1d")), (("chains", "add"), ("chains", "locked_add")),
                (("instructions", "integer_multiply"), ("instructions", "integer_add")),
                (("frequency", "one_core"), ("instructions", "integer_add")),  # several a cycle
                (("bandwidths", "memory", "load", "one_core"), ("bandwidths", "l1d", "load", "one_core")),
                (("flops", "scalar", "single", "add", "one_core"), ("flops", "sse", "single", "add", "one_core")),
                (("accesses", "l1d", "scalar", "1:0", 1), ("accesses", "l1d", "sse", "1:0", 1)),
                (("accesses", "memory", "sse", "1:0", 1), ("accesses", "l1d", "sse", "1:0", 1)),
                (("groups", "memory", "sse", 0), ("groups", "l1d", "sse", 0)),
                (("groups", "l1d", "sse", 24), ("groups", "l1d", "sse", 0)),
                (("per_cycle", "scalar"), ("per_cycle", "nop"))]
        for low, high in less:
            if low in value and high in value:
                self.assertLess(value[low], value[high], (low, high))
        for which in ("one_core", "all_cores", "after_avx2", "after_avx512"):
            self.assertTrue(0.2e9 < value.get(("frequency", which), 1e9) < 10e9, value)
        for width in ("scalar", "sse", "avx2", "avx512"):
            for precision in ("double", "single"):
                add = value.get(("flops", width, precision, "add", "one_core"))
                fma = value.get(("flops", width, precision, "fma", "one_core"))
                if add and fma:
                    self.assertGreater(fma, 0.7 * add)

    @harness.verify("measures for half a minute")
    def test_a_busy_machine_costs_figures_and_neither_the_whole_nor_minutes(self):
        for _ in range(2 * len(os.sched_getaffinity(0))):
            loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            self.addCleanup(loop.wait)
            self.addCleanup(loop.kill)
        self.calibrate("-q")
        machine = self.stored()
        self.assertLess(machine["measuring_s"], SOON_ENOUGH_S)
        rows = figures(machine)
        self.assertGreater(sum(row["value"] is not None for row in rows.values()), len(rows) / 2)
        for name, row in rows.items():
            self.assertEqual(row["value"] is None, bool(row.get("refused")), name)

    def test_what_can_not_be_written_is_refused_at_once(self):
        run = self.crosstalk("calibrate", "-o", "/proc/machine.json", timeout=10)
        self.assertEqual(run.status, 125)
        self.assertEqual(run.stdout, "")
        self.assertIn("cannot be written", run.stderr)


@harness.together
class Calibrated(Calibration):
    """Uses the figures of one calibration."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="crosstalk-test-") as folder:
            cls.measured = harness.run([harness.CROSSTALK, "calibrate", "--quick"], timeout=2 * SOON_ENOUGH_S, cwd=folder,
                                       env=dict(os.environ, XDG_CONFIG_HOME=folder))
            with open(os.path.join(folder, "crosstalk", "machine.json"), encoding="utf-8") as file:
                cls.figures = file.read()

    def put_figures(self):
        os.makedirs(os.path.dirname(self.file), exist_ok=True)
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(self.figures)

    def test_tables_show_what_was_measured(self):
        run = self.measured
        for words in ("Floating point", "Bytes moved", "re-order buffer", "Sparse products", "latency of a load", "locked add", "Frequency"):
            self.assertIn(words, run.stdout)
        self.assertIn("crosstalk: wrote ", run.stderr)
        self.assertNotIn("\x1b", run.stdout + run.stderr)
        self.assertLessEqual(max(map(len, run.stdout.splitlines())), 100)

    def test_a_file_of_an_older_crosstalk_is_extended(self):
        self.put_figures()
        self.edit(lambda machine: [machine.pop(name) for name in ("flop_latencies", "extended_at")])
        before = self.stored()
        run = self.calibrate()
        self.assertIn("keeping the figures of " + before["measured_at"], run.stderr)
        after = self.stored()
        self.assertTrue(after.pop("flop_latencies"))
        self.assertGreaterEqual(after.pop("extended_at"), before["measured_at"])
        for machine in (before, after):
            for name in ("measuring_s", "notes"):
                machine.pop(name)
        self.assertEqual(after, before)

    def test_profiles_take_the_figures_along(self):
        self.put_figures()
        profile = os.path.join(self.folder.name, "run.db")
        self.assertEqual(self.crosstalk("record", "-q", "-o", profile, "true").status, 0)
        with sqlite3.connect(profile) as database:
            (text,) = database.execute("select value from meta where key = 'machine'").fetchone()
        self.assertEqual(json.loads(text), self.stored())
        report = self.crosstalk("report", profile, "--format", "json")
        self.assertEqual(json.loads(report.stdout)["machine"]["calibration"]["measured_at"],
                         self.stored()["measured_at"])

    def test_reports_find_the_figures_of_their_machine(self):
        profile = os.path.join(self.folder.name, "run.db")
        self.assertEqual(self.crosstalk("record", "-q", "-o", profile, "true").status, 0)
        before = json.loads(self.crosstalk("report", profile, "--format", "json").stdout)
        self.assertIsNone(before["machine"]["calibration"])
        self.put_figures()
        after = json.loads(self.crosstalk("report", profile, "--format", "json").stdout)
        self.assertEqual(after["machine"]["calibration"]["measured_at"], self.stored()["measured_at"])

    def test_another_machines_file_is_refused_naming_the_field(self):
        self.put_figures()
        self.edit(lambda machine: machine["identity"].update(name="Another"))
        self.expect_refused_stamp("identity.name is 'Another'")
        self.edit(lambda machine: machine["latencies"][0].update(value=1e9))
        self.expect_refused_stamp("latencies[l1d].value")
        self.edit(lambda machine: machine.update(schema="crosstalk.machine/9"))
        self.expect_refused_stamp("schema is 'crosstalk.machine/9'")

    def edit(self, change):
        machine = self.stored()
        change(machine)
        with open(self.file, "w", encoding="utf-8") as file:
            json.dump(machine, file)

    def expect_refused_stamp(self, words):
        """The recording goes on without the figures, and a line says why."""
        run = self.crosstalk("record", "-o", "run.db", "sh", "-c", "exit 3")
        self.assertEqual(run.status, 3, run.stderr)
        self.assertIn("crosstalk: warning: " + self.file + ": ", run.stderr)
        self.assertIn(words, run.stderr)
        self.assertIn("crosstalk calibrate", run.stderr)


if __name__ == "__main__":
    harness.main()
