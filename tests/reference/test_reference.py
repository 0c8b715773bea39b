# SPDX-License-Identifier: Apache-2.0
"""Programs under the emulator: what the reference says of them is what they say of themselves."""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import distances
import reference

sys.path.insert(0, os.path.join(reference.TOP, "tests", "end_to_end"))
import harness  # noqa: E402

COMPARE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compare.py")
TIMEOUT = 150  # seconds


def needs_emulator(test):
    @functools.wraps(test)
    def wrapper(self):
        if shutil.which(reference.EMULATOR) is None:
            self.skipTest(f"{reference.EMULATOR} is not installed: ./dev deps test")
        test(self)
    return wrapper


def observe(name, *arguments, **options):
    """A workload's reference, and the truth that it printed."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
        result = reference.make_reference([harness.workload(name), *arguments], timeout=TIMEOUT, stdout=out, **options)
        out.seek(0)
        return result, json.loads(out.read().strip().splitlines()[-1])


class Truth(unittest.TestCase):
    """Communication that is forced is counted to the last one."""

    def check(self, name, *arguments):
        found, truth = observe(name, *arguments)
        self.assertEqual(found["threads"], truth["threads"])
        known = {}
        for sort in distances.SORTS:
            for producer, row in enumerate(truth[f"{sort}_matrix"]):
                for consumer, count in enumerate(row):
                    if count:
                        known[producer, consumer, sort] = count
        matrix = distances.reference_matrix(found, truth["data"])
        differing = {key: (matrix.get(key, 0), known.get(key, 0)) for key in set(matrix) | set(known)
                     if matrix.get(key, 0) != known.get(key, 0)}
        self.assertEqual(differing, {})
        self.assertGreater(sum(known.values()), 100)
        self.check_places(found, truth)

    def check_places(self, found, truth):
        self.assertEqual(distances.bare(found["objects"][0]["name"]) in truth["data"] + truth["sync"], True)
        for role in ("producer", "consumer"):
            lines = [distances.source_line(row) for row in found["lines"] if row["role"] == role]
            self.assertIn(f"{truth['file']}:{truth[role + '_line']}", lines[:2])

    @needs_emulator
    def test_ping_pong(self):
        self.check("ping_pong", "--seconds", "1")

    @needs_emulator
    def test_ping_pong_on_futexes(self):
        self.check("ping_pong", "--seconds", "1", "--wait", "futex", "--lines", "16")

    @needs_emulator
    def test_ring(self):
        self.check("ring", "--seconds", "1", "--threads", "4")

    @needs_emulator
    def test_halo_exchange(self):
        self.check("halo_exchange", "--iterations", "20", "--threads", "3")

    @needs_emulator
    def test_one_writer_many_readers(self):
        self.check("one_writer_many_readers", "--seconds", "1", "--threads", "4")

    @needs_emulator
    def test_migrating_object(self):
        self.check("migrating_object", "--seconds", "1", "--threads", "3")

    @needs_emulator
    def test_pipeline(self):
        self.check("pipeline", "--seconds", "1", "--threads", "3")

    @needs_emulator
    def test_clone_threads(self):
        self.check("clone_threads", "--seconds", "1")

    @needs_emulator
    def test_mixed(self):
        self.check("mixed", "--seconds", "2", "--true-tenths", "2")

    @needs_emulator
    def test_all_to_all(self):
        self.check("all_to_all", "--seconds", "1", "--threads", "4", "--lines", "64")

    @needs_emulator
    def test_reduction_tree(self):
        self.check("reduction_tree", "--seconds", "1", "--threads", "4")

    @needs_emulator
    def test_work_stealing(self):
        self.check("work_stealing", "--seconds", "1", "--threads", "3")

    @needs_emulator
    def test_read_only_sharing(self):
        found, truth = observe("read_only_sharing", "--seconds", "1")
        matrix = distances.reference_matrix(found, ["table"])
        lines = truth["true_matrix"][0][1]  # each one's first read, by either thread
        self.assertEqual(matrix, {(0, 1, "true"): lines, (0, 2, "true"): lines})

    def check_false(self, *command):
        found, truth = observe(*command)
        matrix = distances.reference_matrix(found, truth["data"])
        sums = [matrix.pop((one, other, "false"))
                for one, row in enumerate(truth["false_matrix"]) for other, count in enumerate(row) if count]
        self.assertLess(sum(matrix.values()), 0.01 * sum(sums), matrix)
        self.assertGreater(min(sums), 100)
        self.assertLess(max(sums) - min(sums), 0.05 * max(sums))

    @needs_emulator
    def test_false_sharing(self):
        self.check_false("false_sharing", "--seconds", "1")

    @needs_emulator
    def test_openmp_reduction(self):
        self.check_false("openmp_reduction", "--seconds", "1")

    @needs_emulator
    def test_counters_in_lines_of_their_own(self):
        found, _ = observe("false_sharing", "--seconds", "1", "--stride", "64")
        self.assertEqual(distances.reference_matrix(found, ["counters"]), {})

    @needs_emulator
    def test_numbers_of_ended_threads_are_not_mistaken(self):
        found, _ = observe("short_threads", "--threads", "300")
        self.assertEqual(found["threads"], 301)
        self.assertTrue(all(cell["producer"] != cell["consumer"] for cell in found["cells"]))
        self.assertGreater(max(cell["consumer"] for cell in found["cells"]), 250)


class Heap(unittest.TestCase):
    @needs_emulator
    def test_blocks_are_named_by_who_allocated_them(self):
        found, _ = observe("pipeline", "--seconds", "1")
        heap = [row for row in found["objects"] if row["kind"] == "heap"]
        self.assertTrue(any("pipeline.cpp" in row["name"] for row in heap), heap[:5])

    @needs_emulator
    def test_without_notes_there_are_none(self):
        found, _ = observe("pipeline", "--seconds", "1", heap=False)
        self.assertEqual([row for row in found["objects"] if row["kind"] == "heap"], [])


class Work(unittest.TestCase):
    # By function: loads, stores, bytes loaded, bytes stored, flops an iteration (programs/known_work.cpp).
    KNOWN = {
        "scalar_triad": (2, 1, 16, 8, 2),
        "wide_fma": (2, 1, 64, 32, 8),
        "packed_single": (1, 1, 16, 16, 8),
        "modify": (4, 4, 32, 32, 0),
        "exchange_wide": (1, 1, 16, 16, 0),
        "copy_bytes": (17, 17, 24, 24, 0),
        "extended": (1, 1, 10, 10, 1),
    }
    ROUNDS = 1000

    @needs_emulator
    def test_loops(self):
        found = reference.make_reference([reference.built("known_work"), str(self.ROUNDS)], timeout=TIMEOUT)
        for name, known in self.KNOWN.items():
            rows = [row for row in found["loops"] if distances.bare(row["function"] or "") == name]
            self.assertEqual(len(rows), 1, name)
            iterations, work = rows[0]["iterations"], rows[0]["work"]
            self.assertEqual(iterations, 2 * self.ROUNDS, name)
            each = tuple(work[what] / iterations for what in ("loads", "stores", "load_bytes", "store_bytes", "flops"))
            self.assertEqual(each, known, name)

    @needs_emulator
    def test_inner_loops_are_part_of_outer_ones(self):
        found, _ = observe("halo_exchange", "--iterations", "5", "--threads", "2")
        inner = [row for row in found["loops"] if row["parent"] is not None]
        self.assertTrue(inner)
        for row in inner:
            outer = found["loops"][row["parent"]]
            self.assertGreater(row["depth"], outer["depth"])
            self.assertGreaterEqual(outer["work"]["loads"], row["work"]["loads"] + outer["self"]["loads"])


class Refusals(unittest.TestCase):
    def refuse(self, *command, says, status=reference.REFUSED, environment=None):
        shown = subprocess.run([sys.executable, "-B", COMPARE, *command], check=False, capture_output=True, text=True,
                               env={**os.environ, **(environment or {})}, timeout=TIMEOUT)
        self.assertEqual(shown.returncode, status, shown.stderr)
        lines = [line for line in shown.stderr.splitlines() if line.startswith("crosstalk: ")]
        self.assertEqual(len(lines), 1, shown.stderr)
        self.assertIn(says, lines[0])

    def elf(self, folder, machine, elf_class=2):
        path = os.path.join(folder, "program")
        head = bytearray(64)
        head[:5] = b"\x7fELF" + bytes([elf_class])
        head[18:20] = machine.to_bytes(2, "little")
        with open(path, "wb") as file:
            file.write(head)
        os.chmod(path, 0o755)
        return path

    def test_no_such_program(self):
        self.refuse("--", "no-such-program", says="no program 'no-such-program'", status=reference.NOT_FOUND)

    def test_not_executable(self):
        self.refuse("--", COMPARE, says="cannot be executed", status=reference.NOT_EXECUTABLE)

    def test_foreign_architecture(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refuse("--", self.elf(folder, 183), says="another architecture (ELF machine 183")

    def test_static_program(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refuse("--", self.elf(folder, reference.X86_64), says="linked statically")

    def test_script(self):
        self.refuse("--", os.path.join(reference.TOP, "dev"), says="no ELF program")

    def test_no_emulator(self):
        program = harness.workload("ping_pong")
        self.refuse("--", program, says="package qemu-user", environment={"PATH": "/nonexistent"})

    @needs_emulator
    def test_unknown_instruction(self):
        self.refuse("--", reference.built("refused_instruction"), says="AVX-512")

    @needs_emulator
    def test_ended_by_a_signal(self):
        self.refuse("--", "/bin/sh", "-c", "kill -9 $$", says="signal 9 (SIGKILL)")

    @needs_emulator
    def test_exec(self):
        self.refuse("--", "/bin/sh", "-c", "exec /bin/true", says="replaces itself")

    @needs_emulator
    def test_memory_limit(self):
        self.refuse("--memory", "1", "--", harness.workload("halo_exchange"), "--iterations", "1",
                    says="need more than 1 MiB")

    def test_existing_reference_that_is_none(self):
        self.refuse("--reference", COMPARE, "-i", "x.db", says="is no reference")


class Comparison(unittest.TestCase):
    """The command itself, on what was kept of a run."""

    @needs_emulator
    @harness.needs_watchpoints
    def test_halo_exchange(self):
        with tempfile.TemporaryDirectory() as folder:
            kept, profile = os.path.join(folder, "reference.json"), os.path.join(folder, "run.db")
            exact, _ = observe("halo_exchange", "--iterations", "20", "--threads", "2")
            with open(kept, "w", encoding="utf-8") as file:
                json.dump(exact, file)
            program = [harness.workload("halo_exchange"), "--iterations", "240000", "--threads", "2"]
            recorded = harness.run([harness.CROSSTALK, "record", "-q", "-o", profile, "--", *program])
            self.assertEqual(recorded.status, 0, recorded.stderr)
            result = self.compare("--reference", kept, "-i", profile, "--object", "blocks", "--format", "json")
            told = self.compare("--reference", kept, "-i", profile)
        found = json.loads(result)
        self.assertEqual(found["schema"], "crosstalk.compare/1")
        # The program does not force which of the two waits longer: 0.5 is all of the cost on one of them.
        self.assertLessEqual(found["matrix_distance"], 0.5)
        self.assertEqual(found["true_share"]["reference"], 1.0)
        self.assertTrue(found["objects"]["first_equal"])
        self.assertIn("matrix distance", told)
        self.assertIn("hands over", told)

    def compare(self, *arguments):
        shown = subprocess.run([sys.executable, "-B", COMPARE, *arguments], check=False, capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        return shown.stdout


if __name__ == "__main__":
    harness.main()
