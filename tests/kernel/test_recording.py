# SPDX-License-Identifier: Apache-2.0
"""Detection and recording in a guest: another kernel than the machine's, and units that the machine lacks."""

import json
import os

import kernel_case
from kernel_case import harness

MODULE = os.path.join(kernel_case.HERE, "modules", "emulated_pmu")
IBS_MODULE = os.path.join(os.path.dirname(os.path.dirname(kernel_case.HERE)), "kmod")
LOAD_UNIT = "insmod /modules/emulated_pmu.ko"
LOAD_IBS_MODULE = "insmod /modules/crosstalk_ibs.ko emulate=1"
BY_IBS_MODULE = ["crosstalk_ibs/ibs_op/"]  # its event


class Discovery(kernel_case.GuestCase):
    def doctor(self):
        """`crosstalk doctor` without a unit, and with the emulated one."""
        guest = self.guest()
        guest.add_program(harness.CROSSTALK)
        guest.add_program(harness.COLLECTOR)
        guest.add_module(MODULE)
        result = self.run_well(guest, f"""
            {harness.CROSSTALK} doctor >$RESULTS/before
            insmod /modules/emulated_pmu.ko || exit 1
            {harness.CROSSTALK} doctor >$RESULTS/after; true""")
        return result.files["before"].decode(), result.files["after"].decode()

    def test_op_sampling_is_found(self):
        before, after = self.doctor()
        self.assertNotIn("ibs_op//", before)
        self.assertIn("ibs_op//", after)

    @kernel_case.guest_kind(kernel_case.INTEL)
    def test_load_and_store_events_are_found(self):
        before, after = self.doctor()
        self.assertNotIn("cpu/mem-loads/", before)
        self.assertIn("cpu/mem-loads/, cpu/mem-stores/", after)

    def test_who_may_not_open_our_module_is_told_why(self):
        guest = self.guest()
        guest.add_program(harness.CROSSTALK)
        guest.add_program(harness.COLLECTOR)
        guest.add_module(IBS_MODULE)
        guest.add("/etc/passwd", b"root:x:0:0::/root:/bin/sh\n"
                                 b"member:x:1000:1000::/tmp:/bin/sh\nother:x:1001:1001::/tmp:/bin/sh\n")
        guest.add("/etc/group", b"root:x:0:\nmember:x:1000:\nother:x:1001:\ncrosstalk:x:990:member\n")
        record = f"{harness.CROSSTALK} record --source ibs-kmod -o /tmp/$$.db -- /usr/bin/sleep 0.5"
        result = self.run_well(guest, f"""chmod 1777 /tmp
            su other -c "{record}" >$RESULTS/unloaded 2>&1
            insmod /modules/crosstalk_ibs.ko emulate=1 || exit 1
            su other -c "{record}" >$RESULTS/closed 2>&1
            chgrp crosstalk /dev/crosstalk_ibs && chmod 660 /dev/crosstalk_ibs || exit 1  # as the udev rule does
            su other -c "{record}" >$RESULTS/other 2>&1
            su member -c "{record}" >$RESULTS/paranoid 2>&1
            echo 2 >/proc/sys/kernel/perf_event_paranoid
            su member -c "{record}" >$RESULTS/member 2>&1 || exit 1
            rmmod crosstalk_ibs""")
        said = {name: text.decode() for name, text in result.files.items()}
        self.assertIn("/dev/crosstalk_ibs is not there: its kernel module is not loaded", said["unloaded"])
        self.assertIn("/dev/crosstalk_ibs is root's alone; to open it to a group: kmod/60-crosstalk-ibs.rules", said["closed"])
        self.assertIn("is open to root and group crosstalk, and this user is in no such group: "
                      "sudo usermod -aG crosstalk USER", said["other"])
        self.assertIn("kernel.perf_event_paranoid is 3; to allow it: sudo sysctl kernel.perf_event_paranoid=2", said["paranoid"])
        self.assertIn("wrote /tmp/", said["member"])


class Refusals(kernel_case.GuestCase, harness.Case):
    """One line says why threads cannot sample themselves, and the clock takes over."""

    def run_in_guest(self, script, unit=""):
        guest = self.guest()
        guest.add_module(MODULE)
        for program in (harness.CROSSTALK, harness.COLLECTOR, harness.workload("ping_pong"), "/usr/bin/dash"):
            guest.add_program(program)
        guest.add_module(IBS_MODULE)
        for name in ("perf_samples", "without_perf"):
            guest.add_program(kernel_case.program(name), f"/usr/bin/{name}")
        guest.add("/etc/passwd", b"root:x:0:0::/root:/bin/sh\nother:x:1001:1001::/tmp:/bin/sh\n")
        return self.run_well(guest, f"chmod 1777 /tmp; insmod /modules/emulated_pmu.ko {unit} || exit 1\n{script}")

    @kernel_case.guest_kind(kernel_case.INTEL_1)
    def test_where_little_memory_may_be_locked_and_where_events_are_forbidden(self):
        record = f"{harness.CROSSTALK} record --budget 100 --source pebs"
        player = f"{harness.workload('ping_pong')} --seconds 2"
        result = self.run_in_guest(f"""
            (ulimit -l 16; {record} -o $RESULTS/little.db -- {player}) >/dev/null || exit 1
            su other -c "{record} -o /tmp/x.db -- {player}" >$RESULTS/forbidden 2>&1; true""")
        profile = self.path("little.db")
        with open(profile, "wb") as file:
            file.write(result.files["little.db"])
        report = self.report(profile)
        why = [warning["message"] for warning in report["warnings"] if warning["code"] == "accesses_not_sampled"]
        self.assertEqual(len(why), 1, report["warnings"])
        self.assertIn("ulimit -l", why[0])
        self.assertEqual({event["source"] for event in report["sampling"]["events"] if event["samples"] > 0}, {"clock"})
        forbidden = result.files["forbidden"].decode()
        self.assertIn("--source pebs: not available on this machine: the kernel refuses cpu/mem-loads/", forbidden)
        self.assertIn("kernel.perf_event_paranoid", forbidden)
        self.assertEqual(len(forbidden.splitlines()), 1, forbidden)

    # Another user's event that is pinned to the only counter: the kernel takes ours, and they never count.
    HOLDER = ("perf_samples unit=cpu config=0x01cd config1=3 period=1000000000 precise=3 exclude_kernel=1 each_cpu=1 "
              "pinned=1 samples=1000000 >/dev/null & holder=$!\n"
              "until ls -l /proc/$holder/fd | grep -q perf_event; do sleep 0.1; done; sleep 1")

    @kernel_case.guest_kind(kernel_case.INTEL_1)
    def test_events_without_a_counter_are_not_taken(self):
        record = f"{harness.CROSSTALK} record --budget 100 -o /tmp/x.db"
        result = self.run_in_guest(f"""
            {self.HOLDER}
            {record} -v -- /usr/bin/sleep 0.1 >$RESULTS/auto 2>&1 || exit 1
            {record} --source pebs -- /usr/bin/sleep 0.1 >$RESULTS/asked 2>&1 && exit 1
            kill $holder""", "counters=1")
        for name in ("auto", "asked"):
            self.assertRegex(result.files[name].decode(), r"pebs: .*the kernel takes cpu/mem-loads/, but it had no counter in 20 ms of "
                             r"loads, stores and branches; end what else measures")

    @kernel_case.guest_kind(kernel_case.INTEL_1)
    def test_that_events_never_had_a_counter_is_said(self):
        """The only counter is taken once the recording has begun, and before the threads do."""
        record = f"{harness.CROSSTALK} record --budget 100 --source pebs"
        player = (f"/usr/bin/dash -c 'echo >/tmp/begun; until [ -e /tmp/held ]; do /usr/bin/sleep 0.1; done; "
                  f"exec {harness.workload('ping_pong')} --seconds 3'")
        holder = f"""
            (until [ -e /tmp/begun ]; do sleep 0.1; done
             {self.HOLDER}; echo $holder >/tmp/holder; echo >/tmp/held) &"""
        end = """
            kill $(cat /tmp/holder); rm /tmp/begun /tmp/holder /tmp/held"""
        result = self.run_in_guest(f"""{holder}
            {record} -o $RESULTS/inside.db -- {player} >/dev/null || exit 1{end}{holder}
            {record} --observer -o $RESULTS/outside.db -- {player} >/dev/null || exit 1{end}""", "counters=1")
        for name in ("inside", "outside"):
            with self.subTest(name):
                profile = self.path(name + ".db")
                with open(profile, "wb") as file:
                    file.write(result.files[name + ".db"])
                report = self.report(profile)
                said = [warning["message"] for warning in report["warnings"] if warning["code"] == "events_never_counted"]
                self.assertEqual(len(said), 1, report["warnings"])
                self.assertIn("end what else measures", said[0])
                self.assertEqual(report["sampling"]["source_choice"], "pebs: chosen")

    def check_silent(self, source, facility, event):
        """Events of the unit are taken, and never count (1) or never sample (2): the clock samples, and one line says why.
        Returns what was said of counters, for each."""
        counters = []
        for number, silence in ((1, "counts: 0 in 20 ms of"), (2, "samples: it counted")):
            result = self.run_in_guest(f"""
                crosstalk={harness.CROSSTALK}
                $crosstalk doctor >$RESULTS/doctor
                $crosstalk record -v -o $RESULTS/auto.db -- {harness.workload('ping_pong')} --seconds 0.2 >$RESULTS/auto 2>&1 || exit 1
                $crosstalk record --source {source} -o /tmp/x.db -- /usr/bin/sleep 0.1 >$RESULTS/asked 2>&1 && exit 1
                $crosstalk record --source clock --counters on -o /tmp/x.db -- /usr/bin/sleep 0.1 >$RESULTS/counters 2>&1""",
                                       f"silent={number}")
            said = {name: text.decode() for name, text in result.files.items() if name != "auto.db"}
            why = rf"the kernel takes {event}, but it never {silence} .*; give the virtual machine a whole PMU"
            with self.subTest(silence):
                self.assertRegex(" ".join(said["doctor"].split()), f"no {facility} {why}")
                self.assertRegex(said["auto"], f"{source}: {why}")
                self.assertRegex(said["asked"], f"--source {source}: not available on this machine: {why}")
                self.assertEqual(len(said["asked"].splitlines()), 1, said["asked"])
                profile = self.path(f"{source}_{number}.db")
                with open(profile, "wb") as file:
                    file.write(result.files["auto.db"])
                self.assertEqual(self.report(profile)["sampling"]["source"], "clock")
            counters.append(said["counters"])
        return counters

    @kernel_case.guest_kind(kernel_case.INTEL_1)
    def test_events_that_never_count_or_never_sample_are_not_taken(self):
        for said in self.check_silent("pebs", "PEBS", "cpu/mem-loads/"):
            self.assertRegex(said, r"hardware counters are not read: the kernel takes cpu/config=0x3c/.*, but it never ")

    @kernel_case.guest_kind(kernel_case.AMD_1)
    def test_micro_ops_that_are_never_counted_or_sampled_are_not_taken(self):
        self.check_silent("ibs", "IBS", "ibs_op//")

    @kernel_case.guest_kind(kernel_case.AMD_1)
    def test_our_module_samples_where_events_of_perf_are_forbidden(self):
        """As in a container that has the module's device."""
        result = self.run_in_guest(f"""
            {LOAD_IBS_MODULE} || exit 1
            record="/usr/bin/without_perf {harness.CROSSTALK} record --budget 100"
            $record --source ibs-kmod -o $RESULTS/run.db -- {harness.workload('ping_pong')} --seconds 5 >/dev/null || exit 1
            $record --source ibs-kmod --observer -o /tmp/x.db -- /usr/bin/sleep 0.1 >$RESULTS/outside 2>&1 && exit 1
            rmmod crosstalk_ibs""")
        profile = self.path("run.db")
        with open(profile, "wb") as file:
            file.write(result.files["run.db"])
        report = self.report(profile)
        self.assertEqual({process["observation"] for process in report["processes"]}, {"preloaded"})
        counts = {event["name"]: event["samples"] for event in report["sampling"]["events"]}
        self.assertGreater(counts[BY_IBS_MODULE[0]], 10, counts)
        self.assertIn("cannot be watched from outside: perf events are forbidden", result.files["outside"].decode())

    @kernel_case.guest_kind(kernel_case.AMD_1)
    def test_where_ibs_is_for_processors_only(self):
        record = f"{harness.CROSSTALK} record -v"
        player = f"{harness.workload('ping_pong')} --seconds 0.1"
        result = self.run_in_guest(f"""
            {record} -o /tmp/auto.db -- {player} >$RESULTS/auto 2>&1 || exit 1
            {record} --source ibs -o /tmp/ibs.db -- {player} >$RESULTS/ibs 2>&1 || exit 1""")
        automatic, asked = result.files["auto"].decode(), result.files["ibs"].decode()
        self.assertIn("source ibs: the kernel takes ibs_op// for processors only", automatic)
        self.assertIn("source clock: chosen", automatic)
        self.assertIn("because --source ibs requires it, the command was watched from outside", asked)
        self.assertIn("source ibs: chosen", asked)


class Matrices(kernel_case.GuestCase, harness.Case):
    """Threads that sample themselves by the processor's events give the matrix that the program forces: how often pairs of
    threads communicate, in proportion. What that costs, an emulator cannot tell."""

    # On one processor threads take turns. Those of the ring take a millisecond or more, so that a watch lasts for some
    # rounds, and events of a thread's own cost little at its switches.
    FORCED = {"ping_pong": [], "false_sharing": [],
              "ring": ["--threads", "4", "--wait", "futex", "--lines", "4", "--passes", "12000"]}
    MAX_DISTANCE = 0.10
    # Communications seen by pair: chance alone gives a distance of 0.05. A watch in the ring sees some five of them, and lines
    # that were seen are watched more often than others: 155 by pair gave 0.08 to 0.16, 1200 and more gave 0.01.
    SEEN_BY_PAIR = {"ping_pong": 60, "false_sharing": 60, "ring": 600}
    SECONDS = (20, 60, 180)

    def play(self, name, seconds, source, load):
        guest = self.guest()
        guest.add_module(MODULE)
        guest.add_module(IBS_MODULE)
        player = harness.workload(name)
        for program in (harness.CROSSTALK, harness.COLLECTOR, player):
            guest.add_program(program)
        result = self.run_well(guest, f"""
            {load} || exit 1
            {harness.CROSSTALK} record -o $RESULTS/run.db --source {source} --budget 100 -- \
              {player} --seconds {seconds} {' '.join(self.FORCED[name])} >$RESULTS/truth || exit 1""", 60 + 4 * seconds)
        profile = self.path("run.db")
        with open(profile, "wb") as file:
            file.write(result.files["run.db"])
        return self.report(profile), json.loads(result.files["truth"])

    def check(self, name, source, events, load=LOAD_UNIT):
        for seconds in self.SECONDS:
            report, truth = self.play(name, seconds, source, load)
            seen = sum(harness.cells_by_truth(report, truth, "seen").values())
            if seen >= self.SEEN_BY_PAIR[name] * sum(cell > 0 for row in truth["matrix"] for cell in row):
                break
        found = harness.cells_by_truth(report, truth, "detections")
        distance = harness.matrix_distance(found, truth, truth["matrix"])
        counts = {event["name"]: event["samples"] for event in report["sampling"]["events"] if event["source"] != "clock"}
        print(f"{name} by {source}: distance {distance:.3f} of {seen} communications seen in {seconds} s; samples: {counts}")
        self.assertLessEqual(distance, self.MAX_DISTANCE, found)
        self.assertEqual(harness.true_share(found), 0 if name == "false_sharing" else 1)
        self.assertEqual({process["observation"] for process in report["processes"]}, {"preloaded"})
        self.assertEqual(report["sampling"]["source_choice"], f"{source}: chosen")
        self.assertEqual(set(counts), set(events))
        self.assertGreater(counts[events[0]], 10)

    @kernel_case.guest_kind(kernel_case.INTEL_1)
    def test_forced_communication_by_pebs(self):
        for name in self.FORCED:
            with self.subTest(name):
                self.check(name, "pebs", ["cpu/mem-loads/", "cpu/mem-stores/"])

    @kernel_case.guest_kind(kernel_case.AMD_1)
    def test_forced_communication_by_ibs(self):
        for name in self.FORCED:
            with self.subTest(name):
                self.check(name, "ibs", ["ibs_op//"], f"{LOAD_UNIT} per_thread=1")

    @kernel_case.guest_kind(kernel_case.AMD_1)
    def test_forced_communication_by_our_module(self):
        for name in self.FORCED:
            with self.subTest(name):
                self.check(name, "ibs-kmod", BY_IBS_MODULE, LOAD_IBS_MODULE)


class Recording(kernel_case.GuestCase, harness.Case):
    """An emulator's traps are slow and few: enough to tell who communicates and where, not how much."""

    def record(self, sources, check, seconds=10, options="", unit=""):
        """Records a ping-pong in a guest by each of the sources, and checks the reports that are made of it here:
        check(source, report, truth). `unit`: parameters of the emulated one."""
        guest = self.guest()
        guest.add_module(MODULE)
        guest.add_module(IBS_MODULE)
        player = harness.workload("ping_pong")
        for program in (harness.CROSSTALK, harness.COLLECTOR, player):
            guest.add_program(program)
        script = "".join(f"""
            {harness.CROSSTALK} record -o $RESULTS/{source}.db --source {source} {options} --budget 100 -- \
              {player} --seconds {seconds} >$RESULTS/{source} || exit 1""" for source in sources)
        result = self.run_well(guest, f"""
            insmod /modules/emulated_pmu.ko {unit} || exit 1
            insmod /modules/crosstalk_ibs.ko emulate=1 || exit 1{script}
            rmmod crosstalk_ibs || exit 1""", 250)
        for source in sources:
            with self.subTest(source):
                profile = self.path(source + ".db")
                with open(profile, "wb") as file:
                    file.write(result.files[source + ".db"])
                report = self.report(profile)
                print(report["sampling"])
                self.assertEqual(report["sampling"]["source"], source)
                check(source, report, json.loads(result.files[source]))

    def check_who_plays(self, report, truth):
        """The players get the ball from each other, and nothing else is exchanged."""
        index_of_tid = {tid: index for index, tid in enumerate(truth["tids"])}
        index = {thread["index"]: index_of_tid.get(thread["tid"]) for thread in report["threads"]}
        found = {(index[cell["producer"]], index[cell["consumer"]], sort)
                 for cell in harness.cells_of_data(report, truth) for sort in ("true", "false") if cell[sort]["seen"] > 0}
        passes = {(1, 2, "true"), (2, 1, "true")}
        self.assertEqual(found, passes)

    def check_where_they_play(self, report, truth):
        self.assertTrue(harness.object_named(report["objects"][0], "ball"))
        costliest = report["line_pairs"][0]
        self.assertTrue(costliest["producer"]["file"].endswith("/ping_pong.cpp"))
        self.assertEqual(costliest["producer"]["line"], truth["producer_line"])
        self.assertIn((truth["producer_line"], truth["consumer_line"]),
                      {(pair["producer"]["line"], pair["consumer"]["line"]) for pair in report["line_pairs"]})

    def check_measured(self, report, units):
        """There are samples of the unit's events beside those of the clock."""
        counts = [(event["unit"], event["samples"]) for event in report["sampling"]["events"]]
        self.assertGreater(sum(samples for unit, samples in counts if unit in units), 10, counts)

    def test_who_plays_is_found_on_amd(self):
        def check(_, report, truth):
            self.check_who_plays(report, truth)
            self.check_where_they_play(report, truth)
            self.check_measured(report, ["micro_ops", "cycles"])
            self.check_observed(report, "outside")
        self.record(["ibs", "ibs-kmod"], check, options="--observer")

    @kernel_case.guest_kind(kernel_case.INTEL)
    def test_who_plays_is_found_on_intel(self):
        def check(_, report, truth):
            self.check_who_plays(report, truth)
            self.check_where_they_play(report, truth)
            self.check_measured(report, ["loads", "stores", "accesses"])
            self.check_observed(report, "outside")
        self.record(["pebs"], check, options="--observer")

    def check_observed(self, report, how):
        self.assertEqual({process["observation"] for process in report["processes"]}, {how})

    def check_inside(self, report, truth, events):
        """The players have sampled themselves, both of them, and their samples tell who plays and where."""
        self.check_observed(report, "preloaded")
        self.check_who_plays(report, truth)
        self.check_where_they_play(report, truth)
        # A ring that nobody reads for a while drops samples: the host may leave a processor without time.
        self.assertLess(report["sampling"]["lost"], 0.1 * report["sampling"]["samples"])
        counts = {event["name"]: event["samples"] for event in report["sampling"]["events"] if event["source"] != "clock"}
        self.assertEqual(set(counts), set(events))
        self.assertGreater(counts[events[0]], 10, counts)  # a thread that waits for the ball stores nothing

    # On one processor the ball is passed at each switch of threads, however little of its own processors the host has for
    # the guest's. On two a busy host may let none of a thread's watches see the other one: arming it takes too long.
    @kernel_case.guest_kind(kernel_case.AMD_1)
    def test_who_plays_is_found_from_inside_by_the_clock(self):
        def check(_, report, truth):
            self.check_observed(report, "preloaded")
            self.check_who_plays(report, truth)
        self.record(["clock"], check)

    @kernel_case.guest_kind(kernel_case.INTEL_1)
    def test_who_plays_is_found_from_inside_on_intel(self):
        def check(_, report, truth):
            self.check_inside(report, truth, ["cpu/mem-loads/", "cpu/mem-stores/"])
        self.record(["pebs"], check)

    @kernel_case.guest_kind(kernel_case.AMD_1)
    def test_who_plays_is_found_from_inside_on_amd(self):
        """Kernels from 6.2 on take IBS for threads; that they can leave out the kernel is newer still."""
        def check(_, report, truth):
            self.check_inside(report, truth, ["ibs_op//"])
        self.record(["ibs"], check, unit="per_thread=1")

    @kernel_case.guest_kind(kernel_case.AMD_1)
    def test_who_plays_is_found_from_inside_by_our_module(self):
        def check(_, report, truth):
            self.check_inside(report, truth, BY_IBS_MODULE)
        self.record(["ibs-kmod"], check)


if __name__ == "__main__":
    kernel_case.main()
