# SPDX-License-Identifier: Apache-2.0
"""What crosstalk finds and records in a guest: another kernel than the machine's, and units that the machine has not."""

import json
import os

import kernel_case
from kernel_case import harness

MODULE = os.path.join(kernel_case.HERE, "modules", "emulated_pmu")


class Discovery(kernel_case.GuestCase):
    def doctor(self, processor):
        """What `crosstalk doctor` says without a unit, and with the emulated one."""
        guest = self.guest(processor=processor)
        guest.add_program(harness.CROSSTALK)
        guest.add_program(harness.COLLECTOR)
        guest.add_module(MODULE)
        result = self.run_well(guest, f"""
            {harness.CROSSTALK} doctor >$RESULTS/before
            insmod /modules/emulated_pmu.ko || exit 1
            {harness.CROSSTALK} doctor >$RESULTS/after; true""")
        return result.files["before"].decode(), result.files["after"].decode()

    def test_op_sampling_is_found(self):
        before, after = self.doctor("amd")
        self.assertNotIn("ibs_op//", before)
        self.assertIn("ibs_op//", after)

    def test_load_and_store_events_are_found(self):
        before, after = self.doctor("intel")
        self.assertNotIn("cpu/mem-loads/", before)
        self.assertIn("cpu/mem-loads/, cpu/mem-stores/", after)


class Recording(kernel_case.GuestCase, harness.Case):
    def record(self, source, seconds, processor, before="true"):
        """Records a ping-pong in a guest; returns the report that is made of it here, and the truth."""
        guest = self.guest(processor=processor)
        guest.add_module(MODULE)
        player = harness.workload("ping_pong")
        for program in (harness.CROSSTALK, harness.COLLECTOR, player):
            guest.add_program(program)
        result = self.run_well(guest, f"""
            {before} || exit 1
            {harness.CROSSTALK} record -o $RESULTS/run.db --source {source} --budget 100 -- \
              {player} --seconds {seconds} >$RESULTS/truth""")
        with open(self.path("run.db"), "wb") as file:
            file.write(result.files["run.db"])
        report = self.report(self.path("run.db"))
        self.assertEqual(report["sampling"]["source"], source)
        print(report["sampling"])
        return report, json.loads(result.files["truth"])

    def test_clock_and_watchpoints_find_who_plays(self):
        # An emulator's traps are slow and few: enough to tell who communicates, not how much.
        report, truth = self.record("clock", 20, "amd")
        self.assertGreater(report["sampling"]["samples"], 300)
        costs = harness.cells_by_truth(report, truth)
        found = {(producer, consumer, kind) for (producer, consumer, kind), cost in costs.items() if cost > 0}
        self.assertTrue(found)
        self.assertLessEqual(found, {(1, 2, "true"), (2, 1, "true")})

    def check_measured(self, report, units):
        """There are samples of the unit's events beside those of the clock."""
        counts = {event["unit"]: event["samples"] for event in report["sampling"]["events"]}
        self.assertGreater(sum(counts.get(unit, 0) for unit in units), 10, counts)

    def test_op_samples_are_recorded(self):
        report, _ = self.record("ibs", 6, "amd", "insmod /modules/emulated_pmu.ko")
        self.check_measured(report, ["micro_ops"])

    def test_load_and_store_samples_are_recorded(self):
        report, _ = self.record("pebs", 6, "intel", "insmod /modules/emulated_pmu.ko")
        self.check_measured(report, ["loads", "stores", "accesses"])


if __name__ == "__main__":
    kernel_case.main()
