# SPDX-License-Identifier: Apache-2.0
"""The emulated unit's samples say what the sampled instructions did, and its events follow the real units' rules."""

import collections
import json
import os

import kernel_case

MODULE = os.path.join(kernel_case.HERE, "modules", "emulated_pmu")
LOAD, STORE, NOTHING = 2, 4, 1  # PERF_MEM_OP_*
WIDTH = {"load": 8, "store": 4, "locked": 8, "byte": 1, "vector": 16}
WIDTH_OF_CODE = {1: 1, 2: 2, 3: 4, 4: 8, 5: 16, 6: 32}
STORES = {"store", "locked"}
LOADS = {"load", "locked", "byte", "vector"}
IBS = "unit=ibs_op config=0x80000 period=0x8000 raw=1"
LOAD_EVENT = "unit=cpu config=0x01cd config1=3 period=5000 precise=3 exclude_kernel=1"
STORE_EVENT = "unit=cpu config=0x82d0 period=5000 precise=3 exclude_kernel=1"


class EmulatedUnit(kernel_case.GuestCase):
    def sample(self, commands, parameters=""):
        """Returns the output of perf_samples for these arguments."""
        guest = self.guest()
        guest.add_module(MODULE)
        guest.add_program(kernel_case.program("perf_samples"), "/usr/bin/perf_samples")
        runs = "\n".join(f"perf_samples {words} >$RESULTS/{number} || exit 1" for number, words in enumerate(commands))
        result = self.run_well(guest, f"insmod /modules/emulated_pmu.ko {parameters} || exit 1\n{runs}")
        return [json.loads(result.files[str(number)]) for number in range(len(commands))]

    def known(self, found, sample):
        """The name of the place that a sample with an exact address of its instruction was taken at; None elsewhere."""
        return next((name for name, place in found["places"].items() if sample["exact"] and sample["ip"] == place), None)

    def check_addresses(self, found):
        """Every sample of a known instruction has the address of its access. Returns how many there are of each."""
        counts = collections.Counter()
        for sample in found["samples"]:
            name = self.known(found, sample)
            if name is None:
                continue
            counts[name] += 1
            if name == "none":
                self.assertEqual(sample["address"], 0)
            elif name == "byte":
                self.assertIn(sample["address"] - found["words"][name], range(0, 64, 4))
            else:
                self.assertEqual(sample["address"], found["words"][name], name)
        return counts

    def test_op_samples_of_processors(self):
        found, refused_thread, refused_user, refused_period = self.sample(
            [IBS + " each_cpu=1", IBS, IBS + " each_cpu=1 exclude_kernel=1", IBS.replace("0x8000 ", "0x8001 ") + " each_cpu=1"])
        for refused in (refused_thread, refused_user, refused_period):
            self.assertEqual(refused, {"error": "EINVAL"})
        counts = self.check_addresses(found)
        self.assertEqual(set(counts), set(found["places"]))
        exact = [sample for sample in found["samples"] if sample["user"] and sample["tid"] == found["tid"]]
        self.assertGreaterEqual(len(exact), 500)  # of 600, the rest in the kernel
        self.assertTrue(any(not sample["user"] for sample in found["samples"]))  # it cannot leave out the kernel
        self.assertTrue(any(sample["tid"] != found["tid"] for sample in found["samples"]))
        self.check_registers(found)
        invalid = [sample for sample in exact if sample["registers"][2] >> 38 & 1]
        self.assertTrue(invalid)
        self.assertFalse(any(sample["exact"] for sample in invalid))

    def check_registers(self, found):
        for sample in found["samples"]:
            name = self.known(found, sample)
            if name is None:
                continue
            _, ip, _, _, data3, address, physical = sample["registers"]
            self.assertEqual((ip, address, physical), (sample["ip"], sample["address"], 0))
            self.assertEqual(bool(data3 & 1), name in LOADS, name)
            self.assertEqual(bool(data3 & 2), name in STORES, name)
            self.assertEqual(bool(data3 >> 15 & 1), name == "locked", name)
            self.assertEqual(WIDTH_OF_CODE.get(data3 >> 22 & 15), WIDTH.get(name))
            self.assertEqual(sample["operation"], LOAD if name in LOADS else STORE if name in STORES else NOTHING)
            self.assertEqual(sample["period"], 0x8000)

    def test_op_samples_of_a_thread(self):
        found, = self.sample([IBS], "per_thread=1")
        self.assertEqual({sample["tid"] for sample in found["samples"]}, {found["tid"]})
        self.assertEqual(set(self.check_addresses(found)), set(found["places"]))

    @kernel_case.guest_kind(kernel_case.INTEL)
    def test_load_and_store_samples(self):
        loads, stores, signals, too_precise = self.sample(
            [LOAD_EVENT, STORE_EVENT, LOAD_EVENT + " sigtrap=1", LOAD_EVENT.replace("precise=3", "config1=0x10000")])
        self.assertEqual(too_precise, {"error": "EINVAL"})
        self.check_events(loads, LOADS, LOAD)
        self.check_events(stores, STORES, STORE)
        self.assertTrue(all(sample["latency"] >= 3 for sample in loads["samples"]))
        self.assertEqual(stores["signals"], 0)
        self.assertGreater(signals["signals"], 100)
        self.assertGreater(signals["signals_at_words"], signals["signals"] / 4)

    def check_events(self, found, kinds, operation):
        self.assertGreater(len(found["samples"]), 200)
        self.assertEqual({sample["tid"] for sample in found["samples"]}, {found["tid"]})
        self.assertTrue(all(sample["exact"] and sample["user"] for sample in found["samples"]))
        self.assertTrue(all(sample["period"] == 5000 for sample in found["samples"]))
        self.assertEqual(set(self.check_addresses(found)), kinds)
        self.assertEqual({sample["operation"] for sample in found["samples"]}, {operation})
        self.assertEqual(found["lost"], 0)

    def test_watchpoints_beside_samples(self):
        # A single step and a watchpoint of one instruction are more than the emulator can do: the kernel would hang.
        guest = self.guest()
        guest.add_module(MODULE)
        for name in ("perf_samples", "watchpoints"):
            guest.add_program(kernel_case.program(name), "/usr/bin/" + name)
        result = self.run_well(guest, f"""
            insmod /modules/emulated_pmu.ko || exit 1
            perf_samples {IBS} each_cpu=1 samples=1000000 >/dev/null & sampler=$!
            for run in 1 2 3 4 5 6 7 8 9 10; do watchpoints || exit 1; done
            kill $sampler""")
        for line in result.output.splitlines():
            found = json.loads(line)
            self.assertEqual((found["loads"], found["stores"]), ([100] * 4, [100] * 4))
        self.assertEqual(len(result.output.splitlines()), 10)


if __name__ == "__main__":
    kernel_case.main()
