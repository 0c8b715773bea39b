# SPDX-License-Identifier: Apache-2.0
"""Hardware counters, from the unit's events to the loops of a report, on an emulated unit that counts what the program
says that it does."""

import contextlib
import json
import os
import sqlite3

import kernel_case
from kernel_case import harness

MODULE = os.path.join(kernel_case.HERE, "modules", "emulated_pmu")
EACH = 1e9  # cycles a second


PERIOD_S = 0.004  # between two samples, with which counters are read


def unpacked(counts):
    """The numbers that reading.counts holds: 7 bits a byte, the lowest first, bit 7 set in all but the last."""
    numbers, number, bits = [], 0, 0
    for byte in counts:
        number |= (byte & 0x7f) << bits
        bits += 7
        if byte < 0x80:
            numbers.append(number)
            number, bits = 0, 0
    return numbers


class Counters(kernel_case.GuestCase, harness.Case):
    def record(self, runs, parameters=""):
        """By name of a run, its options: the report of each and what is true, all in one go."""
        guest = self.guest()
        guest.add_module(MODULE)
        player = kernel_case.program("counted_phases")
        for program in (harness.CROSSTALK, harness.COLLECTOR, player):
            guest.add_program(program)
        script = "".join(f"""
            {harness.CROSSTALK} record -o $RESULTS/{name}.db --source clock --budget 100 {options} -- \
              {player} 12 >$RESULTS/{name} 2>$RESULTS/{name}.said || exit 1""" for name, options in runs.items())
        result = self.run_well(guest, f"insmod /modules/emulated_pmu.ko {parameters} || exit 1{script}", 250)
        found = {}
        for name in runs:
            profile = self.path(name + ".db")
            with open(profile, "wb") as file:
                file.write(result.files[name + ".db"])
            print(result.files[name + ".said"].decode())
            found[name] = self.report(profile), json.loads(result.files[name])
        return found

    def loop(self, report, function):
        loops = [loop for loop in report["loops"] if (loop["function"] or "").split("::")[-1].startswith(function)]
        self.assertEqual(len(loops), 1, [loop["function"] for loop in report["loops"]])
        return loops[0]

    def rates(self, loop):
        """Returns a loop with enough readings during its turns; skips if the host left the guest no time."""
        found = loop["counters"]
        self.assertIsNotNone(found)
        apart = found["seconds"] / found["intervals"] if found["intervals"] else None
        if apart is None or apart > 2 * PERIOD_S or (found["unknown"] and found["intervals"] < 40):
            # An emulated processor that takes as long for a reading as lies between two counts what is not the loop's.
            self.skipTest(f"the guest was too slow: {found['intervals']} intervals between readings in "
                          f"{found['seconds']:.2f} s ({found['unknown']})")
        self.assertIsNone(found["unknown"], found)
        return {rate["name"]: rate for rate in loop["counters"]["rates"]}

    def check(self, found, name, quantity, truth):
        """The counts a cycle are the true ones, and the rate's interval holds them."""
        self.assertAlmostEqual(found["per_cycle"], truth, delta=0.02 * truth + 0.001, msg=f"{name}: {quantity}")
        self.assertLess(found["ci95"][0], truth * EACH * 1.02 + 1e4, f"{name}: {quantity}")
        self.assertGreater(found["ci95"][1], truth * EACH * 0.9 - 1e4, f"{name}: {quantity}")

    def check_loops(self, report, truth, quantities):
        for name in ("computes", "waits"):
            loop = self.loop(report, name + "_loop")
            rates = self.rates(loop)
            print(name, loop["counters"])
            for quantity in quantities:
                self.check(rates[quantity], name, quantity, {"cycles": 1, "instructions": truth[name]["ipc"], **truth[name]}[quantity])
            self.assertAlmostEqual(loop["counters"]["ipc"], truth[name]["ipc"], delta=0.02 * truth[name]["ipc"])
            self.assertIn("instructions_per_s", loop["rates"]["counted"])

    @kernel_case.guest_kind(kernel_case.INTEL)
    def test_counts_of_loops_are_what_they_do(self):
        runs = {"one_group": "--counters loads,branches,l1d_fills,l3_misses", "all": "--counters on"}
        found = self.record(runs)
        report, truth = found["one_group"]
        self.assertEqual({event["group"] for event in report["counters"]["events"]}, {1})
        self.check_loops(report, truth, ("loads", "branches", "l1d_fills", "l3_misses"))
        self.assertNotIn("counters_multiplexed", {warning["code"] for warning in report["warnings"]})

        report, truth = found["all"]
        groups = {event["group"] for event in report["counters"]["events"]}
        self.assertGreater(len(groups), 3)
        self.assertIn("counters_multiplexed", {warning["code"] for warning in report["warnings"]})
        self.check_loops(report, truth, ("cycles", "instructions"))
        waits = self.loop(report, "waits_loop")
        if waits["counters"]["stalled"] is None or waits["counters"]["slots"] is None:
            self.skipTest(f"the guest was too slow: some groups had too few readings of {waits['counters']['intervals']}")
        self.assertAlmostEqual(waits["counters"]["stalled"]["memory"], truth["waits"]["stalls"], delta=0.03)
        self.assertGreater(waits["waits"]["memory"], 0.6 * waits["cpu_s"])
        computes = self.loop(report, "computes_loop")
        self.assertGreater(computes["waits"]["committing"], 0.6 * computes["cpu_s"])

    @kernel_case.guest_kind(kernel_case.INTEL)
    def test_fewer_counters_make_more_groups(self):
        found = self.record({"two": "--counters loads,l1d_fills,l3_misses,branch_misses"}, "counters=2")
        report, truth = found["two"]
        groups = [event["group"] for event in report["counters"]["events"] if event["name"] not in ("cycles", "instructions")]
        self.assertEqual(sorted(set(groups)), [1, 2])
        self.assertLessEqual(max(groups.count(group) for group in groups), 2)
        self.check_loops(report, truth, ("loads", "l1d_fills", "l3_misses"))

    def totals(self, profile, program):
        """By name of a counter: what its group's last readings of a program's threads have counted; and in what time, ns."""
        with contextlib.closing(sqlite3.connect(profile)) as database:
            names = {}
            for group, name in database.execute("SELECT group_number, name FROM counter ORDER BY id"):
                names.setdefault(group, []).append(name)
            last = database.execute(
                "SELECT r.group_number, r.counts, r.enabled_ns, r.running_ns, MAX(r.rowid) FROM reading r "
                "JOIN thread t ON t.id = r.thread WHERE t.name = ? GROUP BY r.thread, r.group_number, r.life", (program,)).fetchall()
        totals = {}
        for group, packed, enabled_ns, running_ns, _ in last:
            self.assertEqual(enabled_ns, running_ns, "its counters were never another's")
            for name, count in zip(names[group], unpacked(packed)):
                totals[name] = totals.get(name, 0) + count
        return totals, sum(running_ns for _, _, _, running_ns, _ in last)

    @kernel_case.guest_kind(kernel_case.INTEL)
    def test_totals_are_those_of_plain_counting(self):
        """Both count the same run, as two would never have the same time. A recording counts from its first look at a thread to
        its last reading of it."""
        guest = self.guest()
        guest.add_module(MODULE)
        counting, player = kernel_case.program("plain_counts"), kernel_case.program("counted_phases")
        for program in (harness.CROSSTALK, harness.COLLECTOR, counting, player):
            guest.add_program(program)
        result = self.run_well(guest, f"""
            insmod /modules/emulated_pmu.ko || exit 1
            {harness.CROSSTALK} record -o $RESULTS/run.db --source clock --budget 100 --counters branches -- \
              {counting} $RESULTS/plain {player} 12 >/dev/null || exit 1""")
        profile = self.path("run.db")
        with open(profile, "wb") as file:
            file.write(result.files["run.db"])
        plain = json.loads(result.files["plain"])
        found, counted_ns = self.totals(profile, "counted_phases")
        left_out_ns = plain["cycles"]["running_ns"] - counted_ns
        print(found, counted_ns, plain)
        self.assertEqual(set(found), set(plain))
        self.assertLess(left_out_ns, 0.05 * plain["cycles"]["running_ns"])
        for name, most_per_ns in (("cycles", 1), ("instructions", 3), ("branches", 3 * 2 / 16)):
            count = plain[name]["count"]
            self.assertEqual(plain[name]["enabled_ns"], plain[name]["running_ns"])
            self.assertLess(found[name], 1.01 * count, name)
            self.assertGreater(found[name], 0.99 * count - left_out_ns * most_per_ns, name)
        self.assertAlmostEqual(found["cycles"] / counted_ns, plain["cycles"]["count"] / plain["cycles"]["running_ns"], delta=0.01)

    @kernel_case.guest_kind(kernel_case.INTEL)
    def test_what_can_not_be_had_is_said(self):
        guest = self.guest()
        guest.add_module(MODULE)
        for program in (harness.CROSSTALK, harness.COLLECTOR):
            guest.add_program(program)
        record = f"{harness.CROSSTALK} record -o /tmp/x.db --source clock --counters"
        result = self.run_well(guest, f"""
            {record} on -- /usr/bin/sleep 0.2 >$RESULTS/none 2>&1 || exit 1
            insmod /modules/emulated_pmu.ko || exit 1
            {record} l3_mises -- /usr/bin/sleep 0.2 >$RESULTS/name 2>&1 && exit 1
            {harness.CROSSTALK} doctor >$RESULTS/doctor; true""")
        said = {name: text.decode() for name, text in result.files.items()}
        self.assertIn("hardware counters are not read: no CPU PMU", said["none"])
        self.assertIn("l3_misses", said["name"])
        self.assertIn("--counters:", said["name"])
        self.assertRegex(said["doctor"], r"yes\s+hardware counters")


if __name__ == "__main__":
    kernel_case.main()
